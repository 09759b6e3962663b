"""Sections on the run itself: what was asked, was it long enough, settings and provenance."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

from dfcrp import __version__
from dfcrp.markup import (
    Column,
    Markup,
    bullets,
    counted,
    details,
    interval,
    join,
    listed,
    number,
    paragraph,
    significant,
    table,
    tag,
)
from dfcrp.report.contents import Contents
from dfcrp.report.pictures import Picture
from dfcrp.report.section import Section
from dfcrp.settings.config import to_toml
from dfcrp.summaries.convergence import Diagnostic, Limits, Verdict

PRIORS = {
    "dfcrp": "Two markings by one expert never share a cluster (DFCRP).",
    "constrained": "Two markings by one expert never share a cluster (the CRP, constrained).",
    "detection": "Two markings by one expert never share a cluster; experts find or miss objects, "
    "and make false marks (detection prior).",
    "crp": "There was no family rule: markings by one expert could share a cluster (CRP).",
}
SAMPLERS = {
    "exact": "the exact sampler",
    "paper": "the sampler of the paper",
    "unmodified": "the paper's sampler without its change to the order of arrival",
}


def what_was_asked(contents: Contents, pictures: dict[str, Picture]) -> Section:
    """Data, filters and settings in plain words."""
    markings = contents.posterior.markings
    words = [*data_words(contents), *model_words(contents), *run_words(contents)]
    experts = details(
        f"The {counted(len(markings.experts), 'expert')}", paragraph(listed(markings.experts, 200))
    )
    picture = pictures["items_map"].html(
        "Map of all markings as circles",
        f"All {len(markings):,} markings, to scale. Lines darken where experts agree.",
    )
    return Section("asked", "What was asked", join([bullets(words), experts, picture]))


def data_words(contents: Contents) -> list[str]:
    """The data and what was left out of them."""
    markings, site = contents.posterior.markings, contents.posterior.markings.site
    smallest, largest = float(markings.diameter.min()), float(markings.diameter.max())
    unit = {"px": "the units of the data", "deg": "km"}.get(site.units, site.units)
    words = [
        f"{counted(len(markings), 'marking')} by {counted(len(markings.experts), 'expert')}, "
        f"with diameters from {significant(smallest)} to {significant(largest)}, in {unit}."
    ]
    if site.on_sphere:
        words.append(
            "x and y are longitude and latitude in degrees; distances are those on a sphere with a "
            f"radius of {site.body_radius_km:g} km."
        )
    words += source_words(contents)
    if markings.images:
        words.append(f"Image: {listed(markings.images)}.")
    return words


def source_words(contents: Contents) -> list[str]:
    """The files, and how much of them was left out."""
    words = []
    for source in contents.posterior.markings.sources:
        left_out = source.rows - source.kept
        text = f"Read from {source.file}: {counted(source.rows, 'row')}"
        if left_out:
            text += f", of which {left_out:,} were left out by the filters on reading"
        words.append(text + ".")
    return words


def model_words(contents: Contents) -> list[str]:
    """The model and what counts as what."""
    config = contents.posterior.config
    summary = config.summary
    words = [model_head(contents)]
    if isinstance(config.run.radius, int | float):
        words.append(
            f"A marking could only join clusters with a member within {config.run.radius:g} of it."
        )
    elif config.run.radius == "auto":
        words.append("How far a marking may be from a cluster it joins was chosen from the data.")
    else:
        words.append("There was no limit on how far a marking may be from a cluster it joins.")
    words += _tolerance_words(contents)
    if config.run.preset:
        words.append(f"Hyperparameters: those of the paper's data set “{config.run.preset}”.")
    if contents.by_threshold:
        words.append(
            f"An object counts as agreed on (consensus) if at least "
            f"{counted(summary.min_experts, 'expert')} marked it."
        )
    if summary.class_edges:
        edges = " and ".join(f"{edge:g}" for edge in summary.class_edges)
        how = (
            "the cluster's own diameter, exp(μ)"
            if summary.diameter == "mu"
            else "the mean of its members' diameters"
        )
        words.append(
            f"Size classes {listed(summary.class_names)} are separated at {edges}; what counts is "
            f"{how}."
        )
    return words


def model_head(contents: Contents) -> str:
    """The prior over partitions in one sentence."""
    name = contents.posterior.config.run.prior
    return PRIORS.get(name, f"Prior over partitions: {name}.")


def _tolerance_words(contents: Contents) -> list[str]:
    found, site = contents.posterior.tolerances, contents.posterior.markings.site
    if found is None:
        words = "How far apart markings of one object may lie followed the paper's law"
        if site.on_sphere:
            words += f", which is in pixels; one pixel was taken for {site.metres_per_pixel:g} m"
        return [f"{words}."]
    position, percent = found["position"], found["diameter_percent"]
    return [
        "How far apart markings of one object lie was learned from the data. Around an object of "
        f"the median diameter ({significant(found['median_diameter'])}) they scatter by "
        f"{significant(position['mean'])} ({significant(position['lo'])} to "
        f"{significant(position['hi'])}) in x and y, and by {significant(percent['mean'])} % "
        f"({significant(percent['lo'])} to {significant(percent['hi'])}) in diameter (one standard "
        "deviation). Lengths are relative to that diameter, so no scale of an image enters."
    ]


def run_words(contents: Contents) -> list[str]:
    """How long the run was, and by which sampler."""
    posterior, record = contents.posterior, contents.posterior.record
    draws = posterior.draws
    every = "" if record.thin == 1 else f", of which every {record.thin}th was kept"
    words = [
        f"{counted(draws.n_chains, 'chain')} of {counted(record.scans, 'scan')} by "
        f"{SAMPLERS.get(posterior.config.run.sampler, posterior.config.run.sampler)}; the first "
        f"{record.burn_in:,} of each were dropped as burn-in{every}: "
        f"{counted(draws.n_chains * draws.n_draws, 'draw')} in {_duration(record.seconds)}."
    ]
    if record.stopped_early:
        words.append("The run was stopped before it reached its length.")
    return words


def _duration(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    if seconds < 7_200:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"


def verdict_words(verdict: Verdict) -> tuple[str, str]:
    """(kind, sentence): "good", "bad" or "unknown", and the verdict in a few words."""
    if verdict.ok:
        return "good", "Yes, the run was long enough."
    if verdict.max_rhat != verdict.max_rhat:
        return "unknown", "It cannot be told: there are too few draws."
    return "bad", "Not yet: the run should be longer."


def long_enough(contents: Contents, pictures: dict[str, Picture]) -> Section:
    """The verdict first, then the numbers and plots it rests on."""
    verdict = contents.posterior.verdict
    kind, sentence = verdict_words(verdict)
    limits = Limits()
    parts = [
        paragraph(tag("strong", sentence), class_=f"verdict {kind}"),
        bullets(verdict.advice),
        diagnostic_table(verdict, limits),
        _pair_words(verdict, limits, contents.posterior.draws.n_chains),
        pictures["traces"].html(
            "Trace and rank plots",
            "Left: each chain's course; chains should look alike and have no trend. Right: how "
            "each chain's draws rank among all; lines near 1 mean that the chains agree.",
        ),
        _tallies(contents),
    ]
    return Section("long-enough", "Was the run long enough?", join(parts))


def diagnostic_table(verdict: Verdict, limits: Limits) -> Markup:
    """R-hat and effective sample sizes, quantity by quantity."""
    return table(
        [
            Column("quantity", number=False),
            Column("R-hat", note="1 when the chains agree"),
            Column("ESS, bulk", note="effective sample size in the middle"),
            Column("ESS, tail", note="effective sample size in the tails"),
            Column("good?", number=False),
        ],
        [_diagnostic_row(d, limits) for d in verdict.diagnostics],
        f"R-hat should be at most {limits.rhat:g} and the effective sample sizes (ESS) at "
        f"least {limits.ess:g}.",
    )


def _diagnostic_row(found: Diagnostic, limits: Limits) -> list[object]:
    good = found.rhat <= limits.rhat and found.ess >= limits.ess
    return [
        found.name,
        number(found.rhat, 3),
        number(found.ess_bulk),
        number(found.ess_tail),
        tag("span", "yes" if good else "no", class_="good" if good else "bad"),
    ]


def _pair_words(verdict: Verdict, limits: Limits, n_chains: int) -> Markup:
    if n_chains < 2:
        return paragraph("With one chain it cannot be seen whether chains agree on pairs.")
    return paragraph(
        f"Pairs of markings: the largest difference between two chains in how often a pair shares "
        f"a cluster is {number(verdict.max_pair_disagreement, 2)}; "
        f"{_pairs_differ(verdict.pairs_disagreeing)} by more than {limits.pair_difference:g}. "
        f"The slowest pair has an R-hat of {number(verdict.max_pair_rhat, 2)}."
    )


def _pairs_differ(count: int) -> str:
    if count == 0:
        return "no pair differs"
    return "1 pair differs" if count == 1 else f"{count:,} pairs differ"


def _tallies(contents: Contents) -> Markup:
    """Acceptance rates of the moves, over all chains."""
    totals: dict[str, int] = {}
    for tally in contents.posterior.record.tallies:
        for name, count in tally.items():
            totals[name] = totals.get(name, 0) + count
    rows = []
    for name, proposed in totals.items():
        move, _, kind = name.rpartition("_")
        if kind != "proposed" or proposed == 0:
            continue
        done = totals.get(f"{move}_accepted", totals.get(f"{move}_moved"))
        if done is not None:
            rows.append([move, number(proposed), number(100.0 * done / proposed, 1)])
    if not rows:
        return Markup("")
    columns = [Column("move", number=False), Column("proposed"), Column("accepted, %")]
    return details("Acceptance rates of the sampler's moves", table(columns, rows))


def provenance(contents: Contents, folder: Path) -> Section:
    """What is needed to do it again: versions, seed, hashes, all settings."""
    posterior = contents.posterior
    written = _written(folder)
    rows: list[list[object]] = [["dfcrp (this page)", __version__]]
    for name, words in (
        ("dfcrp", "dfcrp (the draws)"),
        ("python", "Python"),
        ("numpy", "NumPy"),
        ("numba", "Numba"),
        ("written", "draws finished"),
    ):
        if name in written:
            rows.append([words, written[name]])
    rows.append(["seed", posterior.config.run.seed])
    rows.append(["markings, SHA-256", tag("code", posterior.markings.digest)])
    for source in posterior.markings.sources:
        rows.append([f"{source.file}, SHA-256", tag("code", source.sha256)])
    columns = [Column("", number=False), Column("", number=False)]
    settings = details("All settings (TOML)", tag("pre", to_toml(posterior.config)))
    record = dataclasses.asdict(posterior.record)
    record.pop("tallies")
    run = details("The run as recorded", tag("pre", json.dumps(record, indent=1)))
    return Section(
        "provenance", "Settings and provenance", join([table(columns, rows), settings, run])
    )


def _written(folder: Path) -> dict[str, Any]:
    """The run folder's provenance, as far as it can be read; the page does without it."""
    try:
        found = json.loads((folder / "provenance.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def headline(contents: Contents, link: str | None = "#long-enough") -> Markup:
    """The few numbers that most readers came for; ``link`` leads to more on the verdict."""
    summary = contents.summary
    total = next(
        row
        for row in summary["consensus"]
        if row["min_experts"] == contents.min_experts and row["size_class"] == "all"
    )
    kind, sentence = verdict_words(contents.posterior.verdict)
    clusters = summary["n_clusters"]
    images = summary.get("n_images")
    facts = [] if images is None else [(number(images), "images" if images != 1 else "image")]
    facts += [
        (number(summary["n_markings"]), "markings" if summary["n_markings"] != 1 else "marking"),
        (number(summary["n_experts"]), "experts" if summary["n_experts"] != 1 else "expert"),
        (
            number(clusters["mean"], 1),
            f"different objects marked (95 %: {interval(clusters['lo'], clusters['hi'])})",
        ),
        (
            number(total["mean"], 1),
            f"of them by ≥ {contents.min_experts} experts "
            f"(95 %: {interval(total['lo'], total['hi'])})",
        ),
    ]
    if "n_objects" in summary:
        real, missed = summary["n_objects"], summary["n_missed"]
        facts[2:] = [
            (
                number(real["mean"], 1),
                f"real objects seen (95 %: {interval(real['lo'], real['hi'])})",
            ),
            (
                number(missed["mean"], 1),
                f"missed by all (95 %: {interval(missed['lo'], missed['hi'])})",
            ),
        ]
    tiles = [tag("div", tag("b", value), tag("span", words)) for value, words in facts]
    return join(
        [
            tag("div", *tiles, class_="facts"),
            paragraph(
                "Was the run long enough? ",
                tag("strong", sentence) if link is None else tag("a", sentence, href=link),
                class_=f"verdict {kind}",
            ),
        ]
    )

"""Sections on the run itself: what was asked, was it long enough, settings and provenance."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from dfcrp import __version__
from dfcrp.errors import DfcrpError, shown
from dfcrp.first_look.finding import LOOKED
from dfcrp.items.site import column_words
from dfcrp.markup import (
    Column,
    Markup,
    Section,
    bullets,
    counted,
    details,
    estimate,
    estimate_of,
    join,
    listed,
    number,
    paragraph,
    plural,
    significant,
    table,
    tag,
    with_interval,
)
from dfcrp.report.contents import Contents
from dfcrp.runs.folder import read_provenance
from dfcrp.settings.config import Config, lengths_asked, to_toml
from dfcrp.settings.consensus import in_short
from dfcrp.summaries.catalogue import listed_words
from dfcrp.summaries.convergence import Diagnostic, Limits, Verdict, good
from dfcrp.values import Json

if TYPE_CHECKING:
    from dfcrp.posterior.posterior import Posterior

#: What a table says of a check, and the class of the words.
LEVELS = {"good": "none that matters", "minor": "small", "serious": "matters"}
KINDS = {"good": "good", "minor": "minor", "serious": "bad"}
SAMPLERS = {
    "exact": "the exact sampler",
    "paper": "the sampler of the paper",
    "unmodified": "the paper's sampler without its change to the order of arrival",
}


def asked(contents: Contents) -> Section:
    """Data, filters and settings in plain words."""
    items = contents.posterior.items
    words = [*data_words(contents), *model_words(contents), *run_words(contents)]
    experts = details(
        f"The {counted(len(items.experts), 'expert')}", paragraph(listed(items.experts, 200))
    )
    figure = contents.figure(
        "items_map",
        f"Map of all {contents.nouns}",
        f"All {len(items):,} {contents.nouns}. Lines darken where experts agree.",
    )
    return Section("asked", "Data and settings", join([bullets(words), experts, figure]))


#: Notes on a file that the page shows.
MOST_NOTES = 10


def data_words(contents: Contents) -> list[str]:
    """The data and what was left out of them."""
    items = contents.posterior.items
    words = contents.posterior.likelihood.data_words(items)
    for source in items.sources:
        left_out = source.rows - source.kept
        text = f"Read from {source.file}: {counted(source.rows, 'row')}"
        if left_out:
            text += f"; the filters left out {left_out:,} of them"
        words.append(text + ".")
        words += [f"{source.file}: {note}." for note in source.notes[:MOST_NOTES]]
        if len(source.notes) > MOST_NOTES:
            words.append(f"... and {len(source.notes) - MOST_NOTES:,} notes in provenance.json.")
    words += [*column_words(items.sources), *(f"{note}." for note in items.notes)]
    if items.images:
        word = contents.image_word if len(items.images) == 1 else plural(contents.image_word)
        words.append(f"{word.capitalize()}: {listed(items.images)}.")
    return words


def model_words(contents: Contents) -> list[str]:
    """The model and what counts as what."""
    posterior, config = contents.posterior, contents.posterior.config
    summary, verb = config.summary, contents.verb
    words = [
        posterior.prior.sentence.format(items=contents.nouns),
        *posterior.prior.learned_words(contents.summary, contents.nouns),
        *_reach_words(contents),
        *posterior.likelihood.law_words(posterior),
    ]
    if config.run.preset:
        words.append(f"Hyperparameters: those of the paper's data set “{config.run.preset}”.")
    if contents.by_threshold:
        words.append(
            f"An object counts as agreed on (consensus) if {contents.consensus_words} {verb} it."
        )
    if posterior.size_classes.edges:
        classes = posterior.size_classes
        unit = f" {classes.unit}" if classes.unit else ""
        edges = " and ".join(f"{edge:g}" for edge in classes.edges) + unit
        how = (
            "the object's own diameter in the draw"
            if summary.diameter == "mu"
            else "the mean diameter of its members"
        )
        words.append(
            f"Size classes {listed(summary.class_names)} are separated at {edges}. The class of "
            f"an object is that of {how}."
        )
    return words


def _reach_words(contents: Contents) -> list[str]:
    """Which items could share a cluster at all."""
    posterior = contents.posterior
    pairs = posterior.items.candidates
    if pairs is None:
        return list(posterior.likelihood.reach_words(posterior.items, posterior.config))
    given = counted(len(pairs), "pair")
    return [f"Only {contents.nouns} of the {given} that were given could share a cluster."]


def run_words(contents: Contents) -> list[str]:
    """How long the run was, and by which sampler."""
    posterior, record = contents.posterior, contents.posterior.record
    draws = posterior.draws
    every = "" if record.thin == 1 else f", and every {record.thin}th of the others was kept"
    words = [
        f"{counted(draws.n_chains, 'chain')} of {counted(record.scans, 'scan')} by "
        f"{SAMPLERS.get(posterior.config.run.sampler, posterior.config.run.sampler)}; the first "
        f"{record.burn_in:,} of each were dropped as burn-in{every}: "
        f"{counted(draws.n_chains * draws.n_draws, 'draw')} in {_duration(record.seconds)}."
    ]
    if record.stopped_early:
        words.append("The run was stopped before it reached its full length.")
    return words


def _duration(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    if seconds < 7_200:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"


def verdict_words(verdict: Verdict) -> tuple[str, str]:
    """(kind, sentence): "good", "bad" or "unknown", and the verdict in a few words."""
    if verdict.ok and not verdict.merging:
        return "unknown", "There is nothing to merge, and so no verdict."
    if verdict.ok and verdict.parameters_ok:
        return "good", "Yes, the run was long enough."
    if verdict.ok:
        return "good", "Yes, for the answers on this page; not yet for the model parameters."
    if verdict.max_rhat != verdict.max_rhat:
        return "unknown", "Unknown: there are too few draws to judge."
    return "bad", "Not yet: the run should be longer."


def fit_words(verdict: Verdict) -> tuple[str, str] | None:
    """(kind, sentence) on the fit of the model; None if nothing could be checked."""
    if verdict.fit is None or not verdict.fit.checks:
        return None
    return ("good" if verdict.fits else "bad"), verdict.fit.sentence


def model_fit(contents: Contents) -> Section | None:
    """Whether the model fits: the outcome, what is off, and every check."""
    found = contents.posterior.model_fit
    said = fit_words(contents.posterior.verdict)
    if said is None:
        return None
    kind, sentence = said
    columns = [
        Column("check", number=False),
        Column("observed"),
        with_interval("predicted"),
        Column("size", note="how large the difference is: a ratio, or a difference in shares"),
        Column("difference", number=False),
    ]
    rows = [
        [
            check.check,
            significant(check.observed, 3),
            *estimate(check.predicted, check.lo, check.hi).cells,
            significant(check.size, 2),
            tag("span", LEVELS[check.level], class_=KINDS[check.level]),
        ]
        for check in found.checks
    ]
    caption = (
        "What the data show beside what the fitted model predicts for new data. A difference "
        "matters if it is beyond chance and large enough to change what you read here."
    )
    parts = [
        paragraph(tag("strong", sentence), class_=f"verdict {kind}"),
        bullets(found.said) if found.said else Markup(""),
        table(columns, rows, caption),
    ]
    return Section("model-fit", "Does the model fit?", join(parts))


def long_enough(contents: Contents) -> Section:
    """The verdict first, then the numbers and plots it rests on."""
    verdict = contents.posterior.verdict
    kind, sentence = verdict_words(verdict)
    limits = Limits()
    parts = [
        paragraph(tag("strong", sentence), class_=f"verdict {kind}"),
        bullets(verdict.advice),
        first_look_words(contents.posterior),
        diagnostic_table(verdict.diagnostics, limits, "The answers on this page"),
        _pair_words(contents, limits),
        parameter_table(verdict, limits, "The model parameters"),
        contents.figure(
            "traces",
            "Trace and rank plots",
            "Left: traces of the chains, which should look alike and have no trend. Right: ranks "
            "of each chain's draws among all draws; lines near 1 mean that the chains agree. "
            "Answers come first, then the model parameters.",
        ),
        _tallies(contents),
    ]
    return Section("long-enough", "Was the run long enough?", join(parts))


def first_look_words(posterior: Posterior) -> Markup:
    """What looked like a mistake in the data before the run; nothing if nothing did."""
    found = [finding.sentence for finding in posterior.first_look]
    return join([paragraph(LOOKED), bullets(found)]) if found else Markup("")


def diagnostic_table(found: Sequence[Diagnostic], limits: Limits, what: str) -> Markup:
    """R-hat and effective sample sizes, quantity by quantity."""
    return table(
        [
            Column("quantity", number=False),
            Column("R-hat", note="1 when the chains agree"),
            Column("ESS, bulk", note="effective sample size in the middle"),
            Column("ESS, tail", note="effective sample size in the tails"),
            Column("good?", number=False),
        ],
        [_diagnostic_row(d, limits) for d in found],
        f"{what}: R-hat should be at most {limits.rhat:g} and the effective sample sizes (ESS) at "
        f"least {limits.ess:g}.",
    )


def parameter_table(verdict: Verdict, limits: Limits, what: str) -> Markup:
    """The same of what is behind the answers, if anything is."""
    found = verdict.parameters
    return diagnostic_table(found, limits, what) if found else Markup("")


def _diagnostic_row(found: Diagnostic, limits: Limits) -> list[object]:
    reached = good(found, limits)
    return [
        found.name,
        number(found.rhat, 3),
        number(found.ess_bulk),
        number(found.ess_tail),
        tag("span", "yes" if reached else "no", class_="good" if reached else "bad"),
    ]


def _pair_words(contents: Contents, limits: Limits) -> Markup:
    verdict = contents.posterior.verdict
    if contents.posterior.draws.n_chains < 2:
        return paragraph("One chain cannot show whether chains agree on pairs.")
    allowed = f" ({verdict.pairs_allowed:,} may)" if verdict.pairs_allowed else ""
    return paragraph(
        f"Pairs of {contents.nouns}: the largest difference between two chains in how often a pair "
        f"shares a cluster is {number(verdict.max_pair_disagreement, 2)}; "
        f"{_pairs_differ(verdict.pairs_disagreeing)} by more than {limits.pair_difference:g}"
        f"{allowed}. The slowest pair has an R-hat of {number(verdict.max_pair_rhat, 2)}."
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
        ("written", "draws finished"),
    ):
        if name in written:
            rows.append([words, written[name]])
    rows.append(["seed", posterior.config.run.seed])
    rows.append([f"{contents.nouns}, SHA-256", tag("code", posterior.items.digest)])
    for source in posterior.items.sources:
        rows.append([f"{source.file}, SHA-256", tag("code", source.sha256)])
    columns = [Column("what", number=False), Column("value", number=False)]
    settings = join(
        [
            _edited(posterior.config, written),
            details("All settings (TOML)", tag("pre", to_toml(posterior.config))),
        ]
    )
    record = dataclasses.asdict(posterior.record)
    record.pop("tallies")
    run = details("The run as recorded", tag("pre", json.dumps(record, indent=1)))
    return Section(
        "provenance", "Settings and provenance", join([table(columns, rows), settings, run])
    )


def _edited(config: Config, written: Mapping[str, object]) -> Markup:
    """Of what changes no draw but how many there are, what is not as it was for these draws."""
    asked, begun = lengths_asked(config), written.get("lengths")
    if not isinstance(begun, dict):
        return Markup("")
    differing = [
        f"{name} is {shown(asked[name])}, it was {shown(begun[name])}"
        for name in sorted({*asked} & {*begun})
        if asked[name] != begun[name]
    ]
    if not differing:
        return Markup("")
    return paragraph(f"config.toml was changed since these draws: {'; '.join(differing)}.")


def _written(folder: Path) -> Json:
    """The run folder's provenance, as far as it can be read; the page does without it."""
    try:
        return read_provenance(folder)
    except DfcrpError:
        return {}


def headline(contents: Contents, link: str | None = "#long-enough") -> Markup:
    """The few numbers that most readers came for; ``link`` leads to more on the verdict."""
    verdict = contents.posterior.verdict
    kind, sentence = verdict_words(verdict)
    least = contents.posterior.config.summary.min_experts
    tiles = [
        tag("div", tag("b", value), *(tag("span", line) for line in lines))
        for value, *lines in _facts(contents)
    ]
    return join(
        [
            tag("div", *tiles, class_="facts"),
            paragraph(
                listed_words(contents.summary, least, contents.noun),
                class_="listed",
            ),
            paragraph(
                "Was the run long enough? ",
                tag("strong", sentence) if link is None else tag("a", sentence, href=link),
                class_=f"verdict {kind}",
            ),
            _fit_headline(verdict, None if link is None else "#model-fit"),
        ]
    )


def _fit_headline(verdict: Verdict, link: str | None) -> Markup:
    """Whether the model fits, beside whether the run was long enough."""
    said = fit_words(verdict)
    if said is None:
        return Markup("")
    kind, sentence = said
    words = tag("strong", sentence) if link is None else tag("a", sentence, href=link)
    return paragraph("Does the model fit? ", words, class_=f"verdict {kind}")


def _facts(contents: Contents) -> list[tuple[str, ...]]:
    """Numbers, what they are, and their intervals, if they have one."""
    summary, least = contents.summary, contents.posterior.config.summary.min_experts
    facts: list[tuple[str, ...]] = []
    for name, noun in (
        ("n_images", contents.image_word),
        ("n_markings", contents.noun),
        ("n_experts", "expert"),
    ):
        if name in summary:
            value, words = counted(summary[name], noun).split(" ", 1)
            facts.append((value, words))
    if "n_images" in summary:
        looked_at = len(contents.posterior.items.looks.images)
        if looked_at > summary["n_images"]:
            value, words = facts[0]
            facts[0] = value, f"{words} with {contents.nouns}", f"of {looked_at:,} looked at"
    if contents.knows_reality:
        shown = {
            "real objects seen": summary["n_objects"],
            "missed by everyone": summary["n_missed"],
        }
    else:
        total = next(
            row
            for row in summary["consensus"]
            if row["min_experts"] == least and row["size_class"] == "all"
        )
        shown = {
            f"different objects {contents.verb}": summary["n_clusters"],
            f"of them by {in_short(least)}": total,
        }
    facts += [
        (one.mean, words, f"(95 %: {one.interval})")
        for words, one in ((words, estimate_of(found)) for words, found in shown.items())
    ]
    age = contents.ages.get("with_counting_error")
    if age and age["mean"] is not None:
        shown_age = estimate_of(age)
        facts.append((f"{shown_age.mean} Ga", "model age", f"(95 %: {shown_age.interval})"))
    return facts

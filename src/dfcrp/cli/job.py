"""One run from items to a finished folder, as the user sees it; its summary in plain words."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dfcrp.errors import DfcrpError
from dfcrp.fitting.progress import duration
from dfcrp.markup import counted, estimate_of, plural
from dfcrp.settings.config import Config, ImageSettings

if TYPE_CHECKING:
    from dfcrp.items.items import Items
    from dfcrp.posterior.posterior import Posterior
    from dfcrp.runs.parts import Watch
    from dfcrp.settings.consensus import Least
    from dfcrp.values import Array, Json


def run_job(
    items: Items,
    config: Config,
    out: Path,
    *,
    quiet: bool,
    dask: str | None = None,
    report: bool = True,
    figures: Sequence[str] = ("svg",),
) -> None:
    """Fit, showing progress; then print the summary and make the report."""
    from dfcrp.fitting.api import begin_run

    if not quiet:
        _introduce(items, config)
    show_work(
        lambda watch: begin_run(items, config, watch, out, dask),
        items,
        out,
        config,
        quiet=quiet,
        report=report,
        figures=figures,
    )


def show_work(
    work: Callable[[Watch], Posterior],
    items: Items,
    out: Path,
    config: Config,
    *,
    quiet: bool,
    report: bool,
    begun: Sequence[int] = (),
    figures: Sequence[str] = ("svg",),
) -> None:
    """Do the work, showing progress; then print the summary and make the report.

    ``begun`` are the scans that each chain has behind it already.
    """
    from dfcrp.fitting.progress import (
        describe_look,
        expected_scans,
        make_display,
        make_tracker,
    )
    from dfcrp.runs.parts import Watch

    tracker = make_tracker(items, config, begun)
    display = make_display(tracker, quiet=quiet)

    def on_look(posterior: Posterior) -> None:
        if config.run.scans is None:
            display.say(describe_look(posterior))
            display.expect(expected_scans(posterior))

    interrupted = False

    def on_stop() -> None:
        nonlocal interrupted
        interrupted = True
        display.say("Stopping; what is drawn so far will be kept ...")

    try:
        with display:
            posterior = work(Watch(display.advance, on_look, on_stop, display.begin, display.stage))
    except KeyboardInterrupt:
        raise DfcrpError(_what_is_left(out)) from None
    if interrupted:
        click.echo(_how_to_go_on(posterior, out))
        return
    if not quiet:
        click.echo(f"\n{describe(posterior)}\n")
    if report:
        make_report(posterior, out, quiet=quiet, figures=figures)
    if not quiet:
        click.echo(list_files(out))
        if posterior.record.stopped_early:
            click.echo(
                "The run was stopped early; the files hold what was drawn until then. "
                f"`dfcrp resume {out}` continues it."
            )


def _how_to_go_on(posterior: Posterior, out: Path) -> str:
    """After Ctrl-C: tables can take longer than whoever pressed it wants to wait."""
    return (
        f"Stopped early, after {posterior.record.scans:,} scans; what was drawn is saved.\n"
        f"`dfcrp report {out}` makes tables and report of it, `dfcrp resume {out}` continues."
    )


def _what_is_left(out: Path) -> str:
    """After a second Ctrl-C, or one that came while the tables were being made."""
    if (out / "provenance.json").exists():
        return f"stopped at once; `dfcrp resume {out}` continues from the last checkpoint"
    return f"stopped before the run began; nothing is left of it in {out}"


def make_report(
    posterior: Posterior,
    folder: Path,
    *,
    quiet: bool,
    pages: int | None = None,
    figures: Sequence[str] = ("svg",),
) -> None:
    """Figures and page, with DBSCAN on the same items for comparison where they have a size.

    Of many images an overview, and pages of the first ``pages`` of them.
    """
    from dfcrp.report import write_overview, write_report

    if not quiet:
        click.echo("Drawing the figures and the report ...", err=True)
    if posterior.many is not None:
        write_overview(posterior, folder, pages=pages)
    else:
        dbscan = _dbscan(posterior)
        write_report(posterior, folder, dbscan=dbscan, figures=figures, helpers=None)


def make_image_report(
    posterior: Posterior,
    folder: Path,
    name: str,
    *,
    picture: ImageSettings,
    quiet: bool,
    figures: Sequence[str] = ("svg",),
) -> None:
    """Figures and page of one image of many."""
    from dfcrp.plots.flat import flat_map_or_none
    from dfcrp.plots.underlay import configured_underlay, frame_of, places_of
    from dfcrp.report import write_image

    if not quiet:
        click.echo(f"Drawing the figures and the page of {name} ...", err=True)
    part = posterior[name]
    placed = flat_map_or_none(part.items)
    places = places_of(part.items)
    framed = frame_of(picture, part.items, name)
    underlay = None if placed is None else configured_underlay(picture, placed.y, places, framed)
    page = write_image(
        posterior,
        folder,
        name,
        image=underlay,
        dbscan=_dbscan(part),
        figures=figures,
        helpers=None,
    )
    if not quiet:
        click.echo(f"page: {page}")


def _dbscan(posterior: Posterior) -> dict[int, Array] | None:
    """R14's answer for every number of experts that the tables ask for; it is for circles."""
    from dfcrp.baselines.without_model import dbscan_r14_each

    if posterior.diameters is None:
        return None
    asked = (*posterior.config.summary.thresholds, posterior.min_experts)
    return dbscan_r14_each(posterior.items, asked)


def _introduce(items: Items, config: Config) -> None:
    """Say what goes in, and what will not come out as the user may expect."""
    from dfcrp.items.site import column_words, plain_notes
    from dfcrp.likelihoods.registry import likelihood_named
    from dfcrp.markup import counted
    from dfcrp.priors.registry import prior_named
    from dfcrp.runs.parts import experts_by_place

    run, n_experts = config.run, max(experts_by_place(items))
    for line in (*column_words(items.sources), *plain_notes(items.notes)):
        click.echo(line, err=True)
    removed = items.rows_filtered_out
    if removed:
        click.echo(
            f"The filters removed {removed:,} of {items.rows_read:,} rows; "
            f"{len(items):,} are left.",
            err=True,
        )
    how_long = "until the verdict is good" if run.scans is None else f"{run.scans:,} scans"
    images, likelihood = len(items.images), likelihood_named(run.likelihood)
    word = likelihood.image_word(items)
    where = f" on {counted(images, word)}, {run.images}" if images > 1 else ""
    click.echo(
        f"Fitting {counted(len(items), likelihood.noun)} by "
        f"{counted(len(items.experts), 'expert')}{where}: "
        f"{counted(run.chains, 'chain')}, {how_long}, seed {run.seed}.",
        err=True,
    )
    looked = experts_by_place(items)
    said = _consensus_note(config.summary.min_experts, n_experts, images, looked, word)
    if said:
        click.echo(said, err=True)
    if prior_named(run.prior).knows_reality and items.looked is None and images > 1:
        click.echo(
            f"Note: nothing says who looked at which {word}, so an expert counts as having looked "
            "where they have an item; whoever looked and found nothing is not counted, and "
            "sensitivities come out too high. Say who looked with --looked FILE.",
            err=True,
        )


def _consensus_note(
    wanted: Least, looked: int, images: int, each: Sequence[int] = (), word: str = "image"
) -> str:
    """What makes a consensus, unless it is as usual; ``looked`` at most at one image.

    ``each`` has the experts who looked at each image, or part of it; ``word`` is what an image is
    called.
    """
    from dfcrp.settings.consensus import USUAL, in_words, why_share

    several = images > 1
    if isinstance(wanted, str):
        words = f"{in_words(wanted)} at its {word}" if several else in_words(wanted, looked)
        why = why_share(wanted, each, word)
        why = f", as {why}" if why else ""
        return f"Consensus on an object means {words}{why} (--min-experts changes that)."
    if 1 < looked < wanted:
        return (
            f"Note: consensus means at least {wanted} experts, but there are {looked}"
            f"{f' on any one {word}' * several}; p_consensus will be 0. Choose fewer with "
            "--min-experts."
        )
    if 1 < looked < USUAL:
        return (
            f"Consensus means at least {wanted} of the {looked} experts "
            "(--min-experts changes that)."
        )
    return ""


#: Sentences are folded to this width.
LINE = 88
#: What the files of a run folder are for, in the order in which one would open them.
FILES = {
    "report.html": "everything on one page, for a browser",
    "catalogue.csv": "one row per object, with uncertainty",
    "members.csv": "one row per item: its object, and how sure that is",
    "links.csv": "one row per pair of records that may be one object, with its probability",
    "experts.csv": "one row per expert",
    "images.csv": "one row per image: its counts, and whether its draws suffice",
    "size_frequency.csv": "size-frequency distributions, with each expert's own",
    "summary.json": "these numbers, for programs",
    "config.toml": "all settings, as used",
}


def describe(posterior: Posterior) -> str:
    """Counts with their intervals, what was learned, and the verdict; of one image or many."""
    found = posterior.summary()
    parts = [
        [_first_line(posterior, found)],
        _counts(posterior, found),
        _learned(posterior, found),
        _doubles(posterior, found),
        _verdict(posterior),
        _first_look(posterior),
        _fit(posterior),
    ]
    return "\n\n".join("\n".join(lines) for lines in parts if lines)


def list_files(folder: Path) -> str:
    """Where the files are and what each is for."""
    found = [(name, use) for name, use in FILES.items() if (folder / name).exists()]
    return "\n".join([f"Files in {folder}/", *(f"  {name:<19} {use}" for name, use in found)])


def _first_line(posterior: Posterior, found: Json) -> str:
    record, items, run = posterior.record, posterior.items, posterior.config.run
    thinned = f", every {run.thin}th kept" if run.thin > 1 else ""
    images = found.get("n_images")
    word = posterior.likelihood.image_word(items)
    where = "" if images is None else f" on {counted(images, word)}"
    most = "up to " if images is not None and run.scans is None else ""
    return (
        f"{counted(len(items), posterior.likelihood.noun)} by "
        f"{counted(len(items.experts), 'expert')}{where}; "
        f"{counted(run.chains, 'chain')} of {most}{record.scans:,} scans "
        f"(the first {record.burn_in:,} left out{thinned}); {duration(record.seconds)}"
    )


def _learned(posterior: Posterior, found: Json) -> list[str]:
    """What was learned of the scatter of items, of experts, and by the prior, in sentences."""
    tolerances, bias = posterior.tolerances, posterior.expert_bias
    sentences = [] if tolerances is None else posterior.likelihood.learned_words(tolerances)
    if bias is not None:
        sentences = [*sentences, bias.in_words(posterior.items.experts)]
    nouns = plural(posterior.likelihood.noun)
    prior = posterior.prior
    sentences = [*sentences, *prior.learned_words(found, nouns), *prior.last_words(found)]
    return [textwrap.fill(sentence, LINE) for sentence in sentences]


def _doubles(posterior: Posterior, found: Json) -> list[str]:
    """Whether an expert may have listed an object twice."""
    count, likelihood = found.get("suspected_doubles", 0), posterior.likelihood
    if not count:
        return []
    sentence = (
        f"Possible duplicates: {counted(count, likelihood.noun)} as close to an object as its own "
        f"{plural(likelihood.noun)}, by an expert who has {likelihood.verb} it already. They count "
        "as objects of their own; the report lists them."
    )
    return textwrap.wrap(sentence, LINE)


def _counts(posterior: Posterior, found: Json) -> list[str]:
    """A table: how many objects are real, and how many experts share; then the catalogue's."""
    from dfcrp.posterior.tables import possible_counts
    from dfcrp.settings.consensus import or_more
    from dfcrp.summaries.catalogue import listed_words

    counts = possible_counts(posterior)
    rows = []
    if posterior.prior.knows_reality:
        rows = [
            ("real, seen by somebody", found["n_objects"]),
            ("missed by everyone (estimate)", found["n_missed"]),
            ("false marks", found["n_false_marks"]),
        ]
    rows.append(("total clusters", found["n_clusters"]))
    rows += [
        (f"by {or_more(row['min_experts'])}", row) for row in counts if row["size_class"] == "all"
    ]
    head = f"Objects {posterior.likelihood.verb}"
    if posterior.prior.knows_reality:
        head = "Objects and false marks"
    shown = [estimate_of(row) for _, row in rows]
    # Hundreds of thousands still stand apart from the words before them.
    wide = max(9, *(len(one.mean) + 2 for one in shown))
    lines = [f"{head:<33}{'mean':>{wide}}   95 % interval"]
    lines += [
        f"  {name:<31}{one.mean:>{wide}}   {one.interval}"
        for (name, _), one in zip(rows, shown, strict=True)
    ]
    min_experts = posterior.config.summary.min_experts
    words = listed_words(found, min_experts, posterior.likelihood.noun)
    return [*lines, "", *textwrap.wrap(words, LINE)]


def _verdict(posterior: Posterior) -> list[str]:
    verdict = posterior.verdict
    opening = f"Verdict: {verdict.opening}."
    if posterior.record.stopped_early:
        opening = f"Stopped early. {opening}"
    if len(verdict.advice) == 1 and verdict.fits:
        return [textwrap.fill(f"{opening} {verdict.advice[0]}", LINE)]
    return [textwrap.fill(opening, LINE), *(_bullet(sentence) for sentence in verdict.advice)]


def _fit(posterior: Posterior) -> list[str]:
    """Whether the model fits: the outcome, and what is off."""
    fit = posterior.model_fit
    if not fit.checks:
        return []
    outcome = textwrap.fill(f"Does the model fit? {fit.outcome}", LINE)
    return [outcome, *(_bullet(sentence) for sentence in fit.said)]


def _first_look(posterior: Posterior) -> list[str]:
    """What the run warned of before it began, beside the verdict, which knows nothing of it."""
    from dfcrp.first_look.finding import LOOKED

    found = posterior.first_look
    lines = [_bullet(finding.sentence) for finding in found]
    return [textwrap.fill(LOOKED, LINE), *lines] if found else []


def _bullet(sentence: str) -> str:
    return textwrap.fill(sentence, LINE, initial_indent="- ", subsequent_indent="  ")

"""One run from markings to a finished folder, as the user sees it: fit, resume and demo."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dfcrp.errors import DfcrpError
from dfcrp.settings.config import Config, ImageSettings, SummarySettings

if TYPE_CHECKING:
    from dfcrp.items.items import Items
    from dfcrp.posterior.posterior import Posterior
    from dfcrp.runs.part_run import Watch


def run_job(
    markings: Items,
    out: Path,
    *,
    config: Path | None,
    settings: Mapping[str, Any],
    quiet: bool,
    dask: str | None = None,
    report: bool = True,
) -> None:
    """Fit, showing progress; then print the summary and make the report."""
    from dfcrp.fitting import fit
    from dfcrp.runs.parts import most_experts
    from dfcrp.settings.config import resolve

    settled = resolve(config, dict(settings), most_experts(markings))
    if not quiet:
        _introduce(markings, settled)

    def work(watch: Watch) -> Posterior:
        return fit(markings, config=settled, out=out, dask=dask, **vars(watch))

    show_work(work, markings, out, settled, quiet=quiet, report=report)


def show_work(
    work: Callable[[Watch], Posterior],
    markings: Items,
    out: Path,
    config: Config,
    *,
    quiet: bool,
    report: bool,
    begun: Sequence[int] = (),
) -> None:
    """Do the work, showing progress; then print the summary and make the report.

    ``begun`` are the scans that each chain has behind it already.
    """
    from dfcrp.cli.outcome import describe, list_files
    from dfcrp.fitting.progress import describe_look, make_display, make_tracker
    from dfcrp.posterior.warm import warm_up_beside
    from dfcrp.runs.part_run import Watch

    warm_up_beside()
    tracker = make_tracker(markings, config, begun)
    display = make_display(tracker, quiet=quiet)

    def on_look(posterior: Posterior) -> None:
        if config.run.scans is None:
            display.say(describe_look(posterior))

    def on_stop() -> None:
        display.say("Stopping; what is drawn so far will be kept ...")

    try:
        with display:
            posterior = work(Watch(display.advance, on_look, on_stop))
    except KeyboardInterrupt:
        raise DfcrpError(_what_is_left(out)) from None
    if not quiet:
        click.echo(f"\n{describe(posterior)}\n")
    if report:
        make_report(posterior, out, quiet=quiet)
    if not quiet:
        click.echo(list_files(out))
        if posterior.record.stopped_early:
            click.echo(
                "The run was stopped early; the files hold what was drawn until then. "
                f"`dfcrp resume {out}` continues it."
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
        write_report(posterior, folder, dbscan=_dbscan(posterior))


def make_image_report(
    posterior: Posterior, folder: Path, name: str, *, picture: ImageSettings, quiet: bool
) -> None:
    """Figures and page of one image of many."""
    from dfcrp.plots.flat import flat_map_or_none
    from dfcrp.plots.underlay import configured_underlay
    from dfcrp.report import write_image

    if not quiet:
        click.echo(f"Drawing the figures and the page of {name} ...", err=True)
    part = posterior[name]
    placed = flat_map_or_none(part.items)
    underlay = None if placed is None else configured_underlay(picture, placed.y)
    page = write_image(posterior, folder, name, image=underlay, dbscan=_dbscan(part))
    if not quiet:
        click.echo(f"page: {page}")


def _dbscan(posterior: Posterior) -> dict[int, Any] | None:
    """R14's answer for every number of experts that the tables ask for; it is for circles."""
    from dfcrp.baselines import dbscan_r14

    if posterior.diameters is None:
        return None
    asked = posterior.config.summary
    return {
        experts: dbscan_r14(posterior.items, min_points=experts)
        for experts in {*asked.thresholds, asked.min_experts}
    }


def _introduce(markings: Items, config: Config) -> None:
    """Say what goes in, and what will not come out as the user may expect."""
    from dfcrp.likelihoods.registry import likelihood_named
    from dfcrp.markup import counted
    from dfcrp.runs.parts import most_experts

    run, n_experts = config.run, most_experts(markings)
    removed = markings.rows_filtered_out
    if removed:
        click.echo(
            f"The filters removed {removed:,} of {markings.rows_read:,} rows; "
            f"{len(markings):,} are left.",
            err=True,
        )
    how_long = "until the verdict is good" if run.scans is None else f"{run.scans:,} scans"
    images = len(markings.images)
    where = f" on {images:,} images, {run.images}" if images > 1 else ""
    click.echo(
        f"Fitting {counted(len(markings), likelihood_named(run.likelihood).noun)} by "
        f"{counted(len(markings.experts), 'expert')}{where}: "
        f"{counted(run.chains, 'chain')}, {how_long}, seed {run.seed}.",
        err=True,
    )
    wanted = config.summary.min_experts
    if 1 < n_experts < wanted:
        click.echo(
            f"Note: consensus means at least {wanted} experts, but there are {n_experts}"
            f"{' on any one image' * (images > 1)}; "
            "p_consensus will be 0. Choose fewer with --min-experts.",
            err=True,
        )
    elif 1 < n_experts < SummarySettings.min_experts:
        click.echo(
            f"Consensus means at least {wanted} of the {n_experts} experts "
            "(--min-experts changes that).",
            err=True,
        )

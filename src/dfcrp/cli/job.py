"""One run from markings to a finished folder, as the user sees it: ``fit`` and ``demo``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dfcrp.config import Config
from dfcrp.errors import DfcrpError

if TYPE_CHECKING:
    from dfcrp.markings import Markings
    from dfcrp.posterior.posterior import Posterior


def run_job(
    markings: Markings,
    out: Path,
    *,
    config: Path | None,
    settings: Mapping[str, Any],
    quiet: bool,
    report: bool = True,
) -> None:
    """Fit, showing progress; then print the summary and make the report."""
    from dfcrp.cli.outcome import describe, list_files
    from dfcrp.cli.progress import Tracker, describe_look, make_display
    from dfcrp.fitting import fit, settle
    from dfcrp.posterior.warm import warm_up_beside

    warm_up_beside()
    settled = settle(config, dict(settings))
    _introduce(markings, settled, quiet=quiet)
    display = make_display(Tracker(markings.families, settled), quiet=quiet)

    def on_look(posterior: Posterior) -> None:
        if settled.run.scans is None:
            display.say(describe_look(posterior))

    def on_stop() -> None:
        display.say("Stopping; what is drawn so far will be kept ...")

    try:
        with display:
            posterior = fit(
                markings,
                config=settled,
                out=out,
                progress=display.advance,
                on_look=on_look,
                on_stop=on_stop,
            )
    except KeyboardInterrupt:
        raise DfcrpError(_what_is_left(out)) from None
    if not quiet:
        click.echo(f"\n{describe(posterior)}\n")
    if report:
        make_report(posterior, out, quiet=quiet)
    if not quiet:
        click.echo(list_files(out))
        if posterior.record.stopped_early:
            click.echo("The run was stopped early; the files hold what was drawn until then.")


def _what_is_left(out: Path) -> str:
    """After a second Ctrl-C, or one that came while the tables were being made."""
    if (out / "provenance.json").exists():
        return f"stopped before the tables were made; `dfcrp report {out}` makes them"
    return f"stopped at once; {out} is unfinished"


def make_report(
    posterior: Posterior, folder: Path, *, image: Path | None = None, quiet: bool
) -> None:
    """Figures and page."""
    from dfcrp.report import write_report

    if not quiet:
        click.echo("Drawing the figures and the report ...", err=True)
    write_report(posterior, folder, image=image)


def _introduce(markings: Markings, config: Config, *, quiet: bool) -> None:
    """Say what goes in, and what will not come out as the user may expect."""
    from dfcrp.cli.progress import counted

    if quiet:
        return
    run, n_experts = config.run, len(markings.experts)
    removed = markings.rows_filtered_out
    if removed:
        click.echo(
            f"The filters removed {removed:,} of {markings.rows_read:,} rows; "
            f"{len(markings):,} are left.",
            err=True,
        )
    how_long = "until the verdict is good" if run.scans is None else f"{run.scans:,} scans"
    click.echo(
        f"Fitting {counted(len(markings), 'marking')} by {counted(n_experts, 'expert')}: "
        f"{counted(run.chains, 'chain')}, {how_long}, seed {run.seed}.",
        err=True,
    )
    if 1 < n_experts < config.summary.min_experts:
        click.echo(
            f"Note: consensus means at least {config.summary.min_experts} experts, but there are "
            f"{n_experts}; p_consensus will be 0. Choose fewer with --min-experts.",
            err=True,
        )

"""``dfcrp resume``: continue a run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from dfcrp.cli.ground import figures_option, likelihood_option

if TYPE_CHECKING:
    from dfcrp.fitting.api import FoundRun


@click.command(
    name="resume", options_metavar="[OPTIONS]", short_help="Continue a run, or extend it."
)
@click.argument("run", type=click.Path(path_type=Path), metavar="RUN")
@click.option(
    "--scans",
    type=int,
    help="Total scans of each chain, including those already done.  [default: as in the run]",
)
@click.option(
    "--max-scans",
    type=int,
    help="For a run without --scans: the most scans to run.  [default: as in the run]",
)
@click.option(
    "--max-minutes",
    type=float,
    help="Stop after this many minutes from now and keep the draws.",
)
@click.option("--workers", type=int, help="Threads.  [default: as in the run]")
@click.option(
    "--dask",
    metavar="ADDRESS|FILE",
    help="Run the chains on this Dask cluster, as in `dfcrp fit`.",
)
@likelihood_option
@figures_option
@click.option("--no-report", is_flag=True, help="Write the tables only, no figures and no page.")
@click.option("--quiet", is_flag=True, help="Print warnings and errors only.")
def command(
    run: Path,
    no_report: bool,
    quiet: bool,
    dask: str | None,
    likelihood: str | None,
    figures: tuple[str, ...],
    **changes: object,
) -> None:
    """Continue the run in the folder RUN, or extend it.

    Works after Ctrl-C, a power cut, a full disk or a kill at any moment. The draws are the same as
    in a run that was never stopped. A finished run continues only if you ask for more scans.
    """
    from dfcrp.cli.job import show_work
    from dfcrp.fitting.api import continue_run, find_run

    found = find_run(run, likelihood, **changes)
    if not quiet:
        click.echo(_introduction(found), err=True)
    show_work(
        lambda watch: continue_run(found, watch, dask),
        found.items,
        run,
        found.config,
        quiet=quiet,
        report=not no_report,
        begun=found.scans,
        figures=figures,
    )


def _introduction(found: FoundRun) -> str:
    """Where the run stands and where it goes."""
    from dfcrp.likelihoods.registry import likelihood_named
    from dfcrp.markup import counted

    run, done = found.config.run, min(found.scans)
    longest = run.max_scans if run.scans is None else run.scans
    noun = likelihood_named(run.likelihood).noun
    what = f"{counted(len(found.items), noun)}, {counted(run.chains, 'chain')}"
    to = "until the verdict is good" if run.scans is None else f"to {run.scans:,} scans"
    if len(found.items.images) > 1 and run.images == "independent":
        begun, images = sum(scans > 0 for scans in found.scans), len(found.scans)
        return f"Resuming {to} with {images:,} images, of which {begun:,} are begun: {what}."
    if done + run.thin > longest:
        option = "--max-scans" if run.scans is None else "--scans"
        return (
            f"All {done:,} scans of this run are done ({what}); {option} with a larger number "
            "extends it. Making its tables again."
        )
    return f"Resuming after {done:,} scans {to}: {what}."

"""``dfcrp update``: go on with more items and decisions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from dfcrp.cli.fit import filter_options
from dfcrp.cli.ground import figures_option, likelihood_option


@click.command(
    name="update",
    options_metavar="[OPTIONS]",
    short_help="Go on with more items, corrected ones and decisions.",
)
@click.argument("run", type=click.Path(path_type=Path), metavar="RUN")
@click.argument("files", nargs=-1, type=click.Path(path_type=Path), metavar="[MORE]...")
@click.option(
    "--decisions",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="What people decided, besides what the run knows already; as in `dfcrp fit`.",
)
@click.option(
    "--looked",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Who looked at the images of MORE; as in `dfcrp fit`.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    metavar="NEW",
    help="Folder for the results; new or empty.  [default: RUN-2, RUN-3, ...]",
)
@filter_options
@click.option("--scans", type=int, help="Scans of each chain.  [default: as in the run]")
@click.option("--burn-in", type=int, help="Scans to drop.  [default: as in the run]")
@click.option("--max-scans", type=int, help="Without --scans: the most scans to run.")
@click.option("--max-minutes", type=float, help="Stop after this many minutes and keep the draws.")
@click.option("--workers", type=int, help="Threads.  [default: as in the run]")
@likelihood_option
@figures_option
@click.option("--no-report", is_flag=True, help="Write the tables only, no figures and no page.")
@click.option("--quiet", is_flag=True, help="Print warnings and errors only.")
def command(
    run: Path,
    files: tuple[Path, ...],
    decisions: Path | None,
    looked: Path | None,
    out: Path | None,
    likelihood: str | None,
    no_report: bool,
    quiet: bool,
    figures: tuple[str, ...],
    **options: Any,
) -> None:
    """Go on from the run in the folder RUN, with the items in MORE... and decisions.

    \b
      dfcrp update run new.csv
      dfcrp update run --decisions decisions.csv --out run-decided

    The result is that of a new run with all items, in a folder of its own; RUN stays as it is. The
    chains begin where those of RUN ended. An item in MORE with the id of one in RUN takes its
    place.
    """
    from dfcrp.cli.job import run_job
    from dfcrp.fitting.update import prepare_update
    from dfcrp.io import read_items
    from dfcrp.posterior.saving import load
    from dfcrp.runs.folder import refuse_used

    names = ("columns", "image", "min_diameter", "exclude_experts", "image_names")
    filters = {name: options.pop(name) for name in names}
    folder = out or _next_folder(run)
    refuse_used(folder)
    posterior = load(run, likelihood=likelihood)
    more = read_items(files, posterior.items.kind, looked=looked, **filters) if files else None
    changes = {name: value for name, value in options.items() if value is not None}
    items, config = prepare_update(posterior, more, decisions, changes)
    if not quiet:
        click.echo(_introduction(items.updates[-1], run, folder), err=True)
    run_job(items, config, folder, quiet=quiet, report=not no_report, figures=figures)


def _next_folder(run: Path) -> Path:
    """RUN-2, or the first number after it that is free."""
    number = 2
    while (found := run.with_name(f"{run.name}-{number}")).exists():
        number += 1
    return found


def _introduction(note: Any, run: Path, folder: Path) -> str:
    """What is added to the run."""
    return (
        f"Updating {run}: {note['new']:,} new items, {note['corrected']:,} corrected, "
        f"{note['decisions']:,} decisions; {note['items']:,} items in all, into {folder}."
    )

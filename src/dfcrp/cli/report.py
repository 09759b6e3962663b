"""``dfcrp report``: tables, figures and page anew, from the draws of a run."""

from __future__ import annotations

from pathlib import Path

import click


@click.command(
    name="report", options_metavar="[OPTIONS]", short_help="Remake the tables and figures of a run."
)
@click.argument("run", type=click.Path(path_type=Path), metavar="RUN")
@click.option(
    "--min-experts",
    type=int,
    help="Count as consensus what this many experts share, from now on.  [default: as in the run]",
)
@click.option(
    "--background",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="The image that was marked, to be shown behind the circles.",
)
@click.option("--quiet", is_flag=True, help="Print warnings and errors only.")
def command(run: Path, min_experts: int | None, background: Path | None, quiet: bool) -> None:
    """(Re)make the tables, figures and page of the run folder RUN from its draws."""
    import dataclasses

    from dfcrp.cli.job import make_report
    from dfcrp.cli.outcome import describe, list_files
    from dfcrp.errors import InputError
    from dfcrp.posterior.folder import load, write_results, write_settings

    if background is not None and not background.is_file():
        raise InputError(f"{background}: there is no such image file")
    posterior = load(run)
    if min_experts is not None:
        summary = dataclasses.replace(posterior.config.summary, min_experts=min_experts)
        posterior.config = dataclasses.replace(posterior.config, summary=summary)
        write_settings(run, posterior.config)
    write_results(posterior, run)
    if not quiet:
        click.echo(f"{describe(posterior)}\n")
    make_report(posterior, run, image=background, quiet=quiet)
    if not quiet:
        click.echo(list_files(run))

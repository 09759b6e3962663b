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
@click.option(
    "--image",
    metavar="NAME",
    help="Of a run over many images: figures and page of this one; the tables stay.",
)
@click.option(
    "--pages",
    type=click.IntRange(min=0),
    help="Of a run over many images: pages with a map of so many, the most doubtful first.  "
    "[default: 100]",
)
@click.option("--quiet", is_flag=True, help="Print warnings and errors only.")
def command(
    run: Path,
    min_experts: int | None,
    background: Path | None,
    image: str | None,
    pages: int | None,
    quiet: bool,
) -> None:
    """(Re)make the tables, figures and page of the run folder RUN from its draws."""
    import dataclasses

    from dfcrp.cli.job import make_image_report, make_report
    from dfcrp.cli.outcome import describe, list_files
    from dfcrp.errors import InputError
    from dfcrp.fitting import write_tables
    from dfcrp.posterior.folder import load, write_settings
    from dfcrp.posterior.images import ImagesPosterior

    if background is not None and not background.is_file():
        raise InputError(f"{background}: there is no such image file")
    posterior = load(run)
    many = isinstance(posterior, ImagesPosterior)
    if not many and (image is not None or pages is not None):
        raise InputError(f"{run}: --image and --pages are for runs over many images")
    if image is not None and min_experts is not None:
        raise InputError("--min-experts is for all images of a run; give it without --image")
    if many and background is not None and image is None:
        raise InputError("--background is for one image; name it with --image")
    if min_experts is not None:
        summary = dataclasses.replace(posterior.config.summary, min_experts=min_experts)
        write_settings(run, dataclasses.replace(posterior.config, summary=summary))
        posterior = load(run)
    if image is not None and isinstance(posterior, ImagesPosterior):
        make_image_report(posterior, run, image, background=background, quiet=quiet)
        return
    write_tables(posterior, run)
    if not quiet:
        click.echo(f"{describe(posterior)}\n")
    make_report(posterior, run, image=background, quiet=quiet, pages=pages)
    if not quiet:
        click.echo(list_files(run))

"""``dfcrp report``: tables, figures and page again, from the draws of a run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from dfcrp.cli.ground import figures_option, image_options, likelihood_option, site_options

if TYPE_CHECKING:
    from dfcrp.posterior.posterior import Posterior
    from dfcrp.values import Json


@click.command(
    name="report", options_metavar="[OPTIONS]", short_help="Remake the tables and figures of a run."
)
@click.argument("run", type=click.Path(path_type=Path), metavar="RUN")
@click.option(
    "--min-experts",
    metavar="N|SHARE",
    help="From now on a consensus is this many experts, or this share of those who looked "
    "(60%).  [default: as in the run]",
)
@click.option(
    "--side-by-side",
    is_flag=True,
    default=None,
    help="Prior detection: from now on also count by number of experts.",
)
@click.option(
    "--image",
    metavar="NAME",
    help="Many images: make the figures and the page of this one; the tables stay as they are.",
)
@click.option(
    "--pages",
    type=click.IntRange(min=0),
    help="Many images: how many get a page with a map, the most doubtful first.  [default: 100]",
)
@likelihood_option
@site_options
@image_options
@figures_option
@click.option("--quiet", is_flag=True, help="Print warnings and errors only.")
def command(
    run: Path,
    min_experts: str | None,
    side_by_side: bool | None,
    image: str | None,
    pages: int | None,
    likelihood: str | None,
    quiet: bool,
    figures: tuple[str, ...],
    **options: object,
) -> None:
    """Remake the tables, figures and page of the run folder RUN from its draws.

    What the options say is kept in the run folder.
    """
    from dfcrp.cli.ground import check_photographs, image_settings
    from dfcrp.cli.job import describe, list_files, make_image_report, make_report
    from dfcrp.errors import InputError
    from dfcrp.posterior.saving import load, write_results
    from dfcrp.settings.config import resolve

    changes = image_settings(options)
    posterior = load(run, likelihood=likelihood)
    many = posterior.many is not None
    if not many and (image is not None or pages is not None):
        raise InputError(f"{run}: --image and --pages are for runs over many images")
    if image is not None and min_experts is not None:
        raise InputError("--min-experts is for all images of a run; give it without --image")
    photographs = resolve(posterior.config, changes).image.folder
    if many and image is None and changes and ("image_file" in changes or photographs is None):
        raise InputError(
            "--image-file is for one image; name it with --image, or give a folder of photographs "
            "with --images-from"
        )
    check_photographs(posterior.items, resolve(posterior.config, changes).image)
    if image is not None:
        picture = resolve(posterior.config, changes).image
        make_image_report(posterior, run, image, picture=picture, quiet=quiet, figures=figures)
        return
    if min_experts is not None:
        changes["min_experts"] = min_experts
    if side_by_side is not None:
        changes["side_by_side"] = side_by_side
    if _note_changes(run, posterior, changes, options):
        posterior = load(run, likelihood=likelihood)
    write_results(posterior, run)
    if not quiet:
        click.echo(f"{describe(posterior)}\n")
    make_report(posterior, run, quiet=quiet, pages=pages, figures=figures)
    if not quiet:
        click.echo(list_files(run))


def _note_changes(
    run: Path,
    posterior: Posterior,
    changes: Json,
    options: Json,
) -> bool:
    """Keep new settings, and what became known of the ground; returns whether there were any."""
    from dfcrp.cli.ground import told_site
    from dfcrp.runs.folder import write_settings, write_site
    from dfcrp.settings.config import resolve

    site = told_site(posterior.items.site, options)
    if site != posterior.items.site:
        write_site(run, site)
    if changes:
        write_settings(run, resolve(posterior.config, changes))
    return bool(changes) or site != posterior.items.site

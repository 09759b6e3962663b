"""``dfcrp fit``: markings in, run folder out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from dfcrp.cli.ground import (
    IMAGE_OPTIONS,
    SITE_OPTIONS,
    figures_option,
    image_options,
    site_options,
)
from dfcrp.priors.registry import HOMES as PRIORS
from dfcrp.settings.values import EXPERT_BIAS, IMAGES, PRESETS, SAMPLERS


class Radius(click.ParamType):
    """A distance, "auto" or "none"."""

    name = "auto|none|NUMBER"

    def convert(self, value: Any, param: Any, ctx: Any) -> float | str:
        """Numbers become floats; the settings check the range."""
        if value in ("auto", "none"):
            return str(value)
        try:
            return float(value)
        except ValueError:
            self.fail(f'{value!r} is not "auto", "none" or a number', param, ctx)


def filter_options(command: Any) -> Any:
    """The options that say which rows and columns of the files count."""
    for option in reversed(
        [
            click.option(
                "--columns",
                metavar="ROLE=NAME,...",
                help="Which column has which role, if the names do not say it: "
                "x=LON,y=LAT,diameter=D,expert=WHO. An empty name ignores a column.",
            ),
            click.option("--image", metavar="NAME", help="Only items on this image."),
            click.option(
                "--min-diameter",
                type=float,
                metavar="NUMBER",
                help="Only items at least this wide, in the unit of the file.",
            ),
            click.option(
                "--exclude-expert",
                "exclude_experts",
                multiple=True,
                metavar="NAME",
                help="Leave out an expert; may be repeated.",
            ),
        ]
    ):
        command = option(command)
    return command


@click.command(
    name="fit",
    options_metavar="--out RUN [OPTIONS]",
    short_help="Merge lists of markings into one catalogue.",
)
@click.argument(
    "files", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="FILE..."
)
@click.option(
    "--out",
    required=True,
    type=click.Path(path_type=Path),
    metavar="RUN",
    help="Folder for the results; new or empty.",
)
@filter_options
@site_options
@image_options
@click.option("--chains", type=int, help="Independent chains.  [default: 4]")
@click.option(
    "--scans",
    type=int,
    help="Scans of each chain. Without it the run continues until the verdict is good.",
)
@click.option(
    "--burn-in",
    type=int,
    help="Scans to drop from the front.  [default: a quarter of --scans; chosen from the draws "
    "without --scans]",
)
@click.option("--thin", type=int, help="Keep one scan in this many.  [default: 1]")
@click.option(
    "--max-scans", type=int, help="Without --scans: stop here at the latest.  [default: 20000]"
)
@click.option("--max-minutes", type=float, help="Stop after this time, keeping what is drawn.")
@click.option(
    "--radius",
    type=Radius(),
    metavar="auto|none|NUMBER",
    help="Markings farther apart never share an object.  [default: auto, by the model's own "
    "spread at each size]",
)
@click.option(
    "--likelihood",
    type=str,
    help="What is listed: circles, points, boxes, ellipses, rows of numbers (diagonal, normal) or "
    "records.  [default: circles]",
)
@click.option(
    "--nearest",
    type=int,
    metavar="COUNT",
    help="Items that are not circles: each may share an object only with this many nearest ones.",
)
@click.option(
    "--candidates",
    type=click.Path(path_type=Path),
    metavar="PAIRS.csv",
    help="Only these pairs may share an object. Two columns of ids.",
)
@click.option(
    "--looked",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Who looked at which image, also without a marking. Columns image and expert, and "
    "x_min, y_min, x_max, y_max or footprint for looks at a part; or GeoJSON.",
)
@click.option(
    "--preset",
    type=click.Choice(PRESETS),
    help="The paper's hyperparameters for one of its data sets.",
)
@click.option("--seed", type=int, help="Same seed, same draws.  [default: 1]")
@click.option("--workers", type=int, help="Threads.  [default: one per core]")
@click.option(
    "--dask",
    metavar="ADDRESS|FILE",
    help="Run chains or images on this Dask cluster: tcp://HOST:PORT or a scheduler file. All its "
    "machines must see RUN.",
)
@click.option(
    "--config", type=click.Path(path_type=Path), metavar="FILE.toml", help="Settings from a file."
)
@click.option(
    "--sampler",
    type=click.Choice(SAMPLERS),
    help="exact is fast; paper and unmodified are the paper's, for comparison.  [default: exact]",
)
@click.option(
    "--prior",
    type=click.Choice(list(PRIORS)),
    help="How partitions are weighed; crp lets one expert's markings share an object, detection "
    "says which are real and how many everyone missed.  [default: dfcrp]",
)
@click.option(
    "--expert-bias",
    type=click.Choice(EXPERT_BIAS),
    help="Learn how experts differ: where and how large they draw (offset), how exactly "
    "(precision), or both.  [default: none]",
)
@click.option(
    "--min-experts",
    metavar="N|SHARE",
    help="Experts that make a consensus (p_consensus), or a share of those who looked at the "
    "image: 60%.  [default: 5; a majority of fewer than 5; 60% where images differ in how many "
    "looked]",
)
@click.option(
    "--side-by-side",
    is_flag=True,
    default=None,
    help="Prior detection: let the report count by number of experts, too.",
)
@click.option(
    "--retire-complete",
    type=float,
    metavar="P",
    help="Prior detection: an image needs no more looks where nothing was missed with this "
    "probability, and ...  [default: 0.9]",
)
@click.option(
    "--retire-settled",
    type=float,
    metavar="P",
    help="... where all is real or false as listed with this probability.  [default: 0.9]",
)
@click.option(
    "--images",
    type=click.Choice(IMAGES),
    help="Several images: each with tolerances and a concentration of its own, or all with the "
    "same.  [default: independent; with the prior detection shared]",
)
@figures_option
@click.option("--no-report", is_flag=True, help="Write the tables only, no figures and page.")
@click.option("--quiet", is_flag=True, help="Print warnings and errors only.")
def command(
    files: tuple[Path, ...],
    out: Path,
    config: Path | None,
    no_report: bool,
    quiet: bool,
    dask: str | None,
    candidates: Path | None,
    looked: Path | None,
    figures: tuple[str, ...],
    **options: Any,
) -> None:
    """Merge the markings in FILE... into one catalogue.

    A file has one row per marking with the columns x, y, diameter (or radius) and expert; several
    files without an expert column are one expert each. With a column image, each image is a
    problem of its own, and all go into one catalogue. Options win over --config. Ctrl-C stops
    the run and keeps what it has drawn; `dfcrp resume` continues it.
    """
    import dataclasses

    from dfcrp.cli.ground import image_settings, told_site
    from dfcrp.cli.job import run_job
    from dfcrp.errors import InputError
    from dfcrp.io import read_items
    from dfcrp.runs.folder import refuse_used
    from dfcrp.settings.config import resolve

    filters = {
        name: options.pop(name) for name in ("columns", "image", "min_diameter", "exclude_experts")
    }
    ground = {name: options.pop(name) for name in SITE_OPTIONS}
    picture = image_settings({name: options.pop(name) for name in IMAGE_OPTIONS})
    refuse_used(out)  # before any work
    given = picture | {name: value for name, value in options.items() if value is not None}
    asked = resolve(config, dict(given))
    read = read_items(files, asked.run.likelihood, candidates=candidates, looked=looked, **filters)
    if len(read.images) > 1 and "image_file" in picture:
        raise InputError(
            "--image-file is for one image, and the items are on several; choose one with "
            "--image, or give it later with `dfcrp report RUN --image NAME`"
        )
    run_job(
        dataclasses.replace(read, site=told_site(read.site, ground)),
        out,
        config=config,
        settings=given,
        dask=dask,
        quiet=quiet,
        report=not no_report,
        figures=figures,
    )

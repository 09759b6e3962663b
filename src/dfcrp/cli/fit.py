"""``dfcrp fit``: markings in, run folder out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from dfcrp.cli.ground import (
    IMAGE_OPTIONS,
    SITE_OPTIONS,
    C,
    figures_option,
    image_options,
    site_options,
)
from dfcrp.likelihoods import EXPERT_BIAS
from dfcrp.priors.registry import HOMES as PRIORS
from dfcrp.settings.values import IMAGE_NAMES, IMAGES, PRESETS, SAMPLERS

#: Options that no heading names.
OTHERS = "Other options"


class GroupedCommand(click.Command):
    """Lists its options under headings, the most used first.

    ``headings`` has the names of parameters by heading; ``example`` is shown where a file or an
    option is missing.
    """

    def __init__(
        self,
        *arguments: Any,
        headings: Mapping[str, Sequence[str]],
        example: str,
        **options: Any,
    ) -> None:
        super().__init__(*arguments, **options)
        self.headings, self.example = headings, example

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Called by click for --help."""
        records = {
            str(option.name): record
            for option in self.get_params(ctx)
            if (record := option.get_help_record(ctx)) is not None
        }
        for head, names in self.headings.items():
            with formatter.section(head):
                formatter.write_dl([records.pop(name) for name in names])
        with formatter.section(OTHERS):
            formatter.write_dl(list(records.values()))


class Radius(click.ParamType):
    """A distance, "auto" or "none"."""

    name = "auto|none|NUMBER"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float | str:
        """Numbers become floats; the settings check the range."""
        if value in ("auto", "none"):
            return str(value)
        try:
            return float(value)
        except ValueError:
            self.fail(f'{value!r} is not "auto", "none" or a number', param, ctx)


image_names_option = click.option(
    "--image-names",
    type=click.Choice(IMAGE_NAMES),
    default="auto",
    show_default=True,
    help="What makes names of images the same: the path, the name after the last slash, its stem "
    "(without the ending), the number (id) that a program gave, or name and size; auto finds out, "
    "or refuses.",
)

join_categories_option = click.option(
    "--join-categories",
    metavar="spellings|OLD=NEW,...",
    help="Categories that are one: those that differ in case, blanks and dashes only, or by name.",
)


def filter_options(command: C) -> C:
    """The options that say which rows and columns of the files count."""
    for option in reversed(
        [
            click.option(
                "--columns",
                metavar="ROLE=NAME,...",
                help="Names of your columns, if dfcrp does not recognise them: "
                "x=LON,y=LAT,diameter=D,expert=WHO. An empty name ignores a column.",
            ),
            click.option("--image", metavar="NAME", help="Use only items on this image."),
            image_names_option,
            click.option(
                "--min-diameter",
                type=float,
                metavar="NUMBER",
                help="Use only items with at least this diameter, in the unit of the file.",
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


#: The options by what they are about.
HEADINGS = {
    "Results": (
        "out",
        "min_experts",
        "figures",
        "no_report",
        "side_by_side",
        "retire_complete",
        "retire_settled",
        "quiet",
    ),
    "Input": (
        "likelihood",
        "columns",
        "image",
        "image_names",
        "join_categories",
        "min_diameter",
        "exclude_experts",
        "looked",
        "decisions",
        "candidates",
        *SITE_OPTIONS,
        *IMAGE_OPTIONS,
    ),
    "Model": ("prior", "expert_bias", "images", "radius", "nearest", "preset", "sampler", "config"),
    "Length of the run": (
        *("chains", "scans", "burn_in", "thin", "max_scans", "max_minutes"),
        *("workers", "dask", "seed"),
    ),
}


@click.command(
    name="fit",
    cls=GroupedCommand,
    headings=HEADINGS,
    example="dfcrp fit markings.csv --out run",
    options_metavar="--out RUN [OPTIONS]",
    short_help="Merge several experts' lists into one catalogue.",
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
@join_categories_option
@site_options
@image_options
@click.option("--chains", type=int, help="Independent chains.  [default: 4]")
@click.option(
    "--scans",
    type=int,
    help="Scans of each chain.  [default: until the verdict is good]",
)
@click.option(
    "--burn-in",
    type=int,
    help="Scans to drop at the start of each chain.  [default: a quarter of --scans; without "
    "--scans chosen from the draws]",
)
@click.option("--thin", type=int, help="Keep one scan in this many.  [default: 1]")
@click.option(
    "--max-scans", type=int, help="Without --scans: the most scans to run.  [default: 20000]"
)
@click.option("--max-minutes", type=float, help="Stop after this many minutes and keep the draws.")
@click.option(
    "--radius",
    type=Radius(),
    metavar="auto|none|NUMBER",
    help="Items farther apart than this never share an object.  [default: auto, from the data]",
)
@click.option(
    "--likelihood",
    type=str,
    help="The kind of items: circles, points, boxes, ellipses, rows of numbers (diagonal, normal) "
    "or records.  [default: circles]",
)
@click.option(
    "--nearest",
    type=int,
    metavar="COUNT",
    help="Items other than circles: each may share an object only with this many nearest ones.",
)
@click.option(
    "--candidates",
    type=click.Path(path_type=Path),
    metavar="PAIRS.csv",
    help="Only these pairs may share an object: a table with two columns of ids.",
)
@click.option(
    "--looked",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Who looked at which image, even if they marked nothing: a table with the columns image "
    "and expert, and for looks at a part of an image x_min, y_min, x_max, y_max or footprint; or "
    "GeoJSON.",
)
@click.option(
    "--decisions",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="What people decided: a table with the columns decision (together, apart, real, not_real, "
    "slip, expert, category or withdraw) and items (ids), and perhaps by, when, note and value.",
)
@click.option(
    "--preset",
    type=click.Choice(PRESETS),
    help="Use the paper's hyperparameters for one of its data sets.",
)
@click.option("--seed", type=int, help="The same seed gives the same draws.  [default: 1]")
@click.option("--workers", type=int, help="Threads.  [default: one per core]")
@click.option(
    "--dask",
    metavar="ADDRESS|FILE",
    help="Run chains or images on this Dask cluster: tcp://HOST:PORT or a scheduler file. All its "
    "machines must see RUN.",
)
@click.option(
    "--config",
    type=click.Path(path_type=Path),
    metavar="FILE.toml",
    help="Read settings from a file; options on the command line take precedence.",
)
@click.option(
    "--sampler",
    type=click.Choice(SAMPLERS),
    help="exact is fast; paper and unmodified are the paper's, for comparison.  [default: exact]",
)
@click.option(
    "--prior",
    type=click.Choice(list(PRIORS)),
    help="detection: estimate which objects are real and how many everyone missed. crp: let items "
    "of one expert share an object.  [default: dfcrp]",
)
@click.option(
    "--expert-bias",
    type=click.Choice(EXPERT_BIAS),
    help="Learn how experts differ: in position and size (offset), in accuracy (precision), or in "
    "both; auto is precision where at least 3 experts have 20 items or more.  [default: none]",
)
@click.option(
    "--min-experts",
    metavar="N|SHARE",
    help="How many experts make a consensus (p_consensus): a number, or a share of those who "
    "looked at the image, such as 60%.  [default: 5, or a majority of fewer than 5; 60% if not "
    "equally many looked at every image]",
)
@click.option(
    "--side-by-side",
    is_flag=True,
    default=None,
    help="Prior detection: also count by number of experts in the report.",
)
@click.option(
    "--retire-complete",
    type=float,
    metavar="P",
    help="Prior detection: an image needs no more looks if the probability that nothing was "
    "missed is at least P ...  [default: 0.9]",
)
@click.option(
    "--retire-settled",
    type=float,
    metavar="P",
    help="... and the probability that all its objects are real or false as listed is at least P.  "
    "[default: 0.9]",
)
@click.option(
    "--images",
    type=click.Choice(IMAGES),
    help="Several images: learn parameters for each image, or one set for all.  [default: "
    "independent; with the prior detection shared]",
)
@figures_option
@click.option("--no-report", is_flag=True, help="Write the tables only, no figures and no page.")
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
    decisions: Path | None,
    figures: tuple[str, ...],
    **options: Any,
) -> None:
    """Merge the lists in FILE... into one catalogue.

    \b
      dfcrp fit markings.csv --out run
      dfcrp fit ann.csv bob.csv cleo.csv --out run --min-experts 2
      dfcrp fit export.csv --likelihood points --prior detection --out run

    A table has one row per item and the columns x, y, diameter (or radius) and expert. Several
    files without an expert column are one expert each. Items on several images (a column image)
    are fitted image by image and go into one catalogue. Files of many other programs are read too.

    Ctrl-C stops the run and keeps what it has drawn; `dfcrp resume RUN` continues it.
    """
    import dataclasses

    from dfcrp.cli.ground import image_settings, told_site
    from dfcrp.cli.job import run_job
    from dfcrp.errors import InputError
    from dfcrp.fitting.api import decided, resolve_for
    from dfcrp.io import read_items
    from dfcrp.runs.folder import refuse_used
    from dfcrp.settings.config import read_settings

    filters = {
        name: options.pop(name)
        for name in (
            *("columns", "image", "min_diameter", "exclude_experts"),
            *("image_names", "join_categories"),
        )
    }
    ground = {name: options.pop(name) for name in SITE_OPTIONS}
    picture = image_settings({name: options.pop(name) for name in IMAGE_OPTIONS})
    refuse_used(out)  # before any work
    given = picture | {name: value for name, value in options.items() if value is not None}
    asked = read_settings(config, given)
    resolved = asked.resolve()
    kind = resolved.run.likelihood
    read = read_items(files, kind, candidates=candidates, looked=looked, **filters)
    if len(read.images) > 1 and "image_file" in picture:
        raise InputError(
            "--image-file is for one image, and the items are on several; choose one with "
            "--image, or give it later with `dfcrp report RUN --image NAME`"
        )
    items = dataclasses.replace(read, site=told_site(read.site, ground))
    if decisions is not None:
        items = decided(items, decisions)
    run_job(
        items,
        resolve_for(items, asked, resolved),
        out,
        dask=dask,
        quiet=quiet,
        report=not no_report,
        figures=figures,
    )

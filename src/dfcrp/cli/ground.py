"""Options that several commands share: the ground that was searched, its image, the figures."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from dfcrp.errors import InputError, SettingsError
from dfcrp.settings.values import IMAGE_Y

if TYPE_CHECKING:
    from dfcrp.items.items import Items
    from dfcrp.items.site import Site
    from dfcrp.settings.config import ImageSettings
    from dfcrp.values import Json

SITE_OPTIONS = ("metres_per_pixel", "area_km2", "body")
#: A command, or the function that becomes one.
C = TypeVar("C", bound=Callable[..., object])
#: As in ``dfcrp.plots.drawing``, which takes longer to load than the help should.
FIGURE_FORMATS = ("svg", "pdf", "png", "csv")
IMAGE_OPTIONS = ("image_file", "images_from", "image_y", "image_offset", "image_scale")


class Numbers(click.ParamType):
    """Numbers with commas between them; only so many, where ``count`` says how many."""

    def __init__(self, name: str, words: str, count: int | None = None) -> None:
        self.name, self.words, self.count = name, words, count

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[float, ...]:
        """Ranges are checked where the numbers are used."""
        if isinstance(value, tuple):
            return value
        try:
            found = tuple(float(part) for part in str(value).split(","))
        except ValueError:
            found = ()
        if not found or self.count not in (None, len(found)):
            self.fail(f"{value!r} is not {self.words}", param, ctx)
        return found


def likelihood_option(command: C) -> C:
    """Code of one's own is run if it is named here, not because a run folder names it."""
    return _with_options(
        command,
        click.option(
            "--likelihood",
            metavar="MODULE:NAME",
            help="Needed for a run of a likelihood of your own: its name.",
        ),
    )


def site_options(command: C) -> C:
    """The scale, the area and the body, where the files do not tell them."""
    return _with_options(
        command,
        click.option(
            "--metres-per-pixel",
            type=float,
            metavar="M",
            help="Size of a pixel on the ground, in m.",
        ),
        click.option("--area-km2", type=float, metavar="A", help="Area that was searched, in km²."),
        click.option(
            "--body",
            metavar="NAME|KM",
            help="The body: moon, mars, mercury, ceres, earth, or its radius in km.",
        ),
    )


def image_options(command: C) -> C:
    """The image beneath the maps, and where it lies."""
    return _with_options(
        command,
        click.option(
            "--image-file",
            type=click.Path(path_type=Path),
            metavar="FILE",
            help="The marked image (PNG, JPEG or TIFF), to show beneath the maps.",
        ),
        click.option(
            "--images-from",
            type=click.Path(path_type=Path),
            metavar="FOLDER",
            help="The marked images, each under its name, with an ending such as .jpg or without; "
            "or one file.",
        ),
        click.option(
            "--image-y",
            type=click.Choice(IMAGE_Y),
            help="Direction of y; auto is up if most y are negative.  [default: auto]",
        ),
        click.option(
            "--image-offset",
            type=Numbers("X,Y", "two numbers X,Y", 2),
            metavar="X,Y",
            help="Position of the image's upper left corner.  [default: 0,0]",
        ),
        click.option(
            "--image-scale",
            type=float,
            metavar="S",
            help="Size of a pixel of the image in units of x and y.  [default: 1]",
        ),
    )


class Formats(click.ParamType):
    """Names of formats with commas between them."""

    name = "FORMAT,..."

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, ...]:
        """As they are called in file names."""
        if isinstance(value, tuple):
            return value
        given = tuple(part.strip().lower() for part in value.split(","))
        unknown = [kind for kind in given if kind not in FIGURE_FORMATS]
        if unknown:
            self.fail(f"{unknown[0]!r} is not one of {', '.join(FIGURE_FORMATS)}", param, ctx)
        return given


def figures_option(command: C) -> C:
    """The formats of the figures' files."""
    option = click.option(
        "--figures",
        type=Formats(),
        default=("svg",),
        metavar="FORMAT,...",
        help="Formats of the figures: svg, pdf, png, csv (the numbers), or several, as in "
        "svg,pdf.  [default: svg]",
    )
    return option(command)


def _with_options(command: C, *options: Callable[[C], C]) -> C:
    for option in reversed(options):
        command = option(command)
    return command


def told_site(site: Site, options: Json) -> Site:
    """The site with what the options say of it."""
    from dfcrp.items.site import body_radius

    told: Json = {}
    for name in ("metres_per_pixel", "area_km2"):
        value = options[name]
        if value is None:
            continue
        if not 0 < value < float("inf"):
            raise SettingsError(f"--{name.replace('_', '-')} is {value:g}; it must be positive")
        told[name] = value
    if options["body"] is not None:
        told["body_radius_km"] = body_radius(options["body"])
    return dataclasses.replace(site, **told)


def image_settings(options: Json) -> Json:
    """The options of the image that were given, as settings; the file is looked for."""
    given = {name: options[name] for name in IMAGE_OPTIONS if options[name] is not None}
    if "images_from" in given:
        place = Path(given["images_from"])
        if place.is_dir():
            given["images_from"] = str(place.resolve())
        else:
            given["image_file"] = given.pop("images_from")
    if "image_file" in given:
        from dfcrp.plots.underlay import check_image

        file = Path(given["image_file"])
        if not file.is_file():
            raise InputError(f"{file}: there is no such image file")
        check_image(file)
        given["image_file"] = str(file.resolve())
    return given


def check_photographs(items: Items, settings: ImageSettings) -> None:
    """Say which images have no photograph in the folder of the settings; refuse if none has."""
    from dfcrp.markup import counted, listed
    from dfcrp.plots.underlay import photographs

    if settings.folder is None:
        return
    found = photographs(settings.folder)
    without = [name for name in items.images if found.find(name) is None]
    if len(without) == len(items.images):
        raise InputError(
            f"{settings.folder}: holds no photograph of these images: they are called "
            f"{listed(without, 3)}, and there {found.example}. A photograph has the name of its "
            "image, with an ending such as .jpg or without"
        )
    if without:
        have = "has" if len(without) == 1 else "have"
        click.echo(
            f"Note: {counted(len(without), 'image')} of {len(items.images):,} {have} no photograph "
            f"in {settings.folder}: {listed(without, 5)}.",
            err=True,
        )

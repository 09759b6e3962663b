"""``dfcrp simulate``: simulated markings whose true clusters are known."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dfcrp.cli.ground import Numbers

if TYPE_CHECKING:
    from dfcrp.items.items import Items

HEADER = "expert,x,y,diameter,truth"


#: Probabilities, one per expert; the design checks their range and number.
RATES = Numbers("P,P,...", "a list of numbers with commas between them")


@click.command(
    name="simulate",
    options_metavar="--out FILE [OPTIONS]",
    short_help="Simulate markings whose true clusters are known.",
)
@click.option(
    "--out",
    required=True,
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="CSV file to write; the column truth holds the true labels.",
)
@click.option("--seed", type=int, default=1, show_default=True, help="Same seed, same data.")
@click.option(
    "--design",
    default="paper",
    show_default=True,
    metavar="NAME",
    help="The design to start from: paper, dense, wide-spread, few-experts, poor-detection or "
    "dense-and-wide. The options below change it.",
)
@click.option("--n-objects", type=int, help="Objects in the image.  [paper: 30]")
@click.option("--x-min", type=float, help="Left edge of the image.  [paper: 0]")
@click.option("--y-min", type=float, help="Lower edge of the image.  [paper: 0]")
@click.option("--width", type=float, help="Width of the image.  [paper: 700]")
@click.option("--height", type=float, help="Height of the image.  [paper: 500]")
@click.option(
    "--log-diameter-shape", type=float, help="Shape of the Gamma law of log diameters.  [paper: 64]"
)
@click.option(
    "--log-diameter-rate", type=float, help="Rate of the Gamma law of log diameters.  [paper: 16]"
)
@click.option(
    "--detection",
    type=RATES,
    help="How likely each expert is to mark an object.  [paper: 0.98,0.96,0.94,0.92,0.9,0.88]",
)
@click.option(
    "--false-rate",
    type=RATES,
    help="Each expert's false markings per object.  [paper: 0.12,0.1,0.08,0.06,0.04,0.02]",
)
@click.option("--position-variance", type=float, help="Variance of x and of y.  [paper: 5]")
@click.option(
    "--log-diameter-variance", type=float, help="Variance of the log diameter.  [paper: 0.01]"
)
@click.option("--decimals", type=click.IntRange(0, 17), help="Round to this many decimals.")
def command(out: Path, seed: int, design: str, decimals: int | None, **options: Any) -> None:
    """Write markings drawn from the paper's simulation design, with the true labels.

    Objects are uniform over the image; each expert finds some of them, with errors in position
    and log diameter, and makes some false markings. `dfcrp fit FILE` reads the result.
    """
    from dataclasses import replace

    from dfcrp.errors import SettingsError, did_you_mean
    from dfcrp.simulate import DESIGNS

    if design not in DESIGNS:
        hint = did_you_mean(design, DESIGNS) or f"; there are {', '.join(DESIGNS)}"
        raise SettingsError(f"there is no design {design!r}{hint}")
    if seed < 0:
        raise SettingsError(f"the seed is {seed}; it must be 0 or more")
    _refuse_other_data(out)
    changes = {name: value for name, value in options.items() if value is not None}
    markings = replace(DESIGNS[design], **changes).draw(seed)
    _write(out, markings, decimals)
    assert markings.truth is not None
    click.echo(
        f"{len(markings):,} markings by {len(markings.experts)} experts of "
        f"{len(set(markings.truth.tolist())):,} objects and false marks: {out}"
    )


def _refuse_other_data(out: Path) -> None:
    """Overwrite what this command wrote earlier, and nothing else."""
    from dfcrp.errors import InputError

    if not out.is_file():  # new, or a device such as /dev/stdout
        return
    try:
        with open(out, "rb") as stream:
            first = stream.readline(1000).strip()
    except OSError as error:
        raise InputError(f"{out}: cannot be written: {error.strerror}") from None
    if first and first != HEADER.encode():
        raise InputError(f"{out}: already exists and holds other data; choose another --out")


def _write(out: Path, markings: Items, decimals: int | None) -> None:
    import csv

    from dfcrp.errors import InputError

    assert markings.truth is not None
    numbers = [
        [repr(value if decimals is None else round(value, decimals)) for value in column.tolist()]
        for column in (markings.x, markings.y, markings.diameter)
    ]
    try:
        with open(out, "w", encoding="utf-8", newline="") as stream:
            writer = csv.writer(stream, lineterminator="\n")
            writer.writerow(HEADER.split(","))
            writer.writerows(zip(markings.expert, *numbers, markings.truth, strict=True))
    except OSError as error:
        raise InputError(f"{out}: cannot be written: {error.strerror}") from None

"""``dfcrp example``: small data for the tutorials."""

from __future__ import annotations

from pathlib import Path

import click


@click.command(
    name="example",
    options_metavar="[OPTIONS]",
    short_help="Write the example data of a tutorial.",
)
@click.argument("name", metavar="NAME")
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Folder for the files, new or empty.  [default: NAME]",
)
@click.option(
    "--seed", type=click.IntRange(0), default=1, show_default=True, help="Same seed, same data."
)
def command(name: str, out: Path | None, seed: int) -> None:
    """Write simulated data in file formats that people use.

    NAME is craters (six .scc files), crowd (a Zooniverse export), boxes (four COCO files) or
    registers (three CSV files of people). Each is the start of a tutorial.
    """
    from dfcrp.errors import InputError, SettingsError, did_you_mean
    from dfcrp.examples import EXAMPLES

    if name not in EXAMPLES:
        hint = did_you_mean(name, EXAMPLES) or f"; there are {', '.join(EXAMPLES)}"
        raise SettingsError(f"there is no example {name!r}{hint}")
    folder = Path(name) if out is None else out
    try:
        if folder.exists() and any(folder.iterdir()):
            raise InputError(f"{folder}: already has files in it; choose another --out")
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{folder}: cannot be made: {error.strerror}") from None
    files = EXAMPLES[name](folder, seed)
    click.echo("\n".join(str(file) for file in files))

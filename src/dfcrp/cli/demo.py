"""``dfcrp demo``: the main job on data that come with the package."""

from __future__ import annotations

from pathlib import Path

import click

# The data were made with
#   dfcrp simulate --out src/dfcrp/data/demo.csv --seed 4 --decimals 2 --n-objects 120
#     --width 900 --height 600 --log-diameter-shape 60 --log-diameter-rate 17.5
#     --detection 0.95,0.9,0.85,0.8,0.7,0.6 --false-rate 0.15,0.12,0.1,0.06,0.04,0.02
MARKER = "this-is-a-demo"


@click.command(
    name="demo",
    options_metavar="[OPTIONS]",
    short_help="Merge the example data that come with dfcrp.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=Path("demo-run"),
    show_default=True,
    metavar="DIR",
    help="Folder for the results; an earlier demo there is replaced.",
)
@click.option("--quiet", is_flag=True, help="Print warnings and errors only.")
def command(out: Path, quiet: bool) -> None:
    """Merge simulated markings of 120 craters by six experts."""
    from importlib.resources import as_file, files

    from dfcrp.cli.job import run_job
    from dfcrp.files import write_text
    from dfcrp.io import read_markings
    from dfcrp.runs.parts import experts_by_place
    from dfcrp.settings.config import resolve

    with as_file(files("dfcrp") / "data" / "demo.csv") as path:
        markings = read_markings(path)
    remove_earlier_demo(out)
    try:
        config = resolve(None, {}, experts_by_place(markings))
        run_job(markings, config, out, quiet=quiet)
    finally:
        # Also after a failure: the next demo may then replace what is left of this one.
        if out.is_dir():
            text = "This folder is the output of `dfcrp demo`; the next demo replaces it.\n"
            write_text(out, MARKER, text)
    if not quiet:
        click.echo(
            "\nNow your own data: dfcrp fit MARKINGS.csv --out RUN, a table with the columns\n"
            "x, y, diameter and expert (or one file per expert)."
        )


def remove_earlier_demo(out: Path) -> None:
    """Delete the folder if an earlier demo made it; refuse to touch anything else."""
    import shutil

    from dfcrp.errors import RunFolderError

    if not out.exists() or (out.is_dir() and not any(out.iterdir())):
        return
    if not (out / MARKER).is_file():
        raise RunFolderError(
            f"{out}: already exists and is not the output of a demo; choose another --out"
        )
    try:
        shutil.rmtree(out)
    except OSError as error:
        raise RunFolderError(f"{out}: cannot be removed: {error.strerror}") from None

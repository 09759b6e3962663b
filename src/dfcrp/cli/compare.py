"""``dfcrp compare``: the DFCRP and other methods side by side."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from dfcrp.cli.fit import Radius, filter_options
from dfcrp.settings.values import PRESETS


@click.command(short_help="Run other methods beside the DFCRP.")
@click.argument(
    "files", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="FILE..."
)
@filter_options
@click.option(
    "--out", required=True, type=click.Path(path_type=Path), help="Folder for the results."
)
@click.option(
    "--method",
    "methods",
    multiple=True,
    help="Run only this one (repeatable): kmeans, dbscan, constrained, crp, ddcrp, dfcrp.",
)
@click.option("--chains", default=2, show_default=True, help="Chains of each sampler.")
@click.option("--scans", default=2000, show_default=True, help="Scans of each chain.")
@click.option("--burn-in", default=500, show_default=True, help="Scans dropped at the start.")
@click.option(
    "--radius",
    type=Radius(),
    default="auto",
    show_default=True,
    metavar="auto|none|NUMBER",
    help="Markings farther apart never share an object.",
)
@click.option(
    "--preset",
    type=click.Choice(list(PRESETS)),
    help="The paper's hyperparameters for one of its data sets.",
)
@click.option(
    "--threshold",
    "thresholds",
    multiple=True,
    type=int,
    default=(4, 5, 6),
    show_default=True,
    help="Count clusters with at least this many experts (repeatable).",
)
@click.option("--seed", default=1, show_default=True, help="Seed of all methods.")
def command(
    files: tuple[Path, ...],
    out: Path,
    methods: tuple[str, ...],
    thresholds: tuple[int, ...],
    columns: str | None,
    image: str | None,
    min_diameter: float | None,
    exclude_experts: tuple[str, ...],
    image_names: str,
    **length: Any,
) -> None:
    """Run the DFCRP and other methods on the same markings.

    Writes compare.csv, compare.json, compare.md and a figure: counts by threshold and size class,
    agreement with each other and with the truth if the files have it, clusters that hold an
    expert twice, time, and what each method offers.
    """
    from dfcrp.baselines import Length, compare
    from dfcrp.io import read_markings
    from dfcrp.report.comparison import write_comparison
    from dfcrp.report.tables import markdown_table

    markings = read_markings(
        files,
        columns=columns,
        image=image,
        min_diameter=min_diameter,
        exclude_experts=exclude_experts,
        image_names=image_names,
    )
    result = compare(
        markings,
        methods or None,
        thresholds=sorted(set(thresholds)),
        length=Length(**length),
        progress=lambda title: click.echo(f"{title} ...", err=True),
    )
    settings = {**length, "methods": list(methods), "markings_sha256": markings.digest}
    tables = write_comparison(result, out, settings)
    for title, rows in tables.items():
        click.echo(f"\n{title}\n\n{markdown_table(rows)}")
    click.echo(f"\nWritten to {out}: compare.md, compare.csv, compare.json, compare.png")

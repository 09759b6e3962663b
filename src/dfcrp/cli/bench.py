"""``dfcrp bench``: side by side in one run, ratios rather than seconds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

NAMES = ("scan", "mixing", "growth")


@click.command()
@click.argument("name", type=click.Choice(NAMES), default="scan")
@click.option(
    "--data",
    "data",
    type=click.Path(path_type=Path),
    help="Markings of the highlands image; a generated stand-in without it.",
)
@click.option(
    "--min-diameter",
    type=float,
    default=18.0,
    show_default=True,
    help="Leave out smaller markings of --data.",
)
@click.option(
    "--exclude-expert",
    multiple=True,
    help="Leave out an expert of --data; R14's own merged list (Concensus) always is.",
)
@click.option("--radius", default="75", show_default=True, help="Radius: auto, none or a number.")
@click.option(
    "--seconds",
    type=float,
    default=60.0,
    show_default=True,
    help="Time given to each sampler (mixing).",
)
@click.option(
    "--json", "json_file", type=click.Path(path_type=Path), help="Write the result to this file."
)
def command(
    name: str,
    data: Path | None,
    min_diameter: float,
    exclude_expert: tuple[str, ...],
    radius: str,
    seconds: float,
    json_file: Path | None,
) -> None:
    """Measure: one scan against the paper's cost, mixing per second, or growth with n."""
    from dfcrp.studies import benchmarks

    reach: Any = radius if radius in ("auto", "none") else float(radius)
    if name == "growth":
        result = benchmarks.bench_growth()
    else:
        markings = _markings(data, min_diameter, exclude_expert)
        if name == "scan":
            result = benchmarks.bench_scan(markings, radius=reach)
        else:
            result = benchmarks.bench_mixing(
                benchmarks.reduced(markings), seconds=seconds, radius=reach
            )
    text = json.dumps({"bench": name, "data": str(data or "generated"), **result}, indent=1)
    click.echo(text)
    if json_file is not None:
        json_file.write_text(text + "\n", encoding="utf-8")


def _markings(data: Path | None, min_diameter: float, exclude: tuple[str, ...]) -> Any:
    from dfcrp.io import read_markings
    from dfcrp.simulate import highlands_like

    if data is None:
        return highlands_like(1)
    everyone = read_markings([data])
    merged = [name for name in everyone.experts if name == "Concensus"]
    return read_markings([data], min_diameter=min_diameter, exclude_experts=[*exclude, *merged])

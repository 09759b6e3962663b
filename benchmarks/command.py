"""``./run bench``: side by side in one run, ratios rather than seconds."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from dfcrp.cli.fit import Radius
from dfcrp.cli.main import run_safely
from dfcrp.errors import DfcrpError

#: Each in the order of ``all``; ``mixing`` and ``rivals`` take minutes.
NAMES = ("scan", "priors", "mixing", "growth", "families", "threads", "storage", "rivals")
#: Not one of ``all``: it takes the time that runs take.
BY_ITSELF = ("answers",)


@click.command()
@click.argument("name", type=click.Choice((*NAMES, *BY_ITSELF, "all")), default="scan")
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
@click.option(
    "--radius",
    type=Radius(),
    default=75.0,
    show_default=True,
    metavar="auto|none|NUMBER",
    help="Markings farther apart never share an object (scan, priors, mixing).",
)
@click.option(
    "--seconds",
    type=float,
    default=60.0,
    show_default=True,
    help="Time given to each sampler (mixing).",
)
@click.option(
    "--entry",
    "entries",
    multiple=True,
    help="One of the data sets of answers, by its name; may be given several times.",
)
@click.option(
    "--seeds", type=click.IntRange(1), default=3, show_default=True, help="Runs of each (answers)."
)
@click.option(
    "--max-scans",
    type=click.IntRange(1),
    default=20_000,
    show_default=True,
    help="The longest run (answers).",
)
@click.option(
    "--max-seconds",
    type=float,
    default=math.inf,
    help="End a run after so many processor seconds (answers).",
)
@click.option(
    "--against",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="A copy of this repository at another commit, to be measured beside this one (answers).",
)
@click.option(
    "--json", "json_file", type=click.Path(path_type=Path), help="Write the result to this file."
)
@click.option(
    "--figure", type=click.Path(path_type=Path), help="Draw the ratios into this file (.png, .svg)."
)
@click.option(
    "--check",
    "baseline",
    type=click.Path(path_type=Path),
    metavar="BASELINE",
    help="Fail if a ratio is worse than in this file, written by --json before.",
)
def command(
    name: str,
    json_file: Path | None,
    figure: Path | None,
    baseline: Path | None,
    **options: Any,
) -> None:
    """Measure the sampler against the paper's cost, itself at other sizes, and other methods."""
    from benchmarks.check import compare, draw_ratios, read_results

    known = None if baseline is None else read_results(baseline)
    source = "generated" if options["data"] is None else options["data"].name
    results: dict[str, Any] = {}
    for one in NAMES if name == "all" else (name,):
        results[one] = {"bench": one, "data": source, **_measure(one, **options)}
        click.echo(json.dumps(results[one], indent=1))
    if json_file is not None:
        content = results if name == "all" else results[name]
        json_file.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    if figure is not None:
        draw_ratios(results).figure.savefig(figure)
    if known is not None:
        verdicts = compare(results, known)
        for verdict in verdicts:
            click.echo(verdict.line(), err=True)
        if not verdicts:
            raise DfcrpError(f"{baseline}: has no ratio of this benchmark to compare with")
        if any(verdict.regressed for verdict in verdicts):
            raise DfcrpError("a ratio is worse than in the baseline")


def _measure(
    name: str,
    data: Path | None,
    min_diameter: float,
    exclude_expert: tuple[str, ...],
    radius: float | str,
    seconds: float,
    entries: tuple[str, ...],
    seeds: int,
    max_scans: int,
    max_seconds: float,
    against: Path | None,
) -> dict[str, Any]:
    from benchmarks import answers, growth, mixing, rivals, scan
    from studies.highlands_data import load_highlands, reduced

    if name == "growth":
        return growth.bench_growth()
    if name == "families":
        return growth.bench_families()
    if name == "threads":
        return growth.bench_threads()

    def highlands() -> Any:
        found = load_highlands(data, min_diameter=min_diameter, exclude_experts=exclude_expert)
        return found.markings

    if name == "answers":
        return answers.bench_answers(
            highlands,
            entries=entries,
            seeds=seeds,
            most_scans=max_scans,
            most_seconds=max_seconds,
            against=against,
        )
    markings = highlands()
    if name == "scan":
        return scan.bench_scan(markings, radius=radius)
    if name == "priors":
        return scan.bench_priors(markings, radius=radius)
    if name == "mixing":
        return mixing.bench_mixing(reduced(markings), seconds=seconds, radius=radius)
    if name == "storage":
        return growth.bench_storage(markings)
    return rivals.bench_rivals(markings)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a benchmark and return the exit code, as ``dfcrp`` does."""
    return run_safely(command, arguments, "./run bench")


if __name__ == "__main__":
    sys.exit(main())

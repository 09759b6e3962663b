"""``dfcrp evaluate``: how right a catalogue is, beside a truth."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from dfcrp.evaluation.result import Evaluation


class Distance(click.ParamType):
    """A number, or NAME=NUMBER,... for each column."""

    name = "D"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float | dict[str, float]:
        """The values are checked where they are used."""
        if not isinstance(value, str):
            return value
        try:
            if "=" not in value:
                return float(value)
            parts = [part.split("=") for part in value.split(",")]
            return {name.strip(): float(number) for name, number in parts}
        except ValueError:
            self.fail(f"{value!r} is neither a number nor NAME=NUMBER,...", param, ctx)


@click.command(
    name="evaluate",
    options_metavar="--truth FILE [OPTIONS]",
    short_help="Compare a run or a catalogue with the truth.",
)
@click.argument("source", type=click.Path(path_type=Path), metavar="RUN_OR_CATALOGUE")
@click.option(
    "--truth",
    type=click.Path(path_type=Path),
    required=True,
    metavar="FILE",
    help="The true objects, in any format that dfcrp reads; of records their entities or pairs.",
)
@click.option(
    "--likelihood",
    "kind",
    metavar="KIND",
    help="The kind of items: circles, points, boxes, ellipses, diagonal, normal or records.  "
    "[default: that of the run, or circles]",
)
@click.option("--iou", type=float, metavar="X", help="Least overlap of a match.  [default: 0.5]")
@click.option(
    "--distance",
    type=Distance(),
    metavar="D|NAME=D,...",
    help="Largest distance of a match, in the units of the data, or for each column.  [default: "
    "of points and rows of numbers, what the run's scatter suggests]",
)
@click.option("--same-category", is_flag=True, help="Match only objects of the same category.")
@click.option(
    "--p-real", type=float, metavar="P", help="List what is real with more than P.  [default: 0.5]"
)
@click.option(
    "--min-experts", type=int, metavar="N", help="List what at least N experts found instead."
)
@click.option(
    "--min-score", type=float, metavar="S", help="List what has at least this score instead."
)
@click.option(
    "--on",
    metavar="truth|answer|all|both|FILE",
    default="truth",
    show_default=True,
    help="Images to evaluate on: those that the truth names; those of the answer, or all, where "
    "one that the truth does not name has no object; those that both name; or a table with a "
    "column image.",
)
@click.option(
    "--body",
    metavar="NAME|KM",
    help="The body of longitudes and latitudes: moon, mars, mercury, ceres, earth, or its radius "
    "in km.  [default: that of the run]",
)
@click.option(
    "--two-lists",
    is_flag=True,
    help="Pairs of records, in a catalogue: left and right ids are of different lists.",
)
@click.option(
    "--columns", metavar="ROLE=NAME,...", help="Names of the columns of a catalogue, as for fit."
)
@click.option(
    "--truth-columns",
    metavar="ROLE=NAME,...",
    help="Names of the columns of the truth, as for fit.",
)
@click.option(
    "--json",
    "json_file",
    type=click.Path(path_type=Path),
    metavar="OUT",
    help="Write everything to this file, as JSON.",
)
@click.option("--quiet", is_flag=True, help="Print warnings and errors only.")
def command(
    source: Path,
    truth: Path,
    kind: str | None,
    on: str,
    columns: str | None,
    truth_columns: str | None,
    json_file: Path | None,
    quiet: bool,
    **options: Any,
) -> None:
    """Compare the run folder or catalogue RUN_OR_CATALOGUE with the true objects.

    Prints precision, recall, F1, average precision, calibration and more; a run folder keeps them
    in evaluation.json, and `dfcrp report` shows them. A catalogue is a file of any program.
    """
    from dfcrp.evaluation.api import evaluate
    from dfcrp.io.converting import is_run

    chosen = _images(on)
    if is_run(source):
        found = _of_run(source, truth, kind, columns, truth_columns, on=chosen, **options)
    else:
        found = evaluate(
            source,
            truth,
            kind or "circles",
            columns=columns,
            truth_columns=truth_columns,
            on=chosen,
            **options,
        )
    if json_file is not None:
        _save(found, json_file)
    if not quiet:
        click.echo(repr(found))


def _of_run(
    run: Path,
    truth: Path,
    kind: str | None,
    columns: str | None,
    truth_columns: str | None,
    **options: Any,
) -> Evaluation:
    """A run's evaluation, which is kept in its folder."""
    from dfcrp.errors import DfcrpError, SettingsError
    from dfcrp.evaluation.api import Asked, evaluate_run
    from dfcrp.posterior.saving import load
    from dfcrp.report.sections.evaluation import write_evaluation

    posterior = load(run)
    if kind not in (None, posterior.items.kind):
        raise SettingsError(
            f"--likelihood is {kind}, but {run} is a run of {posterior.items.kind}; leave it out"
        )
    if options.pop("two_lists"):
        raise SettingsError("--two-lists is for a catalogue; a run knows its lists; leave it out")
    if columns is not None:
        raise SettingsError(
            "--columns is for a catalogue, and this is a run; of the truth give --truth-columns"
        )
    found = evaluate_run(posterior, truth, Asked(**options), columns=truth_columns)
    try:
        write_evaluation(run, posterior, found)
    except DfcrpError as error:
        click.echo(f"dfcrp: note: not kept in the run folder: {error}", err=True)
    return found


def _images(on: str) -> str | Sequence[str]:
    """Names of images from a table, or the word."""
    from dfcrp.evaluation.detected import ON

    if on in ON:
        return on
    from dfcrp.errors import InputError, did_you_mean
    from dfcrp.evaluation.objects import column_of_file

    path = Path(on)
    if not path.is_file():
        raise InputError(
            f"--on is {on!r}{did_you_mean(on, ON)}; it must be {', '.join(ON)}, or a file with "
            "a column image"
        )
    return sorted(set(column_of_file(path, "image")))


def _save(found: Evaluation, path: Path) -> None:
    from dfcrp.errors import InputError
    from dfcrp.files import why

    try:
        found.save(path)
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {why(error)}") from None

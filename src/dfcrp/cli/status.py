"""``dfcrp status``: which images are done, which are contested, and what to show next."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dfcrp.cli.ground import likelihood_option

if TYPE_CHECKING:
    import pandas

    from dfcrp.posterior.posterior import Posterior
    from dfcrp.values import Json

#: Names that are printed.
SHOWN = 10


@click.command(
    name="status",
    options_metavar="[OPTIONS]",
    short_help="Which images are done, and what to show or decide next.",
)
@click.argument("run", type=click.Path(path_type=Path), metavar="RUN")
@click.option("--json", "as_json", is_flag=True, help="Everything as JSON, for programs.")
@click.option(
    "--queue",
    type=int,
    metavar="N",
    help="Also write RUN/queue.csv: the N questions whose answers say most about the number of "
    "objects.",
)
@likelihood_option
def command(run: Path, as_json: bool, queue: int | None, likelihood: str | None) -> None:
    """Say of the finished run in RUN which images are done, contested, and to be shown next.

    An image is done if it needs no more looks by the settings retire_complete and retire_settled;
    it is contested if nothing more is likely to be found, but people disagree on what is
    there. What is left is to be shown next, those first for which one more look is worth most. This
    needs the prior detection.
    """
    from dfcrp.markup import plural
    from dfcrp.posterior.saving import load
    from dfcrp.runs.folder import write_table
    from dfcrp.values import as_json as plain

    posterior = load(run, likelihood=likelihood)
    found, word = status_of(posterior), posterior.likelihood.image_word(posterior.items)
    if queue is not None:
        write_table(run, "queue.csv", posterior.review_queue(queue))
    if as_json:
        click.echo(json.dumps(plain(found), indent=1))
        return
    for name, words in (
        ("done", "need no more looks"),
        ("contested", "are complete, but people disagree"),
        ("next", "are to be shown next"),
    ):
        listed = found[name]
        more = ", ..." if len(listed) > SHOWN else ""
        names = f"{', '.join(listed[:SHOWN])}{more}"
        click.echo(f"{len(listed):,} {plural(word)} {words}: {names}".rstrip(": "))


def status_of(posterior: Posterior) -> Json:
    """Images by what is to be done with them, by their names in the data, and a row for each."""
    from dfcrp.errors import InputError

    if not posterior.prior.knows_reality or posterior.many is None:
        raise InputError(
            "status is about several images under the prior detection, which alone says when an "
            "image needs no more looks; fit with --prior detection"
        )
    table: pandas.DataFrame = posterior.image_table()
    asked = posterior.config.summary
    complete = table["p_complete"] >= asked.retire_complete
    settled = table["p_settled"] >= asked.retire_settled
    done = table["retire"].astype(bool)
    contested = ~done & complete & ~settled
    waiting = table[~done & ~contested].sort_values("look_value", ascending=False, kind="stable")
    names = ("image", "n_looks", "n_objects", "p_complete", "p_settled", "look_value")
    rows = table[list(names)].to_dict("records")
    for row, is_done, is_contested in zip(rows, done, contested, strict=True):
        row |= {"done": bool(is_done), "contested": bool(is_contested)}
    return {
        "done": table["image"][done].tolist(),
        "contested": table["image"][contested].tolist(),
        "next": waiting["image"].tolist(),
        "images": rows,
    }

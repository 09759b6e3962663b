"""What the report says of items of any kind; the rest is in each likelihood's own ``report``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from dfcrp.markup import Column, Section, counted, estimate_of, join, listed, one, paragraph, table
from dfcrp.values import Json

if TYPE_CHECKING:
    from dfcrp.items.items import Items
    from dfcrp.report.contents import Contents

#: Columns of a table of estimates after the first.
ESTIMATES = (Column("mean"), Column("95 %: from"), Column("to"))


def counted_items(items: Items, noun: str) -> str:
    """How many items, by how many experts."""
    return f"{counted(len(items), noun)} by {counted(len(items.experts), 'expert')}"


def data_words(items: Items, noun: str) -> list[str]:
    """The number of items and the columns that describe them."""
    return [f"{counted_items(items, noun)}, each with {listed(list(items.columns))}."]


def reach_words(radius: float | str | None, nearest: int | None, noun: str) -> list[str]:
    """Which items could share a cluster at all, where that goes by distance."""
    an_item = one(noun).capitalize()
    if nearest is not None:
        return [f"{an_item} could only share a cluster with the {nearest} nearest to it."]
    if radius is None:
        return [f"There was no limit on how far {one(noun)} may lie from its cluster."]
    if radius == "auto":
        return [
            f"The largest distance between {one(noun)} and its cluster was chosen from the data."
        ]
    return [f"{an_item} could only join clusters with a member within {radius:g} of it."]


def estimates(found: Json, names: Mapping[str, str]) -> list[list[object]]:
    """Rows of a table: each number of ``names`` that there is, with its 95 % interval."""
    return [[words, *estimate_of(found[name])] for name, words in names.items() if name in found]


def learned_section(
    title: str, sentences: Iterable[str], rows: list[list[object]], caption: str
) -> Section:
    """A section on what was learned of the scatter of items, from ``estimates``."""
    body = table([Column("quantity", number=False), *ESTIMATES], rows, caption)
    return Section("learned", title, join([*map(paragraph, sentences), body]))


def learned(contents: Contents) -> Section | None:
    """Every number that was learned, by its name."""
    posterior = contents.posterior
    tolerances = posterior.tolerances or {}
    found = {name: row for name, row in tolerances.items() if isinstance(row, Mapping)}
    if not found:
        return None
    words = posterior.likelihood.learned_words(tolerances)
    rows = estimates(found, {name: name for name in found})
    return learned_section("What was learned?", words, rows, "Posterior mean and 95 % interval.")

"""How careless items are, where that was learned: what is stored with a draw, and in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dfcrp.draws import Columns, Draws, shared_variable
from dfcrp.markup import plural
from dfcrp.rounding import estimate_of

#: Names of the shares of the wider levels, as they follow each other in the law.
WIDE, WIDEST = "careless_3", "careless_9"
#: The same in plain words.
TAIL_WORDS = {
    WIDE: "share of items with 3 times the usual scatter",
    WIDEST: "share of items with 9 times the usual scatter",
}
TAIL_COLUMNS = Columns.plain(shared=(WIDE, WIDEST))
#: What ``careless`` gives.
CARELESS = {
    "careless_percent": "%",
    "careless_wide_percent": "3 times the usual scatter, %",
    "careless_widest_percent": "9 times the usual scatter, %",
}


def careless(draws: Draws) -> dict[str, NDArray[np.float64]]:
    """Percentages of careless items, (chains, draws); nothing if none were allowed."""
    wide, widest = shared_variable(draws, WIDE), shared_variable(draws, WIDEST)
    if wide is None or widest is None:
        return {}
    values = (100.0 * (wide + widest), 100.0 * wide, 100.0 * widest)
    return dict(zip(CARELESS, values, strict=True))


def new_levels(
    columns: Columns, shared: NDArray[np.float64], count: int, rng: np.random.Generator
) -> NDArray[np.float64]:
    """By how much the scatter of so many new items is above the usual, by the shares of a draw."""
    if WIDE not in columns.slices:
        return np.ones(count)
    wide, widest = (float(shared[columns.slices[name]][0]) for name in (WIDE, WIDEST))
    return np.asarray(
        rng.choice([1.0, 3.0, 9.0], size=count, p=[1.0 - wide - widest, wide, widest])
    )


def careless_words(found: Mapping[str, Any], noun: str) -> list[str]:
    """How many items are careless, in a sentence."""
    row = found.get("careless_percent")
    if row is None:
        return []
    said = estimate_of(row)
    return [
        f"{said.mean} % of the {plural(noun)} are careless (95 %: {said.interval}): they scatter "
        "by 3 to 9 times as much as the others."
    ]

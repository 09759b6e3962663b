"""Circles that have been read and checked, with all that their file says of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dfcrp.items.checks import Cells, to_names, to_numbers
from dfcrp.items.site import Site

_NAMED_ROWS = 5


@dataclass(frozen=True)
class LeftOut:
    """An entry that could not be read as a circle."""

    why: str
    """What it is, in the singular: "line", "polygon that is no circle"."""
    row: int


@dataclass(frozen=True)
class Records:
    """The circles of one file or several, on their way to `Markings` or to another format."""

    columns: Mapping[str, Any]
    """Keyed by role: x, y, diameter, and where known expert, image, id, truth."""
    site: Site
    extra: Mapping[str, Cells] = field(default_factory=dict)
    """The other columns, as they came."""
    left_out: Sequence[LeftOut] = ()

    def __len__(self) -> int:
        return len(self.columns["x"])

    def select(self, keep: NDArray[np.bool_]) -> Records:
        """Keep the circles where the mask is true."""
        at = np.flatnonzero(keep).tolist()

        def picked(values: Any) -> Any:
            return values[keep] if isinstance(values, np.ndarray) else [values[k] for k in at]

        return Records(
            {role: picked(values) for role, values in self.columns.items()},
            self.site,
            {name: picked(values) for name, values in self.extra.items()},
            self.left_out,
        )

    def typed_extra(self) -> dict[str, list[Any]]:
        """The other columns as whole numbers, numbers or text, with None for what is missing."""
        return {name: typed(values) for name, values in self.extra.items()}


def typed(values: Cells) -> list[Any]:
    """Turn a column into numbers if all of it that is not missing are numbers, else into text."""
    names = to_names(values)
    there = [value for value, name in zip(values, names, strict=True) if name]
    # A nested list would become an array of more than one dimension.
    simple = not any(isinstance(value, (list, tuple, dict)) for value in there)
    numbers = to_numbers(there if simple else [None])
    if not len(numbers) or not np.isfinite(numbers).all():
        return [name or None for name in names]
    decimal = all(name.lstrip("+-").isdecimal() for name in names if name)
    whole = decimal and bool((np.abs(numbers) < 2**53).all())
    found = iter(numbers.tolist())
    return [(int(next(found)) if whole else next(found)) if name else None for name in names]


def describe_left_out(left_out: Sequence[LeftOut], record: str) -> str:
    """List what was left out, with counts and places: "2 lines (rows 4, 17), 1 box (row 9)"."""
    rows: dict[str, list[int]] = {}
    for entry in left_out:
        rows.setdefault(entry.why, []).append(entry.row)
    parts = []
    for why, at in sorted(rows.items()):
        named = ", ".join(str(row) for row in at[:_NAMED_ROWS])
        more = ", ..." if len(at) > _NAMED_ROWS else ""
        noun, _, rest = why.partition(" ")
        plural = noun if len(at) == 1 else noun + ("es" if noun.endswith("x") else "s")
        rest = rest if len(at) == 1 else rest.replace("that is no circle", "that are no circles")
        parts.append(
            f"{len(at)} {plural}{' ' if rest else ''}{rest} "
            f"({record}{'s' if len(at) > 1 else ''} {named}{more})"
        )
    return "; ".join(parts)

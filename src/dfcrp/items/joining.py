"""Items and more items: new ones, and others that take the place of earlier ones with their ids."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dfcrp.errors import DfcrpWarning, InputError
from dfcrp.items.footprints import Footprint
from dfcrp.items.items import PER_ITEM, Items
from dfcrp.items.looks import Look, Looked
from dfcrp.values import Array, Json


class Joined(NamedTuple):
    """All items, and how many of them are new or take the place of another."""

    items: Items
    new: int
    corrected: int


def with_more(items: Items, more: Items) -> Joined:
    """The items as they were given, with more of the same kind.

    One with the id of an earlier item takes its place, in all it says. Where both have plain
    numbers for ids, which nobody gave them, the new ones go on counting.
    """
    before = items.given or items
    _refuse_others(before, more)
    names = more.id.tolist()
    if _numbered(before) and _numbered(more):
        names = [str(len(before) + row + 1) for row in range(len(more))]
    place = {name: row for row, name in enumerate(before.id.tolist())}
    rows, count = [], len(before)
    for name in names:
        rows.append(place.get(name, count))
        count += name not in place
    at = np.array(rows)
    columns = {
        name: _filled(values, more.columns[name], at, count)
        for name, values in before.columns.items()
    }
    about: Json = {"expert": _filled(before.expert, more.expert, at, count)}
    for role in PER_ITEM:
        one, other = getattr(before, role), getattr(more, role)
        if role == "id":
            other = np.array(names)
        if one is not None or other is not None:
            like = one if one is not None else other
            one = _missing(like, len(before)) if one is None else one
            about[role] = _filled(
                one, _missing(like, len(more)) if other is None else other, at, count
            )
    with warnings.catch_warnings():
        # What was on one list twice was told when it was read.
        warnings.simplefilter("ignore", DfcrpWarning)
        found = Items.from_columns(columns, kind=before.kind, looked=_looked(before, more), **about)
    new = count - len(before)
    found = replace(
        found,
        sources=(*before.sources, *more.sources),
        filters=before.filters,
        site=before.site,
        notes=(*before.notes, *more.notes),
        updates=before.updates or items.updates,
    )
    return Joined(found, new, len(more) - new)


def _refuse_others(before: Items, more: Items) -> None:
    """Refuse what cannot be joined."""
    if before.kind != more.kind or set(before.columns) != set(more.columns):
        raise InputError(
            f"the run is of {before.kind} with the columns {', '.join(before.columns)}, but what "
            f"is to be added are {more.kind} with {', '.join(more.columns)}"
        )
    if before.candidates is not None or more.candidates is not None:
        raise InputError(
            "only pairs that were given may share an object in this run, and of new items nobody "
            "has said which do; fit all items again, with all pairs"
        )
    if (before.image is None) != (more.image is None):
        which, other = ("run", "new") if before.image is not None else ("new", "run's")
        raise InputError(f"the {which} items name their images, and the {other} items do not")
    if before.looked is None and more.looked is not None:
        raise InputError(
            "the run does not know who looked at its images, so it cannot be said of the new ones "
            "alone; fit all items again, with all looks"
        )


def _numbered(items: Items) -> bool:
    """Whether ids are the numbers that items without ids get."""
    return items.id.tolist() == [str(row + 1) for row in range(len(items))]


def _filled(one: Array, other: Array, at: NDArray[np.int64], count: int) -> Array:
    """The values of both, those of ``other`` in the rows ``at``."""
    found = np.concatenate([one, np.empty(count - len(one), np.result_type(one, other))])
    found[at] = other
    return found


def _missing(like: Array, n: int) -> Array:
    """Nothing said, of the type of some values."""
    return np.full(n, np.nan) if like.dtype.kind == "f" else np.full(n, "", dtype=like.dtype)


def _looked(before: Items, more: Items) -> Looked | None:
    """All looks; None if nobody says it. Whoever has an item on an image looked at it."""
    if before.looked is None:
        return None
    looked = before.looked if more.looked is None else np.concatenate([before.looked, more.looked])
    parts: Mapping[Look, Footprint] = {**(before.footprints or {}), **(more.footprints or {})}
    return Looked(np.unique(looked, axis=0), parts)

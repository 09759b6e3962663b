"""Records: fields of one list that share no value with those of the others."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dfcrp.first_look.finding import Finding, percent

if TYPE_CHECKING:
    from dfcrp.items.items import Items

Texts = NDArray[np.str_]

#: Values that are compared, at most, and that a field must have to tell.
MOST_VALUES, LEAST_VALUES = 20_000, 10
#: Lists that are compared one by one.
MOST_LISTS = 25
#: A list shares hardly any value of a field if it is less than the first, where another field of
#: its list, or the same field of other lists, shares more than the second.
HARDLY, USUALLY = 0.02, 0.3


def _letters(text: str) -> str:
    return re.sub(r"[\W_]+", "", text.casefold())


def _sorted_numbers(text: str) -> str:
    """A date's numbers in any order, and its letters."""
    numbers = sorted(part.lstrip("0") for part in re.findall(r"\d+", text))
    return " ".join([*numbers, re.sub(r"[\W\d_]+", "", text.casefold())])


def _sorted_words(text: str) -> str:
    return " ".join(sorted(re.findall(r"\w+", text.casefold())))


#: What would bring values together, and how values are compared then.
WAYS: tuple[tuple[str, Callable[[str], str]], ...] = (
    ("in other case or punctuation", _letters),
    ("with their numbers in another order", _sorted_numbers),
    ("with their words in another order", _sorted_words),
)


def fields_apart(items: Items) -> Iterator[Finding]:
    """A field of a list whose values no other list has, where such fields are mostly shared."""
    experts = len(items.experts)
    if not 2 <= experts <= MOST_LISTS:
        return
    values = {name: _by_list(column, items) for name, column in items.columns.items()}
    shared = {
        name: [_share(lists[f], _others(lists, f)) for f in range(experts)]
        for name, lists in values.items()
    }
    for name in values:
        for f in range(experts):
            if not shared[name][f] < HARDLY:
                continue
            found = _explained(name, f, values)
            if found is not None:
                share, how = found
                yield Finding(
                    "fields",
                    f"{items.experts[f]}: {percent(shared[name][f])} of the values of {name} stand "
                    f"on another list as they are, {percent(share)} {how}. Write the field in one "
                    "way on all lists",
                    (items.experts[f],),
                    {"field": name, "share": shared[name][f], "share_if_mended": share},
                )
            if experts == 2:
                break  # what one list lacks the other lacks as well


def _by_list(column: Texts, items: Items) -> list[Texts]:
    """The distinct values of a field on each list."""
    found = []
    for f in range(len(items.experts)):
        own = np.unique(column[items.families == f])
        own = own[own != ""]
        if len(own) > MOST_VALUES:
            # By what a value is, so that lists keep the same ones.
            own = own[np.array([hash_of(value) for value in own.tolist()]).argsort()[:MOST_VALUES]]
        found.append(own)
    return found


def hash_of(text: str) -> int:
    """The same number for the same text, in every process."""
    import zlib

    return zlib.crc32(text.encode())


def _others(lists: list[Texts], f: int) -> Texts:
    return np.concatenate([own for g, own in enumerate(lists) if g != f])


def _share(own: Texts, others: Texts) -> float:
    """The share of values that others have; NaN where there are few."""
    if len(own) < LEAST_VALUES or len(others) < LEAST_VALUES:
        return float("nan")
    return float(np.isin(own, others).mean())


def _explained(name: str, f: int, values: dict[str, list[Texts]]) -> tuple[float, str] | None:
    """The share of values that others have if read in another way, and in which."""
    own = values[name][f]
    for other, lists in values.items():
        if other != name and (share := _share(own, _others(lists, f))) > USUALLY:
            mine = _share(own, lists[f])
            if not mine > HARDLY:
                return share, f"in their field {other}, as if the two were exchanged"
    theirs = _others(values[name], f)
    best = USUALLY, ""
    for how, way in WAYS:
        read = np.unique([way(value) for value in own.tolist()])
        known = np.unique([way(value) for value in theirs.tolist()])
        share = _share(read[read != ""], known[known != ""])
        best = (share, how) if share > best[0] else best
    return best if best[1] else None

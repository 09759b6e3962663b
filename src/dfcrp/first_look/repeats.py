"""Records: a list that seems to have its objects in several rows.

Two records of one list are taken for two objects. In a list of credits, say, a person stands in as
many rows as there are films. Then records of one list agree in everything that both have as often
as records of different lists do, and a model that takes the former for chance and for likeness of
different objects finds no matches at all.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dfcrp.first_look.finding import Finding, percent

if TYPE_CHECKING:
    from dfcrp.items.items import Items

Ints = NDArray[np.int64]

#: Records that are looked at, and others with the same value of a field that are compared.
MOST_LOOKED, MOST_ALIKE = 3000, 30
#: Records of a list that would agree with one in as much by chance, at most, where values say
#: anything; and fewest fields in which an agreement may differ.
BY_CHANCE = 2.0
#: A list repeats objects if this share of its records agree with another one of it, and this share
#: of as many as agree with one of another list.
MANY, AS_MANY = 0.1, 0.5
#: Lists that are looked at one by one.
MOST_LISTS = 25


def objects_repeated(items: Items) -> Iterator[Finding]:
    """Lists with records that agree with others of the same list in all that both have."""
    experts = len(items.experts)
    codes = np.column_stack([_codes(values) for values in items.columns.values()])
    if not 2 <= experts <= MOST_LISTS or len(codes) < 2:
        return
    source = np.asarray(items.families, np.int64)
    looked = np.sort(np.random.default_rng(len(codes)).permutation(len(codes))[:MOST_LOOKED])
    pairs = _agreeing(codes, looked, len(codes) / experts)
    same = source[pairs[:, 0]] == source[pairs[:, 1]]
    number = np.bincount(source[looked], minlength=experts)
    own, other = (_with_any(pairs[kind], source, experts) / number for kind in (same, ~same))
    for f in np.flatnonzero((own >= MANY) & (own >= AS_MANY * other)).tolist():
        one, two = pairs[same & (source[pairs[:, 0]] == f)][0]
        yield Finding(
            "repeats",
            f"{items.experts[f]}: {percent(own[f])} of the records agree in all that both have "
            f"with another record of the same list (records {items.id[one]} and {items.id[two]}, "
            f"for example), {percent(other[f])} with one of another list. No list is thought to "
            "have an object twice, so that records of one list are never linked, and such likeness "
            "counts against links. If objects may stand in several rows of a list, say so with "
            '--prior crp (in Python prior="crp"), or leave one row of each',
            (items.experts[f],),
            {"share_like_own": float(own[f]), "share_like_others": float(other[f])},
        )


def _codes(values: NDArray[np.str_]) -> Ints:
    """A number for each value, whatever its capital letters; -1 where it is missing."""
    plain = np.char.strip(np.char.lower(values))
    codes = np.unique(plain, return_inverse=True)[1].ravel().astype(np.int64)
    codes[plain == ""] = -1
    return codes


def _agreeing(codes: Ints, looked: Ints, per_list: float) -> Ints:
    """Pairs of a record that is looked at and another one, which differ in nothing that both have.

    What they agree in must be more than chance: a value of a field that is as good as d equally
    frequent ones is met by one in d of the other objects.
    """
    telling = np.log(np.maximum([_distinct(column) for column in codes.T], 1.0))
    found = [np.empty((0, 2), np.int64)]
    for column in codes.T:
        pairs = _alike_in(column, looked)
        one, other = codes[pairs[:, 0]], codes[pairs[:, 1]]
        both = (one >= 0) & (other >= 0)
        agree = both & (one == other)
        told = agree @ telling >= np.log(max(per_list, 1.0) / BY_CHANCE)
        found.append(pairs[(agree == both).all(axis=1) & told])
    return np.unique(np.concatenate(found), axis=0)


def _distinct(column: Ints) -> float:
    """The number of values of a field: as many equally frequent ones are as surprising."""
    count = np.unique(column[column >= 0], return_counts=True)[1]
    share = count / max(count.sum(), 1)
    return float(np.exp(-(share * np.log(share)).sum())) if len(count) else 1.0


def _alike_in(column: Ints, looked: Ints) -> Ints:
    """Each record looked at, with up to so many of those that have its value."""
    order = np.argsort(column, kind="stable")
    ranked = column[order]
    wanted = looked[column[looked] >= 0]
    low = np.searchsorted(ranked, column[wanted], "left")
    high = np.searchsorted(ranked, column[wanted], "right")
    few = high - low <= MOST_ALIKE
    wanted, low, high = wanted[few], low[few], high[few]
    one = np.repeat(wanted, high - low)
    step = np.arange(len(one)) - np.repeat(np.cumsum(high - low) - (high - low), high - low)
    other = order[np.repeat(low, high - low) + step]
    return np.column_stack([one, other])[one != other]


def _with_any(pairs: Ints, source: Ints, experts: int) -> Ints:
    """By list, records that are the first of any of the pairs."""
    return np.bincount(source[np.unique(pairs[:, 0])], minlength=experts)

"""Slow twins of the record likelihood: every way in which members come by their values; words."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations, product

import numpy as np

from dfcrp.likelihoods.record import kernel
from dfcrp.likelihoods.record.levels import (
    COMMON,
    LEAST_COMMON,
    LONG,
    MOST_LEFT_OUT,
    ORDER,
    PARTS,
    SHORT,
)

UNRELATED, ALTERED, SAME = range(3)


def log_ratio(hyper, members: list[int]) -> float:
    """log R: the probability of the members' values over that of unrelated ones."""
    alike = [excess(hyper, one, other) for one, other in combinations(members, 2)]
    fields = (log_ratio_of_field(hyper, field, members) for field in range(len(hyper.kind)))
    return sum(fields) - 2.0 * sum(alike) / len(members)


def excess(hyper, one: int, other: int) -> float:
    """D."""
    start, end = hyper.alike_start[one], hyper.alike_start[one + 1]
    alike = hyper.alike[start:end].tolist()
    return float(hyper.excess[start + alike.index(other)]) if other in alike else 0.0


def log_ratio_of_field(hyper, field: int, members: list[int]) -> float:
    known = [i for i in members if hyper.values[i, field] >= 0]
    chances = []
    for i in known:
        m, t = rate(hyper, kernel.MISS, field, i), rate(hyper, kernel.ALTER, field, i)
        chances.append((m, (1 - m) * t, (1 - m) * (1 - t)))
    total = 0.0
    for ways in product(range(3), repeat=len(known)):
        chance = math.prod(of[way] for of, way in zip(chances, ways, strict=True))
        same = [i for i, way in zip(known, ways, strict=True) if way == SAME]
        altered = [i for i, way in zip(known, ways, strict=True) if way == ALTERED]
        total += chance * evidence(hyper, field, same, altered, len(known))
    return math.log(total)


def evidence(hyper, field: int, same: list[int], altered: list[int], known: int) -> float:
    """Ratio for those that have the true value and those that have an altered one."""
    if not same:
        return nobody_same(hyper, field, altered, known)
    shown = {int(hyper.values[i, field]) for i in same}
    if len(shown) > 1:
        return 0.0
    true = shown.pop()
    found = float(hyper.share[hyper.first[field] + true]) ** (1 - len(same))
    for i in altered:
        found *= altered_from(hyper, field, i, true)
    return found


def nobody_same(hyper, field: int, altered: list[int], known: int) -> float:
    """J, in a cluster with so many values that are known."""
    if len(altered) < 2:
        return 1.0
    values = [int(hyper.values[i, field]) for i in altered]
    if hyper.kind[field] != kernel.MEASURE:
        two = [table(hyper, hyper.both_altered, field, *pair) for pair in combinations(values, 2)]
        if len(altered) == 2:
            return two[0]
        few = len(altered) == 3 and known <= kernel.FEW_MEMBERS
        return sum(one * other for one, other in combinations(two, 2)) / 3 if few else 1.0
    at = hyper.first[field] + np.array(values)
    precision = np.array([1.0 / variance(hyper, field, i) for i in altered])
    places = hyper.place[at]
    mean = precision @ places / precision.sum()
    squares = float(precision @ ((places - mean) ** 2).sum(axis=1))
    log_g = hyper.log_density[at]
    d = hyper.dimensions[field]
    found = 0.5 * d * np.log(precision / (2 * math.pi)).sum()
    found -= 0.5 * d * math.log(precision.sum() / (2 * math.pi)) + 0.5 * squares
    return math.exp(found - log_g.sum() + log_g.mean())


def altered_from(hyper, field: int, i: int, true: int) -> float:
    """S."""
    seen = int(hyper.values[i, field])
    if hyper.kind[field] != kernel.MEASURE:
        return table(hyper, hyper.altered, field, true, seen)
    first, s2 = hyper.first[field], variance(hyper, field, i)
    apart = float(((hyper.place[first + seen] - hyper.place[first + true]) ** 2).sum())
    normal = (2 * math.pi * s2) ** (-0.5 * hyper.dimensions[field]) * math.exp(-0.5 * apart / s2)
    return normal / math.exp(hyper.log_density[first + seen])


def table(hyper, numbers, field: int, one: int, other: int) -> float:
    at = hyper.first[field] + one
    start, end = hyper.similar_start[at], hyper.similar_start[at + 1]
    similar = hyper.similar[start:end].tolist()
    return float(numbers[start + similar.index(other)]) if other in similar else 0.0


def variance(hyper, field: int, i: int) -> float:
    return math.exp(2 * learned(hyper, kernel.SCALE, field, i)) + float(hyper.rounding[field])


def rate(hyper, what: int, field: int, i: int) -> float:
    if hyper.entry[what, field] < 0:
        return 0.0
    return 1.0 / (1.0 + math.exp(-learned(hyper, what, field, i)))


def learned(hyper, what: int, field: int, i: int) -> float:
    own = hyper.own[what, field, hyper.source[i]]
    return float(hyper.law[hyper.entry[what, field]] + (hyper.law[own] if own >= 0 else 0.0))


def log_share(hyper, field: int, members: list[int]) -> float:
    """log Π f of the members' values, by which a ratio becomes a probability."""
    values = hyper.values[members, field]
    return float(np.log(hyper.share[hyper.first[field] + values[values >= 0]]).sum())


def level_of_parts(one: Sequence[str], other: Sequence[str]) -> int:
    """ORDER, SHORT, PARTS or COMMON for two lists of words, or 0.

    A word stands for another if it abbreviates it, or has one typing error. The words of either may
    choose, and of lists that differ in length those of the shorter.
    """
    if not one or not other:
        return 0
    ways = [(one, other), (other, one)]
    levels = [level_by_choice(*way) for way in ways if len(way[0]) <= len(way[1])]
    return min((level for level in levels if level), default=0)


def level_by_choice(one: Sequence[str], other: Sequence[str]) -> int:
    """The level if the words of the first list choose among those of the second."""
    left = list(other)
    short, equal, lost = False, 0, 0
    for word in sorted(one, key=len, reverse=True):
        if word in left:
            left.remove(word)
            equal += len(word) > 1
            continue
        like = [found for found in left if one_error(word, found)]
        if like:
            equal += 1
        else:
            like = [found for found in left if abbreviates(word, found) or abbreviates(found, word)]
            short = True
        if like:
            left.remove(max(like, key=len))
        else:
            lost += 1
    if lost or len(other) - len(one) > MOST_LEFT_OUT:
        return COMMON if equal >= LEAST_COMMON and 2 * equal >= len(other) else 0
    if left:
        return PARTS if equal else 0
    return SHORT if short else ORDER


def abbreviates(short: str, word: str) -> bool:
    """Whether a word has letters of the other, in order and from the first on: "st", "saint"."""
    if len(short) >= len(word) or short[0] != word[0]:
        return False
    letters = iter(word)
    return all(letter in letters for letter in short)


def one_error(one: str, other: str) -> bool:
    """Whether two long words differ by one typing error."""
    if min(len(one), len(other)) < LONG or abs(len(one) - len(other)) > 1:
        return False
    at = next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), len(one))
    a, b = one[at:], other[at:]
    return a[1:] == b[1:] or a[1:] == b or a == b[1:] or (a[1::-1] + a[2:] == b)

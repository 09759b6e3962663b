"""A look at the data before sampling: what seems to be a mistake, and what would mend it.

It is cheap, knows items of any kind by what their likelihood says of places and sizes, and is
silent on lists that agree. What it finds is said before the run, stands in ``summary.json`` and in
the report, and changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import numpy as np

from dfcrp.first_look.agreement import Naming, lists_apart
from dfcrp.first_look.finding import Finding
from dfcrp.first_look.lists import (
    fields_apart,
    images_apart,
    marked_twice,
    objects_repeated,
    same_lists,
)
from dfcrp.first_look.nearness import Nearness
from dfcrp.first_look.sizes import corners, radius_and_places, sizes_and_places, sizes_of_lists
from dfcrp.likelihoods.registry import likelihood_named
from dfcrp.markup import plural

if TYPE_CHECKING:
    from dfcrp.items.items import Items

#: Lists this short, on average, tell nothing: whoever gives no experts has lists of one item.
SHORT = 3.0

#: What was found, by items, radius and rule: the report asks for what a run has looked for already.
_SEEN: WeakKeyDictionary[Items, dict[tuple[float | None, bool], tuple[Finding, ...]]] = (
    WeakKeyDictionary()
)


def first_look(
    items: Items, radius: float | str | None = None, one_per_expert: bool = True
) -> tuple[Finding, ...]:
    """What looks like a mistake in these lists; nothing if all is well.

    Parameters
    ----------
    items : Items
    radius : float, optional
        That of the run, if it is a number.
    one_per_expert : bool
        Whether no expert lists an object twice, by the prior of the run.

    Returns
    -------
    tuple of Finding

    Examples
    --------
    >>> import dfcrp
    >>> from dfcrp.first_look import first_look
    >>> x = [float(k * k) for k in range(20)]
    >>> items = dfcrp.Items.circles(x + x, x + x, [2.0] * 40, ["ann"] * 20 + ["bob"] * 20)
    >>> [finding.check for finding in first_look(items)]
    ['same list']
    """
    given = float(radius) if isinstance(radius, (int, float)) else None
    seen, asked = _SEEN.setdefault(items, {}), (given, one_per_expert)
    if asked not in seen:
        seen[asked] = tuple(_look(items, *asked))
    return seen[asked]


def _look(items: Items, radius: float | None, one_per_expert: bool) -> Iterator[Finding]:
    likelihood = likelihood_named(items.kind)
    words = Naming(likelihood.noun, plural(likelihood.noun))
    if len(np.unique(items.families)) < 2 or len(items) < SHORT * len(items.experts):
        return
    yield from images_apart(items, words)
    if likelihood.text:
        yield from fields_apart(items)
        if one_per_expert:
            yield from objects_repeated(items)
    sight = likelihood.sight(items)
    if sight is None:
        return
    columns = _columns(items) if sight.names == ("x", "y") else ()
    words = replace(words, columns=columns, roles=sight.names)
    nearness = Nearness(sight, items.families, items.looks.image, items.coverage)
    if nearness.crowded or not nearness.near.any():
        return
    yield from same_lists(nearness, items.experts, words)
    apart = lists_apart(nearness, items.experts, items.looks.images, words)
    yield from apart
    if not apart:
        yield from marked_twice(nearness, items.experts, words)
    if sight.placed and not any(finding.check == "axes" for finding in apart):
        if radius is not None:
            yield from radius_and_places(nearness, radius, words)
        yield from sizes_and_places(nearness, likelihood.size_word, words)
        yield from sizes_of_lists(nearness, items.experts, likelihood.size_word, words)
        yield from corners(nearness, items.experts, words)


def _columns(items: Items) -> tuple[str, ...]:
    """The columns of the file that x and y were read from, if one file is like the other."""
    found = {
        tuple(dict(source.columns).get(role, role) for role in ("x", "y"))
        for source in items.sources
        if source.columns
    }
    return found.pop() if len(found) == 1 else ("x", "y")

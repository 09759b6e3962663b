"""Whether arrays from a checkpoint are a state that a chain can be in.

Compiled code checks nothing: a label beyond the data would make it read and write anywhere, and a
list of members that runs in a circle would never end. So what a file says is checked before it is
used, whoever wrote it. ``ValueError`` says what is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from dfcrp.values import Array

NONE = -1
#: Standard deviations of its prior that a parameter of a law may lie from the mean.
FARTHEST = 200.0

Arrays = Mapping[str, Array]


def check_state(arrays: Arrays, own: Arrays, component: Array) -> None:
    """Refuse a state that no scan can have left.

    ``own`` is any state of the chain, of the same shape: what is not a number there is not used.
    ``component`` is that of each item.
    """
    n = len(component)
    for name, values in arrays.items():
        if values.dtype.kind == "f" and (np.isnan(values) & ~np.isnan(own[name])).any():
            raise ValueError(f"{name} has values that are no numbers")
    if not np.isnan(own["alpha"][0]) and not 0 < float(arrays["alpha"][0]) < np.inf:
        raise ValueError("alpha is not positive")
    if arrays["scans"][0] < 0 or arrays["tally"].min() < 0:
        raise ValueError("counts are negative")
    _check_clusters(arrays, component, n)
    _check_order(arrays, n)


def check_parameters(
    arrays: Arrays, hyper: object, possible: Callable[[Array], NDArray[np.bool_]] | None
) -> None:
    """Refuse parameters that no prior allows, with which a chain would stay where it is for ever.

    ``possible`` tells which rows of parameters a cluster can have.
    """
    rows = arrays["theta"][arrays["size"][: len(arrays["label"])] > 0]
    if not np.isfinite(rows).all() or (possible is not None and not possible(rows).all()):
        raise ValueError("a cluster has parameters that cannot be")
    mean, sd = getattr(hyper, "law_mean", None), getattr(hyper, "law_sd", None)
    for name in ("law", "reference"):
        if mean is None or name not in arrays:
            continue
        known = min(len(mean), len(arrays[name]))
        away = np.abs(arrays[name][:known] - mean[:known])
        if not (away <= FARTHEST * np.asarray(sd)[:known]).all():
            raise ValueError(f"{name} is farther from its prior than any data could move it")


def _check_clusters(arrays: Arrays, component: Array, n: int) -> None:
    """Every item is in the list of its cluster, once, and every other slot in a list of free ones.

    Clusters live in slots; those of a component are the numbers of its items.
    """
    label, size, head = arrays["label"], arrays["size"], arrays["head"]
    after, before = arrays["after"], arrays["before"]
    _check_range("label", label, 0, n)
    for name in ("head", "after", "before", "free_after", "free_head"):
        _check_range(name, arrays[name], NONE, n)
    if not np.array_equal(component[label], component):
        raise ValueError("a cluster reaches beyond its component")
    if not np.array_equal(np.bincount(label, minlength=n), size[:n]):
        raise ValueError("sizes of clusters are not those of their members")
    used = np.flatnonzero(size[:n] > 0)
    _check_lists("members of clusters", head[used], after, used, label)
    first = np.full(n, NONE, before.dtype)
    followed = np.flatnonzero(after != NONE)
    first[after[followed]] = followed
    if not np.array_equal(first, before):
        raise ValueError("members of clusters are not linked both ways")
    free = np.flatnonzero(size[:n] == 0)
    owners = np.arange(len(arrays["free_head"]))
    heads, nexts = arrays["free_head"], np.full(n, NONE, np.int64)
    nexts[free] = arrays["free_after"][free]
    begun = heads != NONE
    of_slot = np.where(size[:n] == 0, component, NONE)
    _check_lists("free slots", heads[begun], nexts, owners[begun], of_slot)


def _check_lists(
    what: str,
    heads: Array,
    after: Array,
    owners: Array,
    owner_of: Array,
) -> None:
    """Lists that begin at ``heads`` visit every element of their owner, once, and end.

    Elements that belong to nobody have the owner NONE. Each has one place in its list: the number
    of steps to the end is found by doubling.
    """
    elements = np.flatnonzero(owner_of != NONE)
    if len(heads) and (heads.min() < 0 or not np.array_equal(owner_of[heads], owners)):
        raise ValueError(f"{what}: a list begins in another one")
    followed = elements[after[elements] != NONE]
    targets = after[followed]
    if not np.array_equal(owner_of[targets], owner_of[followed]):
        raise ValueError(f"{what}: a list leads into another one")
    reached = np.concatenate([heads, targets])
    if len(reached) != len(elements) or not np.array_equal(np.sort(reached), elements):
        raise ValueError(f"{what}: an element is in no list, or in two")
    # With one way into each element, what does not come to an end runs in a circle.
    end = len(owner_of)
    jump = np.full(end + 1, end, np.int64)
    jump[followed] = targets
    for _ in range(int(np.ceil(np.log2(max(2, end + 1))))):
        jump = jump[jump]
    if (jump[elements] != end).any():
        raise ValueError(f"{what}: a list runs in a circle")


def _check_order(arrays: Arrays, n: int) -> None:
    """The order of arrival is a permutation, and the ranks are its inverse."""
    order, rank = arrays["order"], arrays["rank"]
    _check_range("order", order, 0, n)
    _check_range("rank", rank, 0, n)
    if not np.array_equal(order[rank], np.arange(n)) or not np.array_equal(
        rank[order], np.arange(n)
    ):
        raise ValueError("the order of arrival is no order")
    _check_range("seated", arrays["seated"], 0, n + 1)


def _check_range(name: str, values: Array, low: int, beyond: int) -> None:
    if values.size and (values.min() < low or values.max() >= beyond):
        raise ValueError(f"{name} has numbers beyond the {beyond} items")

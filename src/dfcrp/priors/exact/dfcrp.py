"""The dysfunctional family Chinese restaurant process as a distribution over partitions.

Items arrive in some order. With D the number of those already seated at tables without the
newcomer's family, it joins table k of n_k members (no relative among them) with probability
n_k / (D + alpha) and opens a new table with probability alpha / (D + alpha). Given the order,

    p(c | alpha, x, order) = alpha^K * prod_k (n_k - 1)! * prod_i 1 / (D_i + alpha),

and p(c | alpha, x) is the mean of this over all n! orders. Only the D_i know the order.
If every item is a family of its own this is the Chinese restaurant process (``dfcrp.crp``).

``labels`` say which cluster an item is in (any integers), ``families`` which family (any
values that compare: expert names will do). Which label a cluster bears never matters.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaln

from dfcrp.compiled.random import stream
from dfcrp.errors import DfcrpWarning, SettingsError
from dfcrp.priors.exact import seating
from dfcrp.values import Array

#: Up to so many items ``log_prob`` averages over every order: 2^20 sets of items, about 0.2 s.
EXACT_LIMIT = 20

#: Orders drawn beyond that, unless told otherwise.
DEFAULT_ORDERS = 1000

#: ``partitions`` refuses to list more than this.
MOST_PARTITIONS = 1_000_000

#: A standard error of log p above this means that a few of the drawn orders decide everything.
_POOR_ERROR = 0.3

# Beyond these the concentration is zero or infinite in all but name, and products overflow.
_ALPHA_RANGE = (1e-20, 1e20)

Codes: TypeAlias = NDArray[np.int64]
Seed: TypeAlias = int | np.random.Generator | None


class Bounds(NamedTuple):
    """What the family rule alone says of any partition."""

    fewest_clusters: int
    most_clusters: int
    smallest_cluster: int
    largest_cluster: int


def bounds(families: ArrayLike) -> Bounds:
    """Bounds on the number of clusters and on their size.

    There are at least as many clusters as the largest family has members, at most one for each
    item; a cluster holds between one item and one of each family.
    """
    codes = _family_codes(families)
    counts = np.bincount(codes)
    return Bounds(int(counts.max()), codes.size, 1, counts.size)


def count_partitions(families: ArrayLike) -> int:
    """Number of partitions in which no cluster holds a family twice.

    Families are added one by one. Where there are K clusters, j of a family's m members can
    join j of them in C(m, j) * K! / (K - j)! ways; the others open clusters of their own.
    """
    ways = {0: 1}
    for members in np.bincount(_family_codes(families)).tolist():
        grown: dict[int, int] = {}
        for clusters, count in ways.items():
            for joining in range(min(members, clusters) + 1):
                more = clusters + members - joining
                choices = math.comb(members, joining) * math.perm(clusters, joining)
                grown[more] = grown.get(more, 0) + count * choices
        ways = grown
    return sum(ways.values())


def partitions(families: ArrayLike) -> list[tuple[int, ...]]:
    """Every partition in which no cluster holds a family twice, as label tuples.

    Labels count up from 0 in order of first appearance, so each partition is listed once; the
    list is in lexicographic order. More than ``MOST_PARTITIONS`` are refused.
    """
    codes = _family_codes(families)
    count = count_partitions(codes)
    if count > MOST_PARTITIONS:
        raise SettingsError(
            f"these {codes.size} items have {count:.3g} valid partitions; at most "
            f"{MOST_PARTITIONS:,} are listed. Draw from them with dfcrp.prior.sample."
        )
    return list(_extend((), [], codes.tolist()))


def _extend(
    head: tuple[int, ...], clusters: list[set[int]], families: list[int]
) -> Iterator[tuple[int, ...]]:
    """Complete a partition of the first items in every valid way, left to right."""
    if len(head) == len(families):
        yield head
        return
    family = families[len(head)]
    for label, held in enumerate(clusters):
        if family not in held:
            held.add(family)
            yield from _extend((*head, label), clusters, families)
            held.remove(family)
    clusters.append({family})
    yield from _extend((*head, len(clusters) - 1), clusters, families)
    clusters.pop()


def log_prob_given_order(
    labels: ArrayLike, families: ArrayLike, alpha: float, order: Sequence[int] | ArrayLike
) -> float:
    """log p(c | alpha, x, order); ``order`` lists the items, first arrival first.

    -inf if a cluster holds a family twice.
    """
    clusters, codes = _check_partition(labels, families)
    arrivals = np.asarray(order)
    if arrivals.dtype.kind not in "iu" or not np.array_equal(
        np.sort(arrivals, axis=None), np.arange(codes.size)
    ):
        raise SettingsError(f"order must list each of the items 0 to {codes.size - 1} once")
    seats = _seats(clusters, codes)
    arrivals = arrivals.ravel().astype(np.int64)
    return float(
        seating.log_prior_given_order(clusters, codes, arrivals, _check_alpha(alpha), seats)
    )


def log_prob(
    labels: ArrayLike,
    families: ArrayLike,
    alpha: float,
    *,
    n_orders: int | None = None,
    seed: Seed = None,
) -> float:
    """log p(c | alpha, x), the order of arrival averaged out; -inf for an invalid partition.

    Up to ``EXACT_LIMIT`` items the mean over all n! orders is exact, by a recursion over the
    sets of items already seated; ``n_orders`` and ``seed`` then play no part. Beyond, it is
    the mean over ``n_orders`` uniformly drawn orders (``DEFAULT_ORDERS`` unless given), see
    ``log_prob_with_error``; a warning says when their number was too small to be of use.
    """
    clusters, codes = _check_partition(labels, families)
    if codes.size <= EXACT_LIMIT:
        return _exact_log_prob(clusters, codes, _check_alpha(alpha))
    value, error = log_prob_with_error(clusters, codes, alpha, n_orders=n_orders, seed=seed)
    if error > _POOR_ERROR:
        warnings.warn(
            f"the log probability of this partition of {codes.size} items rests on a few of the "
            f"orders drawn (standard error {error:.2g}, likely more): raise n_orders",
            DfcrpWarning,
            stacklevel=2,
        )
    return value


def log_prob_with_error(
    labels: ArrayLike,
    families: ArrayLike,
    alpha: float,
    *,
    n_orders: int | None = None,
    seed: Seed = None,
) -> tuple[float, float]:
    """Monte Carlo log p(c | alpha, x) and its standard error, whatever the number of items.

    The log of the mean of p(c | alpha, x, order) over uniformly drawn orders; the error is the
    relative standard error of that mean. It is honest while it is small: when a single order
    outweighs all others it tends to 1 and the estimate lies too low.
    """
    clusters, codes = _check_partition(labels, families)
    drawn = DEFAULT_ORDERS if n_orders is None else n_orders
    if drawn < 2:
        raise SettingsError(f"n_orders is {drawn}; at least 2 are needed to state an error")
    rng = np.random.default_rng(seed)
    seats = _seats(clusters, codes)
    concentration = _check_alpha(alpha)
    log_probs = np.array(
        [
            seating.log_prior_given_order(
                clusters, codes, rng.permutation(codes.size), concentration, seats
            )
            for _ in range(drawn)
        ]
    )
    if log_probs[0] == -np.inf:
        return -math.inf, 0.0
    largest = log_probs.max()
    relative = np.exp(log_probs - largest)
    error = relative.std(ddof=1) / (relative.mean() * math.sqrt(drawn))
    return float(largest + np.log(relative.mean())), float(error)


def sample(families: ArrayLike, alpha: float, draws: int, seed: Seed) -> NDArray[np.int32]:
    """Independent partitions from p(c | alpha, x), shape (draws, n).

    Each row seats the items afresh, in an order of its own drawn uniformly. Labels count up
    from 0 in order of first appearance.
    """
    codes = _family_codes(families)
    if draws < 0:
        raise SettingsError(f"draws is {draws}; it must not be negative")
    labels = np.empty((draws, codes.size), np.int32)
    tables = seating.empty_tables(codes.size, codes.max() + 1)
    rng = stream(np.random.default_rng(seed))
    seating.sample_partitions(codes, _check_alpha(alpha), labels, tables, rng)
    return labels


def expected_clusters(
    families: ArrayLike, alpha: float, *, draws: int = 1000, seed: Seed = None
) -> float:
    """Mean number of clusters under the prior, over ``draws`` simulated partitions."""
    if draws < 1:
        raise SettingsError(f"draws is {draws}; a mean needs at least 1")
    return float(sample(families, alpha, draws, seed).max(axis=1).mean() + 1)


def _exact_log_prob(clusters: Codes, codes: Codes, alpha: float) -> float:
    if np.unique(clusters * codes.size + codes).size < codes.size:
        return -math.inf
    # Between alpha (D = 0) and alpha + 1 (D = 1): neither end can carry a product out of range.
    scale = math.sqrt(alpha * (1 + alpha))
    weights = scale / (np.arange(codes.size) + alpha)
    mean = seating.mean_over_orders(
        clusters, codes, weights, np.empty(1 << codes.size), _seats(clusters, codes)
    )
    sizes = np.bincount(clusters)
    numerator = sizes.size * math.log(alpha) + float(gammaln(sizes).sum())
    return numerator + math.log(mean) - codes.size * math.log(scale)


def _seats(clusters: Codes, codes: Codes) -> seating.Seats:
    return seating.empty_seats(clusters.max() + 1, codes.size, codes.max() + 1)


def _check_alpha(alpha: float) -> float:
    low, high = _ALPHA_RANGE
    if not low <= alpha <= high:
        raise SettingsError(f"alpha is {alpha}; it must lie between {low:g} and {high:g}")
    return float(alpha)


def _check_partition(labels: ArrayLike, families: ArrayLike) -> tuple[Codes, Codes]:
    """Labels and families as codes 0, 1, ... without gaps."""
    codes = _family_codes(families)
    given = np.asarray(labels)
    if given.dtype.kind not in "iu" or given.shape != codes.shape:
        raise SettingsError(
            f"labels must be {codes.size} integers, one for each item; "
            f"got shape {given.shape} of {given.dtype}"
        )
    return np.unique(given, return_inverse=True)[1].astype(np.int64), codes


def _family_codes(families: ArrayLike) -> Codes:
    given: Array = np.asarray(families)
    if given.ndim != 1 or given.size == 0:
        raise SettingsError(
            f"families must be a list with one entry for each item; got shape {given.shape}"
        )
    return np.unique(given, return_inverse=True)[1].astype(np.int64)

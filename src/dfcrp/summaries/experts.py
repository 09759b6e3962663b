"""How the experts compare: overlap, marks of their own, and what only they missed.

Where there are thousands of experts, only pairs that share an object are ever formed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from dfcrp.draws import Draws
from dfcrp.summaries.consensus import family_arrays
from dfcrp.summaries.kernels.partitions import add_alone
from dfcrp.summaries.kernels.tables import expert_counts
from dfcrp.summaries.looked import Coverage, everyone, who_looked
from dfcrp.summaries.streaming import Interval, kept, label_blocks, stride_for, summarise
from dfcrp.values import Json

if TYPE_CHECKING:
    import pandas


class Agreement(NamedTuple):
    """How the experts compare in some draws."""

    #: Jaccard coefficients of the pairs that are compared; (draws, compared, compared).
    matrix: NDArray[np.float32]
    #: Mean Jaccard coefficient of each expert with all others; (draws, experts).
    with_others: NDArray[np.float64]
    #: Clusters of one marking, by whose it is; (draws, experts).
    alone: NDArray[np.int64]
    #: Clusters with all experts but one, by who is not in it; (draws, experts).
    lacking: NDArray[np.int64]
    #: The same two where an expert looked, whoever's they are.
    alone_there: NDArray[np.int64]
    lacking_there: NDArray[np.int64]


def count_sparsely(
    labels: NDArray[np.int32],
    codes: NDArray[np.int64],
    compared: NDArray[np.int64],
    coverage: Coverage,
) -> Agreement:
    """Compare the experts in each draw, in memory that grows with the pairs sharing a cluster."""
    shape = (len(labels), coverage.n_experts)
    found = Agreement(
        np.empty((len(labels), len(compared), len(compared)), np.float32),
        np.empty(shape),
        *(np.zeros(shape, np.int64) for _ in range(4)),
    )
    for d, draw in enumerate(labels):
        if coverage.in_parts:
            one = _compare_where_looked(draw, codes, compared, coverage)
            for name in Agreement._fields:
                getattr(found, name)[d] = getattr(one, name)[0]
        else:
            _compare(draw, codes, compared, d, found)
    return found


def _compare_where_looked(
    draw: NDArray[np.int32],
    codes: NDArray[np.int64],
    compared: NDArray[np.int64],
    coverage: Coverage,
) -> Agreement:
    """The same of one draw where not everyone looked everywhere."""
    found = tallies_where_looked(draw[np.newaxis], codes, coverage)
    either = found.either.tocoo()
    both = found.both[either.row, either.col]
    met = either.data > 0
    where, shape = (either.row[met], either.col[met]), found.either.shape
    jaccard = csr_array((both[met] / either.data[met], where), shape=shape)
    known = csr_array((np.ones(len(where[0]), bool), where), shape=shape)
    others = np.bincount(where[0][where[0] != where[1]], minlength=shape[0])
    total = jaccard.sum(axis=1) - jaccard.diagonal()
    with_others = np.full(shape[0], np.nan)
    np.divide(total, others, out=with_others, where=others > 0)
    values, defined = (one[compared][:, compared].toarray() for one in (jaccard, known))
    matrix = np.where(defined, values, np.nan)
    return Agreement(matrix[np.newaxis].astype(np.float32), with_others[np.newaxis], *found[2:])


def _compare(
    draw: NDArray[np.int32],
    codes: NDArray[np.int64],
    compared: NDArray[np.int64],
    d: int,
    out: Agreement,
) -> None:
    n, n_families = len(draw), out.alone.shape[1]
    seats = np.unique(draw * np.int64(n_families) + codes)
    cluster, family = np.divmod(seats, n_families)
    held = csr_array((np.ones(len(seats), np.int32), (cluster, family)), shape=(n, n_families))
    both = (held.T @ held).tocoo()
    own = np.bincount(family, minlength=n_families)
    either = own[both.row] + own[both.col] - both.data
    jaccard = csr_array((both.data / either, (both.row, both.col)), shape=both.shape)
    out.with_others[d] = (jaccard.sum(axis=1) - jaccard.diagonal()) / (n_families - 1)
    out.matrix[d] = jaccard[compared][:, compared].toarray()
    single = np.bincount(draw, minlength=n)[draw] == 1
    out.alone[d] = np.bincount(codes[single], minlength=n_families)
    experts = np.bincount(cluster, minlength=n)
    for k in np.flatnonzero(experts == n_families - 1):
        out.lacking[d, n_families * (n_families - 1) // 2 - family[cluster == k].sum()] += 1
    out.alone_there[d], out.lacking_there[d] = out.alone[d].sum(), out.lacking[d].sum()


#: What a row of the table may say with an interval: always the first two, then those known under
#: the detection prior only, and those known where experts may differ.
INTERVALS = (
    *("size_1", "all_but_one"),
    *("sensitivity", "false_marks", "false_marks_per_image", "shared_noticing"),
    *("offset_x", "offset_y", "size_factor", "noise_factor"),
)
#: Matrix entries kept for the intervals; more draws than fit are thinned evenly.
MAX_VALUES = 16_000_000
#: Of more experts than this every pair would be too many: those with most markings are compared
#: pair by pair, and each of the others with all at once.
MAX_COMPARED = 200


@dataclass(frozen=True)
class ExpertSummary:
    """Posterior summaries of F experts, in the order of their family codes."""

    #: Items of each expert.
    count: NDArray[np.int64]
    #: Mean Jaccard coefficient with the other experts.
    jaccard: Interval
    #: Experts that are compared pair by pair: all, or of very many those with most markings.
    compared: NDArray[np.int64]
    #: Jaccard coefficient of each pair of these, with ones on the diagonal.
    jaccard_matrix: Interval
    #: Percentage of the size-1 clusters that are this expert's.
    size_1: Interval
    #: Percentage of the clusters with all experts but one that lack this one.
    all_but_one: Interval
    #: Each marking's probability of being alone: where the singletons lie.
    alone: NDArray[np.float64]

    def rows(self, names: Sequence[str]) -> list[Json]:
        """As in summary.json: one row for each expert, by number of markings."""
        return [
            {
                "expert": names[f],
                "count": int(self.count[f]),
                "jaccard": float(self.jaccard.mean[f]),
                "size_1": self.size_1[f].as_dict(),
                "all_but_one": self.all_but_one[f].as_dict(),
            }
            for f in np.argsort(self.count, kind="stable")
        ]


def expert_frame(rows: Sequence[Json]) -> pandas.DataFrame:
    """As in experts.csv: the same rows, flat."""
    import pandas

    table = []
    for row in rows:
        first = ("expert", "count", "looks", "jaccard")
        flat: Json = {key: row[key] for key in first if key in row}
        for name in INTERVALS:
            if name not in row:
                continue
            flat[name] = row[name]["mean"]
            flat[f"{name}_lo"], flat[f"{name}_hi"] = row[name]["lo"], row[name]["hi"]
        if "p_mostly_false" in row:
            flat["p_mostly_false"] = row["p_mostly_false"]
        table.append(flat)
    return pandas.DataFrame(table)


def expert_summary(
    draws: Draws, families: NDArray[np.int64], coverage: Coverage | None = None
) -> ExpertSummary:
    """Compare the experts, draw by draw, then average over draws.

    ``coverage`` says who looked where; without it everyone looked everywhere. There may be more
    experts than have markings: those who looked and marked nothing.

    In a draw the Jaccard coefficient of two experts is the number of clusters that hold both
    over the number that hold either, of those at which both looked. A share of clusters that do not
    exist in a draw is undefined there, and the draw does not count for it.
    """
    codes, _ = family_arrays(families, draws.n_markings)
    coverage = everyone(codes) if coverage is None else coverage
    n_families = coverage.n_experts
    count = np.bincount(codes, minlength=n_families)
    compared = np.sort(np.argsort(-count, kind="stable")[:MAX_COMPARED])
    counted = count_densely if n_families <= MAX_COMPARED else count_sparsely
    alone_counts = np.zeros(draws.n_markings, np.int64)
    samples: list[Agreement] = []
    step = stride_for(draws, MAX_VALUES // (n_families * len(compared)))
    for _, start, _, labels in label_blocks(draws):
        add_alone(labels, alone_counts)
        samples.append(counted(labels[kept(start, step)], codes, compared, coverage))
    found = Agreement(*(np.concatenate(parts) for parts in zip(*samples, strict=True)))
    return ExpertSummary(
        count=count,
        jaccard=summarise(found.with_others),
        compared=compared,
        jaccard_matrix=summarise(found.matrix),
        size_1=summarise(shares(found.alone, found.alone_there)),
        all_but_one=summarise(shares(found.lacking, found.lacking_there)),
        alone=alone_counts / (draws.n_chains * draws.n_draws),
    )


def count_densely(
    labels: NDArray[np.int32],
    codes: NDArray[np.int64],
    compared: NDArray[np.int64],
    coverage: Coverage,
) -> Agreement:
    """Compare all pairs of experts in each draw; ``compared`` is all of them."""
    found = tally_experts(labels, codes, coverage)
    matrix = jaccard_matrix(found.both, found.either)
    return Agreement(
        matrix,
        mean_with_others(matrix),
        found.alone,
        found.lacking,
        found.alone_there,
        found.lacking_there,
    )


class ExpertTallies(NamedTuple):
    """Clusters of each draw, counted by experts."""

    #: Clusters that hold both of two experts; (draws, F, F), an expert's own on the diagonal.
    both: NDArray[np.int32]
    #: Clusters that hold at least one of the two, of those at which both looked.
    either: NDArray[np.int32]
    #: Clusters of one marking, by expert, and clusters that lack, of those who looked, this expert
    #: alone; (draws, F).
    alone: NDArray[np.int64]
    lacking: NDArray[np.int64]
    #: The same two where an expert looked, whoever's they are.
    alone_there: NDArray[np.int64]
    lacking_there: NDArray[np.int64]


def tally_experts(
    labels: NDArray[np.int32], families: NDArray[np.int64], coverage: Coverage
) -> ExpertTallies:
    """Count the clusters of the draws of one image by experts."""
    draws, n_families = len(labels), coverage.n_experts
    shape = (draws, n_families, n_families)
    if coverage.in_parts:
        found = tallies_where_looked(labels, families, coverage)
        both, either = (_by_draw(table, shape) for table in (found.both, found.either))
        return ExpertTallies(both, either, *found[2:])
    codes, holder = family_arrays(families, labels.shape[1])
    both = np.zeros(shape, np.int32)
    alone, lacking = np.zeros(shape[:2], np.int64), np.zeros(shape[:2], np.int64)
    expert_counts(np.ascontiguousarray(labels), codes, holder, both, alone, lacking)
    own = np.diagonal(both, axis1=1, axis2=2)
    either = own[:, :, np.newaxis] + own[:, np.newaxis, :] - both
    there = (
        np.repeat(counts.sum(axis=1, keepdims=True), n_families, axis=1)
        for counts in (alone, lacking)
    )
    return ExpertTallies(both, either, alone, lacking, *there)


class SparseTallies(NamedTuple):
    """The same with one row and column for every draw and expert; different draws have zeros."""

    both: csr_array
    either: csr_array
    alone: NDArray[np.int64]
    lacking: NDArray[np.int64]
    alone_there: NDArray[np.int64]
    lacking_there: NDArray[np.int64]


def tallies_where_looked(
    labels: NDArray[np.int32], families: NDArray[np.int64], coverage: Coverage
) -> SparseTallies:
    """Count clusters by who is in them and who looked at them.

    Of two experts both looked at a cluster that either is in if the one is in it and the other
    looked: clusters with both are counted twice so.
    """
    who, shape = who_looked(coverage, labels, families), (len(labels), coverage.n_experts)
    held, seen = who.apart(len(labels))
    both, own = csr_array(held.T @ held), csr_array(held.T @ seen)
    draw_of, n = np.arange(len(labels))[:, np.newaxis], labels.shape[1]
    size = np.bincount((draw_of * n + labels).ravel(), minlength=len(labels) * n)
    single = size[who.draw * n + who.name] == 1
    but_one = who.looked - who.experts == 1

    def total(table: csr_array) -> NDArray[np.int64]:
        return np.asarray(table.sum(axis=0), np.int64).reshape(shape)

    return SparseTallies(
        both,
        csr_array(own + own.T - both),
        total(held[single]),
        total(seen[but_one]) - total(held[but_one]),
        total(seen[single]),
        total(seen[but_one]),
    )


def _by_draw(table: csr_array, shape: tuple[int, int, int]) -> NDArray[np.int32]:
    """What is counted of each draw, from the blocks on the diagonal."""
    found = np.zeros(shape, np.int32)
    entries = table.tocoo()
    draw, first = np.divmod(entries.row, shape[1])
    found[draw, first, entries.col % shape[1]] = entries.data
    return found


def jaccard_matrix(both: NDArray[np.int32], either: NDArray[np.int32]) -> NDArray[np.float32]:
    """Clusters with both over clusters with either; NaN for two that never could meet."""
    matrix = np.full(both.shape, np.nan, np.float32)
    np.divide(both, either, out=matrix, where=either > 0)
    return matrix


def shares(counts: NDArray[np.int64], of: NDArray[np.int64] | None = None) -> NDArray[np.float64]:
    """Percentages of each draw's total, or of other numbers; NaN where these are zero."""
    total = counts.sum(axis=1, keepdims=True) if of is None else of
    shares = np.full(counts.shape, np.nan)
    np.divide(100.0 * counts, total, out=shares, where=np.broadcast_to(total > 0, counts.shape))
    return shares


def mean_with_others(matrix: NDArray[np.float32]) -> NDArray[np.float64]:
    """Mean of each row without the diagonal and what is undefined; NaN for a lone expert."""
    # An expert without a marking is not compared even with themselves.
    known = ~np.isnan(matrix) & ~np.eye(matrix.shape[1], dtype=bool)
    others = known.sum(axis=2)
    total = np.where(known, matrix, 0.0).sum(axis=2, dtype=np.float64)
    mean = np.full(total.shape, np.nan)
    np.divide(total, others, out=mean, where=others > 0)
    return mean

"""How the experts compare: overlap, marks of their own, and what only they missed.

Where there are thousands of experts, only pairs that share an object are ever formed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from dfcrp.draws import Draws
from dfcrp.summaries.consensus import family_arrays
from dfcrp.summaries.kernels.partitions import add_alone
from dfcrp.summaries.kernels.tables import expert_counts
from dfcrp.summaries.streaming import Interval, kept, label_blocks, stride_for, summarise

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


def count_sparsely(
    labels: NDArray[np.int32],
    codes: NDArray[np.int64],
    holder: NDArray[np.int64],
    compared: NDArray[np.int64],
    n_families: int,
) -> Agreement:
    """Compare the experts in each draw, in memory that grows with the pairs sharing a cluster."""
    shape = (len(labels), n_families)
    found = Agreement(
        np.empty((len(labels), len(compared), len(compared)), np.float32),
        np.empty(shape),
        np.zeros(shape, np.int64),
        np.zeros(shape, np.int64),
    )
    for d, draw in enumerate(labels):
        _compare(draw, codes, compared, d, found)
    return found


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

    def rows(self, names: Sequence[str]) -> list[dict[str, Any]]:
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


def expert_frame(rows: Sequence[dict[str, Any]]) -> pandas.DataFrame:
    """As in experts.csv: the same rows, flat."""
    import pandas

    table = []
    for row in rows:
        first = ("expert", "count", "looks", "jaccard")
        flat: dict[str, Any] = {key: row[key] for key in first if key in row}
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
    draws: Draws, families: NDArray[np.int64], n_experts: int | None = None
) -> ExpertSummary:
    """Compare the experts, draw by draw, then average over draws.

    There may be more experts than have markings: those who looked and marked nothing.

    In a draw the Jaccard coefficient of two experts is the number of clusters that hold both
    over the number that hold either. A share of clusters that do not exist in a draw is
    undefined there, and the draw does not count for it.
    """
    codes, holder = family_arrays(families, draws.n_markings)
    n_families = int(codes.max()) + 1 if n_experts is None else n_experts
    count = np.bincount(codes, minlength=n_families)
    compared = np.sort(np.argsort(-count, kind="stable")[:MAX_COMPARED])
    counted = count_densely if n_families <= MAX_COMPARED else count_sparsely
    alone_counts = np.zeros(draws.n_markings, np.int64)
    samples: list[Agreement] = []
    step = stride_for(draws, MAX_VALUES // (n_families * len(compared)))
    for _, start, _, labels in label_blocks(draws):
        add_alone(labels, alone_counts)
        samples.append(counted(labels[kept(start, step)], codes, holder, compared, n_families))
    matrix, with_others, alone, lacking = (
        np.concatenate([getattr(sample, name) for sample in samples]) for name in Agreement._fields
    )
    return ExpertSummary(
        count=count,
        jaccard=summarise(with_others),
        compared=compared,
        jaccard_matrix=summarise(matrix),
        size_1=summarise(shares(alone)),
        all_but_one=summarise(shares(lacking)),
        alone=alone_counts / (draws.n_chains * draws.n_draws),
    )


def count_densely(
    labels: NDArray[np.int32],
    codes: NDArray[np.int64],
    holder: NDArray[np.int64],
    compared: NDArray[np.int64],
    n_families: int,
) -> Agreement:
    """Compare all pairs of experts in each draw; ``compared`` is all of them."""
    found = tally_experts(labels, codes, holder, n_families)
    matrix = jaccard_matrix(found.both, found.either)
    return Agreement(matrix, mean_with_others(matrix), found.alone, found.lacking)


class ExpertTallies(NamedTuple):
    """Clusters of each draw, counted by experts."""

    #: Clusters that hold both of two experts; (draws, F, F), an expert's own on the diagonal.
    both: NDArray[np.int32]
    #: Clusters of one marking, by expert, and clusters that lack this expert alone; (draws, F).
    alone: NDArray[np.int64]
    lacking: NDArray[np.int64]

    @property
    def either(self) -> NDArray[np.int32]:
        """Clusters that hold at least one of two experts; (draws, F, F)."""
        own = np.diagonal(self.both, axis1=1, axis2=2)
        found: NDArray[np.int32] = own[:, :, np.newaxis] + own[:, np.newaxis, :] - self.both
        return found


def tally_experts(
    labels: NDArray[np.int32],
    codes: NDArray[np.int64],
    holder: NDArray[np.int64],
    n_families: int,
) -> ExpertTallies:
    """Count draws' clusters by experts; codes and holder are those of ``family_arrays``."""
    draws = len(labels)
    both = np.zeros((draws, n_families, n_families), np.int32)
    alone = np.zeros((draws, n_families), np.int64)
    lacking = np.zeros((draws, n_families), np.int64)
    expert_counts(np.ascontiguousarray(labels), codes, holder, both, alone, lacking)
    return ExpertTallies(both, alone, lacking)


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

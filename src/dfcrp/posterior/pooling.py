"""Totals over many images: sums of their numbers, draw by draw."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dfcrp.posterior.findings import MAX_EXPERT_VALUES, Series, Totals
from dfcrp.summaries.consensus import ConsensusCounts
from dfcrp.summaries.convergence import Diagnostic, diagnose
from dfcrp.summaries.experts import ExpertSummary, jaccard_matrix, mean_with_others, shares
from dfcrp.summaries.intervals import Interval, summarise

#: With more experts than this the table of each with each would not fit into memory.
MAX_COMPARED = int(MAX_EXPERT_VALUES**0.5)


class Pool:
    """Adds up images, in the order in which they are given: sums of floats depend on it."""

    def __init__(self, n_experts: int, totals: Totals) -> None:
        self.n_experts = n_experts
        self.totals = totals
        self.images = 0
        self._series: Series | None = None
        self._alone: NDArray[np.int64] = np.zeros((0, 0), np.int64)
        self._lacking = self._alone
        self._both: NDArray[np.int32] = np.zeros((0, 0, 0), np.int32)
        self._either = self._both

    def add(self, series: Series, experts: NDArray[np.int64]) -> None:
        """Take in an image; ``experts`` are the codes that its experts have in all images.

        Two experts are compared on the images that both have markings on: of the others it is
        not known whether both looked at them.
        """
        if self._series is None:
            self._begin(series)
        else:
            before = self._series
            self._series = Series(
                before.n_clusters + series.n_clusters,
                before.counts + series.counts,
                before.alpha + series.alpha,
                _added(before.learned, series.learned),
                series.experts,
            )
        self.images += 1
        self._alone[:, experts] += series.experts.alone
        self._lacking[:, experts] += series.experts.lacking
        if self._both.size:
            pairs = (slice(None), experts[:, np.newaxis], experts)
            self._both[pairs] += series.experts.both
            self._either[pairs] += series.experts.either

    def _begin(self, series: Series) -> None:
        self._series = series
        draws, n_experts = len(series.experts.alone), self.n_experts
        self._alone = np.zeros((draws, n_experts), np.int64)
        self._lacking = np.zeros((draws, n_experts), np.int64)
        if n_experts <= MAX_COMPARED:
            self._both = np.zeros((draws, n_experts, n_experts), np.int32)
            self._either = np.zeros_like(self._both)

    @property
    def sums(self) -> Series:
        """The sums over the images so far; ``experts`` are not summed here."""
        assert self._series is not None, "no image was added"
        return self._series

    @property
    def alpha(self) -> NDArray[np.float64]:
        """α, averaged over images; (chains, draws)."""
        return self.sums.alpha / self.images

    @property
    def learned(self) -> dict[str, NDArray[np.float64]]:
        """What was learned of the scatter, averaged over images, by name; (chains, draws)."""
        return {name: values / self.images for name, values in self.sums.learned.items()}

    def counts(self, min_experts: tuple[int, ...], classes: tuple[str, ...]) -> ConsensusCounts:
        """Objects that at least so many experts marked, on all images."""
        return ConsensusCounts(min_experts, classes, self.sums.counts)

    def diagnostics(self, counts: ConsensusCounts) -> tuple[Diagnostic, ...]:
        """Whether the totals have settled."""
        series = {"number of clusters": self.sums.n_clusters, **counts.series()}
        return tuple(diagnose(f"{name}, all images", values) for name, values in series.items())

    def experts(self, count: NDArray[np.int64], alone: NDArray[np.float64]) -> ExpertSummary:
        """How the experts compare, given their numbers of markings and each marking's solitude."""
        if self._both.size:
            compared = np.arange(self.n_experts)
            matrix = jaccard_matrix(self._both, self._either)
            jaccard, with_others = summarise(matrix), summarise(mean_with_others(matrix))
        else:
            compared = np.zeros(0, np.int64)
            nothing = np.full((0, 0), np.nan)
            jaccard = Interval(nothing, nothing, nothing)
            unknown = np.full(self.n_experts, np.nan)
            with_others = Interval(unknown, unknown, unknown)
        return ExpertSummary(
            count=count,
            jaccard=with_others,
            compared=compared,
            jaccard_matrix=jaccard,
            size_1=summarise(shares(self._alone)),
            all_but_one=summarise(shares(self._lacking)),
            alone=alone,
        )


def _added(
    before: dict[str, NDArray[np.float64]], more: dict[str, NDArray[np.float64]]
) -> dict[str, NDArray[np.float64]]:
    """Sums of what all images have learned."""
    return {name: values + more[name] for name, values in before.items() if name in more}

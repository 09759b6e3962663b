"""What one image of many adds to the tables of all: its rows, and its numbers in every draw."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dfcrp.runs.parts import RunRecord
from dfcrp.settings.config import Config
from dfcrp.summaries.convergence import Verdict
from dfcrp.summaries.experts import ExpertTallies, tally_experts
from dfcrp.summaries.membership import Membership
from dfcrp.summaries.streaming import Interval, summarise
from dfcrp.values import Array

if TYPE_CHECKING:
    from dfcrp.posterior.categories import CategorySummary
    from dfcrp.posterior.posterior import Posterior
    from dfcrp.summaries.point_partition import PointPartition

#: Draws of each chain that totals over all images are formed from.
MAX_TOTAL_DRAWS = 1_000
#: The same for runs whose images end when they are good: each has at least so many by then.
OPEN_ENDED_DRAWS = 250
#: Numbers kept for the comparison of each expert with each; more experts, fewer draws.
MAX_EXPERT_VALUES = 16_000_000


@dataclass(frozen=True)
class Totals:
    """How many draws totals are formed from.

    Images are independent given the data, so that the sum of one draw of each is a draw of the
    sum. Those with more draws than wanted give evenly spaced ones, those with fewer some twice.
    """

    draws: int
    expert_draws: int

    @classmethod
    def plan(cls, config: Config, n_experts: int) -> Totals:
        """For a run with these settings and so many experts."""
        run = config.run
        if run.scans is None:
            draws = OPEN_ENDED_DRAWS
        else:
            burn_in = run.scans // 4 if run.burn_in is None else run.burn_in
            draws = min(max((run.scans - burn_in) // run.thin, 1), MAX_TOTAL_DRAWS)
        fitting = MAX_EXPERT_VALUES // (n_experts**2 * run.chains)
        return cls(draws, max(min(draws, fitting), 1))


def spaced(available: int, wanted: int) -> NDArray[np.int64]:
    """Evenly spaced indices, all of them if just so many are available."""
    return (2 * np.arange(wanted) + 1) * available // (2 * wanted)


@dataclass(frozen=True)
class Findings:
    """One image's part of the tables, in numbers of its own markings and experts."""

    #: Point partition, and how sure it is.
    point: PointPartition
    membership: Membership
    catalogue: dict[str, Array]
    #: Probability of each marking to be alone.
    alone: NDArray[np.float64]
    n_clusters: Interval
    consensus: Interval
    alpha: Interval
    verdict: Verdict
    record: RunRecord
    #: Of the answers of the prior what is not in sums over images; None if it gives none.
    detection: Any = None
    #: Categories of an image that was drawn by itself; None if there are none.
    categories: CategorySummary | None = None
    #: Suspected doubles; None of an image that was drawn by itself.
    doubles: dict[str, NDArray[Any]] | None = None

    @property
    def labels(self) -> NDArray[np.int32]:
        """The point partition."""
        return self.point.labels


@dataclass(frozen=True)
class Series:
    """One image's numbers in the draws that totals are formed from."""

    #: (chains, draws) and (chains, draws, thresholds, size classes).
    n_clusters: NDArray[np.int64]
    counts: NDArray[np.int64]
    alpha: NDArray[np.float64]
    #: What was learned of the scatter, by name; (chains, draws).
    learned: dict[str, NDArray[np.float64]]
    experts: ExpertTallies
    #: Answers of the prior; None if it gives none.
    detection: Any = None


def find(posterior: Posterior, totals: Totals) -> tuple[Findings, Series]:
    """Summarise one image."""
    thinned = _thinned(posterior, totals)
    found = Findings(
        point=posterior.point_partition(),
        membership=posterior.membership,
        catalogue=posterior.catalogue_columns,
        alone=posterior.pairs.alone,
        n_clusters=summarise(posterior.n_clusters.ravel()),
        consensus=_consensus(posterior),
        alpha=summarise(posterior.alpha.ravel()),
        verdict=posterior.convergence,
        record=posterior.record,
        detection=None if thinned is None else posterior.prior.of_image(thinned),
        categories=posterior.categories if posterior.whole is None else None,
        doubles=None if posterior.whole is None else posterior.doubles_columns,
    )
    return found, replace(_series(posterior, totals), detection=thinned)


def _consensus(posterior: Posterior) -> Interval:
    counts = posterior.table_counts
    row = counts.min_experts.index(posterior.config.summary.min_experts)
    return summarise(counts.counts[:, :, row, 0].ravel())


def _series(posterior: Posterior, totals: Totals) -> Series:
    draws = posterior.draws
    chosen = spaced(draws.n_draws, totals.draws)
    learned = posterior.likelihood.learned_samples(draws)
    some = spaced(draws.n_draws, totals.expert_draws)
    labels = [draws.labels(chain, 0, draws.n_draws)[some] for chain in range(draws.n_chains)]
    return Series(
        n_clusters=posterior.n_clusters[:, chosen],
        counts=posterior.table_counts.counts[:, chosen],
        alpha=posterior.alpha[:, chosen],
        learned={name: values[:, chosen] for name, values in learned.items()},
        experts=tally_experts(
            np.concatenate(labels), posterior.items.families, posterior.items.coverage
        ),
    )


def _thinned(posterior: Posterior, totals: Totals) -> Any:
    if posterior.detection is None:
        return None
    draws = posterior.draws
    return posterior.detection.thinned(draws.n_chains, spaced(draws.n_draws, totals.draws))

"""A finished run: its draws, its markings, its settings, and every question one may ask of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from dfcrp.draws import Draws, shared_variable
from dfcrp.geometry import TangentPlanes
from dfcrp.items.items import Items
from dfcrp.likelihoods.base import Likelihood
from dfcrp.likelihoods.circle.bias_summary import ExpertBias, rows_with_bias
from dfcrp.likelihoods.registry import likelihood_named
from dfcrp.posterior.diameters import consensus_diameters
from dfcrp.posterior.size_frequency import SizeFrequency, size_frequency
from dfcrp.priors.base import Prior
from dfcrp.priors.detection.answers import DetectionSummary
from dfcrp.priors.registry import prior_named
from dfcrp.settings.config import Config
from dfcrp.summaries.catalogue import catalogue
from dfcrp.summaries.coclustering import Coclustering, coclustering
from dfcrp.summaries.consensus import ConsensusCounts, SizeClasses, consensus_counts
from dfcrp.summaries.convergence import Verdict, check_convergence
from dfcrp.summaries.experts import ExpertSummary, expert_frame, expert_summary
from dfcrp.summaries.intervals import summarise
from dfcrp.summaries.losses import members_by_cluster
from dfcrp.summaries.membership import Membership, membership
from dfcrp.summaries.point_partition import PointPartition, point_partition
from dfcrp.summaries.streaming import n_clusters

if TYPE_CHECKING:
    import pandas


@dataclass(frozen=True)
class RunRecord:
    """How the draws came about."""

    scans: int
    burn_in: int
    thin: int
    seconds: float
    stopped_early: bool = False
    #: Proposals and acceptances of each chain, by kind of move.
    tallies: list[dict[str, int]] = field(default_factory=list)


class Posterior:
    """Posterior draws of a partition of markings, with their summaries.

    Summaries stream over the draws and are kept once computed.
    """

    def __init__(
        self,
        draws: Draws,
        items: Items,
        config: Config,
        record: RunRecord,
        rows: NDArray[np.int64] | None = None,
    ) -> None:
        self.draws = draws
        #: The rows of these items among all, if this is one image of many.
        self.rows = rows
        self.items = items
        self.config = config
        self.record = record
        self._points: dict[str, PointPartition] = {}
        self._counts: dict[tuple[int, ...], ConsensusCounts] = {}
        self._diameters: dict[tuple[int, int], list[NDArray[np.float64]]] = {}

    @property
    def markings(self) -> Items:
        """The items; of circles they are called markings."""
        return self.items

    @property
    def likelihood(self) -> Likelihood:
        """What the items are, and how they are described."""
        return likelihood_named(self.config.run.likelihood)

    @property
    def prior(self) -> Prior:
        """How partitions were weighed."""
        return prior_named(self.config.run.prior)

    @cached_property
    def labels(self) -> NDArray[np.int32]:
        """Labels (chain, draw, marking): a cluster is named after its smallest member."""
        return np.stack(
            [
                self.draws.labels(chain, 0, self.draws.n_draws)
                for chain in range(self.draws.n_chains)
            ]
        )

    @cached_property
    def alpha(self) -> NDArray[np.float64]:
        """Concentration (chain, draw)."""
        return self.draws.alpha()

    @cached_property
    def n_clusters(self) -> NDArray[np.int64]:
        """Number of clusters (chain, draw)."""
        return n_clusters(self.draws)

    @cached_property
    def tolerances(self) -> dict[str, Any] | None:
        """How far apart markings of one object lie, if that was learned."""
        return self.likelihood.learned(self.draws, self.items)

    @cached_property
    def expert_bias(self) -> ExpertBias | None:
        """Offsets and noise of each expert, if that was learned."""
        found: ExpertBias | None = self.likelihood.expert_bias(self.draws, self.items)
        return found

    @cached_property
    def detection(self) -> DetectionSummary | None:
        """Objects seen and missed, sensitivities and false marks, under the detection prior."""
        found: DetectionSummary | None = self.prior.summarise(self)
        return found

    @property
    def diameters(self) -> NDArray[np.float64] | None:
        """The items' diameters, for size classes; None where there is no such thing."""
        return self.likelihood.sizes(self.items)

    @property
    def size_classes(self) -> SizeClasses:
        """Size classes of the settings; none where items have no size."""
        if self.diameters is None:
            return SizeClasses.none()
        return SizeClasses(self.config.summary.class_edges, self.config.summary.class_names)

    @cached_property
    def pairs(self) -> Coclustering:
        """Co-clustering counts of every pair that was ever together, chain by chain."""
        return coclustering(self.draws)

    def coclustering(self) -> sparse.csr_array:
        """Symmetric sparse matrix of co-clustering probabilities."""
        return self.pairs.matrix()

    def point_partition(self, loss: str = "vi") -> PointPartition:
        """The partition with the smallest expected loss, ``"vi"`` or ``"binder"``."""
        if loss not in self._points:
            families = self.items.families if self.prior.one_per_expert else None
            self._points[loss] = point_partition(self.draws, loss, families)
        return self._points[loss]

    @cached_property
    def membership(self) -> Membership:
        """Membership probabilities of the point partition."""
        return membership(self.point_partition().labels, self.pairs)

    def consensus_counts(self, min_experts: tuple[int, ...]) -> ConsensusCounts:
        """Clusters with at least so many experts, in every draw, by size class."""
        if min_experts not in self._counts:
            self._counts[min_experts] = consensus_counts(
                self.draws,
                min_experts,
                self.size_classes,
                self.config.summary.diameter,
                families=self.items.families,
                diameters=self.diameters,
            )
        return self._counts[min_experts]

    @cached_property
    def table_counts(self) -> ConsensusCounts:
        """The same for the thresholds of the tables."""
        summary = self.config.summary
        wanted = sorted({*summary.thresholds, summary.min_experts})
        return self.consensus_counts(tuple(wanted))

    def consensus(self, min_experts: int | None = None) -> pandas.DataFrame:
        """Number of objects that at least ``min_experts`` marked, by size class."""
        import pandas

        wanted = min_experts or self.config.summary.min_experts
        return pandas.DataFrame(self.consensus_counts((wanted,)).rows())

    def consensus_diameters(
        self, min_experts: int | None = None, limit: int = 1_000
    ) -> list[NDArray[np.float64]]:
        """Ascending diameters of the consensus objects, for each of ``limit`` even draws."""
        wanted = min_experts or self.config.summary.min_experts
        if (wanted, limit) not in self._diameters:
            self._diameters[wanted, limit] = consensus_diameters(self, wanted, limit)
        return self._diameters[wanted, limit]

    def size_frequency(self, kind: str = "cumulative", **options: Any) -> SizeFrequency:
        """The size-frequency distribution: "cumulative", "differential" or "relative" (R)."""
        return size_frequency(self, kind, **options)

    @cached_property
    def expert_summary(self) -> ExpertSummary:
        """How the experts compare."""
        return expert_summary(self.draws, self.items.families)

    def experts(self) -> pandas.DataFrame:
        """One row per expert, by number of markings."""
        return expert_frame(self._expert_rows())

    def _expert_rows(self) -> list[dict[str, Any]]:
        rows = self.expert_summary.rows(self.items.experts)
        if self.detection is not None:
            for row in rows:
                row.update(self.detection.expert(self.items.experts.index(row["expert"])))
        return rows_with_bias(rows, self.expert_bias, self.items.experts)

    def catalogue(self) -> pandas.DataFrame:
        """One row per cluster of the point partition, with uncertainty."""
        import pandas

        table = self.catalogue_columns()
        return pandas.DataFrame({**table, "cluster": self.names(table["cluster"])})

    def catalogue_columns(self) -> dict[str, Any]:
        """The catalogue with clusters named after their first item here."""
        labels, items = self.point_partition().labels, self.items
        _, order, offsets = members_by_cluster(labels)
        members = [order[a:b] for a, b in pairwise(offsets)]
        table = catalogue(
            self.draws,
            labels,
            self.membership,
            families=items.families,
            expert_names=items.experts,
            min_experts=self.config.summary.min_experts,
            centre=self.likelihood.centre(items),
            described=self.likelihood.describe_members(items, members),
            ground=self.ground,
        )
        if self.detection is not None:
            table["p_real"] = self.detection.p_real_cluster
        return table

    def names(self, labels: NDArray[Any]) -> NDArray[np.int64]:
        """What clusters are called in the tables: the row of their first marking.

        Negative numbers, which stand for something else, stay as they are.
        """
        if self.rows is None:
            return labels
        found: NDArray[np.int64] = np.where(labels < 0, labels, self.rows[np.maximum(labels, 0)])
        return found

    @property
    def ground(self) -> TangentPlanes | None:
        """On a sphere, the planes that touch it at the markings that clusters are named after."""
        items = self.items
        if not items.site.on_sphere:
            return None
        names = np.unique(self.point_partition().labels)
        return TangentPlanes(items.x[names], items.y[names], items.site.sphere_radius_km)

    def members(self) -> pandas.DataFrame:
        """One row per marking, in input order, with its cluster and how sure that is."""
        import pandas

        found = self.membership
        table = {
            "marking": self.items.id,
            "expert": self.items.expert,
            "cluster": self.names(self.point_partition().labels),
            "p_member": found.p_member,
            "second_cluster": self.names(found.second),
            "p_second": found.p_second,
        }
        if self.detection is not None:
            table["p_real"] = self.detection.p_real_marking
        return pandas.DataFrame(table)

    @cached_property
    def n_doubles(self) -> int:
        """Number of suspected doubles; none where no rule forbids them."""
        return len(self.suspected_doubles()) if self.prior.one_per_expert else 0

    def suspected_doubles(self) -> pandas.DataFrame:
        """Markings that may be a second one of an object their expert has marked already.

        They are alone in the point partition, and as close to that object as its own members are.
        """
        import pandas

        labels = self.point_partition().labels
        found = self.likelihood.doubles(self.items, labels, self.draws, self.config)
        marking, other = found["marking"].astype(int), found["other"].astype(int)
        *_, measure = found
        return pandas.DataFrame(
            {
                "expert": self.items.expert[marking],
                "marking": self.items.id[marking],
                "other": self.items.id[other],
                "cluster": self.names(found["cluster"]),
                measure: found[measure],
            }
        )

    @cached_property
    def verdict(self) -> Verdict:
        """Whether the run was long enough, and what to do if not."""
        return check_convergence(
            self.draws, self.table_counts, self.pairs, marking_names=self.items.id.tolist()
        )

    def summary(self) -> dict[str, Any]:
        """The content of summary.json."""
        verdict = self.verdict
        return {
            "n_markings": len(self.items),
            "n_experts": len(self.items.experts),
            "chains": self.draws.n_chains,
            "scans": self.record.scans,
            "burn_in": self.record.burn_in,
            "draws": self.draws.n_chains * self.draws.n_draws,
            "seconds": round(self.record.seconds, 3),
            "n_clusters": summarise(self.n_clusters.ravel()).as_dict(),
            **self.prior.numbers(self),
            **({"tolerances": self.tolerances} if self.tolerances else {}),
            "suspected_doubles": self.n_doubles,
            "consensus": self.table_counts.rows(),
            "experts": self._expert_rows(),
            "convergence": verdict.as_dict(),
        }

    def to_arviz(self) -> Any:
        """α, the number of clusters and the consensus counts as an xarray DataTree for ArviZ."""
        from arviz_base import from_dict

        counts = self.table_counts
        variables: dict[str, NDArray[Any]] = {"n_clusters": self.n_clusters}
        if np.isfinite(self.alpha).all():
            variables["alpha"] = self.alpha
        columns = self.draws.columns
        dims: dict[str, list[str]] = {}
        coords: dict[str, list[str]] = {dim: list(at) for dim, at in columns.coords.items()}
        for variable in columns.shared:
            values = shared_variable(self.draws, variable.name)
            assert values is not None
            variables[variable.name] = values
            dims[variable.name] = list(variable.dims)
        for m, threshold in enumerate(counts.min_experts):
            name = f"n_at_least_{threshold}"
            variables[name], dims[name] = counts.counts[:, :, m, :], ["size_class"]
        coords["size_class"] = list(counts.size_classes)
        return from_dict({"posterior": variables}, coords=coords, dims=dims)

    def explain(self, marking: int | str) -> Any:
        """Why a marking (index or id) is where it is; ``print`` the answer's ``text()``."""
        from dfcrp.posterior.explain import explain

        return explain(self, marking)

    def save(self, path: Any) -> None:
        """Write a run folder that ``dfcrp.load`` reads back."""
        from dfcrp.runs.folder import save_posterior

        save_posterior(self, path)

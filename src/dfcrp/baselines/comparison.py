"""``compare``: several methods on the same markings, side by side."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dfcrp.baselines.methods import IN_A_PLANE, Length, Method, Offers, make_methods
from dfcrp.baselines.scores import (
    adjusted_rand,
    adjusted_rand_of_draws,
    variation_of_information,
)
from dfcrp.baselines.without_model import clusters_breaking_family_rule
from dfcrp.errors import InputError
from dfcrp.fitting.api import refuse_several_images
from dfcrp.items.items import Items
from dfcrp.posterior.posterior import Posterior
from dfcrp.settings.config import SummarySettings
from dfcrp.simulate import paper_design
from dfcrp.summaries.consensus import PAPER_EDGES, choose_edges
from dfcrp.summaries.point_partition import distances
from dfcrp.values import Json

#: The paper's criteria in its words, by the fields of Offers.
CRITERIA = {
    "unspecified_k": "Unspecified k",
    "any_features": "Scales w.r.t. features",
    "uncertainty": "UQ on assignment",
    "expert_structure": "Incorporates expert structure",
}


@dataclass(frozen=True)
class Outcome:
    """What one method made of the markings."""

    name: str
    title: str
    offers: Offers
    posterior: Posterior
    #: The partition to compare: of smallest expected variation of information.
    labels: NDArray[np.int64]
    counts: dict[tuple[int, str], float]
    #: Clusters of the compared partition that hold an expert twice.
    breaking: int
    seconds: float

    @property
    def n_clusters(self) -> float:
        """(Mean) number of clusters."""
        return float(self.posterior.n_clusters.mean())

    def seen(self) -> dict[str, bool]:
        """Which criteria the result itself bears out; the other two cannot be seen in it."""
        several = self.posterior.draws.n_chains * self.posterior.draws.n_draws > 1
        return {"uncertainty": several, "expert_structure": self.breaking == 0}


@dataclass(frozen=True)
class Comparison:
    """All outcomes and how they agree."""

    outcomes: tuple[Outcome, ...]
    truth: NDArray[np.int64] | None
    #: Between the methods' partitions, in their order.
    ari: NDArray[np.float64]
    vi: NDArray[np.float64]

    def rows(self) -> list[Json]:
        """One row per method: counts, rule, agreement with the truth and each other, time."""
        return [self._row(index) for index in range(len(self.outcomes))]

    def _row(self, index: int) -> Json:
        outcome = self.outcomes[index]
        row: Json = {
            "method": outcome.name,
            "clusters": outcome.n_clusters,
            "breaking_rule": outcome.breaking,
        }
        for (threshold, size_class), count in outcome.counts.items():
            row[f"at_least_{threshold}_{size_class}"] = count
        if self.truth is not None:
            draws = outcome.posterior.draws
            truth = self.truth.astype(np.int32)
            row["ari_truth"] = float(adjusted_rand_of_draws(draws, self.truth).mean())
            row["vi_truth"] = float(distances(draws, truth, "vi").mean())
            row["ari_truth_point"] = adjusted_rand(outcome.labels, self.truth)
            row["vi_truth_point"] = variation_of_information(outcome.labels, self.truth)
        for other, column in enumerate(self.outcomes):
            row[f"ari_{column.name}"] = float(self.ari[index, other])
        for other, column in enumerate(self.outcomes):
            row[f"vi_{column.name}"] = float(self.vi[index, other])
        row["seconds"] = outcome.seconds
        return row

    def features(self) -> list[Json]:
        """The paper's table of criteria: what each method claims, unless its result belies it."""
        table = []
        for criterion, words in CRITERIA.items():
            row: Json = {"criterion": words}
            for outcome in self.outcomes:
                claimed = bool(getattr(outcome.offers, criterion))
                row[outcome.title] = claimed and outcome.seen().get(criterion, True)
            table.append(row)
        return table

    def broken_claims(self) -> list[str]:
        """Claims that the results do not bear out; empty unless something is wrong."""
        return [
            f"{outcome.title}: {CRITERIA[criterion]}"
            for outcome in self.outcomes
            for criterion, held in outcome.seen().items()
            if getattr(outcome.offers, criterion) and not held
        ]

    def as_dict(self) -> Json:
        """Everything that goes into compare.json."""
        return {
            "methods": self.rows(),
            "criteria": self.features(),
            "claims": {o.title: dataclasses.asdict(o.offers) for o in self.outcomes},
            "broken_claims": self.broken_claims(),
        }


def compare(
    markings: Items,
    methods: Sequence[str | Method] | None = None,
    truth: ArrayLike | None = None,
    *,
    thresholds: Sequence[int] = (4, 5, 6),
    length: Length | None = None,
    progress: Callable[[str], None] | None = None,
) -> Comparison:
    """Run the methods (names, or objects of your own; all known ones without) on the markings.

    ``truth`` defaults to the markings' own, if they have one. ``length`` says how long the
    samplers run; ``progress`` is told each method's title before it starts.
    """
    refuse_several_images(markings)
    if markings.site.on_sphere:
        _ = markings.site.sphere_radius_km
    if not thresholds or min(thresholds) < 1:
        raise InputError(f"thresholds are {list(thresholds)}; they must be whole numbers from 1")
    known = markings.truth if truth is None else np.asarray(truth, np.int64)
    if known is not None and known.shape != (len(markings),):
        raise InputError(f"the truth has {known.size} labels for {len(markings)} markings")
    chosen = _chosen(methods, _with_classes(length or Length(), markings))
    if markings.site.on_sphere:
        chosen = _for_a_sphere(chosen, asked=methods is not None)
    outcomes = []
    for method in chosen:
        if progress is not None:
            progress(method.title)
        outcomes.append(_outcome(method, markings, thresholds))
    partitions = [outcome.labels for outcome in outcomes]
    return Comparison(
        outcomes=tuple(outcomes),
        truth=known,
        ari=_table(adjusted_rand, partitions),
        vi=_table(variation_of_information, partitions),
    )


def _with_classes(length: Length, markings: Items) -> Length:
    """The same size classes for all methods: those asked for, or those that suit the markings."""
    asked = SummarySettings(**length.summary)
    if asked.class_edges is not None:
        return length
    edges = choose_edges(markings.diameter, len(asked.class_names))
    if length.preset is not None and len(edges) == len(PAPER_EDGES):
        edges = PAPER_EDGES
    return dataclasses.replace(length, summary={**length.summary, "class_edges": edges})


def _for_a_sphere(methods: list[Method], asked: bool) -> list[Method]:
    """The methods without those that take places for a plane; refuses these if they were asked."""
    flat = [method.title for method in methods if isinstance(method, IN_A_PLANE)]
    if flat and asked:
        raise InputError(f"{', '.join(flat)}: not for longitude and latitude, only for a plane")
    return [method for method in methods if not isinstance(method, IN_A_PLANE)]


def _chosen(methods: Sequence[str | Method] | None, length: Length) -> list[Method]:
    if methods is None:
        return make_methods(None, length)
    chosen: list[Method] = []
    for method in methods:
        chosen.extend(make_methods([method], length) if isinstance(method, str) else [method])
    names = [method.name for method in chosen]
    if not names or len(set(names)) < len(names):
        raise InputError(f"give each method once, and at least one; got {', '.join(names)}")
    return chosen


def _outcome(method: Method, markings: Items, thresholds: Sequence[int]) -> Outcome:
    # Once on a handful of markings, so that compiling and importing are not taken for work.
    method.fit(paper_design(0, n_objects=3))
    begun = time.monotonic()
    posterior = method.fit(markings)
    seconds = time.monotonic() - begun
    labels = np.asarray(posterior.point_partition().labels, np.int64)
    return Outcome(
        name=method.name,
        title=method.title,
        offers=method.offers,
        posterior=posterior,
        labels=labels,
        counts=method.counts(posterior, thresholds),
        breaking=len(clusters_breaking_family_rule(labels, markings.families)),
        seconds=seconds,
    )


def _table(
    score: Callable[[ArrayLike, ArrayLike], float], partitions: list[NDArray[np.int64]]
) -> NDArray[np.float64]:
    return np.array([[score(one, other) for other in partitions] for one in partitions])

"""Why a marking is where it is: its candidate clusters, how far they are, what barred it.

A candidate is a cluster of the point partition, or being alone. In each draw

- the marking *sat* in the candidate to which most of its companions belong (the smallest name
  among equals), or alone without companions, so that the probabilities sum to one;
- a candidate is *represented* by the draw's cluster that holds most of its members, the marking
  itself left out (the smallest name among equals). Distances are to the representative; the
  family rule barred the marking if another one of the same expert sat there.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dfcrp.draws import ClusterBlock
from dfcrp.errors import InputError
from dfcrp.geometry import TangentPlanes
from dfcrp.items.items import Items
from dfcrp.posterior.explain_text import explanation_text
from dfcrp.summaries.consensus import rest_names
from dfcrp.summaries.membership import ALONE
from dfcrp.summaries.streaming import label_blocks

if TYPE_CHECKING:
    from dfcrp.posterior.posterior import Posterior

#: Nearest markings whose clusters are looked at as candidates.
NEAREST = 60
#: Clusters within so many spreads are named as candidates even if the marking never sat there.
NEARBY_SPREADS = 5.0
PARAMETERS = ("x", "y", "log_diameter", "var_position", "var_log_diameter", "covariance")


@dataclass(frozen=True)
class Companion:
    """Another marking, and the share of draws in which something held for it."""

    index: int
    id: str
    expert: str
    probability: float


@dataclass(frozen=True)
class Offset:
    """How far a marking lies from a cluster, in units of the cluster's fitted spread.

    Medians over draws, in standard deviations: of position and size together (Mahalanobis), of
    position alone, and of log diameter alone, where positive means that the marking is larger.
    """

    distance: float
    position: float
    size: float


@dataclass(frozen=True)
class Candidate:
    """A place where the marking sat or might have sat."""

    #: Name of the cluster of the point partition; ``ALONE`` (-1) for a cluster of its own.
    cluster: int
    #: Share of draws in which the marking sat here; of all chains, and of each.
    probability: float
    by_chain: tuple[float, ...]
    #: Members in the point partition, the marking itself left out.
    members: tuple[int, ...] = ()
    #: Over the draws in which the marking is in the representative, so that its spread was fitted
    #: with the marking, and over the others; None if there are no such draws or no parameters.
    inside: Offset | None = None
    outside: Offset | None = None
    #: Share of draws in which the family rule barred the marking, and by whom.
    barred: float = 0.0
    barred_by: tuple[Companion, ...] = ()

    @property
    def distance(self) -> float:
        """The distance to a cluster fitted without the marking if there is one; NaN if unknown."""
        found = self.outside or self.inside
        return np.nan if found is None else found.distance


@dataclass(frozen=True)
class Explanation:
    """Why one marking is where it is."""

    index: int
    id: str
    expert: str
    x: float
    y: float
    diameter: float
    #: Cluster of the point partition, and the membership probability as in members.csv.
    cluster: int
    p_member: float
    n_chains: int
    n_draws: int
    #: Whether one expert's markings were kept apart at all.
    family_rule: bool
    #: Most probable first, then nearest first.
    candidates: tuple[Candidate, ...]
    #: Those it sat with, most often first.
    companions: tuple[Companion, ...]

    def text(self) -> str:
        """The explanation in plain words."""
        return explanation_text(self)


def find_marking(markings: Items, marking: int | str) -> int:
    """The index of a marking given by index (a whole number) or id (a text)."""
    ids = markings.id
    if isinstance(marking, str):
        found = np.flatnonzero(ids == marking)
        if found.size == 1:
            return int(found[0])
        if found.size > 1:
            raise InputError(
                f'{found.size} markings have the id "{marking}"; say which by its index: '
                f"{', '.join(map(str, found[:5]))}{', ...' if found.size > 5 else ''}"
            )
        near = difflib.get_close_matches(marking, ids[:20_000].tolist(), n=1, cutoff=0.0)
        raise InputError(f'there is no marking "{marking}"; did you mean "{near[0]}"?')
    if not 0 <= marking < len(ids):
        raise InputError(f"there is no marking {marking}; they are numbered 0 to {len(ids) - 1}")
    return int(marking)


def explain(posterior: Posterior, marking: int | str) -> Explanation:
    """Why a marking, given by index or id, is where it is."""
    markings, draws = posterior.markings, posterior.draws
    i = find_marking(markings, marking)
    companions = _companions(posterior, i)
    watch = _Watch(posterior, i, np.array([c.index for c in companions], np.int64))
    for chain, start, stop, labels in label_blocks(draws):
        block = draws.clusters(chain, start, stop) if watch.columns is not None else None
        watch.add(chain, labels, block)
    return Explanation(
        index=i,
        id=str(markings.id[i]),
        expert=str(markings.expert[i]),
        x=float(markings.x[i]),
        y=float(markings.y[i]),
        diameter=float(markings.diameter[i]),
        cluster=_name(posterior, int(posterior.point_partition().labels[i])),
        p_member=float(posterior.membership.p_member[i]),
        n_chains=draws.n_chains,
        n_draws=draws.n_chains * draws.n_draws,
        family_rule=watch.family_rule,
        candidates=tuple(
            replace(candidate, cluster=_name(posterior, candidate.cluster))
            for candidate in watch.candidates()
        ),
        companions=companions,
    )


def _name(posterior: Posterior, label: int) -> int:
    return int(posterior.names(np.array([label]))[0])


def _companions(posterior: Posterior, i: int) -> tuple[Companion, ...]:
    pairs, markings = posterior.pairs, posterior.markings
    touching = np.flatnonzero((pairs.first == i) | (pairs.second == i))
    other = pairs.first[touching] + pairs.second[touching] - i
    probability = pairs.counts[:, :, touching].sum(axis=(0, 1)) / (pairs.n_chains * pairs.n_draws)
    return tuple(
        Companion(int(j), str(markings.id[j]), str(markings.expert[j]), float(p))
        for j, p in sorted(
            zip(other.tolist(), probability.tolist(), strict=True), key=lambda jp: (-jp[1], jp[0])
        )
    )


@dataclass
class _Place:
    """What is added up over the draws for one cluster of the point partition."""

    name: int
    #: Members without the marking itself.
    members: NDArray[np.int64]
    #: Draws in which each marking of the expert barred the place.
    barring: NDArray[np.int64]
    barred: int = 0
    #: Blocks of (distance, position, size), each (3, draws), and whether the marking was in.
    offsets: list[NDArray[np.float64]] = field(default_factory=list)
    inside: list[NDArray[np.bool_]] = field(default_factory=list)

    def offset(self, inside: bool) -> Offset | None:
        """Medians over the draws with the marking in it, or over those without."""
        if not self.offsets:
            return None
        chosen = np.concatenate(self.offsets, axis=1)[:, np.concatenate(self.inside) == inside]
        return Offset(*np.median(chosen, axis=1).tolist()) if chosen.size else None


class _Watch:
    """Follows one marking through the draws."""

    def __init__(self, posterior: Posterior, i: int, companions: NDArray[np.int64]) -> None:
        self.posterior, self.i, self.companions = posterior, i, companions
        markings, draws = posterior.markings, posterior.draws
        self.family_rule = posterior.config.run.prior != "crp"
        relatives = np.flatnonzero(markings.families == markings.families[i])
        self.relatives = relatives[relatives != i]
        self.feature, self.noise = markings.features[i], 1.0
        if posterior.expert_bias is not None:
            expert = int(markings.families[i])
            self.feature = posterior.expert_bias.corrected(self.feature, expert)
            self.noise = posterior.expert_bias.noise(expert)
        self.places = list(self._places())
        names = np.array([place.name for place in self.places], np.int64)
        point = posterior.point_partition().labels
        #: (companions, places): to which place a companion belongs.
        self.belongs = (point[companions][:, np.newaxis] == names).astype(np.int64)
        #: (chains, places and alone)
        self.sat = np.zeros((draws.n_chains, len(names) + 1), np.int64)
        known = all(name in draws.columns.parameters for name in PARAMETERS)
        wanted = (*PARAMETERS, *rest_names(draws))
        self.columns = [draws.columns.parameters.index(n) for n in wanted] if known else None

    def _places(self) -> Iterator[_Place]:
        """Clusters of those it sat with, its own, and those of the nearest markings."""
        markings, point = self.posterior.markings, self.posterior.point_partition().labels
        places = markings.places
        apart = np.linalg.norm(places - places[self.i], axis=1)
        nearest = np.argsort(apart, kind="stable")[: NEAREST + 1]
        for name in np.unique(point[np.concatenate(([self.i], self.companions, nearest))]):
            members = np.flatnonzero(point == name)
            members = members[members != self.i]
            if members.size:
                yield _Place(int(name), members, np.zeros(self.relatives.size, np.int64))

    def add(self, chain: int, labels: NDArray[np.int32], block: ClusterBlock | None) -> None:
        """Take in a block of draws."""
        own = labels[:, self.i]
        together = (labels[:, self.companions] == own[:, np.newaxis]).astype(np.int64)
        alone = ~together.any(axis=1)
        if self.places:
            # argmax takes the first among equals, and the places are sorted by name
            seat = np.where(alone, -1, (together @ self.belongs).argmax(axis=1))
        else:
            seat = np.full(len(labels), -1)
        self.sat[chain] += np.bincount(seat + 1, minlength=len(self.places) + 1)
        for place in self.places:
            representative = most_common(labels[:, place.members])
            if self.family_rule and self.relatives.size:
                barring = labels[:, self.relatives] == representative[:, np.newaxis]
                place.barring += barring.sum(axis=0)
                place.barred += int(barring.any(axis=1).sum())
            if block is not None and self.columns is not None:
                rows = rows_of(block, representative)
                parameters = block.parameters[rows][:, self.columns].astype(np.float64)
                rest = parameters[:, len(PARAMETERS) :]
                parameters[:, : rest.shape[1]] += rest
                place.offsets.append(spreads(*self._in_a_plane(parameters)) / self.noise)
                place.inside.append(representative == own)

    def _in_a_plane(
        self, parameters: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The marking's features and the clusters' parameters; on a sphere seen from above."""
        site = self.posterior.markings.site
        if not site.on_sphere:
            return self.feature, parameters
        ground = TangentPlanes(self.feature[:1], self.feature[1:2], site.sphere_radius_km)
        east, north = ground.offsets(parameters[:, 0], parameters[:, 1])
        flat = np.column_stack([east, north, parameters[:, 2:]])
        return np.array([0.0, 0.0, self.feature[2]]), flat

    def candidates(self) -> tuple[Candidate, ...]:
        """Places where the marking sat, and those near enough to be wondered about."""
        n_draws = self.posterior.draws.n_draws
        total = self.sat.sum(axis=0) / self.sat.sum()
        by_chain = self.sat / n_draws
        found = [
            self._candidate(place, total[k], by_chain[:, k])
            for k, place in enumerate(self.places, start=1)
        ]
        found = [c for c in found if c.probability > 0 or c.distance <= NEARBY_SPREADS]
        if total[0] > 0:
            found.append(Candidate(ALONE, float(total[0]), tuple(by_chain[:, 0].tolist())))
        return tuple(sorted(found, key=lambda c: (-c.probability, c.distance, c.cluster)))

    def _candidate(
        self, place: _Place, probability: float, by_chain: NDArray[np.float64]
    ) -> Candidate:
        markings = self.posterior.markings
        n_all = self.sat.sum()
        order = np.argsort(-place.barring, kind="stable")
        return Candidate(
            cluster=place.name,
            probability=float(probability),
            by_chain=tuple(by_chain.tolist()),
            members=tuple(place.members.tolist()),
            inside=place.offset(True),
            outside=place.offset(False),
            barred=place.barred / n_all,
            barred_by=tuple(
                Companion(
                    int(self.relatives[r]),
                    str(markings.id[self.relatives[r]]),
                    str(markings.expert[self.relatives[r]]),
                    float(place.barring[r] / n_all),
                )
                for r in order
                if place.barring[r] > 0
            ),
        )


def most_common(labels: NDArray[np.int32]) -> NDArray[np.int32]:
    """The most frequent value of each row, the smallest among equals."""
    times = (labels[:, :, np.newaxis] == labels[:, np.newaxis, :]).sum(axis=2)
    best = times == times.max(axis=1, keepdims=True)
    out: NDArray[np.int32] = np.where(best, labels, np.iinfo(labels.dtype).max).min(axis=1)
    return out


def rows_of(block: ClusterBlock, names: NDArray[np.int32]) -> NDArray[np.int64]:
    """Row of the cluster named ``names[d]`` in draw d of the block."""
    draw = np.repeat(np.arange(len(names), dtype=np.int64), np.diff(block.offsets))
    width = int(block.labels.max()) + 1
    keys = draw * width + block.labels
    wanted = np.arange(len(names), dtype=np.int64) * width + names
    return np.searchsorted(keys, wanted)


def spreads(feature: NDArray[np.float64], parameters: NDArray[Any]) -> NDArray[np.float64]:
    """Distance, position offset and signed size offset in standard deviations; (3, draws).

    With v = y − μ and Σ = [[a, 0, b], [0, a, b], [b, b, d]], as in ``kernels.circle``,

        vᵀ Σ⁻¹ v = (v1² + v2²) / a + (v3 − (b / a) (v1 + v2))² / (d − 2 b² / a).
    """
    v = feature - parameters[:, :3]
    a, d, b = parameters[:, 3], parameters[:, 4], parameters[:, 5]
    along = v[:, 2] - b / a * (v[:, 0] + v[:, 1])
    squared = (v[:, 0] ** 2 + v[:, 1] ** 2) / a
    distance = np.sqrt(squared + along**2 / (d - 2.0 * b**2 / a))
    return np.stack((distance, np.sqrt(squared), v[:, 2] / np.sqrt(d)))

"""Why an item is where it is: its candidate clusters, how far they are, what barred it.

A candidate is a cluster of the point partition, or being alone. In each draw

- the item *sat* in the candidate to which most of its companions belong (the smallest name among
  equals), or alone without companions, so that the probabilities sum to one;
- a candidate is *represented* by the draw's cluster that holds most of its members, the item itself
  left out (the smallest name among equals). Distances are to the representative; the rule barred
  the item if another one of the same expert sat there.

What a distance is, and what columns say beside it, is the likelihood's to tell.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dfcrp.draws import ClusterBlock
from dfcrp.errors import InputError
from dfcrp.items.items import Items
from dfcrp.likelihoods.base import Evidence, Part
from dfcrp.likelihoods.registry import likelihood_named
from dfcrp.markup import plural
from dfcrp.posterior.explain_text import explanation_text
from dfcrp.summaries.membership import ALONE
from dfcrp.summaries.streaming import label_blocks

if TYPE_CHECKING:
    from dfcrp.posterior.posterior import Posterior

#: Nearest items whose clusters are looked at as candidates.
NEAREST = 60
#: Clusters within so many spreads are named as candidates even if the item never sat there.
NEARBY_SPREADS = 5.0


@dataclass(frozen=True)
class Companion:
    """Another item, and the share of draws in which something held for it."""

    index: int
    id: str
    expert: str
    probability: float


@dataclass(frozen=True)
class Offset:
    """How far an item lies from a cluster, in units of the cluster's fitted spread.

    Medians over draws, in standard deviations: in all, and by part; of circles the parts are
    position and diameter, where positive means that the marking is larger.
    """

    distance: float
    parts: Mapping[str, float]


@dataclass(frozen=True)
class Candidate:
    """A place where the item sat or might have sat."""

    #: Name of the cluster of the point partition; ``ALONE`` (-1) for a cluster of its own.
    cluster: int
    #: Share of draws in which the item sat here; of all chains, and of each.
    probability: float
    by_chain: tuple[float, ...]
    #: Members in the point partition, the item itself left out.
    members: tuple[int, ...] = ()
    #: Over the draws in which the item is in the representative, so that its spread was fitted
    #: with the item, and over the others; None if there are no such draws or no distances.
    inside: Offset | None = None
    outside: Offset | None = None
    #: What each column says, where that takes the place of distances.
    evidence: tuple[Evidence, ...] = ()
    #: Share of draws in which the rule barred the item, and by whom.
    barred: float = 0.0
    barred_by: tuple[Companion, ...] = ()

    @property
    def distance(self) -> float:
        """The distance to a cluster fitted without the item if there is one; NaN if unknown."""
        found = self.outside or self.inside
        return np.nan if found is None else found.distance


@dataclass(frozen=True)
class Explanation:
    """Why one item is where it is; printed, it says so in words."""

    index: int
    id: str
    expert: str
    #: What an item is called, and the columns that describe this one.
    noun: str
    described: Mapping[str, Any]
    #: Cluster of the point partition, and the membership probability as in members.csv.
    cluster: int
    p_member: float
    n_chains: int
    n_draws: int
    #: Whether one expert's items were kept apart at all.
    one_per_expert: bool
    #: Most probable first, then nearest first.
    candidates: tuple[Candidate, ...]
    #: Those it sat with, most often first.
    companions: tuple[Companion, ...]
    #: The parts of a distance, and how many numbers it is made of; none without distances.
    parts: tuple[Part, ...] = ()
    features: int = 0

    def text(self) -> str:
        """The explanation in plain words."""
        return explanation_text(self)

    def __str__(self) -> str:
        return self.text()


def find_item(items: Items, item: int | str) -> int:
    """The index of an item given by index (a whole number) or id (a text)."""
    ids, noun = items.id, likelihood_named(items.kind).noun
    if isinstance(item, str):
        found = np.flatnonzero(ids == item)
        if found.size == 1:
            return int(found[0])
        if found.size > 1:
            raise InputError(
                f'{found.size} {plural(noun)} have the id "{item}"; say which by its index: '
                f"{', '.join(map(str, found[:5]))}{', ...' if found.size > 5 else ''}"
            )
        near = difflib.get_close_matches(item, ids[:20_000].tolist(), n=1, cutoff=0.0)
        raise InputError(f'there is no {noun} "{item}"; did you mean "{near[0]}"?')
    if not 0 <= item < len(ids):
        raise InputError(f"there is no {noun} {item}; they are numbered 0 to {len(ids) - 1}")
    return int(item)


def explain(posterior: Posterior, item: int | str) -> Explanation:
    """Why an item, given by index or id, is where it is."""
    items, draws = posterior.items, posterior.draws
    i = find_item(items, item)
    companions = _companions(posterior, i)
    watch = _Watch(posterior, i, np.array([c.index for c in companions], np.int64))
    shared = draws.shared() if watch.measured else None
    for chain, start, stop, labels in label_blocks(draws):
        if shared is None:
            watch.add(chain, labels)
        else:
            block = draws.clusters(chain, start, stop)
            watch.add(chain, labels, (block, shared[chain, start:stop]))
    return Explanation(
        index=i,
        id=str(items.id[i]),
        expert=str(items.expert[i]),
        noun=posterior.likelihood.noun,
        described={name: values[i].item() for name, values in items.columns.items()},
        cluster=_name(posterior, int(posterior.point_partition().labels[i])),
        p_member=float(posterior.membership.p_member[i]),
        n_chains=draws.n_chains,
        n_draws=draws.n_chains * draws.n_draws,
        one_per_expert=posterior.prior.one_per_expert,
        candidates=tuple(
            replace(candidate, cluster=_name(posterior, candidate.cluster))
            for candidate in watch.candidates()
        ),
        companions=companions,
        parts=watch.offsets.parts if watch.offsets is not None else (),
        features=watch.offsets.features if watch.offsets is not None else 0,
    )


def _name(posterior: Posterior, label: int) -> int:
    return int(posterior.names(np.array([label]))[0])


def _companions(posterior: Posterior, i: int) -> tuple[Companion, ...]:
    pairs, items = posterior.pairs, posterior.items
    touching = np.flatnonzero((pairs.first == i) | (pairs.second == i))
    other = pairs.first[touching] + pairs.second[touching] - i
    probability = pairs.counts[:, :, touching].sum(axis=(0, 1)) / (pairs.n_chains * pairs.n_draws)
    return tuple(
        Companion(int(j), str(items.id[j]), str(items.expert[j]), float(p))
        for j, p in sorted(
            zip(other.tolist(), probability.tolist(), strict=True), key=lambda jp: (-jp[1], jp[0])
        )
    )


def nearest_first(posterior: Posterior, i: int) -> NDArray[np.int64]:
    """Rows of the items on the same image, the nearest first, ``i`` itself among them."""
    items = posterior.items
    apart = posterior.likelihood.apart(items, i)
    codes = items.image_codes
    if codes is not None:
        apart = np.where(codes == codes[i], apart, np.inf)
    order = np.argsort(apart, kind="stable")
    return order[np.isfinite(apart[order])]


#: The clusters of some draws of a chain, and what the clusters of each draw share.
Fitted = tuple[ClusterBlock, NDArray[np.float64]]


@dataclass
class _Place:
    """What is added up over the draws for one cluster of the point partition."""

    name: int
    #: Members without the item itself.
    members: NDArray[np.int64]
    #: Draws in which each item of the expert barred the place.
    barring: NDArray[np.int64]
    barred: int = 0
    #: Blocks of the distance and its parts, each (1 + parts, draws), and whether the item was in.
    offsets: list[NDArray[np.float64]] = field(default_factory=list)
    inside: list[NDArray[np.bool_]] = field(default_factory=list)

    def offset(self, parts: tuple[Part, ...], inside: bool) -> Offset | None:
        """Medians over the draws with the item in it, or over those without."""
        if not self.offsets:
            return None
        chosen = np.concatenate(self.offsets, axis=1)[:, np.concatenate(self.inside) == inside]
        if not chosen.size:
            return None
        whole, *each = np.median(chosen, axis=1).tolist()
        names = (part.name for part in parts)
        return Offset(whole, dict(zip(names, each, strict=True)))


class _Watch:
    """Follows one item through the draws."""

    def __init__(self, posterior: Posterior, i: int, companions: NDArray[np.int64]) -> None:
        self.posterior, self.i, self.companions = posterior, i, companions
        items, draws = posterior.items, posterior.draws
        relatives = np.flatnonzero(items.families == items.families[i])
        self.relatives = relatives[relatives != i]
        self.places = list(self._places())
        names = np.array([place.name for place in self.places], np.int64)
        point = posterior.point_partition().labels
        #: (companions, places): to which place a companion belongs.
        self.belongs = (point[companions][:, np.newaxis] == names).astype(np.int64)
        #: (chains, places and alone)
        self.sat = np.zeros((draws.n_chains, len(names) + 1), np.int64)
        self.offsets = posterior.likelihood.offsets(posterior, i)
        wanted = () if self.offsets is None else self.offsets.parameters
        stored = draws.columns.parameters
        self.measured = bool(wanted) and set(wanted) <= set(stored)
        self.columns = [stored.index(name) for name in wanted] if self.measured else []

    def _places(self) -> Iterator[_Place]:
        """Clusters of those it sat with, its own, and those of the nearest items."""
        point = self.posterior.point_partition().labels
        nearest = nearest_first(self.posterior, self.i)[: NEAREST + 1]
        for name in np.unique(point[np.concatenate(([self.i], self.companions, nearest))]):
            members = np.flatnonzero(point == name)
            members = members[members != self.i]
            if members.size:
                yield _Place(int(name), members, np.zeros(self.relatives.size, np.int64))

    def add(self, chain: int, labels: NDArray[np.int32], fitted: Fitted | None = None) -> None:
        """Take in a block of draws; ``fitted`` only where distances are measured."""
        own = labels[:, self.i]
        together = (labels[:, self.companions] == own[:, np.newaxis]).astype(np.int64)
        alone = ~together.any(axis=1)
        if self.places:
            # argmax takes the first among equals, and the places are sorted by name
            seat = np.where(alone, -1, (together @ self.belongs).argmax(axis=1))
        else:
            seat = np.full(len(labels), -1)
        self.sat[chain] += np.bincount(seat + 1, minlength=len(self.places) + 1)
        barring_counts = self.posterior.prior.one_per_expert and self.relatives.size
        for place in self.places:
            representative = most_common(labels[:, place.members])
            if barring_counts:
                barring = labels[:, self.relatives] == representative[:, np.newaxis]
                place.barring += barring.sum(axis=0)
                place.barred += int(barring.any(axis=1).sum())
            if fitted is not None and self.offsets is not None:
                block, shared = fitted
                rows = rows_of(block, representative)
                parameters = block.parameters[rows][:, self.columns].astype(np.float64)
                place.offsets.append(self.offsets.measure(parameters, shared))
                place.inside.append(representative == own)

    def candidates(self) -> tuple[Candidate, ...]:
        """Places where the item sat, and those near enough to be wondered about."""
        n_draws = self.posterior.draws.n_draws
        total = self.sat.sum(axis=0) / self.sat.sum()
        by_chain = self.sat / n_draws
        found = [
            self._candidate(place, total[k], by_chain[:, k])
            for k, place in enumerate(self.places, start=1)
        ]
        found = [c for c in found if c.probability > 0 or c.distance <= NEARBY_SPREADS]
        found = [replace(c, evidence=self._evidence(c)) for c in found]
        if total[0] > 0:
            found.append(Candidate(ALONE, float(total[0]), tuple(by_chain[:, 0].tolist())))
        return tuple(sorted(found, key=lambda c: (-c.probability, c.distance, c.cluster)))

    def _evidence(self, candidate: Candidate) -> tuple[Evidence, ...]:
        members = np.array(candidate.members, np.int64)
        return self.posterior.likelihood.compare(self.posterior, self.i, members)

    def _candidate(
        self, place: _Place, probability: float, by_chain: NDArray[np.float64]
    ) -> Candidate:
        items = self.posterior.items
        n_all = self.sat.sum()
        order = np.argsort(-place.barring, kind="stable")
        parts = () if self.offsets is None else self.offsets.parts
        return Candidate(
            cluster=place.name,
            probability=float(probability),
            by_chain=tuple(by_chain.tolist()),
            members=tuple(place.members.tolist()),
            inside=place.offset(parts, True),
            outside=place.offset(parts, False),
            barred=place.barred / n_all,
            barred_by=tuple(
                Companion(
                    int(self.relatives[r]),
                    str(items.id[self.relatives[r]]),
                    str(items.expert[self.relatives[r]]),
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

"""Where an item belongs and why: its candidate clusters, their distances, what barred it.

A candidate is a place of the item: a cluster of the point partition, being alone, or elsewhere.
Their probabilities are those of ``summaries.membership``, and sum to one. In each draw a candidate
cluster is *represented* by the draw's cluster that holds most of its members, the item itself left
out (the smallest name among equals). Distances are to the representative; the rule barred the item
if another one of the same expert sat there.

What a distance is, and what columns say beside it, is the likelihood's to tell. A new item, which
was not part of the run, is only weighed against the clusters of the point partition.
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
from dfcrp.items.checks import to_texts
from dfcrp.items.given import items_of
from dfcrp.items.items import Items
from dfcrp.likelihoods.base import Evidence, NewItems, Part
from dfcrp.likelihoods.integrated import weigh_beside
from dfcrp.likelihoods.registry import likelihood_named
from dfcrp.markup import counted, plural
from dfcrp.sampling.problem import problem_of
from dfcrp.summaries.membership import ALONE, ELSEWHERE
from dfcrp.summaries.streaming import label_blocks
from dfcrp.values import Array

if TYPE_CHECKING:
    from dfcrp.posterior.posterior import Posterior


#: Nearest items whose clusters are looked at as candidates.
NEAREST = 60
#: The last line of what columns add.
ALL_COLUMNS = "all columns"
#: Pairs of new items and others that are compared at a time.
PAIRS_AT_ONCE = 4_000_000
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

    #: Name of the cluster of the point partition; ``ALONE`` (-1) for a cluster of its own,
    #: ``ELSEWHERE`` (-3) for clusters of the draws that stand for none of the point partition.
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
    described: Mapping[str, object]
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
            watch.add(labels)
        else:
            block = draws.clusters(chain, start, stop)
            watch.add(labels, (block, shared[chain, start:stop]))
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

    def add(self, labels: NDArray[np.int32], fitted: Fitted | None = None) -> None:
        """Take in a block of draws; ``fitted`` only where distances are measured."""
        own = labels[:, self.i]
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
        sat = self._sat()
        found = [self._candidate(place, sat.get(place.name)) for place in self.places]
        found = [c for c in found if c.probability > 0 or c.distance <= NEARBY_SPREADS]
        found = [replace(c, evidence=self._evidence(c)) for c in found]
        found += [Candidate(name, *sat[name]) for name in (ALONE, ELSEWHERE) if name in sat]
        return tuple(sorted(found, key=lambda c: (-c.probability, c.distance, c.cluster)))

    def _sat(self) -> dict[int, tuple[float, tuple[float, ...]]]:
        """The probability of each place, over all chains and in each."""
        places = self.posterior.membership.places
        assert places is not None
        rows = places.of(self.i)
        by_chain = (places.counts[:, rows] / places.n_draws).T.tolist()
        total = places.probability[rows].tolist()
        names = places.place[rows].tolist()
        return {k: (p, tuple(each)) for k, p, each in zip(names, total, by_chain, strict=True)}

    def _evidence(self, candidate: Candidate) -> tuple[Evidence, ...]:
        members = np.array(candidate.members, np.int64)
        return self.posterior.likelihood.compare(self.posterior, self.i, members)

    def _candidate(self, place: _Place, sat: tuple[float, tuple[float, ...]] | None) -> Candidate:
        items, draws = self.posterior.items, self.posterior.draws
        n_all = draws.n_chains * draws.n_draws
        probability, by_chain = sat or (0.0, (0.0,) * draws.n_chains)
        order = np.argsort(-place.barring, kind="stable")
        parts = () if self.offsets is None else self.offsets.parts
        return Candidate(
            cluster=place.name,
            probability=probability,
            by_chain=by_chain,
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


#: Candidates and companions that are listed one by one.
MAX_LISTED = 12
#: Difference between chains above which it is mentioned.
CHAINS_DIFFER = 0.1


def percent(share: float) -> str:
    """A share in percent; never "0 %" or "100 %" for what is not quite that."""
    if 0.0 < share < 0.005:
        return "less than 1 %"
    if 0.995 < share < 1.0:
        return "more than 99 %"
    # rounded as the same number with two decimals is
    return f"{100.0 * float(f'{share:.2f}'):.0f} %"


def explanation_text(found: Explanation) -> str:
    """Several paragraphs: what, where it sat, what the rule barred, with whom."""
    parts = [_opening(found), _places(found)]
    barred = _barred_text(found)
    if barred:
        parts.append(barred)
    parts.append(_companion_lines(found))
    return "\n\n".join(parts) + "\n"


def _opening(found: Explanation) -> str:
    described = ", ".join(f"{name} {_shown(value)}" for name, value in found.described.items())
    what = f"{found.noun.capitalize()} {found.id} by {found.expert}: {described}."
    own = next((c for c in found.candidates if c.cluster == found.cluster), None)
    others = len(own.members) if own is not None else 0
    if others == 0:
        place = "In the catalogue it is alone in its cluster"
    else:
        place = (
            f"In the catalogue it belongs to cluster {found.cluster}, "
            f"with {counted(others, f'other {found.noun}')}"
        )
    return f"{what}\n{place} (membership probability {found.p_member:.2f})."


def _shown(value: object) -> str:
    return (value or "(missing)") if isinstance(value, str) else f"{value:g}"


def _places(found: Explanation) -> str:
    chains = "1 chain" if found.n_chains == 1 else f"{found.n_chains} chains"
    lines = [f"Where it was in {found.n_draws:,} draws of {chains}:"]
    for candidate in found.candidates[:MAX_LISTED]:
        lines += ["  " + line for line in _place_lines(candidate, found)]
    hidden = len(found.candidates) - MAX_LISTED
    if hidden > 0:
        lines.append(f"  and {hidden} more")
    if any(np.isfinite(c.distance) for c in found.candidates):
        lines.append(
            "Distances are in units of the cluster's fitted spread (standard deviations);\n"
            f"95 % of a cluster's own {plural(found.noun)} lie within "
            f"{_usual_reach(found.features):.1f}. A member widens the spread."
        )
    if any(c.evidence for c in found.candidates):
        lines.append(
            "For each column: what it adds to the log odds that both are one object, the sum so\n"
            f"far, and what most {plural(found.noun)} of the cluster say."
        )
    return "\n".join(lines)


def _usual_reach(features: int) -> float:
    """The distance within which 95 % lie: the root of a quantile of χ²."""
    from scipy.special import gammaincinv

    return float(np.sqrt(2.0 * gammaincinv(features / 2.0, 0.95)))


def _place_lines(candidate: Candidate, found: Explanation) -> list[str]:
    if candidate.cluster == ALONE:
        name = "alone"
    elif candidate.cluster == ELSEWHERE:
        name = "elsewhere, in a cluster that is not in the catalogue"
    elif candidate.probability == 0.0:
        name = f"cluster {candidate.cluster}, nearby"
    else:
        name = f"cluster {candidate.cluster}"
    text = f"{name}: {percent(candidate.probability) if candidate.probability else 'never'}"
    if found.n_chains > 1:
        low, high = min(candidate.by_chain), max(candidate.by_chain)
        if high - low > CHAINS_DIFFER:
            text += f" (chains disagree: {percent(low)} to {percent(high)})"
    lines = [text]
    both = candidate.inside is not None and candidate.outside is not None
    for offset, which in ((candidate.outside, "without"), (candidate.inside, "with")):
        if offset is not None:
            when = f" in draws {which} it" if both else ""
            lines.append(f"  distance {_offset(found, offset, when)}")
    if candidate.evidence:
        lines += _waterfall(candidate.evidence)
    return lines


def _offset(found: Explanation, offset: Offset, when: str) -> str:
    parts = []
    for part in found.parts:
        value = offset.parts[part.name]
        sign = "" if not part.more else f" {part.more if value > 0 else part.less}"
        parts.append(f"{part.name} {abs(value):.1f}{sign}")
    return f"{offset.distance:.1f}{when} ({', '.join(parts)})"


def _waterfall(evidence: tuple[Evidence, ...]) -> list[str]:
    """What each column adds to the log odds, the most telling first, and their sum."""
    known = [said for said in evidence if said.own and said.theirs]
    known.sort(key=lambda said: -abs(said.log_odds))
    missing = [said.name for said in evidence if not (said.own and said.theirs)]
    wide = max([len(said.name) for said in known] + [len(ALL_COLUMNS)])
    lines, total = [], 0.0
    for said in known:
        total += said.log_odds
        there = "the same" if said.own == said.theirs else f"there: {said.theirs}"
        lines.append(f"  {said.name:<{wide}} {said.log_odds:+7.1f}  {total:+7.1f}  {there}")
    lines.append(f"  {ALL_COLUMNS:<{wide}} {'':7}  {total:+7.1f}  {_times(total)}")
    if missing:
        lines.append(f"  missing: {', '.join(missing)}")
    return lines


def _times(log_odds: float) -> str:
    """Log odds as a factor, in words."""
    power = abs(log_odds) / np.log(10.0)
    times = float(f"{10.0**power:.2g}")
    factor = f"10^{power:.0f}" if power >= 6 else f"{times:,.{0 if times >= 10 else 1}f}"
    objects = "one object" if log_odds >= 0 else "two objects"
    return f"Bayes factor {factor} for {objects}"


def _barred_text(found: Explanation) -> str:
    nouns = plural(found.noun)
    if not found.one_per_expert:
        return f"No rule kept {nouns} of one expert apart in this run: they could share a cluster."
    lines = []
    for candidate in found.candidates[:MAX_LISTED]:
        if candidate.barred == 0.0:
            continue
        names = ", ".join(
            f"{other.id} ({percent(other.probability)})" for other in candidate.barred_by[:3]
        )
        more = ", ..." if len(candidate.barred_by) > 3 else ""
        lines.append(
            f"  cluster {candidate.cluster} already has another {found.noun} of this expert in "
            f"{percent(candidate.barred)} of draws: {names}{more}"
        )
    if not lines:
        return (
            f"The rule that two {nouns} by one expert never share a cluster made no difference:\n"
            f"no other {found.noun} by {found.expert} was in any of these clusters."
        )
    head = f"Because two {nouns} by {found.expert} never share a cluster,"
    return "\n".join([head, *lines])


def _companion_lines(found: Explanation) -> str:
    if not found.companions:
        return f"It never shared a cluster with any other {found.noun}."
    lines = ["It shared a cluster with:"]
    for other in found.companions[:MAX_LISTED]:
        lines.append(f"  {other.id} by {other.expert}: {percent(other.probability)}")
    hidden = len(found.companions) - MAX_LISTED
    if hidden > 0:
        lines.append(f"  and {hidden} more, each less often")
    return "\n".join(lines)


Floats = NDArray[np.float64]


def membership_of_new(
    posterior: Posterior, values: Array, families: NDArray[np.int64] | None = None
) -> Floats:
    """(m, K + 1): probability of each cluster of the point partition, and of none of them.

    The weight of a cluster is its size times the predictive density given its members, of none α
    times the prior's; what all clusters share, and α, are at their posterior means. ``families``
    are codes of the new items' sources (-1: a source not seen before); a cluster that holds the
    source already is barred, unless the prior lets an expert list an object twice.
    """
    items = posterior.items
    if posterior.likelihood.text:
        values = np.column_stack([to_texts(column.tolist()) for column in np.asarray(values).T])
    names, code = np.unique(posterior.point_partition().labels, return_inverse=True)
    sizes = np.bincount(code)
    unknown = np.full(len(values), -1)
    weight = _weights_of_new(posterior, values, unknown if families is None else families, code)
    weight += np.log(np.append(sizes, posterior.alpha.mean()))
    if families is not None and posterior.prior.one_per_expert:
        weight[:, :-1][_ruled_out(items.families, code, families, len(names))] = -np.inf
    weight -= weight.max(axis=1, keepdims=True)
    chance: Any = np.exp(weight)
    return chance / chance.sum(axis=1, keepdims=True)


def predict_new(posterior: Posterior, new: object, experts: object = None) -> dict[str, Array]:
    """The most probable cluster of each new item, -1 for none, with its probability."""
    items = posterior.items
    if items.image is not None:
        raise InputError("predict is for runs without images: fit each image by itself")
    if not posterior.likelihood.weighs_new:
        raise InputError(
            f"predict is not for {items.kind}: their clusters have parameters of their own"
        )
    given = items_of(new, None, items.kind)
    if list(given.columns) != list(items.columns):
        raise InputError(
            f"new {plural(posterior.likelihood.noun)} need the columns {', '.join(items.columns)}, "
            f"in this order, not {', '.join(given.columns)}"
        )
    codes = None
    if experts is not None:
        known = {name: code for code, name in enumerate(items.experts)}
        names = [str(name) for name in np.asarray(experts).tolist()]
        if len(names) != len(given):
            raise InputError(f"experts must be {len(given)} names, one per row, not {len(names)}")
        codes = np.array([known.get(name, -1) for name in names], dtype=np.int64)
    values: Any = np.column_stack(list(given.columns.values()))
    chance = membership_of_new(posterior, values, codes)
    best = chance.argmax(axis=1)
    clusters = np.append(np.unique(posterior.point_partition().labels), -1)
    return {
        "cluster": clusters[best].astype(np.int64),
        "probability": chance[np.arange(len(best)), best],
        "p_none": chance[:, -1],
    }


def _weights_of_new(
    posterior: Posterior, values: Array, sources: NDArray[np.int64], code: Array
) -> Floats:
    """(m, K + 1): log density of each new item given the members of each cluster, and of none."""
    items, likelihood = posterior.items, posterior.likelihood
    problem = problem_of(items, posterior.config)
    laws = len(problem.hyper.law)
    shared = posterior.draws.shared(slice(laws)).reshape(-1, laws)
    hyper = problem.hyper._replace(law=shared.mean(axis=0))
    most = int(np.bincount(code).max()) + 1
    weight = np.empty((len(values), int(code.max()) + 2))
    step = max(1, PAIRS_AT_ONCE // len(items))
    for first in range(0, len(values), step):
        rows = slice(first, first + step)
        new = NewItems(
            items, posterior.config, hyper, values[rows], sources[rows], most, problem.row_width
        )
        weight[rows] = weigh_beside(likelihood.newcomers(new), code)
    return weight


def _ruled_out(
    own: NDArray[np.int64], code: NDArray[np.int64], new: NDArray[np.int64], count: int
) -> NDArray[np.bool_]:
    """(m, K): whether the cluster has a member of the new item's source."""
    holds = np.zeros((count, int(own.max()) + 2), dtype=np.bool_)
    holds[code, own] = True
    return holds.T[new]

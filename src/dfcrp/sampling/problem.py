"""From items and settings to a problem: where likelihood and prior meet, in arrays for kernels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dfcrp.compiled.jit import AnyLikelihood, AnyPrior
from dfcrp.compiled.state import TALLY, Data, Deal, Scratch, State, Tail
from dfcrp.draws import Columns
from dfcrp.items.decisions import Decided
from dfcrp.items.items import Items
from dfcrp.items.learned import Learned
from dfcrp.likelihoods.base import Layout
from dfcrp.likelihoods.registry import likelihood_named
from dfcrp.moves.scan import DrawRecord
from dfcrp.neighbours.decided import with_groups, without_pairs
from dfcrp.neighbours.neighbourhood import CHUNK, Neighbourhood
from dfcrp.persons import persons_of
from dfcrp.priors.base import Facts, PriorLayout
from dfcrp.priors.contract import has_order, waiting_room
from dfcrp.priors.registry import prior_named
from dfcrp.settings.config import Config
from dfcrp.values import Array

#: Above this many entries the table U_f(r) is kept sparse (1 GiB of doubles would be 2^27).
DENSE_TAIL_ENTRIES = 2**25
#: With more families than this it is no faster, and takes this many times the memory.
DENSE_TAIL_FAMILIES = 512
#: Items of a block, at least: long enough to make up for the call from Python, short enough for
#: a processor's cache. What is drawn depends on it.
BLOCK_MARKINGS = 8192


@dataclass(frozen=True)
class Problem:
    """One clustering problem, ready to be sampled by any number of chains."""

    data: Data
    #: Of the likelihood: a named tuple with a ``law``, as ``likelihoods.contract`` says.
    hyper: AnyLikelihood
    #: Of the prior: a named tuple with ``own`` parameters, as ``priors.contract`` says.
    prior: AnyPrior
    alpha_start: float
    #: Numbers that a cluster's row of parameters takes in the kernels.
    row_width: int
    #: What is stored with every draw: the likelihood's, then the prior's.
    columns: Columns
    #: Which rows of parameters a cluster can have, if the likelihood can tell.
    possible: Callable[[NDArray[np.float64]], NDArray[np.bool_]] | None = None
    #: The same problem under the prior that chains take their first partition from, if they do not
    #: begin with everyone alone.
    start: Problem | None = None
    #: (chains, n) or None: clusters of an earlier run that chains begin with, by input row; items
    #: with −1 were in none.
    begin: NDArray[np.int64] | None = None
    #: What an earlier run had learned, for chains to begin with.
    learned: Learned | None = None

    @property
    def has_order(self) -> bool:
        """Whether the prior is about the order of arrival."""
        return has_order(self.prior)

    @property
    def n(self) -> int:
        """The number of items, of all components."""
        return int(self.data.family.shape[0])


def build_data(
    features: NDArray[np.float64],
    families: NDArray[np.int64],
    neighbourhood: Neighbourhood,
    *,
    weigh_features: bool = True,
) -> Data:
    """Renumber the markings by component and place, and lay out neighbours and pairs."""
    n = len(families)
    internal = neighbourhood.numbering  # input index -> internal index
    original = np.empty(n, dtype=np.int32)
    original[internal] = np.arange(n, dtype=np.int32)
    neighbour_start, neighbours = _rows(neighbourhood.pairs, internal, n, symmetric=True)
    family = families[original].astype(np.int32)
    _mark_relatives(neighbour_start, neighbours, family)
    pair_start, pair_other = _rows(neighbourhood.rivals, internal, n, symmetric=False)
    component = neighbourhood.component[original].astype(np.int32)
    block_start = _blocks(component)
    contact = internal[neighbourhood.contacts].astype(np.int32)
    contact = contact[np.argsort(contact[:, 0], kind="stable")]
    n_families = int(families.max()) + 1
    mate, lead = _circles(neighbourhood.groups, original)
    return Data(
        features=np.ascontiguousarray(features[original], dtype=np.float64),
        weigh_features=weigh_features,
        family=family,
        n_families=n_families,
        family_start=_starts(family, n_families),
        family_member=np.argsort(family, kind="stable").astype(np.int32),
        component=component,
        has_radius=neighbourhood.bounded,
        neighbour_start=neighbour_start,
        neighbours=neighbours,
        pair_start=pair_start,
        pair_other=pair_other,
        contact=contact,
        block_start=block_start,
        block_contact=np.searchsorted(contact[:, 0], block_start),
        has_groups=len(mate) > 0,
        mate=mate,
        lead=lead,
        original=original,
        internal=internal.astype(np.int32),
    )


def _circles(
    groups: NDArray[np.int64] | None, original: NDArray[np.int32]
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """The next item of each item's group, in a circle, and the first; empty without groups."""
    if groups is None or groups.max(initial=-1) < 0:
        return np.empty(0, np.int32), np.empty(0, np.int32)
    group = groups[original]
    mate = np.arange(len(group), dtype=np.int32)
    lead = mate.copy()
    for number in np.unique(group[group >= 0]).tolist():
        members = np.flatnonzero(group == number).astype(np.int32)
        mate[members] = np.roll(members, -1)
        lead[members] = members[0]
    return mate, lead


def _mark_relatives(
    start: NDArray[np.int64], neighbours: NDArray[np.int32], family: NDArray[np.int32]
) -> None:
    """Note which neighbours are of the same family; some at a time, as there may be millions."""
    for first in range(0, len(neighbours), CHUNK):
        part = neighbours[first : first + CHUNK]
        own = np.searchsorted(start, np.arange(first, first + len(part)), "right") - 1
        np.invert(part, out=part, where=family[own] == family[part])


def _blocks(component: NDArray[np.int32]) -> NDArray[np.int64]:
    """Cut the markings into blocks of whole components, each about BLOCK_MARKINGS long or more."""
    n = len(component)
    ends = np.append(np.flatnonzero(np.diff(component)) + 1, n)
    wanted = np.arange(1, n // BLOCK_MARKINGS) * BLOCK_MARKINGS
    cuts = ends[np.searchsorted(ends, wanted)]
    return np.unique(np.concatenate([[0], cuts, [n]])).astype(np.int64)


def _starts(group: Array, n_groups: int) -> NDArray[np.int64]:
    """Where each group begins when its members are listed one group after the other."""
    start = np.zeros(n_groups + 1, dtype=np.int64)
    np.cumsum(np.bincount(group, minlength=n_groups), out=start[1:])
    return start


def _rows(
    pairs: NDArray[np.int64], internal: NDArray[np.int64], n: int, *, symmetric: bool
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Lay out index pairs as compressed rows, in internal numbers and increasing order."""
    m = len(pairs)
    # Pairs as single numbers: sorting them in place takes a fraction of the memory.
    pair = np.empty(2 * m if symmetric else m, np.int64)
    for start in range(0, m, CHUNK):
        first, second = internal[pairs[start : start + CHUNK]].T
        pair[start : start + len(first)] = first * n + second
        if symmetric:
            pair[m + start : m + start + len(first)] = second * n + first
    pair.sort()
    starts = np.searchsorted(pair, n * np.arange(n + 1))
    np.remainder(pair, n, out=pair)
    return starts, pair.astype(np.int32)


def new_state(problem: Problem) -> State:
    """An empty state of the right shape; ``start_alone`` or a checkpoint fills it."""
    data, n = problem.data, problem.n
    n_components = int(data.component.max()) + 1
    return State(
        label=np.zeros(n, np.int32),
        size=np.zeros(n + 1, np.int32),
        head=np.full(n, -1, np.int32),
        after=np.full(n, -1, np.int32),
        before=np.full(n, -1, np.int32),
        free_head=np.full(n_components, -1, np.int32),
        free_after=np.full(n, -1, np.int32),
        theta=np.zeros((n, problem.row_width)),
        spare=np.zeros((n, problem.row_width)),
        spare_weight=np.zeros(n),
        order=np.arange(n, dtype=np.int32),
        rank=np.arange(n, dtype=np.int32),
        seated=np.zeros(n, np.int64),
        u=np.zeros(n),
        tail=_new_tail(problem),
        alpha=np.array([problem.alpha_start]),
        law=problem.hyper.law.copy(),
        own=problem.prior.own.copy(),
        doubt=np.zeros(n),
        visit=np.zeros(n, np.int8),
        contact_doubt=np.zeros(len(data.contact)),
        contact_visit=np.zeros(len(data.contact), np.int8),
        stale=np.zeros(1, np.int8),
        scans=np.zeros(1, np.int64),
        tally=np.zeros(len(TALLY), np.int64),
    )


def _new_tail(problem: Problem) -> Tail:
    n, n_families = problem.n, problem.data.n_families
    if not problem.has_order:
        n, n_families = 0, 0
    dense = _is_dense(n, n_families)
    sparse_n = 0 if dense else n
    return Tail(
        dense=np.zeros((n, n_families) if dense else (0, 0)),
        start=problem.data.family_start.copy(),
        rank=np.zeros(sparse_n, np.int32),
        suffix=np.zeros(sparse_n),
        total=np.zeros(n),
    )


def _is_dense(n: int, n_families: int) -> bool:
    return n_families <= DENSE_TAIL_FAMILIES and n * n_families <= DENSE_TAIL_ENTRIES


def new_scratch(problem: Problem, *, parts_only: bool = False) -> Scratch:
    """Buffers for one thread; without those of the order if it sweeps parts only."""
    n, n_families = problem.n, problem.data.n_families
    # What the order's updates need: by marking or arrival slot, and by family.
    m = 0 if parts_only else n
    of_family = np.zeros((3, 0 if parts_only else n_families), np.int64)
    dense = problem.has_order and not parts_only and _is_dense(n, n_families)
    return Scratch(
        seen=np.zeros(n + 1, np.int64),
        clock=np.zeros(1, np.int64),
        log_size=np.log(np.maximum(np.arange(n_families + 2), 1)),
        candidate=np.zeros(n + 1, np.int32),
        weight=np.zeros(n + 1),
        candidate2=np.zeros(n + 1, np.int32),
        weight2=np.zeros(n + 1),
        log_object=np.zeros(n + 1),
        excluded=of_family[0],
        table_start=np.zeros(n + 1, np.int64),
        at_table=np.zeros(m + 1, np.int32),
        to_open=of_family[1],
        to_join=of_family[2],
        seat_family=np.zeros(n, np.int32),
        seat_rank=np.zeros(n, np.int32),
        proposal=np.zeros(m, np.int32),
        proposed=np.zeros(m, np.int64),
        chosen=np.zeros(m, np.int32),
        slots=np.zeros(n, np.int32),
        value=np.zeros(m),
        free_seats=np.zeros(m),
        barred=np.zeros((n, n_families) if dense else (0, 0)),
        waiting=np.zeros(waiting_room(problem.prior, n, n_families) if m else (0, 0)),
        deal=Deal(
            member=np.zeros(n, np.int32),
            side=np.zeros(n, np.int32),
            old_side=np.zeros(n, np.int32),
            partner=np.zeros(n, np.int32),
            dealt=np.zeros(2),
            sums=np.zeros((2, problem.row_width)),
            variance=np.zeros(problem.row_width),
            theta=np.zeros((2, problem.row_width)),
        ),
    )


def new_record(problem: Problem, draws: int) -> DrawRecord:
    """Room for a block of draws."""
    n = problem.n
    return DrawRecord(
        labels=np.zeros((draws, n), np.int32),
        alpha=np.zeros(draws),
        shared=np.zeros((draws, problem.columns.width)),
        offsets=np.zeros(draws + 1, np.int64),
        cluster_labels=np.zeros(draws * n, np.int32),
        parameters=np.zeros((draws * n, len(problem.columns.parameters)), np.float32),
    )


def problem_of(items: Items, config: Config) -> Problem:
    """Whatever is to be clustered; items of different images never share a cluster."""
    likelihood = likelihood_named(config.run.likelihood)
    experts = prior_named(config.run.prior).experts(items.families)
    layout = likelihood.lay_out(items, experts, config)
    rate = likelihood.usual_alpha_rate(len(items))
    facts = Facts(
        codes=items.families,
        experts=items.experts,
        persons=persons_of(items.experts, config.run.persons),
        log_sizes=layout.log_sizes,
        sizes_drawn=likelihood.size_parameter() is not None,
        usual_alpha_rate=rate,
        **items.look_facts(),
    )
    found = assemble(layout, experts, facts, config)
    return replace(found, begin=items.start, learned=items.learned.get(""))


def assemble(layout: Layout, experts: NDArray[np.int64], facts: Facts, config: Config) -> Problem:
    """A likelihood laid out, together with the prior that the settings name."""
    named = prior_named(config.run.prior)
    of_named = named.lay_out(facts, config.prior)
    neighbourhood = _decided(layout.neighbourhood, facts.decided, of_named.unreal_alone)
    data = build_data(layout.features, experts, neighbourhood)

    def under(prior: PriorLayout, start: Problem | None = None) -> Problem:
        return Problem(
            data=data,
            hyper=layout.hyper,
            prior=prior.prior,
            alpha_start=prior.alpha_start,
            row_width=layout.row_width,
            columns=layout.columns.joined(prior.columns),
            possible=layout.possible,
            start=start,
        )

    start = None
    if named.start is not None:
        first = prior_named(named.start)
        start = under(first.lay_out(facts, first.Settings()))
    return under(of_named, start)


def _decided(found: Neighbourhood, decided: Decided | None, alone: bool) -> Neighbourhood:
    """Who may share a cluster with whom, by what people decided.

    ``alone`` if what is not real shares none.
    """
    if decided is None:
        return found
    if alone:
        decided.refuse_groups_not_real()
    found = with_groups(found, decided.group)
    solitary = decided.solitary if alone else decided.solitary[:0]
    return without_pairs(found, decided.apart, solitary, decided.at_odds)

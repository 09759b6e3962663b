"""Small problems for the exact tests: their data, states with a given content, and checks."""

from __future__ import annotations

import math
import types
from itertools import combinations

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from dfcrp.compiled import slice as slices
from dfcrp.compiled.state import Block
from dfcrp.likelihoods.bias import SHARE, Bias, with_bias
from dfcrp.likelihoods.circle import kernel as circle
from dfcrp.likelihoods.circle import plane
from dfcrp.likelihoods.circle.scatter import AXES, circle_columns
from dfcrp.likelihoods.differences import bias_columns
from dfcrp.moves import assignment, pair, scan
from dfcrp.moves.scan import Task
from dfcrp.neighbours.neighbourhood import Neighbourhood
from dfcrp.priors.arrivals.kernel import Arrivals
from dfcrp.sampling.problem import Problem, build_data, new_state
from reference import kernel_reference as reference

#: Base measure and clusters of comparable width, so that features leave the partition open; a
#: variance law that is steep in the log diameter, so that the coupling of Σ and μ matters.
HYPER = plane.CircleHyper(
    kappa_x=0.12, eta_x=2.0, tau_x=8.0, kappa_d=0.02, eta_d=1.5, tau_d=25.0, lambda_a=3.0,
    lambda_b=2.0, mu0_x=0.5, mu0_y=-0.5, mu0_l=3.0, var0_x=3.0, var0_y=2.0, var0_l=0.6, floor=1.0,
    **circle.without_law(),
)  # fmt: skip
#: The same with tolerances that are learned.
LEARNED = HYPER._replace(
    **circle.with_law(
        (2.5, 4.0), 2.8, np.array((-0.2, 0.6, -2.3, -0.2)), np.array((0.6, 0.5, 0.4, 0.5)), n=16
    )
)._replace(
    law=np.array([-0.3, 0.8, -2.5, -0.4]),
    reference=np.array((0.1, 0.5, -2.2, -0.1)),
)
#: The same as of many markings: spares are drawn from a law that does not move.
SETTLED = LEARNED._replace(follow=False)


def biased(families, hyper=LEARNED) -> plane.CircleHyper:
    """The same with experts, one for each family, who differ in offsets and noise."""
    return with_bias(hyper, "both", np.array(families), np.array([0.8, 0.6, 0.3]), 0.5)


def draw_bias(rng, bias: Bias, draws: int) -> np.ndarray:
    """Offsets along each axis of each expert, then noise, from their prior: rows of the law.

    Normals given that their sums, weighted with the experts' shares, are zero.
    """
    share = bias.work[:, SHARE]
    sd = np.array([*bias.offset_sd, bias.noise_sd])[:, np.newaxis]
    free = sd * rng.standard_normal((draws, len(sd), len(share)))
    held = free - share * (free @ share / (share @ share))[..., np.newaxis]
    offsets = np.moveaxis(held[:, :-1], 1, 2).reshape(draws, -1)
    return np.concatenate([offsets, held[:, -1]], axis=1)


def offsets_and_noise(bias: Bias, law) -> tuple[np.ndarray, np.ndarray]:
    """Of each marking: its expert's offsets (..., n, p) and log noise factor (..., n, 1)."""
    law = np.asarray(law)
    experts, p = len(bias.work), len(bias.offset_sd)
    offsets = law[..., bias.offsets : bias.offsets + p * experts]
    offsets = offsets.reshape(*law.shape[:-1], experts, p)
    noise = law[..., bias.noise : bias.noise + experts, np.newaxis]
    return offsets[..., bias.expert, :], noise[..., bias.expert, :]


def make_problem(
    families,
    features=None,
    *,
    allowed=None,
    use_order=True,
    alpha=1.0,
    update_alpha=True,
    shape=2.0,
    rate=1.0,
    hyper=HYPER,
) -> Problem:
    """A problem in which internal and input numbers agree.

    Without features it is about the partition prior alone. ``allowed[i][j]`` says who may share a
    cluster (None: everyone); its components must be contiguous. All relatives are rivals, all
    others that may share a cluster are in contact.
    """
    n = len(families)
    weigh = features is not None
    if features is None:
        features = np.zeros((n, 3))
    pairs = [(i, j) for i, j in combinations(range(n), 2) if allowed is None or allowed[i][j]]
    rivals = [(i, j) for i, j in combinations(range(n), 2) if families[i] == families[j]]
    contacts = [(i, j) for i, j in pairs if families[i] != families[j]]
    neighbourhood = Neighbourhood(
        bounded=allowed is not None,
        pairs=_as_pairs(pairs if allowed is not None else []),
        rivals=_as_pairs(rivals),
        contacts=_as_pairs(contacts),
        component=_components(pairs, n) if allowed is not None else np.zeros(n, np.int64),
        numbering=np.arange(n),
    )
    data = build_data(
        np.asarray(features, float), np.asarray(families), neighbourhood, weigh_features=weigh
    )
    columns = circle_columns(hyper)
    if hyper.bias.on:
        experts = [str(f) for f in range(len(hyper.bias.work))]
        columns = columns.joined(bias_columns(hyper.bias, experts, AXES))
    prior = Arrivals(use_order, update_alpha, shape, rate, np.empty(0))
    return Problem(data, hyper, prior, alpha, circle.WIDTH, columns)


def _as_pairs(listed) -> np.ndarray:
    return np.array(listed, dtype=np.int64).reshape(-1, 2)


def _components(pairs, n) -> np.ndarray:
    ends = _as_pairs(pairs)
    graph = coo_array((np.ones(len(ends)), (ends[:, 0], ends[:, 1])), shape=(n, n))
    component = connected_components(graph, directed=False)[1].astype(np.int64)
    assert (np.diff(component) >= 0).all(), "components must be contiguous"
    return component


def seat_partition(labels, component) -> dict[str, np.ndarray]:
    """The arrays of a state that describe a partition; a cluster's slot is its first member."""
    n = len(labels)
    arrays = {
        name: np.full(n, -1, np.int32)
        for name in ("label", "head", "after", "before", "free_after")
    }
    # The slot behind the last is nowhere.
    arrays["size"] = np.zeros(n + 1, np.int32)
    arrays["size"][n] = -1
    arrays["free_head"] = np.full(int(component.max()) + 1, -1, np.int32)
    for members in reference.clusters(labels):
        slot = members[0]
        arrays["label"][members] = slot
        arrays["size"][slot] = len(members)
        arrays["head"][slot] = slot
        arrays["after"][members[:-1]] = members[1:]
        arrays["before"][members[1:]] = members[:-1]
    for slot in range(n - 1, -1, -1):
        if arrays["size"][slot] == 0:
            arrays["free_after"][slot] = arrays["free_head"][component[slot]]
            arrays["free_head"][component[slot]] = slot
    return arrays


def complete(rows) -> np.ndarray:
    """Parameter rows (..., 6) with the columns that the kernels derive from them."""
    rows = np.asarray(rows, dtype=float)
    a, d, lam = rows[..., 3], rows[..., 4], rows[..., 5]
    s = d * (1.0 - lam**2)
    derived = [
        1.0 / a,
        lam * np.sqrt(d / (2.0 * a)),
        1.0 / s,
        -np.log(a) - 0.5 * np.log(s) - 1.5 * np.log(2.0 * np.pi),
        np.log(a),
        np.log(d),
    ]
    return np.concatenate([rows, np.stack(derived, axis=-1)], axis=-1)


def random_rows(rng, hyper, size, law=None, log_size=None) -> np.ndarray:
    """Parameter rows from the base measure, shape (*size, 6); given log sizes if there are any."""
    mean = np.array([hyper.mu0_x, hyper.mu0_y, hyper.mu0_l])
    sd = np.sqrt([hyper.var0_x, hyper.var0_y, hyper.var0_l])
    mu = mean + sd * rng.standard_normal((*size, 3))
    if log_size is not None:
        mu[..., 2] = log_size
    prior_a, prior_d = reference.variance_priors(hyper, mu[..., 2], law)
    a, d = prior_a.rvs(size, random_state=rng), prior_d.rvs(size, random_state=rng)
    lam = 2.0 * rng.beta(hyper.lambda_a, hyper.lambda_b, size) - 1.0
    return np.concatenate([mu, np.stack([a, d, lam], axis=-1)], axis=-1)


def random_features(rng, rows) -> np.ndarray:
    """One y for each parameter row."""
    a, d, lam = rows[..., 3], rows[..., 4], rows[..., 5]
    noise = rng.standard_normal((*rows.shape[:-1], 3))
    across = np.sqrt(a)[..., None] * noise[..., :2]
    along = lam * np.sqrt(d / (2.0 * a)) * across.sum(axis=-1)
    size = along + np.sqrt(d * (1.0 - lam**2)) * noise[..., 2]
    return rows[..., :3] + np.concatenate([across, size[..., None]], axis=-1)


def fill_state(problem: Problem, labels, *, order=None, u=None, alpha=1.0, theta=None, spare=None):
    """A state with this content; ``theta`` and ``spare`` are rows by marking.

    A cluster has the row of its first member. Spare weights come from the slow twin, D and the
    tail are left to the caller.
    """
    state = new_state(problem)
    for name, values in seat_partition(labels, problem.data.component).items():
        getattr(state, name)[...] = values
    n = problem.n
    state.order[:] = np.arange(n) if order is None else order
    state.rank[state.order] = np.arange(n)
    state.u[:] = 0.0 if u is None else u
    state.alpha[0] = alpha
    if theta is not None:
        state.theta[:] = complete(theta)
        state.spare[:] = complete(spare)
        state.spare_weight[:] = [
            reference.opening_weight(problem.hyper, row, y)
            for row, y in zip(spare, problem.data.features, strict=True)
        ]
    return state


def partition_of(state) -> tuple[int, ...]:
    """The state's partition, labels numbered by first appearance."""
    number: dict[int, int] = {}
    return tuple(number.setdefault(int(slot), len(number)) for slot in state.label)


def whole(data) -> Block:
    """All of the data as one block."""
    return Block(0, len(data.family), 0, len(data.contact))


def scans(record, thin: int = 1) -> Task:
    """Whole scans, with a draw after every thin-th."""
    return Task(True, True, True, 0, len(record.alpha), thin)


def run_exact(rng, data, hyper, prior, state, scratch, thin, record) -> None:
    """The exact sampler on the data as a whole, called like the paper's."""
    scan.run_exact(
        rng, data, hyper, prior, state, scratch, whole(data), scans(record, thin), record
    )


def with_callees(dispatcher, **callees):
    """The Python source of a kernel, run as it is but for the functions replaced by name."""
    source = dispatcher.py_func
    assert set(callees) <= set(source.__code__.co_names), "a kernel does not call this"
    return types.FunctionType(source.__code__, {**source.__globals__, **callees})


def slice_update_of(log_density, kernel=slices.slice_update):
    """A slice update, in Python, of whatever log density of a value is given."""

    def target(_, value):
        return log_density(value)

    shrink = with_callees(slices.shrink, log_target=target)
    update = with_callees(kernel, log_target=target, shrink=shrink)
    return lambda rng, _, start, width, least: update(rng, None, start, width, least)


def shrinking_update_of(log_density):
    """The same without stepping out."""
    return slice_update_of(log_density, slices.shrinking_update)


def update_marking_by(pick, **callees):
    """The update of one marking with its choice made by ``pick`` over the exact weights.

    The shortcut that spares most markings the exact weights is left out; a test of its own shows
    that it makes no difference.
    """
    choose = with_callees(assignment.choose, pick=pick, favourite=lambda *_: -1)
    update = with_callees(assignment.update_marking, **{"choose": choose, **callees})

    def run(rng, data, hyper, prior, state, scratch, i):
        update(rng, data, hyper, prior, state, scratch, i, np.log(state.alpha[0]))

    return run


def slots_as_they_are(rng, *given):
    """For ``pair.update_pair`` given the order of arrival."""
    return pair.weigh_both(*given)


def assert_consistent(data, state) -> None:
    """Lists, sizes, free slots and the order agree with the labels; no rule is broken."""
    n = len(data.family)
    label = state.label
    assert ((label >= 0) & (label < n)).all()
    # A component's clusters live in its own slots.
    assert (data.component[label] == data.component).all()
    assert (state.size[:n] == np.bincount(label, minlength=n)).all()
    assert state.size[n] == -1
    for k in range(n):
        if state.size[k] == 0:
            continue
        members, previous, i = [], -1, state.head[k]
        while i != -1:
            assert label[i] == k
            assert state.before[i] == previous
            members.append(int(i))
            assert len(members) <= n
            previous, i = i, state.after[i]
        assert len(members) == state.size[k]
        families = data.family[members]
        assert len(set(families.tolist())) == len(members), "a cluster holds a family twice"
        if data.has_radius:
            for i, j in combinations(members, 2):
                first, last = data.neighbour_start[i], data.neighbour_start[i + 1]
                # Members are no relatives, and relatives alone are listed as ~j.
                assert j in data.neighbours[first:last], "members out of reach of each other"
    free: list[int] = []
    for component, first in enumerate(state.free_head):
        k = first
        while k != -1:
            assert data.component[k] == component
            free.append(int(k))
            assert len(free) <= n
            k = state.free_after[k]
    assert sorted(free) == np.flatnonzero(state.size[:n] == 0).tolist()
    assert sorted(state.order.tolist()) == list(range(n))
    assert (state.rank[state.order] == np.arange(n)).all()
    assert (state.u >= 0.0).all()
    # A prior without α has none.
    assert state.alpha[0] > 0.0 or math.isnan(state.alpha[0])

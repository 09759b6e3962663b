"""Whatever the data, radius, prior and seed: no cluster breaks a rule, the state stays consistent.

Items are drawn on a coarse lattice, so that they often coincide, and in clumps, so that many
compete for one cluster.
"""

from __future__ import annotations

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dfcrp.likelihoods.circle import kernel as circle
from dfcrp.likelihoods.circle.neighbours import find_neighbours
from dfcrp.likelihoods.circle.scatter import circle_columns
from dfcrp.moves import revisit
from dfcrp.moves.paper import run_modified, run_unmodified
from dfcrp.moves.scan import start_alone
from dfcrp.priors.arrivals.kernel import Arrivals
from dfcrp.priors.contract import of_chain
from dfcrp.sampling import problem as problem_module
from dfcrp.sampling.problem import Problem, build_data, new_record, new_scratch, new_state
from reference import detection_reference
from reference import kernel_reference as reference
from reference import small_problems as small

SAMPLERS = {"exact": small.run_exact, "paper": run_modified, "unmodified": run_unmodified}
# Compiling may fall into the first example.
PROFILE = settings(
    max_examples=60, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)


@st.composite
def markings(draw):
    """Features and families of up to 25 markings by up to 6 experts."""
    n = draw(st.integers(1, 25))
    experts = draw(st.integers(1, 6))
    families = draw(st.lists(st.integers(0, experts - 1), min_size=n, max_size=n))
    spacing = draw(st.sampled_from([0.2, 1.0, 5.0]))
    place = st.integers(-4, 4)
    features = draw(st.lists(st.tuples(place, place, st.integers(-3, 3)), min_size=n, max_size=n))
    scaled = np.array(features, float) * [spacing, spacing, 0.3] + [0.0, 0.0, 3.0]
    return scaled, np.unique(families, return_inverse=True)[1]


@given(
    data=markings(),
    radius=st.sampled_from([None, "auto", 0.3, 2.0, 30.0]),
    prior=st.sampled_from(["dfcrp", "constrained", "crp", "detection"]),
    sampler=st.sampled_from(["exact", "exact", "paper", "unmodified"]),
    seed=st.integers(0, 2**32 - 1),
    sparse=st.booleans(),
    age=st.sampled_from([0, revisit.NOTE_UNTIL - 4, revisit.NOTE_UNTIL]),
)
@PROFILE
def test_no_draw_breaks_the_rules(data, radius, prior, sampler, seed, sparse, age):
    features, families = data
    if prior == "crp":
        families = np.arange(len(families))
    if sampler == "unmodified":  # it knows the order alone
        prior = "dfcrp"
    if prior == "detection":  # and the paper's samplers know nothing else
        sampler = "exact"
    before = problem_module.DENSE_TAIL_ENTRIES
    problem_module.DENSE_TAIL_ENTRIES = 0 if sparse else before
    try:
        record, kept = run(features, families, radius, prior, SAMPLERS[sampler], seed, age)
    finally:
        problem_module.DENSE_TAIL_ENTRIES = before
    allowed = None if radius is None else kept
    for row, labels in enumerate(record.labels.tolist()):
        assert reference.keeps_the_rule(labels, families, allowed)
        assert labels == smallest_members(labels)
        names = record.cluster_labels[record.offsets[row] : record.offsets[row + 1]]
        assert names.tolist() == sorted(set(labels))
    parameters = record.parameters[: record.offsets[-1]]
    assert np.isfinite(parameters).all()
    assert (parameters[:, 3:5] > 0.0).all()
    numbers = record.shared if prior == "detection" else record.alpha
    # Where nobody looked twice, false marks do not come in clumps: κ is ∞.
    assert (np.isfinite(numbers) | (numbers == np.inf)).all()
    assert np.isinf(numbers).sum(axis=-1).max() <= (prior == "detection")


def run(features, families, radius, prior, sampler, seed, age):
    """Ten draws, the state checked after each; also who is whose neighbour, in input order."""
    neighbourhood = find_neighbours(features, families, radius, small.HYPER)
    problem = Problem(
        build_data(features, families, neighbourhood),
        small.HYPER,
        Arrivals(prior == "dfcrp", True, 2.0, 1.0, np.empty(0)),
        1.0,
        circle.WIDTH,
        circle_columns(small.HYPER),
    )
    if prior == "detection":
        # Every other expert is one person's second list.
        persons = np.arange(families.max() + 1) // 2
        problem = detection_reference.with_prior(
            problem, detection_reference.make_prior(families, persons, seed=seed, classes=3)
        )
    rng = np.random.default_rng(seed)
    state, scratch = new_state(problem), new_scratch(problem)
    own_prior = of_chain(problem.prior, state.own)
    start_alone(rng, problem.data, problem.hyper, state)
    small.assert_consistent(problem.data, state)
    # A chain of that age: it notes who is in doubt, lists them, and visits them more often.
    state.scans[0] = age
    state.visit[:] = rng.integers(0, 3, size=problem.n)
    state.contact_visit[:] = rng.integers(0, 2, size=len(state.contact_visit))
    record = new_record(problem, 4)
    for _ in range(3):
        arguments = problem.data, problem.hyper, own_prior, state, scratch, 1, record
        sampler(rng, *arguments)
        small.assert_consistent(problem.data, state)
    allowed = np.eye(len(families), dtype=bool)
    allowed[neighbourhood.pairs[:, 0], neighbourhood.pairs[:, 1]] = True
    return record, allowed | allowed.T


def smallest_members(labels) -> list[int]:
    """Each cluster named after its smallest member."""
    return [labels.index(label) for label in labels]


@given(data=markings(), radius=st.floats(0.05, 50.0))
@settings(max_examples=60, deadline=None, derandomize=True)
def test_neighbours_are_those_within_the_radius(data, radius):
    """Every pair within the radius and no other, in both directions, relatives marked."""
    features, families = data
    kept = build_data(features, families, find_neighbours(features, families, radius, small.HYPER))
    position = features[:, :2]
    apart = np.hypot(*(position[:, None] - position[None, :]).transpose(2, 0, 1))
    for i, given_index in enumerate(kept.original):
        row = kept.neighbours[kept.neighbour_start[i] : kept.neighbour_start[i + 1]]
        near = np.where(row < 0, ~row, row)
        expected = np.flatnonzero(apart[given_index] <= radius)
        assert sorted(kept.original[near].tolist()) == [j for j in expected if j != given_index]
        assert ((row < 0) == (kept.family[near] == kept.family[i])).all()
        assert (kept.component[near] == kept.component[i]).all()

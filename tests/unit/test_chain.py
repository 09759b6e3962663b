"""Chains: the same draws however they are cut, run, stopped or resumed."""

import numpy as np
import pytest

from dfcrp.runs.store import MemoryStore
from dfcrp.sampling import problem as problem_module
from dfcrp.sampling.chain import Chain
from dfcrp.sampling.runner import Runner
from dfcrp.settings.config import make_config
from dfcrp.settings.values import SAMPLERS
from dfcrp.simulate import paper_design
from studies.problems import make_problem


def problem_of(prior="dfcrp", radius=60.0, n_objects=8):
    from dfcrp.simulate import SimulationDesign

    markings = SimulationDesign(n_objects=n_objects).draw(4)
    config = make_config({"run": {"preset": "simulation", "radius": radius, "prior": prior}})
    return make_problem(markings.features, markings.families, config)


def seed():
    return np.random.SeedSequence(11)


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_blocks_do_not_change_the_draws(sampler):
    whole = Chain(problem_of(), seed(), sampler).run(9, 2)
    pieces = Chain(problem_of(), seed(), sampler)
    parts = [pieces.run(length, 2) for length in (1, 3, 5)]
    np.testing.assert_array_equal(whole.labels, np.concatenate([p.labels for p in parts]))
    np.testing.assert_array_equal(whole.alpha, np.concatenate([p.alpha for p in parts]))
    np.testing.assert_array_equal(whole.parameters, np.concatenate([p.parameters for p in parts]))


@pytest.mark.parametrize("prior", ["dfcrp", "constrained", "crp", "detection"])
@pytest.mark.parametrize("radius", [None, 60.0, "auto"])
@pytest.mark.parametrize("scans", [7, 130])
def test_a_restored_chain_goes_on_as_if_never_stopped(prior, radius, scans):
    problem = problem_of(prior, "none" if radius is None else radius)
    chain = Chain(problem, seed(), "exact")
    chain.run(1, scans)
    arrays, generator = chain.snapshot()
    expected = chain.run(20, 1)
    other = Chain(problem, np.random.SeedSequence(99), "exact")
    other.restore(arrays, generator)
    found = other.run(20, 1)
    for name in expected._fields:
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))


@pytest.fixture
def many_parts(monkeypatch):
    """A problem that is swept in more than two parts."""
    monkeypatch.setattr(problem_module, "BLOCK_MARKINGS", 30)
    problem = problem_of(radius=30.0, n_objects=30)
    assert len(problem.data.block_start) > 4
    return problem


def test_threads_do_not_change_the_draws(many_parts):
    def block(threads):
        return Chain(many_parts, seed(), "exact", threads).run(130, 2)

    one = block(1)
    for threads in (2, 3):
        for name, found in block(threads)._asdict().items():
            np.testing.assert_array_equal(found, getattr(one, name))


def test_a_chain_in_parts_goes_on_as_if_never_stopped(many_parts):
    chain = Chain(many_parts, seed(), "exact", threads=2)
    chain.run(3, 40)
    arrays, generators = chain.snapshot()
    tally = chain.tally
    expected = chain.run(20, 1)
    other = Chain(many_parts, np.random.SeedSequence(99), "exact")
    other.restore(arrays, generators)
    assert other.tally == tally
    for name, found in other.run(20, 1)._asdict().items():
        np.testing.assert_array_equal(found, getattr(expected, name))


def test_parts_keep_to_themselves(many_parts):
    """Neighbours, rivals and contacts never cross the border of a part."""
    data = many_parts.data
    part = np.searchsorted(data.block_start, np.arange(many_parts.n), side="right")
    others = np.where(data.neighbours < 0, ~data.neighbours, data.neighbours)
    of_neighbours = np.repeat(np.arange(many_parts.n), np.diff(data.neighbour_start))
    of_rivals = np.repeat(np.arange(many_parts.n), np.diff(data.pair_start))
    assert (part[of_neighbours] == part[others]).all()
    assert (part[of_rivals] == part[data.pair_other]).all()
    assert (part[data.contact[:, 0]] == part[data.contact[:, 1]]).all()
    first = data.block_contact[:-1]
    for number, (low, high) in enumerate(zip(first, data.block_contact[1:], strict=True), start=1):
        assert (part[data.contact[low:high]] == number).all()


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_workers_do_not_change_the_draws(workers):
    def labels(workers):
        store, problem = MemoryStore(), problem_of()
        writers = [store.writer(0, chain, problem.n, problem.columns) for chain in range(3)]
        runner = Runner(problem, writers, seed=7, workers=workers)
        runner.advance(20)
        runner.advance(45)
        return store.draws(burn_in=5)

    one, many = labels(1), labels(workers)
    for chain in range(3):
        np.testing.assert_array_equal(one.labels(chain, 0, 40), many.labels(chain, 0, 40))
    np.testing.assert_array_equal(one.alpha(), many.alpha())
    assert not np.array_equal(one.alpha()[0], one.alpha()[1])


def test_a_stop_leaves_equal_lengths_readable():
    store, problem = MemoryStore(), problem_of()
    writers = [store.writer(0, chain, problem.n, problem.columns) for chain in range(2)]
    runner = Runner(problem, writers, seed=1, workers=1, observer=lambda progress: runner.stop())
    runner.advance(5000)
    assert runner.stopped
    assert runner.scans < 5000


def test_clusters_recorded_with_a_draw_belong_to_it():
    markings = paper_design(2)
    config = make_config({"run": {"preset": "simulation"}})
    block = Chain(make_problem(markings.features, markings.families, config), seed(), "exact").run(
        40, 1
    )
    for draw in range(40):
        rows = slice(block.offsets[draw], block.offsets[draw + 1])
        names = block.cluster_labels[rows]
        np.testing.assert_array_equal(names, np.unique(block.labels[draw]))
        for name, parameters in zip(names, block.parameters[rows], strict=True):
            members = np.flatnonzero(block.labels[draw] == name)
            assert members[0] == name
            apart = markings.features[members].mean(axis=0) - parameters[:3]
            assert abs(apart[0]) < 40
            assert abs(apart[1]) < 40
            a, d, b = parameters[3:]
            assert a > 0
            assert d > 0
            assert 2 * b * b < a * d

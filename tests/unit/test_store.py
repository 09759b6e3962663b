"""Draws on disk: what was saved comes back, whatever happened since."""

import contextlib
import errno
import itertools
import json
import os
import pickle
import shutil
import signal
import stat
import subprocess
import sys
import threading
import tracemalloc
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dfcrp.draws import (
    NO_COLUMNS,
    ClusterBlock,
    Columns,
    DrawBlock,
    Draws,
    MemoryDraws,
    blocks,
)
from dfcrp.errors import DfcrpError, RunFolderError
from dfcrp.runs import blocks as sizes
from dfcrp.runs import chain_writer, shards, zarr_zip
from dfcrp.runs import store as store_module
from dfcrp.runs.blocks import MemoryBlock
from dfcrp.runs.lock import LostClaimError, taken_over
from dfcrp.runs.store import DrawStore, MemoryStore, anything_drawn
from dfcrp.runs.zarr_zip import META
from fuzz.zipped import change_index, members, place_of_member, put_together

N = 11
NAMES = Columns.plain(("mean_x", "mean_y", "spread"), ("level", "growth"))


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    """Blocks and chunks so short that a handful of draws crosses their edges."""
    monkeypatch.setattr(sizes, "MOST_DRAWS", 6)
    monkeypatch.setattr(zarr_zip, "CHUNK_BYTES", 192)


class Chain:
    """Made-up draws of one chain in memory."""

    def __init__(self, n_draws, seed=0, n=N, names=NAMES):
        rng = np.random.default_rng(seed)
        rough = rng.integers(0, rng.integers(1, n + 1, size=(n_draws, 1)), size=(n_draws, n))
        smallest = [[row.tolist().index(label) for label in row] for row in rough]
        self.labels = np.array(smallest, dtype=np.int32).reshape(n_draws, n)
        per_draw = [np.unique(row) for row in self.labels]
        self.alpha = rng.gamma(2.0, size=n_draws)
        self.offsets = np.concatenate([[0], np.cumsum([len(u) for u in per_draw])]).astype(np.int64)
        self.cluster_labels = np.concatenate([*per_draw, []]).astype(np.int32)
        self.parameters = rng.normal(size=(self.offsets[-1], len(names.parameters)))
        self.parameters = self.parameters.astype(np.float32)
        self.shared = rng.normal(size=(n_draws, names.width))

    def append_to(self, writer, start, stop):
        first, last = self.offsets[start], self.offsets[stop]
        writer.append(
            DrawBlock(
                self.labels[start:stop],
                self.alpha[start:stop],
                self.offsets[start : stop + 1] - first,
                self.cluster_labels[first:last],
                self.parameters[first:last],
                self.shared[start:stop],
            )
        )


class Sampler:
    """Stands for a chain of the sampler, with a state that tells how far it is."""

    def __init__(self, scans=0, size=3):
        self.scans = scans
        self.size = size
        self.rng = np.random.default_rng(scans)

    def snapshot(self):
        arrays = {
            "scans": np.array([self.scans], np.int64),
            "order": np.arange(self.scans, self.scans + self.size, dtype=np.int32),
            "empty": np.zeros((0, 2), np.float32),
        }
        return arrays, [dict(np.random.default_rng(self.scans).bit_generator.state)]

    def restore(self, arrays, generators):
        (self.scans,) = arrays["scans"].tolist()
        assert arrays["order"].tolist() == list(range(self.scans, self.scans + self.size))
        assert arrays["empty"].shape == (0, 2)
        assert generators == self.snapshot()[1]


def store_of(run):
    return DrawStore.open(run) if (run / "draws.zarr").exists() else DrawStore.create(run)


def save(writer, seconds=0.0, **kwargs):
    """Save all that was appended; a scan to a draw."""
    writer.save(Sampler(writer.n_draws, **kwargs), seconds)


def restored(run, chain=0, part=0, **kwargs):
    writer = DrawStore.open(run).writer(part, chain, N, NAMES, **kwargs)
    writer.restore(Sampler(), 1)
    return writer


def write(run, chain, draws, steps=None, part=0):
    writer = store_of(run).writer(part, chain, N, NAMES)
    edges = np.cumsum([0, *(steps or [len(draws.alpha)])])
    for start, stop in itertools.pairwise(edges):
        draws.append_to(writer, start, stop)
    save(writer)
    return writer


def stored_draws(run, *args, **kwargs):
    return DrawStore.open(run).draws(0, *args, **kwargs)


def saved_draws(run):
    return DrawStore.open(run).saved_draws(0)


def in_memory(chains, indices):
    """The same draws as MemoryDraws."""
    picked = []
    for chain in chains:
        ranges = [np.arange(chain.offsets[d], chain.offsets[d + 1]) for d in indices]
        rows = np.concatenate(ranges)
        offsets = np.concatenate([[0], np.cumsum([len(r) for r in ranges])])
        picked.append(ClusterBlock(offsets, chain.cluster_labels[rows], chain.parameters[rows]))
    labels = np.stack([chain.labels[indices] for chain in chains])
    alpha = np.stack([chain.alpha[indices] for chain in chains])
    shared = np.stack([chain.shared[indices] for chain in chains])
    return MemoryDraws(labels, alpha, picked, NAMES, shared)


def assert_same(stored, expected: Draws, step=4):
    shape = (expected.n_chains, expected.n_draws, expected.n_markings)
    assert (stored.n_chains, stored.n_draws, stored.n_markings) == shape
    assert stored.columns == expected.columns
    np.testing.assert_array_equal(stored.alpha(), expected.alpha())
    np.testing.assert_array_equal(stored.shared(), expected.shared())
    own = np.arange(expected.n_markings)
    n_clusters = [
        (expected.labels(chain, 0, expected.n_draws) == own).sum(axis=1)
        for chain in range(expected.n_chains)
    ]
    np.testing.assert_array_equal(stored.n_clusters(), n_clusters)
    marking = expected.n_markings - 1
    np.testing.assert_array_equal(stored.history(marking), expected.history(marking))
    for chain, start, stop in blocks(expected, step):
        labels = stored.labels(chain, start, stop)
        assert labels.dtype == np.int32
        np.testing.assert_array_equal(labels, expected.labels(chain, start, stop))
        got, want = stored.clusters(chain, start, stop), expected.clusters(chain, start, stop)
        np.testing.assert_array_equal(got.offsets, want.offsets)
        np.testing.assert_array_equal(got.labels, want.labels)
        np.testing.assert_array_equal(got.parameters, want.parameters)


def assert_holds(run, chain, n_draws):
    """The run has one chain, and of it exactly the first draws of ``chain``."""
    assert saved_draws(run) == ({0: n_draws} if n_draws else {})
    if n_draws:
        assert_same(stored_draws(run), in_memory([chain], np.arange(n_draws)), step=100)


def shard_files(run):
    return sorted((run / "draws.zarr").glob("shard-*.zip"))


def states(run):
    """The shards with a state."""
    return [path for path in shard_files(run) if "state/zarr.json" in members(path)]


def parts_left(run):
    return list(run.rglob("*.part"))


# --- writing and reading


def test_round_trip_of_two_chains(tmp_path):
    chains = [Chain(40, seed) for seed in (1, 2)]
    for number, chain in enumerate(chains):
        write(tmp_path, number, chain)
    stored = stored_draws(tmp_path)
    expected = in_memory(chains, np.arange(40))
    assert_same(stored, expected, step=7)
    for marking in range(N):
        np.testing.assert_array_equal(stored.history(marking), expected.history(marking))
    np.testing.assert_array_equal(stored.label_array(), [c.labels for c in chains])
    assert stored.chain_numbers == (0, 1)


@pytest.mark.parametrize("n", [1, 2, 25, 26])
def test_any_number_of_markings(tmp_path, n):
    chain = Chain(15, n=n)
    writer = DrawStore.create(tmp_path).writer(0, 0, n, NAMES)
    chain.append_to(writer, 0, 15)
    save(writer)
    np.testing.assert_array_equal(stored_draws(tmp_path).label_array()[0], chain.labels)


def test_without_parameters(tmp_path):
    chain = Chain(9, names=NO_COLUMNS)
    writer = DrawStore.create(tmp_path).writer(0, 0, N, NO_COLUMNS)
    chain.append_to(writer, 0, 9)
    save(writer)
    stored = stored_draws(tmp_path)
    block = stored.clusters(0, 2, 5)
    assert block.parameters.shape == (chain.offsets[5] - chain.offsets[2], 0)
    assert stored.shared().shape == (1, 9, 0)


def test_concentration_may_be_missing(tmp_path):
    chain = Chain(12)
    chain.alpha[:] = np.nan
    write(tmp_path, 0, chain)
    assert np.isnan(stored_draws(tmp_path).alpha()).all()


def test_many_small_appends_make_the_files_of_one_large(tmp_path, monkeypatch):
    monkeypatch.setattr(sizes, "BLOCK_BYTES", 700)  # blocks are cut by bytes as well
    chain = Chain(30)
    write(tmp_path / "large", 0, chain)
    write(tmp_path / "small", 0, chain, [1] * 30)
    large, small = shard_files(tmp_path / "large"), shard_files(tmp_path / "small")
    assert len(large) == len(small) > 5
    assert all(members(a) == members(b) for a, b in zip(large, small, strict=True))


def test_a_shard_is_an_ordinary_group_of_zarr(tmp_path):
    zarr = pytest.importorskip("zarr")

    chain = Chain(5)
    write(tmp_path, 0, chain)
    (path,) = shard_files(tmp_path)
    with zarr.storage.ZipStore(path, mode="r") as store:
        group = zarr.open_group(store, mode="r")
        arrays = dict(group.arrays())
        of_draws = {"labels", "alpha", "n_clusters", "level", "growth"}
        assert arrays.keys() == of_draws | {"cluster_labels", "mean_x", "mean_y", "spread"}
        np.testing.assert_array_equal(arrays["labels"][:].T, chain.labels)
        np.testing.assert_array_equal(arrays["alpha"][:], [chain.alpha])
        np.testing.assert_array_equal(arrays["n_clusters"][:], [np.diff(chain.offsets)])
        np.testing.assert_array_equal(arrays["growth"][:], [chain.shared[:, 1]])
        np.testing.assert_array_equal(arrays["cluster_labels"][:], chain.cluster_labels)
        np.testing.assert_array_equal(arrays["mean_y"][:], chain.parameters[:, 1])
        np.testing.assert_array_equal(group["state/order"][:], [5, 6, 7])
        assert arrays["labels"].metadata.dimension_names == ("item", "draw")


def test_a_shard_is_a_dataset_of_xarray(tmp_path):
    zarr, xarray = pytest.importorskip("zarr"), pytest.importorskip("xarray")

    store = DrawStore.create(tmp_path, seconds=1e9)
    draws = [Chain(4, 1), Chain(4, 2), Chain(3, 3)]
    for number, chain in enumerate(draws):
        chain.append_to(store.writer(number, 0, N, NAMES, share=True), 0, len(chain.alpha))
    for number, chain in enumerate(draws):
        writer = store.writer(number, 0, N, NAMES, share=True)
        chain.append_to(writer, 0, len(chain.alpha))
        save(writer)
    store.flush()
    (path,) = shard_files(tmp_path)
    with zarr.storage.ZipStore(path, mode="r") as file:
        both = xarray.open_zarr(file, group="0", consolidated=False)
        assert both.sizes["item"] == 2 * N  # two parts side by side
        np.testing.assert_array_equal(both["labels"][N:].T, draws[1].labels)
        np.testing.assert_array_equal(both["level"][1], draws[1].shared[:, 0])
        assert both.attrs["blocks"]["part"] == [0, 1]
        tree = xarray.open_datatree(file, engine="zarr", consolidated=False)
        assert {"/0", "/0/state", "/1", "/1/state"} <= set(tree.groups)
        np.testing.assert_array_equal(tree["1/alpha"], [draws[2].alpha])


ODD_NAMES = Columns.plain(
    ("labels", "a/b", "a_b", "..", "__x", "draw"), ("alpha", "zarr.json", "é")
)


def test_quantities_of_any_name_are_stored(tmp_path):
    zarr = pytest.importorskip("zarr")

    chain = Chain(5, names=ODD_NAMES)
    writer = DrawStore.create(tmp_path).writer(0, 0, N, ODD_NAMES)
    chain.append_to(writer, 0, 5)
    save(writer)
    stored = stored_draws(tmp_path)
    np.testing.assert_array_equal(stored.shared()[0], chain.shared)
    np.testing.assert_array_equal(stored.shared([2, 0])[0], chain.shared[:, [2, 0]])
    np.testing.assert_array_equal(stored.clusters(0, 0, 5).parameters, chain.parameters)
    (path,) = shard_files(tmp_path)
    with zarr.storage.ZipStore(path, mode="r") as store:
        found = dict(zarr.open_group(store, mode="r").arrays())
    assert len(found) == 4 + 6 + 3
    np.testing.assert_array_equal(found["a_b"][:], chain.parameters[:, 1])
    np.testing.assert_array_equal(found["a_b_"][:], chain.parameters[:, 2])


def test_codecs_are_imported_only_when_draws_are_touched():
    code = "import sys, dfcrp.runs.store; sys.exit('numcodecs' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_misfitting_draws_are_refused_and_leave_no_trace(tmp_path):
    chain = Chain(4)
    writer = DrawStore.create(tmp_path).writer(0, 0, N, NAMES)
    with pytest.raises(ValueError, match="do not fit"):
        writer.append(
            DrawBlock(
                chain.labels,
                chain.alpha,
                chain.offsets[:-1],
                chain.cluster_labels,
                chain.parameters,
                chain.shared,
            )
        )
    chain.append_to(writer, 0, 4)
    save(writer)
    assert_holds(tmp_path, chain, 4)


@pytest.mark.parametrize("burn_in", [0, 5, 28])
def test_burn_in(tmp_path, burn_in):
    chains = [Chain(30, seed) for seed in (1, 2)]
    for number, chain in enumerate(chains):
        write(tmp_path, number, chain)
    expected = in_memory(chains, np.arange(burn_in, 30))
    assert_same(stored_draws(tmp_path, burn_in), expected)


def test_the_shortest_chain_sets_the_length(tmp_path):
    chains = [Chain(25, 1), Chain(17, 2)]
    for number, chain in enumerate(chains):
        write(tmp_path, number, chain)
    assert saved_draws(tmp_path) == {0: 25, 1: 17}
    assert_same(stored_draws(tmp_path, 3), in_memory(chains, np.arange(3, 17)))
    assert_same(stored_draws(tmp_path, 3, 12), in_memory(chains, np.arange(3, 12)))


def test_what_is_asked_for_must_be_there(tmp_path):
    for number, chain in enumerate([Chain(25, 1), Chain(17, 2)]):
        write(tmp_path, number, chain)
    with pytest.raises(RunFolderError, match="18 draws of chain 1 were expected, there are 17"):
        stored_draws(tmp_path, 3, 18)
    bounded = DrawStore.open(tmp_path, bounds=sizes.BlockBounds((N,), chains=3, draws=100))
    with pytest.raises(RunFolderError, match="2 chains have draws, 3 were expected"):
        bounded.draws()
    assert stored_draws(tmp_path, stop=17).n_draws == 17


def test_a_reader_is_not_disturbed_by_its_writer(tmp_path):
    chain = Chain(40)
    writer = DrawStore.create(tmp_path).writer(0, 0, N, NAMES)
    chain.append_to(writer, 0, 8)
    save(writer)
    stored, before = stored_draws(tmp_path), shard_files(tmp_path)
    chain.append_to(writer, 8, 40)
    save(writer)
    assert not set(before) <= set(shard_files(tmp_path))  # the shard that was read is gone
    assert_same(stored, in_memory([chain], np.arange(8)))


def test_a_reader_whose_draws_are_gone_says_so(tmp_path):
    write(tmp_path, 0, Chain(20))
    stored = stored_draws(tmp_path)
    for path in shard_files(tmp_path):
        path.unlink()
    with pytest.raises(RunFolderError, match="draws of chain 0 were removed"):
        stored.alpha()


def test_memory_does_not_grow_with_the_run(tmp_path, monkeypatch):
    monkeypatch.setattr(sizes, "MOST_DRAWS", 1000)
    monkeypatch.setattr(sizes, "BLOCK_BYTES", 1 << 20)
    monkeypatch.setattr(store_module, "SHARD_BYTES", 1 << 20)
    monkeypatch.setattr(zarr_zip, "CHUNK_BYTES", 1 << 18)
    n, b = 500, 250
    labels = np.zeros((b, n), dtype=np.int32)
    rows = np.arange(b + 1), np.zeros(b, dtype=np.int32), np.zeros((b, 0), dtype=np.float32)
    writer = DrawStore.create(tmp_path).writer(0, 0, n, NO_COLUMNS)
    nothing = np.zeros((b, 0))
    writer.append(DrawBlock(labels, np.ones(b), *rows, nothing))
    save(writer)
    tracemalloc.start()
    for _ in range(60):
        writer.append(DrawBlock(labels, np.ones(b), *rows, nothing))
    save(writer)
    stored = stored_draws(tmp_path)
    for _, start, stop in blocks(stored):
        stored.labels(0, start, stop)
    stored.history(n - 1)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # All labels are 30 MB, one block of them 1 MB.
    assert stored.n_draws == 61 * b
    assert peak < 8e6


def test_one_markings_history_is_read_without_the_others(tmp_path, monkeypatch):
    monkeypatch.setattr(sizes, "MOST_DRAWS", 4096)
    monkeypatch.setattr(zarr_zip, "CHUNK_BYTES", 1 << 10)
    chain = Chain(100, n=50)
    writer = DrawStore.create(tmp_path).writer(0, 0, 50, NAMES)
    chain.append_to(writer, 0, 100)
    save(writer)
    read = []
    whole = zarr_zip.ZarrReader._chunk
    monkeypatch.setattr(
        zarr_zip.ZarrReader, "_chunk", lambda *args: read.append(args[1]) or whole(*args)
    )
    found = stored_draws(tmp_path).history(17)
    np.testing.assert_array_equal(found[0], chain.labels[:, 17])
    (path,) = shard_files(tmp_path)
    chunks = [name for name in members(path) if name.startswith("labels/c/")]
    assert len(chunks) > 10
    assert len(read) == 1


# --- saving, restoring, and what a kill leaves


def test_states_come_back_with_the_draws(tmp_path):
    writer = DrawStore.create(tmp_path).writer(0, 0, N, NAMES)
    chain = Chain(20)
    chain.append_to(writer, 0, 10)
    writer.save(Sampler(30), seconds=2.5)  # thin = 3
    chain.append_to(writer, 10, 13)
    writer = DrawStore.open(tmp_path).writer(0, 0, N, NAMES)
    sampler = Sampler()
    assert writer.restore(sampler, 3) == 2.5
    assert (sampler.scans, writer.n_draws, writer.n_saved) == (30, 10, 10)
    assert DrawStore.open(tmp_path).scans(0, 2) == [30, 0]
    chain.append_to(writer, 10, 20)
    writer.save(Sampler(60), seconds=3.0)
    assert_holds(tmp_path, chain, 20)


def test_old_states_do_not_pile_up(tmp_path):
    """Neither of saves in a row, nor of full blocks, nor of runs that were resumed."""
    run, chain = tmp_path, Chain(60)
    store_of(run)
    for _ in range(3):
        writer = restored(run)
        for step in (2, 9, 1, 6, 0):
            chain.append_to(writer, writer.n_draws, writer.n_draws + step)
            save(writer)
            assert len(states(run)) == 1
    assert_holds(run, chain, 3 * 18)
    assert len(shard_files(run)) == 3 * 18 // 6 + 1
    assert not parts_left(run)


def test_nothing_new_is_not_written_again(tmp_path):
    write(tmp_path, 0, Chain(20))
    before = shard_files(tmp_path)
    save(restored(tmp_path))
    assert shard_files(tmp_path) == before


def test_draws_without_a_state_are_drawn_again(tmp_path):
    """Of a run that was killed after a full block, and before its first save."""
    chain = Chain(20)
    chain.append_to(DrawStore.create(tmp_path).writer(0, 0, N, NAMES), 0, 15)
    assert len(shard_files(tmp_path)) == 2
    assert_holds(tmp_path, chain, 0)
    assert not DrawStore.open(tmp_path).begun(0)
    with pytest.raises(RunFolderError, match="there are no draws to read"):
        stored_draws(tmp_path)
    writer = restored(tmp_path)
    other = Chain(20, seed=9)
    other.append_to(writer, 0, 7)
    save(writer)
    assert_holds(tmp_path, other, 7)
    assert len(shard_files(tmp_path)) == 2


def test_draws_beyond_the_state_are_replaced_by_those_drawn_again(tmp_path):
    chain, other = Chain(40), Chain(40, seed=9)
    writer = write(tmp_path, 0, chain, [9])
    chain.append_to(writer, 9, 40)  # full blocks are on disk
    assert_holds(tmp_path, chain, 9)
    writer = restored(tmp_path)
    other.append_to(writer, 9, 14)
    save(writer)
    found = stored_draws(tmp_path).labels(0, 0, 14)
    np.testing.assert_array_equal(found, [*chain.labels[:9], *other.labels[9:14]])


def test_a_chain_saved_without_states_cannot_be_resumed(tmp_path):
    store = DrawStore.create(tmp_path, resumable=False)
    chain = Chain(20)
    writer = store.writer(0, 0, N, NAMES)
    chain.append_to(writer, 0, 20)
    writer.finish()
    assert_holds(tmp_path, chain, 20)
    assert not DrawStore.open(tmp_path).resumable
    assert restored(tmp_path).n_draws == 0


class Model:
    """What a writer should hold after a sequence of steps."""

    def __init__(self, run, chain):
        self.run, self.chain = run, chain
        self.writer = DrawStore.create(run).writer(0, 0, N, NAMES)
        self.order, self.saved = [], []

    def append(self, size):
        start = len(self.order)
        self.chain.append_to(self.writer, start, start + size)
        self.order += range(start, start + size)

    def save(self, _):
        save(self.writer)
        self.saved = list(self.order)

    def reopen(self, _):
        self.writer = restored(self.run)
        self.order = list(self.saved)


STEPS = st.tuples(st.sampled_from(["append", "append", "save", "reopen"]), st.integers(0, 14))


@given(steps=st.lists(STEPS, max_size=8))
@settings(max_examples=40, deadline=None)
def test_any_sequence_of_steps(tmp_path_factory, steps):
    run = tmp_path_factory.mktemp("run")
    model = Model(run, Chain(14 * 8))
    for step, amount in steps:
        getattr(model, step)(amount)
        assert model.writer.n_draws == len(model.order)
        assert model.writer.n_saved == len(model.saved)
    assert_holds(run, model.chain, len(model.saved))
    shutil.rmtree(run)


class Stopped(BaseException):
    """Stands for the end of the process: nothing may catch it."""


def stop_at(monkeypatch, when):
    """End the process at the ``when``-th call that touches the disk; files are half written."""
    counter = itertools.count()

    def stopping(function):
        def call(target, *args, **kwargs):
            if next(counter) == when:
                if function is fsync and stat.S_ISREG(os.stat(target).st_mode):
                    os.truncate(target, os.stat(target).st_size // 2)
                raise Stopped
            return function(target, *args, **kwargs)

        return call

    def fsync(target):
        """Nothing has to come to a real disk here."""

    for function in (fsync, os.replace, os.unlink, os.mkdir, os.rmdir):
        monkeypatch.setattr(os, function.__name__, stopping(function))
    return counter


def run_with_stops(writer, chain, reached):
    """A run of appends and saves; ``reached`` lists the saved lengths."""
    at = writer.n_draws
    for size in (2, 5):  # the first fills a block, the second begins one
        chain.append_to(writer, at, at + size)
        at += size
        reached.append(at)
        save(writer)


def test_a_stop_at_any_moment_keeps_what_was_saved(tmp_path, monkeypatch):
    chain = Chain(20)
    write(tmp_path / "start", 0, chain, [4])
    for when in itertools.count():
        run = shutil.copytree(tmp_path / "start", tmp_path / str(when))
        writer = restored(run)
        reached = [4]
        with monkeypatch.context() as patch:
            counter = stop_at(patch, when)
            with contextlib.suppress(Stopped):
                run_with_stops(writer, chain, reached)
            calls = next(counter)
        (held,) = saved_draws(run).values()
        assert held in reached[-2:]
        assert_holds(run, chain, held)
        assert not parts_left(run / "draws.zarr")
        writer = restored(run)
        assert writer.n_draws == held
        chain.append_to(writer, held, 20)
        save(writer)
        np.testing.assert_array_equal(stored_draws(run).label_array()[0], chain.labels)
        assert len(states(run)) == 1
        shutil.rmtree(run)
        if calls <= when:
            break
    assert when > 20  # the moments that were tried


CHILD = """
import sys
sys.path.insert(0, sys.argv[1])
from test_store import Chain, restored, save, Path, zarr_zip
zarr_zip.CHUNK_BYTES = 192  # as here
run, chain = Path(sys.argv[2]), Chain(400)
writer = restored(run)
print("ready", flush=True)
while writer.n_draws < 400:
    chain.append_to(writer, writer.n_draws, min(400, writer.n_draws + 3))
    if writer.n_draws % 2:
        save(writer)
        print(writer.n_saved, flush=True)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
def test_killed_processes(tmp_path):
    chain = Chain(400)
    DrawStore.create(tmp_path)
    held = 0
    for wait in (2, 7, 23):
        command = [sys.executable, "-c", CHILD, str(Path(__file__).parent), str(tmp_path)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            heard = [process.stdout.readline() for _ in range(wait)]
            process.send_signal(signal.SIGKILL)
            heard += process.stdout.readlines()
        assert heard[0] == "ready\n"
        before, (held,) = held, saved_draws(tmp_path).values()
        assert held >= max([before, *map(int, heard[1:])])
        assert_holds(tmp_path, chain, held)


def test_an_interrupted_append_is_not_saved_and_nothing_is_lost(tmp_path, monkeypatch):
    chain = Chain(40)
    writer = write(tmp_path, 0, chain, [5])
    with monkeypatch.context() as patch:
        stop_at(patch, 4)
        with pytest.raises(Stopped):
            chain.append_to(writer, 5, 40)
    assert_holds(tmp_path, chain, 5)
    save(writer)
    assert_holds(tmp_path, chain, 40)


def append_and_save(writer, chain, draws):
    chain.append_to(writer, writer.n_draws, writer.n_draws + draws)
    save(writer)


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EACCES])
@pytest.mark.parametrize("more", [2, 12])
def test_a_full_disk_is_reported_and_costs_nothing(tmp_path, monkeypatch, code, more):
    chain = Chain(40)
    writer = write(tmp_path, 0, chain, [20])

    def full(descriptor):
        raise OSError(code, os.strerror(code))

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(DfcrpError, match=r"disk is full|denied") as caught:
            append_and_save(writer, chain, more)
    assert "Of this chain 20 draws" in str(caught.value)
    assert "`dfcrp resume` continues" in str(caught.value)
    assert not parts_left(tmp_path)
    assert_holds(tmp_path, chain, 20)
    writer = restored(tmp_path)
    chain.append_to(writer, 20, 30)
    save(writer)
    assert_holds(tmp_path, chain, 30)


# --- many parts in one store


def part_of_many(number):
    return Chain(2 + number % 5, seed=number)


def write_parts(store, numbers, share=True):
    for number in numbers:
        for chain in range(2):
            writer = store.writer(number, chain, N, NAMES, share=share)
            draws = part_of_many(2 * number + chain)
            draws.append_to(writer, 0, len(draws.alpha))
            save(writer)


def assert_parts(store, numbers):
    assert store.parts() == tuple(numbers)
    for number in numbers:
        chains = [part_of_many(2 * number + chain) for chain in range(2)]
        shortest = min(len(chain.alpha) for chain in chains)
        assert_same(store.draws(number), in_memory(chains, np.arange(shortest)))
        assert store.scans(number, 2) == [len(chain.alpha) for chain in chains]


def test_small_parts_share_shards(tmp_path):
    store = DrawStore.create(tmp_path, seconds=1e9)
    write_parts(store, range(12))
    # Blocks that are full are written at once, the others wait, and are read from memory.
    alone = len(shard_files(tmp_path))
    assert_parts(store, range(12))
    store.flush()
    assert len(shard_files(tmp_path)) == alone + 1
    assert_parts(store, range(12))
    assert_parts(DrawStore.open(tmp_path), range(12))


def test_enough_for_a_shard_is_written(tmp_path, monkeypatch):
    monkeypatch.setattr(store_module, "SHARD_BYTES", 10_000)
    store = DrawStore.create(tmp_path, seconds=1e9)
    write_parts(store, range(10))
    assert not DrawStore.open(tmp_path).begun(9)
    write_parts(store, range(10, 21))
    assert DrawStore.open(tmp_path).begun(9)
    store.flush()
    assert_parts(DrawStore.open(tmp_path), range(21))
    assert 1 < sum(read.is_shared for read in DrawStore.open(tmp_path)._shards.values()) < 5


def test_what_waited_long_is_written(tmp_path):
    store = DrawStore.create(tmp_path, seconds=0)
    write_parts(store, [3])
    assert_parts(DrawStore.open(tmp_path), [3])


@pytest.mark.parametrize(("name", "size"), [("LARGE_BYTES", 20), ("LARGE_STATE", 20)])
def test_large_blocks_and_states_do_not_wait(tmp_path, monkeypatch, name, size):
    monkeypatch.setattr(chain_writer, name, size)
    store = DrawStore.create(tmp_path, seconds=1e9)
    write_parts(store, range(5))
    assert_parts(DrawStore.open(tmp_path), range(5))


def test_a_chain_that_shares_goes_on_where_it_was_written(tmp_path, monkeypatch):
    """Saves before and after its blocks were written, and after it was opened again."""
    monkeypatch.setattr(sizes, "MOST_DRAWS", 20)
    chain = Chain(60)
    store = DrawStore.create(tmp_path, seconds=1e9)
    writer = store.writer(7, 0, N, NAMES, share=True)
    for at, step in enumerate((2, 3, 1, 4, 2, 13, 1)):
        chain.append_to(writer, writer.n_draws, writer.n_draws + step)
        save(writer)
        assert store.saved_draws(7) == {0: writer.n_draws}
        write_parts(store, [at])
        if at % 2:
            store.flush()
    store.flush()
    store = DrawStore.open(tmp_path)
    writer = restored(tmp_path, part=7, share=True)
    assert writer.n_draws == 26
    chain.append_to(writer, 26, 60)
    save(writer)
    writer._store.flush()
    assert_same(store.draws(7), in_memory([chain], np.arange(60)))


def test_states_of_a_chain_that_never_finds_others_do_not_pile_up(tmp_path, monkeypatch):
    monkeypatch.setattr(sizes, "MOST_DRAWS", 20)
    chain = Chain(30)
    writer = DrawStore.create(tmp_path, seconds=0).writer(3, 0, N, NAMES, share=True)
    for stop in (2, 9, 15, 23, 30):
        chain.append_to(writer, writer.n_draws, stop)
        save(writer)
        assert len(states(tmp_path)) == 1
    assert_same(DrawStore.open(tmp_path).draws(3), in_memory([chain], np.arange(30)))
    assert len(shard_files(tmp_path)) == 2


def test_a_block_on_disk_gives_way_only_to_one_on_disk(tmp_path):
    chain = Chain(5)
    write(tmp_path, 0, chain, [2])
    store = DrawStore.open(tmp_path, seconds=1e9)
    writer = store.writer(0, 0, N, NAMES, share=True)
    writer.restore(Sampler(), 1)
    chain.append_to(writer, 2, 5)
    save(writer)
    assert store.saved_draws(0) == {0: 5}
    assert_holds(tmp_path, chain, 2)  # what a kill would leave now
    store.flush()
    assert_holds(tmp_path, chain, 5)
    assert len(shard_files(tmp_path)) == 1


def test_blocks_that_wait_go_from_one_process_to_another(tmp_path):
    """As from a worker of a cluster to the process that has the folder."""
    here = DrawStore.create(tmp_path, seconds=1e9)
    there = DrawStore.open(tmp_path, hold=True, seconds=0)
    write_parts(there, range(4))
    assert_parts(there, range(4))
    for part in range(4):
        travelled = pickle.loads(pickle.dumps(there.take(part)))
        assert all(isinstance(block, MemoryBlock) for block in travelled)
        assert {block.entry.part for block in travelled} == {part}
        here.add(travelled)
    assert_parts(here, range(4))
    here.flush()
    assert_parts(DrawStore.open(tmp_path), range(4))
    assert not any(there.take(part) for part in range(4))


def test_a_full_disk_loses_nothing_that_waits(tmp_path, monkeypatch):
    store = DrawStore.create(tmp_path, seconds=1e9)
    write_parts(store, range(4))

    def full(descriptor):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(DfcrpError, match=r"disk is full.*is safe.*`dfcrp resume` continues"):
            store.flush()
    assert not parts_left(tmp_path)
    store.flush()
    assert_parts(DrawStore.open(tmp_path), range(4))


def test_a_lost_shard_is_drawn_again(tmp_path):
    """What came after it is of no use, and does not come back to life."""
    chain, other = Chain(60), Chain(60, seed=5)
    store = DrawStore.create(tmp_path, seconds=1e9)
    for other_part, stop in ((0, 4), (2, 9)):
        writer = store.writer(1, 0, N, NAMES, share=True)
        writer.restore(Sampler(), 1)
        chain.append_to(writer, writer.n_draws, stop)
        save(writer)
        write_parts(store, [other_part])
        store.flush()
    first, *_ = [read for read in store._shards.values() if read.is_shared]
    first.path.unlink()
    assert not DrawStore.open(tmp_path).begun(1)
    writer = restored(tmp_path, part=1)
    assert writer.n_draws == 0
    other.append_to(writer, 0, 4)
    save(writer)
    assert_same(DrawStore.open(tmp_path).draws(1), in_memory([other], np.arange(4)))


def test_parts_of_too_many_kinds_are_cut_into_shards(tmp_path, monkeypatch):
    monkeypatch.setattr(shards, "MOST_GROUPS", 2)
    monkeypatch.setattr(store_module, "MOST_GROUPS", 2)
    store = DrawStore.create(tmp_path, seconds=1e9)
    write_parts(store, range(5))
    alone = len(shard_files(tmp_path))
    store.flush()
    assert len(shard_files(tmp_path)) == alone + 3  # of five numbers of draws
    assert_parts(DrawStore.open(tmp_path), range(5))


def test_many_threads(tmp_path):
    store = DrawStore.create(tmp_path, seconds=0.05)
    failures = []

    def work(numbers):
        try:
            write_parts(store, numbers)
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(range(k, 12, 3),)) for k in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    store.flush()
    assert_parts(DrawStore.open(tmp_path), range(12))


def test_opening_many_parts_reads_one_index_per_shard(tmp_path, monkeypatch):
    monkeypatch.setattr(sizes, "MOST_DRAWS", 50)
    store = DrawStore.create(tmp_path, seconds=1e9)
    write_parts(store, range(200))
    store.flush()
    read = []
    monkeypatch.setattr(
        "dfcrp.runs.store.read_groups",
        lambda *path: read.append(path) or shards.read_groups(*path),
    )
    store = DrawStore.open(tmp_path)
    assert store.parts() == tuple(range(200))
    assert all(store.scans(part, 2) for part in range(200))
    assert len(read) == 1


WRITER = """
import sys
sys.path.insert(0, sys.argv[1])
from test_store import Chain, restored, save, Path, zarr_zip
zarr_zip.CHUNK_BYTES = 192  # as here
number, chain = int(sys.argv[3]), Chain(60, int(sys.argv[3]))
writer = restored(Path(sys.argv[2]), chain=number)
for start in range(0, 60, 5):
    chain.append_to(writer, start, start + 5)
    save(writer)
"""


def test_chains_of_several_processes(tmp_path):
    DrawStore.create(tmp_path)
    command = [sys.executable, "-c", WRITER, str(Path(__file__).parent), str(tmp_path)]
    running = [subprocess.Popen([*command, str(number)]) for number in range(3)]
    assert [process.wait() for process in running] == [0, 0, 0]
    chains = [Chain(60, number) for number in range(3)]
    assert_same(stored_draws(tmp_path), in_memory(chains, np.arange(60)), step=20)


def test_two_writers_of_one_chain_do_no_harm(tmp_path):
    """As when a worker that was taken for dead still lives."""
    chain = Chain(40)
    write(tmp_path, 0, chain, [8])
    first, second = restored(tmp_path), restored(tmp_path)
    for writer, stop in [(first, 13), (second, 10), (first, 20), (second, 30), (first, 21)]:
        chain.append_to(writer, writer.n_draws, stop)
        save(writer)
        found = DrawStore.open(tmp_path).draws(0)
        np.testing.assert_array_equal(found.labels(0, 0, 99), chain.labels[: found.n_draws])
        assert found.n_draws >= 8
    writer = restored(tmp_path)
    chain.append_to(writer, writer.n_draws, 40)
    save(writer)
    assert_holds(tmp_path, chain, 40)


# --- in memory


def test_memory_answers_like_a_folder():
    chains = [Chain(25, 1), Chain(17, 2)]
    store = MemoryStore()
    for number, chain in enumerate(chains):
        writer = store.writer(2, number, N, NAMES)
        assert writer.restore(Sampler(), 1) == 0.0
        chain.append_to(writer, 0, 10)
        chain.append_to(writer, 10, len(chain.alpha))
        writer.save(Sampler(len(chain.alpha)), 1.0)
    assert store.writer(5, 0, N, NAMES) is store.writer(5, 0, N, NAMES)
    assert store.parts() == (2,)
    assert not store.begun(5)
    assert store.scans(2, 3) == [25, 17, 0]
    store.flush()
    assert_same(store.draws(2, 3), in_memory(chains, np.arange(3, 17)))
    assert_same(store.draws(2, 3, 9), in_memory(chains, np.arange(3, 9)))
    with pytest.raises(RunFolderError, match="there are no draws"):
        store.draws(5)


# --- folders that are not as they should be


def test_draws_are_not_overwritten(tmp_path):
    chain = Chain(5)
    write(tmp_path, 0, chain)
    with pytest.raises(RunFolderError, match="there are draws already"):
        DrawStore.create(tmp_path)
    with pytest.raises(RunFolderError, match="there are draws already"):
        chain.append_to(DrawStore.open(tmp_path).writer(0, 0, N, NAMES), 0, 5)
    assert_holds(tmp_path, chain, 5)


def test_a_folder_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(DfcrpError, match="cannot be written"):
        DrawStore.create(tmp_path / "file")


def test_missing_folders(tmp_path):
    with pytest.raises(RunFolderError, match="there is no such run folder"):
        stored_draws(tmp_path / "nowhere")
    with pytest.raises(RunFolderError, match=r"draws\.zarr: missing"):
        stored_draws(tmp_path)
    (tmp_path / "draws.zarr").mkdir()
    with pytest.raises(RunFolderError, match=r"zarr\.json: missing"):
        stored_draws(tmp_path)
    write(tmp_path / "run", 0, Chain(5))
    assert not DrawStore.open(tmp_path / "run").begun(1)


def test_no_draws_left(tmp_path):
    write(tmp_path, 0, Chain(5))
    with pytest.raises(RunFolderError, match=r"burn-in of 5 no draws are left .of 5 of chain 0"):
        stored_draws(tmp_path, burn_in=5)
    with pytest.raises(ValueError, match="burn_in"):
        stored_draws(tmp_path, -1)
    with pytest.raises(IndexError):
        stored_draws(tmp_path).history(N)


def test_what_is_no_shard_does_not_count(tmp_path):
    chain = Chain(5)
    write(tmp_path, 0, chain)
    (tmp_path / "draws.zarr" / "shard-000007-00000000.zip.part").write_bytes(b"PK")
    (tmp_path / "draws.zarr" / "shard-000008-00000000").mkdir()
    assert_holds(tmp_path, chain, 5)
    write(tmp_path, 1, chain)
    assert saved_draws(tmp_path) == {0: 5, 1: 5}


def test_chains_of_different_data(tmp_path):
    write(tmp_path, 0, Chain(5))
    writer = DrawStore.open(tmp_path).writer(0, 1, N + 1, NAMES)
    Chain(5, n=N + 1).append_to(writer, 0, 5)
    save(writer)
    with pytest.raises(RunFolderError, match="different markings"):
        stored_draws(tmp_path)


def test_another_format(tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr("dfcrp.runs.store.FORMAT", 99)
        patch.setattr(shards, "FORMAT", 99)
        write(tmp_path, 0, Chain(5))
    for attempt in (stored_draws, saved_draws, restored):
        with pytest.raises(RunFolderError, match="format 99, this version of dfcrp reads format 4"):
            attempt(tmp_path)


def test_a_store_of_an_earlier_version(tmp_path):
    (tmp_path / "draws.zarr").mkdir()
    old = {"zarr_format": 3, "node_type": "group", "attributes": {"dfcrp_draws_format": 3}}
    (tmp_path / "draws.zarr" / META).write_text(json.dumps(old))
    with pytest.raises(
        RunFolderError, match=r"format 3, this .* reads format 4; use .* `dfcrp fit`"
    ):
        DrawStore.open(tmp_path)


# --- states that are not as they should be


def flip(path, name):
    """Change a bit in the middle of a member."""
    content, place = bytearray(path.read_bytes()), place_of_member(path, name)
    content[(place.start + place.stop) // 2] ^= 1
    path.write_bytes(content)


def test_a_damaged_state_is_named(tmp_path):
    write(tmp_path, 0, Chain(5))
    (path,) = shard_files(tmp_path)
    content, whole = path.read_bytes(), members(path)
    flip(path, "state/order/c/0")
    with pytest.raises(RunFolderError, match=r"state/order/c/0: damaged; delete .*shard-.*\.zip"):
        restored(tmp_path)
    put_together(path, {name: data for name, data in whole.items() if name != "state/order/c/0"})
    with pytest.raises(RunFolderError, match=r"state/order/c/0: missing; delete .*shard-.*\.zip"):
        restored(tmp_path)
    path.write_bytes(content)
    assert restored(tmp_path).n_draws == 5
    path.unlink()
    assert restored(tmp_path).n_draws == 0


def test_a_state_of_another_run_does_not_fit(tmp_path):
    writer = DrawStore.create(tmp_path).writer(0, 0, N, NAMES)
    Chain(5).append_to(writer, 0, 5)
    save(writer, size=4)
    with pytest.raises(RunFolderError, match=r"shard-.*: does not fit this run \(other arrays"):
        restored(tmp_path)
    writer = DrawStore.open(tmp_path).writer(0, 0, N, NAMES)
    with pytest.raises(RunFolderError, match="5 draws of a chain with 5 scans"):
        writer.restore(Sampler(size=4), 2)


def test_a_state_larger_than_the_chain_is_not_read(tmp_path, monkeypatch):
    writer = DrawStore.create(tmp_path).writer(0, 0, N, NAMES)
    Chain(5).append_to(writer, 0, 5)
    monkeypatch.setattr(zarr_zip, "CHUNK_BYTES", 1 << 20)
    save(writer, size=1 << 20)
    monkeypatch.setattr(zarr_zip.ZarrReader, "_chunk", lambda *_: pytest.fail("it was unpacked"))
    with pytest.raises(RunFolderError, match="other arrays"):
        restored(tmp_path)


# --- damage


def damages(path):
    """Ways in which a file can be damaged, as contents."""
    content = path.read_bytes()
    rng = np.random.default_rng(len(content))
    for size in (0, 3, len(content) // 2, len(content) - 1):
        yield content[:size]
    for position in rng.integers(len(content), size=60):
        flipped = bytearray(content)
        flipped[position] ^= 1 << rng.integers(8)
        yield bytes(flipped)
    yield b"[" * 100_000


def read_all(run, expected):
    assert_same(stored_draws(run), expected, step=24)
    restored(run)


def refusal(do):
    try:
        do()
    except RunFolderError as error:
        return str(error)
    return ""


def test_damage_is_found(tmp_path):
    """What is read of a damaged shard is what was written, or the shard is named."""
    chain = Chain(24)
    write(tmp_path, 0, chain, [13, 11])
    expected, found = in_memory([chain], np.arange(24)), 0
    for path in shard_files(tmp_path):
        content = path.read_bytes()
        for damaged in damages(path):
            path.write_bytes(damaged)
            said = refusal(lambda: read_all(tmp_path, expected))
            found += bool(said)
            assert not said or str(path) in said
        path.write_bytes(content)
    assert found > 80  # other bytes are nothing that is read


def test_every_member_is_checked(tmp_path):
    chain = Chain(5)
    write(tmp_path, 0, chain)
    (path,) = shard_files(tmp_path)
    content = path.read_bytes()
    chunks = [name for name in members(path) if "/c/" in name]
    assert len(chunks) > 9
    for name in chunks:
        flip(path, name)
        with pytest.raises(RunFolderError, match=f"{name}: damaged; delete .* and `dfcrp resume`"):
            read_all(tmp_path, in_memory([chain], np.arange(5)))
        path.write_bytes(content)


def test_a_file_of_another_shard_is_noticed(tmp_path):
    """Of other draws; or, if its member is put among those of this shard, as they do not fit."""
    write(tmp_path / "run", 0, Chain(5))
    write(tmp_path / "other", 0, Chain(5, seed=7), [3])
    (path,), (other,) = shard_files(tmp_path / "run"), shard_files(tmp_path / "other")
    put_together(path, {**members(path), "alpha/c/0/0": members(other)["labels/c/0/0"]})
    with pytest.raises(RunFolderError, match=r"alpha/c/0/0: damaged"):
        stored_draws(tmp_path / "run").alpha()


def forge(run, change):
    """Change the index of the only shard, with a checksum that fits."""
    (path,) = shard_files(run)
    change_index(path, change)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("n", 10**15),
        ("n", -1),
        ("n", 2**31 - 1),
        ("draws", "many"),
        ("draws", 2.5),
        ("draws", 10**9),
        ("rows", 10**9),
        ("first", -1),
        ("saved", 1),
        ("about", 3),
        ("part", None),
    ],
)
def test_a_forged_index_is_refused(tmp_path, name, value):
    write(tmp_path, 0, Chain(5))
    forge(tmp_path, lambda fields: fields["blocks"].update({name: [value]}))
    with pytest.raises(RunFolderError, match="not one that dfcrp writes"):
        DrawStore.open(tmp_path)


@pytest.mark.parametrize(
    "change",
    [
        {"blocks": {}},
        {"blocks": None},
        {"columns": [7]},
        {"columns": {}},
        {"state": 3},
        {"state": {"order": {"dtype": "|O", "row": [], "rows": [3]}}},
        {"state": {"order": {"dtype": "<i4", "row": [2**50], "rows": [3]}}},
        {"state": {"order": {"dtype": "<i4", "row": [], "rows": [-3]}}},
        {"state": {"../order": {"dtype": "<i4", "row": [], "rows": [3]}}},
        {"groups": 10**9},
        {"groups": "many"},
    ],
)
def test_an_index_of_something_else_is_refused(tmp_path, change):
    write(tmp_path, 0, Chain(5))
    forge(tmp_path, lambda fields: fields.update(change))
    with pytest.raises(RunFolderError, match="not one that dfcrp writes"):
        DrawStore.open(tmp_path)


def test_what_arrays_say_of_themselves_is_not_believed(tmp_path):
    """How arrays are unpacked is decided by our code: what the files ask for is not done."""
    chain = Chain(5)
    write(tmp_path, 0, chain)
    (path,) = shard_files(tmp_path)
    content = members(path)
    for name in content:
        if name.endswith(f"/{META}"):
            meta = json.loads(content[name])
            meta |= {"codecs": [{"name": "numcodecs.pickle"}], "data_type": "object", "shape": [1]}
            content[name] = json.dumps(meta).encode()
    put_together(path, {**content, "labels/.zarray": b'{"filters": [{"id": "pickle"}]}'})
    assert_holds(tmp_path, chain, 5)
    assert restored(tmp_path).n_draws == 5


def frame(size):
    """The beginning of what zstd packed, which says that so many bytes follow."""
    return bytes.fromhex("28b52ffde0") + size.to_bytes(8, "little") + b"\1\0\0"


@pytest.mark.parametrize(
    ("name", "packed"),
    [
        ("labels/c/0/0", frame(10**13)),
        ("labels/c/0/0", bytes.fromhex("28b52ffd005803030303")),  # of a size that it does not say
        ("mean_x/c/0", b"\2\1\1\4" + (2**31 - 1).to_bytes(4, "little") + b"\0\1\0\0" * 3),
        ("mean_x/c/0", b""),
    ],
)
def test_forged_sizes_of_what_was_packed_take_no_memory(tmp_path, name, packed):
    write(tmp_path, 0, Chain(5))
    (path,) = shard_files(tmp_path)
    put_together(path, {**members(path), name: packed})
    tracemalloc.start()
    with pytest.raises(RunFolderError, match="damaged"):
        assert_same(stored_draws(tmp_path), in_memory([Chain(5)], np.arange(5)))
    assert tracemalloc.get_traced_memory()[1] < 5e6
    tracemalloc.stop()


def test_a_long_list_of_members_is_not_read(tmp_path, monkeypatch):
    write(tmp_path, 0, Chain(5))
    monkeypatch.setattr(zarr_zip, "_LARGEST_LIST", 1000)
    with pytest.raises(RunFolderError, match=r"shard-.*damaged.*too large a list"):
        DrawStore.open(tmp_path)


@pytest.mark.parametrize("way", ["deflated", "long list", "far away", "long", "large end"])
def test_forged_zip_files_are_refused_with_little_memory(tmp_path, way):
    write(tmp_path, 0, Chain(5))
    (path,) = shard_files(tmp_path)
    content = members(path)
    if way == "deflated":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
            for name, data in content.items():
                file.writestr(name, data if name == META else bytes(10**8))
    data = bytearray(path.read_bytes())
    entry = data.index(b"PK\1\2")
    if way == "long list":
        data[-10:-6] = (2**32 - 1).to_bytes(4, "little")
    if way == "large end":
        end = b"PK\6\6" + bytes(36) + (2**60).to_bytes(8, "little") * 2
        data[-22:-22] = end + b"PK\6\7" + bytes(16)
    for at in range(entry, len(data) - 22):
        if data[at : at + 4] == b"PK\1\2":
            if way == "far away":
                data[at + 42 : at + 46] = (2**31).to_bytes(4, "little")
            if way == "long":
                data[at + 20 : at + 28] = (2**31).to_bytes(4, "little") * 2
    path.write_bytes(data)
    tracemalloc.start()
    with pytest.raises(RunFolderError, match=r"shard-.*damaged"):
        stored_draws(tmp_path).labels(0, 0, 5)
    assert tracemalloc.get_traced_memory()[1] < 5e6
    tracemalloc.stop()


def test_an_overruled_store_neither_adds_nor_removes(tmp_path: Path) -> None:
    """Two writers of one chain, of which the old one is far ahead: the draws of the new one stay.

    Before there were claims, a block of the old one took the place of longer ones of the new, and
    those were removed.
    """
    chain = Chain(60, 1)
    with taken_over(tmp_path) as first:
        DrawStore.create(tmp_path, claim=first)
        old = DrawStore.open(tmp_path, claim=first).writer(0, 0, N, NAMES)
        for at in range(10):
            chain.append_to(old, at, at + 1)
            save(old)
        with taken_over(tmp_path) as second:
            store = tmp_path / "draws.zarr"
            before = sorted(path.name for path in store.iterdir())
            with pytest.raises(LostClaimError):
                chain.append_to(old, 10, 30)
            with pytest.raises(LostClaimError):
                save(old)
            found = DrawStore.open(tmp_path).spans(0, 0)[-1].block.shard
            with pytest.raises(LostClaimError):
                found.remove(first)
            assert sorted(p.name for p in store.iterdir()) == before
            found.remove(second)
            assert not found.path.exists()


def test_a_shard_that_is_written_while_another_thread_looks_stays(tmp_path, monkeypatch):
    """A look lists the shards and then forgets those that are not on the list."""
    store = DrawStore.create(tmp_path)
    listing, chain = store._names, Chain(6, 1)
    writer = store.writer(0, 0, N, NAMES)

    def write_meanwhile():
        names = listing()
        if not threads:
            thread = threading.Thread(target=lambda: (chain.append_to(writer, 0, 6), save(writer)))
            threads.append(thread)
            thread.start()
            thread.join(0.5)  # it may have to wait for the look
        return names

    threads = []
    monkeypatch.setattr(store, "_names", write_meanwhile)
    store.refresh()
    threads[0].join()
    assert [block.entry.draws for block in store._blocks[0][0]] == [6, 0]


def test_what_cannot_be_read_is_not_taken_for_nothing(tmp_path):
    """A run that fails is discarded if nothing was drawn; a damaged shard is not nothing."""
    assert not anything_drawn(tmp_path)
    write(tmp_path, 0, Chain(6, 1))
    for path in (*shard_files(tmp_path), tmp_path / "draws.zarr" / META):
        path.write_text("damaged")
    assert anything_drawn(tmp_path)

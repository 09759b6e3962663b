"""Draws on disk: what was saved comes back, whatever happened since."""

import asyncio
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
import warnings
import zlib
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
from dfcrp.errors import DfcrpError, DfcrpWarning, RunFolderError
from dfcrp.runs import blocks as sizes
from dfcrp.runs import chain_writer, shards
from dfcrp.runs import store as store_module
from dfcrp.runs.blocks import MemoryBlock
from dfcrp.runs.lock import LostClaimError, taken_over
from dfcrp.runs.shards import META, StoredBlock, _checksum
from dfcrp.runs.store import DrawStore, MemoryStore, anything_drawn

N = 11
NAMES = Columns.plain(("mean_x", "mean_y", "spread"), ("level", "growth"))


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    """Blocks and chunks so short that a handful of draws crosses their edges."""
    monkeypatch.setattr(sizes, "MOST_DRAWS", 6)
    monkeypatch.setattr(shards, "CHUNK_BYTES", 192)
    monkeypatch.setattr(shards, "CHUNKS_PER_FILE", 2)


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


def stored_draws(run, *args, salvage=False, **kwargs):
    return DrawStore.open(run, salvage=salvage).draws(0, *args, **kwargs)


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


def data_files(run):
    return sorted(run.rglob("c.*"))


def shard_folders(run):
    return sorted((run / "draws.zarr").glob("shard-*"))


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
    large, small = data_files(tmp_path / "large"), data_files(tmp_path / "small")
    assert [p.name for p in large] == [p.name for p in small]
    assert all(a.read_bytes() == b.read_bytes() for a, b in zip(large, small, strict=True))
    assert len({len(path.parts) for path in large}) == 1
    assert len(shard_folders(tmp_path / "large")) > 5


def test_every_way_of_zarr_to_read_leads_to_the_files():
    """What it would not find it would take for fill values, without a word."""
    from zarr.abc.store import RangeByteRequest
    from zarr.core.buffer import default_buffer_prototype

    class Files:
        def fetch(self, key, span):
            start, stop = (0, 10) if span is None else span(10)
            return bytes(range(start, stop))

    store, prototype = shards._files_of(Files()), default_buffer_prototype()
    part, wanted = RangeByteRequest(2, 5), b"\x02\x03\x04"
    key = "labels/c.0"
    assert store.get_sync(key, byte_range=part).to_bytes() == wanted
    assert store.get_sync(key).to_bytes() == bytes(range(10))
    assert asyncio.run(store.get(key, prototype, part)).to_bytes() == wanted
    (found,) = asyncio.run(store.get_partial_values(prototype, [(key, part)]))
    assert found.to_bytes() == wanted
    if hasattr(store, "get_ranges"):  # in newer versions of zarr

        async def ranges():
            asked = store.get_ranges(key, [part], prototype=prototype)
            return [buffer async for group in asked for _, buffer in group]

        (found,) = asyncio.run(ranges())
        assert found.to_bytes() == wanted


def test_plain_zarr_reads_the_arrays(tmp_path):
    import zarr

    chain = Chain(5)
    write(tmp_path, 0, chain)
    root = zarr.open_group(tmp_path / "draws.zarr", mode="r")
    ((name, group),) = root.groups()
    assert name.startswith("shard-000000-")
    assert dict(group.arrays()).keys() == set(sizes.ARRAYS)
    np.testing.assert_array_equal(group["labels"][:].reshape(N, 5).T, chain.labels)
    np.testing.assert_array_equal(group["n_clusters"][:], np.diff(chain.offsets))
    np.testing.assert_array_equal(group["cluster_parameters"][:].reshape(3, -1).T, chain.parameters)


def test_zarr_is_imported_only_when_draws_are_touched():
    code = "import sys, dfcrp.runs.store; sys.exit('zarr' in sys.modules)"
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


@pytest.mark.parametrize(("burn_in", "thin"), [(0, 1), (5, 1), (0, 3), (7, 4), (28, 2)])
def test_burn_in_and_thinning(tmp_path, burn_in, thin):
    chains = [Chain(30, seed) for seed in (1, 2)]
    for number, chain in enumerate(chains):
        write(tmp_path, number, chain)
    expected = in_memory(chains, np.arange(burn_in, 30, thin))
    assert_same(stored_draws(tmp_path, burn_in, thin=thin), expected)


def test_the_shortest_chain_sets_the_length(tmp_path):
    chains = [Chain(25, 1), Chain(17, 2)]
    for number, chain in enumerate(chains):
        write(tmp_path, number, chain)
    assert saved_draws(tmp_path) == {0: 25, 1: 17}
    assert_same(stored_draws(tmp_path, 3, thin=2), in_memory(chains, np.arange(3, 17, 2)))
    assert_same(stored_draws(tmp_path, 3, 12), in_memory(chains, np.arange(3, 12)))


def test_what_is_asked_for_must_be_there(tmp_path):
    for number, chain in enumerate([Chain(25, 1), Chain(17, 2)]):
        write(tmp_path, number, chain)
    with pytest.raises(RunFolderError, match="18 draws of chain 1 were expected, there are 17"):
        stored_draws(tmp_path, 3, 18)
    with pytest.raises(RunFolderError, match="2 chains have draws, 3 were expected"):
        stored_draws(tmp_path, chains=3)
    assert stored_draws(tmp_path, stop=17, chains=2).n_draws == 17


def test_a_reader_is_not_disturbed_by_its_writer(tmp_path):
    chain = Chain(40)
    writer = DrawStore.create(tmp_path).writer(0, 0, N, NAMES)
    chain.append_to(writer, 0, 8)
    save(writer)
    stored, before = stored_draws(tmp_path), shard_folders(tmp_path)
    chain.append_to(writer, 8, 40)
    save(writer)
    assert not set(before) <= set(shard_folders(tmp_path))  # the shard that was read is gone
    assert_same(stored, in_memory([chain], np.arange(8)))


def test_a_reader_whose_draws_are_gone_says_so(tmp_path):
    write(tmp_path, 0, Chain(20))
    stored = stored_draws(tmp_path)
    for folder in shard_folders(tmp_path):
        shutil.rmtree(folder)
    with pytest.raises(RunFolderError, match="draws of chain 0 were removed"):
        stored.alpha()


def test_memory_does_not_grow_with_the_run(tmp_path, monkeypatch):
    monkeypatch.setattr(sizes, "MOST_DRAWS", 1000)
    monkeypatch.setattr(shards, "CHUNKS_PER_FILE", 32)
    monkeypatch.setattr(sizes, "BLOCK_BYTES", 1 << 20)
    monkeypatch.setattr(store_module, "SHARD_BYTES", 1 << 20)
    monkeypatch.setattr(shards, "CHUNK_BYTES", 1 << 18)
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
    monkeypatch.setattr(shards, "CHUNK_BYTES", 1 << 10)
    monkeypatch.setattr(shards, "CHUNKS_PER_FILE", 64)
    chain = Chain(100, n=50)
    writer = DrawStore.create(tmp_path).writer(0, 0, 50, NAMES)
    chain.append_to(writer, 0, 100)
    save(writer)
    read = []
    fetch = shards.Shard.fetch
    monkeypatch.setattr(shards.Shard, "fetch", lambda *args: read.append(fetch(*args)) or read[-1])
    found = stored_draws(tmp_path).history(17)
    np.testing.assert_array_equal(found[0], chain.labels[:, 17])
    (labels,) = tmp_path.rglob("labels/c.0")
    assert sum(map(len, read)) < labels.stat().st_size / 2


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
            assert len(list(run.rglob("state"))) == 1
    assert_holds(run, chain, 3 * 18)
    assert len(shard_folders(run)) == 3 * 18 // 6 + 1
    assert not parts_left(run)


def test_nothing_new_is_not_written_again(tmp_path):
    write(tmp_path, 0, Chain(20))
    before = shard_folders(tmp_path)
    save(restored(tmp_path))
    assert shard_folders(tmp_path) == before


def test_draws_without_a_state_are_drawn_again(tmp_path):
    """Of a run that was killed after a full block, and before its first save."""
    chain = Chain(20)
    chain.append_to(DrawStore.create(tmp_path).writer(0, 0, N, NAMES), 0, 15)
    assert len(shard_folders(tmp_path)) == 2
    assert_holds(tmp_path, chain, 0)
    assert not DrawStore.open(tmp_path).begun(0)
    with pytest.raises(RunFolderError, match="there are no draws to read"):
        stored_draws(tmp_path)
    writer = restored(tmp_path)
    other = Chain(20, seed=9)
    other.append_to(writer, 0, 7)
    save(writer)
    assert_holds(tmp_path, other, 7)
    assert len(shard_folders(tmp_path)) == 2


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
        store = DrawStore.open(run)
        store.clean()
        assert not parts_left(run)
        writer = restored(run)
        assert writer.n_draws == held
        chain.append_to(writer, held, 20)
        save(writer)
        np.testing.assert_array_equal(stored_draws(run).label_array()[0], chain.labels)
        assert len(list(run.rglob("state"))) == 1
        shutil.rmtree(run)
        if calls <= when:
            break
    assert when > 50  # the moments that were tried


CHILD = """
import sys
sys.path.insert(0, sys.argv[1])
from test_store import Chain, restored, save, Path
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
    alone = len(shard_folders(tmp_path))
    assert_parts(store, range(12))
    store.flush()
    assert len(shard_folders(tmp_path)) == alone + 1
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


@pytest.mark.parametrize(("name", "size"), [("LARGE_BYTES", 300), ("LARGE_STATE", 100)])
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
        assert len(list(tmp_path.rglob("state"))) == 1
    assert_same(DrawStore.open(tmp_path).draws(3), in_memory([chain], np.arange(30)))
    assert len(shard_folders(tmp_path)) == 2


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
    assert len(shard_folders(tmp_path)) == 1


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
    shutil.rmtree(first.folder)
    assert not DrawStore.open(tmp_path).begun(1)
    writer = restored(tmp_path, part=1)
    assert writer.n_draws == 0
    other.append_to(writer, 0, 4)
    save(writer)
    assert_same(DrawStore.open(tmp_path).draws(1), in_memory([other], np.arange(4)))


def test_damage_of_one_part_leaves_the_others_of_its_shard(tmp_path):
    store = DrawStore.create(tmp_path, seconds=1e9)
    write_parts(store, [0, 5, 15])  # short ones: nothing is full
    store.flush()
    (path,) = [p for p in data_files(tmp_path) if p.parts[-2:] == ("labels", "c.0")]
    path.write_bytes(bytes([path.read_bytes()[0] ^ 1]) + path.read_bytes()[1:])
    store = DrawStore.open(tmp_path)
    with pytest.raises(RunFolderError, match=r"labels.c\.0: damaged; chain 0 lacks labels"):
        store.draws(0).labels(0, 0, 1)
    chains = [part_of_many(2 * 15 + chain) for chain in range(2)]
    shortest = min(len(chain.alpha) for chain in chains)
    assert_same(store.draws(15), in_memory(chains, np.arange(shortest)))


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
        "dfcrp.runs.store.read_index",
        lambda *path: read.append(path) or shards.read_index(*path),
    )
    store = DrawStore.open(tmp_path)
    assert store.parts() == tuple(range(200))
    assert all(store.scans(part, 2) for part in range(200))
    assert len(read) == 1


WRITER = """
import sys
sys.path.insert(0, sys.argv[1])
from test_store import Chain, restored, save, Path
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
    assert_same(store.draws(2, 3, 9, chains=2), in_memory(chains, np.arange(3, 9)))
    assert_same(store.draws(2, 3, 9, thin=2), in_memory(chains, np.arange(3, 9, 2)))
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
    with pytest.raises(RunFolderError, match="there are no draws"):
        stored_draws(tmp_path, salvage=True)
    write(tmp_path / "run", 0, Chain(5))
    assert not DrawStore.open(tmp_path / "run").begun(1)


def test_no_draws_left(tmp_path):
    write(tmp_path, 0, Chain(5))
    with pytest.raises(RunFolderError, match=r"burn-in of 5 no draws are left .of 5 of chain 0"):
        stored_draws(tmp_path, burn_in=5)
    with pytest.raises(ValueError, match="thin"):
        stored_draws(tmp_path, thin=0)
    with pytest.raises(ValueError, match="burn_in"):
        stored_draws(tmp_path, -1)
    with pytest.raises(IndexError):
        stored_draws(tmp_path).history(N)


def test_a_shard_killed_while_it_was_written_does_not_count(tmp_path):
    chain = Chain(5)
    write(tmp_path, 0, chain)
    (tmp_path / "draws.zarr" / "shard-000007-00000000.part" / "labels").mkdir(parents=True)
    assert_holds(tmp_path, chain, 5)
    write(tmp_path, 1, chain)
    assert saved_draws(tmp_path) == {0: 5, 1: 5}
    DrawStore.open(tmp_path).clean()
    assert not parts_left(tmp_path)
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
        with pytest.raises(RunFolderError, match="format 99, this version of dfcrp reads format 3"):
            attempt(tmp_path)
    with pytest.raises(RunFolderError, match="format 99"):
        stored_draws(tmp_path, salvage=True)


def test_a_store_of_an_earlier_version(tmp_path):
    (tmp_path / "draws.zarr").mkdir()
    old = {"zarr_format": 3, "node_type": "group", "attributes": {"dfcrp_draws_format": 2}}
    (tmp_path / "draws.zarr" / META).write_text(json.dumps(old))
    with pytest.raises(RunFolderError, match=r"format 2, this version .* reads format 3; use the"):
        DrawStore.open(tmp_path)


# --- states that are not as they should be


def state_file(run):
    (path,) = run.rglob("state/c.0")
    return path


def test_a_damaged_state_is_named(tmp_path):
    write(tmp_path, 0, Chain(5))
    path = state_file(tmp_path)
    for damaged in damages(path):
        content = path.read_bytes()
        path.unlink()
        if damaged is not None:
            path.write_bytes(damaged)
        with pytest.raises(RunFolderError, match=r"state.c\.0: (damaged|missing); delete .*shard-"):
            restored(tmp_path)
        path.write_bytes(content)
    shutil.rmtree(path.parents[1])
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
    monkeypatch.setattr(shards, "CHUNK_BYTES", 1 << 20)
    save(writer, size=1 << 20)
    with pytest.raises(RunFolderError, match="the state is too large"):
        restored(tmp_path)


@pytest.mark.parametrize(
    "content",
    [b"", b"\xff" * 8, b"\x02" + b"\0" * 7 + b"{}", b"\x04" + b"\0" * 7 + b"null", b"no state"],
)
def test_bytes_that_are_no_state(content):
    with pytest.raises((ValueError, KeyError, TypeError)):
        chain_writer._unpacked_state(np.frombuffer(content, np.uint8))


def test_objects_in_a_state_are_not_made():
    text = json.dumps({"arrays": [["trap", "|O", [1]]]}).encode()
    content = len(text).to_bytes(8, "little") + text + bytes(8)
    with pytest.raises(ValueError, match="numbers"):
        chain_writer._unpacked_state(np.frombuffer(content, np.uint8))


# --- damage


def damages(path):
    """Ways in which a file can be damaged, as contents."""
    content = path.read_bytes()
    rng = np.random.default_rng(len(content))
    for size in (0, 3, len(content) - 1):
        yield content[:size]
    for position in rng.integers(len(content), size=2):
        flipped = bytearray(content)
        flipped[position] ^= 1 << rng.integers(8)
        yield bytes(flipped)
    if path.suffix == ".json":
        yield b"[" * 100_000
    yield None


def check_salvaged(run, chain, burn_in):
    """Every draw that salvage gives is a true one, whole; returns which."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DfcrpWarning)
        stored = stored_draws(run, burn_in, salvage=True)
    (kept,) = stored._kept
    assert_same(stored, in_memory([chain], kept), step=32)
    return kept


def test_damage_is_found_and_the_rest_is_read(tmp_path):
    chain = Chain(24)
    write(tmp_path, 0, chain, [13, 11])
    expected = in_memory([chain], np.arange(24))
    metadata = [*tmp_path.glob("*/zarr.json"), *tmp_path.glob("*/*/zarr.json")]
    first_of_each = {path.parent.name: path for path in reversed(data_files(tmp_path))}
    assert first_of_each.keys() == set(sizes.ARRAYS)
    first_of_each.pop("state")
    for path in [*first_of_each.values(), *metadata]:
        content = path.read_bytes()
        for damaged in damages(path):
            path.unlink()
            if damaged is not None:
                path.write_bytes(damaged)
            message = ""
            try:
                assert_same(stored_draws(tmp_path), expected, step=24)
            except RunFolderError as error:
                message = str(error)
            assert path.name == "zarr.json" or str(path) in message
            n_kept = len(check_salvaged(tmp_path, chain, burn_in=0))
            assert n_kept >= (24 if path.name == "zarr.json" else 18)
            path.write_bytes(content)


def shard_at(run, chain, draw):
    """The folder with a draw of a chain."""
    spans = DrawStore.open(run).spans(0, chain)
    (block,) = [span.block for span in spans if span.start <= draw < span.stop]
    assert isinstance(block, StoredBlock)
    return block.shard.folder


def test_message_and_warning_name_what_is_lost(tmp_path):
    chains = [Chain(32, seed) for seed in (1, 2)]
    for number, chain in enumerate(chains):
        write(tmp_path, number, chain)
    path = shard_at(tmp_path, 1, 12) / "labels" / "c.0"
    content = bytearray(path.read_bytes())
    content[10] ^= 1
    path.write_bytes(content)
    stored = stored_draws(tmp_path)
    assert stored.labels(1, 0, 12).shape == (12, N)
    with pytest.raises(RunFolderError) as caught:
        stored.labels(1, 10, 13)
    assert f"{path}: damaged; chain 1 lacks labels of draws 12 to 17" in str(caught.value)
    assert "draws 0 to 11, 18 to 31 can be read whole" in str(caught.value)
    assert f"delete {path.parents[1]} and `dfcrp resume`" in str(caught.value)
    with pytest.warns(DfcrpWarning, match="chain 1 lacks labels of draws 12 to 17"):
        salvaged = stored_draws(tmp_path, burn_in=4, salvage=True)
    left = np.r_[4:12, 18:32]
    np.testing.assert_array_equal(salvaged.labels(0, 0, 99), chains[0].labels[4 : 4 + len(left)])
    np.testing.assert_array_equal(salvaged.labels(1, 0, 99), chains[1].labels[left])


def test_rows_that_are_lost_cost_the_draws_they_belong_to(tmp_path):
    chain = Chain(32)
    write(tmp_path, 0, chain)
    (shard_at(tmp_path, 0, 7) / "cluster_parameters" / "c.0").unlink()
    kept = check_salvaged(tmp_path, chain, burn_in=0)
    np.testing.assert_array_equal(kept, np.r_[0:6, 12:32])


def test_labels_can_do_without_cluster_parameters(tmp_path):
    chain = Chain(20)
    write(tmp_path, 0, chain)
    for path in tmp_path.rglob("cluster_labels/c.*"):
        path.unlink()
    (shard_at(tmp_path, 0, 0) / "labels" / "c.0").unlink()
    with pytest.raises(RunFolderError, match=r"no draws are left(.|\n)*lacks cluster_labels"):
        stored_draws(tmp_path, salvage=True)
    with pytest.warns(DfcrpWarning, match="lacks cluster_labels of draws 0 to"):
        stored = stored_draws(tmp_path, salvage="labels")
    np.testing.assert_array_equal(stored.label_array()[0], chain.labels[6:])
    with pytest.raises(RunFolderError, match="missing; chain 0 lacks cluster_labels"):
        stored.clusters(0, 0, 3)


def test_a_lost_chain_is_left_out(tmp_path):
    chain = Chain(9)
    for number in (0, 1):
        write(tmp_path, number, chain)
    for folder in [shard_at(tmp_path, 0, draw) for draw in (0, 6)]:
        for path in folder.rglob("zarr.json"):
            path.write_text("{}")
    with pytest.raises(RunFolderError, match=r"shard-.*zarr\.json: damaged"):
        stored_draws(tmp_path)
    with pytest.warns(DfcrpWarning, match=r"shard-.*damaged"):
        assert stored_draws(tmp_path, salvage=True).chain_numbers == (1,)


@pytest.mark.parametrize("draws", [5, 3])
def test_a_file_of_another_shard_is_noticed(tmp_path, draws):
    """Even if it is sound and as large as the one in whose place it is."""
    chain = Chain(5)
    write(tmp_path / "run", 0, chain)
    write(tmp_path / "other", 0, Chain(5, seed=7), [draws])
    (path,) = (tmp_path / "run").rglob("alpha/c.0")
    (other,) = (tmp_path / "other").rglob("alpha/c.0")
    path.write_bytes(other.read_bytes())
    with pytest.raises(RunFolderError, match=r"alpha.c\.0: damaged"):
        stored_draws(tmp_path / "run").alpha()


def test_salvage_of_a_sound_run_is_silent(tmp_path):
    chain = Chain(9)
    write(tmp_path, 0, chain)
    assert_same(stored_draws(tmp_path, salvage=True), in_memory([chain], np.arange(9)))


def forge(run, change):
    """Change the index of the only shard, with a checksum that fits."""
    (path,) = run.glob(f"draws.zarr/shard-*/{META}")
    meta = json.loads(path.read_text())
    fields = meta["attributes"]["dfcrp_shard"]
    change(fields)
    meta["attributes"]["checksum"] = _checksum(fields)
    path.write_text(json.dumps(meta))


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
        ("state", -1),
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
        {"columns": []},
        {"kinds_of_columns": [7]},
        {"cut": [0, 1]},
        {"cut": [2.5, 1]},
        {"cut": []},
        {"files": None},
        {"files": {"labels/c.0": 3}},
    ],
)
def test_an_index_of_something_else_is_refused(tmp_path, change):
    write(tmp_path, 0, Chain(5))
    forge(tmp_path, lambda fields: fields.update(change))
    with pytest.raises(RunFolderError, match="not one that dfcrp writes"):
        DrawStore.open(tmp_path)


@pytest.mark.parametrize("change", [{"files": {}}, {"cut": [64, 1]}, {"cut": [8, 9]}])
def test_an_index_that_does_not_fit_its_files_is_noticed(tmp_path, change):
    write(tmp_path, 0, Chain(5))
    forge(tmp_path, lambda fields: fields.update(change))
    with pytest.raises(RunFolderError, match=r"damaged|missing"):
        stored_draws(tmp_path).labels(0, 0, 5)


def test_codecs_named_in_the_files_are_not_used(tmp_path):
    """How arrays are unpacked is decided by our code: what the files ask for is not done."""
    chain = Chain(5)
    write(tmp_path, 0, chain)
    for path in tmp_path.glob(f"draws.zarr/*/*/{META}"):
        meta = json.loads(path.read_text())
        meta["codecs"] = [{"name": "numcodecs.pickle"}]
        meta["data_type"] = "object"
        path.write_text(json.dumps(meta))
        (path.parent / ".zarray").write_text('{"dtype": "|O", "filters": [{"id": "pickle"}]}')
    assert_holds(tmp_path, chain, 5)


def test_the_checksum_is_that_of_the_index(tmp_path):
    write(tmp_path, 0, Chain(5))
    (path,) = tmp_path.glob(f"draws.zarr/shard-*/{META}")
    attributes = json.loads(path.read_text())["attributes"]
    text = json.dumps(attributes["dfcrp_shard"], sort_keys=True).encode()
    assert attributes["checksum"] == zlib.crc32(text)


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
            assert not found.folder.exists()


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
    for path in tmp_path.rglob(META):
        path.write_text("damaged")
    assert anything_drawn(tmp_path)

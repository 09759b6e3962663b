"""Draws on disk: what was flushed comes back, whatever happened since."""

import contextlib
import errno
import itertools
import json
import os
import shutil
import signal
import stat
import subprocess
import sys
import tracemalloc
import warnings
from pathlib import Path

import numpy as np
import pytest
from dfcrp.runs.storage import DrawWriter, StoredDraws, committed_draws
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
from dfcrp.runs import draw_files

N = 11
NAMES = Columns(("mean_x", "mean_y", "spread"), ("level", "growth"))


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    """Blocks so short that a handful of draws crosses their edges, at different draws."""
    monkeypatch.setattr(draw_files, "_DRAW_BLOCK", 6)
    monkeypatch.setattr(draw_files, "_SCALAR_BLOCK", 10)
    monkeypatch.setattr(draw_files, "_LABEL_CHUNK_BYTES", 100)
    monkeypatch.setattr(draw_files, "_ROW_BLOCK_BYTES", 8 * 8 * 4 * len(NAMES.parameters))


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
        self.shared = rng.normal(size=(n_draws, len(names.shared)))

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


def write(run, chain, draws, steps=None):
    writer = DrawWriter.create(run, chain, N, NAMES)
    edges = np.cumsum([0, *(steps or [len(draws.alpha)])])
    for start, stop in itertools.pairwise(edges):
        draws.append_to(writer, start, stop)
    writer.flush()
    return writer


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


def assert_same(stored: StoredDraws, expected: Draws, step=4):
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
    assert committed_draws(run) == {0: n_draws}
    if n_draws:
        assert_same(StoredDraws(run), in_memory([chain], np.arange(n_draws)), step=100)


def lengths(run):
    """Lengths of the arrays as an outside reader sees them."""
    paths = run.glob("draws.zarr/chain-0/*/zarr.json")
    return {path.parent.name: json.loads(path.read_text())["shape"][0] for path in paths}


def block_files(run):
    return sorted(run.rglob("c.*"))


# --- writing and reading


def test_round_trip_of_two_chains(tmp_path):
    chains = [Chain(40, seed) for seed in (1, 2)]
    for number, chain in enumerate(chains):
        write(tmp_path, number, chain)
    stored = StoredDraws(tmp_path)
    expected = in_memory(chains, np.arange(40))
    assert_same(stored, expected, step=7)
    for marking in range(N):
        np.testing.assert_array_equal(stored.history(marking), expected.history(marking))
    np.testing.assert_array_equal(stored.label_array(), [c.labels for c in chains])
    assert stored.chain_numbers == (0, 1)


@pytest.mark.parametrize("n", [1, 2, 25, 26])
def test_any_number_of_markings(tmp_path, n):
    chain = Chain(15, n=n)
    writer = DrawWriter.create(tmp_path, 0, n, NAMES)
    chain.append_to(writer, 0, 15)
    writer.flush()
    np.testing.assert_array_equal(StoredDraws(tmp_path).label_array()[0], chain.labels)


def test_without_parameters(tmp_path):
    chain = Chain(9, names=NO_COLUMNS)
    writer = DrawWriter.create(tmp_path, 0, N, NO_COLUMNS)
    chain.append_to(writer, 0, 9)
    writer.flush()
    block = StoredDraws(tmp_path).clusters(0, 2, 5)
    assert block.parameters.shape == (chain.offsets[5] - chain.offsets[2], 0)


def test_concentration_may_be_missing(tmp_path):
    chain = Chain(12)
    chain.alpha[:] = np.nan
    write(tmp_path, 0, chain)
    assert np.isnan(StoredDraws(tmp_path).alpha()).all()


def test_many_small_appends_make_the_files_of_one_large(tmp_path):
    chain = Chain(30)
    write(tmp_path / "large", 0, chain)
    write(tmp_path / "small", 0, chain, [1] * 30)
    large, small = block_files(tmp_path / "large"), block_files(tmp_path / "small")
    assert [p.name for p in large] == [p.name for p in small]
    assert all(a.read_bytes() == b.read_bytes() for a, b in zip(large, small, strict=True))


def test_plain_zarr_reads_the_arrays(tmp_path):
    import zarr

    chain = Chain(20)
    write(tmp_path, 0, chain)
    group = zarr.open_group(tmp_path / "draws.zarr", mode="r")["chain-0"]
    assert dict(group.arrays()).keys() == draw_files.Record.plan(N, NAMES).specs().keys()
    np.testing.assert_array_equal(group["labels"][:], chain.labels)
    np.testing.assert_array_equal(group["cluster_stop"][:], chain.offsets[1:])
    np.testing.assert_array_equal(group["cluster_parameters"][:], chain.parameters)


def test_zarr_is_imported_only_when_draws_are_touched():
    code = "import sys, dfcrp.runs.storage; sys.exit('zarr' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_misfitting_draws_are_refused_and_leave_no_trace(tmp_path):
    chain = Chain(4)
    writer = DrawWriter.create(tmp_path, 0, N, NAMES)
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
    writer.flush()
    assert_holds(tmp_path, chain, 4)


@pytest.mark.parametrize(("burn_in", "thin"), [(0, 1), (5, 1), (0, 3), (7, 4), (28, 2)])
def test_burn_in_and_thinning(tmp_path, burn_in, thin):
    chains = [Chain(30, seed) for seed in (1, 2)]
    for number, chain in enumerate(chains):
        write(tmp_path, number, chain)
    expected = in_memory(chains, np.arange(burn_in, 30, thin))
    assert_same(StoredDraws(tmp_path, burn_in, thin), expected)


def test_the_shortest_chain_sets_the_length(tmp_path):
    chains = [Chain(25, 1), Chain(17, 2)]
    for number, chain in enumerate(chains):
        write(tmp_path, number, chain)
    assert committed_draws(tmp_path) == {0: 25, 1: 17}
    assert_same(StoredDraws(tmp_path, 3, 2), in_memory(chains, np.arange(3, 17, 2)))


def test_a_reader_is_not_disturbed_by_its_writer(tmp_path):
    chain = Chain(40)
    writer = DrawWriter.create(tmp_path, 0, N, NAMES)
    chain.append_to(writer, 0, 8)
    writer.flush()
    stored = StoredDraws(tmp_path)
    chain.append_to(writer, 8, 40)
    writer.flush()
    assert_same(stored, in_memory([chain], np.arange(8)))


def test_memory_does_not_grow_with_the_run(tmp_path, monkeypatch):
    monkeypatch.setattr(draw_files, "_DRAW_BLOCK", 500)
    monkeypatch.setattr(draw_files, "_LABEL_CHUNK_BYTES", 1 << 18)
    monkeypatch.setattr(draw_files, "_ROW_BLOCK_BYTES", 1 << 18)
    monkeypatch.setattr(draw_files, "_SCALAR_BLOCK", 1000)
    n, b = 500, 250
    labels = np.zeros((b, n), dtype=np.int32)
    rows = np.arange(b + 1), np.zeros(b, dtype=np.int32), np.zeros((b, 0), dtype=np.float32)
    writer = DrawWriter.create(tmp_path, 0, n, NO_COLUMNS)
    nothing = np.zeros((b, 0))
    writer.append(DrawBlock(labels, np.ones(b), *rows, nothing))
    writer.flush()
    tracemalloc.start()
    for _ in range(60):
        writer.append(DrawBlock(labels, np.ones(b), *rows, nothing))
    writer.flush()
    stored = StoredDraws(tmp_path)
    for _, start, stop in blocks(stored):
        stored.labels(0, start, stop)
    stored.history(n - 1)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # All labels are 30 MB, one block of them 1 MB.
    assert stored.n_draws == 61 * b
    assert peak < 8e6


# --- stopping, going on, going back


class Model:
    """What a writer should hold after a sequence of steps."""

    def __init__(self, run, chain):
        self.run, self.chain = run, chain
        self.writer = DrawWriter.create(run, 0, N, NAMES)
        self.order, self.committed = [], []

    def append(self, size):
        start = len(self.order)
        self.chain.append_to(self.writer, start, start + size)
        self.order += range(start, start + size)

    def flush(self, _):
        self.writer.flush()
        self.committed = list(self.order)

    def reopen(self, _):
        self.writer = DrawWriter.open(self.run, 0)
        self.order = list(self.committed)

    def truncate(self, share):
        n_draws = min(share, len(self.order))
        self.writer.truncate(n_draws)
        self.order = self.order[:n_draws]
        self.committed = list(self.order)


STEPS = st.tuples(
    st.sampled_from(["append", "append", "flush", "reopen", "truncate"]), st.integers(0, 14)
)


@given(steps=st.lists(STEPS, max_size=8))
@settings(max_examples=40, deadline=None)
def test_any_sequence_of_steps(tmp_path_factory, steps):
    run = tmp_path_factory.mktemp("run")
    model = Model(run, Chain(14 * 8))
    for step, amount in steps:
        getattr(model, step)(amount)
        assert model.writer.n_draws == len(model.order)
        assert model.writer.n_committed == len(model.committed)
    assert_holds(run, model.chain, len(model.committed))
    held = len(model.committed)
    assert set(lengths(run).values()) == {held, model.chain.offsets[held]}
    shutil.rmtree(run)


def test_truncate_removes_the_files_beyond(tmp_path):
    chain = Chain(40)
    write(tmp_path / "long", 0, chain).truncate(13)
    write(tmp_path / "short", 0, Chain(40), [13])
    long, short = block_files(tmp_path / "long"), block_files(tmp_path / "short")
    assert [p.name for p in long] == [p.name for p in short]
    assert_holds(tmp_path / "long", chain, 13)


def test_truncate_to_more_than_there_is(tmp_path):
    writer = write(tmp_path, 0, Chain(5))
    with pytest.raises(RunFolderError, match="6 draws were expected, there are 5"):
        writer.truncate(6)


class Stopped(BaseException):
    """Stands for the end of the process: nothing may catch it."""


def stop_at(monkeypatch, when):
    """End the process at the ``when``-th call that touches the disk; files are half written."""
    counter = itertools.count()

    def stopping(function):
        def call(target, *args):
            if next(counter) == when:
                if function is not unlink and stat.S_ISREG(os.stat(target).st_mode):
                    os.truncate(target, os.stat(target).st_size // 2)
                raise Stopped
            return function(target, *args)

        return call

    unlink = os.unlink
    for function in (os.fsync, os.replace, unlink):
        monkeypatch.setattr(os, function.__name__, stopping(function))
    return counter


def run_with_stops(writer, chain, reached):
    """A run of appends, flushes and a truncation; ``reached`` lists the committed lengths."""
    at = writer.n_draws
    for size in (2, 8):
        chain.append_to(writer, at, at + size)
        at += size
        reached.append(at)
        writer.flush()
    reached.append(at - 8)
    writer.truncate(at - 8)


def test_a_stop_at_any_moment_keeps_what_was_committed(tmp_path, monkeypatch):
    chain = Chain(20)
    write(tmp_path / "start", 0, chain, [4])
    for when in itertools.count():
        run = shutil.copytree(tmp_path / "start", tmp_path / str(when))
        writer = DrawWriter.open(run, 0)
        reached = [4]
        with monkeypatch.context() as patch:
            counter = stop_at(patch, when)
            with contextlib.suppress(Stopped):
                run_with_stops(writer, chain, reached)
            calls = next(counter)
        (held,) = committed_draws(run).values()
        assert held in reached[-2:]
        assert_holds(run, chain, held)
        writer = DrawWriter.open(run, 0)
        assert not list(run.rglob("*.tmp"))
        assert set(lengths(run).values()) == {held, chain.offsets[held]}
        chain.append_to(writer, held, 20)
        writer.flush()
        np.testing.assert_array_equal(StoredDraws(run).label_array()[0], chain.labels)
        shutil.rmtree(run)
        if calls <= when:
            break
    assert when > 50  # the moments that were tried


CHILD = """
import sys
sys.path.insert(0, sys.argv[1])
from test_storage import Chain, DrawWriter
run, chain = sys.argv[2], Chain(400)
writer = DrawWriter.open(run, 0)
print("ready", flush=True)
while writer.n_draws < 400:
    chain.append_to(writer, writer.n_draws, min(400, writer.n_draws + 3))
    if writer.n_draws % 2:
        writer.flush()
        print(writer.n_committed, flush=True)
"""


def test_killed_processes(tmp_path):
    chain = Chain(400)
    DrawWriter.create(tmp_path, 0, N, NAMES)
    held = 0
    for wait in (1, 7, 23):
        command = [sys.executable, "-c", CHILD, str(Path(__file__).parent), str(tmp_path)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            heard = [process.stdout.readline() for _ in range(wait)]
            process.send_signal(signal.SIGKILL)
            heard += process.stdout.readlines()
        assert heard[0] == "ready\n"
        before, (held,) = held, committed_draws(tmp_path).values()
        assert held >= max([before, *map(int, heard[1:])])
        assert_holds(tmp_path, chain, held)


def test_an_interrupted_append_is_not_committed(tmp_path, monkeypatch):
    chain = Chain(40)
    writer = write(tmp_path, 0, chain, [5])
    with monkeypatch.context() as patch:
        stop_at(patch, 4)
        with pytest.raises(Stopped):
            chain.append_to(writer, 5, 40)
    with pytest.raises(DfcrpError, match="open the draws again"):
        writer.flush()
    assert_holds(tmp_path, chain, 5)


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EACCES])
def test_a_full_disk_is_reported_and_costs_nothing(tmp_path, monkeypatch, code):
    chain = Chain(40)
    writer = write(tmp_path, 0, chain, [20])
    chain.append_to(writer, 20, 22)

    def full(descriptor):
        raise OSError(code, os.strerror(code))

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(DfcrpError, match=r"disk is full|denied") as caught:
            writer.flush()
    assert "Of this chain 20 draws" in str(caught.value)
    assert not list(tmp_path.rglob("*.tmp"))
    writer = DrawWriter.open(tmp_path, 0)
    chain.append_to(writer, 20, 30)
    writer.flush()
    assert_holds(tmp_path, chain, 30)


# --- folders that are not as they should be


def test_a_chain_is_not_overwritten(tmp_path):
    chain = Chain(5)
    write(tmp_path, 0, chain)
    with pytest.raises(RunFolderError, match="there are draws already"):
        DrawWriter.create(tmp_path, 0, N, NAMES)
    assert_holds(tmp_path, chain, 5)


def test_a_folder_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(DfcrpError, match="cannot be written"):
        DrawWriter.create(tmp_path / "file", 0, N, NAMES)


def test_missing_folders(tmp_path):
    with pytest.raises(RunFolderError, match="there is no such run folder"):
        StoredDraws(tmp_path / "nowhere")
    with pytest.raises(RunFolderError, match=r"draws\.zarr: missing"):
        StoredDraws(tmp_path)
    (tmp_path / "draws.zarr").mkdir()
    with pytest.raises(RunFolderError, match=r"zarr\.json: missing"):
        StoredDraws(tmp_path)
    with pytest.raises(RunFolderError, match="there are no draws"):
        StoredDraws(tmp_path, salvage=True)
    write(tmp_path, 0, Chain(5))
    with pytest.raises(RunFolderError, match=r"chain-1.zarr\.json: missing"):
        DrawWriter.open(tmp_path, 1)


def test_no_draws_left(tmp_path):
    write(tmp_path, 0, Chain(5))
    with pytest.raises(RunFolderError, match=r"burn-in of 5 no draws are left .of 5 of chain 0"):
        StoredDraws(tmp_path, burn_in=5)
    with pytest.raises(ValueError, match="thin"):
        StoredDraws(tmp_path, thin=0)
    with pytest.raises(IndexError):
        StoredDraws(tmp_path).history(N)


def test_a_chain_killed_before_it_began_does_not_count(tmp_path):
    chain = Chain(5)
    write(tmp_path, 0, chain)
    (tmp_path / "draws.zarr" / "chain-1" / "labels").mkdir(parents=True)
    assert_holds(tmp_path, chain, 5)
    write(tmp_path, 1, chain)
    assert committed_draws(tmp_path) == {0: 5, 1: 5}


def test_chains_of_different_data(tmp_path):
    write(tmp_path, 0, Chain(5))
    DrawWriter.create(tmp_path, 1, N + 1, NAMES)
    with pytest.raises(RunFolderError, match="different markings"):
        StoredDraws(tmp_path)


def test_another_format(tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(draw_files, "FORMAT", 99)
        write(tmp_path, 0, Chain(5))
    for attempt in (StoredDraws, committed_draws, lambda run: DrawWriter.open(run, 0)):
        with pytest.raises(RunFolderError, match="format 99, this version of dfcrp reads format 2"):
            attempt(tmp_path)
    with pytest.raises(RunFolderError, match="format 99"):
        StoredDraws(tmp_path, salvage=True)


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
        stored = StoredDraws(run, burn_in, salvage=True)
    (kept,) = stored._kept
    assert_same(stored, in_memory([chain], kept), step=32)
    return kept


def test_damage_is_found_and_the_rest_is_read(tmp_path):
    chain = Chain(24)
    write(tmp_path, 0, chain)
    expected = in_memory([chain], np.arange(24))
    metadata = [*tmp_path.glob("*/zarr.json"), *tmp_path.glob("*/*/zarr.json")]
    first_of_each = {path.parent: path for path in reversed(block_files(tmp_path))}
    for path in [*first_of_each.values(), *metadata]:
        content = path.read_bytes()
        for damaged in damages(path):
            path.unlink()
            if damaged is not None:
                path.write_bytes(damaged)
            message = ""
            try:
                assert_same(StoredDraws(tmp_path), expected, step=24)
            except RunFolderError as error:
                message = str(error)
            assert path.name == "zarr.json" or str(path) in message
            n_kept = len(check_salvaged(tmp_path, chain, burn_in=0))
            assert n_kept >= (24 if path.name == "zarr.json" else 8)
            path.write_bytes(content)


def test_message_and_warning_name_what_is_lost(tmp_path):
    chains = [Chain(32, seed) for seed in (1, 2)]
    for number, chain in enumerate(chains):
        write(tmp_path, number, chain)
    path = tmp_path / "draws.zarr" / "chain-1" / "labels" / "c.2.0"
    content = bytearray(path.read_bytes())
    content[10] ^= 1
    path.write_bytes(content)
    stored = StoredDraws(tmp_path)
    assert stored.labels(1, 0, 12).shape == (12, N)
    with pytest.raises(RunFolderError) as caught:
        stored.labels(1, 10, 13)
    assert "c.2.0: damaged; chain 1 lacks labels of draws 12 to 17" in str(caught.value)
    assert "draws 0 to 11, 18 to 31 can be read whole" in str(caught.value)
    with pytest.warns(DfcrpWarning, match="chain 1 lacks labels of draws 12 to 17"):
        salvaged = StoredDraws(tmp_path, burn_in=4, salvage=True)
    left = np.r_[4:12, 18:32]
    np.testing.assert_array_equal(salvaged.labels(0, 0, 99), chains[0].labels[4 : 4 + len(left)])
    np.testing.assert_array_equal(salvaged.labels(1, 0, 99), chains[1].labels[left])


def test_rows_that_are_lost_cost_the_draws_they_belong_to(tmp_path):
    chain = Chain(32)
    writer = write(tmp_path, 0, chain)
    length = writer._record.row_block
    (tmp_path / "draws.zarr" / "chain-0" / "cluster_parameters" / "c.1.0").unlink()
    kept = check_salvaged(tmp_path, chain, burn_in=0)
    touched = (chain.offsets[:-1] < 2 * length) & (chain.offsets[1:] > length)
    np.testing.assert_array_equal(kept, np.flatnonzero(~touched))


def test_labels_can_do_without_cluster_parameters(tmp_path):
    chain = Chain(20)
    write(tmp_path, 0, chain)
    for path in tmp_path.rglob("cluster_labels/c.*"):
        path.unlink()
    (tmp_path / "draws.zarr" / "chain-0" / "labels" / "c.0.0").unlink()
    with pytest.raises(RunFolderError, match=r"no draws are left(.|\n)*lacks cluster_labels"):
        StoredDraws(tmp_path, salvage=True)
    with pytest.warns(DfcrpWarning, match="lacks cluster_labels of draws 0 to"):
        stored = StoredDraws(tmp_path, salvage="labels")
    np.testing.assert_array_equal(stored.label_array()[0], chain.labels[6:])
    with pytest.raises(RunFolderError, match="missing; chain 0 lacks cluster_labels"):
        stored.clusters(0, 0, 3)


def test_a_lost_chain_is_left_out(tmp_path):
    chain = Chain(9)
    for number in (0, 1):
        write(tmp_path, number, chain)
    for path in (tmp_path / "draws.zarr" / "chain-0").rglob("zarr.json"):
        path.write_text("{}")
    with pytest.raises(RunFolderError, match=r"chain-0.zarr\.json: damaged"):
        StoredDraws(tmp_path)
    with pytest.warns(DfcrpWarning, match="chain-0"):
        assert StoredDraws(tmp_path, salvage=True).chain_numbers == (1,)


def test_a_block_from_an_older_flush_is_noticed(tmp_path):
    chain = Chain(32)
    writer = write(tmp_path, 0, chain, [9])
    path = tmp_path / "draws.zarr" / "chain-0" / "labels" / "c.1.0"
    old = path.read_bytes()
    chain.append_to(writer, 9, 20)
    writer.flush()
    path.write_bytes(old)
    with pytest.raises(RunFolderError, match="older than the commit record"):
        StoredDraws(tmp_path).labels(0, 0, 20)


def test_salvage_of_a_sound_run_is_silent(tmp_path):
    chain = Chain(9)
    write(tmp_path, 0, chain)
    assert_same(StoredDraws(tmp_path, salvage=True), in_memory([chain], np.arange(9)))

"""One chain: its state, its random generators, and blocks of draws."""

from __future__ import annotations

import queue
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dfcrp.compiled import library
from dfcrp.compiled.jit import INTERPRETED, framed
from dfcrp.compiled.random import Stream, stream
from dfcrp.compiled.state import TALLY, Block, State
from dfcrp.draws import DrawBlock
from dfcrp.likelihoods import contract as likelihood
from dfcrp.moves.scan import Task, run_exact, start_alone, start_together
from dfcrp.priors import contract as partition_prior
from dfcrp.priors.tail import rebuild_tail
from dfcrp.sampling.checkpoints import check_parameters, check_state
from dfcrp.sampling.learned import take_over
from dfcrp.sampling.problem import Problem, new_record, new_scratch, new_state
from dfcrp.sampling.seats import seats_of
from dfcrp.values import Array, Json

#: Bytes that a block of draws may need at most.
BLOCK_BYTES = 64_000_000
#: Scans of the run that some chains take their first partition from, and its place among the
#: generators spawned from the chain's seed.
START_SCANS = 60
START_KEY = 1 << 31
#: What is taken over from it.
PARTITION = (
    *("label", "size", "head", "after", "before", "free_head", "free_after"),
    *("theta", "spare", "spare_weight", "law"),
)
#: Modules whose entries every run needs, those of the summaries included.
ALWAYS = (
    "dfcrp.moves.scan",
    "dfcrp.priors.tail",
    "dfcrp.summaries.kernels.division",
    "dfcrp.summaries.kernels.partitions",
    "dfcrp.summaries.kernels.point_search",
    "dfcrp.summaries.kernels.tables",
)
#: State that follows from the rest.
_DERIVED = ("tail",)


class _Piece:
    """A block of the data with what its sweeps use."""

    def __init__(self, block: Block, rng: Stream, state: State) -> None:
        self.rng = rng
        #: The chain's, with counters of its own.
        self.state = state
        #: As kernels take them.
        self.frames = framed(block), framed(rng), framed(state)


class Chain:
    """A Markov chain over (partition, parameters, order, α) for one problem.

    The draws depend on the problem and the seed alone, not on how they are cut into blocks, nor
    on the number of threads: each block of the data has a generator of its own.
    """

    def __init__(
        self, problem: Problem, seed: np.random.SeedSequence, sampler: str, threads: int = 1
    ) -> None:
        self.problem = problem
        self.rng = stream(seed)
        self.state = new_state(problem)
        number = seed.spawn_key[-1] if seed.spawn_key else 0
        take_over(problem, self.state, number)
        #: What is learned is learned by each chain for itself.
        self.hyper = likelihood.of_chain(problem.hyper, self.state.law)
        self.prior = partition_prior.of_chain(problem.prior, self.state.own)
        self._model = framed(problem.data), framed(self.hyper), framed(self.prior)
        self._sampler = sampler
        self._whole, self._pieces = self._cut(_blocks(problem), seed)
        more = max(0, min(threads, len(self._pieces)) - 1)
        self._scratch = [framed(new_scratch(problem))]
        self._scratch += [framed(new_scratch(problem, parts_only=True)) for _ in range(more)]
        self._seed, self._threads = seed, threads
        #: The run that the first partition comes from, while it is under way.
        self._first: Chain | None = None
        start_alone(self.rng, problem.data, self.hyper, self.state)
        if problem.begin is not None:
            lead = seats_of(problem.data, problem.begin[number % len(problem.begin)])
            start_together(problem.data, self.hyper, self.state, lead)

    def _cut(
        self, blocks: list[Block], seed: np.random.SeedSequence
    ) -> tuple[_Piece, list[_Piece]]:
        """The data as a whole, and the pieces it is cut into, if there is more than one."""
        everything = Block(0, self.problem.n, 0, len(self.problem.data.contact))
        whole = _Piece(everything, self.rng, self.state)
        if len(blocks) == 1 or self._sampler != "exact":
            return whole, []
        # Pieces that are swept at the same time must not share a generator or counters.
        return whole, [
            _Piece(
                block,
                stream(child),
                self.state._replace(tally=np.zeros_like(self.state.tally)),
            )
            for block, child in zip(blocks, seed.spawn(len(blocks)), strict=True)
        ]

    @property
    def scans(self) -> int:
        """Scans done since the start."""
        return int(self.state.scans[0])

    @property
    def tally(self) -> dict[str, int]:
        """Proposals and acceptances since the start, by kind of move."""
        return dict(zip(TALLY, self._tally().tolist(), strict=True))

    def largest_block(self) -> int:
        """Draws that fit into one block."""
        columns = self.problem.columns
        each = self.problem.n * (8 + 4 * len(columns.parameters)) + 8 * columns.width
        return int(max(1, min(512, BLOCK_BYTES // each)))

    def run(self, draws: int, thin: int) -> DrawBlock:
        """Go on for draws × thin scans and return a draw after every thin-th."""
        self.begin(self.to_begin)
        record = new_record(self.problem, draws)
        room = framed(record)
        if self._sampler != "exact":
            from dfcrp.moves.paper import run_modified, run_unmodified

            scans = run_modified if self._sampler == "paper" else run_unmodified
            scans(*self._given(self._whole, self._scratch[0]), thin, room)
        elif self._pieces:
            self._run_pieces(draws, thin, room)
        else:
            self._run_exact(self._whole, Task(True, True, True, 0, draws, thin), room)
        rows = record.offsets[-1]
        return DrawBlock(
            record.labels,
            record.alpha,
            record.offsets,
            record.cluster_labels[:rows],
            record.parameters[:rows],
            record.shared,
        )

    @property
    def to_begin(self) -> int:
        """Scans still to be done of the run that the first partition comes from."""
        if self.scans > 0 or self.problem.start is None or self.problem.begin is not None:
            return 0
        return START_SCANS - (0 if self._first is None else self._first.scans)

    def begin(self, scans: int) -> None:
        """Do so many scans of that short run under another prior; with the last take it over.

        Where a chain begins changes nothing of what it converges to; some priors take very long to
        leave a partition of everyone alone.
        """
        if self.problem.start is None or not scans:
            return
        if self._first is None:
            key = (*self._seed.spawn_key, START_KEY)
            seed = np.random.SeedSequence(self._seed.entropy, spawn_key=key)
            self._first = Chain(self.problem.start, seed, "exact", self._threads)
        self._first.run(1, scans)
        if self._first.scans < START_SCANS:
            return
        for name in PARTITION:
            getattr(self.state, name)[...] = getattr(self._first.state, name)
        kept = likelihood.kept_by_chain(self._first.hyper)
        for name, values in likelihood.kept_by_chain(self.hyper).items():
            values[...] = kept[name]
        self.problem = replace(self.problem, start=None)
        self._first = None

    def _given(self, piece: _Piece, scratch: object) -> tuple[Any, ...]:
        """What every sampler takes first."""
        _, rng, state = piece.frames
        return rng, *self._model, state, scratch

    def _run_exact(
        self, piece: _Piece, task: Task, record: object, scratch: object | None = None
    ) -> None:
        given = self._given(piece, scratch or self._scratch[0])
        run_exact(*given, piece.frames[0], task, record)

    def _run_pieces(self, draws: int, thin: int, record: object) -> None:
        """Scans piece by piece, then what the pieces share."""
        idle: queue.SimpleQueue[Any] = queue.SimpleQueue()
        for scratch in self._scratch:
            idle.put(scratch)

        def sweep(piece: _Piece) -> None:
            scratch = idle.get()
            self._run_exact(piece, Task(True, False, False, 0, 1, 1), record, scratch)
            idle.put(scratch)

        with ThreadPoolExecutor(len(self._scratch)) as pool:
            for draw in range(draws):
                for left in range(thin - 1, -1, -1):
                    list(pool.map(sweep, self._pieces))
                    finish = Task(False, True, left == 0, draw, draw + 1, 1)
                    self._run_exact(self._whole, finish, record)

    def _tally(self) -> NDArray[np.int64]:
        return np.sum([self.state.tally, *(piece.state.tally for piece in self._pieces)], axis=0)

    def snapshot(self) -> tuple[dict[str, Array], list[Json]]:
        """State arrays and the generators' states: all that ``restore`` needs."""
        arrays = {
            name: value.copy()
            for name, value in self.state._asdict().items()
            if name not in _DERIVED
        }
        arrays["tally"] = self._tally()
        kept = likelihood.kept_by_chain(self.hyper)
        arrays |= {name: values.copy() for name, values in kept.items()}
        return arrays, [{"words": rng.words.tolist()} for rng in self._streams()]

    def restore(self, arrays: dict[str, Array], generators: list[Json]) -> None:
        """Continue exactly where ``snapshot`` was taken; ValueError if nothing can be there."""
        own = self.state._asdict() | likelihood.kept_by_chain(self.hyper)
        check_state(arrays, own, self.problem.data.component)
        check_parameters(arrays, self.hyper, self.problem.possible)
        for name, value in own.items():
            if name not in _DERIVED:
                value[...] = arrays[name]
        for piece in self._pieces:
            piece.state.tally[...] = 0
        for rng, known in zip(self._streams(), generators, strict=True):
            rng.words[...] = np.array(known["words"], np.uint64)
        if self.problem.has_order:
            rebuild_tail(self.problem.data, self.state)
        partition_prior.refresh(self.prior)

    def _streams(self) -> list[Stream]:
        return [self.rng, *(piece.rng for piece in self._pieces)]


def have_compiled(problem: Problem, sampler: str) -> None:
    """Compile what a run of this problem needs, unless it is there; nothing else compiles then."""
    if INTERPRETED:
        return
    scans = "dfcrp.moves.scan" if sampler == "exact" else "dfcrp.moves.paper"
    priors = {type(one.prior) for one in (problem, problem.start) if one is not None}
    library.require(
        [
            library.table_unit(likelihood.LIKELIHOOD, type(problem.hyper)),
            *(library.table_unit(partition_prior.PRIOR, prior) for prior in priors),
            *(library.unit_named(f"entries:{name}") for name in {scans, *ALWAYS}),
        ]
    )


def _blocks(problem: Problem) -> list[Block]:
    """The blocks of the data, as the kernels take them."""
    data = problem.data
    markings = pairwise(data.block_start.tolist())
    contacts = pairwise(data.block_contact.tolist())
    return [Block(*ends, *held) for ends, held in zip(markings, contacts, strict=True)]

"""Blocks: consecutive draws of one chain, and what a chain has drawn according to its blocks.

A chain belongs to a *part* of a run: one image that is drawn on its own, or all there is.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from dfcrp.draws import Chosen, Columns, DrawBlock, every
from dfcrp.values import Array, Json

#: A block is full when it holds so many bytes before compression, or so many draws.
BLOCK_BYTES = 32 << 20
MOST_DRAWS = 4096
#: Larger blocks are not read, whatever a file says: these never were, and are not to be.
_LIMIT_BYTES = 256 << 20
_LIMIT_DRAWS = 1 << 16
_MOST_STATE_ARRAYS, _MOST_AXES = 1000, 8
#: The dtypes of arrays of a state, as they are written. What a file says is looked up here: NumPy
#: would parse it.
STATE_KINDS = frozenset(
    np.dtype(kind).str for kind in ("?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8")
)

#: Name, dtype and shape of each array of a state; none if there is no state.
StateLayout = tuple[tuple[str, str, tuple[int, ...]], ...]
_NOTHING_SAID: Json = {}


class IndexEntry(NamedTuple):
    """What the index says of a block."""

    part: int
    chain: int
    #: Blocks of a chain count in this order, see ``replay``.
    turn: int
    #: Draws of the chain before these.
    first: int
    draws: int
    #: Clusters of all these draws.
    rows: int
    n: int
    #: Whether the draws up to these count; else a block to come has to say so.
    saved: bool
    #: Scans behind the chain when it was saved.
    scans: int
    columns: Columns
    state: StateLayout = ()
    #: What belongs to the state besides its arrays.
    about: Json = _NOTHING_SAID

    @property
    def stop(self) -> int:
        """Draws of the chain up to the last of these."""
        return self.first + self.draws

    @property
    def state_bytes(self) -> int:
        """Bytes of the state before packing."""
        return sum(math.prod(shape) * np.dtype(kind).itemsize for _, kind, shape in self.state)

    def sensible(self) -> bool:
        """Whether it could be of a block that a run makes, whoever wrote it.

        All draws but the last of a block have less than ``BLOCK_BYTES``.
        """
        counts = (self.part, self.chain, self.turn, self.first, self.draws, self.rows, self.scans)
        earlier, row = self.draws - 1, 4 * (1 + len(self.columns.parameters))
        return (
            all(type(count) is int and 0 <= count < 2**62 for count in counts)
            and type(self.n) is int
            and type(self.saved) is bool
            and 0 < self.n < 2**31
            and self.draws <= _LIMIT_DRAWS
            and 4 * self.n * earlier <= _LIMIT_BYTES
            and self.rows <= self.n * self.draws
            and row * (self.rows - self.n) <= _LIMIT_BYTES
            and self.columns.width < 2**24
            and 8 * self.columns.width * earlier <= _LIMIT_BYTES
            and _sensible_state(self.state)
            and isinstance(self.about, dict)
        )


def _sensible_state(layout: StateLayout) -> bool:
    return len(layout) <= _MOST_STATE_ARRAYS and all(
        name.isidentifier()
        and kind in STATE_KINDS
        and 1 <= len(shape) <= _MOST_AXES
        and all(type(length) is int and 0 <= length < 2**40 for length in shape)
        for name, kind, shape in layout
    )


class BlockBounds(NamedTuple):
    """What the blocks of a run can be, by its items and settings."""

    #: Items of each part.
    items: tuple[int, ...]
    #: Chains, and draws of each; None if it is not known.
    chains: int | None
    draws: int | None
    #: Parameters of a cluster, at most.
    parameters: int | None = None
    #: Numbers that the clusters of a draw share, at most.
    shared: int | None = None

    def refusal(self, entry: IndexEntry) -> str:
        """Why a block cannot be one of the run; nothing if it can."""
        if entry.part >= len(self.items):
            return f"it has draws of part {entry.part} of {len(self.items)}"
        if entry.n != self.items[entry.part]:
            return f"it has draws of {entry.n} items, the run is of {self.items[entry.part]}"
        if self.chains is not None and entry.chain >= self.chains:
            return f"it has draws of chain {entry.chain}, the run has {self.chains} chains"
        parameters = len(entry.columns.parameters)
        if self.parameters is not None and parameters > self.parameters:
            return f"its clusters have {parameters:,} parameters, those of the run fewer"
        if self.shared is not None and entry.columns.width > self.shared:
            return f"its draws have {entry.columns.width:,} numbers each, those of the run fewer"
        if self.draws is not None and entry.stop > self.draws:
            return f"it has draw {entry.stop:,} of a chain, the run has {self.draws:,}"
        return ""


class KeptBlock(Protocol):
    """Draws of a block, in memory or on disk."""

    @property
    def entry(self) -> IndexEntry:
        """What the block is."""
        ...

    def labels(self) -> NDArray[np.int32]:
        """Labels of all items, (draw, item)."""
        ...

    def read(self, name: str) -> Array:
        """``alpha`` or ``n_clusters`` of each draw, or ``cluster_labels`` of each row."""
        ...

    def parameters(self, rows: slice) -> NDArray[np.float32]:
        """Parameters of some rows, (row, parameter)."""
        ...

    def shared(self, chosen: Chosen = None) -> NDArray[np.float64]:
        """What clusters share, or some of it, (draw, number)."""
        ...

    def history(self, marking: int) -> NDArray[np.int32]:
        """One marking's labels."""
        ...

    def state(self) -> dict[str, Array]:
        """The arrays of the state."""
        ...


@dataclass(frozen=True, eq=False)
class MemoryBlock:
    """A block in memory."""

    entry: IndexEntry
    draws: DrawBlock
    arrays_of_state: Mapping[str, Array] = field(default_factory=dict)

    @property
    def nbytes(self) -> int:
        """Bytes before packing."""
        return sum(array.nbytes for array in self.draws) + self.entry.state_bytes

    def labels(self) -> NDArray[np.int32]:
        """Labels of all items, (draw, item)."""
        return self.draws.labels

    def read(self, name: str) -> Array:
        """``alpha`` or ``n_clusters`` of each draw, or ``cluster_labels`` of each row."""
        if name == "n_clusters":
            return np.diff(self.draws.offsets).astype(np.int32)
        found: Array = getattr(self.draws, name)
        return found

    def parameters(self, rows: slice) -> NDArray[np.float32]:
        """Parameters of some rows, (row, parameter)."""
        return self.draws.parameters[rows]

    def shared(self, chosen: Chosen = None) -> NDArray[np.float64]:
        """What clusters share, or some of it, (draw, number)."""
        return self.draws.shared[:, every(chosen)]

    def history(self, marking: int) -> NDArray[np.int32]:
        """One marking's labels."""
        return self.draws.labels[:, marking]

    def state(self) -> dict[str, Array]:
        """The arrays of the state."""
        return dict(self.arrays_of_state)


class Span(NamedTuple):
    """Draws ``start:stop`` of a chain, which are the first of a block."""

    block: KeptBlock
    start: int
    stop: int


def replay(blocks: Iterable[KeptBlock]) -> list[Span]:
    """The draws that a chain has, as spans without gaps; the last is that of its last save."""
    ordered = sorted(blocks, key=lambda block: (block.entry.turn, block.entry.stop))
    spans: list[Span] = []
    last = -1
    for at, block in enumerate(ordered):
        if _apply(spans, block) and block.entry.saved:
            last = at
    if last < len(ordered) - 1:
        spans = []
        for block in ordered[: last + 1]:
            _apply(spans, block)
    return spans


def _apply(spans: list[Span], block: KeptBlock) -> bool:
    """Let a block take the place of all draws from its first on; False if some before it lack."""
    first, stop = block.entry.first, block.entry.stop
    if first > (spans[-1].stop if spans else 0):
        return False
    while spans and spans[-1].start >= first:
        spans.pop()
    if spans and spans[-1].stop > first:
        spans[-1] = spans[-1]._replace(stop=first)
    spans.append(Span(block, first, stop))
    return True


def no_draws(n: int, columns: Columns) -> DrawBlock:
    """A block of no draws."""
    return DrawBlock(
        labels=np.zeros((0, n), np.int32),
        alpha=np.zeros(0),
        offsets=np.zeros(1, np.int64),
        cluster_labels=np.zeros(0, np.int32),
        parameters=np.zeros((0, len(columns.parameters)), np.float32),
        shared=np.zeros((0, columns.width)),
    )


def check_block(block: DrawBlock, n: int, columns: Columns) -> None:
    """ValueError if the arrays of a block are not of the same draws of ``n`` items."""
    labels, alpha, offsets, cluster_labels, parameters, shared = block
    b, rows = len(alpha), len(cluster_labels)
    if (
        labels.shape != (b, n)
        or parameters.shape != (rows, len(columns.parameters))
        or offsets.shape != (b + 1,)
        or (offsets[0], offsets[-1]) != (0, rows)
        or np.any(np.diff(offsets) < 0)
        or shared.shape != (b, columns.width)
    ):
        raise ValueError("the arrays of this block do not fit together")


def bytes_per_draw(block: DrawBlock) -> NDArray[np.int64]:
    """Bytes of each draw before compression."""
    fixed = 4 * block.labels.shape[1] + 8 * block.shared.shape[1] + 12
    per_row = 4 + 4 * block.parameters.shape[1]
    found: NDArray[np.int64] = fixed + per_row * np.diff(block.offsets)
    return found


def cut_block(block: DrawBlock, start: int, stop: int) -> DrawBlock:
    """Draws ``start:stop`` of a block."""
    first, last = block.offsets[start], block.offsets[stop]
    return DrawBlock(
        block.labels[start:stop],
        block.alpha[start:stop],
        block.offsets[start : stop + 1] - first,
        block.cluster_labels[first:last],
        block.parameters[first:last],
        block.shared[start:stop],
    )


def draws_of(block: KeptBlock) -> DrawBlock:
    """All draws of a block."""
    return DrawBlock(
        labels=np.ascontiguousarray(block.labels()),
        alpha=block.read("alpha"),
        offsets=offsets_of(block.read("n_clusters")),
        cluster_labels=block.read("cluster_labels"),
        parameters=block.parameters(slice(None)),
        shared=block.shared(),
    )


def layout_of(arrays: Mapping[str, Array]) -> StateLayout:
    """What the index says of the arrays of a state."""
    return tuple((name, array.dtype.str, array.shape) for name, array in arrays.items())


def offsets_of(counts: NDArray[np.int32]) -> NDArray[np.int64]:
    """Where each draw's rows begin, and where the last one's end."""
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(counts, dtype=np.int64)])

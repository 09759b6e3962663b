"""What takes the draws of a chain as they come, and its state at each save."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from dfcrp.draws import Columns, DrawBlock, join_blocks
from dfcrp.errors import RunFolderError
from dfcrp.files import write_errors
from dfcrp.runs import blocks
from dfcrp.runs.blocks import (
    IndexEntry,
    KeptBlock,
    MemoryBlock,
    bytes_per_draw,
    check_block,
    cut_block,
    draws_of,
    layout_of,
    no_draws,
)
from dfcrp.runs.lock import Claim
from dfcrp.runs.shards import DamagedFile, StoredBlock, drawn_again, place_of
from dfcrp.values import Array, Json

if TYPE_CHECKING:
    from dfcrp.runs.store import DrawStore
    from dfcrp.sampling.chain import Chain

#: A block of so many bytes, or with a state of so many, gets a shard of its own.
LARGE_BYTES = 8 << 20
LARGE_STATE = 1 << 20
#: What to do when a disk is full.
RESUME = "once the cause is removed, `dfcrp resume` continues the run"
_T = TypeVar("_T")


class ChainWriter:
    """Takes the draws of one chain, with its state at each save; a ``Writer`` of the runner.

    It holds the draws of one unfinished block in memory. A block that is full is written at once,
    and counts when the chain is saved next. If writing fails nothing is lost: what was appended
    is written with the next save.
    """

    def __init__(
        self,
        store: DrawStore,
        part: int,
        chain: int,
        n: int,
        columns: Columns,
        *,
        share: bool,
        claim: Claim,
    ) -> None:
        self._store = store
        self._claim = claim
        self._part, self._chain = part, chain
        self._n, self._columns = n, columns
        self._share = share
        spans = store.spans(part, chain)
        self._turn = store.next_turn(part, chain)
        #: Draws of an earlier run must not be overwritten by mistake.
        self._must_restore = bool(spans)
        self._begin(0, 0)

    def _begin(self, first: int, scans: int, block: DrawBlock | None = None) -> None:
        """Go to where the chain has ``first`` draws, and a block has begun to be filled."""
        #: Draws before the unfinished block.
        self._first = first
        self._tail: list[DrawBlock] = []
        self._tail_draws = self._tail_bytes = 0
        #: Draws that are not yet in a block.
        self._new: list[DrawBlock] = []
        self._waiting: MemoryBlock | None = None
        self._saved_scans = scans
        self._saved_draws = first
        if block is not None:
            self._add_to_tail(block)
            self._saved_draws += len(block.alpha)

    @property
    def n_draws(self) -> int:
        """Draws appended so far, saved or not."""
        return self._first + self._tail_draws + sum(len(block.alpha) for block in self._new)

    @property
    def n_saved(self) -> int:
        """Draws that count."""
        return self._saved_draws

    def append(self, block: DrawBlock) -> None:
        """Add a block of draws."""
        if self._must_restore:
            raise RunFolderError(
                f"{self._store.root}: there are draws already; resume that run or choose another "
                "folder"
            )
        check_block(block, self._n, self._columns)
        self._new.append(block)
        with self._errors():
            self._fill()

    def save(self, chain: Chain, seconds: float) -> None:
        """Save what was added, and the chain's state after it."""
        if chain.scans != self._saved_scans:
            arrays, generators = chain.snapshot()
            about = {"seconds": seconds, "generators": generators}
            self._save(chain.scans, arrays, about)

    def finish(self) -> None:
        """Save what was added without a state: for a run that cannot be resumed."""
        self._save(0, {}, {})

    def restore(self, chain: Chain, thin: int) -> float:
        """Bring the chain to where it was saved; the seconds that the run had taken by then.

        Without a state the chain stays at its start, and its draws no longer count.
        """
        spans = self._store.spans(self._part, self._chain)
        self._turn = self._store.next_turn(self._part, self._chain)
        self._must_restore = False
        if not spans or not spans[-1].block.entry.state:
            self._begin(0, 0)
            return 0.0
        block = spans[-1].block
        self._refuse_other_columns(block)
        seconds = self._restore_state(chain, block)
        if chain.scans // thin != block.entry.stop:
            raise RunFolderError(
                f"{place_of(block, self._store.root)}: does not fit this run: "
                f"{block.entry.stop} draws of a chain with {chain.scans} scans"
            )
        if isinstance(block, StoredBlock) and not block.shard.is_shared:
            # So that the next save takes the place of this one, state and all.
            self._begin(block.entry.first, chain.scans, self._read(block, draws_of))
        else:
            self._begin(block.entry.stop, chain.scans)
        return seconds

    def _refuse_other_columns(self, block: KeptBlock) -> None:
        """Before anything of the block is unpacked."""
        entry = block.entry
        if (entry.n, entry.columns) != (self._n, self._columns):
            raise RunFolderError(
                f"{place_of(block, self._store.root)}: does not fit this run: its draws are of "
                "other items or quantities"
            )

    def _restore_state(self, chain: Chain, block: KeptBlock) -> float:
        place, entry = place_of(block, self._store.root), block.entry
        own, _ = chain.snapshot()
        try:
            if entry.state != layout_of(own):
                raise ValueError("other arrays")
            arrays = self._read(block, lambda found: found.state())
            chain.restore(arrays, entry.about["generators"])
            return _seconds(entry.about["seconds"])
        except (LookupError, ValueError, TypeError, AttributeError, OverflowError) as error:
            raise RunFolderError(
                f"{place}: does not fit this run ({error}); {drawn_again(place)}"
            ) from None

    def _read(self, block: KeptBlock, read: Callable[[KeptBlock], _T]) -> _T:
        try:
            return read(block)
        except DamagedFile as error:
            folder = place_of(block, self._store.root)
            raise RunFolderError(f"{error}; {drawn_again(folder)}") from None

    def _save(self, scans: int, state: dict[str, Array], about: Json) -> None:
        with self._errors():
            self._fill()
            entry = self._entry(self._joined_tail(), saved=True)
            entry = entry._replace(scans=scans, state=layout_of(state), about=about)
            block = MemoryBlock(entry, self._joined_tail(), state)
            large = block.nbytes >= LARGE_BYTES or entry.state_bytes >= LARGE_STATE
            if self._share and not large:
                self._store.add([block])
                self._waiting = block
            else:
                self._store.write(block, self._claim)
                self._waiting = None
        self._saved_scans = scans
        self._saved_draws = block.entry.stop

    def _joined_tail(self) -> DrawBlock:
        """The unfinished block as one."""
        if not self._tail:
            return no_draws(self._n, self._columns)
        self._tail = [join_blocks(self._tail)]
        return self._tail[0]

    def _leave_behind_what_is_written(self) -> None:
        """Begin a new block if the last one was written together with those of other chains."""
        if self._waiting is not None and self._store.is_shared(self._waiting):
            self._waiting = None
            written, later = self._saved_draws, self._tail
            self._tail, self._tail_draws, self._tail_bytes = [], 0, 0
            skip = written - self._first
            self._first = written
            for block in later:
                size = len(block.alpha)
                if skip < size:
                    self._add_to_tail(cut_block(block, skip, size))
                skip = max(0, skip - size)

    def _fill(self) -> None:
        """Bring what is new into blocks, and write those that are full."""
        self._leave_behind_what_is_written()
        while self._new:
            block = self._new[0]
            sizes = self._tail_bytes + np.cumsum(bytes_per_draw(block))
            full = int(np.searchsorted(sizes, blocks.BLOCK_BYTES)) + 1
            full = min(full, blocks.MOST_DRAWS - self._tail_draws)
            if full > len(block.alpha):
                self._add_to_tail(block)
                del self._new[0]
                continue
            whole = join_blocks([*self._tail, cut_block(block, 0, full)])
            block_of_it = MemoryBlock(self._entry(whole, saved=False), whole)
            self._store.write(block_of_it, self._claim)
            self._first += len(whole.alpha)
            self._tail, self._tail_draws, self._tail_bytes = [], 0, 0
            self._waiting = None
            self._new[0] = cut_block(block, full, len(block.alpha))
            if not len(self._new[0].alpha):
                del self._new[0]

    def _add_to_tail(self, block: DrawBlock) -> None:
        if len(block.alpha):
            self._tail.append(block)
            self._tail_draws += len(block.alpha)
            self._tail_bytes += int(bytes_per_draw(block).sum())

    def _entry(self, draws: DrawBlock, *, saved: bool) -> IndexEntry:
        """Of the next block."""
        self._turn += 1
        return IndexEntry(
            part=self._part,
            chain=self._chain,
            turn=self._turn - 1,
            first=self._first,
            draws=len(draws.alpha),
            rows=len(draws.cluster_labels),
            n=self._n,
            saved=saved,
            scans=0,
            columns=self._columns,
        )

    def _errors(self) -> contextlib.AbstractContextManager[None]:
        """Say in words why the chain cannot be written, and what is safe."""
        safe = ""
        if self.n_saved:
            safe = f"Of this chain {self.n_saved:,} draws were saved before and are safe; {RESUME}"
        return write_errors(self._store.root, safe)


def _seconds(found: object) -> float:
    if not isinstance(found, int | float) or not 0 <= found < 1e12:
        raise ValueError("no time")
    return float(found)


class MemoryWriter:
    """Keeps one chain's draws in memory; a ``Writer`` of the runner."""

    def __init__(
        self, part: int, chain: int, n: int, columns: Columns, *, keep_state: bool = False
    ) -> None:
        self._part, self._chain = part, chain
        self._n, self._columns = n, columns
        self._draws = [no_draws(n, columns)]
        #: Scans behind the chain when it was last saved, and its state then.
        self.scans = 0
        self._keep_state = keep_state
        self._state: tuple[dict[str, Array], Any, float] | None = None

    def append(self, block: DrawBlock) -> None:
        """Add a block of draws."""
        self._draws.append(block)

    def save(self, chain: Chain, seconds: float) -> None:
        """Note how far the chain is, and its state if the program may go on with it later."""
        self.scans = chain.scans
        if self._keep_state:
            self._state = (*chain.snapshot(), seconds)

    def restore(self, chain: Chain, thin: int) -> float:
        """Bring the chain to where it was saved; the seconds that the run had taken by then."""
        if self._state is None:
            return 0.0
        arrays, generators, seconds = self._state
        chain.restore(arrays, generators)
        return seconds

    def let_go(self) -> None:
        """Forget the chain's state."""
        self._state = None

    def block(self) -> MemoryBlock:
        """All draws as one block."""
        self._draws = [join_blocks(self._draws)]
        draws = self._draws[0]
        b, rows = len(draws.alpha), len(draws.cluster_labels)
        key = (self._part, self._chain)
        entry = IndexEntry(*key, 0, 0, b, rows, self._n, True, self.scans, self._columns)
        return MemoryBlock(entry, draws)

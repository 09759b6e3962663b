"""One store for the draws of a run, and for where its chains stand.

A run is a list of *parts*, numbered from 0: one part, or one for each image that is drawn on its
own. The draws of all chains of all parts lie in ``draws.zarr`` of the run folder, as *blocks* in
immutable *shards* (see ``dfcrp.runs.shards``)::

    store = DrawStore.create(folder)                  # or .open(folder); MemoryStore() has no files
    writer = store.writer(part, chain, n, columns)    # the ``Writer`` of dfcrp.sampling.runner
    writer.restore(chain, thin)                       # to where it was saved, if it was
    writer.append(block); writer.save(chain, seconds)
    store.flush()                                     # at the end of a run
    store.draws(part, burn_in, stop)                  # behind the ``Draws`` protocol

What a chain has drawn follows from its blocks alone (``dfcrp.runs.blocks.replay``): they are
applied in order of their ``turn``, and each takes the place of all draws from its ``first`` on; a
block whose predecessors are missing is left out. Draws count up to the last block that was
*saved*, that is, written together with the chain's state after it. From this follows:

- A shard is there as a whole or not at all, so a kill at any moment loses nothing that was saved.
  Draws after the last saved block do not count. They are drawn again, the same as before.
- A chain that is saved again before its block is full gets a new shard with all draws of the
  block, and the old one is removed, and with it the old state: of a large chain there is one
  state. Two processes that save the same chain, since one was taken for dead, do no harm: they
  draw the same.
- Any shard may be deleted. ``resume`` begins again from the last state that has all its draws.
- A block of a chain that is saved with ``share=True`` waits in memory until there are 64 MB of
  them, or ``seconds`` have passed, or ``flush`` is called; then all that wait share a
  shard. Thousands of small images are a few shards. Large blocks never wait.
- Shards of different writers never have the same name. Processes that write to one store see each
  other's shards when they look: every question to a store looks first.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from dfcrp.draws import Columns
from dfcrp.errors import RunFolderError
from dfcrp.files import LinkError, opened, write_errors
from dfcrp.runs.blocks import BlockBounds, KeptBlock, MemoryBlock, Span, replay
from dfcrp.runs.chain_writer import RESUME, ChainWriter, MemoryWriter
from dfcrp.runs.lock import Claim
from dfcrp.runs.shards import (
    FORMAT,
    MOST_GROUPS,
    PREFIX,
    SUFFIX,
    Shard,
    StoredBlock,
    Unpacked,
    by_kind,
    drawn_again,
    read_about,
    read_groups,
    write_about,
    write_shard,
)
from dfcrp.runs.stored_draws import StoredDraws
from dfcrp.runs.zarr_zip import META
from dfcrp.values import Json

#: In a run folder.
STORE = "draws.zarr"
#: Blocks that share a shard wait at most so long, unless the run says otherwise.
SECONDS = 30.0
#: Or until there is so much of them, before compression.
SHARD_BYTES = 64 << 20


class DrawStore:
    """The draws of a run folder; used from many threads.

    Parameters
    ----------
    run_folder
        The run folder; use ``create`` for a new run and ``open`` for one that has begun.
    seconds
        How long blocks wait for others to share a shard with.
    hold
        Blocks wait until they are taken: for a process that hands them to another with ``take``
        and ``add``.
    claim
        The right to write; without one the store writes, but fences nobody off.
    bounds
        What the blocks of the run can be; a shard with others is refused.

    Examples
    --------
    >>> store = DrawStore.open("run")  # doctest: +SKIP
    >>> store.draws(0, burn_in=500).alpha().shape  # doctest: +SKIP
    (4, 1500)
    """

    def __init__(
        self,
        run_folder: Path | str,
        *,
        seconds: float = SECONDS,
        hold: bool = False,
        claim: Claim | None = None,
        bounds: BlockBounds | None = None,
    ) -> None:
        self.folder = Path(run_folder)
        self.root = self.folder / STORE
        self.claim = claim or Claim(self.folder)
        self._bounds = bounds
        self._seconds = seconds
        self._hold = hold
        self._unpacked = Unpacked(2 * SHARD_BYTES)
        #: Guards what follows; ``_writing`` lets one thread at a time write what waits.
        self._lock, self._writing = threading.RLock(), threading.Lock()
        self._shards: dict[str, Shard] = {}
        #: By part and chain.
        self._blocks: dict[int, dict[int, list[KeptBlock]]] = {}
        #: Blocks to be written, by identity, and their bytes.
        self._waiting: dict[int, MemoryBlock] = {}
        self._waiting_bytes = 0
        self._number = 0
        self._last_flush = time.monotonic()
        #: Whether the run keeps states; without them it cannot be resumed.
        self.resumable = self._read_root()
        self.refresh()

    def __reduce__(self) -> tuple[Any, ...]:
        return partial(DrawStore.open, bounds=self._bounds), (self.folder,)

    @classmethod
    def create(
        cls,
        run_folder: Path | str,
        *,
        resumable: bool = True,
        seconds: float = SECONDS,
        claim: Claim | None = None,
        chains: int | None = None,
    ) -> DrawStore:
        """Start an empty store; RunFolderError if there is one already.

        ``resumable=False`` is for draws that are saved from memory, without states; ``chains`` is
        how many it will have then, which the settings need not know.
        """
        folder = Path(run_folder)
        root = folder / STORE
        about: Json = {"dfcrp_draws_format": FORMAT, "resumable": resumable}
        if chains is not None:
            about["chains"] = chains
        with write_errors(root):
            folder.mkdir(parents=True, exist_ok=True)
            with opened(folder, STORE, make=True) as place:
                if place.status(META) is not None:
                    raise RunFolderError(
                        f"{root}: there are draws already; resume that run or choose another folder"
                    )
                write_about(place, about)
                place.sync()
        return cls(run_folder, seconds=seconds, claim=claim)

    @classmethod
    def open(
        cls,
        run_folder: Path | str,
        *,
        seconds: float = SECONDS,
        hold: bool = False,
        claim: Claim | None = None,
        bounds: BlockBounds | None = None,
    ) -> DrawStore:
        """The store of a run that has begun; RunFolderError if it cannot be read."""
        return cls(run_folder, seconds=seconds, hold=hold, claim=claim, bounds=bounds)

    def _read_root(self) -> bool:
        if not self.folder.is_dir():
            raise RunFolderError(f"{self.folder}: there is no such run folder")
        if not self.root.is_dir() and not self.root.is_symlink():
            raise RunFolderError(
                f"{self.root}: missing; {self.folder.name} is not a run folder, or its run stopped "
                "before it began"
            )
        attributes = read_about(self.folder, STORE)
        chains = attributes.get("chains")
        if self._bounds is not None and attributes.get("resumable") is not True:
            # A posterior saved from memory has the chains and the draws that it has.
            self._bounds = self._bounds._replace(
                chains=chains if type(chains) is int and chains > 0 else None, draws=None
            )
        return attributes.get("resumable") is True

    # What there is

    def refresh(self) -> None:
        """See what other processes have written or removed since the last look."""
        # Under the lock, or a shard that another thread writes meanwhile would count as removed.
        with self._lock:
            names = self._names()
            for name in self._shards.keys() - names:
                self._forget(self._shards[name])
            for name in sorted(names - self._shards.keys()):
                shard = self._read_shard(self.root / name)
                if shard is not None:
                    self._register(shard)

    def _names(self) -> set[str]:
        """The shards that are there."""
        try:
            with opened(self.folder, STORE) as place:
                found = place.names()
        except LinkError as error:
            raise RunFolderError(f"{error.filename}: {error.strerror}") from None
        except OSError as error:
            raise RunFolderError(f"{self.root}: not readable ({error.strerror})") from error
        return {name for name in found if name.startswith(PREFIX) and name.endswith(SUFFIX)}

    def parts(self) -> tuple[int, ...]:
        """The parts of which something was saved."""
        self.refresh()
        with self._lock:
            return tuple(
                part
                for part in sorted(self._blocks)
                if any(replay(blocks) for blocks in self._blocks[part].values())
            )

    def begun(self, part: int) -> bool:
        """Whether something of a part was saved."""
        return bool(self._chains(part))

    def saved_draws(self, part: int = 0) -> dict[int, int]:
        """How many draws were saved of each chain of a part that has begun."""
        return {chain: spans[-1].stop for chain, spans in self._chains(part).items()}

    def scans(self, part: int, chains: int) -> list[int]:
        """Scans behind each chain of a part when it was last saved."""
        found = self._chains(part)
        return [
            found[chain][-1].block.entry.scans if chain in found else 0 for chain in range(chains)
        ]

    def draws(
        self,
        part: int = 0,
        burn_in: int = 0,
        stop: int | None = None,
    ) -> StoredDraws:
        """Draws ``burn_in:stop`` of every chain of a part; they stay on disk.

        Parameters
        ----------
        part
            Which part of the run.
        burn_in, stop
            Counted in stored draws. Every chain must have ``stop`` draws. Without it there are as
            many as the shortest chain has. Draws that are saved later are not seen.

        Returns
        -------
        StoredDraws
            Behind the ``Draws`` protocol.
        """
        with self._lock:
            several = any(self._blocks)
        place = f"{self.root}: part {part}" if several else str(self.root)
        found = self._chains(part)
        chains = None if self._bounds is None else self._bounds.chains
        _check_complete(place, found, stop, chains)
        return StoredDraws(found, partial(self._chains, part), place, burn_in, stop)

    def _chains(self, part: int) -> dict[int, list[Span]]:
        """The chains of a part that have saved draws, by number."""
        self.refresh()
        with self._lock:
            chains = self._blocks.get(part, {})
            found = {chain: replay(chains[chain]) for chain in sorted(chains)}
        return {chain: spans for chain, spans in found.items() if spans}

    def _read_shard(self, path: Path) -> Shard | None:
        """A shard; None if it is gone."""
        try:
            groups = read_groups(self.folder, STORE, path.name)
            for entry in itertools.chain(*groups):
                reason = self._bounds.refusal(entry) if self._bounds is not None else ""
                if reason:
                    raise RunFolderError(f"{path}: does not belong to this run: {reason}")
        except RunFolderError as error:
            if not path.exists() and not path.is_symlink():
                return None
            raise RunFolderError(f"{error}; {drawn_again(path)}") from None
        return Shard(path, groups, self._unpacked)

    def _register(self, shard: Shard) -> None:
        known = self._shards.get(shard.path.name)
        if known is not None:  # another thread has seen it on the disk before
            self._forget(known)
        self._shards[shard.path.name] = shard
        self._number = max(self._number, _number(shard) + 1)
        for block in shard.blocks:
            self._list_of(block).append(block)

    def _forget(self, shard: Shard) -> None:
        self._shards.pop(shard.path.name, None)
        for gone in shard.blocks:
            entry = gone.entry
            chains = self._blocks[entry.part]
            chains[entry.chain] = [
                block
                for block in chains[entry.chain]
                if not (isinstance(block, StoredBlock) and block.shard is shard)
            ]

    def _list_of(self, block: KeptBlock) -> list[KeptBlock]:
        chains = self._blocks.setdefault(block.entry.part, {})
        return chains.setdefault(block.entry.chain, [])

    # Writing

    def writer(
        self,
        part: int,
        chain: int,
        n: int,
        columns: Columns,
        *,
        share: bool = False,
        claim: Claim | None = None,
    ) -> ChainWriter:
        """The writer of a chain with draws of ``n`` items; it has one at a time.

        With ``share`` its blocks wait for those of other chains: what is saved is safe after
        ``flush`` only. For runs of many small parts. ``claim`` is that of a task which has this
        chain alone.
        """
        return ChainWriter(self, part, chain, n, columns, share=share, claim=claim or self.claim)

    def flush(self) -> None:
        """Write all blocks that wait."""
        with self._writing:
            with self._lock:
                blocks = list(self._waiting.values())
            kinds = by_kind(blocks)
            for at in range(0, len(kinds), MOST_GROUPS):
                groups = kinds[at : at + MOST_GROUPS]
                with write_errors(self.root, f"What was saved before is safe; {RESUME}"):
                    shard = write_shard(
                        self.root, self._next_number(), groups, self._unpacked, self.claim
                    )
                with self._lock:
                    written = [block for group in groups for block in group]
                    for block in written:
                        self._let_go(block)
                    self._register(shard)
                    for block in written:
                        self._drop_superseded(block, self.claim)
            self._last_flush = time.monotonic()

    def take(self, part: int) -> list[MemoryBlock]:
        """Hand out the blocks of a part that wait, for ``add`` of another process's store."""
        with self._lock:
            blocks = [block for block in self._waiting.values() if block.entry.part == part]
            for block in blocks:
                self._let_go(block)
        return blocks

    def add(self, blocks: Sequence[MemoryBlock]) -> None:
        """Let blocks wait; writes them if there is enough for a shard or it is time."""
        with self._lock:
            for block in blocks:
                self._waiting[id(block)] = block
                self._waiting_bytes += block.nbytes
                self._list_of(block).append(block)
                self._drop_superseded(block, self.claim)
            enough = self._waiting_bytes >= SHARD_BYTES
            late = time.monotonic() - self._last_flush > self._seconds
        if not self._hold and (enough or late):
            self.flush()

    def write(self, block: MemoryBlock, claim: Claim | None = None) -> None:
        """Give a block a shard of its own."""
        claim = claim or self.claim
        shard = write_shard(self.root, self._next_number(), [[block]], self._unpacked, claim)
        with self._lock:
            self._register(shard)
            if block.entry.saved:
                self._drop_superseded(block, claim)

    def is_shared(self, block: MemoryBlock) -> bool:
        """Whether a block that waited was written with others, or taken: it stays as it is then."""
        with self._lock:
            if id(block) in self._waiting:
                return False
            return not any(
                isinstance(other, StoredBlock)
                and other.entry.turn == block.entry.turn
                and not other.shard.is_shared
                for other in self._list_of(block)
            )

    def next_turn(self, part: int, chain: int) -> int:
        """The turn of the next block of a chain."""
        with self._lock:
            blocks = self._blocks.get(part, {}).get(chain, [])
            return 1 + max((block.entry.turn for block in blocks), default=-1)

    def spans(self, part: int, chain: int) -> list[Span]:
        """What a chain has drawn up to its last save."""
        return self._chains(part).get(chain, [])

    def _let_go(self, block: MemoryBlock) -> None:
        if self._waiting.pop(id(block), None) is not None:
            self._waiting_bytes -= block.nbytes
        listed = self._list_of(block)
        listed[:] = [other for other in listed if other is not block]

    def _drop_superseded(self, new: KeptBlock, claim: Claim) -> None:
        """Remove the blocks of a chain in whose place others are.

        Those on disk give way only to others on disk. Those that share a shard with other chains'
        stay there: they are small.
        """
        blocks = self._list_of(new)
        stored = [block for block in blocks if isinstance(block, StoredBlock)]
        for block in _superseded(blocks):
            if isinstance(block, MemoryBlock):
                self._let_go(block)
        for block in _superseded(stored):
            if isinstance(block, StoredBlock) and not block.shard.is_shared:
                block.shard.remove(claim)
                self._forget(block.shard)

    def _next_number(self) -> int:
        with self._lock:
            self._number += 1
            return self._number - 1


def anything_drawn(run_folder: Path) -> bool:
    """Whether a run folder has a shard, or may have one: what cannot be read is not nothing."""
    try:
        with opened(run_folder, STORE) as place:
            return any(name.startswith(PREFIX) for name in place.names())
    except FileNotFoundError:
        return False
    except OSError:
        return True


def _superseded(blocks: Sequence[KeptBlock]) -> list[KeptBlock]:
    """The blocks of a chain that are older than its last save and count for nothing."""
    spans = replay(blocks)
    if not spans:
        return []
    used = {id(span.block) for span in spans if span.stop > span.start or span is spans[-1]}
    turn = spans[-1].block.entry.turn
    return [block for block in blocks if id(block) not in used and block.entry.turn < turn]


def _number(shard: Shard) -> int:
    digits = shard.path.name.removeprefix(PREFIX).split("-")[0]
    return int(digits) if digits.isdecimal() else 0


def _check_complete(
    place: str, found: dict[int, list[Span]], stop: int | None, chains: int | None
) -> None:
    """RunFolderError unless all chains are there, and as long as they must be."""
    if chains is not None and found and len(found) != chains:
        raise RunFolderError(
            f"{place}: {len(found)} chains have draws, {chains} were expected; `dfcrp resume` "
            "draws what is missing"
        )
    for chain, spans in found.items():
        if stop is not None and spans[-1].stop < stop:
            raise RunFolderError(
                f"{place}: {stop} draws of chain {chain} were expected, there are "
                f"{spans[-1].stop}; `dfcrp resume` draws what is missing"
            )


class MemoryStore:
    """Draws of a run that leaves no files; answers like a ``DrawStore``."""

    resumable = False

    def __init__(self) -> None:
        #: Whether chains are left and taken up again.
        self.keep_states = False
        self._lock = threading.Lock()
        self._writers: dict[int, dict[int, MemoryWriter]] = {}

    def __getstate__(self) -> Json:
        return {"_writers": self._writers}

    def let_go(self) -> None:
        """Forget the states of the chains: the run is at its end."""
        for chains in self._writers.values():
            for writer in chains.values():
                writer.let_go()

    def __setstate__(self, state: Json) -> None:
        self.__init__()  # type: ignore[misc]
        vars(self).update(state)

    def writer(
        self,
        part: int,
        chain: int,
        n: int,
        columns: Columns,
        *,
        share: bool = False,
        claim: Claim | None = None,
    ) -> MemoryWriter:
        """The writer of a chain."""
        with self._lock:
            chains = self._writers.setdefault(part, {})
            if chain not in chains:
                chains[chain] = MemoryWriter(part, chain, n, columns, keep_state=self.keep_states)
            return chains[chain]

    def flush(self) -> None:
        """Nothing to do in memory."""

    def parts(self) -> tuple[int, ...]:
        """The parts of which there are draws."""
        return tuple(part for part in sorted(self._writers) if self.begun(part))

    def begun(self, part: int) -> bool:
        """Whether there are draws of a part."""
        return bool(self._chains(part))

    def scans(self, part: int, chains: int) -> list[int]:
        """Scans behind each chain of a part when it was last saved."""
        writers = self._writers.get(part, {})
        return [writers[chain].scans if chain in writers else 0 for chain in range(chains)]

    def draws(self, part: int = 0, burn_in: int = 0, stop: int | None = None) -> StoredDraws:
        """Draws ``burn_in:stop`` of every chain of a part, as ``DrawStore.draws`` has them."""
        found = self._chains(part)
        place = f"part {part}"
        _check_complete(place, found, stop, None)
        return StoredDraws(found, found.copy, place, burn_in, stop)

    def _chains(self, part: int) -> dict[int, list[Span]]:
        writers = self._writers.get(part, {})
        blocks = {chain: writers[chain].block() for chain in sorted(writers)}
        return {
            chain: [Span(block, 0, block.entry.draws)]
            for chain, block in blocks.items()
            if block.entry.draws
        }

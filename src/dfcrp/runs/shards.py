"""Shards: files of draws that are written once, as a whole, and never changed.

A *block* is a number of consecutive draws of one chain of one part of a run, and if the chain was
saved after the last of them, its state there. A *shard*, ``draws.zarr/shard-....zip``, is a zip
file with an ordinary Zarr group (``dfcrp.runs.zarr_zip``) of one block or several:

================== ======= ============================================================
array              dtype   axes
================== ======= ============================================================
labels             int32   item, draw: from draw to draw an item's label is mostly the
                           same, so it packs well, and an item's is one row
alpha, n_clusters  float64 chain, draw
                   int32
each shared one    float64 chain, draw, and its own (``Columns.shared``)
cluster_labels     int32   cluster: the rows of all draws, draw by draw, sorted by label
each parameter     float32 cluster
state/...          any     the arrays of a checkpoint, as ``Chain.snapshot`` has them
================== ======= ============================================================

Blocks that have as many draws and arrays of the same form share a group: each has its rows, one
block after the other, along the first axis of every array. So the items of small images lie side by
side. Where there are other blocks too the arrays are in groups of the group: ``0``, ``1`` and so
on. The attributes of a group with arrays, its *index*, say what each block is.

Reading trusts the index after it was checked, and nothing else that the files say of themselves.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import re
import threading
import uuid
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dfcrp.draws import Chosen, Columns, every
from dfcrp.errors import RunFolderError
from dfcrp.files import Folder, LinkError, opened, put_on_disk
from dfcrp.runs.blocks import IndexEntry, KeptBlock, MemoryBlock
from dfcrp.runs.lock import Claim
from dfcrp.runs.zarr_zip import (
    LARGEST_META,
    META,
    DamagedError,
    Form,
    Members,
    ZarrReader,
    ZarrWriter,
    group_text,
)
from dfcrp.values import Array, Json

#: To be raised when older code could not read what newer code writes, or reads it otherwise: also
#: when arrays are cut or packed in another way.
FORMAT = 4
PREFIX, SUFFIX = "shard-", ".zip"
STATE = "state/"
#: In a shard.
MOST_GROUPS = 100
#: Names of arrays and axes that no quantity of a likelihood or prior can have in a group.
_OWN_NAMES = ("labels", "alpha", "n_clusters", "cluster_labels", "state", META)
_OWN_AXES = ("item", "chain", "draw", "cluster")


class ShardGone(Exception):
    """A shard was taken away: another has taken its place."""


class DamagedFile(Exception):
    """A file from which what the index names cannot be had."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"{path}: {reason}")


class Unpacked:
    """The arrays that were unpacked last, up to a number of bytes; used from many threads.

    Also the lists of what is in shards. Summaries go through the draws in steps that are shorter
    than a block, and through images in about the order in which they lie in a shard.
    """

    def __init__(self, most_bytes: int) -> None:
        self.most_bytes = most_bytes
        self._lock = threading.Lock()
        self._arrays: OrderedDict[tuple[str, str], Array | Members] = OrderedDict()

    def get(self, key: tuple[str, str]) -> Any:
        """An array, if it is still there."""
        with self._lock:
            if key in self._arrays:
                self._arrays.move_to_end(key)
            return self._arrays.get(key)

    def put(self, key: tuple[str, str], array: Array | Members) -> None:
        """Keep an array instead of those that were used least lately."""
        with self._lock:
            self._arrays[key] = array
            while len(self._arrays) > 1 and self._bytes() > self.most_bytes:
                self._arrays.popitem(last=False)

    def _bytes(self) -> int:
        return sum(array.nbytes for array in self._arrays.values())


# What arrays a group has


class Names(NamedTuple):
    """What the arrays of quantities are called in a group."""

    parameters: tuple[str, ...]
    shared: tuple[str, ...]

    @classmethod
    def of(cls, columns: Columns) -> Names:
        """The quantities' own names, where these can be names of arrays and are free."""
        taken = {*_OWN_NAMES, *_OWN_AXES, *columns.coords}
        wanted = [*columns.parameters, *(variable.name for variable in columns.shared)]
        found = []
        for name in wanted:
            free = re.sub(r"[^\w.() -]", "_", name)
            if not re.match(r"[^\W_]", free):
                free = f"quantity {free}"
            while free in taken:
                free += "_"
            taken.add(free)
            found.append(free)
        at = len(columns.parameters)
        return cls(tuple(found[:at]), tuple(found[at:]))


def arrays_of(entry: IndexEntry) -> dict[str, tuple[Form, int]]:
    """The arrays that a group with a block has, and the rows that the block has in each."""
    columns, draws = entry.columns, entry.draws
    names = Names.of(columns)
    per_draw, per_row = ("chain", "draw"), Form("float32", (), ("cluster",))
    found = {
        "labels": (Form("int32", (draws,), ("item", "draw")), entry.n),
        "alpha": (Form("float64", (draws,), per_draw), 1),
        "n_clusters": (Form("int32", (draws,), per_draw), 1),
        "cluster_labels": (Form("int32", (), ("cluster",)), entry.rows),
        **dict.fromkeys(names.parameters, (per_row, entry.rows)),
    }
    for name, variable in zip(names.shared, columns.shared, strict=True):
        shape = (draws, *columns.shape(variable))
        found[name] = Form("float64", shape, (*per_draw, *variable.dims)), 1
    for name, kind, shape in entry.state:
        axes = tuple(f"{name}_{axis}" for axis in range(len(shape)))
        found[STATE + name] = Form(np.dtype(kind).name, shape[1:], axes), shape[0]
    return found


def _contents(block: MemoryBlock) -> dict[str, Array]:
    """What a block puts into each array."""
    columns, draws = block.entry.columns, block.draws
    names = Names.of(columns)
    found = {name: block.read(name) for name in ("alpha", "n_clusters", "cluster_labels")}
    found |= {"labels": draws.labels.T}
    found |= dict(zip(names.parameters, draws.parameters.T, strict=True))
    for name, variable in zip(names.shared, columns.shared, strict=True):
        shape = columns.shape(variable)
        found[name] = draws.shared[:, columns.slices[variable.name]].reshape(-1, *shape)
    for name in ("alpha", "n_clusters", *names.shared):
        found[name] = found[name][np.newaxis]
    return found | {STATE + name: array for name, array in block.state().items()}


# Reading


#: The blocks of each group.
Groups = Sequence[Sequence[IndexEntry]]


class Shard:
    """A shard, for reading; used from many threads."""

    def __init__(self, path: Path, groups: Groups, unpacked: Unpacked) -> None:
        self.path = path
        self._groups = groups
        self._unpacked = unpacked

    @property
    def blocks(self) -> list[StoredBlock]:
        """The blocks, in order."""
        return [
            StoredBlock(entry, self, group, at)
            for group, entries in enumerate(self._groups)
            for at, entry in enumerate(entries)
        ]

    @property
    def is_shared(self) -> bool:
        """Whether there are blocks of several chains."""
        return sum(map(len, self._groups)) > 1

    def remove(self, claim: Claim) -> None:
        """Take the shard away, at once for whoever reads the store."""
        name, store = self.path.name, self.path.parent
        with (
            contextlib.suppress(OSError),  # it only costs space
            claim.desk() as desk,
            opened(store.parent, store.name) as place,
        ):
            place.move(name, desk, name)
            desk.remove(name)

    @cached_property
    def _arrays(self) -> list[dict[str, tuple[Form, list[int]]]]:
        """The arrays of each group, where each block begins in them, and where the last ends."""
        return [_ends(entries) for entries in self._groups]

    def read(self, block: StoredBlock, name: str) -> Array:
        """All that a block has in an array."""
        form, ends = self._arrays[block.group][name]
        start, stop = ends[block.at], ends[block.at + 1]
        if ends[-1] * form.row_bytes > self._unpacked.most_bytes:
            return self._unpack(block, name, start, stop)
        key = (self.path.name, self._path(block) + name)
        array: Array | None = self._unpacked.get(key)
        if array is None:
            array = self._unpack(block, name, 0, ends[-1])
            self._unpacked.put(key, array)
        return array[start:stop]

    def read_row(self, block: StoredBlock, name: str, row: int) -> Array:
        """One of the rows that a block has in an array, without unpacking the others."""
        form, ends = self._arrays[block.group][name]
        known = self._unpacked.get((self.path.name, self._path(block) + name)) is not None
        if known or form.chunk_rows(ends[-1]) == ends[-1]:
            found: Array = self.read(block, name)[row]
            return found
        start = ends[block.at] + row
        return self._unpack(block, name, start, start + 1)[0]

    def _unpack(self, block: StoredBlock, name: str, start: int, stop: int) -> Array:
        form, ends = self._arrays[block.group][name]
        store, key = self.path.parent, (self.path.name, "")
        known = self._unpacked.get(key)
        with _reading(store.parent, store.name, self.path.name, members=known) as reader:
            if known is None:
                self._unpacked.put(key, reader.members)
            return reader.array(self._path(block) + name, form, ends[-1], start, stop)

    def _path(self, block: StoredBlock) -> str:
        return path_of(block.group, len(self._groups))


def path_of(group: int, groups: int) -> str:
    """Where a group lies in a shard of so many."""
    return f"{group}/" if groups > 1 else ""


def _ends(entries: Sequence[IndexEntry]) -> dict[str, tuple[Form, list[int]]]:
    each = [arrays_of(entry) for entry in entries]
    return {
        name: (form, list(itertools.accumulate((one[name][1] for one in each), initial=0)))
        for name, (form, _) in each[0].items()
    }


@contextmanager
def _reading(run_folder: Path, *below: str, members: Members | None = None) -> Iterator[ZarrReader]:
    """A shard that is open; ShardGone or DamagedFile if what is asked for cannot be had."""
    path = run_folder.joinpath(*below)
    try:
        with opened(run_folder, *below[:-1]) as place, place.reading(below[-1]) as file:
            yield ZarrReader(file, members)
    except DamagedError as error:
        raise DamagedFile(path, str(error)) from error
    except LinkError as error:
        raise DamagedFile(Path(error.filename), str(error.strerror)) from None
    except FileNotFoundError:
        raise ShardGone(path) from None
    except OSError as error:
        raise DamagedFile(path, f"not readable ({error.strerror})") from error


@dataclass(frozen=True, eq=False)
class StoredBlock:
    """A block of a shard; it stays on disk."""

    entry: IndexEntry
    shard: Shard
    #: Which group it is in, and which block of it.
    group: int
    at: int

    def labels(self) -> NDArray[np.int32]:
        """Labels of all items, (draw, item)."""
        return self.shard.read(self, "labels").T

    def read(self, name: str) -> Array:
        """``alpha`` or ``n_clusters`` of each draw, or ``cluster_labels`` of each row."""
        found = self.shard.read(self, name)
        return found if name == "cluster_labels" else found[0]

    def parameters(self, rows: slice) -> NDArray[np.float32]:
        """Parameters of some rows, (row, parameter)."""
        names = Names.of(self.entry.columns).parameters
        found = [self.shard.read(self, name)[rows] for name in names]
        nothing = np.zeros((len(range(self.entry.rows)[rows]), 0), np.float32)
        return np.stack(found, axis=1) if found else nothing

    def shared(self, chosen: Chosen = None) -> NDArray[np.float64]:
        """What clusters share, or some of it, (draw, number); no other variable is read."""
        columns = self.entry.columns
        wanted = np.arange(columns.width)[every(chosen)]
        found = np.empty((self.entry.draws, len(wanted)))
        ranges = columns.slices.values()
        for name, own in zip(Names.of(columns).shared, ranges, strict=True):
            here = (wanted >= own.start) & (wanted < own.stop)
            if here.any():
                values = self.shard.read(self, name)[0].reshape(len(found), own.stop - own.start)
                found[:, here] = values[:, wanted[here] - own.start]
        return found

    def history(self, marking: int) -> NDArray[np.int32]:
        """One marking's labels."""
        return self.shard.read_row(self, "labels", marking)

    def state(self) -> dict[str, Array]:
        """The arrays of the state."""
        return {
            name: self.shard.read(self, STATE + name).astype(kind, copy=False)
            for name, kind, _ in self.entry.state
        }


def place_of(block: KeptBlock, root: Path) -> Path:
    """The shard that a block is in, or ``root`` if it is in memory."""
    return block.shard.path if isinstance(block, StoredBlock) else root


def drawn_again(path: Path) -> str:
    """In words, what to do about a shard that is damaged."""
    return f"delete {path} and `dfcrp resume` the run: what it held is drawn again"


# Writing


def write_shard(
    store: Path,
    number: int,
    groups: Sequence[Sequence[MemoryBlock]],
    unpacked: Unpacked,
    claim: Claim,
) -> Shard:
    """Write blocks as a shard, in groups ``by_kind``; when this returns they are on the disk.

    ``number`` is for the reader of file names; no two writers give a shard the same name. It is
    made in the folder of the claim: if another has taken over, it does not get into the store.
    """
    name = f"{PREFIX}{number:06d}-{uuid.uuid4().hex[:8]}{SUFFIX}"
    with claim.desk() as desk, opened(store.parent, store.name) as place:
        try:
            with desk.writing(name) as file:
                with ZarrWriter(file) as writer:
                    _write_groups(writer, groups)
                put_on_disk(file)
            desk.move(name, place, name)
        except BaseException:
            with contextlib.suppress(OSError):
                desk.remove(name)
            raise
        place.sync()
    return Shard(store / name, [[block.entry for block in blocks] for blocks in groups], unpacked)


def by_kind(blocks: Sequence[MemoryBlock]) -> list[list[MemoryBlock]]:
    """The same blocks, those together that can share a group."""
    found: dict[Any, list[MemoryBlock]] = {}
    for block in blocks:
        forms = tuple((name, form) for name, (form, _) in arrays_of(block.entry).items())
        found.setdefault((json.dumps(block.entry.columns.as_json()), forms), []).append(block)
    return list(found.values())


def _write_groups(writer: ZarrWriter, groups: Sequence[Sequence[MemoryBlock]]) -> None:
    if len(groups) > 1:
        writer.group("", {"dfcrp_draws_format": FORMAT, "groups": len(groups)})
    for number, blocks in enumerate(groups):
        path = path_of(number, len(groups))
        entries = [block.entry for block in blocks]
        writer.group(path, as_attributes(entries))
        if entries[0].state:
            writer.group(path + STATE, {})
        contents = [_contents(block) for block in blocks]
        for name, (form, _) in arrays_of(entries[0]).items():
            pieces = [content[name] for content in contents]
            writer.array(path + name, form, sum(map(len, pieces)), pieces)


# The index

_FIELDS = tuple(name for name in IndexEntry._fields if name not in ("columns", "state"))


def as_attributes(entries: Sequence[IndexEntry]) -> Json:
    """The index of a group with these blocks."""
    first = entries[0]
    return {
        "dfcrp_draws_format": FORMAT,
        "blocks": {name: [getattr(entry, name) for entry in entries] for name in _FIELDS},
        "columns": first.columns.as_json(),
        "state": {
            name: {
                "dtype": kind,
                "row": list(shape[1:]),
                "rows": [entry.state[at][2][0] for entry in entries],
            }
            for at, (name, kind, shape) in enumerate(first.state)
        },
    }


def entries_of(attributes: Json) -> tuple[IndexEntry, ...]:
    """The blocks of an index; ValueError and others if it is none."""
    columns, said = Columns.from_json(attributes["columns"]), attributes["blocks"]
    arrays = dict(attributes["state"]).items()
    rows = zip(*(said[name] for name in _FIELDS), strict=True)
    entries = []
    for at, values in enumerate(rows):
        state = tuple(
            (name, str(one["dtype"]), (one["rows"][at], *one["row"])) for name, one in arrays
        )
        fields = dict(zip(_FIELDS, values, strict=True))
        entries.append(IndexEntry(**fields, columns=columns, state=state))
    if (
        not entries
        or said.keys() != set(_FIELDS)
        or len({entry.draws for entry in entries}) > 1
        or not all(entry.sensible() for entry in entries)
    ):
        raise ValueError("not what dfcrp writes")
    return tuple(entries)


def read_groups(run_folder: Path, *below: str) -> list[tuple[IndexEntry, ...]]:
    """The blocks of each group of a shard; RunFolderError if its index cannot be had."""
    path = run_folder.joinpath(*below)
    try:
        with _reading(run_folder, *below) as reader:
            root = reader.attributes()
            _check_format(path, root.get("dfcrp_draws_format"))
            number = root.get("groups", 1)
            if type(number) is not int or not 1 <= number <= MOST_GROUPS:
                raise DamagedError("damaged, its index is not one that dfcrp writes")
            return [_entries(reader.attributes(path_of(at, number))) for at in range(number)]
    except ShardGone:
        raise RunFolderError(f"{path}: missing") from None
    except DamagedFile as error:
        raise RunFolderError(str(error)) from None


def _entries(attributes: Json) -> tuple[IndexEntry, ...]:
    try:
        return entries_of(attributes)
    except (LookupError, TypeError, ValueError, AttributeError, OverflowError):
        raise DamagedError("damaged, its index is not one that dfcrp writes") from None


# What the store says of itself


def write_about(folder: Folder, attributes: Json) -> None:
    """Write the attributes of a whole store."""
    with folder.replacing(META) as file:
        file.write(group_text(attributes))


def read_about(run_folder: Path, store: str) -> Json:
    """The attributes of a whole store; RunFolderError if they cannot be had."""
    path = run_folder / store / META
    try:
        with opened(run_folder, store) as place:
            attributes = json.loads(place.read(META, LARGEST_META))["attributes"]
    except FileNotFoundError:
        raise RunFolderError(f"{path}: missing") from None
    except OSError as error:  # also of a link, or of one that is too large
        raise RunFolderError(f"{error.filename or path}: {error.strerror}") from None
    except (ValueError, KeyError, TypeError, RecursionError):
        attributes = None
    if not isinstance(attributes, dict) or "dfcrp_draws_format" not in attributes:
        raise RunFolderError(f"{path}: damaged, not the JSON that dfcrp wrote")
    _check_format(path, attributes["dfcrp_draws_format"])
    return attributes


def _check_format(path: Path, written: object) -> None:
    """RunFolderError if draws were written in a form that is not read here."""
    if written != FORMAT:
        raise RunFolderError(
            f"{path}: draws of format {written!r}, this version of dfcrp reads format {FORMAT}; "
            "use the version that wrote them (see provenance.json in the run folder), or draw "
            "again: `dfcrp fit` the run's markings.csv with --config and its config.toml"
        )

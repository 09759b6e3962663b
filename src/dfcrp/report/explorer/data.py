"""The explorer's data: where things lie, what describes them, and every distinct cluster, packed.

From draw to draw most clusters stay as they are. A *group* is a set of items that was a cluster
in some draw; it comes with the runs of consecutive draws in which it was one. Nothing about the
partitions is lost: counts, shares and Jaccard coefficients follow exactly, for any region.
"""

from __future__ import annotations

import base64
import hashlib
import json
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dfcrp.draws import ClusterBlock, Draws
from dfcrp.likelihoods.base import Likelihood
from dfcrp.plots.flat import FlatMap, flat_catalogue, flat_map_or_none, name_of, quantities_of
from dfcrp.posterior.posterior import Posterior
from dfcrp.report.contents import ABOUT, Contents
from dfcrp.summaries.catalogue import Centre
from dfcrp.summaries.consensus import parameter_columns
from dfcrp.summaries.streaming import kept, label_blocks, stride_for
from dfcrp.values import Array, Json

if TYPE_CHECKING:
    import pandas

#: JavaScript's typed arrays by NumPy's type.
TYPES = {"uint8": "Uint8", "uint16": "Uint16", "uint32": "Uint32", "float32": "Float32"}
TYPES["float64"] = "Float64"
#: Every array begins at a multiple of this many bytes, as typed arrays must.
ALIGNMENT = 8
#: More bytes than this are compressed.
LARGE = 4_000_000
#: Pages of more items have numbers without digits that nobody sees: they compress to half.
MANY = 200_000


@dataclass
class Packer:
    """Arrays put one after the other, with a table of where each is."""

    content: bytearray = field(default_factory=bytearray)
    #: Name to [type, first byte, length]; arrays with the same content lie there once.
    table: dict[str, tuple[str, int, int]] = field(default_factory=dict)
    known: dict[tuple[str, bytes], tuple[str, int, int]] = field(default_factory=dict)
    #: Whether numbers may lose what nobody sees.
    rough: bool = False

    def floats(
        self,
        name: str,
        values: object,
        kind: str = "float32",
        *,
        step: float | None = None,
        bits: int | None = None,
    ) -> None:
        """Real numbers, in single precision unless told.

        Rough ones are rounded to a power of two below ``step``, or to so many significant bits.
        """
        numbers = np.asarray(values, np.float64)
        if self.rough and step is not None:
            unit = 2.0 ** np.floor(np.log2(step))
            numbers = np.rint(numbers / unit) * unit
        if self.rough and bits is not None:
            share, power = np.frexp(numbers)
            numbers = np.ldexp(np.rint(share * 2.0**bits) / 2.0**bits, power)
        self._add(name, numbers.astype(kind))

    def counts(self, name: str, values: object) -> None:
        """Whole numbers from zero on, in the smallest type that holds the largest."""
        numbers = np.asarray(values)
        largest = int(numbers.max()) if numbers.size else 0
        kind = next(k for k in ("uint8", "uint16", "uint32") if largest <= np.iinfo(k).max)
        self._add(name, numbers.astype(kind))

    def _add(self, name: str, values: Array) -> None:
        little = np.ascontiguousarray(values.ravel(), values.dtype.newbyteorder("<"))
        kind, content = TYPES[values.dtype.name], little.tobytes()
        key = kind, hashlib.sha256(content).digest()
        if key not in self.known:
            self.content += bytes(-len(self.content) % ALIGNMENT)
            self.known[key] = kind, len(self.content), little.size
            self.content += content
        self.table[name] = self.known[key]

    @property
    def compressed(self) -> bool:
        """Whether there is so much that it is worth it."""
        return len(self.content) > LARGE

    def base64(self) -> str:
        """Everything that was packed; compressed where it is much."""
        content = zlib.compress(self._shuffled(), 6) if self.compressed else self.content
        return base64.b64encode(content).decode("ascii")

    def _shuffled(self) -> bytes:
        """The first bytes of all numbers of an array, then the second ones: these are alike."""
        content = np.frombuffer(bytes(self.content), np.uint8).copy()
        for kind, start, length in self.known.values():
            width = np.dtype(kind.lower()).itemsize
            part = content[start : start + width * length]
            part[:] = part.reshape(length, width).T.ravel()
        return content.tobytes()


#: Significant bits of rough sizes: a four-thousandth.
SIZE_BITS = 12


def unseen(digits: int) -> float:
    """A step that is not seen in a number with so many decimals."""
    return 0.1 * 10.0**-digits


def script_json(value: object) -> str:
    """JSON that can stand in a script element: nothing in it ends the element or begins another."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


Floats = NDArray[np.float64]

#: Columns over rows of the grid, about the shape of the map.
GRID_SHAPE = 1.5
#: The share of its place on the grid that an object's cell takes, and of that, its members.
CELL = 0.86
INSIDE = 0.74


@dataclass(frozen=True)
class Places:
    """Items, and objects in the order of the catalogue."""

    items: FlatMap
    objects: FlatMap
    #: Width and height of the objects at the lower and at the upper ends of their 95 % intervals.
    least: tuple[Floats, Floats] | None = None
    most: tuple[Floats, Floats] | None = None
    #: Whether positions mean anything.
    real: bool = True


def find_places(posterior: Posterior, catalogue: pandas.DataFrame) -> Places:
    """Where items and objects lie; on a grid if they have no place."""
    placed = flat_map_or_none(posterior.items)
    if placed is None:
        return _grid(posterior.point_partition().labels, posterior.membership.stability)
    objects = flat_catalogue(posterior, catalogue)
    names = quantities_of(catalogue)
    if objects.shape == "point" or not names:
        return Places(placed, objects)
    ends: list[tuple[Floats, Floats]] = []
    for end in ("lo", "hi"):
        columns = {name: np.asarray(catalogue[f"{name}_{end}"]) for name in names}
        outlines = posterior.likelihood.outlines(columns)
        assert outlines is not None
        ends.append((placed.scale * outlines.width, placed.scale * outlines.height))
    return Places(placed, objects, least=ends[0], most=ends[1])


def _grid(labels: NDArray[np.int32], stability: Floats) -> Places:
    """A cell for each object, the largest first and among equals the surest; members inside."""
    _, code = np.unique(labels, return_inverse=True)
    size = np.bincount(code)
    count = len(size)
    rank = np.empty(count, np.int64)
    rank[np.lexsort((-stability, -size))] = np.arange(count)
    columns = int(np.ceil(np.sqrt(GRID_SHAPE * count)))
    x, y = (rank % columns).astype(np.float64), -(rank // columns).astype(np.float64)
    # The members of an object fill rows of a square, from the upper left.
    order = np.argsort(code, kind="stable")
    starts = np.cumsum(size) - size
    within = np.empty(len(code), np.int64)
    within[order] = np.arange(len(code)) - starts[code[order]]
    side = np.ceil(np.sqrt(size)).astype(np.int64)
    rows = -(-size // side)
    step = CELL * INSIDE / side
    down, across = np.divmod(within, side[code])
    dx = (across - (side[code] - 1) / 2.0) * step[code]
    dy = ((rows[code] - 1) / 2.0 - down) * step[code]
    return Places(
        items=_points(x[code] + dx, y[code] + dy),
        objects=FlatMap(
            x, y, np.full(count, CELL), np.full(count, CELL), np.zeros(count), "box", ("", "")
        ),
        real=False,
    )


def _points(x: Floats, y: Floats) -> FlatMap:
    nothing = np.zeros(len(x))
    return FlatMap(x, y, nothing, nothing, nothing, "point", ("", ""))


_ENDS = ("sd", "lo", "hi")


@dataclass(frozen=True)
class Quantity:
    """A column, as the page is told of it."""

    name: str
    #: A column of text has the codes of its values.
    text: bool
    #: Decimals of a number.
    digits: int | None = None
    #: 0 or 1 for what is the map's x or y.
    axis: int | None = None
    #: Whether it is a length on the ground.
    length: bool = False


class Described:
    """The columns of the catalogue, and of the items those that the map does not show."""

    def __init__(self, contents: Contents, places: Places) -> None:
        self.items, self.catalogue = contents.posterior.items, contents.catalogue
        self.places = places
        self.likelihood: Likelihood = contents.posterior.likelihood
        self.cells: Mapping[str, Any] = self.items.columns
        sizes, centre = self.likelihood.sizes(self.items), self.likelihood.centre(self.items)
        #: The column that holds the sizes, empty if items have none or clusters do not.
        self.size = "" if sizes is None else name_of(sizes, self.cells)
        if centre is None or self.size not in centre.quantities:
            self.size = ""
        self.size_digits = contents.size_digits if self.size else 0
        self.quantities = self._quantities()
        placed = places.items
        shown = placed.axes if places.real and placed.equal else ()
        digits = {quantity.name: quantity.digits for quantity in self.quantities}
        is_text = self.likelihood.text
        self.columns = [
            Quantity(name, is_text, None if is_text else digits.get(name, 3))
            for name in self.cells
            if name not in shown
        ]
        self.texts = self._texts()

    def about(self) -> Json:
        """The columns, and the distinct values of those of text."""
        return {
            "quantities": [asdict(quantity) for quantity in self.quantities],
            "columns": [asdict(column) for column in self.columns],
            "texts": {name: list(values) for name, values in self.texts.items()},
            "size": self._about_size(),
        }

    def pack(self, packer: Packer) -> None:
        """A column of the catalogue as its mean and what follows it, one of items as it is."""
        for k, quantity in enumerate(self.quantities):
            values = self.catalogue[quantity.name].to_numpy()
            if quantity.text:
                packer.counts(f"quantity{k}", self._codes(quantity.name, values))
                continue
            packer.floats(f"quantity{k}", values, "float64", step=unseen(quantity.digits or 0))
            for end in _ENDS:
                # Ends are relative to the mean, so that single precision is enough.
                start = 0.0 if end == "sd" else values
                column = self.catalogue[f"{quantity.name}_{end}"].to_numpy() - start
                packer.floats(f"quantity{k}{end.capitalize()}", column, bits=10)
        for k, column in enumerate(self.columns):
            values = self.cells[column.name]
            if column.text:
                packer.counts(f"column{k}", self._codes(column.name, values))
            else:
                is_size = column.name == self.size
                bits, step = SIZE_BITS if is_size else None, unseen(column.digits or 0)
                packer.floats(f"column{k}", values, bits=bits, step=None if is_size else step)
        if self.size:
            packer.floats("itemSize", self.cells[self.size], bits=SIZE_BITS)

    def _about_size(self) -> Json | None:
        if not self.size:
            return None
        place = [quantity.name for quantity in self.quantities].index(self.size)
        return {"name": self.size, "digits": self.size_digits, "quantity": place}

    def _quantities(self) -> list[Quantity]:
        """What describes an object, in the order of the catalogue."""
        table = self.catalogue
        numbers = quantities_of(table)
        other = {f"{name}_{end}" for name in numbers for end in _ENDS} | {*ABOUT}
        axes = self.places.items.axes if self.places.real else ()
        outlines = self.likelihood.outlines(self.cells)
        lengths: set[str] = set()
        if outlines is not None and outlines.shape != "point":
            lengths = {name_of(side, self.cells) for side in (outlines.width, outlines.height)}
        found = []
        for name in map(str, table):
            if name in other:
                continue
            if name not in numbers:
                found.append(Quantity(name, text=True))
                continue
            axis = axes.index(name) if name in axes else None
            found.append(Quantity(name, False, self._digits(name, axis), axis, name in lengths))
        return found

    def _digits(self, name: str, axis: int | None) -> int:
        """Decimals: of others than places and sizes, two digits of the typical sd."""
        if axis is not None and self.places.items.equal:
            return self.places.items.digits
        if name == self.size:
            return self.size_digits
        spread = self.catalogue[f"{name}_sd"].to_numpy()
        spread = spread[spread > 0.0]
        if not spread.size:
            return 3
        return int(np.clip(1 - np.floor(np.log10(np.median(spread))), 0, 12))

    def _texts(self) -> dict[str, dict[str, int]]:
        """The distinct values of every column of text, and the code of each."""
        found: dict[str, dict[str, int]] = {}
        for column in (*self.quantities, *self.columns):
            if not column.text:
                continue
            values = {str(value) for value in self.catalogue.get(column.name, ())}
            if column in self.columns:
                values |= {str(value) for value in self.cells[column.name]}
            known = found.get(column.name, {})
            found[column.name] = {value: k for k, value in enumerate(sorted(values | {*known}))}
        return found

    def _codes(self, name: str, values: Any) -> list[int]:
        codes = self.texts[name]
        return [codes[str(value)] for value in values]


#: Draws whose partitions are kept, and runs that they may take; beyond, draws are thinned evenly.
MAX_DRAWS = 4_000
MAX_RUNS = 600_000
#: Draws whose cluster parameters are kept, and how many clusters they may hold together.
MAX_SAMPLED = 400
MAX_VALUES = 3_000_000


@dataclass(frozen=True)
class Groups:
    """Distinct clusters of evenly spaced draws; draws are numbered through all chains."""

    n_draws: int
    #: Group g has the members ``members[offsets[g]:offsets[g + 1]]``, ascending.
    members: NDArray[np.int64]
    offsets: NDArray[np.int64]
    #: It was a cluster in draws ``start[r]:stop[r]`` for r in ``run_offsets[g]:run_offsets[g+1]``.
    run_offsets: NDArray[np.int64]
    start: NDArray[np.int64]
    stop: NDArray[np.int64]
    #: Draws whose clusters are described, ascending, and one row for each cluster in them.
    sampled: NDArray[np.int64]
    value_draw: NDArray[np.int64]
    value_group: NDArray[np.int64]
    #: The quantities that describe each, by name, ordered by group, then draw.
    values: dict[str, NDArray[np.float64]]


def distinct_clusters(
    draws: Draws, centre: Centre | None = None, max_runs: int = MAX_RUNS
) -> Groups:
    """Collect the groups of as many draws as ``max_runs`` allows.

    ``centre`` says how a cluster is described; without it none is.
    """
    step = stride_for(draws, MAX_DRAWS)
    while True:
        found = _Collector(draws, centre, step).collect(max_runs)
        if found is not None:
            return found
        step *= 2


#: The clusters of a draw: their names, and a row of parameters for each.
ClusterRows = tuple[NDArray[np.int32], NDArray[np.float64]]


@dataclass
class _Collector:
    """Follows the clusters from draw to draw and notes where one begins or ends."""

    draws: Draws
    centre: Centre | None
    step: int
    members: list[NDArray[np.int64]] = field(default_factory=list)
    #: Group, first draw and end of each run.
    runs: list[tuple[int, int, int]] = field(default_factory=list)

    def collect(self, max_runs: int) -> Groups | None:
        """All groups; None as soon as there are more than ``max_runs`` runs."""
        n = self.draws.n_markings
        # A cluster is told by its name and the sum of its members' random codes: whole numbers
        # of 40 bits, which doubles add up exactly for up to 8,192 members.
        codes = np.random.default_rng(0).integers(1, 2**40, n).astype(np.float64)
        known: dict[tuple[int, float], int] = {}
        before: NDArray[np.float64] = np.zeros(n)
        group = np.full(n, -1, np.int64)
        since = np.zeros(n, np.int64)
        sampled: list[int] = []
        rows: list[tuple[int, NDArray[np.int64], NDArray[np.float64]]] = []
        draw, every = 0, 1
        for draw, (labels, block) in enumerate(self._partitions()):
            now: NDArray[np.float64] = np.bincount(labels, codes, minlength=n).astype(np.float64)
            changed = np.flatnonzero(now != before)
            if draw:
                self.runs += _ended(group, since, changed[before[changed] > 0], draw)
            else:
                every = self._sampled_every(int(np.count_nonzero(now)))
            if len(self.runs) > max_runs:
                return None
            self._begin(labels, changed[now[changed] > 0], now, known, group)
            group[changed[now[changed] == 0]] = -1
            since[changed] = draw
            before = now
            if block is not None and draw % every == 0:
                names, values = block
                sampled.append(draw)
                rows.append((draw, group[names], values))
        self.runs += _ended(group, since, np.flatnonzero(group >= 0), draw + 1)
        return self._groups(draw + 1, np.array(sampled, np.int64), rows)

    def _sampled_every(self, n_clusters: int) -> int:
        n_draws = self.draws.n_chains * -(-self.draws.n_draws // self.step)
        return max(-(-n_draws // max(min(MAX_SAMPLED, MAX_VALUES // n_clusters), 1)), 1)

    def _partitions(self) -> Iterator[tuple[NDArray[np.int32], ClusterRows | None]]:
        """Labels, and the clusters' names and parameters, of every ``step``-th draw."""
        if self.centre is None:
            for _, start, stop, labels in label_blocks(self.draws):
                yield from ((labels[d], None) for d in range(stop - start)[kept(start, self.step)])
            return
        rest = self.centre.rest_in(self.draws)
        columns = parameter_columns(self.draws, (*self.centre.parameters, *rest))
        for chain, start, stop, labels in label_blocks(self.draws):
            block: ClusterBlock = self.draws.clusters(chain, start, stop)
            for d in range(stop - start)[kept(start, self.step)]:
                rows = slice(block.offsets[d], block.offsets[d + 1])
                values = block.parameters[rows][:, columns].astype(np.float64)
                if rest:
                    values[:, : len(rest)] += values[:, -len(rest) :]
                    values = values[:, : -len(rest)]
                yield labels[d], (block.labels[rows], values)

    def _begin(
        self,
        labels: NDArray[np.int32],
        begun: NDArray[np.int64],
        now: NDArray[np.float64],
        known: dict[tuple[int, float], int],
        group: NDArray[np.int64],
    ) -> None:
        """Give every cluster that is new in this draw its group, and make those never seen."""
        fresh = []
        for name, code in zip(begun.tolist(), now[begun].tolist(), strict=True):
            key = (name, code)
            if key not in known:
                known[key] = len(known)
                fresh.append(name)
            group[name] = known[key]
        if fresh:
            is_fresh = np.zeros(len(labels), np.bool_)
            is_fresh[fresh] = True
            held = np.flatnonzero(is_fresh[labels])
            held = held[np.argsort(labels[held], kind="stable")]
            ends = np.searchsorted(labels[held], fresh, side="right")
            self.members += [held[a:b] for a, b in pairwise([0, *ends.tolist()])]

    def _groups(
        self,
        n_draws: int,
        sampled: NDArray[np.int64],
        rows: list[tuple[int, NDArray[np.int64], NDArray[np.float64]]],
    ) -> Groups:
        runs = np.array(sorted(self.runs), np.int64)
        counts = np.bincount(runs[:, 0], minlength=len(self.members))
        nothing = np.empty(0, np.int64)
        value_group = np.concatenate([nothing, *(names for _, names, _ in rows)])
        lengths = [np.full(len(names), draw) for draw, names, _ in rows]
        value_draw = np.concatenate([nothing, *lengths])
        order = np.argsort(value_group, kind="stable")
        return Groups(
            n_draws=n_draws,
            members=np.concatenate(self.members),
            offsets=_offsets(np.array([len(held) for held in self.members])),
            run_offsets=_offsets(counts),
            start=runs[:, 1],
            stop=runs[:, 2],
            sampled=sampled,
            value_draw=value_draw[order],
            value_group=value_group[order],
            values=self._described([values for _, _, values in rows], order),
        )

    def _described(
        self, rows: list[NDArray[np.float64]], order: NDArray[np.int64]
    ) -> dict[str, NDArray[np.float64]]:
        if self.centre is None:
            return {}
        found = self.centre.describe(np.concatenate(rows)[order].T)
        return dict(zip(self.centre.quantities, found, strict=True))


def _ended(
    group: NDArray[np.int64], since: NDArray[np.int64], names: NDArray[np.int64], draw: int
) -> list[tuple[int, int, int]]:
    stop = [draw] * len(names)
    return list(zip(group[names].tolist(), since[names].tolist(), stop, strict=True))


def _offsets(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.concatenate(([0], np.cumsum(counts)))

"""What a finished chain leaves behind: the draws, in memory or on disk, behind one interface.

Labels are canonical: a cluster is named after its smallest member's index, so a label means
the same from draw to draw as long as that member stays, and label switching cannot happen.
"""

from __future__ import annotations

import bisect
import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from dfcrp.values import Json

#: Draws read at a time when a summary streams over a run.
BLOCK = 256


@dataclass(frozen=True)
class ClusterBlock:
    """Cluster parameters of consecutive draws of one chain, ragged.

    Rows ``offsets[d]:offsets[d + 1]`` belong to draw ``d`` of the block, sorted by label.
    """

    offsets: NDArray[np.int64]
    labels: NDArray[np.int32]
    parameters: NDArray[np.float32]


class DrawBlock(NamedTuple):
    """Consecutive draws of one chain: b draws of n markings with r clusters between them."""

    labels: NDArray[np.int32]  # (b, n)
    alpha: NDArray[np.float64]  # (b,)
    offsets: NDArray[np.int64]  # (b + 1,): the clusters of a draw, as in ``ClusterBlock``
    cluster_labels: NDArray[np.int32]  # (r,)
    parameters: NDArray[np.float32]  # (r, q)
    shared: NDArray[np.float64]  # (b, s): what a draw's clusters share


class Variable(NamedTuple):
    """A quantity that every draw has one of: its name, and its axes besides chain and draw."""

    name: str
    dims: tuple[str, ...] = ()
    judged: bool = True  # whether the verdict on a run asks for it
    behind: bool = False  # whether it is a parameter behind the answers, not one of them


#: A run is judged by what it learned of so many experts.
MAX_JUDGED = 25
_NO_COORDS: Mapping[str, tuple[str, ...]] = {}


class Columns(NamedTuple):
    """What is stored with every draw besides labels and α."""

    parameters: tuple[str, ...] = ()  # of a cluster
    shared: tuple[Variable, ...] = ()  # by all clusters of a draw, one after the other
    coords: Mapping[str, tuple[str, ...]] = _NO_COORDS  # labels along each axis

    @classmethod
    def plain(cls, parameters: Sequence[str] = (), shared: Sequence[str] = ()) -> Columns:
        """Columns whose shared quantities are single numbers: what clusters have in common."""
        return cls(tuple(parameters), tuple(Variable(name, behind=True) for name in shared))

    def shape(self, variable: Variable) -> tuple[int, ...]:
        """The lengths of a variable's axes."""
        return tuple(len(self.coords[dim]) for dim in variable.dims)

    @property
    def slices(self) -> dict[str, slice]:
        """Where each shared variable lies in a row of ``Draws.shared``."""
        found, start = {}, 0
        for variable in self.shared:
            stop = start + math.prod(self.shape(variable))
            found[variable.name] = slice(start, stop)
            start = stop
        return found

    @property
    def width(self) -> int:
        """Numbers in a row of ``Draws.shared``."""
        return sum(math.prod(self.shape(variable)) for variable in self.shared)

    @property
    def names(self) -> tuple[str, ...]:
        """A readable name for each number of such a row: ``skill[2, Ann]``."""
        return tuple(self.names_at(range(self.width)))

    def names_at(self, chosen: Sequence[int]) -> list[str]:
        """The names of some of them, at no more cost than theirs: a row may hold millions."""
        return [
            f"{name}[{', '.join(labels)}]" if dims else name
            for (name, dims, *_), labels in self._located(chosen)
        ]

    def named(self, *beginnings: str) -> dict[int, str]:
        """Single numbers whose names begin so, by where they are in a row."""
        places = self.slices
        return {
            places[name].start: name
            for name, dims, *_ in self.shared
            if not dims and name.startswith(beginnings)
        }

    def in_words(self, words: Mapping[str, str], chosen: Sequence[int]) -> dict[str, str]:
        """Some names in plain words; ``words`` of a variable with axes has {} for each of them."""
        found = zip(self.names_at(chosen), self._located(chosen), strict=True)
        return {name: _in_words(words, *number) for name, number in found}

    def _located(self, chosen: Sequence[int]) -> Iterator[tuple[Variable, tuple[str, ...]]]:
        """Of each of these numbers its variable, and its labels along the axes of that."""
        shapes = [self.shape(variable) for variable in self.shared]
        ends = list(itertools.accumulate(math.prod(shape) for shape in shapes))
        for at in chosen:
            number = bisect.bisect_right(ends, at)
            variable, rest = self.shared[number], at - (ends[number - 1] if number else 0)
            labels: list[str] = []
            for dim, length in zip(variable.dims[::-1], shapes[number][::-1], strict=True):
                rest, along = divmod(rest, length)
                labels.append(self.coords[dim][along])
            yield variable, tuple(labels[::-1])

    @property
    def judged(self) -> list[int]:
        """The numbers of a row that a run is judged by; of many experts those of the first."""
        return self.judged_of(behind=False) + self.judged_of(behind=True)

    def judged_of(self, *, behind: bool) -> list[int]:
        """Of these the model parameters, or the answers."""
        found, start = [], 0
        for variable in self.shared:
            shape = self.shape(variable)
            if variable.judged and variable.behind == behind:
                at = np.arange(math.prod(shape)).reshape(shape)
                if "expert" in variable.dims:
                    first = range(min(MAX_JUDGED, len(self.coords["expert"])))
                    at = at.take(first, variable.dims.index("expert"))
                found += (start + at.ravel()).tolist()
            start += math.prod(shape)
        return found

    def joined(self, other: Columns) -> Columns:
        """The shared variables of both, those of ``other`` last."""
        return Columns(
            self.parameters, (*self.shared, *other.shared), {**self.coords, **other.coords}
        )

    def as_json(self) -> Json:
        """Plain lists and dictionaries."""
        return {
            "parameters": list(self.parameters),
            "shared": [[name, list(dims), *said] for name, dims, *said in self.shared],
            "coords": {dim: list(labels) for dim, labels in self.coords.items()},
        }

    @classmethod
    def from_json(cls, fields: Json) -> Columns:
        """What ``as_json`` made; ValueError, KeyError or TypeError if it is something else."""
        columns = cls(
            tuple(fields["parameters"]),
            tuple(Variable(name, tuple(dims), *said) for name, dims, *said in fields["shared"]),
            {dim: tuple(labels) for dim, labels in fields["coords"].items()},
        )
        words = [*columns.parameters, *(variable.name for variable in columns.shared)]
        words += [label for labels in columns.coords.values() for label in labels]
        if not all(type(word) is str for word in words):
            raise ValueError("names must be text")
        _ = columns.width  # every axis must have its labels
        return columns


def _in_words(words: Mapping[str, str], variable: Variable, labels: tuple[str, ...]) -> str:
    """A number of a variable in plain words; axes of features are called without "log_"."""
    name, dims, *_ = variable
    said = words.get(name, name + ", {}" * len(dims))
    called = [
        label.removeprefix("log_") if dim == "axis" else label
        for dim, label in zip(dims, labels, strict=True)
    ]
    return said.format(*called) if dims else said


NO_COLUMNS = Columns()


def shared_variable(draws: Draws, name: str) -> NDArray[np.float64] | None:
    """A shared variable of all draws, (chains, draws, ...); None if there is none of the name."""
    columns = draws.columns
    variable = next((found for found in columns.shared if found.name == name), None)
    if variable is None:
        return None
    values = draws.shared(columns.slices[name])
    return values.reshape(*values.shape[:2], *columns.shape(variable))


#: Bytes of what draws have in common that are read at a time.
SHARED_BYTES = 1 << 27


def shared_at_once(draws: Draws) -> int:
    """How many numbers of all draws are read at a time."""
    return max(SHARED_BYTES // (8 * draws.n_chains * draws.n_draws), 1)


def shared_rows(draws: Draws, chosen: Sequence[tuple[int, int]]) -> NDArray[np.float64]:
    """What some draws, each a chain and a number, have in common: (draws, columns.width)."""
    chain, draw = np.array(chosen, np.int64).reshape(-1, 2).T
    found = np.empty((len(chain), draws.columns.width))
    step = shared_at_once(draws)
    for start in range(0, found.shape[1], step):
        some = slice(start, min(start + step, found.shape[1]))
        found[:, some] = draws.shared(some)[chain, draw]
    return found


def join_blocks(blocks: Sequence[DrawBlock]) -> DrawBlock:
    """Blocks of one chain, one after the other, as one."""
    if len(blocks) == 1:
        return blocks[0]
    counts = np.concatenate([np.diff(block.offsets) for block in blocks])
    return DrawBlock(
        labels=np.concatenate([block.labels for block in blocks]),
        alpha=np.concatenate([block.alpha for block in blocks]),
        offsets=np.concatenate([[0], np.cumsum(counts)]),
        cluster_labels=np.concatenate([block.cluster_labels for block in blocks]),
        parameters=np.concatenate([block.parameters for block in blocks]),
        shared=np.concatenate([block.shared for block in blocks]),
    )


#: Some of the numbers in a row of ``Draws.shared``; None for all.
Chosen = slice | Sequence[int] | None


def every(chosen: Chosen) -> slice | Sequence[int]:
    """The same, with all of them said."""
    return slice(None) if chosen is None else chosen


class Draws(Protocol):
    """Posterior draws after burn-in and thinning; the same number for every chain."""

    n_chains: int
    n_draws: int
    n_markings: int
    columns: Columns

    def labels(self, chain: int, start: int, stop: int) -> NDArray[np.int32]:
        """Labels of draws ``start:stop`` of a chain, shape (stop - start, n_markings)."""
        ...

    def alpha(self) -> NDArray[np.float64]:
        """Concentration, shape (n_chains, n_draws)."""
        ...

    def shared(self, chosen: Chosen = None) -> NDArray[np.float64]:
        """What a draw's clusters share, shape (n_chains, n_draws, columns.width).

        Or of these numbers those that are ``chosen``: all of them may take gigabytes.
        """
        ...

    def clusters(self, chain: int, start: int, stop: int) -> ClusterBlock:
        """Cluster parameters of draws ``start:stop`` of a chain."""
        ...

    def history(self, marking: int) -> NDArray[np.int32]:
        """One marking's labels, shape (n_chains, n_draws)."""
        ...


def blocks(draws: Draws, size: int = BLOCK) -> Iterator[tuple[int, int, int]]:
    """Cover every draw once as (chain, start, stop), in order."""
    for chain in range(draws.n_chains):
        for start in range(0, draws.n_draws, size):
            yield chain, start, min(start + size, draws.n_draws)


class MemoryDraws:
    """Draws held in arrays: for small runs, tests, and label arrays of other programs."""

    def __init__(
        self,
        labels: NDArray[np.int32],
        alpha: NDArray[np.float64],
        clusters: list[ClusterBlock] | None = None,
        columns: Columns = NO_COLUMNS,
        shared: NDArray[np.float64] | None = None,
    ) -> None:
        self._labels = np.asarray(labels, dtype=np.int32)
        self.n_chains, self.n_draws, self.n_markings = self._labels.shape
        self._alpha = np.asarray(alpha, dtype=np.float64).reshape(self.n_chains, self.n_draws)
        shape = (self.n_chains, self.n_draws, columns.width)
        self._shared = np.zeros(shape) if shared is None else shared.reshape(shape)
        self._clusters = clusters
        self.columns = columns

    def labels(self, chain: int, start: int, stop: int) -> NDArray[np.int32]:
        """Labels of draws ``start:stop`` of a chain."""
        return self._labels[chain, start:stop]

    def alpha(self) -> NDArray[np.float64]:
        """Concentration, shape (n_chains, n_draws)."""
        return self._alpha

    def shared(self, chosen: Chosen = None) -> NDArray[np.float64]:
        """What a draw's clusters share, shape (n_chains, n_draws, columns.width), or some of it."""
        return self._shared if chosen is None else self._shared[:, :, chosen]

    def clusters(self, chain: int, start: int, stop: int) -> ClusterBlock:
        """Cluster parameters of draws ``start:stop`` of a chain."""
        if self._clusters is None:
            raise ValueError("these draws carry labels only, no cluster parameters")
        whole = self._clusters[chain]
        first, last = whole.offsets[start], whole.offsets[stop]
        return ClusterBlock(
            offsets=whole.offsets[start : stop + 1] - first,
            labels=whole.labels[first:last],
            parameters=whole.parameters[first:last],
        )

    def history(self, marking: int) -> NDArray[np.int32]:
        """One marking's labels, shape (n_chains, n_draws)."""
        return self._labels[:, :, marking]

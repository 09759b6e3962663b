"""A column of a large table without an object of Python for every row.

Names are kept as codes of the different ones, numbers as floats. Whoever needs the text of a column
of numbers, as for names that are numbers, has it read once more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dfcrp.values import Array


@dataclass(frozen=True, eq=False)
class CodedColumn(Sequence[str]):
    """The cells of a column as text: ``words[codes[row]]`` in each row."""

    codes: NDArray[np.integer[Any]]
    words: list[str]

    def __len__(self) -> int:
        return len(self.codes)

    def __getitem__(self, at: Any) -> Any:
        if isinstance(at, slice):
            return [self.words[code] for code in self.codes[at].tolist()]
        return self.words[self.codes[at]]

    def __iter__(self) -> Iterator[str]:
        return iter(self.each(self.words).tolist())

    def each(self, values: Sequence[object]) -> Array:
        """A value for each of the words, row by row."""
        column = np.empty(len(values), object)
        column[:] = values
        return column[self.codes]


@dataclass(frozen=True, eq=False)
class NumberColumn(Sequence[str]):
    """The cells of a column that are all numbers; ``read`` gives them as text."""

    numbers: NDArray[np.float64]
    read: Callable[[], Sequence[str]]

    def __len__(self) -> int:
        return len(self.numbers)

    def __getitem__(self, at: Any) -> Any:
        return self.read()[at]

    def __iter__(self) -> Iterator[str]:
        return iter(self.read())

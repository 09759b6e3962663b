"""Items described by any numbers: points, boxes, ellipses, or rows of a feature matrix."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dfcrp.errors import InputError, SettingsError
from dfcrp.items.candidates import checked_pairs
from dfcrp.items.markings import Items, encode
from dfcrp.likelihoods.normal.shapes import ANY_FEATURES, SHAPES, Shape, shape_of

#: Columns with a meaning of their own.
RESERVED = ("id", "expert", "image", "truth", "cluster")
#: What a circle has and other items may not have.
OF_CIRCLES = ("x", "y", "diameter")


@dataclass(frozen=True, eq=False, kw_only=True)
class Measurements(Items):
    """Items with the columns of a shape, or with any columns."""

    columns: tuple[str, ...]
    values: NDArray[np.float64]
    likelihood: str
    #: Pairs of items that may share a cluster, as indices (m, 2); None: by distance.
    candidates: NDArray[np.int64] | None = None

    @classmethod
    def from_arrays(
        cls,
        values: ArrayLike,
        families: ArrayLike | None = None,
        *,
        likelihood: str = "diagonal",
        columns: Sequence[str] | None = None,
        id: ArrayLike | None = None,
        truth: ArrayLike | None = None,
        candidates: ArrayLike | None = None,
    ) -> Measurements:
        """Check and copy a matrix with one row per item.

        ``families`` says which source lists the item, as a name or number; no cluster holds two
        items of one source. Without it every item is a source of its own.
        """
        names = _column_names(values, likelihood, columns)
        matrix = _matrix(values, names)
        if likelihood in SHAPES:
            wanted = SHAPES[likelihood].columns
            matrix, names = matrix[:, [names.index(name) for name in wanted]], wanted
        experts, codes = _experts(families, len(matrix))
        shape = shape_of(likelihood, names)
        for name in shape.positive:
            _refuse_rows(matrix[:, names.index(name)] <= 0.0, name, "must be above zero")
        return cls(
            expert=np.array(experts)[codes],
            experts=experts,
            families=codes,
            id=np.array(range(1, len(matrix) + 1) if id is None else id, dtype=np.str_),
            truth=None if truth is None else np.asarray(truth, dtype=np.int64),
            columns=names,
            values=matrix,
            likelihood=likelihood,
            candidates=None if candidates is None else checked_pairs(candidates, len(matrix)),
        )

    @property
    def shape(self) -> Shape:
        """How columns become features."""
        return shape_of(self.likelihood, self.columns)

    @property
    def numbers(self) -> dict[str, NDArray[np.float64]]:
        """What describes the items, by column."""
        return dict(zip(self.columns, self.values.T, strict=True))

    @property
    def features(self) -> NDArray[np.float64]:
        """What the model sees, (n, p), about its mean: stored means keep their digits."""
        raw = self.shape.to_features(self.values)
        return raw - raw.mean(axis=0)

    @property
    def centre(self) -> NDArray[np.float64]:
        """The mean that ``features`` leaves out."""
        mean: NDArray[np.float64] = self.shape.to_features(self.values).mean(axis=0)
        return mean

    def __getattr__(self, name: str) -> Any:
        if name in OF_CIRCLES:
            raise InputError(
                f"this needs circles with x, y and diameter; these items are {self.likelihood} "
                f"with {', '.join(self.columns)}"
            )
        raise AttributeError(name)


def _column_names(values: Any, likelihood: str, columns: Sequence[str] | None) -> tuple[str, ...]:
    """Names as given, or of the frame, or of the shape, or x1, x2, ..."""
    if likelihood not in (*SHAPES, *ANY_FEATURES):
        known = ", ".join((*SHAPES, *ANY_FEATURES))
        raise SettingsError(f"likelihood is {likelihood!r}; for rows of numbers it is {known}")
    own = columns if columns is not None else getattr(values, "columns", None)
    if isinstance(values, Mapping):
        own = list(values)
    width = len(own) if own is not None else _width(values)
    shape = SHAPES.get(likelihood)
    if shape is not None:
        if width != len(shape.columns):
            raise InputError(
                f"{likelihood} have {len(shape.columns)} columns ({', '.join(shape.columns)}), "
                f"not {width}"
            )
        if own is None or set(map(str, own)) != set(shape.columns):
            return shape.columns
    names = tuple(f"x{j + 1}" for j in range(width)) if own is None else tuple(map(str, own))
    for name in names:
        if name in RESERVED or names.count(name) > 1:
            raise InputError(f"a column of features cannot be called {name!r}; rename it")
    return names


def _width(values: Any) -> int:
    array = np.asarray(values)
    if array.ndim != 2 or array.shape[1] == 0:
        raise InputError(
            f"items are a matrix with one row each and at least one column, not {array.shape}"
        )
    return int(array.shape[1])


def _matrix(values: Any, names: tuple[str, ...]) -> NDArray[np.float64]:
    """The numbers as floats; one that is missing or no number is refused by its place."""
    if isinstance(values, Mapping):
        values = np.column_stack([np.asarray(column) for column in values.values()])
    try:
        matrix = np.array(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"the features must be numbers: {error}") from None
    if matrix.ndim != 2 or matrix.shape[1] != len(names):
        raise InputError(f"items are a matrix with one row each, not of shape {matrix.shape}")
    if not len(matrix):
        raise InputError("there are no items")
    for j, name in enumerate(names):
        _refuse_rows(~np.isfinite(matrix[:, j]), name, "must be a finite number; drop or fill it")
    return np.ascontiguousarray(matrix)


def _refuse_rows(bad: NDArray[np.bool_], column: str, rule: str) -> None:
    rows = np.flatnonzero(bad)
    if rows.size:
        more = f" (and {rows.size - 1} more)" if rows.size > 1 else ""
        raise InputError(f"index {rows[0]}, column {column!r}: {rule}{more}")


def _experts(families: Any, n: int) -> tuple[tuple[str, ...], NDArray[np.int64]]:
    if families is None:
        names = [f"{i + 1:0{len(str(n))}d}" for i in range(n)]
        return encode(names)
    raw = np.asarray(families)
    if raw.shape != (n,):
        raise InputError(f"families must be {n} names or numbers, one per item, not {raw.shape}")
    return encode([str(name) for name in raw.tolist()])

"""Items from what users have in Python: a matrix, a table, several tables, a list each."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dfcrp.errors import InputError
from dfcrp.items.columns import frame_columns, quoted_names
from dfcrp.items.items import Items
from dfcrp.likelihoods.registry import likelihood_named
from dfcrp.values import Json


def items_of(
    data: Any,
    experts: ArrayLike | None = None,
    kind: str = "diagonal",
    candidates: Any = None,
) -> Items:
    """One row per item; ``experts`` says whose list each is on, as a name or number."""
    columns = _matrix_columns(data, kind)
    n = len(next(iter(columns.values())))
    if experts is not None:
        raw = np.asarray(experts)
        if raw.shape != (n,):
            raise InputError(
                f"families must be {n} names or numbers, one per item, not {raw.shape}"
            )
        experts = [str(name) for name in raw.tolist()]
    return Items.from_columns(columns, experts, kind=kind, candidates=candidates)


def items_of_tables(data: Any, kind: str, candidates: Any = None) -> Items | None:
    """Items of a frame that says whose list a row is on, or of several frames, a list each.

    None of what is something else.
    """
    if isinstance(data, (str, os.PathLike)):
        raise InputError(
            f"the items are a table, not the name of a file; read it first: "
            f"dfcrp.fit(dfcrp.read_items({str(data)!r}, {kind!r}))"
        )
    named = _frames(data)
    if named:
        return _of_frames(named, kind, candidates)
    likelihood = likelihood_named(kind)
    if not _is_frame(data) or not likelihood.text:
        return None
    described, about, _ = frame_columns(data, likelihood)
    if "expert" not in about:
        return None
    items = Items.from_columns(described, kind=kind, candidates=candidates, **about)
    return items


def _is_frame(data: object) -> bool:
    return isinstance(data, Mapping) or len(getattr(data, "columns", ())) > 0


def _frames(data: object) -> Json:
    """Frames by the names of their lists: of a dict, or of a list numbers."""
    if isinstance(data, Mapping):
        there = data and all(hasattr(one, "columns") for one in data.values())
        return {str(name): one for name, one in data.items()} if there else {}
    if isinstance(data, (list, tuple)) and len(data) and all(map(_is_frame, data)):
        return {f"list {number + 1}": one for number, one in enumerate(data)}
    return {}


def _of_frames(frames: Mapping[str, object], kind: str, candidates: Any) -> Items:
    """One list for each frame; all must have the same columns."""
    likelihood = likelihood_named(kind)
    columns: dict[str, list[Any]] = {}
    experts: list[str] = []
    first = next(iter(frames))
    for name, frame in frames.items():
        choice = {"expert": None}
        described, about, _ = frame_columns(frame, likelihood, choice)
        about.pop("expert", None)
        if columns and set(described) != set(columns):
            raise InputError(
                f"{name}: the columns are {quoted_names(list(described))}, but of {first} they are "
                f"{quoted_names(list(columns))}; rename them, or leave some out, so that all "
                "are the same"
            )
        for title, values in described.items():
            columns.setdefault(title, []).extend(list(values))
        experts += [name] * len(next(iter(described.values())))
    return Items.from_columns(columns, experts, kind=kind, candidates=candidates)


def _matrix_columns(data: Any, kind: str) -> Json:
    """Columns by their own names; of a matrix by those of the kind, or x1, x2, ..."""
    names = list(data) if isinstance(data, Mapping) else list(getattr(data, "columns", ()))
    wanted = likelihood_named(kind).columns
    if names:
        found = {str(name): data[name] for name in names}
        if wanted is None or set(found) == set(wanted) or len(found) != len(wanted):
            return (
                {name: found[name] for name in wanted if name in found}
                if (wanted is not None and set(found) == set(wanted))
                else found
            )
        return dict(zip(wanted, found.values(), strict=True))
    matrix = np.asarray(data)
    if matrix.ndim != 2 or matrix.shape[1] == 0:
        raise InputError(
            f"items are a matrix with one row each and at least one column, not {matrix.shape}"
        )
    if wanted is not None and len(wanted) != matrix.shape[1]:
        raise InputError(
            f"{kind} have {len(wanted)} columns ({', '.join(wanted)}), not {matrix.shape[1]}"
        )
    titles = wanted or tuple(f"x{j + 1}" for j in range(matrix.shape[1]))
    return dict(zip(titles, matrix.T, strict=True))

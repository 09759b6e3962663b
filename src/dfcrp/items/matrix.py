"""Items from a matrix, a data frame or a dict of columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from dfcrp.errors import InputError
from dfcrp.items.items import Items
from dfcrp.likelihoods.registry import likelihood_named


def items_of(
    data: Any,
    experts: Any = None,
    kind: str = "diagonal",
    candidates: Any = None,
) -> Items:
    """One row per item; ``experts`` says whose list each is on, as a name or number."""
    columns = _columns(data, kind)
    n = len(next(iter(columns.values())))
    if experts is not None:
        raw = np.asarray(experts)
        if raw.shape != (n,):
            raise InputError(
                f"families must be {n} names or numbers, one per item, not {raw.shape}"
            )
        experts = [str(name) for name in raw.tolist()]
    return Items.from_columns(columns, experts, kind=kind, candidates=candidates)


def _columns(data: Any, kind: str) -> dict[str, Any]:
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

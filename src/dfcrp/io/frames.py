"""Markings from data frames: pandas, polars and their like, or a dict of columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dfcrp.errors import InputError
from dfcrp.io.columns import ColumnChoice, listed, recognise
from dfcrp.items.checks import check_columns, shown
from dfcrp.likelihoods.circle.likelihood import CIRCLES


def columns_of_frame(frame: Any, choice: ColumnChoice = None) -> dict[str, Any]:
    """Recognise and check the columns of a frame; positions in messages count from 0."""
    names = list(frame) if isinstance(frame, Mapping) else list(getattr(frame, "columns", ()))
    if not names:
        raise InputError(
            f"a {type(frame).__name__} is no table with named columns; "
            "give a data frame or a dict with the columns x, y, diameter and expert"
        )
    header = [str(name) for name in names]
    positions = recognise(header, choice, "the table")
    if "expert" not in positions:
        raise InputError(
            f"the table: no column for expert; the columns are {listed(header)}; "
            "say which with columns={'expert': 'NAME'}"
        )

    def place(role: str, row: int) -> str:
        return f"index {row}, column {shown(header[positions[role]])}"

    cells = {role: frame[names[at]] for role, at in positions.items()}
    return CIRCLES.standard(check_columns(cells, place, positive=CIRCLES.positive), place)

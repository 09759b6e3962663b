"""What is to be clustered, from whatever the user gives."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from dfcrp.items.markings import Items
from dfcrp.items.measurements import Measurements
from dfcrp.items.records import Records
from dfcrp.settings.config import Config, RecordSettings


def make_items(data: Any, config: Config, families: Any, likelihood: str, candidates: Any) -> Items:
    """Items of a matrix, a data frame or a dict of columns."""
    if likelihood == "records":
        names = list(data) if isinstance(data, Mapping) else list(getattr(data, "columns", ()))
        return Records.from_columns(
            {str(name): data[name] for name in names},
            families,
            kinds=config.records.kinds,
            keys=config.records.split_keys,
            candidates=candidates,
        )
    return Measurements.from_arrays(
        data,
        families,
        likelihood="diagonal" if likelihood == "circles" else likelihood,
        candidates=candidates,
    )


def described(records: Records, settings: RecordSettings) -> RecordSettings:
    """The settings with the kind of every field, so that a run can be read back."""
    fields = dict(zip(records.fields, records.kinds, strict=True))
    return replace(
        settings,
        strings=tuple(name for name, kind in fields.items() if kind == "string"),
        dates=tuple(name for name, kind in fields.items() if kind == "date"),
        numbers=tuple(name for name, kind in fields.items() if kind == "number"),
        categories=tuple(name for name, kind in fields.items() if kind == "category"),
    )

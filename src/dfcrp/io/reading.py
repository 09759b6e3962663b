"""From files to Items, through the user's filters."""

from __future__ import annotations

import math
import numbers
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from dfcrp.errors import InputError, SettingsError
from dfcrp.io.columns import ColumnChoice, did_you_mean, listed
from dfcrp.io.options import ReadOptions
from dfcrp.io.parts import PathLike, join, read_parts
from dfcrp.items.checks import shown
from dfcrp.items.items import Items
from dfcrp.items.site import Source


def read_markings(
    paths: PathLike | Sequence[PathLike],
    *,
    columns: ColumnChoice = None,
    image: str | Sequence[str] | None = None,
    min_diameter: float | None = None,
    exclude_experts: str | Sequence[str] = (),
) -> Items:
    """Read marking lists from one file or several, or from a folder for each expert.

    ``columns`` says which column plays which role where the names do not, as a dict or as
    "x=LON,y=LAT". Rows are kept if they belong to ``image`` (one name or several), are at least
    ``min_diameter`` wide, and are not by one of ``exclude_experts``; nothing else drops a row.
    Entries that are no circles are left out with a warning.
    All rows are checked, those that a filter drops too. ``Markings.sources`` tells how many rows
    each file has and how many were kept.
    """
    _refuse_bad_bound(min_diameter)
    parts = read_parts(paths, columns, ReadOptions())
    records = join(parts)
    markings = replace(Items.build(records.columns, "circles"), site=records.site)
    keep = _kept(markings, image, exclude_experts, min_diameter)
    ends = np.cumsum([len(part) for part in parts])
    kept = [int(np.count_nonzero(piece)) for piece in np.split(keep, ends[:-1])]
    sources = tuple(
        Source(part.name, part.sha256, len(part), count, len(part.records.left_out))
        for part, count in zip(parts, kept, strict=True)
    )
    markings = replace(markings.select(keep), sources=sources)
    markings.warn_of_repeats()
    return markings


def _kept(
    markings: Items,
    image: str | Sequence[str] | None,
    exclude_experts: str | Sequence[str],
    min_diameter: float | None,
) -> NDArray[np.bool_]:
    """Say which markings pass the filters; if none does, refuse and name the filter."""
    keep = _of_image(markings, image)
    excluded = _known_names("expert", exclude_experts, markings.experts)
    keep &= ~np.isin(markings.expert, excluded)
    if not keep.any():
        where = "" if image is None else " of the chosen image"
        raise InputError(f"every marking{where} is by an excluded expert; exclude fewer")
    if min_diameter is not None:
        largest = markings.diameter[keep].max()
        keep &= markings.diameter >= min_diameter
        if not keep.any():
            raise InputError(
                f"no marking left is as wide as the least diameter, {min_diameter:g}: "
                f"the largest is {largest:g}; lower --min-diameter"
            )
    return keep


def _of_image(markings: Items, image: str | Sequence[str] | None) -> NDArray[np.bool_]:
    if image is None:
        return np.ones(len(markings), dtype=np.bool_)
    if markings.image is None:
        raise InputError("there is no image column to filter by; name it with --columns image=NAME")
    return np.isin(markings.image, _known_names("image", image, markings.images))


def _known_names(kind: str, names: str | Sequence[str], known: Sequence[str]) -> list[str]:
    wanted = [names] if isinstance(names, str) else list(names)
    for name in wanted:
        if name not in known:
            raise InputError(
                f"no {kind} is called {shown(name)}{did_you_mean(name, known)}; "
                f"there are {listed(known)}"
            )
    return wanted


def _refuse_bad_bound(min_diameter: float | None) -> None:
    if min_diameter is None:
        return
    if not isinstance(min_diameter, numbers.Real) or not 0 <= min_diameter < math.inf:
        raise SettingsError(f"min_diameter is {min_diameter!r}; it must be a number, 0 or more")

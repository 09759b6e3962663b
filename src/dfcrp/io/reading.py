"""From files to Markings: experts named by column or by file, ids, and filters."""

from __future__ import annotations

import hashlib
import math
import numbers
import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dfcrp.errors import InputError, SettingsError
from dfcrp.io.checks import check_columns, shown
from dfcrp.io.columns import ColumnChoice, did_you_mean, listed
from dfcrp.io.registry import read_table
from dfcrp.markings import Markings, Source, build, warn_of_repeats

PathLike = str | os.PathLike[str]


@dataclass(frozen=True)
class _Part:
    """One file's share: its checked columns, keyed by role."""

    name: str
    stem: str
    sha256: str
    columns: dict[str, Any]

    def __len__(self) -> int:
        return len(self.columns["x"])


def read_markings(
    paths: PathLike | Sequence[PathLike],
    *,
    columns: ColumnChoice = None,
    image: str | Sequence[str] | None = None,
    min_diameter: float | None = None,
    exclude_experts: str | Sequence[str] = (),
) -> Markings:
    """Read marking lists from one file or several.

    ``columns`` says which column plays which role where the names do not, as a dict or as
    "x=LON,y=LAT". Rows are kept if they belong to ``image`` (one name or several), are at least
    ``min_diameter`` wide, and are not by one of ``exclude_experts``; nothing else drops a row.
    All rows are checked, those that a filter drops too. ``Markings.sources`` tells how many rows
    each file has and how many were kept.
    """
    _refuse_bad_bound(min_diameter)
    files = _distinct([paths] if isinstance(paths, (str, os.PathLike)) else list(paths))
    parts = [_read_part(name, path, columns) for name, path in files.items()]
    markings = build(_joined(parts))
    keep = _kept(markings, image, exclude_experts, min_diameter)
    ends = np.cumsum([len(part) for part in parts])
    kept = [int(np.count_nonzero(piece)) for piece in np.split(keep, ends[:-1])]
    sources = tuple(
        Source(part.name, part.sha256, rows=len(part), kept=count)
        for part, count in zip(parts, kept, strict=True)
    )
    markings = replace(markings.select(keep), sources=sources)
    warn_of_repeats(markings)
    return markings


def _distinct(paths: Sequence[PathLike]) -> dict[str, Path]:
    """Give each file a name for messages and ids: the short one where that is unique."""
    if not paths:
        raise InputError("no file to read; give at least one")
    found = {os.path.abspath(path): Path(path) for path in paths}
    if len(found) < len(paths):
        times = Counter(os.path.abspath(path) for path in paths)
        twice = next(path for whole, path in found.items() if times[whole] > 1)
        raise InputError(f"{twice}: the file is given twice; give it once")
    short = Counter(path.name for path in found.values())
    return {path.name if short[path.name] == 1 else str(path): path for path in found.values()}


def _read_part(name: str, path: Path, columns: ColumnChoice) -> _Part:
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise InputError(f"{path}: there is no such file; check the path") from None
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        if os.path.isdir(path):
            raise InputError(f"{path}: this is a directory; give the files in it") from None
        raise InputError(f"{path}: the file cannot be read: {error}") from None
    checked = read_table(name, path, data).checked(columns)
    return _Part(name, path.stem, hashlib.sha256(data).hexdigest(), checked)


def _joined(parts: Sequence[_Part]) -> dict[str, Any]:
    """Put the files' columns one after the other."""
    _refuse_mixture("expert", parts, "give every file such a column, or none")
    if "expert" not in parts[0].columns:
        parts = _named_after_files(parts)
    for role in ("image", "truth"):
        _refuse_mixture(role, parts, f"add it, or leave it aside with --columns {role}=")
    joined: dict[str, Any] = {
        role: np.concatenate([part.columns[role] for part in parts])
        for role in ("x", "y", "diameter", "truth")
        if role in parts[0].columns
    }
    for role in ("expert", "image"):
        if role in parts[0].columns:
            joined[role] = [name for part in parts for name in part.columns[role]]
    joined["id"] = [name for part in parts for name in _ids(part, several=len(parts) > 1)]
    return joined


def _refuse_mixture(role: str, parts: Sequence[_Part], fix: str) -> None:
    having = [part.name for part in parts if role in part.columns]
    lacking = [part.name for part in parts if role not in part.columns]
    if having and lacking:
        raise InputError(f"{lacking[0]} has no column for {role}, but {having[0]} has one; {fix}")


def _named_after_files(parts: Sequence[_Part]) -> list[_Part]:
    if len(parts) == 1:
        raise InputError(
            f"{parts[0].name}: no column for expert; name it with --columns expert=NAME "
            "(in Python columns={'expert': 'NAME'}), or give several files, one per expert"
        )
    check_columns({"expert": [part.stem for part in parts]}, lambda _, at: parts[at].name)
    files: dict[str, str] = {}
    for part in parts:
        if part.stem in files:
            raise InputError(
                f"{files[part.stem]} and {part.name} would both be the expert {shown(part.stem)}, "
                "since files without an expert column are named after the file; rename one"
            )
        files[part.stem] = part.name
    return [
        replace(part, columns={**part.columns, "expert": [part.stem] * len(part)}) for part in parts
    ]


def _ids(part: _Part, *, several: bool) -> list[str]:
    ids = part.columns.get("id") or [str(number) for number in range(1, len(part) + 1)]
    return [f"{part.name}:{name}" for name in ids] if several else ids


def _kept(
    markings: Markings,
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


def _of_image(markings: Markings, image: str | Sequence[str] | None) -> NDArray[np.bool_]:
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

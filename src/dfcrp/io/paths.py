"""From paths to checked tables: each file or folder is a part, and parts are joined."""

from __future__ import annotations

import hashlib
import os
import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from dfcrp.errors import DfcrpWarning, InputError
from dfcrp.io.drawings import told
from dfcrp.io.registry import FOLDER_ENDINGS, read_raw
from dfcrp.io.tables import NothingToReadError, RawTable, ReadOptions, ReadTable
from dfcrp.items.checks import check_columns, shown
from dfcrp.items.columns import ColumnChoice, listed
from dfcrp.items.site import Site

PathLike = str | os.PathLike[str]

RUN_FILES = ("config.toml", "markings.csv")
"""What tells a run folder from a folder of exports."""


@dataclass(frozen=True)
class PathTable:
    """What one of the user's paths holds."""

    name: str
    stem: str
    sha256: str
    table: ReadTable

    def __len__(self) -> int:
        return len(self.table)


def read_paths(
    paths: PathLike | Sequence[PathLike], columns: ColumnChoice, options: ReadOptions
) -> list[PathTable]:
    """Read every path; what is of another kind is told in one warning for each file."""
    named = _distinct([paths] if isinstance(paths, (str, os.PathLike)) else list(paths))
    return [
        _read_folder(name, path, columns, options)
        if path.is_dir()
        else _read_file(name, path, columns, options)
        for name, path in named.items()
    ]


def join(parts: Sequence[PathTable], *, nameless: bool = False) -> ReadTable:
    """Put the parts one after the other; those without an expert column are one expert each.

    A single part without one is refused unless ``nameless``.
    """
    _refuse_mixture("expert", parts, "give every file such a column, or none")
    if "expert" not in parts[0].table.about and not (nameless and len(parts) == 1):
        parts = _named_after_files(parts)
    return _joined(parts)


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


def read_file(name: str, path: Path, options: ReadOptions) -> tuple[RawTable, str]:
    """The table in a file as it is, and the SHA-256 of the file."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise InputError(f"{path}: there is no such file; check the path") from None
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        raise InputError(f"{path}: the file cannot be read: {error}") from None
    return read_raw(name, path, data, options), hashlib.sha256(data).hexdigest()


def _read_file(name: str, path: Path, columns: ColumnChoice, options: ReadOptions) -> PathTable:
    raw, sha256 = read_file(name, path, options)
    table = raw.checked(options.kind, columns, options.units)
    if said := told(raw, options.kind):
        warnings.warn(f"{name}: {said}", DfcrpWarning, stacklevel=4)
    return PathTable(name, path.stem, sha256, table)


def _read_folder(name: str, path: Path, columns: ColumnChoice, options: ReadOptions) -> PathTable:
    """Read a folder of exports, such as one annotator's LabelMe files, as one part.

    A file without an item of the kind, as of an image on which there is none, is passed over.
    """
    if all((path / file).is_file() for file in RUN_FILES):
        raise InputError(f"{path}: this is a run folder; give the markings.csv in it")
    files = sorted(
        file
        for file in path.iterdir()
        if file.suffix.lower() in FOLDER_ENDINGS
        and file.is_file()
        and not file.stem.upper().endswith("_AREA")
    )
    if not files:
        raise InputError(
            f"{path}: this is a directory without a file that ends in "
            f"{', '.join(FOLDER_ENDINGS)}; give the files in it"
        )
    parts, empty = [], []
    for file in files:
        try:
            parts.append(_read_file(f"{name}/{file.name}", file, columns, options))
        except NothingToReadError as error:
            empty.append(error)
    if not parts:
        raise empty[0]
    if empty:
        warnings.warn(
            f"{name}: {len(empty)} of {len(files)} files have no {options.kind} and are passed "
            f"over, the first: {empty[0]}",
            DfcrpWarning,
            stacklevel=4,
        )
    _refuse_mixture("expert", parts, "give every file such a column, or none")
    digest = hashlib.sha256("".join(part.sha256 for part in parts).encode()).hexdigest()
    return PathTable(name, path.name or name, digest, _joined(parts))


def _joined(parts: Sequence[PathTable]) -> ReadTable:
    for role in ("image", "truth", "person"):
        _refuse_mixture(role, parts, f"add it, or leave it aside with --columns {role}=")
    _refuse_other_columns(parts)
    first = parts[0].table
    columns = {
        role: np.concatenate([part.table.columns[role] for part in parts]) for role in first.columns
    }
    about: dict[str, Any] = {}
    for role in ("expert", "image", "person", "truth"):
        if role in first.about:
            about[role] = [value for part in parts for value in part.table.about[role]]
    if len(parts) > 1 or "id" in first.about:
        about["id"] = [name for part in parts for name in _ids(part, several=len(parts) > 1)]
    titles = dict.fromkeys(title for part in parts for title in part.table.extra)
    extra = {
        title: [cell for part in parts for cell in part.table.extra.get(title, [None] * len(part))]
        for title in titles
    }
    left_out = [entry for part in parts for entry in part.table.left_out]
    return ReadTable(first.kind, columns, about, _common_site(parts), extra, left_out)


def _refuse_other_columns(parts: Sequence[PathTable]) -> None:
    """All files must describe items by the same columns, in any order."""
    first = parts[0]
    for part in parts[1:]:
        if set(part.table.columns) != set(first.table.columns):
            raise InputError(
                f"{part.name}: the columns that describe an item are "
                f"{listed(list(part.table.columns))}, but in {first.name} they are "
                f"{listed(list(first.table.columns))}; give every file the same"
            )


def _common_site(parts: Sequence[PathTable]) -> Site:
    """What all parts say of the place; they must agree on the units."""
    sites = [part.table.site for part in parts]
    for part in parts[1:]:
        if part.table.site.units != sites[0].units:
            raise InputError(
                f"{parts[0].name} is in {sites[0].units}, {part.name} in "
                f"{part.table.site.units}; convert one of them, or name other columns"
            )
    agreed: dict[str, Any] = {}
    for key in ("body_radius_km", "area_km2", "boundary"):
        known = {value for site in sites if (value := getattr(site, key))}
        if len(known) == 1:
            agreed[key] = known.pop()
        elif known:
            warnings.warn(
                f"the files do not agree on the {key.split('_')[0]}; none of theirs is kept",
                DfcrpWarning,
                stacklevel=5,
            )
    return Site(sites[0].units, **agreed)


def _refuse_mixture(role: str, parts: Sequence[PathTable], fix: str) -> None:
    having = [part.name for part in parts if role in part.table.about]
    lacking = [part.name for part in parts if role not in part.table.about]
    if having and lacking:
        raise InputError(f"{lacking[0]} has no column for {role}, but {having[0]} has one; {fix}")


def _named_after_files(parts: Sequence[PathTable]) -> list[PathTable]:
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
        replace(
            part,
            table=replace(
                part.table, about={**part.table.about, "expert": [part.stem] * len(part)}
            ),
        )
        for part in parts
    ]


def _ids(part: PathTable, *, several: bool) -> list[str]:
    ids: list[str] = part.table.about.get("id") or [
        str(number) for number in range(1, len(part) + 1)
    ]
    return [f"{part.name}:{name}" for name in ids] if several else ids

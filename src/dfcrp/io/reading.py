"""From files to Items, through the user's filters."""

from __future__ import annotations

import math
import numbers
import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dfcrp.errors import DfcrpWarning, InputError, SettingsError, did_you_mean
from dfcrp.io.paths import PathLike, PathTable, join, read_file, read_paths
from dfcrp.io.tables import RawTable, ReadOptions
from dfcrp.items.candidates import checked_pairs
from dfcrp.items.checks import shown, to_names
from dfcrp.items.columns import ColumnChoice, listed
from dfcrp.items.items import Items
from dfcrp.items.site import Site, Source
from dfcrp.likelihoods.registry import likelihood_named


def read_items(
    paths: PathLike | Sequence[PathLike],
    kind: str = "circles",
    *,
    columns: ColumnChoice = None,
    image: str | Sequence[str] | None = None,
    min_diameter: float | None = None,
    exclude_experts: str | Sequence[str] = (),
    candidates: PathLike | None = None,
) -> Items:
    """Read lists of items from one file or several, or from a folder for each expert.

    The format of a file is found out from its contents. All rows are checked, also those that a
    filter then drops. What a file holds besides items of this kind is left out, with a warning.

    Parameters
    ----------
    paths : path or sequence of paths
        Files or folders. Several without an expert column are one expert each, named after the
        file or folder.
    kind : str
        What is wanted: "circles", "points", "boxes", "ellipses", rows of numbers ("diagonal",
        "normal"), "records", or a likelihood of one's own.
    columns : dict or str, optional
        Which column plays which role where the names do not tell, as a dict or as "x=LON,y=LAT".
        An empty name leaves a column aside.
    image : str or sequence of str, optional
        Only items on these images.
    min_diameter : float, optional
        Only items at least this large, in the unit of the file; for kinds that have a size.
    exclude_experts : str or sequence of str
        Experts to be left out.
    candidates : path, optional
        A file with two columns, the ids of two items in each row: only these pairs may share a
        cluster.

    Returns
    -------
    Items
        ``Items.sources`` tells how many rows each file has and how many were kept.

    Examples
    --------
    >>> import pathlib, tempfile, dfcrp
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "boxes.csv"
    >>> _ = path.write_text("detector,xmin,ymin,xmax,ymax\\nA,0,0,4,2\\nB,0,0,4,3\\n")
    >>> dfcrp.read_items(path, "boxes").columns["height"].tolist()
    [2.0, 3.0]
    """
    _refuse_bad_bound(min_diameter)
    parts = read_paths(paths, columns, ReadOptions(kind=kind))
    table = join(parts)
    site = _site(table.site, kind)
    whole = replace(Items.build({**table.columns, **table.about}, kind), site=site)
    keep = _kept(whole, image, exclude_experts, min_diameter)
    if candidates is not None:
        pairs = _read_pairs(Path(candidates), parts, whole)
        whole = replace(whole, candidates=checked_pairs(pairs, len(whole)))
    filters = {
        "columns": columns,
        "image": image,
        "min_diameter": min_diameter,
        "exclude_experts": exclude_experts,
    }
    items = replace(
        whole.select(keep),
        sources=_sources(parts, keep),
        filters={name: value for name, value in filters.items() if value},
    )
    items.warn_of_repeats()
    return items


def read_markings(
    paths: PathLike | Sequence[PathLike],
    *,
    columns: ColumnChoice = None,
    image: str | Sequence[str] | None = None,
    min_diameter: float | None = None,
    exclude_experts: str | Sequence[str] = (),
) -> Items:
    """Read lists of circles: ``read_items`` with the kind "circles".

    Parameters
    ----------
    paths : path or sequence of paths
        Files, or folders for one expert each.
    columns, image, min_diameter, exclude_experts
        As in `read_items`.

    Returns
    -------
    Items
        With the arrays ``x``, ``y``, ``diameter``, ``expert`` and ``families``, among others.

    Examples
    --------
    >>> import pathlib, tempfile, dfcrp
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "markings.csv"
    >>> _ = path.write_text("x,y,diameter,expert\\n1,2,30,ann\\n1,2,10,bob\\n")
    >>> dfcrp.read_markings(path, min_diameter=18).expert.tolist()
    ['ann']
    """
    return read_items(
        paths,
        columns=columns,
        image=image,
        min_diameter=min_diameter,
        exclude_experts=exclude_experts,
    )


def _sources(parts: Sequence[PathTable], keep: NDArray[np.bool_]) -> tuple[Source, ...]:
    ends = np.cumsum([len(part) for part in parts])
    kept = [int(np.count_nonzero(piece)) for piece in np.split(keep, ends[:-1])]
    return tuple(
        Source(part.name, part.sha256, len(part), count, len(part.table.left_out))
        for part, count in zip(parts, kept, strict=True)
    )


def _site(site: Site, kind: str) -> Site:
    """Where items lie; degrees are no units of a plane, where all but circles lie."""
    if not site.on_sphere or likelihood_named(kind).sphere:
        return site
    warnings.warn(
        f"the coordinates are longitude and latitude, and {kind} are fitted in a plane: distances "
        "are wrong far from the equator and across ±180°; project the data first",
        DfcrpWarning,
        stacklevel=3,
    )
    return Site()


def _kept(
    items: Items,
    image: str | Sequence[str] | None,
    exclude_experts: str | Sequence[str],
    min_diameter: float | None,
) -> NDArray[np.bool_]:
    """Say which items pass the filters; if none does, refuse and name the filter."""
    likelihood = likelihood_named(items.kind)
    keep = _of_image(items, image)
    keep &= ~np.isin(items.expert, known_names("expert", exclude_experts, items.experts))
    if not keep.any():
        where = "" if image is None else " of the chosen image"
        raise InputError(f"every {likelihood.noun}{where} is by an excluded expert; exclude fewer")
    if min_diameter is None:
        return keep
    sizes = likelihood.sizes(items)
    if sizes is None:
        raise SettingsError(
            f"--min-diameter is for items with a size, and {items.kind} have none; leave it out"
        )
    largest = sizes[keep].max()
    keep &= sizes >= min_diameter
    if not keep.any():
        raise InputError(
            f"no {likelihood.noun} left is as wide as the least diameter, {min_diameter:g}: "
            f"the largest is {largest:g}; lower --min-diameter"
        )
    return keep


def _of_image(items: Items, image: str | Sequence[str] | None) -> NDArray[np.bool_]:
    if image is None:
        return np.ones(len(items), dtype=np.bool_)
    if items.image is None:
        raise InputError("there is no image column to filter by; name it with --columns image=NAME")
    return np.isin(items.image, known_names("image", image, items.images))


def known_names(what: str, names: str | Sequence[str], known: Sequence[str]) -> list[str]:
    """The names asked for as a list; one that is not known is refused."""
    wanted = [names] if isinstance(names, str) else list(names)
    for name in wanted:
        if name not in known:
            raise InputError(
                f"no {what} is called {shown(name)}{did_you_mean(name, known)}; "
                f"there are {listed(known)}"
            )
    return wanted


def _refuse_bad_bound(min_diameter: float | None) -> None:
    if min_diameter is None:
        return
    if not isinstance(min_diameter, numbers.Real) or not 0 <= min_diameter < math.inf:
        raise SettingsError(f"min_diameter is {min_diameter!r}; it must be a number, 0 or more")


def _read_pairs(path: Path, parts: Sequence[PathTable], items: Items) -> NDArray[np.int64]:
    """Pairs of rows, (m, 2), from a file whose two columns are ids.

    With several files an id may be given as in its file, or with the file's name before it.
    """
    if any("id" not in part.table.about for part in parts):
        raise InputError(
            f"{path}: its pairs name items by their ids, but no column of the items has ids; name "
            "it with --columns id=NAME"
        )
    table, _ = read_file(path.name, path, ReadOptions(kind="records"))
    if len(table.header) != 2:
        raise InputError(
            f"{path}: needs two columns, the ids of a pair in each row; it has "
            f"{len(table.header)}: {listed(table.header)}"
        )
    rows = _rows_by_id(parts, items)
    found = [
        [_row(rows, table, column, record, name) for record, name in enumerate(to_names(cells))]
        for column, cells in enumerate(table.columns)
    ]
    return np.array(found, dtype=np.int64).T.reshape(-1, 2)


def _rows_by_id(parts: Sequence[PathTable], items: Items) -> dict[str, int]:
    """The row of every id, also without the name of its file; -1 where several files have it."""
    bare = [name for part in parts for name in part.table.about["id"]]
    rows: dict[str, int] = {}
    for row, name in enumerate(bare):
        rows[name] = -1 if name in rows else row
    return rows | {name: row for row, name in enumerate(items.id.tolist())}


def _row(rows: dict[str, int], table: RawTable, column: int, record: int, name: str) -> int:
    row = rows.get(name)
    if row is not None and row >= 0:
        return row
    where = f"{table.where(record)}, column {shown(table.header[column])}"
    if row is None:
        # Comparing with very many ids would take longer than reading them.
        near = did_you_mean(name, sorted(rows)[:10_000])
        raise InputError(f"{where}: no item has the id {shown(name)}{near}")
    raise InputError(
        f"{where}: several files have an item {shown(name)}; write the file's name before it, as "
        f"in FILE.csv:{name}"
    )

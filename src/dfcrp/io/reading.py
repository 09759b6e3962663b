"""From the user's paths to Items: files and folders are read, joined, checked and filtered."""

from __future__ import annotations

import hashlib
import math
import numbers
import os
import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dfcrp.errors import DfcrpWarning, InputError, SettingsError, did_you_mean
from dfcrp.io.drawings import what_to_say
from dfcrp.io.folders import files_in
from dfcrp.io.images import (
    in_one_naming,
    known_as,
    one_file_each,
    with_places_of_their_own,
)
from dfcrp.io.looks import kept_looks
from dfcrp.io.pairs import read_pairs
from dfcrp.io.registry import FOLDER_ENDINGS, PathLike, read_file
from dfcrp.io.tables import FileLook, NothingToReadError, ReadOptions, ReadTable
from dfcrp.items.categories import Joins, join_names
from dfcrp.items.checks import (
    check_columns,
    checked_pairs,
    quoted,
)
from dfcrp.items.columns import (
    SAID,
    ColumnChoice,
    for_file,
    plain,
    quoted_names,
    same_field,
    suspect_words,
)
from dfcrp.items.image_names import checked_mode, composed
from dfcrp.items.items import Items
from dfcrp.items.looks import with_looks
from dfcrp.items.site import DOUBTFUL, MOST_UNUSED, Site, Source
from dfcrp.items.source_tables import FileTables, Gathered, SourceFile, SourceTables
from dfcrp.likelihoods.registry import likelihood_named
from dfcrp.values import Json

MOST_NAMED = 3
"""Files that a message about several names."""
RUN_FILES = ("config.toml", "markings.csv")
"""What tells a run folder from a folder of exports."""


def read_paths(
    paths: PathLike | Sequence[PathLike], columns: ColumnChoice, options: ReadOptions
) -> list[ReadTable]:
    """Read every path; what is of another kind is told in one warning for each file.

    Beside others a file without any mark is the list of somebody who looked and marked nothing.
    """
    named = _distinct([paths] if isinstance(paths, (str, os.PathLike)) else list(paths))
    said = for_file(columns, list(named))
    found: list[ReadTable | NothingToReadError] = []
    for (name, path), own in zip(named.items(), said, strict=True):
        read = _read_folder if path.is_dir() else _read_file
        try:
            found.append(read(name, path, own, options))
        except NothingToReadError as error:
            if not error.looked or error.left_out:
                raise
            found.append(error)
    first = next((table for table in found if isinstance(table, ReadTable)), None)
    if first is None:
        raise next(error for error in found if isinstance(error, NothingToReadError))
    return [
        table if isinstance(table, ReadTable) else _without_marks(name, path, table, first)
        for (name, path), table in zip(named.items(), found, strict=True)
    ]


def _without_marks(name: str, path: Path, error: NothingToReadError, first: ReadTable) -> ReadTable:
    """A list without an item, like another of which the columns are known, and its looks."""
    if "expert" in first.about and any(expert is None for _, expert in error.looked):
        raise error
    images = len({image for image, _ in error.looked})
    said = (
        f"there are no {first.kind} in it: who made it looked at {images:,} "
        f"image{'' if images == 1 else 's'} and marked nothing"
    )
    warnings.warn(f"{name}: {said}", DfcrpWarning, stacklevel=5)
    content = path.read_bytes() if path.is_file() else b""
    return replace(
        first,
        columns={role: values[:0] for role, values in first.columns.items()},
        about={role: values[:0] for role, values in first.about.items()},
        extra={title: values[:0] for title, values in first.extra.items()},
        left_out=[],
        looked=list(error.looked),
        pictures=error.pictures,
        notes=(),
        told=(said,),
        name=name,
        stem=path.stem if path.is_file() else path.name or name,
        sha256=hashlib.sha256(content).hexdigest(),
    )


def join(
    parts: Sequence[ReadTable], *, nameless: bool = False, image_names: str = "auto"
) -> ReadTable:
    """Put the parts one after the other; those without an expert column are one expert each.

    A single part without one is refused unless ``nameless``. Images get the names by which all
    lists know them.
    """
    _refuse_mixture("expert", parts, "give every file such a column, or none")
    _refuse_shares_beside_pixels(parts)
    parts = [_with_composed_stem(part) for part in parts]
    if "expert" not in parts[0].about and not (nameless and len(parts) == 1):
        parts = _named_after_files(parts)
    try:
        parts, told, warned = in_one_naming(parts, image_names)
    except InputError as error:
        files = ", ".join(part.name for part in parts[:MOST_NAMED])
        more = ", ..." if len(parts) > MOST_NAMED else ""
        raise InputError(f"{files}{more}: {error}") from None
    for text in warned:
        warnings.warn(text, DfcrpWarning, stacklevel=3)
    whole = _joined(parts)
    doubts = [DOUBTFUL + text for text in warned]
    notes = (*dict.fromkeys(whole.notes), *told, *doubts)
    return replace(whole, notes=notes, sources=_source_tables(parts))


def _source_tables(parts: Sequence[ReadTable]) -> SourceTables:
    """What the files say of their images and categories, by the names that all know them by."""
    gathered = Gathered()
    for part in parts:
        tables = part.tables
        gathered.file(SourceFile(part.name, tables.format, tables.fields, part.shares))
        for name, picture in part.named:
            if not picture.drawn:
                continue  # a table has its name only
            gathered.image(name, picture.path, picture.number, picture.size, picture.fields)
        for name, fields in tables.categories.items():
            gathered.category(name, fields)
    return gathered.tables()


def _with_composed_stem(part: ReadTable) -> ReadTable:
    """The name of a file, which may be an expert's, with accented letters as single ones."""
    stem = composed(part.stem)
    if stem == part.stem:
        return part
    note = f"{part.name}: the name of the file, in NFD, is read in NFC"
    return replace(part, stem=stem, notes=(*part.notes, note), told=(*part.told, note))


def with_joined_categories(table: ReadTable, joins: Joins) -> ReadTable:
    """The table with one name for each category, as far as the user says which are one."""
    told = table.about.get("category", ())
    category, notes, doubts = join_names(told, joins)
    if not told:
        return table
    for text in doubts:
        warnings.warn(text, DfcrpWarning, stacklevel=4)
    return replace(
        table,
        about={**table.about, "category": category},
        notes=(*table.notes, *notes, *(DOUBTFUL + text for text in doubts)),
    )


def _refuse_shares_beside_pixels(parts: Sequence[ReadTable]) -> None:
    """Shares of an image's sides and pixels are no lists of the same places."""
    relative = [part.name for part in parts if part.shares]
    others = [part.name for part in parts if not part.shares]
    if relative and others:
        raise InputError(
            f"the numbers in {relative[0]} are shares of the image's sides, those in {others[0]} "
            "are not; export both in pixels, or both as shares"
        )


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


def _read_file(name: str, path: Path, columns: ColumnChoice, options: ReadOptions) -> ReadTable:
    raw, sha256 = read_file(name, path, options)
    table = raw.checked(options.kind, columns, options.units)
    said = what_to_say(raw, options.kind)
    if said:
        warnings.warn(f"{name}: {said}", DfcrpWarning, stacklevel=4)
        place = "" if options.below is None else f"{options.below}: "
        said = place + said
    notes = tuple(f"{name}: {one}" for one in table.notes)
    return replace(
        table,
        stem=path.stem,
        sha256=sha256,
        notes=notes,
        told=(*([said] if said else []), *notes),
    )


def _read_folder(name: str, path: Path, columns: ColumnChoice, options: ReadOptions) -> ReadTable:
    """Read a folder of exports, such as one annotator's LabelMe files, as one part.

    A file without an item of the kind, as of an image on which there is none, is skipped.
    """
    if all((path / file).is_file() for file in RUN_FILES):
        raise InputError(f"{path}: this is a run folder; give the markings.csv in it")
    found = files_in(path)
    if not found.files:
        raise InputError(
            f"{path}: this is a directory without a file that ends in "
            f"{', '.join(FOLDER_ENDINGS)}; give the files in it"
        )
    parts, empty = [], []
    for file in found.files:
        below = file.relative_to(found.root).as_posix()
        try:
            own = replace(options, below=below, yolo=file in found.yolo)
            parts.append(_read_file(f"{name}/{below}", file, columns, own))
        except NothingToReadError as error:
            empty.append(error)
    if not parts:
        raise _nothing_in(name, empty, options.kind)
    _refuse_mixture("expert", parts, "give every file such a column, or none")
    _refuse_shares_beside_pixels(parts)
    said = [*found.aside, *one_file_each(parts)]
    if empty:
        said.append(
            f"{len(empty)} of {len(found.files)} files have no {options.kind} and are "
            f"skipped, the first: {empty[0]}"
        )
    for text in said:
        warnings.warn(f"{name}: {text}", DfcrpWarning, stacklevel=4)
    digest = hashlib.sha256("".join(part.sha256 for part in parts).encode()).hexdigest()
    lost = [entry for error in empty for entry in error.left_out]
    tables = with_places_of_their_own([*parts, *_looks_alone(empty)])
    parts, others = tables[: len(parts)], tables[len(parts) :]
    table = _joined(parts)
    pictures = {**table.pictures, **{key: one for t in others for key, one in t.pictures.items()}}
    looked = list(table.looked)
    if looked:
        looked += [look for other in others for look in other.looked]
    return replace(
        table,
        looked=looked,
        pictures=pictures,
        left_out=[*table.left_out, *lost],
        name=name,
        stem=path.name or name,
        sha256=digest,
        told=(*said, *(note for part in parts for note in part.told)),
    )


def _nothing_in(name: str, empty: Sequence[NothingToReadError], kind: str) -> NothingToReadError:
    """A folder of files without any item: who looked at what, unless a file does not say it."""
    if not all(error.looked for error in empty):
        return empty[0]
    tables = with_places_of_their_own(_looks_alone(empty))
    return NothingToReadError(
        f"{name}: there are no {kind} in its files",
        [look for table in tables for look in table.looked],
        {key: one for table in tables for key, one in table.pictures.items()},
        [entry for error in empty for entry in error.left_out],
    )


def _looks_alone(empty: Sequence[NothingToReadError]) -> list[ReadTable]:
    """Files without an item, which say who looked at what."""
    return [ReadTable("", {}, looked=one.looked, pictures=one.pictures) for one in empty]


def _joined(parts: Sequence[ReadTable]) -> ReadTable:
    parts = [parts[0], *(_with_titles_of(parts[0], part) for part in parts[1:])]
    for role in ("image", "truth", "person"):
        _refuse_mixture(role, parts, f"add it, or ignore it with --columns {role}=")
    _refuse_other_columns(parts)
    first = parts[0]
    columns = {
        role: np.concatenate([part.columns[role] for part in parts]) for role in first.columns
    }
    about: Json = {}
    for role in ("expert", "image", "person", "truth"):
        if role in first.about:
            about[role] = [value for part in parts for value in part.about[role]]
    for role in SAID:
        if any(role in part.about for part in parts):
            # A file without it says nothing of its items.
            about[role] = [
                value for part in parts for value in part.about.get(role, [None] * len(part))
            ]
    if len(parts) > 1 or "id" in first.about:
        about["id"] = [name for part in parts for name in _ids(part, several=len(parts) > 1)]
    titles = dict.fromkeys(title for part in parts for title in part.extra)
    extra = {
        title: [cell for part in parts for cell in part.extra.get(title, [None] * len(part))]
        for title in titles
    }
    left_out = [entry for part in parts for entry in part.left_out]
    looked: list[FileLook] = []
    if all(part.looked for part in parts):
        looked = [look for part in parts for look in part.looked]
    return ReadTable(
        first.kind,
        columns,
        about,
        _common_site(parts),
        extra,
        left_out,
        first.read_as,
        tuple(extra)[:MOST_UNUSED],
        list(dict.fromkeys(one for part in parts for one in part.suspects)),
        looked,
        {key: picture for part in parts for key, picture in part.pictures.items()},
        tuple(note for part in parts for note in part.notes),
        any(part.shares for part in parts),
        frozenset().union(*(part.aliases for part in parts)),
        tables=reduce(FileTables.joined, (part.tables for part in parts)),
    )


def _with_titles_of(first: ReadTable, part: ReadTable) -> ReadTable:
    """Columns by the first file's names where these differ in signs and capital letters alone."""
    missing = [title for title in first.columns if title not in part.columns]
    named = {title: title for title in part.columns}
    for title in part.columns:
        same = [one for one in missing if plain(one) == plain(title)]
        if title not in first.columns and len(same) == 1:
            named[title] = same[0]
    columns = {named[title]: values for title, values in part.columns.items()}
    if list(columns) == list(part.columns) or len(columns) < len(named):
        return part
    return replace(part, columns=columns)


def _refuse_other_columns(parts: Sequence[ReadTable]) -> None:
    """All files must describe items by the same columns, in any order."""
    first = parts[0]
    for part in parts[1:]:
        if set(part.columns) != set(first.columns):
            raise InputError(
                f"{part.name}: the columns that describe an item are "
                f"{quoted_names(list(part.columns))}, but in {first.name} they are "
                f"{quoted_names(list(first.columns))}; {_way_to_map(first, part)}"
            )


def _way_to_map(first: ReadTable, part: ReadTable) -> str:
    """How to say which columns of two files are the same, and which are to be left aside."""
    here = [title for title in part.columns if title not in first.columns]
    there = [title for title in first.columns if title not in part.columns]
    if likelihood_named(part.kind).columns is not None:
        return "give every file the same"
    said = []
    for title in there:
        likely = [one for one in here if same_field(one, title)]
        if not likely and len(here) == len(there) == 1:
            likely = here
        if likely:
            said.append(f"{part.name}:{title}={likely[0]}")
            here.remove(likely[0])
        else:
            said.append(f"{first.name}:{title}=")
    said += [f"{part.name}:{title}=" for title in here]
    option = ",".join(said)
    return (
        "say which are the same, as FILE:FIELD=COLUMN, and leave others aside with an empty name, "
        f'for example --columns "{option}" (in Python columns="{option}")'
    )


def _common_site(parts: Sequence[ReadTable]) -> Site:
    """What all parts say of the place; they must agree on the units."""
    sites = [part.site for part in parts]
    for part in parts[1:]:
        if part.site.units != sites[0].units:
            raise InputError(
                f"{parts[0].name} is in {sites[0].units}, {part.name} in "
                f"{part.site.units}; convert one of them, or name other columns"
            )
    agreed: Json = {}
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


def _refuse_mixture(role: str, parts: Sequence[ReadTable], fix: str) -> None:
    having = [part.name for part in parts if role in part.about]
    lacking = [part.name for part in parts if role not in part.about]
    if having and lacking:
        raise InputError(f"{lacking[0]} has no column for {role}, but {having[0]} has one; {fix}")


def _perhaps(part: ReadTable) -> str:
    """A column that may be the experts'."""
    for role, title in part.suspects:
        if role == "expert":
            return f" (is it {quoted(title)}?)"
    return ""


def _named_after_files(parts: Sequence[ReadTable]) -> list[ReadTable]:
    if len(parts) == 1 and likelihood_named(parts[0].kind).text:
        [part] = parts
        note = (
            f"{part.name} names no source, so it is one list, and records in it that are of one "
            "object are searched for; if it joins several lists, say which column names them with "
            "--columns expert=NAME"
        )
        parts = [replace(part, notes=(*part.notes, note), told=(*part.told, note))]
    elif len(parts) == 1:
        raise InputError(
            f"{parts[0].name}: no column for expert{_perhaps(parts[0])}; name it with --columns "
            f"expert=NAME "
            "(in Python columns={'expert': 'NAME'}), or give several files, one per expert"
        )
    check_columns({"expert": [part.stem for part in parts]}, lambda _, at: parts[at].name)
    files: dict[str, str] = {}
    for part in parts:
        if part.stem in files:
            raise InputError(
                f"{files[part.stem]} and {part.name} would both be the expert {quoted(part.stem)}, "
                "since files without an expert column are named after the file; rename one"
            )
        files[part.stem] = part.name
    return [
        replace(
            part,
            about={**part.about, "expert": [part.stem] * len(part)},
            looked=[(image, expert or part.stem) for image, expert in part.looked],
        )
        for part in parts
    ]


def _ids(part: ReadTable, *, several: bool) -> list[str]:
    ids: list[str] = part.about.get("id") or [str(number) for number in range(1, len(part) + 1)]
    return [f"{part.name}:{name}" for name in ids] if several else ids


def read_items(
    paths: PathLike | Sequence[PathLike],
    kind: str = "circles",
    *,
    columns: ColumnChoice = None,
    image: str | Sequence[str] | None = None,
    min_diameter: float | None = None,
    exclude_experts: str | Sequence[str] = (),
    candidates: PathLike | None = None,
    looked: object = None,
    image_names: str = "auto",
    join_categories: Joins = None,
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
        What is wanted: "circles", "points", "boxes", "ellipses", "intervals", numbers ("diagonal",
        "normal"), "records", or a likelihood of one's own.
    columns : dict or str, optional
        Which column plays which role where the names do not tell, as a dict or as "x=LON,y=LAT".
        An empty name leaves a column aside. Of records FIELD=COLUMN gives a column another name,
        "b.csv:FIELD=COLUMN" in one file.
    image : str or sequence of str, optional
        Only items on these images.
    min_diameter : float, optional
        Only items at least this large, in the unit of the file; for kinds that have a size.
    exclude_experts : str or sequence of str
        Experts to be left out.
    candidates : path, optional
        A file with two columns, the ids of two items in each row: only these pairs may share a
        cluster.
    looked : path, table or sequence of pairs, optional
        Who looked at which image, also of those who marked nothing there: a file or table with the
        columns image and expert. Left out, it is taken from the files if their format says it. Of
        looks at a part of an image it has that part, in a column footprint (a polygon as WKT or
        GeoJSON) or in x_min, y_min, x_max and y_max; or it is GeoJSON itself.
    image_names : str
        What makes names of images the same image: "path", "name" (what follows the last slash),
        "stem" (the same without the ending, upper and lower case the same), "id" (the number that
        a program gave it), "size" (name and size); "auto" finds it out, and refuses what could be
        meant in two ways.
    join_categories : str or dict, optional
        Categories that are one: "spellings" joins those that differ in case, blanks and dashes
        only; or by name, as a dict or as "Bi-nucleated=Binucleated,...".

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
    checked_mode(image_names)
    parts = read_paths(paths, columns, ReadOptions(kind=kind, image_names=image_names))
    table = with_joined_categories(join(parts, image_names=image_names), join_categories)
    for role, title in table.suspects:
        warnings.warn(suspect_words(role, title), DfcrpWarning, stacklevel=2)
    image = known_as(table, image)
    whole = _items_of(table)
    keep = _kept(whole, image, exclude_experts, min_diameter)
    if candidates is not None:
        pairs = read_pairs(Path(candidates), parts, whole)
        whole = replace(whole, candidates=checked_pairs(pairs, len(whole)))
    pairs_looked = kept_looks(table, looked, whole, image, exclude_experts)
    filters = {
        "columns": columns,
        "image": image,
        "min_diameter": min_diameter,
        "exclude_experts": exclude_experts,
        "image_names": "" if image_names == "auto" else image_names,
        "join_categories": join_categories,
    }
    items = replace(
        whole if keep.all() else whole.select(keep),
        sources=_sources(parts, keep),
        filters={name: value for name, value in filters.items() if value},
        notes=tuple(table.notes),
        source_tables=_of_items(table.sources, whole.select(keep), image),
    )
    items.warn_of_repeats()
    return items if pairs_looked is None else _with_looks(items, pairs_looked, looked)


def _of_items(
    tables: SourceTables, items: Items, image: str | Sequence[str] | None
) -> SourceTables:
    """The tables of these images, and the category of the items if there is one alone."""
    if image is not None:
        tables = tables.on([image] if isinstance(image, str) else image)
    if len(items.categories) < 2 or items.category is None:
        return replace(tables, only_category=next(iter(items.categories), None))
    found: dict[str, set[str]] = {}
    images = [] if items.image is None else items.image.tolist()
    for name, category in set(zip(images, items.category.tolist(), strict=False)) if images else ():
        found.setdefault(name, set()).add(category)
    named = {name: told - {""} for name, told in sorted(found.items())}
    return replace(tables, only_on={n: told.pop() for n, told in named.items() if len(told) == 1})


def _with_looks(items: Items, pairs: object, looked: object) -> Items:
    """With who looked; what is wrong with it is said of the file that was given."""
    try:
        return with_looks(items, pairs, tell=looked is not None)
    except InputError as error:
        where = f"{looked}: " if isinstance(looked, (str, os.PathLike)) else ""
        raise InputError(f"{where}{error}") from error


def read_markings(
    paths: PathLike | Sequence[PathLike],
    *,
    columns: ColumnChoice = None,
    image: str | Sequence[str] | None = None,
    min_diameter: float | None = None,
    exclude_experts: str | Sequence[str] = (),
    looked: object = None,
    image_names: str = "auto",
    join_categories: Joins = None,
) -> Items:
    """Read lists of circles: ``read_items`` with the kind "circles".

    Parameters
    ----------
    paths : path or sequence of paths
        Files, or folders for one expert each.
    columns, image, min_diameter, exclude_experts, looked, image_names, join_categories
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
        looked=looked,
        image_names=image_names,
        join_categories=join_categories,
    )


def _items_of(table: ReadTable) -> Items:
    """All items of a table."""
    said = {role: table.about.get(role) for role in SAID}
    about = {role: values for role, values in table.about.items() if role not in SAID}
    items = Items.build({**table.columns, **about}, table.kind, said)
    return replace(items, site=_site(table.site, table.kind))


def _sources(parts: Sequence[ReadTable], keep: NDArray[np.bool_]) -> tuple[Source, ...]:
    ends = np.cumsum([len(part) for part in parts])
    kept = [int(np.count_nonzero(piece)) for piece in np.split(keep, ends[:-1])]
    return tuple(
        Source(
            part.name,
            part.sha256,
            len(part),
            count,
            len(part.left_out),
            part.read_as,
            part.unused,
            part.told,
        )
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
        stacklevel=4,
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
    wanted = [composed(name) for name in ([names] if isinstance(names, str) else names)]
    for name in wanted:
        if name not in known:
            raise InputError(
                f"no {what} is called {quoted(name)}{did_you_mean(name, known)}; "
                f"there are {quoted_names(known)}"
            )
    return wanted


def _refuse_bad_bound(min_diameter: float | None) -> None:
    if min_diameter is None:
        return
    if not isinstance(min_diameter, numbers.Real) or not 0 <= min_diameter < math.inf:
        raise SettingsError(f"min_diameter is {min_diameter!r}; it must be a number, 0 or more")

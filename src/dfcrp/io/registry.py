"""One file: its bytes, refused early if they cannot be read, its format, and the table in it."""

from __future__ import annotations

import hashlib
import os
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import BinaryIO

from dfcrp.errors import InputError, SettingsError, did_you_mean
from dfcrp.io.format import Format, GivenFile, Writer
from dfcrp.io.tables import RawTable, ReadOptions
from dfcrp.io.text import decode, load_json
from dfcrp.memory import in_words, refuse_more_than_memory

PathLike = str | os.PathLike[str]

#: Bytes of memory for each of a file: a short field is an object of Python.
MEMORY_PER_BYTE = 8
#: Of a file, to see whether it is text.
_LOOKED_AT = 1 << 16
#: Read at a time.
_PIECE = 64 << 20
BINARY_ENDINGS = (".parquet", ".shp", ".dbf", ".shx", ".prj")
BINARY_MARKS = (
    b"PAR1",
    b"SQLite format 3\x00",
    b"\x00\x00\x27\x0a",
    b"\xff\xfe",
    b"\xfe\xff",
    b"\x00\x00\xfe\xff",
)


def _ends_in_json(file: GivenFile) -> bool:
    return file.path.suffix.lower() == ".json"


def _refuse_unknown_json(file: GivenFile, _: ReadOptions) -> RawTable:
    load_json(file.name, file.data)
    raise InputError(
        f"{file.name}: JSON of an unknown kind; GeoJSON, COCO, LabelMe and Label Studio exports "
        "are read"
    )


@cache
def formats() -> tuple[Format, ...]:
    """All formats. Their modules are loaded when a file is first read or written."""
    from dfcrp.io.formats import (
        audacity,
        coco,
        conll,
        craterstats,
        cvat,
        delimited,
        doccano,
        elan,
        geojson,
        label_studio,
        label_studio_spans,
        labelme,
        panoptes,
        parquet,
        particles,
        shapefiles,
        sliderunner,
        textgrid,
        via,
        yolo,
        zooniverse,
    )

    return (
        # The first format that recognises a file reads it: those with a mark in their first bytes,
        # then those known by keys or a header. Delimited text has no mark of its own, so it takes
        # what no other format claims, says what is wrong with it, and stays last.
        parquet.FORMAT,
        shapefiles.FORMAT,
        sliderunner.FORMAT,
        cvat.FORMAT,
        zooniverse.FORMAT,
        panoptes.FORMAT,
        via.CSV,
        via.JSON,
        geojson.FORMAT,
        labelme.FORMAT,
        label_studio_spans.FORMAT,
        label_studio.FORMAT,
        textgrid.FORMAT,
        elan.FORMAT,
        doccano.FORMAT,
        conll.FORMAT,
        audacity.FORMAT,
        coco.FORMAT,
        Format("other JSON", _ends_in_json, _refuse_unknown_json, kinds=None),
        yolo.FORMAT,
        particles.FORMAT,
        craterstats.FORMAT,
        delimited.FORMAT,
    )


@cache
def _writers() -> dict[str, Writer]:
    """What writes a file, by the ending of its name."""
    from dfcrp.io.formats import geopackage

    return {
        **{ending: writer for form in formats() for ending, writer in form.writers},
        **dict(geopackage.WRITERS),
    }


@cache
def _targets() -> dict[str, Format]:
    """Formats of annotation tools, by what ``--to`` calls them."""
    return {form.target: form for form in formats() if form.target is not None}


FOLDER_ENDINGS = (
    *(".json", ".geojson", ".xml", ".csv", ".parquet", ".diam", ".scc", ".shp"),
    *(".box", ".star", ".cbox", ".jsonl", ".textgrid", ".eaf", ".conll", ".bio", ".iob"),
)
"""Files that are read where a folder is given; images and notes may lie beside them."""


def read_file(name: str, path: Path, options: ReadOptions) -> tuple[RawTable, str]:
    """The table in a file as it is, and the SHA-256 of the file."""
    file = GivenFile(name, path, bytes_of(name, path))
    return _read(file, options), hashlib.sha256(file.data).hexdigest()


def _read(file: GivenFile, options: ReadOptions) -> RawTable:
    """With the reader of its format; among YOLO's files any text is one of them."""
    from dfcrp.io.formats import yolo

    form = yolo.FORMAT
    if not options.yolo:
        form = next(form for form in formats() if form.recognises(file))
    if form.kinds is not None and options.kind not in form.kinds:
        raise InputError(
            f"{file.name}: {form.name} files hold {', '.join(form.kinds)}, not {options.kind}; "
            "give a table, as CSV or Parquet, or say what is wanted with --likelihood"
        )
    table = form.read(file, options)
    return replace(table, tables=replace(table.tables, format=form.name))


def bytes_of(name: str, path: Path) -> bytes:
    """All of a file."""
    try:
        with path.open("rb") as file:
            pieces = [_first_bytes(name, path, file)]
            # A pipe does not say how much is to come, and /dev/zero has no end.
            while piece := file.read(_PIECE):
                pieces.append(piece)
                _refuse_size(name, sum(map(len, pieces)))
            return b"".join(pieces)
    except FileNotFoundError:
        raise InputError(f"{path}: there is no such file; check the path") from None
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        raise InputError(f"{path}: the file cannot be read: {error}") from None


def _first_bytes(name: str, path: Path, file: BinaryIO) -> bytes:
    """The beginning of a file; what cannot be read is refused here, before the rest is."""
    _refuse_size(name, os.fstat(file.fileno()).st_size)
    data = file.read(_LOOKED_AT)
    if path.suffix.lower() not in BINARY_ENDINGS and not data.startswith(BINARY_MARKS):
        # Says so if it is no text; a letter may be cut in two at the end.
        decode(name, data[: data.find(0) + 1])
    return data


def _refuse_size(name: str, size: int) -> None:
    refuse_more_than_memory(
        MEMORY_PER_BYTE * size,
        f"{name}: reading a file of {in_words(size)}",
        "split it by image, or leave columns out of it",
    )


def writer_for(path: Path, to: str | None = None, came_from: str | None = None) -> Writer:
    """Find what writes a file of this name: what ``to`` says, or else the longest ending.

    Endings that several formats have, and a name without one, are of the format that the items
    came from, if that is one of these.
    """
    targets, writers = _targets(), _writers()
    if to is not None:
        form = targets.get(to)
        if form is None or form.write is None:
            raise SettingsError(
                f"--to {to}{did_you_mean(to, targets)}: it must be one of {', '.join(targets)}"
            )
        return form.write
    origin = next((form for form in targets.values() if form.name == came_from), None)
    if origin is not None and origin.write is not None and path.suffix.lower() == origin.ending:
        return origin.write
    name = path.name.lower()
    for ending in sorted(writers, key=len, reverse=True):
        if name.endswith(ending):
            return writers[ending]
    raise InputError(
        f"{path}: cannot tell the format from {path.suffix or 'a name without ending'!r}; "
        f"end the name in {', '.join(writers)}, or say it with --to ({', '.join(targets)})"
    )

"""What is fuzzed: for each target the files that an input becomes, and what must hold of them."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from dfcrp.errors import InputError

#: Between the parts of an input, each of which is a file of its own.
MARK = b"\n--part--\n"
#: The file with pairs, or with who looked, beside one with items.
PAIRS = "input.pairs"
AREAS = "input.geojson"
#: The names of classes beside a file of YOLO.
CLASSES = "classes.txt"
#: What an input is read as; its length says which of them.
KINDS = ("circles", "points", "boxes", "ellipses", "diagonal", "normal", "records", "intervals")


@dataclass(frozen=True)
class Target:
    """One reader with the files it takes."""

    files: tuple[str, ...]
    """Their names; the first is the one that is read."""
    check: Callable[[Path], None]
    """Raises anything but an InputError if something is wrong."""
    writes: bool = False
    """Whether the check itself writes a file."""
    format: str | None = None
    """The format of the registry that it tries, if it is one of them."""

    def write(self, folder: Path, data: bytes) -> Path:
        """Write the parts of an input; the path of the first. What it lacks is not there."""
        parts = data.split(MARK)
        for number, name in enumerate(self.files):
            if number < len(parts):
                (folder / name).write_bytes(parts[number])
            else:
                (folder / name).unlink(missing_ok=True)
        return folder / self.files[0]


def names_file(error: InputError, path: Path) -> None:
    """Insist that a message names the file, or what lies beside it and is at fault."""
    if not any(name in str(error) for name in (path.stem, CLASSES)):
        raise AssertionError(f"the message does not name the file: {error}") from error


def read_or_refuse(path: Path) -> None:
    """Read a file as items of one kind, or as markings; only an InputError is a way to fail."""
    import numpy as np

    from dfcrp.io import read_markings, read_table
    from dfcrp.io.tables import ReadOptions
    from dfcrp.likelihoods.registry import likelihood_named

    generous = ReadOptions(boxes=True, point_diameter=1.0, body_radius_km=1737.4)
    way = path.stat().st_size % (1 + len(KINDS))
    kind = KINDS[way - 1] if way else "circles"
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            if way:
                table = read_table(path, kind, options=generous)
                columns, left_out = table.columns, len(table.left_out)
            else:
                items = read_markings(path)
                columns, left_out = items.columns, sum(one.left_out for one in items.sources)
    except InputError as error:
        names_file(error, path)
        return
    if left_out and not any("left out" in str(one.message) for one in caught):
        raise AssertionError(f"{left_out} marks are left out, and nothing is said")
    if kind in ("records", "diagonal", "normal"):
        return
    likelihood = likelihood_named(kind)
    numbers = all(np.isfinite(values).all() for values in columns.values())
    sizes = all((columns[name] > 0).all() for name in likelihood.positive if name in columns)
    if not (numbers and sizes and tuple(columns) == likelihood.columns):
        raise AssertionError(f"what was read is not {kind}")


def pair_or_refuse(path: Path) -> None:
    """Read records with the pairs that may share a cluster, which lie in a file beside them."""
    from dfcrp.io import read_items

    try:
        items = read_items(path, "records", candidates=path.with_name(PAIRS))
    except InputError as error:
        names_file(error, path)
        return
    found = items.candidates
    if found is None or (found.size and not 0 <= found.min() <= found.max() < len(items)):
        raise AssertionError("what was read is no pairs of items")


def look_or_refuse(path: Path, looked: str = PAIRS) -> None:
    """Read circles with who looked at which image, which lies in a file beside them."""
    from dfcrp.io import read_items
    from dfcrp.items.checks import bad_names

    try:
        items = read_items(path, "circles", looked=path.with_name(looked))
    except InputError as error:
        names_file(error, path)
        return
    assert items.looked is not None
    images, experts = (items.looked[:, column].tolist() for column in (0, 1))
    if len(bad_names(experts)) or len(bad_names([name for name in images if name])):
        raise AssertionError("names came through that are refused elsewhere")
    places = [""] * len(items) if items.image is None else items.image.tolist()
    own = set(zip(places, items.expert.tolist(), strict=True))
    if not own <= set(zip(images, experts, strict=True)):
        raise AssertionError("an expert with an item did not look")


def look_at_areas_or_refuse(path: Path) -> None:
    """The same with the parts of images that were looked at, as GeoJSON."""
    look_or_refuse(path, AREAS)


def place_or_refuse(path: Path) -> None:
    """Read where an image lies; what is accepted must give pixels places."""
    import numpy as np

    from dfcrp.io.georeference import read_georeference

    try:
        found = read_georeference(path)
    except InputError as error:
        names_file(error, path)
        return
    places = found.at(np.array([0.5, 100.5]), np.array([0.5, 200.5]))
    if not np.isfinite(places).all():
        raise AssertionError("pixels have no places")


def resolve_or_refuse(path: Path) -> None:
    """Read a settings file; what is accepted must come back the same from our own TOML."""
    from dfcrp.settings.config import load_config, make_config, to_toml

    try:
        config = make_config(load_config(path))
    except InputError:
        return
    path.write_text(to_toml(config), encoding="utf-8")
    if make_config(load_config(path)) != config:
        raise AssertionError("the settings come back changed")


def _format(name: str, ending: str, *beside: str) -> Target:
    return Target((f"input{ending}", *beside), read_or_refuse, format=name)


TARGETS = {
    "delimited": _format("delimited text", ".csv"),
    "zooniverse": _format("Zooniverse", ".csv"),
    "panoptes": _format("Zooniverse extracts and reductions", ".csv"),
    "via": _format("VIA CSV", ".csv"),
    "via-json": _format("VIA JSON", ".json"),
    "coco": _format("COCO", ".json"),
    "labelme": _format("LabelMe", ".json"),
    "label-studio": _format("Label Studio", ".json"),
    "geojson": _format("GeoJSON", ".geojson"),
    "qupath": _format("GeoJSON", ".geojson"),
    "cvat": _format("CVAT XML", ".xml"),
    "scc": _format("CraterStats", ".scc"),
    "diam": _format("CraterStats", ".diam"),
    "parquet": _format("Parquet", ".parquet"),
    "shapefile": _format("shapefile", ".shp", "input.dbf", "input.prj"),
    "sliderunner": _format("SlideRunner", ".sqlite"),
    "yolo": _format("YOLO", ".txt", CLASSES),
    "box": _format("particle boxes", ".box"),
    "star": _format("particle boxes", ".star"),
    "cbox": _format("particle boxes", ".cbox"),
    "audacity": _format("Audacity", ".txt"),
    "textgrid": _format("TextGrid", ".TextGrid"),
    "elan": _format("ELAN", ".eaf"),
    "doccano": _format("doccano", ".jsonl"),
    "conll": _format("CoNLL", ".conll"),
    "label-studio-spans": _format("Label Studio spans", ".json"),
    "settings": Target(("input.toml",), resolve_or_refuse, writes=True),
    "candidates": Target(("input.csv", PAIRS), pair_or_refuse),
    "looked": Target(("input.csv", PAIRS), look_or_refuse),
    "footprints": Target(("input.csv", AREAS), look_at_areas_or_refuse),
    "world-file": Target(("input.tfw",), place_or_refuse),
}
"""By the name of the folder of the corpus."""

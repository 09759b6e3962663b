"""Small simulated data for the tutorials, in the files that people really have.

Each function writes its files into a folder and returns their paths. Same seed, same files.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from dfcrp.io.formats.craterstats import write_scc
from dfcrp.io.tables import ReadTable, write_files
from dfcrp.items.site import Ring, Site
from dfcrp.values import Json

MOON_KM = 1737.4
#: People who list, and how likely each of them is to list an object.
FINDS = MappingProxyType(
    {"ann": 0.95, "bob": 0.9, "cleo": 0.85, "dev": 0.8, "eva": 0.7, "finn": 0.6}
)
#: Volunteers: how likely they are to mark an object, and false marks for each image.
VOLUNTEERS = MappingProxyType(
    {
        "aster": (0.95, 0.05), "birch": (0.9, 0.1), "cedar": (0.9, 0.05), "daisy": (0.85, 0.2),
        "elm": (0.8, 0.1), "fern": (0.75, 0.1), "ginkgo": (0.7, 0.3), "hazel": (0.6, 0.1),
        "iris": (0.3, 0.1), "juniper": (0.8, 2.0),
    }
)  # fmt: skip
#: Detectors and annotators: how likely they are to find an object, and false boxes for each image.
SOURCES = MappingProxyType(
    {"ann": (0.95, 0.05), "bob": (0.85, 0.1), "detector-1": (0.9, 1.0), "detector-2": (0.75, 0.3)}
)
FIRST_NAMES = "Anna Boris Clara David Elena Felix Greta Hugo Ines Jonas Karin Luca Maria Nils Olga"
SURNAMES = (
    "Albrecht Bergman Castillo Dimitrov Eriksen Fontaine Gallagher Hoffmann Ivanova Jankowski "
    "Kowalczyk Lindqvist Moreau Nakamura Okafor Petersen Quintero Rossetti Schneider Takahashi"
)
TOWNS = "Aston Brook Carlow Denby Elmham Farndon Garth Helmsley"
#: Columns of a classification export.
EXPORTED = (
    "classification_id,user_name,user_ip,created_at,metadata,annotations,subject_data,subject_ids"
)
LETTERS = "abcdefghijklmnopqrstuvwxyz"


def craters(folder: Path, seed: int = 1) -> list[Path]:
    """Six counts of the same 1,000 km² of the Moon, one ``.scc`` file for each person.

    120 craters of at least 250 m, N(>D) ~ D^-3, a third of them close to another one. Centres are
    off by 10 % of the diameter, diameters by 10 %; everybody misses some and lists a few that are
    not there.
    """
    rng = np.random.default_rng(seed)
    km_per_degree = MOON_KM * np.pi / 180
    lon, lat = 30.0, 10.0
    high = float(np.sqrt(1000.0) / km_per_degree)
    wide = float(high / np.cos(np.radians(lat)))
    corners = ((lon, lat), (lon + wide, lat), (lon + wide, lat + high), (lon, lat + high))
    site = Site("deg", MOON_KM, 1000.0, boundary=(Ring(corners),))

    def places(count: int) -> NDArray[np.float64]:
        x, y = lon + wide * rng.random(count), lat + high * rng.random(count)
        return np.column_stack([x, y, 0.25 * rng.uniform(0.001, 1.0, count) ** (-1 / 3)])

    objects = places(120)
    near = rng.normal(0.0, 0.25 / km_per_degree, (40, 2))
    objects[:40, :2] = objects[40:80, :2] + near
    files: dict[Path, bytes] = {}
    for name, finds in FINDS.items():
        seen = objects[rng.random(len(objects)) < finds]
        off = rng.normal(0.0, 0.1 * seen[:, 2:] / km_per_degree, (len(seen), 2))
        size = seen[:, 2] * np.exp(rng.normal(0.0, 0.1, len(seen)))
        rows = np.column_stack([seen[:, :2] + off, size])
        rows = np.concatenate([rows, places(int(rng.poisson(6)))]).round(6)
        columns = {"x": rows[:, 0], "y": rows[:, 1], "diameter": rows[:, 2]}
        files |= write_scc(ReadTable("circles", columns, site=site), folder / f"{name}.scc")
    return write_files(files, overwrite=True)


def crowd(folder: Path, seed: int = 1) -> list[Path]:
    """A Zooniverse classification export: 40 photographs, ten volunteers, five looks at each.

    The volunteers mark every seal with a point. One misses most, one marks what is no seal, and
    some photographs are empty.
    """
    rng = np.random.default_rng(seed)
    volunteers = list(VOLUNTEERS)
    rows = []
    for subject in range(1001, 1041):
        seals = _points(rng, int(rng.poisson(rng.choice([0.0, 2.0, 5.0]))))
        for name in rng.choice(volunteers, 5, replace=False).tolist():
            finds, false = VOLUNTEERS[name]
            found = seals[rng.random(len(seals)) < finds]
            marks = found + rng.normal(0.0, 4.0, found.shape)
            marks = np.concatenate([marks, _points(rng, int(rng.poisson(false)))])
            inside = marks.clip([0, 0], [800, 600]).round(1).tolist()
            value = [
                {"tool": 0, "tool_label": "Seal", "frame": 0, "x": x, "y": y} for x, y in inside
            ]
            rows.append((name, subject, json.dumps([{"task": "T0", "value": value}])))
    size = json.dumps({"subject_dimensions": [{"naturalWidth": 800, "naturalHeight": 600}]})
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(EXPORTED.split(","))
    for number, (name, subject, drawn) in enumerate(rows):
        when = f"2025-03-01 {number // 60:02d}:{number % 60:02d}:00 UTC"
        writer.writerow((number + 1, name, "", when, size, drawn, "{}", subject))
    return write_files({folder / "classifications.csv": out.getvalue().encode()}, overwrite=True)


def _points(rng: np.random.Generator, count: int) -> NDArray[np.float64]:
    return np.column_stack([rng.uniform(0, 800, count), rng.uniform(0, 600, count)])


def boxes(folder: Path, seed: int = 1) -> list[Path]:
    """COCO files of two annotators and two detectors, who boxed cells on the same 24 images."""
    rng = np.random.default_rng(seed)
    images = [
        {"id": number, "file_name": f"slide-{number:02d}.png", "width": 640, "height": 480}
        for number in range(1, 25)
    ]

    def places(count: int) -> NDArray[np.float64]:
        sides = np.exp(rng.normal(np.log(40.0), 0.3, (count, 2)))
        corner = rng.uniform(0.0, 1.0, (count, 2)) * ([640, 480] - sides)
        return np.column_stack([corner, sides])

    cells = [places(int(rng.poisson(5))) for _ in images]
    files: dict[Path, bytes] = {}
    for name, (finds, false) in SOURCES.items():
        annotations: list[Json] = []
        for image, there in zip(images, cells, strict=True):
            seen = there[rng.random(len(there)) < finds]
            seen = seen + rng.normal(0.0, 0.05 * seen[:, [2, 3, 2, 3]], seen.shape)
            for box in np.concatenate([seen, places(int(rng.poisson(false)))]).round(1).tolist():
                about = {"id": len(annotations) + 1, "image_id": image["id"], "category_id": 1}
                annotations.append({**about, "bbox": box, "area": round(box[2] * box[3], 1)})
        whole = {
            "images": images,
            "categories": [{"id": 1, "name": "cell"}],
            "annotations": annotations,
        }
        files[folder / f"{name}.json"] = (json.dumps(whole) + "\n").encode()
    return write_files(files, overwrite=True)


def registers(folder: Path, seed: int = 1) -> list[Path]:
    """Three registers of about 200 people each, as CSV, with typos, moves and missing values."""
    rng = np.random.default_rng(seed)
    chosen = {
        "first_name": rng.choice(FIRST_NAMES.split(), 300),
        "surname": rng.choice(SURNAMES.split(), 300),
        "birth_date": (np.datetime64("1940-01-01") + rng.integers(0, 22_000, 300)).astype(str),
        "town": rng.choice(TOWNS.split(), 300),
    }
    files: dict[Path, bytes] = {}
    for name, share in (("clinic", 0.75), ("pharmacy", 0.65), ("survey", 0.55)):
        rows = []
        for person in rng.permutation(np.flatnonzero(rng.random(300) < share)).tolist():
            row = {field: str(values[person]) for field, values in chosen.items()}
            if rng.random() < 0.1:
                row["town"] = str(rng.choice(TOWNS.split()))  # moved
            rows.append([_as_typed(value, rng) for value in row.values()])
        out = io.StringIO()
        csv.writer(out, lineterminator="\n").writerows([list(chosen), *rows])
        files[folder / f"{name}.csv"] = out.getvalue().encode()
    return write_files(files, overwrite=True)


def _as_typed(value: str, rng: np.random.Generator) -> str:
    """A value as somebody types it: one in 25 is missing, one in twelve has a wrong character."""
    if rng.random() < 0.04:
        return ""
    if rng.random() > 0.08:
        return value
    at = int(rng.integers(len(value)))
    wrong = str(rng.integers(10)) if value[at].isdigit() else LETTERS[rng.integers(26)]
    return value[:at] + wrong + value[at + 1 :]


#: What ``dfcrp example`` offers, and which tutorial it is for.
EXAMPLES: Mapping[str, Callable[[Path, int], list[Path]]] = MappingProxyType(
    {"craters": craters, "crowd": crowd, "boxes": boxes, "registers": registers}
)

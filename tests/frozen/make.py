"""Make the run folders that later versions must read, or refuse in words.

    python -m tests.frozen.make tests/frozen/NAME

makes them with the dfcrp that is imported, each a zip file of some kB, and ``draws.json``: what the
draws of each are, for whoever reads them later. Do it before a release, in a new folder, and keep
those of earlier versions: people have runs of theirs.
"""

from __future__ import annotations

import hashlib
import json
import sys
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import dfcrp

DRAWS = "draws.json"
SETTINGS: dict[str, Any] = {"chains": 2, "scans": 24, "workers": 1, "seed": 3, "progress": False}
Columns = dict[str, Any]


def crowd(kind: str, *, images: int = 1, seed: int = 1) -> Columns:
    """Four objects an image, each listed by most of three experts, and a stray item."""
    rng = np.random.default_rng(seed)
    place = rng.uniform(0.0, 200.0, (images, 4, 2))
    rows = [
        (image, expert, *(place[image, k] + rng.normal(0.0, 1.0, 2)), 20.0 + rng.normal())
        for image in range(images)
        for k in range(4)
        for expert in range(3)
        if (k + expert) % 4
    ]
    image, expert, x, y, size = (np.array(column) for column in zip(*rows, strict=True))
    values = {
        "circles": {"x": x, "y": y, "diameter": size},
        "points": {"x": x, "y": y},
        "boxes": {"x": x, "y": y, "width": size, "height": 0.7 * size},
        "ellipses": {"x": x, "y": y, "major": size, "minor": 0.8 * size, "angle": 9.0 * size},
        "normal": {"u": x, "v": y},
        "diagonal": {"u": x, "v": y, "w": size},
        "records": {
            "name": [f"object {a:.0f}" for a in np.round(x, -1)],
            "place": [f"place {b:.0f}" for b in np.round(y, -1)],
        },
    }[kind]
    about: Columns = {"expert": [f"expert {number:.0f}" for number in expert]}
    if images > 1:
        about["image"] = [f"image {number:.0f}" for number in image]
    return {**values, **about}


def items_of(kind: str, **how: Any) -> dfcrp.Items:
    """The same as items."""
    columns = crowd(kind, **how)
    about = {name: columns.pop(name) for name in ("expert", "image") if name in columns}
    more = {}
    if kind == "boxes":
        more["category"] = ["cat" if k % 3 else "dog" for k in range(len(about["expert"]))]
    return dfcrp.Items.from_columns(columns, kind=kind, **about, **more)


def stopped(out: Path) -> None:
    """A run that ended at its limit."""
    settings = {**SETTINGS, "scans": 10**7, "thin": 200, "max_minutes": 0.003}
    dfcrp.fit(items_of("circles"), out=out, **settings)


def saved(out: Path) -> None:
    """A posterior of memory, which cannot be resumed."""
    dfcrp.fit(items_of("circles"), **SETTINGS).save(out)


def sphere(out: Path) -> None:
    """Craters in longitude and latitude."""
    columns = crowd("circles")
    lines = ["lon,lat,diameter_km,expert"]
    for x, y, d, name in zip(*(columns[k] for k in ("x", "y", "diameter", "expert")), strict=True):
        lines.append(f"{x / 50.0:.6f},{y / 50.0:.6f},{d:.4f},{name}")
    table = out.parent / "craters.csv"
    table.write_text("\n".join([*lines, ""]))
    from dfcrp.cli.main import main

    settings = ("--scans", "24", "--chains", "2", "--workers", "1", "--quiet", "--no-report")
    if main(["fit", str(table), "--out", str(out), "--body", "moon", *settings]):
        raise SystemExit("the run on a sphere failed")


def run_of(kind: str, n_images: int = 1, **settings: Any) -> Callable[[Path], Any]:
    """A run of a kind with these settings."""
    return lambda out: dfcrp.fit(items_of(kind, images=n_images), out=out, **SETTINGS, **settings)


RUNS: dict[str, Callable[[Path], Any]] = {
    "circles": run_of("circles"),
    "circles-images": run_of("circles", 3),
    "circles-crp": run_of("circles", prior="crp"),
    "circles-preset": run_of("circles", preset="simulation", sampler="paper"),
    "circles-stopped": stopped,
    "circles-saved": saved,
    "circles-sphere": sphere,
    "points-detection": run_of("points", 3, prior="detection"),
    "boxes-detection": run_of("boxes", prior="detection"),
    "boxes-attraction": run_of("boxes", prior="attraction", persons=[["expert 0", "expert 1"]]),
    "ellipses-bias": run_of("ellipses", 2, images="shared", expert_bias="both"),
    "normal": run_of("normal"),
    "diagonal-constrained": run_of("diagonal", prior="constrained"),
    "records": run_of("records"),
}


def digest_of(run: Path) -> dict[str, Any]:
    """What the draws of a run are: the same for every version that can read it."""
    from dfcrp.runs.store import DrawStore

    store, found = DrawStore.open(run), hashlib.sha256()
    parts = store.parts()
    for part in parts:
        draws = store.draws(part)
        found.update(draws.label_array().tobytes())
        found.update(draws.alpha().tobytes())
    return {"parts": len(parts), "sha256": found.hexdigest()}


def make(into: Path) -> None:
    """All of them."""
    into.mkdir(parents=True)
    draws = {}
    for name, fit in RUNS.items():
        with tempfile.TemporaryDirectory() as place:
            run = Path(place) / "run"
            fit(run)
            draws[name] = digest_of(run)
            with zipfile.ZipFile(into / f"{name}.zip", "w", zipfile.ZIP_DEFLATED) as file:
                for path in sorted(run.rglob("*")):
                    if path.is_file():
                        file.write(path, path.relative_to(run))
    about = {"dfcrp": dfcrp.__version__, "runs": draws}
    (into / DRAWS).write_text(json.dumps(about, indent=1) + "\n")


if __name__ == "__main__":
    make(Path(sys.argv[1]))

"""Three simulated catalogues of the whole Moon: are they merged as well at ±180° and at the poles?

    ./run python -m studies.moon --out moon.json

Craters lie evenly over the sphere, with a power law of diameters from 5 km on; each expert finds
most of them, with errors in proportion to their size. Some craters are put astride the meridian of
180° and around both poles. The third expert counts longitudes from 0° to 360°.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dfcrp.fitting import fit
from dfcrp.geometry import TangentPlanes
from dfcrp.items.items import Items
from dfcrp.items.site import BODIES, Site

EXPERTS = ("Ann", "Bob", "Cleo")
DETECTION = 0.9
FALSE_SHARE = 0.01
SMALLEST_KM, SLOPE = 5.0, 2.0
#: Standard deviations: of a place relative to the diameter, of the log diameter.
PLACE_ERROR, SIZE_ERROR = 0.05, 0.05
#: Shares of the craters that are put within so many degrees of the meridian, and of the poles.
AT_180, NEAR_180 = 0.003, 0.2
AT_POLES, NEAR_POLES = 0.001, 3.0


def moon_craters(count: int, rng: np.random.Generator) -> tuple[NDArray[Any], ...]:
    """Longitude, latitude and diameter of craters that cover the Moon."""
    longitude = rng.uniform(-180.0, 180.0, count)
    latitude = np.degrees(np.arcsin(rng.uniform(-1.0, 1.0, count)))
    astride, polar = int(AT_180 * count), int(AT_POLES * count)
    longitude[:astride] = 180.0 + rng.uniform(-NEAR_180, NEAR_180, astride)
    away = NEAR_POLES * np.sqrt(rng.random(polar))
    latitude[astride : astride + polar] = rng.choice([-1.0, 1.0], polar) * (90.0 - away)
    diameter = SMALLEST_KM * (1.0 - rng.random(count)) ** (-1.0 / SLOPE)
    return longitude, latitude, np.minimum(diameter, 500.0)


def moon_markings(count: int, seed: int) -> Items:
    """What three experts mark of ``count`` craters, with the crater of each as its truth."""
    rng = np.random.default_rng(seed)
    longitude, latitude, diameter = moon_craters(count, rng)
    radius = BODIES["moon"]
    columns: dict[str, list[Any]] = {n: [] for n in ("x", "y", "diameter", "expert", "truth")}
    false = count
    for expert in EXPERTS:
        found = np.flatnonzero(rng.random(count) < DETECTION)
        ground = TangentPlanes(longitude[found], latitude[found], radius)
        wide = PLACE_ERROR * diameter[found]
        x, y = ground.places(
            wide * rng.standard_normal(found.size), wide * rng.standard_normal(found.size)
        )
        sizes = diameter[found] * np.exp(SIZE_ERROR * rng.standard_normal(found.size))
        wrong = moon_craters(int(FALSE_SHARE * count), rng)
        x, y, sizes = (np.concatenate(pair) for pair in zip((x, y, sizes), wrong, strict=True))
        if expert == EXPERTS[-1]:
            x = np.mod(x, 360.0)
        truth = np.concatenate([found, false + np.arange(len(wrong[0]))])
        false += len(wrong[0])
        given: tuple[Any, ...] = (x, y, sizes, [expert] * len(x), truth)
        for name, values in zip(columns, given, strict=True):
            columns[name] += list(values)
    about = {name: columns.pop(name) for name in ("expert", "truth")}
    site = Site("deg", body_radius_km=radius)
    return Items.from_columns(columns, about["expert"], truth=about["truth"], site=site)


def torn(markings: Items, labels: NDArray[Any]) -> tuple[int, int]:
    """Craters marked on both sides of the meridian of 180°, and how many of them are cut by it.

    Cut means that no marking of one side shares a cluster with one of the other.
    """
    assert markings.truth is not None
    near = np.flatnonzero(np.abs(np.mod(markings.x, 360.0) - 180.0) < 90.0)
    west = np.mod(markings.x, 360.0) > 180.0
    order = near[np.argsort(markings.truth[near], kind="stable")]
    groups = np.split(order, np.flatnonzero(np.diff(markings.truth[order])) + 1)
    astride = [g for g in groups if 0 < west[g].sum() < len(g)]
    cut = sum(not set(labels[g[west[g]]]) & set(labels[g[~west[g]]]) for g in astride)
    return len(astride), cut


def run(count: int, scans: int, seed: int, workers: int | None = None) -> dict[str, Any]:
    """Make the catalogues, fit them, and compare with the truth."""
    from sklearn.metrics import adjusted_rand_score

    markings = moon_markings(count, seed)
    begin = time.perf_counter()
    posterior = fit(
        markings,
        chains=1,
        scans=scans,
        burn_in=scans // 2,
        thin=max(scans // 20, 1),
        seed=seed,
        workers=workers,
    )
    seconds = time.perf_counter() - begin
    labels = posterior.point_partition().labels
    polar = np.abs(markings.y) > 90.0 - NEAR_POLES
    assert markings.truth is not None
    astride, cut = torn(markings, labels)
    return {
        "craters": count,
        "markings": len(markings),
        "by_expert": np.bincount(markings.families).tolist(),
        "scans": scans,
        "seed": seed,
        "seconds": round(seconds, 1),
        "ari": adjusted_rand_score(markings.truth, labels),
        "ari_at_the_poles": adjusted_rand_score(markings.truth[polar], labels[polar]),
        "markings_at_the_poles": int(polar.sum()),
        "craters_astride_180": astride,
        "cut_at_180": cut,
        "tolerances": posterior.tolerances,
    }


def main() -> None:
    """Run the study from the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--craters", type=int, default=110_000, help="on the Moon")
    parser.add_argument("--scans", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--workers", type=int, help="threads; all cores without")
    parser.add_argument("--out", type=Path, help="JSON file for the result")
    asked = parser.parse_args()
    found = run(asked.craters, asked.scans, asked.seed, asked.workers)
    text = json.dumps(found, indent=1)
    print(text)
    if asked.out is not None:
        asked.out.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

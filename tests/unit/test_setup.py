"""From items and settings to a problem: every setting has its effect, on every kind of item."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from dfcrp.items.given import items_of
from dfcrp.items.items import Items
from dfcrp.items.site import Site
from dfcrp.neighbours.neighbourhood import nearest_pairs
from dfcrp.sampling.problem import Problem, problem_of
from dfcrp.settings.config import make_config

RECORDS = {
    "name": ["Ann", "Anne", "Bob", "Rob", "Zoe", "Zo"],
    "year": ["1980", "1980", "1981", "1981", "1990", "1990"],
}


def problem(items: Items, run: dict[str, Any] | None = None, **sections: Any) -> Problem:
    named = {"likelihood": items.kind, **(run or {})}
    return problem_of(items, make_config({"run": named, **sections}))


def records() -> Items:
    return Items.from_columns(RECORDS, ["a", "b"] * 3, kind="records")


def circles(n: int = 40) -> Items:
    rng = np.random.default_rng(1)
    place = rng.uniform(0.0, 100.0, (n, 2))
    return Items.circles(*place.T, rng.uniform(20.0, 30.0, n), [f"e{i % 5}" for i in range(n)])


def pairs_in(made: Problem) -> set[tuple[int, int]]:
    """Who may share a cluster with whom, in input order."""
    data, found = made.data, set()
    for i in range(made.n):
        row = data.neighbours[data.neighbour_start[i] : data.neighbour_start[i + 1]]
        for j in np.where(row < 0, ~row, row):
            found.add(tuple(sorted((int(data.original[i]), int(data.original[j])))))
    return found


# α


@pytest.mark.filterwarnings("ignore:hardly any record")
@pytest.mark.parametrize("prior", ["dfcrp", "constrained", "crp", "attraction"])
def test_a_given_rate_of_alpha_is_used_as_it_is(prior: str) -> None:
    run = {"prior": prior, "persons": [["a", "b"]] if prior == "attraction" else []}
    made = problem(records(), run, prior={"alpha_rate": 0.25, "alpha_shape": 2.0})
    assert made.prior.alpha_rate == 0.25
    assert made.alpha_start == 8.0


@pytest.mark.filterwarnings("ignore:hardly any record")
def test_the_usual_rate_of_alpha_suits_the_kind() -> None:
    """Of records, most are of objects that few lists have: α goes with their number."""
    assert problem(records()).prior.alpha_rate == pytest.approx(1.0 / 6.0)
    assert problem(records(), prior={"alpha_rate": "auto"}).prior.alpha_rate == pytest.approx(1 / 6)
    assert problem(circles()).prior.alpha_rate == 0.01
    points = items_of(np.random.default_rng(2).random((10, 2)), np.arange(10) % 3, "points")
    assert problem(points).prior.alpha_rate == 0.01
    preset = problem(circles(), {"preset": "highlands"})
    assert (preset.prior.alpha_shape, preset.prior.alpha_rate) == (3.0, 0.04)


# Nearest neighbours


def test_nearest_holds_for_circles() -> None:
    """The three nearest of each, in standard deviations of places and log diameters."""
    items = circles()
    made = problem(items, {"nearest": 3})
    law = made.hyper.law
    scales = np.sqrt(np.exp([law[0], law[0], law[2]]))
    expected = nearest_pairs(items.features / scales, 3)
    assert pairs_in(made) == set(map(tuple, np.sort(expected, axis=1).tolist()))
    assert len(pairs_in(made)) < len(pairs_in(problem(items, {"radius": 60.0})))
    by_number = [len(pairs_in(problem(items, {"nearest": k}))) for k in (1, 3, 7)]
    assert by_number == sorted(set(by_number))


def test_nearest_holds_on_a_sphere_and_within_images() -> None:
    items = circles()
    sphere = replace(items, site=Site("deg", body_radius_km=1737.4))
    wide, narrow = (pairs_in(problem(sphere, {"nearest": k})) for k in (8, 2))
    assert narrow < wide
    assert len(narrow) <= 2 * len(items)
    image = np.array(["p", "q"])[np.arange(len(items)) % 2]
    two = replace(items, image=image)
    found = pairs_in(problem(two, {"nearest": 3}))
    assert found
    assert all(image[i] == image[j] for i, j in found)


@pytest.mark.parametrize("kind", ["points", "boxes", "diagonal", "normal"])
def test_nearest_holds_for_other_kinds(kind: str) -> None:
    values = np.random.default_rng(3).uniform(1.0, 9.0, (30, 2 if kind == "points" else 4))
    items = items_of(values, np.arange(30) % 4, kind)
    wide, narrow = (pairs_in(problem(items, {"nearest": k})) for k in (6, 2))
    assert narrow < wide


def test_given_pairs_are_the_only_ones() -> None:
    pairs = [(0, 1), (2, 3)]
    columns = {"x": [1.0, 1.1, 5.0, 5.1, 5.2], "y": [1.0, 1.0, 5.0, 5.0, 5.0]}
    for kind, more in (("points", {}), ("circles", {"diameter": [2.0] * 5})):
        items = Items.from_columns({**columns, **more}, list("abcde"), kind=kind, candidates=pairs)
        assert pairs_in(problem(items)) == set(pairs)


# Lists of one person, image by image

ATTRACTION = """
import json
import numpy as np
import dfcrp

rng = np.random.default_rng(4)
rows = []
for image, experts in (("all", "ABC"), ("one of two", "AC"), ("neither", "CD")):
    for x, y in rng.uniform(0, 400, (2, 2)):
        for expert in experts:
            place = np.array([x, y]) + rng.normal(0, 2, 2)
            rows.append((*place, 30 * np.exp(rng.normal(0, 0.05)), expert, image))
x, y, diameter, expert, image = zip(*rows)
items = dfcrp.Items.circles(x, y, diameter, expert, image=image)
found = dfcrp.fit(
    items, prior="attraction", persons=[["A", "B"]], chains=2, scans=8, seed=1, workers=1
)
alike = [name for name in found.images if "attraction" in found[name].draws.columns.names]
print(json.dumps({"images": list(found.images), "alike": alike, "rows": len(found.catalogue())}))
"""


def test_attraction_where_a_person_s_lists_are_not_all_on_every_image() -> None:
    """The kernels' source as plain Python: attraction takes long to compile."""
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    done = subprocess.run(
        [sys.executable, "-c", ATTRACTION],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["images"] == found["alike"] == ["all", "neither", "one of two"]
    assert found["rows"] > 3

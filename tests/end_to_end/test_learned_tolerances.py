"""Tolerances learned from the data: right on known data, and free of units."""

from __future__ import annotations

import numpy as np
import pytest

import dfcrp
from dfcrp.items.items import Items
from dfcrp.settings.config import make_config
from dfcrp.simulate import SimulationDesign

SETTINGS = {"chains": 2, "scans": 400, "burn_in": 100, "seed": 5}


def scaled(markings: Items, factor: float) -> Items:
    return Items.circles(
        factor * markings.x, factor * markings.y, factor * markings.diameter, markings.expert
    )


@pytest.fixture(scope="module")
def markings():
    return SimulationDesign(n_objects=60).draw(3)


@pytest.fixture(scope="module")
def posterior(markings):
    return dfcrp.fit(markings, **SETTINGS)


def test_the_spread_of_the_simulation_is_found(posterior):
    """Variances of 5 px² and 0.01, whatever the size; six experts on sixty objects."""
    found = posterior.summary()["tolerances"]
    assert found["position"]["lo"] < np.sqrt(5.0) < found["position"]["hi"]
    assert found["diameter_percent"]["lo"] < 10.0 < found["diameter_percent"]["hi"]
    assert found["position"]["hi"] < 1.3 * found["position"]["lo"]
    assert found["position_growth"]["lo"] < 0.0 < found["position_growth"]["hi"]


def test_markings_are_put_together_rightly(posterior, markings):
    labels = posterior.point_partition().labels
    same = labels[:, np.newaxis] == labels
    truly = markings.truth[:, np.newaxis] == markings.truth
    assert (same == truly).mean() > 0.999


@pytest.mark.parametrize("factor", [1e-3, 50.0, 1e6])
def test_units_do_not_matter(posterior, markings, factor):
    other = dfcrp.fit(scaled(markings, factor), **SETTINGS)
    here, there = posterior.coclustering(), other.coclustering()
    assert abs(here - there).max() < 0.2
    assert abs(posterior.n_clusters.mean() - other.n_clusters.mean()) < 0.5
    ratio = other.tolerances["position"]["mean"] / posterior.tolerances["position"]["mean"]
    assert ratio == pytest.approx(factor, rel=0.02)


@pytest.mark.long
def test_the_law_of_the_paper_is_not_free_of_units(markings):
    """What the test above would catch: the same with fixed tolerances."""
    fixed = {**SETTINGS, "config": make_config({"likelihood": {"tolerances": "fixed"}})}
    pixels = dfcrp.fit(markings, **fixed)
    other = dfcrp.fit(scaled(markings, 1e-3), **fixed)
    assert abs(pixels.n_clusters.mean() - other.n_clusters.mean()) > 5
    assert pixels.tolerances is None


@pytest.mark.parametrize(
    ("tables", "expected"),
    [
        ({}, "learned"),
        ({"run": {"preset": "highlands"}}, "fixed"),
        ({"likelihood": {"kappa_x": 0.1}}, "fixed"),
        ({"likelihood": {"kappa_x": 0.1, "tolerances": "learned"}}, "learned"),
        ({"run": {"preset": "reduced"}, "likelihood": {"tolerances": "learned"}}, "learned"),
    ],
)
def test_which_law_is_meant(tables, expected):
    assert make_config(tables).likelihood.tolerances == expected

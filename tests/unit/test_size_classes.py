"""Size classes that suit the data, in their unit, the same for all images and methods."""

from dataclasses import replace

import numpy as np
import pytest

import dfcrp
from dfcrp.baselines.comparison import _with_classes
from dfcrp.baselines.methods import Length
from dfcrp.fitting.api import complete_config
from dfcrp.items.items import Items
from dfcrp.items.site import Site
from dfcrp.report import write_report
from dfcrp.settings.config import resolve
from dfcrp.summaries.consensus import PAPER_EDGES, SizeClasses, choose_edges


def markings(diameter, **columns):
    rng = np.random.default_rng(1)
    n = len(diameter)
    reach = 40.0 * float(np.median(diameter))
    experts = [f"e{i % 3}" for i in range(n)]
    return Items.circles(rng.random(n) * reach, rng.random(n) * reach, diameter, experts, **columns)


def sizes(scale, n=300):
    return scale * np.random.default_rng(2).lognormal(0.0, 0.6, n)


def test_the_paper_s_edges_where_they_part_the_data():
    assert choose_edges(sizes(60.0), 3) == PAPER_EDGES


@pytest.mark.parametrize("scale", [1e-6, 0.03, 1.0, 20.0, 400.0, 7e8])
@pytest.mark.parametrize("classes", [2, 3, 5])
def test_other_data_have_classes_of_their_own(scale, classes):
    given = sizes(scale)
    edges = choose_edges(given, classes)
    assert len(edges) == classes - 1
    assert list(edges) == sorted(set(edges))
    held = np.bincount(np.searchsorted(edges, given, side="right"), minlength=classes)
    assert held.min() > 0.4 * len(given) / classes
    for edge in edges:
        assert float(f"{edge:.2g}") == edge


@pytest.mark.parametrize("value", [1e-9, 7.0, 1e5])
def test_one_size_for_all_has_classes_too(value):
    edges = choose_edges(np.full(9, value), 4)
    assert len(edges) == 3
    assert list(edges) == sorted(set(edges))


def test_no_classes_no_edges():
    assert choose_edges(sizes(1.0), 0) == ()


def test_a_fit_settles_the_classes():
    small = markings(sizes(0.4))
    found = complete_config(small, resolve(None, {})).summary
    assert found.class_edges == choose_edges(small.diameter, 3)
    asked = resolve({"summary": {"class_edges": [0.1, 9.0]}}, {})
    assert complete_config(small, asked).summary.class_edges == (0.1, 9.0)
    none = {"summary": {"class_edges": [], "class_names": []}}
    assert complete_config(small, resolve(none, {})).summary.class_edges == ()
    two = complete_config(small, resolve({"summary": {"class_names": ["s", "l"]}}, {})).summary
    assert two.class_edges == choose_edges(small.diameter, 2)


def test_a_preset_has_the_paper_s():
    found = complete_config(markings(sizes(20.0)), resolve(None, {"preset": "simulation"}))
    assert found.summary.class_edges == PAPER_EDGES


def test_all_methods_have_the_same():
    small = markings(sizes(0.4))
    assert _with_classes(Length(), small).summary["class_edges"] == choose_edges(small.diameter, 3)
    assert _with_classes(Length(preset="reduced"), small).summary["class_edges"] == PAPER_EDGES
    asked = Length(summary={"class_edges": (1.0,), "class_names": ("a", "b")})
    assert _with_classes(asked, small) is asked


def test_classes_are_named_in_their_unit(tmp_path):
    assert SizeClasses((0.5, 1.0), unit="km").bounds == (
        "below 0.5 km",
        "0.5 to 1 km",
        "1 km and more",
    )
    where = replace(markings(sizes(0.4, 30)), site=Site("km"))
    posterior = dfcrp.fit(where, chains=1, scans=12, out=tmp_path / "run")
    edges = choose_edges(where.diameter, 3)
    assert posterior.size_classes == SizeClasses(edges, unit="km")
    assert dfcrp.load(tmp_path / "run").size_classes == posterior.size_classes
    page = write_report(posterior, tmp_path / "run").read_text(encoding="utf-8")
    assert f"small (below {edges[0]:g} km)" in page
    assert f"are separated at {edges[0]:g} and {edges[1]:g} km" in page


def test_images_have_the_classes_of_the_run():
    given = np.concatenate([sizes(0.2, 40), sizes(3.0, 40)])
    images = ["a"] * 40 + ["b"] * 40
    posterior = dfcrp.fit(markings(given, image=images), chains=1, scans=12)
    edges = choose_edges(given, 3)
    assert posterior.size_classes.edges == edges
    assert posterior["a"].size_classes.edges == posterior["b"].size_classes.edges == edges

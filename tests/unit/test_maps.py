"""Maps of every kind of item: outlines where they are, and of what has no place none."""

from dataclasses import replace

import numpy as np
import pytest

from dfcrp import plots
from dfcrp.errors import InputError, SettingsError
from dfcrp.items.items import Items
from dfcrp.items.site import Site
from dfcrp.plots import maps, style
from dfcrp.plots.flat import flat_catalogue, flat_map, flat_map_or_none
from dfcrp.posterior.posterior import Posterior
from reference.kind_posteriors import KINDS, kind_posterior
from reference.small_posteriors import posterior_of

PLACED = [kind for kind in KINDS if kind != "records"]
MAPS = ("items_map", "catalogue_map", "expert_panels", "singletons")


@pytest.fixture(scope="module", params=PLACED)
def posterior(request):
    return kind_posterior(request.param, n_objects=12, n_experts=3, n_draws=8)


@pytest.mark.parametrize("figure", MAPS)
def test_every_map_is_drawn(posterior, figure, tmp_path):
    table, axes = getattr(plots, f"plot_{figure}")(posterior)
    first = axes[0] if isinstance(axes, list) else axes
    plots.save_figure(first.get_figure(root=True), tmp_path, figure)
    equal = first.get_aspect() == 1.0
    assert equal == (posterior.items.kind in ("points", "boxes", "ellipses"))
    if figure in ("items_map", "catalogue_map"):
        placed = flat_map(posterior.items)
        count = len(posterior.items) if figure == "items_map" else len(posterior.catalogue())
        assert len(table.outlines) == count
        left, right, low, high = table.region
        across, up = placed.half
        assert left < (placed.x - across).min()
        assert right > (placed.x + across).max()
        assert low < (placed.y - up).min()
        assert high > (placed.y + up).max()
        assert (first.get_xlabel(), first.get_ylabel()) == placed.axes


def test_the_neighbourhood_of_points_and_boxes():
    for kind in ("points", "boxes"):
        posterior = kind_posterior(kind, n_objects=12, n_experts=3, n_draws=8)
        found = posterior.explain(0)
        table, axes = plots.plot_neighbourhood(posterior, found)
        assert table.noun == posterior.likelihood.noun
        assert 0 not in table.items
        legend = [text.get_text() for text in axes.get_legend().get_texts()]
        assert legend[0].startswith(f"{table.noun} i0 ")


@pytest.mark.parametrize("figure", MAPS)
def test_records_have_no_map(figure):
    posterior = kind_posterior("records", n_objects=6, n_experts=3, n_draws=4)
    assert flat_map_or_none(posterior.items) is None
    with pytest.raises(InputError, match="a map needs items with a place; records have none"):
        getattr(plots, f"plot_{figure}")(posterior)


def test_outlines_of_the_catalogue_are_its_columns():
    posterior = kind_posterior("ellipses", n_objects=12, n_experts=3, n_draws=8)
    table = posterior.catalogue()
    placed = flat_catalogue(posterior, table)
    for name, column in (("x", "x"), ("width", "major"), ("height", "minor"), ("angle", "angle")):
        assert getattr(placed, name).tolist() == table[column].tolist()


@pytest.mark.parametrize("kind", ["boxes", "ellipses"])
def test_the_box_around_a_turned_outline(kind):
    """Half its width and height, against points all around the rim."""
    rng = np.random.default_rng(4)
    columns = {"x": [0.0] * 5, "y": [0.0] * 5, "major": rng.uniform(3, 5, 5)}
    columns |= {"minor": rng.uniform(1, 3, 5), "angle": rng.uniform(0, 180, 5)}
    placed = flat_map(Items.from_columns(columns, list("ABCDE"), kind="ellipses"))
    if kind == "boxes":
        placed = type(placed)(**{**vars(placed), "shape": "box"})
    t = np.linspace(0.0, 2.0 * np.pi, 2001)
    u, v = np.cos(t), np.sin(t)
    if kind == "boxes":
        u, v = (part / np.maximum(np.abs(u), np.abs(v)) for part in (u, v))
    cos, sin = np.cos(np.radians(placed.angle)), np.sin(np.radians(placed.angle))
    a, b = placed.width / 2.0, placed.height / 2.0
    x = np.outer(u, a * cos) - np.outer(v, b * sin)
    y = np.outer(u, a * sin) + np.outer(v, b * cos)
    across, up = placed.half
    assert across == pytest.approx(x.max(axis=0), rel=1e-3)
    assert up == pytest.approx(y.max(axis=0), rel=1e-3)
    if kind == "boxes":
        corners = maps.add_outlines(style.single_axes(3.0, 3.0), placed).get_paths()
        ends = np.array([path.vertices.max(axis=0) for path in corners])
        assert ends == pytest.approx(np.column_stack([across, up]))


def test_points_in_one_place_have_room():
    items = Items.from_columns({"x": [2.0, 2.0], "y": [3.0, 3.0]}, ["A", "B"], kind="points")
    left, right, low, high = maps.frame(flat_map(items))
    assert left < 2.0 < right
    assert low < 3.0 < high


def circles(site):
    found = Items.circles([0.0, 40.0, 100.0], [0.0, 5.0, 50.0], [3.0, 4.0, 5.0], ["a", "b", "a"])
    return replace(found, site=site)


@pytest.mark.parametrize(
    ("site", "unit", "length", "words"),
    [
        (Site("km"), "km", 20.0, "20 km"),
        (Site("m"), "m", 20.0, "20 m"),
        (Site("px", metres_per_pixel=0.5), "px", 20.0, "10 m"),
        (Site("px", metres_per_pixel=200.0), "px", 25.0, "5 km"),
    ],
)
def test_maps_have_their_unit_and_a_scale_bar(site, unit, length, words):
    placed, region = flat_map(circles(site)), (0.0, 100.0, 0.0, 50.0)
    assert placed.unit == unit
    found, said = maps.bar_length(region, placed)
    assert found == pytest.approx(length)
    assert said == words
    posterior = posterior_of(np.tile(np.arange(3, dtype=np.int32), (2, 4, 1)), circles(site))
    for figure in MAPS:
        _, axes = getattr(plots, f"plot_{figure}")(posterior)
        panels = axes if isinstance(axes, list) else [axes]
        bars = [text for ax in panels for text in ax.texts if text.get_text().endswith("m")]
        assert len(bars) == 1
        if len(panels) == 1:
            assert panels[0].get_xlabel() == f"x ({unit})"
            assert panels[0].get_ylabel() == f"y ({unit})"


def test_a_bar_on_a_sphere_is_as_long_as_on_the_ground():
    site = Site("deg", body_radius_km=1000.0)
    placed = flat_map(circles(site))
    region = (10.0, 14.0, 58.0, 62.0)
    length, words = maps.bar_length(region, placed)
    kilometres = float(words.removesuffix(" km"))
    on_the_ground = np.radians(length) * 1000.0 * np.cos(np.radians(60.0))
    assert on_the_ground == pytest.approx(kilometres)
    assert length <= 1.0


def test_short_bars_are_in_metres():
    placed = flat_map(circles(Site("km")))
    assert maps.bar_length((0.0, 0.9, 0.0, 1.0), placed)[1] == "200 m"


def test_no_bar_where_nothing_is_known_of_the_ground():
    posterior = posterior_of(np.tile(np.arange(3, dtype=np.int32), (2, 4, 1)), circles(Site("px")))
    _, ax = plots.plot_items_map(posterior)
    assert (ax.get_xlabel(), list(ax.texts), list(ax.lines)) == ("x", [], [])


def test_items_are_coloured_by_category():
    made = kind_posterior("points", n_objects=12, n_experts=3, n_draws=8)
    count = len(made.items)
    told = np.array([f"kind {k % 8}" if k else "" for k in range(count)])
    items = replace(made.items, category=told)
    posterior = Posterior(made.draws, items, made.config, made.record)
    table, ax = plots.plot_items_map(posterior, colour="category")
    sizes = {name: int((told == name).sum()) for name in set(told.tolist()) - {""}}
    assert list(table.names) == sorted(sizes, key=lambda name: (-sizes[name], name))[:6]
    for k, name in enumerate(table.names):
        assert ((table.group == k) == (told == name)).all()
    legend = [text.get_text() for text in ax.get_legend().get_texts()]
    assert legend == [*table.names, "other, or none"]
    drawn = [c.get_offsets() for c in ax.collections]
    assert sum(map(len, drawn)) == count
    with pytest.raises(SettingsError, match="no category"):
        plots.plot_items_map(made, colour="category")
    with pytest.raises(SettingsError, match="must be"):
        plots.plot_items_map(posterior, colour="expert")

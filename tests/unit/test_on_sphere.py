"""Markings in degrees: distances, neighbours, catalogue and messages at ±180° and at the poles."""

import dataclasses
import math

import numpy as np
import pytest

import dfcrp
from dfcrp.baselines import compare, dbscan_r14
from dfcrp.baselines.wrapping import posterior_of_labels
from dfcrp.errors import InputError, SettingsError
from dfcrp.geometry import TangentPlanes, counted_from, degrees_of, seam, unit_vectors
from dfcrp.items.items import Items
from dfcrp.items.site import Site
from dfcrp.likelihoods.circle.hyper import set_apart_on_sphere, sphere_features
from dfcrp.plots.flat import flat_map, middle_stretch, stretch
from dfcrp.sampling.problem import problem_of
from dfcrp.settings.config import make_config
from studies.moon import moon_markings, torn

MOON = Site("deg", body_radius_km=1737.4)


def markings_of(x, y, diameter, expert, site=MOON):
    return dataclasses.replace(Items.circles(x, y, diameter, expert), site=site)


def great_circle(lon1, lat1, lon2, lat2):
    """By the haversine formula."""
    a, b, c = map(math.radians, (lat1, lat2, lon2 - lon1))
    h = math.sin((b - a) / 2) ** 2 + math.cos(a) * math.cos(b) * math.sin(c / 2) ** 2
    return 2 * 1737.4 * math.asin(math.sqrt(h))


def test_planes_and_degrees():
    rng = np.random.default_rng(1)
    lon = np.concatenate([rng.uniform(-180, 360, 50), [180.0, -180.0, 0.0]])
    lat = np.concatenate([rng.uniform(-90, 90, 50), [0.0, 90.0, -90.0]])
    vectors = unit_vectors(lon, lat)
    again = degrees_of(vectors)
    assert unit_vectors(*again) == pytest.approx(vectors)
    ground = TangentPlanes(lon, lat, 1737.4)
    east, north = rng.normal(0.0, 5.0, (2, len(lon)))
    there = ground.places(east, north)
    assert np.column_stack(ground.offsets(*there)) == pytest.approx(np.column_stack([east, north]))
    apart = [great_circle(*pair) for pair in zip(lon, lat, *there, strict=True)]
    assert apart == pytest.approx(np.hypot(east, north), rel=1e-4)


@pytest.mark.parametrize("radius", [3.0, 40.0])
def test_neighbours_are_those_within_the_radius_on_the_ground(radius):
    rng = np.random.default_rng(2)
    lon = np.concatenate([180 + rng.uniform(-1, 1, 30), rng.uniform(0, 360, 30)])
    lon[::2] -= 360
    lat = np.concatenate(
        [rng.uniform(-1, 1, 30), rng.choice([-1, 1], 30) * rng.uniform(89, 90, 30)]
    )
    data = markings_of(lon, lat, np.full(60, 10.0), np.array(["a", "b", "c"] * 20))
    config = make_config({"run": {"radius": radius, "prior": "crp"}})
    found = problem_of(data, config).data
    pairs = set()
    for i in range(60):
        for edge in range(found.neighbour_start[i], found.neighbour_start[i + 1]):
            pairs.add((int(found.original[i]), int(found.original[found.neighbours[edge]])))
    expected = {
        (i, j)
        for i in range(60)
        for j in range(60)
        if i != j and great_circle(lon[i], lat[i], lon[j], lat[j]) <= radius
    }
    assert pairs == expected
    assert len(expected) > 20


@pytest.mark.parametrize(
    ("longitudes", "cut", "counted"),
    [
        ([179.0, -179.5, 178.0], -0.75, [179.0, 180.5, 178.0]),
        ([10.0, 20.0], -165.0, [10.0, 20.0]),
        ([355.0, 5.0, 350.0], 177.5, [355.0, 365.0, 350.0]),
        ([*range(-180, 180, 10)], -180.0, [*range(-180, 180, 10)]),
        ([*range(0, 360, 10)], 0.0, [*range(0, 360, 10)]),
        ([*range(-180, 180, 10), 350.0], -180.0, [*range(-180, 180, 10), -10.0]),
    ],
)
def test_maps_are_cut_where_nothing_is(longitudes, cut, counted):
    given = np.array(longitudes, float)
    assert seam(given) == pytest.approx(cut)
    assert counted_from(given, seam(given)).tolist() == pytest.approx(counted)


def test_circles_are_round_on_a_map():
    """Width over height on paper, at the middle of the map: the map's own stretch undoes it."""
    data = markings_of([-179.9, 179.9], [60.0, 60.0], [30.0, 30.0], ["a", "b"])
    placed = flat_map(data)
    assert np.ptp(placed.x) == pytest.approx(0.2)
    assert placed.size == pytest.approx(np.degrees(30.0 / 1737.4) * np.ones(2))
    assert stretch(60.0, placed.degrees) == pytest.approx(2.0)
    assert middle_stretch((0.0, 1.0, 59.0, 61.0), placed.degrees) == pytest.approx(2.0)
    assert stretch(90.0, placed.degrees) < 60.0
    assert stretch(60.0, degrees=False) == 1.0


def test_ties_stay_on_the_sphere():
    data = markings_of([10.0] * 4, [20.0] * 4, [5.0] * 4, ["a", "b", "c", "d"])
    features = sphere_features(data, 1.0)
    moved = set_apart_on_sphere(features, data.families)
    places = moved[:, [0, 1, 3]]
    assert np.linalg.norm(places, axis=1) == pytest.approx(np.full(4, 1737.4))
    distance = np.linalg.norm(places - features[:, [0, 1, 3]], axis=1)
    assert (distance > 0).all()
    assert (distance < 0.05).all()
    assert moved[:, 2].tolist() == features[:, 2].tolist()  # four experts of one size may stay


def test_what_is_missing_is_asked_for():
    data = markings_of([1.0, 2.0], [1.0, 2.0], [3.0, 3.0], ["a", "b"], Site("deg"))
    with pytest.raises(InputError, match="--body"):
        dfcrp.fit(data, scans=2)
    known = dataclasses.replace(data, site=MOON)
    with pytest.raises(SettingsError, match="--metres-per-pixel"):
        problem_of(known, make_config({"run": {"preset": "highlands"}}))
    unlike = problem_of(known, make_config({"likelihood": {"expert_bias": "both"}}))
    assert {"offset[a, x]", "log_noise[b]"} <= set(unlike.columns.names)
    scaled = dataclasses.replace(MOON, metres_per_pixel=500.0)
    problem = problem_of(
        dataclasses.replace(data, site=scaled), make_config({"run": {"preset": "highlands"}})
    )
    assert problem.hyper.radius == pytest.approx(1737.4 * 2)
    assert np.exp(problem.data.features[0, 2]) == pytest.approx(6.0)
    with pytest.raises(SettingsError, match="in pixels, the data are in km"):
        dfcrp.fit(dataclasses.replace(data, site=Site("km")), preset="reduced", scans=2)


def test_dbscan_reaches_across():
    data = markings_of([179.999, -179.997, 180.0], [0.0] * 3, [5.0] * 3, ["a", "b", "c"])
    labels = dbscan_r14(data, min_points=3)
    assert labels.tolist() == [0, 0, 0]
    (row,) = posterior_of_labels(labels, data).catalogue().itertuples()
    assert row.x == pytest.approx(180.0 + 0.002 / 3, abs=1e-4)


def test_methods_for_a_plane_are_left_out():
    data = markings_of([179.999, -179.999, 180.0], [0.0] * 3, [5.0] * 3, ["a", "b", "c"])
    with pytest.raises(InputError, match="k-means: not for longitude and latitude"):
        compare(data, ["kmeans", "dbscan"])
    assert [outcome.name for outcome in compare(data, ["dbscan"]).outcomes] == ["dbscan"]


def test_several_images_are_each_on_the_sphere():
    """One image lies astride 180°, the other at a pole."""
    lon = [179.99, -179.99, 180.0, 10.0, 130.0, 250.0]
    lat = [0.0, 0.001, -0.001, 89.999, 89.999, 89.999]
    images = ["east"] * 3 + ["pole"] * 3
    data = Items.circles(lon, lat, [9.0] * 6, ["a", "b", "c"] * 2, image=images)
    data = dataclasses.replace(data, site=MOON)
    table = dfcrp.fit(data, chains=1, scans=60, burn_in=20, seed=1, min_experts=2).catalogue()
    assert len(table) == 2
    east, pole = table.itertuples()
    assert great_circle(east.x, east.y, 180.0, 0.0) < 0.5
    assert great_circle(pole.x, pole.y, 0.0, 90.0) < 0.5


@pytest.fixture(scope="module")
def whole_moon():
    markings = moon_markings(1_000, seed=3)
    return markings, dfcrp.fit(markings, chains=1, scans=60, burn_in=30, seed=1, min_experts=2)


def test_the_whole_moon_is_merged(whole_moon):
    from sklearn.metrics import adjusted_rand_score

    markings, posterior = whole_moon
    labels = posterior.point_partition().labels
    assert adjusted_rand_score(markings.truth, labels) > 0.98
    # Three craters are astride the meridian by design, and most are marked on both sides.
    astride, cut = torn(markings, labels)
    assert astride >= 1
    assert cut == 0


def test_the_catalogue_is_in_degrees_and_km(whole_moon):
    """Against the members' mean, which a cluster's place is near; also where 180° is crossed."""
    markings, posterior = whole_moon
    table = posterior.catalogue()
    labels = posterior.point_partition().labels
    for row in table.itertuples():
        members = np.flatnonzero(labels == row.cluster)
        middle = unit_vectors(markings.x[members], markings.y[members]).mean(axis=0)
        (lon,), (lat,) = (np.atleast_1d(part) for part in degrees_of(middle))
        size = markings.diameter[members].mean()
        assert great_circle(row.x, row.y, lon, lat) < 0.1 * size
        assert row.diameter == pytest.approx(size, rel=0.15)
        on_ground = math.radians(row.y_sd) * 1737.4
        # A cluster of which one marking may be careless is known less well.
        assert 0.005 * size < on_ground < 0.3 * size
        assert row.x_lo <= row.x <= row.x_hi
        if abs(row.y) < 89:
            east = math.radians(row.x_sd) * 1737.4 * math.cos(math.radians(row.y))
            assert 0.2 < east / on_ground < 5.0
    assert posterior.explain(int(table.cluster[0])).text()

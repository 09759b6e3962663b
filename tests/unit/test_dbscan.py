"""R14's DBSCAN: the published counts, scikit-learn's answer, and the rule in plain loops."""

from __future__ import annotations

import csv

import numpy as np
import pytest
from sklearn.cluster import DBSCAN

from dfcrp.baselines import clusters_breaking_family_rule, dbscan_r14
from dfcrp.baselines.without_model import dbscan_r14_each
from dfcrp.errors import SettingsError
from dfcrp.items.items import Items
from shared_data import highlands_path


@pytest.fixture(scope="module")
def highlands() -> Items:
    """All markings of the eleven experts, before any cut by size."""
    with open(highlands_path(), newline="") as file:
        rows = [
            row for row in csv.DictReader(file, delimiter=" ") if row["Observer"] != "Concensus"
        ]
    numbers = [[float(row[name]) for row in rows] for name in ("X", "Y", "Diameter")]
    return Items.circles(*numbers, [row["Observer"] for row in rows])


def random_markings(seed: int, n: int = 150, images: int = 1) -> Items:
    """Crowded enough for chains, border markings and noise; diameters over three octaves."""
    rng = np.random.default_rng(seed)
    return Items.circles(
        rng.uniform(0, 60, n),
        rng.uniform(0, 60, n),
        10 * 8 ** rng.random(n),
        rng.choice(list("ABCDE"), n),
        image=[f"image {k}" for k in rng.integers(0, images, n)],
    )


def neighbour_matrix(m: Items, distance: float, diameter: float) -> np.ndarray:
    assert m.image is not None
    n = len(m)
    matrix = np.zeros((n, n), bool)
    for i in range(n):
        for j in range(n):
            apart = np.hypot(m.x[i] - m.x[j], m.y[i] - m.y[j])
            near = apart < distance * (m.diameter[i] + m.diameter[j]) / 2
            smaller = min(m.diameter[i], m.diameter[j])
            alike = abs(m.diameter[i] - m.diameter[j]) < diameter * smaller
            matrix[i, j] = near and alike and m.image[i] == m.image[j]
    return matrix


def same_partition(a: np.ndarray, b: np.ndarray) -> bool:
    return np.array_equal(np.equal.outer(a, a), np.equal.outer(b, b))


@pytest.mark.parametrize(
    ("min_points", "clusters", "classes"),
    [(5, 1170, (755, 94, 40)), (6, None, (714, 87, 35)), (4, None, (795, 101, 47))],
)
def test_counts_of_the_highlands_image(highlands, min_points, clusters, classes):
    labels = dbscan_r14(highlands, min_points=min_points)
    inside = labels >= 0
    mean_diameter = np.bincount(labels[inside], highlands.diameter[inside]) / np.bincount(
        labels[inside]
    )
    found = np.histogram(mean_diameter, [18, 50, 100, np.inf])[0]
    # The paper's figures for five and six points can be met exactly; for four nearly.
    assert found == pytest.approx(np.array(classes), abs=2 if min_points == 4 else 0)
    if clusters is not None:
        assert mean_diameter.size == clusters
        assert found.sum() == 889


@pytest.mark.parametrize("diameter", [0.2, 0.5, 3.0])
@pytest.mark.parametrize("seed", range(5))
def test_agrees_with_scikit_learn(seed, diameter):
    m = random_markings(seed, images=1 + seed % 2)
    neighbours = neighbour_matrix(m, 0.3, diameter)
    theirs = DBSCAN(eps=0.5, min_samples=4, metric="precomputed").fit(1.0 - neighbours)
    ours = dbscan_r14(m, distance=0.3, diameter=diameter, min_points=4)
    core = np.zeros(len(m), bool)
    core[theirs.core_sample_indices_] = True
    np.testing.assert_array_equal(ours == -1, theirs.labels_ == -1)
    assert same_partition(ours[core], theirs.labels_[core])
    # A border marking may belong to several clusters; ours is that of its nearest core.
    for i in np.flatnonzero(~core & (ours >= 0)):
        reached = np.flatnonzero(core & neighbours[i])
        apart = np.hypot(m.x[reached] - m.x[i], m.y[reached] - m.y[i])
        nearest = reached[np.argmin(apart / (m.diameter[reached] + m.diameter[i]))]
        assert ours[i] == ours[nearest]


def test_counting_experts():
    m = random_markings(7, n=200)
    neighbours = neighbour_matrix(m, 0.3, 0.5)
    experts_around = np.array([len(set(m.expert[row])) for row in neighbours])
    labels = dbscan_r14(m, distance=0.3, min_points=4, count="experts")
    core = experts_around >= 4
    assert core.any()
    np.testing.assert_array_equal(labels >= 0, core | neighbours[:, core].any(axis=1))


@pytest.mark.parametrize("count", ["markings", "experts"])
def test_several_thresholds_at_once(count):
    m = random_markings(6)
    found = dbscan_r14_each(m, (5, 2, 3, 5), 0.3, 0.5, count)
    assert list(found) == [2, 3, 5]
    for least, labels in found.items():
        np.testing.assert_array_equal(labels, dbscan_r14(m, 0.3, 0.5, least, count))
    assert not np.array_equal(found[2], found[5])
    with pytest.raises(SettingsError, match="min_points is 0"):
        dbscan_r14_each(m, (4, 0))


def test_order_of_rows_does_not_matter():
    m = random_markings(8)
    shuffled = np.random.default_rng(9).permutation(len(m))
    again = Items.circles(m.x[shuffled], m.y[shuffled], m.diameter[shuffled], m.expert[shuffled])
    labels = dbscan_r14(m, 0.3, 0.5, 4)
    assert same_partition(dbscan_r14(again, 0.3, 0.5, 4), labels[shuffled])
    numbers = labels[labels >= 0]
    first_seen = np.unique(numbers, return_index=True)[1]
    assert (np.diff(first_seen) > 0).all()


def test_a_single_marking_is_noise():
    one = Items.circles([1.0], [2.0], [30.0], ["A"])
    assert dbscan_r14(one).tolist() == [-1]
    assert dbscan_r14(one, min_points=1).tolist() == [0]


def test_clusters_breaking_the_family_rule():
    labels = [0, 0, 1, 1, 2, 2, 2, -1, -1]
    families = ["A", "B", "A", "A", "C", "B", "C", "D", "D"]
    assert clusters_breaking_family_rule(labels, families).tolist() == [1, 2]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"distance": 0.0}, "distance is 0.0"),
        ({"diameter": -1.0}, "diameter is -1.0"),
        ({"min_points": 0}, "min_points is 0"),
        ({"count": "people"}, "count is 'people'"),
    ],
)
def test_settings_out_of_range_are_refused(settings, message):
    with pytest.raises(SettingsError, match=message):
        dbscan_r14(random_markings(1, n=5), **settings)

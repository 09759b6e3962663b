"""k-means, labels as a Posterior, and the methods side by side."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.cluster import KMeans

from dfcrp.baselines import Length, compare, dbscan_r14, kmeans, make_methods, posterior_of_labels
from dfcrp.baselines.methods import Offers, mean_counts
from dfcrp.baselines.without_model import scaled_features
from dfcrp.errors import InputError, SettingsError
from dfcrp.items.items import Items
from dfcrp.simulate import paper_design

SHORT = Length(chains=2, scans=60, burn_in=20, preset="simulation")


@pytest.fixture(scope="module")
def markings() -> Items:
    return paper_design(11, n_objects=12)


def test_kmeans_with_k_given_is_scikit_learn_s(markings):
    ours = kmeans(markings, 14, seed=3)
    theirs = KMeans(14, n_init=1, random_state=3).fit(scaled_features(markings)).labels_
    np.testing.assert_array_equal(ours, theirs)


def test_the_silhouette_finds_clusters_that_lie_apart():
    rng = np.random.default_rng(2)
    centre = np.repeat(np.arange(9) * 300.0, 4)
    clear = Items.circles(
        centre + rng.normal(0, 1, 36), rng.normal(0, 1, 36), np.full(36, 40.0), list("ABCD") * 9
    )
    labels = kmeans(clear)
    assert len(np.unique(labels)) == 9
    assert all(len(set(labels[4 * k : 4 * k + 4])) == 1 for k in range(9))


def test_kmeans_refuses_impossible_k(markings):
    with pytest.raises(SettingsError, match="k is 0"):
        kmeans(markings, 0)


def test_labels_as_a_posterior(markings):
    labels = dbscan_r14(markings)
    assert (labels == -1).any()
    posterior = posterior_of_labels(labels, markings, diameter="members")
    catalogue = posterior.catalogue()
    # Noise markings are alone, clusters stay as they were.
    assert len(catalogue) == labels.max() + 1 + (labels == -1).sum()
    for _, row in catalogue.iterrows():
        members = np.flatnonzero(posterior.labels[0, 0] == row["cluster"])
        assert row["x"] == pytest.approx(markings.x[members].mean(), rel=1e-6)
        assert row["diameter"] == pytest.approx(markings.diameter[members].mean(), rel=1e-6)
    summary = posterior.summary()
    assert summary["n_clusters"]["mean"] == len(catalogue)
    assert len(posterior.members()) == len(markings)
    assert len(posterior.experts()) == 6


def test_labels_of_other_markings_are_refused(markings):
    with pytest.raises(InputError, match="do not fit"):
        posterior_of_labels([0, 1, 2], markings)


def test_all_methods_side_by_side(markings):
    told: list[str] = []
    result = compare(markings, length=SHORT, thresholds=(3, 5), progress=told.append)
    rows = {row["method"]: row for row in result.rows()}
    assert list(rows) == [method.name for method in make_methods(None, SHORT)]
    assert told == [outcome.title for outcome in result.outcomes]
    for name, row in rows.items():
        classes = [row[f"at_least_3_{size}"] for size in ("small", "medium", "large")]
        assert sum(classes) == pytest.approx(row["at_least_3_all"])
        assert row["at_least_5_all"] <= row["at_least_3_all"] <= row["clusters"]
        assert row[f"ari_{name}"] == 1.0
        assert row[f"vi_{name}"] == 0.0
        # Tight clusters, far apart: no method is far from the truth.
        assert row["ari_truth"] > 0.6
        assert 0 <= row["vi_truth"] < 1.5
    for name in ("dfcrp", "constrained"):
        assert rows[name]["breaking_rule"] == 0
    np.testing.assert_array_equal(result.ari, result.ari.T)
    assert result.broken_claims() == []


def test_the_table_of_criteria_is_the_paper_s_where_it_should_be(markings):
    result = compare(markings, ["dbscan", "crp", "ddcrp", "dfcrp"], length=SHORT)
    table = {row.pop("criterion"): row for row in result.features()}
    assert table["UQ on assignment"]["DBSCAN (R14)"] is False
    assert table["UQ on assignment"]["CRP"] is True
    assert table["Incorporates expert structure"]["CRP"] is False
    assert all(row["DFCRP"] for row in table.values())


class Boaster:
    """Claims everything and puts all markings into one cluster."""

    name = title = "boaster"
    offers = Offers(True, True, True, True)

    def fit(self, markings):
        return posterior_of_labels(np.zeros(len(markings), int), markings)

    counts = staticmethod(mean_counts)


def test_a_claim_that_the_result_belies_is_not_believed(markings):
    result = compare(markings, [Boaster(), "dbscan"], length=SHORT)
    assert result.rows()[0]["breaking_rule"] == 1
    assert result.broken_claims() == [
        "boaster: UQ on assignment",
        "boaster: Incorporates expert structure",
    ]
    assert [row["boaster"] for row in result.features()] == [True, True, False, False]


def test_wrong_requests_are_refused(markings):
    with pytest.raises(SettingsError, match="did you mean 'dbscan'"):
        compare(markings, ["dbscn"])
    with pytest.raises(InputError, match="each method once"):
        compare(markings, ["dbscan", "dbscan"])
    with pytest.raises(InputError, match="truth has 2 labels"):
        compare(markings, ["dbscan"], truth=[0, 1])

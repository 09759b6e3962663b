"""Consensus, expert and catalogue tables against their slow twins."""

import csv
import math

import numpy as np
import pandas
import pytest

from dfcrp.draws import MemoryDraws
from dfcrp.errors import InputError, SettingsError
from dfcrp.summaries import experts as experts_module
from dfcrp.summaries.catalogue import catalogue, join_names
from dfcrp.summaries.consensus import SizeClasses, consensus_counts, family_arrays
from dfcrp.summaries.experts import expert_summary
from dfcrp.summaries.membership import membership
from dfcrp.summaries.streaming import summarise
from reference import summary_reference as twin
from reference.small_posteriors import random_posterior

BOUNDS = {"all": (0, math.inf), "small": (0, 50), "medium": (50, 100), "large": (100, math.inf)}


@pytest.mark.parametrize("diameter", ["mu", "members"])
@pytest.mark.parametrize("seed", range(3))
def test_consensus_counts(diameter, seed):
    draws, labels, families, diameters = twin.random_draws(seed, n=12)
    result = consensus_counts(
        draws, (1, 2, 3), diameter=diameter, families=families, diameters=diameters
    )
    assert result.counts.shape == (*labels.shape[:2], 3, 4)
    for chain, draw in np.ndindex(labels.shape[:2]):
        members = twin.clusters_of(labels[chain, draw])
        of = {name: diameters[m].mean() for name, m in members.items()}
        if diameter == "mu":
            rows = twin.parameters_of(draws, chain, draw)
            of = {name: math.exp(float(row[2])) for name, row in rows.items()}
        for a, m in enumerate(result.min_experts):
            for b, name in enumerate(result.size_classes):
                expected = twin.consensus_count(labels[chain, draw], of, families, m, *BOUNDS[name])
                assert result.counts[chain, draw, a, b] == expected


def test_consensus_counts_experts_not_members():
    # without the family rule a cluster may hold an expert twice
    draws = MemoryDraws(np.array([[[0, 0, 0]]]), np.ones((1, 1)))
    classes = SizeClasses.none()
    families = np.array([0, 0, 1])
    assert consensus_counts(draws, (3,), classes).counts.item() == 1
    assert consensus_counts(draws, (3,), classes, families=families).counts.item() == 0


def test_consensus_rows_are_mean_and_interval():
    draws, _, families, _ = twin.random_draws(5)
    result = consensus_counts(draws, (2,), families=families)
    row = result.rows()[1]
    values = result.counts[:, :, 0, 1].ravel()
    assert (row["min_experts"], row["size_class"]) == (2, "small")
    assert (row["mean"], row["lo"], row["hi"]) == pytest.approx(
        twin.mean_and_interval(values.tolist())
    )
    assert list(result.series()) == [
        f"clusters of at least 2 experts{name}" for name in ("", ", small", ", medium", ", large")
    ]


def test_consensus_settings_are_checked():
    draws = MemoryDraws(np.array([[[0, 0, 2]]]), np.ones((1, 1)))
    with pytest.raises(InputError, match="log_diameter"):
        consensus_counts(draws, (2,))
    with pytest.raises(InputError, match="diameters"):
        consensus_counts(draws, (2,), diameter="members")
    with pytest.raises(SettingsError, match='"members"'):
        consensus_counts(draws, (2,), diameter="member")
    with pytest.raises(SettingsError, match="increase"):
        SizeClasses(edges=(100, 50))
    with pytest.raises(SettingsError, match="names"):
        SizeClasses(edges=(50,))
    with pytest.raises(SettingsError, match="total"):
        SizeClasses(edges=(50,), names=("all", "big"))


@pytest.mark.parametrize("seed", range(4))
def test_expert_summary(seed):
    draws, labels, families, _ = twin.random_draws(seed, n=14, n_families=4)
    result = expert_summary(draws, families)
    flat = labels.reshape(-1, labels.shape[2])
    assert result.count.tolist() == np.bincount(families).tolist()
    for f in range(4):
        shares = {
            "size_1": [twin.size_1_share(d, families, f) for d in flat],
            "all_but_one": [twin.all_but_one_share(d, families, f) for d in flat],
        }
        for name, values in shares.items():
            found = getattr(result, name)[f]
            expected = twin.mean_and_interval(values)
            assert (found.mean, found.lo, found.hi) == pytest.approx(expected, nan_ok=True)
        rows = []
        for g in range(4):
            values = [twin.jaccard(d, families, f, g) for d in flat]
            rows.append(values)
            found = result.jaccard_matrix[f, g]
            expected = twin.mean_and_interval(values)
            assert (found.mean, found.lo, found.hi) == pytest.approx(expected, rel=1e-6)
        others = np.delete(np.array(rows), f, axis=0).mean(axis=0)
        assert result.jaccard.mean[f] == pytest.approx(others.mean(), rel=1e-6)
    alone = [twin.alone_probability(labels, i) for i in range(labels.shape[2])]
    np.testing.assert_allclose(result.alone, alone)


def test_expert_summary_without_such_clusters():
    # two experts who agree on everything: nobody is alone, nobody is missing
    draws = MemoryDraws(np.array([[[0, 0, 2, 2]] * 3]), np.ones((1, 3)))
    result = expert_summary(draws, np.array([0, 1, 0, 1]))
    assert np.isnan(result.size_1.mean).all()
    assert np.isnan(result.all_but_one.mean).all()
    assert result.rows(["a", "b"])[1]["jaccard"] == 1.0
    lone = expert_summary(MemoryDraws(np.array([[[0, 1]]]), np.ones((1, 1))), np.array([0, 0]))
    assert np.isnan(lone.jaccard.mean[0])
    assert lone.size_1.mean[0] == 100.0


def test_expert_intervals_from_evenly_spaced_draws(monkeypatch):
    draws, labels, families, _ = twin.random_draws(3)
    monkeypatch.setattr(experts_module, "MAX_VALUES", 16 * 10)
    result = expert_summary(draws, families)
    some = labels[:, ::3].reshape(-1, labels.shape[2])
    expected = np.mean([twin.jaccard(d, families, 0, 1) for d in some])
    assert result.jaccard_matrix.mean[0, 1] == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("seed", range(3))
def test_catalogue(seed):
    draws, labels, families, _ = twin.random_draws(seed, n=12)
    point = labels[0, 2].astype(np.int32)
    members = membership(point, draws)
    names = ["Ann", "Bo; Co", 'Di "D"', "Ed"]
    given = {"families": families, "expert_names": names, "min_experts": 2}
    table = catalogue(draws, point, members, centre=twin.CENTRE, **given)
    assert list(table)[:5] == ["cluster", "x", "x_sd", "x_lo", "x_hi"]
    for row, (name, cluster) in enumerate(sorted(twin.clusters_of(point).items())):
        assert table["cluster"][row] == name
        values, agreed = [], []
        for chain, draw in np.ndindex(labels.shape[:2]):
            chosen = twin.representative(cluster, labels[chain, draw])
            held = families[labels[chain, draw] == chosen]
            own = twin.owner(point, labels[chain, draw], chosen) == name
            agreed.append(own and len(set(held.tolist())) >= 2)
            parameters = twin.parameters_of(draws, chain, draw)[chosen].astype(float)
            values.append([parameters[0], parameters[1], math.exp(parameters[2])])
        for column, quantity in zip(np.array(values).T, ("x", "y", "diameter"), strict=True):
            expected = twin.mean_and_interval(column)
            assert table[quantity][row] == pytest.approx(expected[0])
            assert table[f"{quantity}_sd"][row] == pytest.approx(column.std(ddof=1))
            assert table[f"{quantity}_lo"][row] == pytest.approx(expected[1], rel=1e-5)
            assert table[f"{quantity}_hi"][row] == pytest.approx(expected[2], rel=1e-5)
        assert table["p_consensus"][row] == pytest.approx(np.mean(agreed))
        held = [names[f] for f in sorted(set(families[cluster].tolist()))]
        assert table["n_experts"][row] == len(held)
        assert next(csv.reader([table["experts"][row]], delimiter=";")) == held
        assert table["stability"][row] == members.stability[row]
    without = catalogue(draws, point, members, **given)
    assert list(without) == ["cluster", "n_experts", "p_consensus", "experts", "stability"]
    assert all((without[name] == table[name]).all() for name in without)


def test_catalogue_needs_a_name_for_each_expert():
    draws, labels, families, _ = twin.random_draws(0)
    point = labels[0, 0].astype(np.int32)
    members = membership(point, draws)
    with pytest.raises(InputError, match="4 experts, but 1 names"):
        catalogue(draws, point, members, families=families, expert_names=["Ann"])


def test_joined_names_are_plain_when_they_can_be():
    assert join_names(["A", "B"]) == "A;B"
    assert join_names(["A;1", "B"]) == '"A;1";B'


def test_summarise_leaves_out_nan():
    interval = summarise(np.array([[1.0, np.nan, np.nan], [3.0, 2.0, np.nan]]))
    np.testing.assert_allclose(interval.mean, [2.0, 2.0, np.nan])
    np.testing.assert_allclose(interval.lo, [1.05, 2.0, np.nan])


def test_many_experts_cost_no_more_memory_than_few():
    n = 3000
    few, many = (family_arrays(np.arange(n) % families, n)[1] for families in (2, n))
    assert few.nbytes == many.nbytes
    # Two to a cluster, each by an expert of their own: all of the clusters have two experts.
    labels = np.repeat(np.arange(0, n, 2), 2)[np.newaxis, np.newaxis].astype(np.int32)
    draws = MemoryDraws(labels, np.ones((1, 1)))
    counts = consensus_counts(draws, (1, 2, 3), SizeClasses.none(), families=np.arange(n))
    assert counts.counts.ravel().tolist() == [n // 2, n // 2, 0]


def test_the_catalogue_is_made_once_and_may_be_changed(monkeypatch):
    posterior = random_posterior(4, n=12)
    first = posterior.catalogue()
    monkeypatch.setattr(type(posterior), "catalogue_columns", None)
    kept = first.copy()
    first.loc[:, "x"] = 0.0
    pandas.testing.assert_frame_equal(posterior.catalogue(), kept)

"""Explanations against plain loops, and a case worked out by hand."""

import numpy as np
import pytest

from dfcrp.errors import InputError
from dfcrp.items.items import Items
from dfcrp.posterior.explain import explain, find_marking, most_common
from dfcrp.posterior.explain_text import percent
from dfcrp.settings.config import Config, RunSettings
from dfcrp.summaries.membership import ALONE
from reference import summary_reference as twin
from reference.small_posteriors import posterior_of, random_posterior


def all_draws(posterior):
    return [
        (chain, draw, posterior.labels[chain, draw])
        for chain in range(posterior.draws.n_chains)
        for draw in range(posterior.draws.n_draws)
    ]


def place_of(point, labels, i):
    """Where marking i sat, by the definition."""
    companions = [j for j in range(len(labels)) if j != i and labels[j] == labels[i]]
    if not companions:
        return ALONE
    held = [int(point[j]) for j in companions]
    return min(set(held), key=lambda name: (-held.count(name), name))


@pytest.mark.parametrize("seed", range(4))
def test_probabilities_and_bars_match_loops(seed):
    posterior = random_posterior(seed)
    point, families = posterior.point_partition().labels, posterior.items.families
    for i in range(len(families)):
        found = explain(posterior, i)
        draws = all_draws(posterior)
        sat = [place_of(point, labels, i) for _, _, labels in draws]
        probabilities = {c.cluster: c.probability for c in found.candidates if c.probability}
        assert probabilities == pytest.approx({p: sat.count(p) / len(sat) for p in set(sat)})
        assert sum(probabilities.values()) == pytest.approx(1.0)
        for candidate in found.candidates:
            if candidate.cluster == ALONE:
                continue
            by = {j: 0 for j in range(len(families)) if families[j] == families[i] and j != i}
            for _, _, labels in draws:
                home = twin.representative(candidate.members, labels)
                for j in by:
                    by[j] += labels[j] == home
            expected = {j: count / len(draws) for j, count in by.items() if count}
            assert {c.index: c.probability for c in candidate.barred_by} == pytest.approx(expected)


@pytest.mark.parametrize("seed", range(2))
def test_distances_match_loops(seed):
    posterior = random_posterior(seed)
    for i in (0, 5):
        y = posterior.items.features[i]
        for candidate in explain(posterior, i).candidates:
            if candidate.cluster == ALONE:
                continue
            values = {True: [], False: []}
            for chain, draw, labels in all_draws(posterior):
                home = twin.representative(candidate.members, labels)
                x0, y0, l0, a, d, b = (
                    float(v) for v in twin.parameters_of(posterior.draws, chain, draw)[home]
                )
                v = y - [x0, y0, l0]
                sigma = np.array([[a, 0, b], [0, a, b], [b, b, d]])
                values[bool(labels[i] == home)].append(
                    (
                        np.sqrt(v @ np.linalg.solve(sigma, v)),
                        np.hypot(v[0], v[1]) / np.sqrt(a),
                        v[2] / np.sqrt(d),
                    )
                )
            for offset, inside in ((candidate.inside, True), (candidate.outside, False)):
                if not values[inside]:
                    assert offset is None
                    continue
                expected = np.median(values[inside], axis=0)
                assert (offset.distance, offset.position, offset.size) == pytest.approx(expected)


def test_companions_are_the_pairs():
    posterior = random_posterior(3)
    found = explain(posterior, 2)
    expected = {
        j: p
        for j in range(len(posterior.items))
        if j != 2 and (p := twin.pair_probability(posterior.labels, 2, j)) > 0
    }
    assert {c.index: c.probability for c in found.companions} == pytest.approx(expected)
    shares = [c.probability for c in found.companions]
    assert shares == sorted(shares, reverse=True)


def by_hand(prior="dfcrp"):
    """Ann has marked one object twice (0, 1); Bob (2) and Cat (3) once.

    In three of four draws the first of Ann's markings is in the cluster, so the second is barred.
    """
    markings = Items.circles(
        x=[10.0, 12.0, 10.0, 11.0],
        y=[10.0, 10.0, 10.0, 10.0],
        diameter=[20.0, 21.0, 20.0, 20.0],
        expert=["Ann", "Ann", "Bob", "Cat"],
        id=["a1", "a2", "b", "c"],
    )
    labels = [[[0, 1, 0, 0]] * 3 + [[0, 1, 1, 1]]]
    return posterior_of(labels, markings, config=Config(run=RunSettings(prior=prior, chains=1)))


def test_family_rule_by_hand():
    posterior = by_hand()
    assert posterior.point_partition().labels.tolist() == [0, 1, 0, 0]
    found = explain(posterior, "a2")
    alone, rival = found.candidates
    assert (alone.cluster, alone.probability) == (ALONE, 0.75)
    assert (rival.cluster, rival.probability, rival.barred) == (0, 0.25, 0.75)
    assert [(c.id, c.probability) for c in rival.barred_by] == [("a1", 0.75)]
    text = found.text()
    assert "Marking a2 by Ann" in text
    assert "alone: 75 %" in text
    assert "cluster 0 was closed to it in 75 % of draws: a1 (75 %) sat there" in text
    assert "b by Bob: 25 %" in text


def test_without_family_rule_nothing_is_barred():
    found = explain(by_hand("crp"), "a2")
    assert all(c.barred == 0 for c in found.candidates)
    assert "no family rule" in found.text()


def test_a_near_cluster_is_named_though_it_never_held_the_marking():
    markings = Items.circles(
        x=[10.0, 11.0, 10.0, 300.0],
        y=[10.0] * 4,
        diameter=[20.0] * 4,
        expert=["Ann", "Ann", "Bob", "Bob"],
    )
    posterior = posterior_of([[[0, 1, 0, 3]] * 4], markings)
    found = explain(posterior, 1)
    assert [c.cluster for c in found.candidates] == [ALONE, 0]
    assert found.candidates[1].barred == 1.0
    assert "cluster 0, nearby: never" in found.text()
    assert "never shared" in found.text()


def test_one_marking():
    markings = Items.circles(x=[1.0], y=[1.0], diameter=[5.0], expert=["Ann"])
    found = explain(posterior_of([[[0]] * 3], markings), 0)
    assert [(c.cluster, c.probability) for c in found.candidates] == [(ALONE, 1.0)]
    assert "a cluster of its own" in found.text()


def test_chains_that_disagree_are_mentioned():
    posterior = by_hand()
    labels = [[[0, 1, 0, 0]] * 4, [[0, 1, 1, 1]] * 4]
    text = explain(posterior_of(labels, posterior.items), "a2").text()
    assert "chains disagree: 0 % to 100 %" in text


def test_find_marking():
    posterior = random_posterior()
    assert find_marking(posterior.items, "m7") == find_marking(posterior.items, 7) == 7
    assert find_marking(posterior.items, np.int64(7)) == 7
    with pytest.raises(InputError, match='did you mean "m1'):
        find_marking(posterior.items, "m1x")
    with pytest.raises(InputError, match="numbered 0 to 11"):
        find_marking(posterior.items, 12)
    markings = posterior.items
    object.__setattr__(markings, "id", np.array(["same"] * len(markings)))
    with pytest.raises(InputError, match="by its index: 0, 1"):
        find_marking(posterior.items, "same")


def test_most_common_takes_the_smallest_among_equals():
    assert most_common(np.array([[4, 2, 4, 2], [7, 7, 1, 1]], np.int32)).tolist() == [2, 1]


def test_percent_is_never_rounded_to_certainty():
    assert [percent(p) for p in (0.0, 0.004, 0.5, 0.996, 1.0)] == [
        "0 %",
        "less than 1 %",
        "50 %",
        "more than 99 %",
        "100 %",
    ]

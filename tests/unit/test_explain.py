"""Explanations against plain loops, and a case worked out by hand."""

import numpy as np
import pytest

from dfcrp.errors import InputError
from dfcrp.items.items import Items
from dfcrp.likelihoods.record.likelihood import RECORDS
from dfcrp.posterior.explain import explain, find_item, most_common, percent
from dfcrp.settings.config import Config, RunSettings
from dfcrp.summaries.membership import ALONE, ELSEWHERE
from reference import record_reference
from reference import summary_reference as twin
from reference.kind_posteriors import KINDS, kind_posterior, posterior_with
from reference.small_posteriors import posterior_of, random_posterior


def all_draws(posterior):
    return [
        (chain, draw, posterior.labels[chain, draw])
        for chain in range(posterior.draws.n_chains)
        for draw in range(posterior.draws.n_draws)
    ]


def place_of(point, labels, i):
    """Where marking i sat, by the definition."""
    found = twin.place_of(point, labels, i)
    return {"alone": ALONE, "elsewhere": ELSEWHERE}.get(found, found)


@pytest.mark.parametrize("seed", range(4))
def test_probabilities_and_bars_match_loops(seed):
    posterior = random_posterior(seed)
    point, families = posterior.point_partition().labels, posterior.items.families
    members = posterior.members()
    for i in range(len(families)):
        found = explain(posterior, i)
        draws = all_draws(posterior)
        sat = [place_of(point, labels, i) for _, _, labels in draws]
        probabilities = {c.cluster: c.probability for c in found.candidates if c.probability}
        assert probabilities == pytest.approx({p: sat.count(p) / len(sat) for p in set(sat)})
        assert sum(probabilities.values()) == pytest.approx(1.0)
        single = (point == point[i]).sum() == 1
        listed = members.loc[i]
        assert probabilities.get(ALONE if single else point[i], 0.0) == listed["p_member"]
        assert probabilities.get(listed["second_cluster"], 0.0) == listed["p_second"]
        for candidate in found.candidates:
            if not candidate.members:
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
            if not candidate.members:
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
                assert [offset.distance, *offset.parts.values()] == pytest.approx(expected)


def parts_by_hand(posterior, i, row, shared):
    """Distance and parts of a normal likelihood, feature by feature."""
    items, draws = posterior.items, posterior.draws
    shape = posterior.likelihood.shape(items)
    p, at, features = len(shape.features), dict(zip(draws.columns.names, shared, strict=True)), []
    group = [g for g, size in enumerate(shape.groups) for _ in range(size)]
    for j, name in enumerate(shape.features):
        w = 1.0
        if shape.size[j] >= 0:
            held = items.features[:, shape.size[j]]
            (growth,) = (v for k, v in at.items() if k.startswith("growth_") and name in k)
            w = np.exp(growth * (held[i] - np.median(held)))
        sd = np.sqrt(w * row[2 * p + group[j]] + row[p + j] ** 2)
        features.append((items.features[i, j] - row[j]) / sd)
    found = {"distance": np.linalg.norm(features)}
    for name, value in zip(shape.features, features, strict=True):
        found.setdefault(name.removeprefix("log_"), value)
    if "x" in found:
        found["position"] = np.hypot(found.pop("x"), found.pop("y"))
    if "elongation_0" in found:
        found["shape"] = np.hypot(found.pop("elongation_0"), found.pop("elongation_45"))
    return found


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "records"])
def test_distances_of_normal_items_match_loops(kind):
    posterior = kind_posterior(kind, n_objects=12, n_draws=6)
    shared = posterior.draws.shared()
    for i in (0, 9):
        for candidate in explain(posterior, i).candidates:
            if not candidate.members:
                continue
            values = {True: [], False: []}
            for chain, draw, labels in all_draws(posterior):
                home = twin.representative(candidate.members, labels)
                row = twin.parameters_of(posterior.draws, chain, draw)[home].astype(float)
                found = parts_by_hand(posterior, i, row, shared[chain, draw])
                values[bool(labels[i] == home)].append(found)
            for offset, inside in ((candidate.outside, False), (candidate.inside, True)):
                if not values[inside]:
                    assert offset is None
                    continue
                expected = {
                    name: np.median([found[name] for found in values[inside]])
                    for name in values[inside][0]
                }
                found = {"distance": offset.distance, **offset.parts}
                assert found == pytest.approx(expected)


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_is_explained_in_its_own_words(kind):
    posterior = kind_posterior(kind)
    members = posterior.members()
    i = int(np.argmin(members["p_member"]))
    found = explain(posterior, f"i{i}")
    assert found.p_member == members["p_member"][i]
    assert found.cluster == members["cluster"][i]
    assert sum(c.probability for c in found.candidates) == pytest.approx(1.0)
    text = found.text()
    noun = posterior.likelihood.noun
    assert text.startswith(f"{noun.capitalize()} i{i} by {members['expert'][i]}: ")
    assert "marking" not in text
    for name in posterior.items.columns:
        assert f"{name} " in text.splitlines()[0]
    if kind == "records":
        assert "  given_name " in text
        assert "adds to the log odds" in text
        assert "Distances" not in text
    else:
        assert "standard deviations" in text


def test_records_are_compared_field_by_field():
    posterior = kind_posterior("records", n_objects=20)
    items, draws = posterior.items, posterior.draws
    law = draws.shared().reshape(-1, draws.columns.width).mean(axis=0)
    settings = posterior.config.likelihood
    checked = 0
    for i in range(0, len(items), 7):
        for candidate in explain(posterior, i).candidates:
            if not candidate.members:
                continue
            members = [*candidate.members, i]
            pairs = np.array([(j, k) for j in members for k in members if j < k])
            hyper = RECORDS.prepared(items, settings).hyper(len(members), pairs)
            hyper = hyper._replace(law=law[: len(hyper.law)])
            for field, said in enumerate(candidate.evidence):
                with_it = record_reference.log_ratio_of_field(hyper, field, members)
                without = record_reference.log_ratio_of_field(hyper, field, members[:-1])
                assert said.log_odds == pytest.approx(with_it - without, abs=1e-9)
            for said in candidate.evidence:
                values = items.columns[said.name]
                assert said.own == values[i]
                agreeing = [values[j] == values[i] for j in candidate.members]
                if not said.own:
                    assert said.log_odds == 0.0
                elif all(agreeing):
                    assert said.log_odds > 0.0
                checked += 1
    assert checked > 10


def test_what_a_record_differs_in_is_named():
    columns = {"name": ["anna", "anna", "anne"], "town": ["ulm", "ulm", ""]}
    items = Items.from_columns(columns, ["a", "b", "c"], kind="records", id=["p", "q", "r"])
    labels = [[[0, 0, 0]] * 2 + [[0, 0, 2]]]
    found = explain(posterior_with(labels, items, np.random.default_rng(0)), "r")
    assert "Record r by c: name anne, town (missing)." in found.text()
    assert "there: anna" in found.text()
    assert "missing: town" in found.text()
    assert "all columns" in found.text()


def test_which_cluster_a_new_record_belongs_to():
    """A copy of a record goes to its cluster, with a typo too; a stranger goes to none."""
    posterior = kind_posterior("records", n_objects=20)
    items = posterior.items
    labels = posterior.point_partition().labels
    row = int(np.argmax(np.bincount(labels)[labels]))
    columns = {name: [str(values[row])] * 3 for name, values in items.columns.items()}
    first = next(name for name in columns if columns[name][0])
    columns[first][1] += "x"
    for values in columns.values():
        values[2] = "qqqqqqq"
    found = posterior.predict(columns)
    assert found["cluster"].tolist() == [labels[row], labels[row], -1]
    assert found["probability"][0] > 0.9
    assert found["probability"][2] == found["p_none"][2] > 0.5
    # A list that has the object already does not list it again.
    barred = posterior.predict(columns, [items.expert[row]] * 3)
    assert (barred["cluster"] != labels[row]).all()
    with pytest.raises(InputError, match="need the columns"):
        posterior.predict({"name": ["anna"]})


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
    assert str(found) == text
    assert "alone: 75 %" in text
    assert (
        "cluster 0 already has another marking of this expert in 75 % of draws: a1 (75 %)" in text
    )
    assert "b by Bob: 25 %" in text


def test_without_family_rule_nothing_is_barred():
    found = explain(by_hand("crp"), "a2")
    assert all(c.barred == 0 for c in found.candidates)
    assert "No rule kept markings of one expert apart" in found.text()


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
    assert "alone in its cluster" in found.text()


def test_chains_that_disagree_are_mentioned():
    posterior = by_hand()
    labels = [[[0, 1, 0, 0]] * 4, [[0, 1, 1, 1]] * 4]
    text = explain(posterior_of(labels, posterior.items), "a2").text()
    assert "chains disagree: 0 % to 100 %" in text


def test_find_item():
    posterior = random_posterior()
    assert find_item(posterior.items, "m7") == find_item(posterior.items, 7) == 7
    assert find_item(posterior.items, np.int64(7)) == 7
    with pytest.raises(InputError, match='did you mean "m1'):
        find_item(posterior.items, "m1x")
    with pytest.raises(InputError, match="numbered 0 to 11"):
        find_item(posterior.items, 12)
    markings = posterior.items
    object.__setattr__(markings, "id", np.array(["same"] * len(markings)))
    with pytest.raises(InputError, match="by its index: 0, 1"):
        find_item(posterior.items, "same")


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

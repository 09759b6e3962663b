"""Evaluations of records against cases done by hand, double loops, and mistakes in the input."""

from __future__ import annotations

import itertools
import json

import numpy as np
import pandas as pd
import pytest

import dfcrp
from dfcrp.errors import InputError, SettingsError
from dfcrp.evaluation.identities import Records, in_numbers, read_identities
from dfcrp.evaluation.linked import answer_of_table, evaluate_links
from dfcrp.evaluation.scores import average_precision
from dfcrp.items.items import Items
from reference.kind_posteriors import kind_posterior


def entities(names):
    names = list(names)
    return {"id": [str(k + 1) for k in range(len(names))], "entity": names}


def slow(labels, entity):
    """Pairwise and B-cubed scores by going through all pairs, and all records."""
    n = range(len(labels))
    listed = {(i, j) for i, j in itertools.combinations(n, 2) if labels[i] == labels[j]}
    true = {(i, j) for i, j in itertools.combinations(n, 2) if entity[i] == entity[j]}
    precision, recall = [], []
    for i in n:
        cluster = {j for j in n if labels[j] == labels[i]}
        own = {j for j in n if entity[j] == entity[i]}
        precision.append(len(cluster & own) / len(cluster))
        recall.append(len(cluster & own) / len(own))
    p, r = np.mean(precision), np.mean(recall)
    return {
        "pairwise": [
            len(listed & true) / len(listed),
            len(listed & true) / len(true),
            2 * len(listed & true) / (len(listed) + len(true)),
        ],
        "bcubed": [p, r, 2 * p * r / (p + r)],
    }


NAMES = ("precision", "recall", "f1")


def test_clusters_by_hand():
    """Clusters {1 2 3} {4} {5 6}; entities {1 2} {3 4} {5 6}: 2 of 4 pairs right, 3 true ones."""
    found = dfcrp.evaluate(entities("aaabcc"), entities("xxyyzz"), "records")
    assert (found.n_true, found.n_listed, found.n_right) == (3, 4, 2)
    assert [found.pairwise[name] for name in NAMES] == pytest.approx([0.5, 2 / 3, 4 / 7])
    # Shares of the clusters: ⅔ ⅔ ⅓ 1 1 1; of the entities: 1 1 ½ ½ 1 1.
    precision, recall = 14 / 18, 5 / 6
    assert found.bcubed["precision"] == pytest.approx(precision)
    assert found.bcubed["recall"] == pytest.approx(recall)
    assert found.bcubed["f1"] == pytest.approx(2 * precision * recall / (precision + recall))
    assert found.f1 == found.pairwise["f1"]
    assert "B-cubed" in repr(found)


@pytest.mark.parametrize("seed", range(8))
def test_clusters_against_double_loops_in_any_order(seed):
    rng = np.random.default_rng(seed)
    labels, entity = rng.integers(0, 12, (2, 30))
    entity[:15] = labels[:15]
    ours, theirs = entities(map(str, labels)), entities(map(str, entity))
    found = dfcrp.evaluate(ours, theirs, "records")
    for key, values in slow(labels, entity).items():
        assert [found[key][name] for name in NAMES] == pytest.approx(values)
    order = rng.permutation(30)
    shuffled = {name: [values[k] for k in order] for name, values in theirs.items()}
    assert json.dumps(dfcrp.evaluate(ours, shuffled, "records")) == json.dumps(found)


def test_pairs_are_ranked():
    """Pairs 1-2 (.9, right), 3-4 (.8, wrong), 5-6 (.3, right); 7-8 is true and never listed."""
    ours = pd.DataFrame({"id_l": list("135"), "id_r": list("246"), "p": [0.9, 0.8, 0.3]})
    truth = [("1", "2"), ("6", "5"), ("7", "8")]
    found = dfcrp.evaluate(ours, truth, "records")
    assert (found.n_true, found.n_listed, found.n_right) == (3, 2, 1)
    assert found.average_precision == pytest.approx(1 / 3 + 1 / 3 * 2 / 3)
    assert found.brier == pytest.approx((0.01 + 0.64 + 0.49 + 1.0) / 4)
    assert found.at_least[0] == {"least": 0.5, "n": 2, "right": 0.5}
    assert dfcrp.evaluate(ours, truth, "records", p_real=0.2).n_listed == 3


def test_ids_of_two_lists_are_not_the_same():
    """1-2 and 2-1 are two pairs if each list counts from 1."""
    ours, truth = [("1", "2"), ("2", "1")], [("1", "2")]
    assert dfcrp.evaluate(ours, truth, "records").precision == 1.0
    assert dfcrp.evaluate(ours, truth, "records", two_lists=True).precision == 0.5


def test_labelled_pairs_alone():
    """What is known of three pairs; the answer links the first two of them, and others."""
    truth = {"left": ["1", "2", "1"], "right": ["2", "3", "4"], "match": ["yes", "no", "1"]}
    ours = {"left": ["1", "2", "8"], "right": ["2", "3", "9"], "p": [0.8, 0.7, 0.9]}
    found = dfcrp.evaluate(ours, truth, "records")
    assert (found.n_pairs, found.n_true, found.n_listed, found.n_right) == (3, 2, 2, 1)
    assert (found.precision, found.recall, found.bcubed) == (0.5, 0.5, None)
    assert found.partial == "3 labelled pairs"
    assert found.brier == pytest.approx((0.04 + 0.49 + 1.0) / 3)
    right, p = np.array([True, False, True]), np.array([0.8, 0.7, 0.0])
    assert found.average_precision == pytest.approx(average_precision(right, p, 2))


def records_posterior():
    return kind_posterior("records")


def truth_of(posterior):
    """The clusters of most draws."""
    labels = posterior.point_partition().labels
    return {"id": posterior.items.id.tolist(), "entity": [f"e{label}" for label in labels]}


def test_a_run_beside_its_own_catalogue():
    posterior = records_posterior()
    truth = truth_of(posterior)
    found = posterior.evaluate(truth)
    assert found.pairwise["f1"] == found.bcubed["f1"] == 1.0
    assert found.n_entities["true"] == len(set(truth["entity"]))
    draws = posterior.labels.reshape(-1, len(posterior.items))
    links = [sum(c * (c - 1) // 2 for c in np.bincount(labels)) for labels in draws]
    assert found.n_total["mean"] == pytest.approx(np.mean(links))
    # Brier score over the pairs that were ever together.
    pairs = posterior.pairs
    labels = posterior.point_partition().labels
    right = labels[pairs.first] == labels[pairs.second]
    assert found.brier == pytest.approx(np.mean((pairs.probability - right) ** 2))


def test_a_truth_of_some_records():
    """Only pairs of records whose entity is known count."""
    posterior = records_posterior()
    truth = truth_of(posterior)
    some = {name: values[:20] for name, values in truth.items()}
    found = posterior.evaluate(some)
    labels = posterior.point_partition().labels[:20]
    assert found.n_true == sum(a == b for a, b in itertools.combinations(labels, 2))
    assert (found.n_records, found.partial, found.f1) == (20, "20 records", 1.0)


def test_entities_of_items_of_any_kind():
    posterior = kind_posterior("boxes")
    found = posterior.evaluate(truth_of(posterior))
    assert found.kind == "boxes"
    assert found.bcubed["f1"] == 1.0


def two_lists_posterior():
    """Ids 1, 2, 3 on either list; the same name is one entity."""
    from reference.kind_posteriors import posterior_with

    name = ["ann", "bob", "cyd", "bob", "ann", "eve"]
    ids = [f"{file}.csv:{k}" for file in ("left", "right") for k in (1, 2, 3)]
    items = Items.from_columns({"name": name}, ["left"] * 3 + ["right"] * 3, kind="records", id=ids)
    source = [dfcrp.items.site.Source(f"{n}.csv", "", 3, 3) for n in ("left", "right")]
    items = Items(**{**vars(items), "sources": tuple(source)})
    return posterior_with([[[0, 1, 2, 1, 0, 5]] * 4] * 2, items, np.random.default_rng(1))


def test_pairs_of_bare_ids_are_of_two_lists():
    posterior = two_lists_posterior()
    found = posterior.evaluate([("1", "2"), ("2", "1")])
    assert found.f1 == 1.0
    assert "left" in found.rule_words
    # The other way round there is no such pair: 1 of the left list is ann, 3 of the right one eve.
    assert posterior.evaluate([("1", "3")]).n_right == 0
    named = [("left.csv:1", "right.csv:2"), ("left:2", "right:1")]
    with pytest.raises(InputError, match="no record in the run has the id 'left:2'"):
        posterior.evaluate(named)
    table = {"source": ["left", "right"], "id": ["1", "2"], "entity": ["e", "e"]}
    assert posterior.evaluate(table).n_true == 1
    del table["source"]
    with pytest.raises(InputError, match=r"2 records have the id '1'.*left\.csv:1"):
        posterior.evaluate(table)


@pytest.mark.parametrize(
    ("truth", "message"),
    [
        (
            {"id": ["i1", "i1"], "entity": ["a", "b"]},
            "'i1' is there already, in the truth, index 0",
        ),
        ({"id": ["i1", "zzzz"], "entity": ["a", "b"]}, "index 1.*no record.*'zzzz'"),
        ({"id": ["i1", ""], "entity": ["a", "b"]}, "no id; fill it in"),
        ({"name": ["a"], "town": ["b"], "age": ["3"]}, "needs a column id and a column entity"),
        ({"left": ["i1"], "right": ["i1"]}, "a pair of a record with itself"),
        ({"left": ["i1"], "right": ["i2"], "match": ["maybe"]}, "neither yes nor no"),
        ({"left": ["i1", "i2"], "right": ["i2", "i1"], "match": [1, 0]}, "matches and .* does not"),
        ([("a", "b", "c")], "pairs of ids"),
    ],
)
def test_mistakes_are_named(truth, message):
    with pytest.raises(InputError, match=message):
        records_posterior().evaluate(truth)


def test_one_cluster_of_everything_is_refused_if_it_is_too_large(monkeypatch):
    monkeypatch.setattr("dfcrp.memory.memory_at_hand", lambda: 1e5)
    many = entities("a" * 100)
    with pytest.raises(InputError, match="4,950 pairs of records in one cluster"):
        dfcrp.evaluate(many, many, "records")


def test_options_of_objects_are_refused():
    posterior = records_posterior()
    for options in ({"iou": 0.5}, {"distance": 1.0}, {"min_experts": 2}, {"on": "all"}):
        with pytest.raises(SettingsError, match="is about objects with a place"):
            posterior.evaluate(truth_of(posterior), **options)
    with pytest.raises(SettingsError, match="p_real is 2"):
        posterior.evaluate(truth_of(posterior), p_real=2.0)
    with pytest.raises(SettingsError, match="unknown role 'entty'; did you mean 'entity'"):
        posterior.evaluate(truth_of(posterior), columns="entty=entity")
    with pytest.raises(InputError, match="must be a probability"):
        dfcrp.evaluate({"left": ["a"], "right": ["b"], "p": [7]}, [("a", "b")], "records")


def test_a_planted_mistake_shows():
    """Pairs of one cluster that are counted once for each record would be twice as many."""
    records = Records()
    ours = in_numbers(read_identities(entities("aab"), "ours"), records)
    truth = in_numbers(read_identities(entities("xxy"), "truth"), records)
    answer = answer_of_table("ours", ours, 3, None)
    assert evaluate_links(answer, truth, "truth", 3, "records").n_listed == 1
    doubled = answer.__class__(
        "ours", answer.labels, np.vstack([answer.pairs] * 2), None, np.ones(2, bool), "all"
    )
    assert evaluate_links(doubled, truth, "truth", 3, "records").precision == 1.0
    assert evaluate_links(doubled, truth, "truth", 3, "records").recall == 2.0


def test_intervals_of_pairwise_recall_hold():
    """Of 200 answers that miss each of 60 pairs with chance 0.3, about 95 % hold 0.7."""
    rng, held = np.random.default_rng(2), 0
    truth = [(f"l{k}", f"r{k}") for k in range(60)]
    for _ in range(200):
        ours = [pair for pair in truth if rng.random() < 0.7]
        found = dfcrp.evaluate(ours, truth, "records").intervals["recall"]
        held += found["lo"] <= 0.7 <= found["hi"]
    assert held / 200 == pytest.approx(0.94, abs=0.05)

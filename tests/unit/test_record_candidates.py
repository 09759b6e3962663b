"""Candidates of records: keys that are chosen, what they miss, and that it is said."""

from __future__ import annotations

import numpy as np
import pytest

from dfcrp.errors import DfcrpWarning
from dfcrp.items.items import Items
from dfcrp.likelihoods.record.candidates import joined, pairs_within
from dfcrp.likelihoods.record.hyper import RecordSettings, log_bayes_factors
from dfcrp.likelihoods.record.likelihood import RECORDS, rivals_of
from dfcrp.settings.config import make_config
from studies.made_up_records import HARD_SURVEY, places, survey


def prepared(made, **settings):
    items = Items.from_columns(made.columns, made.source, kind="records", truth=made.truth)
    return items, RECORDS.prepared(items, RecordSettings(**settings))


def lost(made, found) -> float:
    """Share of true pairs that are not candidates."""
    truth = np.array(made.truth)
    sizes = np.unique(truth, return_counts=True)[1]
    listed = found.candidates.pairs
    right = np.count_nonzero(truth[listed[:, 0]] == truth[listed[:, 1]])
    return 1.0 - right / (sizes * (sizes - 1) // 2).sum()


@pytest.mark.filterwarnings("ignore:.*of another by the same expert")
def test_few_true_places_are_missed_and_the_share_is_told():
    made = places(np.random.default_rng(1), objects=150, missing=0.1)
    _, found = prepared(made)
    assert lost(made, found) < 0.03
    assert found.candidates.missed < 0.03
    assert len(found.candidates.pairs) < 60 * len(made.source)


SHARES_LOST = {
    "places": lambda rng: places(rng, objects=250),
    "many missing values": lambda rng: places(rng, objects=250, missing=0.45, typos=0.3),
    "survey": lambda rng: survey(rng, persons=3000, changed=0.15, fields=HARD_SURVEY),
}


@pytest.mark.filterwarnings("ignore:.*of another by the same expert")
@pytest.mark.parametrize("name", SHARES_LOST)
def test_the_share_of_true_pairs_that_is_lost_is_estimated(name):
    """Within a factor of 2.5 and one percent: with and without missing values, and thirds."""
    made = SHARES_LOST[name](np.random.default_rng(8))
    _, found = prepared(made)
    true = lost(made, found)
    assert true / 2.5 - 0.01 < found.candidates.missed < 2.5 * true + 0.01


@pytest.mark.filterwarnings("ignore:.*of another by the same expert")
def test_values_that_everybody_shares_are_combined():
    """Every value of the survey is in more than 200 records; no single field can be a key."""
    made = survey(np.random.default_rng(2), persons=4000)
    for column in made.columns.values():
        if len(set(column)) < 20:
            assert min(np.unique(column, return_counts=True)[1]) > 20
    _, found = prepared(made)
    assert all(" + " in name or "without" in name for name, _ in found.candidates.keys)
    assert lost(made, found) < 0.05
    assert found.candidates.missed < 0.05
    assert len(found.candidates.pairs) < 60 * len(made.source)


@pytest.mark.filterwarnings("ignore:.*of another by the same expert")
def test_a_large_loss_is_warned_of():
    """One field with very frequent values is not enough of a key."""
    rng = np.random.default_rng(3)
    columns = {"sex": rng.choice(["f", "m"], 1000).tolist()}
    items = Items.from_columns(columns, np.repeat(["a", "b"], 500), kind="records")
    config = make_config({"run": {"likelihood": "records"}})
    with pytest.warns(DfcrpWarning, match="100 % of the pairs of records of one object are not"):
        RECORDS.lay_out(items, items.families, config)


@pytest.mark.filterwarnings("ignore:.*of another by the same expert")
def test_fields_that_tell_poorly_are_warned_of():
    rng = np.random.default_rng(4)
    persons = {"year": rng.integers(1940, 1990, 600), "region": rng.integers(10, 20, 600)}
    columns = {name: [str(v) for v in np.tile(values, 2)] for name, values in persons.items()}
    items = Items.from_columns(columns, np.repeat(["a", "b"], 600), kind="records")
    config = make_config({"run": {"likelihood": "records"}})
    with pytest.warns(DfcrpWarning, match="linkage errors"):
        RECORDS.lay_out(items, items.families, config)


@pytest.mark.filterwarnings("ignore:.*of another by the same expert")
def test_coincidences_within_a_list_tell_of_those_across_lists():
    """Pairs of two persons that are taken for one: estimated without the truth, and counted."""
    made = survey(np.random.default_rng(6), persons=4000, fields=HARD_SURVEY)
    items = Items.from_columns(made.columns, made.source, kind="records")
    found = RECORDS.prepared(items, RecordSettings())
    pairs, truth = found.candidates.pairs, np.array(made.truth)
    across = found.source[pairs[:, 0]] != found.source[pairs[:, 1]]
    two = pairs[across & (truth[pairs[:, 0]] != truth[pairs[:, 1]])]
    odds = log_bayes_factors(found.hyper(2), two) + found.guess.log_odds
    wrong = np.count_nonzero(odds > 0.0)
    estimated = found.guess.by_chance * found.guess.matches / found.guess.free
    assert wrong > 10
    assert abs(estimated - wrong) < 4.0 * np.sqrt(2.0 * wrong)  # two counts, four deviations


def test_lists_without_a_common_record_are_warned_of():
    rng = np.random.default_rng(7)
    names = ["".join(rng.choice(list("bdfklmnaeiou"), 9)) for _ in range(300)]
    towns = ["".join(rng.choice(list("bdfklmnaeiou"), 7)) for _ in range(300)]
    items = Items.from_columns({"name": names, "town": towns}, ["a", "b"] * 150, kind="records")
    config = make_config({"run": {"likelihood": "records"}})
    with pytest.warns(DfcrpWarning, match="hardly any record has a match"):
        RECORDS.lay_out(items, items.families, config)


def test_partners_of_a_partner_are_candidates():
    """One has the name, another the place and year: a third has all of them."""
    rng = np.random.default_rng(5)
    n = 300
    names = ["".join(rng.choice(list("abcdefghijklm"), 9)) for _ in range(n)]
    code = [str(c) for c in rng.integers(10**6, 10**7, n)]
    columns = {"name": names + names + [""] * n, "code": [""] * n + code + code}
    items = Items.from_columns(columns, np.repeat(["a", "b", "c"], n), kind="records")
    pairs = {tuple(p) for p in RECORDS.prepared(items, RecordSettings()).candidates.pairs.tolist()}
    assert all((i, 2 * n + i) in pairs for i in range(n))


def test_items_of_different_images_are_no_candidates():
    columns = {"name": ["anna", "anna", "anna", "bert"]}
    items = Items.from_columns(
        columns, ["a", "b", "c", "a"], kind="records", image=["p", "p", "q", "q"]
    )
    found = RECORDS.prepared(items, RecordSettings()).candidates.pairs
    assert found.tolist() == [[0, 1]]


def test_pairs_of_equal_codes():
    codes = np.array([3, -1, 3, 5, 3, 5, -1])
    found = {tuple(sorted(pair)) for pair in pairs_within(codes, 10).tolist()}
    assert found == {(0, 2), (0, 4), (2, 4), (3, 5)}
    assert {tuple(sorted(p)) for p in pairs_within(codes, 2).tolist()} == {(3, 5)}
    assert not len(pairs_within(np.array([-1, -1]), 10))


def test_joined_codes_agree_where_all_do():
    one, other = np.array([0, 0, 1, 1, -1]), np.array([2, 2, 2, 0, 2])
    found = joined([one, other])
    assert found[0] == found[1] != found[2]
    assert found[4] == -1
    assert len(set(found[:4].tolist())) == 3


def test_records_that_compete_for_a_third_are_moved_together():
    """0 and 1 are of one list, and both likely of one object with 2; 3 is sure of 4."""
    experts = np.array([0, 0, 1, 0, 1])
    pairs = np.array([[0, 2], [1, 2], [3, 4], [0, 4]])
    found = rivals_of(pairs, np.array([4.0, 3.0, 40.0, 2.0]), experts)
    assert found.tolist() == [[0, 1]]
    # A pair of one list that is likely of one object competes by itself.
    found = rivals_of(np.array([[0, 1], [2, 4]]), np.array([1.0, -1.0]), experts)
    assert found.tolist() == [[0, 1]]
    assert rivals_of(np.empty((0, 2), np.int64), np.empty(0), experts).shape == (0, 2)

"""The first guess of faults: pairs weighed against all matchings, and rates that come back.

The probabilities of pairs are compared with a sum over all matchings of two sources. The planted
bug, odds that do not ask who is free, makes them too small and lets the rates of a survey collapse.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from dfcrp.items.items import Items
from dfcrp.likelihoods.record import candidates as record_candidates
from dfcrp.likelihoods.record import pilot
from dfcrp.likelihoods.record.hyper import RecordSettings, facts_of_pairs, law_of_field, pair_ratio
from dfcrp.likelihoods.record.likelihood import RECORDS
from dfcrp.likelihoods.record.pilot import Ends, Matching
from studies.made_up_records import HARD_SURVEY, places, survey

#: A path and a star, of records 0 to 4 on one list and 5 to 9 on the other: no cycles.
TREE = np.array([[0, 5], [0, 6], [1, 6], [1, 7], [2, 8], [3, 8], [4, 8]])
SOURCE = np.repeat([0, 1], 5)


def by_enumeration(pairs, weight):
    """The probability of each pair, of all sets of pairs in which nobody is twice."""
    total, each = 0.0, np.zeros(len(pairs))
    for size in range(len(pairs) + 1):
        for chosen in combinations(range(len(pairs)), size):
            rows = pairs[list(chosen)].ravel()
            if len(set(rows.tolist())) == len(rows):
                product = float(np.prod(weight[list(chosen)]))
                total += product
                each[list(chosen)] += product
    return each / total


def settled(found, log_ratio, matches):
    free = found.silence()
    for _ in range(30):
        probable = found.probable(log_ratio, matches, free)
    return probable


@pytest.mark.parametrize("spread", [0.5, 3.0, 12.0])
def test_pairs_are_as_probable_as_among_all_matchings(spread):
    rng = np.random.default_rng(1)
    found = Matching.of(TREE, SOURCE)
    matches = np.array([3.0])
    log_ratio = 1.0 + spread * rng.standard_normal(len(TREE))
    weight = np.exp(log_ratio) * 3.0 / (2.0 * 2.0)
    expected = by_enumeration(TREE, weight)
    assert settled(found, log_ratio, matches) == pytest.approx(expected, abs=2e-3)
    # Odds of records that are not free, as they once were: 3 / 25.
    wrong = by_enumeration(TREE, np.exp(log_ratio) * 3.0 / 25.0)
    assert np.abs(wrong - expected).max() > 0.05


@pytest.mark.parametrize("turned", [[0], [1, 2], [0, 3, 5, 6]])
def test_which_record_of_a_pair_is_named_first_makes_no_difference(turned):
    """Lists whose rows are mixed name some pairs the other way round, and no rival may get lost."""
    rng = np.random.default_rng(3)
    log_ratio = 1.0 + 3.0 * rng.standard_normal(len(TREE))
    pairs = TREE.copy()
    pairs[turned] = pairs[turned, ::-1]
    found = settled(Matching.of(pairs, SOURCE), log_ratio, np.array([3.0]))
    expected = settled(Matching.of(TREE, SOURCE), log_ratio, np.array([3.0]))
    assert found == pytest.approx(expected, abs=1e-12)


def test_cycles_cost_little():
    """Two records on each list are alike: four pairs in a circle, and a third that is surer."""
    pairs = np.array([[0, 5], [0, 6], [1, 5], [1, 6], [2, 7], [2, 6]])
    found, log_ratio = Matching.of(pairs, SOURCE), np.array([2.0, 2.0, 2.0, 2.0, 5.0, 1.0])
    expected = by_enumeration(pairs, np.exp(log_ratio) * 3.0 / 4.0)
    assert settled(found, log_ratio, np.array([3.0])) == pytest.approx(expected, abs=0.05)


def test_the_others_of_an_end_are_summed_beside_a_far_larger_one():
    ends = Ends.by(np.array([7, 7, 7, 3, 3]))
    found = ends.others(np.array([1e250, 1e-3, 2e-3, 4.0, 4.0]))
    assert found[0] == pytest.approx(3e-3)
    assert found[1:3] == pytest.approx([1e250, 1e250])
    assert found[3:].tolist() == [4.0, 4.0]


def test_three_sources_are_matched_two_by_two():
    """A record may have a partner on each other list."""
    pairs = np.array([[0, 2], [0, 4], [2, 4], [1, 2]])
    found = Matching.of(pairs, np.repeat([0, 1, 2], 2))
    probable = settled(found, np.full(4, 3.0), np.full(3, 1.0))
    weight = np.exp(3.0)
    assert probable[1:3] == pytest.approx(weight / (1.0 + weight), abs=1e-3)
    assert probable[[0, 3]] == pytest.approx(weight / (1.0 + 2.0 * weight), abs=2e-3)


def surveyed(rng, persons, sizes, overlap, wrong):
    """Two waves of categories with the same share of wrong values in every field."""
    listed = rng.permutation(persons)
    both = int(overlap * persons)
    first = listed[: both + (persons - both) // 2]
    second = np.concatenate([listed[:both], listed[both + (persons - both) // 2 :]])
    columns = {}
    for at, size in enumerate(sizes):
        true = rng.choice(size, persons, p=rng.dirichlet(np.full(size, 3.0)))
        seen = true[np.concatenate([first, second])]
        seen = np.where(rng.random(len(seen)) < wrong, rng.choice(true, len(seen)), seen)
        columns[f"f{at}"] = [f"v{value}" for value in seen.tolist()]
    return columns, np.repeat(["first", "second"], [len(first), len(second)]), both


DESIGNS = {
    "few matches": ((60, 30, 20, 12, 8), 0.1, 0.03),
    "many matches": ((60, 30, 12, 6, 4), 0.6, 0.03),
    "nearly all": ((40, 20, 12, 6, 4), 0.9, 0.05),
    "many fields": ((12, 8, 6, 6, 5, 5, 4, 4, 3), 0.4, 0.08),
    "wrong values": ((60, 40, 30, 20, 12, 8), 0.5, 0.15),
}


def guessed(name, persons=1500, mixed=False):
    sizes, overlap, wrong = DESIGNS[name]
    columns, lists, both = surveyed(np.random.default_rng(5), persons, sizes, overlap, wrong)
    if mixed:
        order = np.random.default_rng(6).permutation(len(lists))
        columns = {field: np.array(values)[order].tolist() for field, values in columns.items()}
        lists = lists[order]
    items = Items.from_columns(columns, lists, kind="records")
    settings = RecordSettings(categories=tuple(columns))
    guess = RECORDS.prepared(items, settings).guess
    return guess.matches / both, 1.0 / (1.0 + np.exp(-guess.law)) / wrong


@pytest.mark.filterwarnings("ignore:.*of another by the same expert")
@pytest.mark.parametrize("name", DESIGNS)
def test_rates_of_surveys_come_back(name):
    """Within a factor of two, fields with few values least surely: it is where chains start."""
    matches, rates = guessed(name)
    assert 0.75 < matches < 1.35
    assert 0.6 < np.median(rates) < 1.6
    assert np.all((rates > 0.4) & (rates < 2.5))


@pytest.mark.filterwarnings("ignore:.*of another by the same expert")
def test_the_order_of_rows_does_not_change_the_guess():
    """One table with the rows of both lists mixed: the same rates, up to pairs found by chance."""
    matches, rates = guessed("many matches")
    mixed_matches, mixed_rates = guessed("many matches", mixed=True)
    assert mixed_matches == pytest.approx(matches, rel=0.01)
    assert mixed_rates == pytest.approx(rates, rel=0.05)


@pytest.mark.filterwarnings("ignore:.*of another by the same expert")
def test_rates_collapse_if_it_is_not_asked_who_is_free(monkeypatch):
    def everybody(self, matches):
        one, other = self.sizes.T
        return np.log(matches / (one * other))[self.block]

    monkeypatch.setattr(pilot.Matching, "log_odds", everybody)
    assert np.median(guessed("nearly all")[1]) < 0.6


@pytest.mark.filterwarnings("ignore:.*of another by the same expert")
def test_rates_come_back_from_a_sample_of_the_pairs(monkeypatch):
    """The best pairs of some records, of their partners, and of the partners' partners."""
    monkeypatch.setattr(pilot, "MOST_PAIRS", 20_000)
    matches, rates = guessed("wrong values", 3000)
    assert 0.75 < matches < 1.35
    assert np.all((rates > 0.4) & (rates < 2.5))


@pytest.mark.filterwarnings("ignore:.*of another by the same expert")
def test_a_sample_that_stands_for_itself_alone_is_noticed(monkeypatch):
    """The planted bug: no pair stands for others."""
    monkeypatch.setattr(pilot, "MOST_PAIRS", 20_000)
    look = pilot._looked_at
    monkeypatch.setattr(pilot, "_looked_at", lambda *a: (look(*a)[0], look(*a)[1] > 0.0))
    assert guessed("wrong values", 3000)[0] < 0.75


def wrong_years() -> np.ndarray:
    """The guessed percentages of wrong years of birth, truly 2, of three hard surveys."""
    found = []
    for seed in (11, 12, 13):
        made = survey(np.random.default_rng(seed), 4000, fields=HARD_SURVEY)
        items = Items.from_columns(made.columns, made.source, kind="records")
        prepared = RECORDS.prepared(items, RecordSettings(categories=tuple(made.columns)))
        odds = prepared.guess.law[prepared.law.names.index("miss_birth_year")]
        found.append(100.0 / (1.0 + np.exp(-odds)))
    return np.array(found)


@pytest.mark.filterwarnings("ignore:.*of another by the same expert")
def test_improbable_pairs_count_together(monkeypatch):
    """Three standard deviations of a mean of three are 0.4; the planted bug forgets such pairs."""
    right = wrong_years()
    assert right.mean() == pytest.approx(2.0, abs=0.4)
    monkeypatch.setattr(pilot, "NEGLIGIBLE_IF_CHEAP", 1e-3)
    monkeypatch.setattr(record_candidates, "IN_DOUBT", 1.0)
    assert np.all(wrong_years() < 0.93 * right)


def test_pairs_that_say_the_same_are_weighed_as_one():
    """The fit of a field's rates is that of all pairs, at a fraction of the price."""
    made = places(np.random.default_rng(2), objects=60)
    items = Items.from_columns(made.columns, made.source, kind="records")
    found = RECORDS.prepared(items, RecordSettings())
    hyper, pairs = found.hyper(2), found.candidates.pairs
    weight = np.random.default_rng(3).random(len(pairs)) ** 4
    weight[::5] = 0.0
    for at, field in enumerate(found.records.fields):
        facts = facts_of_pairs(hyper, at, pairs)
        alike = pilot.Alikes.of_field(hyper, at, facts)
        few, together = alike.together(facts, weight)
        assert together.sum() == pytest.approx(weight[facts.known].sum())
        assert (len(together) > 0.5 * facts.known.sum()) == (field.kind == "place")
        for law in (law_of_field(hyper, at), law_of_field(hyper, at) + 0.7):
            every = weight @ pair_ratio(hyper, at, facts, law)
            assert together @ pair_ratio(hyper, at, few, law) == pytest.approx(every, rel=1e-9)

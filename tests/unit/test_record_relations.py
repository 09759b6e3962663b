"""Different objects that are alike in several fields at once: found, weighed, and said."""

from __future__ import annotations

import numpy as np
import pytest

import dfcrp
from dfcrp.items.items import Items
from dfcrp.likelihoods.record import pilot
from dfcrp.likelihoods.record.hyper import (
    RecordSettings,
    excess_of_pairs,
    field_factors,
    log_bayes_factors,
)
from dfcrp.likelihoods.record.likelihood import RECORDS, RELATED
from dfcrp.likelihoods.record.relations import Alike, Relations, learn_relations
from studies.made_up_records import households, panel, places, survey

ALIKE = "ignore:.*of another by the same expert"


def factors_of(rng, n, share, common, rare=0.02):
    """log R of fields that agree or not, in n pairs of which a share is related."""
    related = rng.random(n) < share
    same = rng.random((len(common), n)) < rare
    same |= related & (rng.random((len(common), n)) < np.array(common)[:, None])
    return np.where(same, np.log(0.98 / rare + 0.02), np.log(0.02))


def test_a_relation_comes_back():
    rng = np.random.default_rng(1)
    factors = factors_of(rng, 100_000, 0.01, (0.9, 1.0, 0.0, 0.7))
    found = learn_relations(Alike(factors, {}, {}), np.ones(100_000))
    assert len(found.share) == 1
    assert found.share[0] == pytest.approx(0.01, rel=0.15)
    assert found.common[0] == pytest.approx([0.9, 1.0, 0.0, 0.7], abs=0.08)


def test_fields_that_agree_one_by_one_are_no_relation():
    factors = factors_of(np.random.default_rng(2), 100_000, 0.0, (0.0,) * 5)
    assert not len(learn_relations(Alike(factors, {}, {}), np.ones(100_000)).share)


def test_few_pairs_that_stand_for_many_prove_little():
    """The same pairs are evidence if each is one pair, and none if each stands for very many."""
    factors = factors_of(np.random.default_rng(3), 3000, 0.003, (1.0, 1.0, 0.0))
    assert len(learn_relations(Alike(factors, {}, {}), np.ones(3000)).share) == 1
    few = factors[:, :120]
    alike = factors_of(np.random.default_rng(5), 120, 0.0, (0.0,) * 3)
    alike[:2, 0] = factors.max()
    assert few.shape == alike.shape
    assert not len(learn_relations(Alike(alike, {}, {}), np.full(120, 500.0)).share)


def slow_excess(found: Relations, log_r, classes, chance) -> float:
    total = 1.0 - found.share.sum()
    for r, share in enumerate(found.share):
        product = share
        for field, value in enumerate(log_r):
            if field in classes:
                if classes[field] >= 0:
                    at = classes[field]
                    product *= found.spread[field][r, at] / chance[field][at]
            else:
                lam = found.common[r, field]
                product *= 1.0 - lam + lam * np.exp(value)
        total += product
    return max(float(np.log(total)), 0.0)


def test_excess_is_the_formula():
    rng = np.random.default_rng(4)
    chance, spread = rng.dirichlet(np.ones(6)), rng.dirichlet(np.ones(6), 2)
    found = Relations(np.array([0.1, 0.02]), rng.random((2, 3)), {1: spread})
    factors, classes = rng.normal(0, 2, (3, 40)), rng.integers(-1, 6, 40)
    exact = [
        slow_excess(found, factors[:, k], {1: int(classes[k])}, {1: chance}) for k in range(40)
    ]
    assert found.excess(Alike(factors, {1: classes}, {1: chance})) == pytest.approx(exact)
    none = Relations.none(3).excess(Alike(factors, {1: classes}, {1: chance}))
    assert np.all(none == 0.0)


def prepared(made):
    items = Items.from_columns(made.columns, made.source, kind="records")
    return items, RECORDS.prepared(items, RecordSettings())


@pytest.mark.filterwarnings(ALIKE)
@pytest.mark.parametrize(
    "made",
    [
        lambda rng: places(rng, objects=200),
        lambda rng: survey(rng, persons=2500),
    ],
    ids=["places", "survey"],
)
def test_fields_that_tell_nothing_of_each_other_have_no_relation(made):
    _, found = prepared(made(np.random.default_rng(6)))
    assert not len(found.guess.relations.share)
    assert not len(found.hyper(2).alike)


@pytest.mark.filterwarnings(ALIKE)
def test_households_are_found_and_said():
    items, found = prepared(households(np.random.default_rng(7), homes=400))
    fields = found.records.names
    common = dict(zip(fields, found.guess.relations.common[0], strict=True))
    assert min(common["surname"], common["address"], common["phone"]) > 0.7
    assert common["given_name"] < 0.2
    config = dfcrp.settings.config.make_config({"run": {"likelihood": "records"}})
    said = " ".join(RECORDS.reach_words(items, config))
    assert "surname, address" in said.replace("'", "")


def sure_and_right(made, **options):
    """Share right of the links above 0.95, links that are expected, and the true number."""
    items = Items.from_columns(made.columns, made.source, kind="records")
    posterior = dfcrp.fit(items, chains=2, scans=60, workers=1, **options)
    truth, pairs = np.array(made.truth), posterior.pairs
    right = truth[pairs.first] == truth[pairs.second]
    count = np.unique(truth, return_counts=True)[1]
    sure = pairs.probability > 0.95
    return right[sure].mean(), pairs.probability.sum(), float((count == 2).sum())


@pytest.mark.filterwarnings(ALIKE, "ignore::dfcrp.errors.DfcrpWarning")
def test_links_in_households_are_as_sure_as_they_say(monkeypatch: pytest.MonkeyPatch):
    """Without relations, as before, persons of one home are taken for one: the target is 92 %."""
    made = households(np.random.default_rng(8), homes=400)
    right, expected, true = sure_and_right(made)
    assert right > 0.95
    assert expected == pytest.approx(true, rel=0.15)
    monkeypatch.setattr(
        pilot, "learn_relations", lambda alike, weight: Relations.none(len(alike.factors))
    )
    before = sure_and_right(made)
    assert before[0] < 0.93
    assert before[1] > 1.05 * expected


@pytest.mark.filterwarnings(ALIKE, "ignore::dfcrp.errors.DfcrpWarning")
def test_the_number_of_links_of_a_panel_is_found():
    """Answers that go together made 1.9 times as many links as there are."""
    made = panel(np.random.default_rng(9), persons=3000)
    _, found = prepared(made)
    truth = np.unique(np.array(made.truth), return_counts=True)[1]
    assert found.guess.matches == pytest.approx((truth == 2).sum(), rel=0.35)


@pytest.mark.filterwarnings(ALIKE)
def test_tables_of_excess_are_those_of_the_formula():
    _, found = prepared(households(np.random.default_rng(10), homes=120))
    pairs = found.candidates.pairs
    hyper = found.hyper(2)
    unclumped = hyper._replace(
        share=hyper.share / np.repeat(found.guess.clumped, np.diff(hyper.first))
    )
    factors = np.stack(list(field_factors(unclumped, pairs)))
    exact = found.guess.relations.excess(Alike(factors, {}, {}))
    exact[exact <= 1e-3] = 0.0
    assert excess_of_pairs(hyper, pairs) == pytest.approx(exact)
    assert excess_of_pairs(hyper, pairs[:, ::-1]) == pytest.approx(exact)


@pytest.mark.filterwarnings(ALIKE, "ignore::dfcrp.errors.DfcrpWarning")
def test_explanations_say_what_likeness_of_different_objects_takes_away():
    """What all rows add up to is the change of log R."""
    made = households(np.random.default_rng(12), homes=120)
    items = Items.from_columns(made.columns, made.source, kind="records")
    posterior = dfcrp.fit(items, chains=2, scans=40, workers=1)
    found = RECORDS.prepared(items, posterior.config.likelihood)
    pairs = found.candidates.pairs
    one, other = pairs[int(np.argmax(excess_of_pairs(found.hyper(2), pairs)))].tolist()
    evidence = {e.name: e.log_odds for e in RECORDS.compare(posterior, one, np.array([other]))}
    hyper = found.hyper(2, np.array([[one, other]]))
    assert evidence[RELATED] == pytest.approx(-excess_of_pairs(hyper, np.array([[one, other]]))[0])
    assert evidence[RELATED] < -1.0
    hyper.law[:] = posterior.draws.shared().reshape(-1, len(hyper.law)).mean(axis=0)
    exact = log_bayes_factors(hyper, np.array([[one, other]]))[0]
    assert sum(evidence.values()) == pytest.approx(exact, abs=1e-6)

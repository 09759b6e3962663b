"""Summaries under the detection prior, against the slow twin."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest

from dfcrp.draws import Columns, shared_variable
from dfcrp.priors.detection import update as detection_update
from dfcrp.priors.detection.curves import sensitivity_curves
from dfcrp.priors.detection.kernel import with_own
from reference import detection_reference as twin
from reference import kernel_reference as reference
from reference.small_posteriors import detection_layout, random_posterior, under_detection

PERSONS = (("expert A", "expert C"),)


@pytest.fixture(scope="module")
def posterior():
    return under_detection(random_posterior(3, n=14, n_families=5, n_draws=30), persons=PERSONS)


def priors(posterior):
    """(chain, draw, prior) with each draw's parameters."""
    prior = detection_layout(posterior).prior
    shared = posterior.draws.shared()
    for chain in range(shared.shape[0]):
        for draw in range(shared.shape[1]):
            own = shared[chain, draw, -len(prior.own) :].copy()
            yield chain, draw, with_own(prior, own)


def clusters_of(posterior, chain, draw):
    """(members, log size) of a draw's clusters."""
    block = posterior.draws.clusters(chain, draw, draw + 1)
    size = dict(zip(block.labels.tolist(), block.parameters[:, 2].tolist(), strict=True))
    labels = posterior.labels[chain, draw]
    return [(members, size[members[0]]) for members in reference.clusters(labels.tolist())]


def test_probability_to_be_real(posterior):
    families = posterior.items.families
    expected = np.zeros(len(families))
    for chain, draw, prior in priors(posterior):
        for members, size in clusters_of(posterior, chain, draw):
            real = 1.0
            if len(members) == 1:
                f = int(families[members[0]])
                real -= prior.parameters.false[f] / math.exp(twin.log_factor(prior, [f], size))
            expected[members] += real
    expected /= posterior.draws.n_chains * posterior.draws.n_draws
    assert posterior.detection.p_real_marking == pytest.approx(expected, abs=1e-6)
    assert posterior.members()["p_real"].to_numpy() == pytest.approx(expected, abs=1e-6)
    catalogue = posterior.catalogue()
    assert catalogue["p_real"].between(0.0, 1.0).all()


def test_every_marking_is_real_or_false(posterior):
    found = posterior.detection
    count = np.bincount(posterior.items.families)
    assert (found.listed[:, 0] + found.false[:, 0] == count).all()
    for counts in (found.seen, found.missed, found.listed, found.false):
        assert (counts[:, 0] == counts[:, 1:].sum(axis=1)).all()
    assert (found.seen_at.sum(axis=1) == found.seen[:, 0]).all()
    assert (found.missed_at.sum(axis=1) == found.missed[:, 0]).all()
    alone = np.array(
        [
            sum(len(members) == 1 for members, _ in clusters_of(posterior, chain, draw))
            for chain, draw, _ in priors(posterior)
        ]
    )
    assert (found.sizes[:, 1] == alone).all()
    assert (found.false[:, 0].sum(axis=1) <= alone).all()
    assert (found.sensitivity[:, 0] <= 1.0).all()


def test_missed_objects_have_their_expected_number():
    """Geometric numbers by their mean; the false-alarm rate is 1e-6 (4.9 standard errors)."""
    rng = np.random.default_rng(5)
    for missed in (0.02, 0.4, 0.9):
        total = detection_update.draw_missed(rng, 40_000.0, math.log(missed))
        expected = 40_000 * missed / (1.0 - missed)
        error = math.sqrt(40_000 * missed) / (1.0 - missed)
        assert abs(total - expected) < 4.9 * error


def test_curves(posterior):
    """The share of all objects of a size, seen or missed, that an expert lists."""
    found = sensitivity_curves(posterior)
    experts = range(len(posterior.items.experts))
    level = 7
    draws = list(priors(posterior))
    expected = np.zeros(len(experts))
    for _, _, prior in draws:
        weight = prior.parameters.weight / [
            1.0 - twin.history(prior, g, level, ()) for g in range(len(prior.parameters.weight))
        ]
        weight = weight / weight.sum()
        for size in experts:
            for members in combinations(experts, size + 1):
                for g, w in enumerate(weight):
                    expected[list(members)] += w * twin.history(prior, g, level, members)
    assert found.sensitivity.mean[:, level] == pytest.approx(expected / len(draws), abs=1e-9)
    low = posterior.items.features[:, 2].min()
    high = posterior.items.features[:, 2].max()
    assert np.log(found.diameter[level]) == pytest.approx(low + (high - low) / 32 * 7.5)


def test_what_two_lists_of_a_person_share():
    """If all objects are alike, looking again for the other list finds the share s of them."""
    plain = random_posterior(4, n=14, n_families=5, n_draws=30)
    found = under_detection(plain, persons=PERSONS, classes=1, by_size=False)
    rows = found.detection.shared_noticing
    for f, person in enumerate(found.detection.persons.codes):
        expected = np.zeros(len(rows))
        if np.count_nonzero(found.detection.persons.codes == person) > 1:
            skill = [prior.parameters.skill[0, person] for _, _, prior in priors(found)]
            expected = 1.0 / (1.0 + np.exp(skill))
        assert rows[:, f] == pytest.approx(expected, abs=1e-9)


def test_summary_and_tables(posterior):
    summary = posterior.summary()
    assert "alpha" not in summary
    total = summary["n_objects"]["mean"] + summary["n_missed"]["mean"]
    assert summary["n_total"]["mean"] == pytest.approx(total)
    rows = {row["expert"]: row for row in summary["experts"]}
    assert rows["expert A"]["person"] == "expert A/expert C"
    assert 0.0 <= rows["expert A"]["shared_noticing"]["mean"] <= 1.0
    assert "person" not in rows["expert B"]
    for name in ("sensitivity", "false_marks"):
        assert {"mean", "lo", "hi"} == set(rows["expert B"][name])
        assert name in posterior.experts().columns
    assert [row["size_class"] for row in rows["expert B"]["by_size"]] == [
        "small",
        "medium",
        "large",
    ]


def test_a_run_is_judged_by_what_has_a_meaning(posterior):
    tally = ["n_objects", "n_missed", "n_false_marks"]
    columns = Columns.plain((), ["scale_x"]).joined(posterior.draws.columns)
    assert [columns.names[at] for at in columns.judged] == ["scale_x", *tally]
    assert Columns.plain((), ("scale_x", "growth_x")).judged == [0, 1]
    assert {d.name for d in posterior.verdict.diagnostics} >= set(tally)


def test_parameters_have_their_axes(posterior):
    columns, experts = posterior.draws.columns, posterior.items.experts
    persons = columns.coords["person"]
    assert columns.coords["expert"] == experts
    assert persons == ("expert A/expert C", "expert B", "expert D", "expert E")
    skill = shared_variable(posterior.draws, "skill")
    assert skill.shape == (*posterior.alpha.shape, len(columns.coords["class"]), len(persons))
    for chain, draw, prior in priors(posterior):
        assert (skill[chain, draw] == prior.parameters.skill).all()
        listing = shared_variable(posterior.draws, "listing")[chain, draw]
        assert (listing == prior.parameters.listing).all()
    found = posterior.to_arviz().posterior
    assert found["skill"].dims == ("chain", "draw", "class", "person")
    assert found["listing"].dims == ("chain", "draw", "class", "expert")
    assert found["false_marks"].sel(expert="expert B").shape == posterior.alpha.shape

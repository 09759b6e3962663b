"""The updates of what belongs to categories and scores, each alone, keep their joint with counts.

Parameters are drawn from the beliefs, and given them who says what of how many objects, and how
many real and false markings each level of score has. One update, and the parameters must again be
draws from the beliefs, also together with the counts: two-sample tests with the false-alarm rate
1e-5 (Bonferroni over the p values); seeds are fixed. Planted bugs must be caught.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit

from dfcrp.compiled import slice as slicing
from dfcrp.priors.detection import categories, scores
from reference import detection_reference as twin
from reference import small_problems as small
from reference.two_samples import same_law
from studies.detection_story import draw_parameters, parts

FALSE_ALARM_RATE = 1e-5
DRAWS = 2_000
#: Objects of which each person says something, and scored markings of each source.
OBJECTS, MARKINGS = 6, 8
SETTINGS = {"accuracy": 0.6, "accuracy_weight": 4.0, "confusion_strength": 5.0}


@pytest.fixture(scope="module")
def prior():
    """Three persons, three categories, two sources with scores."""
    families = np.repeat([0, 1, 2], [8, 8, 2])
    score = np.concatenate([np.arange(8.0), np.repeat([1.0, 2.0], 4), [np.nan, np.nan]])
    said = np.arange(len(families)) % 3
    return twin.make_prior(
        families, [0, 1, 2], said=said, scores=score, sizes=None, classes=1, **SETTINGS
    )


def count_words(rng, prior) -> np.ndarray:
    """Fill the counts of categories; a number that goes with them."""
    found, own = prior.categories, prior.parameters
    for counts in (found.seen, found.false_seen, found.counts):
        counts[:] = 0.0
    for c in rng.choice(3, OBJECTS, p=own.category_share):
        found.seen[c] += 1
        for p in range(3):
            found.counts[p, c, rng.choice(3, p=own.confusion[c, :, p])] += 1
    for c in rng.choice(3, 3, p=own.false_category):
        found.false_seen[c] += 1
    return np.array([found.counts[:, 0, 0].sum(), found.seen[0] + found.false_seen[0]])


def count_scored(rng, prior) -> np.ndarray:
    """Fill the counts of scores; half of the markings are real."""
    found, own = prior.scores, prior.parameters
    found.real[:], found.false[:] = 0.0, 0.0
    for f in range(2):
        likely = expit(own.score_slope[f] * found.rank[f] + own.score_offset[f])
        for table, weight in ((found.real, likely), (found.false, 1.0 - likely)):
            shares = found.share[f] * weight
            table[f] += rng.multinomial(MARKINGS, shares / shares.sum())
    return np.array([found.real[0] @ found.rank[0], found.false[1] @ found.rank[1]])


NAMES = {
    count_words: (
        *("category_share", "false_category", "confusion", "usual_confusion"),
        "confusion_strength",
    ),
    count_scored: ("score_slope", "score_offset", "usual_slope"),
}


def outcome(prior, count, update, seed) -> np.ndarray:
    """Parameters after the update, and their products with the counts: (draws, columns)."""
    rng, where = np.random.default_rng([seed, 77]), parts(prior)
    own = draw_parameters(rng, prior, DRAWS)
    rows = []
    for draw in own:
        prior.own[:] = draw
        counted = count(rng, prior)
        update(rng, prior)
        values = np.concatenate([prior.own[where[name]] for name in NAMES[count]])
        with_counts = np.outer(np.sign(values) * np.log1p(np.abs(values)), counted).ravel()
        rows.append(np.concatenate([values, with_counts]))
    return np.array(rows)


def smallest(one, two) -> float:
    """The smallest p value, times the number of tests."""
    found = [same_law(a, b) for a, b in zip(one.T, two.T, strict=True)]
    return min(found) * len(found)


def nothing(_rng, _prior):
    """No update."""


CASES = [(count_words, categories.update_categories), (count_scored, scores.update_scores)]


@pytest.mark.parametrize(("count", "update"), CASES, ids=["categories", "scores"])
def test_update_keeps_the_joint(prior, count, update):
    after, before = outcome(prior, count, update, 1), outcome(prior, count, nothing, 2)
    assert smallest(after, before) > FALSE_ALARM_RATE


def persons_forgotten(rng, prior):
    """M and s are updated as if each person's matrix were M itself."""
    usual = small.with_callees(categories.update_usual, draw_tables=lambda _r, count, _w: count)
    small.with_callees(categories.update_categories, update_usual=usual)(rng, prior)


def odds_forgotten(rng, prior):
    """σ is taken for the probability of a level."""
    curve = small.with_callees(scores.log_score_curve, log_odds=lambda *_: (0.0, 0.0))
    shrink = small.with_callees(slicing.shrink, log_target=curve)
    wrong = small.with_callees(slicing.slice_update, log_target=curve, shrink=shrink)
    small.with_callees(scores.update_scores, slice_update=wrong)(rng, prior)


BUGS = [(count_words, persons_forgotten), (count_scored, odds_forgotten)]


@pytest.mark.parametrize(("count", "bug"), BUGS, ids=["categories", "scores"])
def test_planted_bug_is_caught(prior, count, bug):
    after, before = outcome(prior, count, bug, 3), outcome(prior, count, nothing, 4)
    assert smallest(after, before) < FALSE_ALARM_RATE

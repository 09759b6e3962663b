"""A first guess of how fields go wrong, from pairs of candidates alone (Fellegi and Sunter's EM).

Pairs of records are taken for independent: a pair is of one object with odds λ R, and no record has
more than one partner in another source. Chains start from the guess, candidates are chosen and
left out by it, and it fixes P(level), how values of one object come to differ; all else is learned
by the chains themselves.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dfcrp.likelihoods.record import kernel
from dfcrp.likelihoods.record.hyper import (
    Compared,
    PairFacts,
    facts_of_pairs,
    law_of_field,
    log_bayes_factors,
    pair_ratio,
    records_hyper,
    usual_levels,
)
from dfcrp.likelihoods.record.levels import LEVELS
from dfcrp.likelihoods.record.settings import RecordSettings

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: Rounds of EM, and pairs that are looked at.
ROUNDS, MOST_PAIRS = 12, 200_000
#: Matches for each record that are expected at first, and at least.
FIRST_SHARE, LEAST_SHARE = 0.25, 0.01
#: Altered values that the first guess of P(level) is worth.
WORTH = 20.0
#: Pairs less probable than this say nothing of matches.
NEGLIGIBLE = 1e-3


@dataclass(frozen=True)
class Guess:
    """The law's entries of the fields, P(level) by field, and the expected number of matches."""

    law: Floats
    levels: Floats
    matches: float
    #: Share of the expected matches that the best guess would miss or make by mistake.
    doubt: float = 0.0
    #: Pairs of different objects that look like a match, for each expected match.
    by_chance: float = 0.0


def guess_law(
    model: RecordSettings, compared: tuple[Compared, ...], candidates: Ints, source: Ints
) -> Guess:
    """By EM over the candidates of different sources."""
    levels = np.tile(usual_levels(), (len(compared), 1))
    pairs = _sample(candidates, source)
    hyper = records_hyper(model, compared, pairs, source, 2, levels)
    if not len(pairs):
        return Guess(hyper.law, levels, 0.0)
    across = np.count_nonzero(source[candidates[:, 0]] != source[candidates[:, 1]])
    share = across / len(pairs)
    matches = FIRST_SHARE * len(source)
    of_level = [_levels_of(one, pairs) for one in compared]
    for round_ in range(ROUNDS):
        facts = [facts_of_pairs(hyper, at, pairs) for at in range(len(compared))]
        ratio = sum(
            pair_ratio(hyper, at, found, law_of_field(hyper, at)) for at, found in enumerate(facts)
        )
        probable = _responsibility(np.asarray(ratio), matches, pairs, source)
        matches = max(share * float(probable.sum()), LEAST_SHARE * len(source))
        kept = probable > NEGLIGIBLE
        for at, found in enumerate(facts):
            _learn(hyper, at, _only(found, kept), probable[kept])
        if round_ % 3 == 2:
            levels = np.stack(
                [
                    _learned_levels(hyper, at, facts[at], of_level[at], probable)
                    for at in range(len(compared))
                ]
            )
            hyper = records_hyper(model, compared, pairs, source, 2, levels)._replace(law=hyper.law)
    wrong = np.minimum(probable, 1.0 - probable).sum()
    doubt = float(wrong / max(probable.sum(), 1.0))
    chance = alike_by_chance(model, compared, candidates, source, hyper.law, levels, matches)
    return Guess(hyper.law, levels, matches, doubt, chance / max(matches, 1.0))


def alike_by_chance(
    model: RecordSettings,
    compared: tuple[Compared, ...],
    candidates: Ints,
    source: Ints,
    law: Floats,
    levels: Floats,
    matches: float,
) -> float:
    """Pairs across sources that are two objects and more likely taken for one.

    The records of one source are different objects: as often as two of them look like a match, in
    proportion to the number of pairs, do two of different sources that are none.
    """
    same = candidates[source[candidates[:, 0]] == source[candidates[:, 1]]]
    sizes = np.bincount(source).astype(np.float64)
    within = float((sizes * (sizes - 1.0)).sum()) / 2.0
    across = (sizes.sum() ** 2 - float((sizes**2).sum())) / 2.0
    if not len(same) or len(sizes) > len(source) / 2:
        return 0.0
    looked = _some(same)
    hyper = records_hyper(model, compared, looked, source, 2, levels)._replace(law=law)
    odds = log_bayes_factors(hyper, looked) + np.log(matches / max(across, 1.0))
    return float(np.count_nonzero(odds > 0.0)) * len(same) / len(looked) * across / within


def _sample(candidates: Ints, source: Ints) -> Ints:
    return _some(candidates[source[candidates[:, 0]] != source[candidates[:, 1]]])


def _some(pairs: Ints) -> Ints:
    """No more than are looked at, picked at random."""
    if len(pairs) <= MOST_PAIRS:
        return pairs
    chosen = np.random.default_rng(1).choice(len(pairs), MOST_PAIRS, replace=False)
    return pairs[np.sort(chosen)]


def _responsibility(ratio: Floats, matches: float, pairs: Ints, source: Ints) -> Floats:
    """The probability of each pair, so that no record has more than one partner in a source."""
    sizes = np.bincount(source).astype(np.float64)
    all_pairs = max((sizes.sum() ** 2 - (sizes**2).sum()) / 2.0, 1.0)
    odds = np.exp(np.clip(ratio, -700.0, 500.0)) * (matches / all_pairs)
    total = np.ones(len(pairs))
    many = len(sizes) > len(source) / 2  # sources of one record each: no rule
    for one, other in ((0, 1), (1, 0)) if not many else ():
        key = pairs[:, one] * len(sizes) + source[pairs[:, other]]
        where = np.unique(key, return_inverse=True)[1]
        rivals = np.bincount(where, weights=odds)[where] - odds
        total = np.maximum(total, 1.0 + rivals)
    return np.asarray(odds / (total + odds))


def _only(facts: PairFacts, kept: NDArray[np.bool_]) -> PairFacts:
    return PairFacts(
        facts.known[kept],
        facts.same[kept],
        facts.share[kept],
        facts.altered[kept],
        facts.both_altered[kept],
        facts.apart[kept],
        facts.log_density[:, kept],
    )


def _learn(hyper: kernel.RecordHyper, at: int, facts: PairFacts, weight: Floats) -> None:
    """Let the field's entries of the law be the most probable ones."""
    from scipy.optimize import minimize

    entries = hyper.entry[:, at]
    used = entries >= 0
    mean, sd = hyper.law_mean[entries[used]], hyper.law_sd[entries[used]]
    weight = weight * facts.known

    def cost(z: Floats) -> float:
        law = np.full(3, -np.inf)
        law[used] = mean + sd * z
        found = float(weight @ pair_ratio(hyper, at, facts, law))
        return 0.5 * float(z @ z) - found

    start = (hyper.law[entries[used]] - mean) / sd
    best = minimize(cost, start, method="Nelder-Mead", options={"maxiter": 60, "xatol": 0.05})
    hyper.law[entries[used]] = mean + sd * np.clip(best.x, -5.0, 5.0)


def _levels_of(one: Compared, pairs: Ints) -> Ints:
    """The level of each pair of records; 0 where values are the same, missing or not similar."""
    found = np.zeros(len(pairs), np.int64)
    if one.comparison is not None:
        codes = one.field.codes[pairs]
        differ = (codes >= 0).all(axis=1) & (codes[:, 0] != codes[:, 1])
        found[differ] = one.comparison.levels(codes[differ])
    return found


def _learned_levels(
    hyper: kernel.RecordHyper, at: int, facts: PairFacts, level: Ints, probable: Floats
) -> Floats:
    """P(level): how values of matches differ, if one of them is altered and not unrelated."""
    usual = usual_levels()
    m, t = 1.0 / (1.0 + np.exp(-law_of_field(hyper, at)[:2])) if level.any() else (1.0, 0.0)
    c, e = (1.0 - m) * t, (1.0 - m) * (1.0 - t)
    unrelated = (m + c) ** 2 - c * c + 2.0 * e * m
    altered = 2.0 * e * c * facts.altered
    weight = probable * altered / np.maximum(unrelated + altered, 1e-300)
    count = np.bincount(level, weights=weight, minlength=LEVELS)
    count[0] = 0.0
    return np.asarray((WORTH * usual + count) / (WORTH + count.sum()))

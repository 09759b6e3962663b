"""A first guess of how fields go wrong, from pairs of candidates alone (Fellegi and Sunter's EM).

In turns, how probable each pair is follows from the rates of faults and the number of matches, with
no record having more than one partner in another source, and these from how probable the pairs are.
Chains start from the guess, candidates are chosen and left out by it, and it fixes P(level), how
values of one object come to differ; all else is learned by the chains themselves.

For two sources a matching has weight Π z R over its pairs, with R their ratio (``kernel``) and

    z = M / ((a - M) (b - M))

for sources of a and b records with M matches: the odds of one more match between two records that
have none, if all matchings of one size are equally likely. The probability of a pair follows from
messages between records (belief propagation), which is exact where candidates form no cycles.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dfcrp.likelihoods.record import kernel
from dfcrp.likelihoods.record.candidates import unique_pairs
from dfcrp.likelihoods.record.hyper import (
    Compared,
    PairFacts,
    RecordSettings,
    alike_of,
    facts_of_pairs,
    law_of_field,
    log_bayes_factors,
    pair_ratio,
    records_hyper,
    usual_levels,
    usual_of_all,
    with_clumps,
    with_relations,
)
from dfcrp.likelihoods.record.levels import random_pairs
from dfcrp.likelihoods.record.relations import Relations, learn_relations
from dfcrp.values import Array

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
#: Rounds of messages at a time, and the change at which they end.
MESSAGES, MESSAGES_SETTLED = 10, 1e-3
#: Pairs of less weight keep no other apart.
NO_RIVAL = 1e-5
#: Bounds of log weights, so that sums stay finite.
LEAST_WEIGHT, LARGEST_WEIGHT = -700.0, 300.0
#: Matches that the number expected of two sources is worth, by the overlap of all.
MESSAGE_WORTH = 5.0
#: Rounds of EM at most, and while candidates are looked for; the change of log odds at which it
#: ends; pairs that are looked at.
ROUNDS, FIRST_ROUNDS, SETTLED, MOST_PAIRS = 44, 16, 0.02, 400_000
#: Of more pairs: the best ones of a record on each list, steps from the records picked, and pairs
#: that come to one of these.
BEST, RINGS, GROWTH = 4, 3, 30
#: Rounds in which only the number of matches is learned: rates would follow pairs by chance.
HOLD = 4
#: Rounds after which P(level) is learned.
LEVEL_ROUNDS = (5, 8, 11)
#: Matches for each record that are expected at first, and at least.
FIRST_SHARE, LEAST_SHARE = 0.25, 0.01
#: Altered values that the first guess of P(level) is worth.
WORTH = 20.0
#: Pairs of one source that tell how different objects are related: candidates, and others.
MOST_APART, RANDOM_APART = 60_000, 10_000
#: Records by which f is thought to be right at first, and sources at most where that is asked.
CLUMPS_WORTH, MOST_CLUMPED = 20.0, 100
#: Pairs less probable than this say nothing of a field. Where fields tell little there may be very
#: many of them, so those count for longer that cost little: of values that are the same or not.
NEGLIGIBLE, NEGLIGIBLE_IF_CHEAP = 1e-3, 1e-6


@dataclass(frozen=True)
class Ends:
    """One end of every pair: a record, as a partner for one other source."""

    #: Pairs, those of one end together, where each end begins, and each pair's end.
    order: Ints
    start: Ints
    of: Ints

    @staticmethod
    def by(key: Ints) -> Ends:
        """Ends by any number that names them."""
        of = np.unique(key, return_inverse=True)[1].astype(np.int64)
        order = np.argsort(of, kind="stable")
        start = np.searchsorted(of[order], np.arange(int(of.max(initial=-1)) + 1))
        return Ends(order, start, of)

    def others(self, weight: Floats) -> Floats:
        """For each pair the sum of the other pairs' weights at this end.

        The largest is left out and added again, since of a sum that it dominates nothing would
        remain of the others.
        """
        largest = np.maximum.reduceat(weight[self.order], self.start)[self.of]
        first = np.full(len(self.start), -1)
        top = np.flatnonzero(weight == largest)
        first[self.of[top]] = top
        rest = weight.copy()
        rest[first] = 0.0
        total = np.bincount(self.of, weights=rest)[self.of]
        found = np.maximum(total - rest, 0.0) + largest
        found[first] = total[first]
        return found


@dataclass(frozen=True)
class Matching:
    """Pairs of records of different sources, and which of them exclude each other."""

    pairs: Ints
    #: The two sources of each pair as one number, and by it how many records either has.
    block: Ints
    sizes: Floats
    #: Both ends, or none where sources have one record each, so that there is no rule.
    ends: tuple[Ends, ...]

    @staticmethod
    def of(pairs: Ints, source: Ints) -> Matching:
        """Of pairs across sources.

        The record of the lesser source comes first, so that all pairs of a record and a source have
        it at the same end, in whatever order the records are listed.
        """
        count = np.bincount(source).astype(np.float64)
        turned = source[pairs[:, 0]] > source[pairs[:, 1]]
        pairs = np.where(turned[:, None], pairs[:, ::-1], pairs)
        here = source[pairs]
        if len(count) > len(source) / 2:
            half = np.array([[len(source), (len(source) - 1) / 2.0]])
            return Matching(pairs, np.zeros(len(pairs), np.int64), half, ())
        key, block = np.unique(here[:, 0] * len(count) + here[:, 1], return_inverse=True)
        sizes = np.column_stack([count[key // len(count)], count[key % len(count)]])
        ends = tuple(
            Ends.by(pairs[:, one] * len(count) + source[pairs[:, 1 - one]]) for one in range(2)
        )
        return Matching(pairs, block.astype(np.int64), sizes, ends)

    def spread(self, matches: float) -> Floats:
        """So many matches for each two sources, in proportion to their pairs."""
        possible = self.sizes.prod(axis=1)
        return self._bounded(matches * possible / possible.sum())

    def count(self, probable: Floats, least: float) -> Floats:
        """M of each two sources by the probabilities of pairs; ``least`` is for all together.

        Where two sources say little, the overlap of all of them counts.
        """
        seen = np.bincount(self.block, weights=probable, minlength=len(self.sizes))
        possible = self.sizes.prod(axis=1)
        expected = max(float(seen.sum()), least) * possible / possible.sum()
        return self._bounded(expected * (seen + MESSAGE_WORTH) / (expected + MESSAGE_WORTH))

    def _bounded(self, matches: Floats) -> Floats:
        return np.minimum(matches, self.sizes.min(axis=1) - 0.5) if self.ends else matches

    def log_odds(self, matches: Floats) -> Floats:
        """log z of each pair."""
        one, other = self.sizes.T
        if not self.ends:
            return np.log(matches / (one * other))[self.block]
        return np.log(matches / ((one - matches) * (other - matches)))[self.block]

    def free_share(self, matches: Floats) -> float:
        """Share of the possible pairs of which neither record has a partner."""
        if not self.ends:
            return 1.0
        return float(
            (self.sizes - matches[:, None]).prod(axis=1).sum() / self.sizes.prod(axis=1).sum()
        )

    def silence(self) -> Floats:
        """Messages before the first: every end of a pair is free."""
        return np.ones((2, len(self.pairs)))

    def probable(self, log_ratio: Floats, matches: Floats, free: Floats) -> Floats:
        """The probability of each pair; ``free``, what its ends say to it, is brought up to date.

        An end says how probable it is that no other pair has it, by what the far ends of those say.
        """
        bounded = np.clip(log_ratio + self.log_odds(matches), LEAST_WEIGHT, LARGEST_WEIGHT)
        weight = np.exp(bounded)
        kept = np.flatnonzero(weight > NO_RIVAL)
        if self.ends and len(kept):
            ends, strong = [Ends.by(end.of[kept]) for end in self.ends], weight[kept]
            said = free[:, kept]
            for _ in range(MESSAGES):
                new = [1.0 / (1.0 + e.others(strong * said[1 - at])) for at, e in enumerate(ends)]
                before, said = said, np.sqrt(np.stack(new) * said)
                if np.abs(said - before).max() < MESSAGES_SETTLED:
                    break
            free[:, kept] = said
            weight[kept] *= said[0] * said[1]
        return np.asarray(weight / (1.0 + weight))


@dataclass(frozen=True)
class Guess:
    """The law's entries of the fields, P(level) by field, and the expected number of matches."""

    law: Floats
    levels: Floats
    matches: float
    #: How different objects are related.
    relations: Relations
    #: By field, what f is multiplied by (``Elsewhere``).
    clumped: Floats
    #: Log odds that two records which have no partner yet are of one object, before any field.
    log_odds: float = 0.0
    #: Share of the expected matches that the best guess would miss or make by mistake.
    doubt: float = 0.0
    #: Share of all pairs across sources that have no other partner.
    free: float = 1.0
    #: Pairs of different objects that look like a match and are free to be one, for each match.
    by_chance: float = 0.0


def guess_law(
    model: RecordSettings,
    compared: tuple[Compared, ...],
    candidates: Ints,
    source: Ints,
    rounds: int = ROUNDS,
) -> Guess:
    """By EM over the candidates of different sources."""
    levels = usual_of_all(compared)
    pairs, weight = _looked_at(model, compared, candidates, source)
    hyper = records_hyper(model, compared, pairs, source, 2, levels)
    if not len(pairs):
        return Guess(hyper.law, levels, 0.0, Relations.none(len(compared)), np.ones(len(compared)))
    matching = Matching.of(pairs, source)
    matches, free = matching.spread(FIRST_SHARE * len(source)), matching.silence()
    of_level = [_levels_of(one, pairs) for one in compared]
    facts = _facts(hyper, pairs)
    alike = [Alikes.of_field(hyper, at, found) for at, found in enumerate(facts)]
    apart = Apart.of(compared, candidates, source)
    elsewhere = Elsewhere.of(compared, source)
    clumped = np.ones(len(compared))
    excess, relations = np.zeros(len(pairs)), Relations.none(len(compared))
    for round_ in range(rounds):
        now = [
            replace(found, share=found.share * c) for found, c in zip(facts, clumped, strict=True)
        ]
        probable = matching.probable(_ratio(hyper, now) - excess, matches, free)
        matches = matching.count(weight * probable, LEAST_SHARE * len(source))
        before = hyper.law.copy()
        for at, found in enumerate(now if round_ >= HOLD else ()):
            cheap = hyper.kind[at] == kernel.SAME_OR_NOT
            kept = probable > (NEGLIGIBLE_IF_CHEAP if cheap else NEGLIGIBLE)
            _learn(hyper, at, *alike[at].together(found, weight * probable * kept))
        if round_ in LEVEL_ROUNDS:
            levels = _learned_levels(hyper, compared, facts, of_level, weight * probable)
            hyper = records_hyper(model, compared, pairs, source, 2, levels)._replace(law=hyper.law)
            facts = _facts(hyper, pairs)
            alike = [Alikes.of_field(hyper, at, found) for at, found in enumerate(facts)]
            relations = apart.relations(model, compared, source, hyper.law, levels)
            excess = relations.excess(alike_of(compared, _factors(hyper, facts), pairs))
        if round_ >= min(LEVEL_ROUNDS):
            clumped = elsewhere.clumped(pairs, probable)
        if round_ > max(LEVEL_ROUNDS) and np.abs(hyper.law - before).max() < SETTLED:
            break
    total = float(weight @ probable)
    doubt = float(weight @ np.minimum(probable, 1.0 - probable)) / max(total, 1.0)
    log_odds = float(np.average(matching.log_odds(matches), weights=weight * probable + 1e-300))
    free_share = matching.free_share(matches)
    total_matches = float(matches.sum())
    guess = Guess(hyper.law, levels, total_matches, relations, clumped, log_odds, doubt, free_share)
    chance = alike_by_chance(model, compared, candidates, source, guess)
    return replace(guess, by_chance=free_share * chance / max(guess.matches, 1.0))


def _facts(hyper: kernel.RecordHyper, pairs: Ints) -> list[PairFacts]:
    return [facts_of_pairs(hyper, at, pairs) for at in range(len(hyper.kind))]


def _ratio(hyper: kernel.RecordHyper, facts: list[PairFacts]) -> Floats:
    """Σ log R_f of every pair."""
    return np.asarray(_factors(hyper, facts).sum(axis=0))


def _factors(hyper: kernel.RecordHyper, facts: list[PairFacts]) -> Floats:
    """log R_f of every field, (fields, pairs)."""
    fields = enumerate(facts)
    return np.stack([pair_ratio(hyper, at, f, law_of_field(hyper, at)) for at, f in fields])


@dataclass(frozen=True)
class Elsewhere:
    """Which values are found in another source, and how many should be by chance.

    f is told by how often a source repeats a value. Where its records of one value go together, as
    several of one person do, that is more often than a record which has no match meets the value in
    another source. By the records without a match f is too large by what ``clumped`` gives.
    """

    #: By field, (records,): whether another source has the value; the share of all objects whose
    #: value one of the other sources has; 0 where it is missing, or where there is nothing to tell.
    found: Floats
    expected: Floats

    @staticmethod
    def of(compared: tuple[Compared, ...], source: Ints) -> Elsewhere:
        """Of values that are the same or not, where sources have more than one record."""
        found = np.zeros((len(compared), len(source)))
        expected = np.zeros_like(found)
        sources = int(source.max(initial=0)) + 1
        if len(np.unique(source)) > len(source) / 2 or sources > MOST_CLUMPED:
            return Elsewhere(found, expected)
        for at, one in enumerate(compared):
            known = np.flatnonzero(one.field.codes >= 0)
            if one.kind == kernel.MEASURE or not len(known):
                continue
            codes, of = one.field.codes[known], source[known]
            having = np.zeros((sources, len(one.field.values)), np.bool_)
            having[of, codes] = True
            others = having.sum(axis=0)[None, :] - having > 0
            found[at, known] = others[of, codes]
            expected[at, known] = (others @ one.share)[of]
        return Elsewhere(found, expected)

    def clumped(self, pairs: Ints, probable: Floats) -> Floats:
        """By field, what f is to be multiplied by; up to 1."""
        n = self.found.shape[1]
        seen = np.zeros(n, np.bool_)
        seen[pairs] = True
        taken = np.bincount(pairs.ravel(), weights=np.repeat(probable, 2), minlength=n)
        alone = seen * np.maximum(1.0 - taken, 0.0)
        found, expected = self.found @ alone, self.expected @ alone
        return np.minimum((found + CLUMPS_WORTH) / (expected + CLUMPS_WORTH), 1.0)


@dataclass(frozen=True)
class Apart:
    """Pairs of one source, which are two objects: all candidates or many, and some at random."""

    pairs: Ints
    #: How many pairs each of them stands for.
    weight: Floats

    @staticmethod
    def of(compared: tuple[Compared, ...], candidates: Ints, source: Ints) -> Apart:
        """None where sources have one record each."""
        sizes = np.bincount(source).astype(np.float64)
        within = float((sizes * (sizes - 1.0)).sum()) / 2.0
        same = candidates[source[candidates[:, 0]] == source[candidates[:, 1]]]
        if not len(same) or len(sizes) > len(source) / 2:
            return Apart(np.empty((0, 2), np.int64), np.empty(0))
        rng = np.random.default_rng(2)
        looked = same
        if len(same) > MOST_APART:
            looked = same[rng.choice(len(same), MOST_APART, replace=False)]
        n = len(source)
        others = random_pairs(source, 3)[:RANDOM_APART]
        keys = others.min(axis=1) * n + others.max(axis=1)
        others = others[~np.isin(keys, same.min(axis=1) * n + same.max(axis=1))]
        stands = max(within - len(same), 0.0) / max(len(others), 1)
        weight = np.concatenate(
            [np.full(len(looked), len(same) / len(looked)), np.full(len(others), stands)]
        )
        return Apart(np.concatenate([looked, others]), weight)

    def relations(
        self,
        model: RecordSettings,
        compared: tuple[Compared, ...],
        source: Ints,
        law: Floats,
        levels: Floats,
    ) -> Relations:
        """As they are at these rates."""
        if not len(self.pairs):
            return Relations.none(len(compared))
        hyper = records_hyper(model, compared, self.pairs, source, 2, levels)._replace(law=law)
        factors = _factors(hyper, _facts(hyper, self.pairs))
        return learn_relations(alike_of(compared, factors, self.pairs), self.weight)


def alike_by_chance(
    model: RecordSettings,
    compared: tuple[Compared, ...],
    candidates: Ints,
    source: Ints,
    guess: Guess,
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
    looked = same
    if len(same) > MOST_PAIRS:
        looked = same[np.random.default_rng(1).choice(len(same), MOST_PAIRS, replace=False)]
    hyper = records_hyper(model, compared, looked, source, 2, guess.levels)._replace(law=guess.law)
    hyper = with_relations(hyper, compared, guess.relations, looked)
    hyper = with_clumps(hyper, guess.clumped)
    odds = log_bayes_factors(hyper, looked) + guess.log_odds
    return float(np.count_nonzero(odds > 0.0)) * len(same) / len(looked) * across / within


def _looked_at(
    model: RecordSettings, compared: tuple[Compared, ...], candidates: Ints, source: Ints
) -> tuple[Ints, Floats]:
    """Pairs across sources that are looked at, and how many pairs each of them stands for.

    Of very many, the best ones of records picked at random, and without weight those of their
    partners, and of the partners of these: how probable a pair is depends on whom else its records
    could be with, so a rival that seems to have nobody else would take a partner away.
    """
    across = candidates[source[candidates[:, 0]] != source[candidates[:, 1]]]
    if len(across) <= MOST_PAIRS:
        return across, np.ones(len(across))
    n = len(source)
    own, known = np.zeros(n, np.bool_), np.zeros(n, np.bool_)
    own[np.random.default_rng(1).permutation(n)[: MOST_PAIRS // GROWTH]] = True
    newest, found = own, [np.empty((0, 2), np.int64)]
    for _ in range(RINGS):
        known |= newest
        pairs = across[newest[across].any(axis=1)]
        factors = log_bayes_factors(records_hyper(model, compared, pairs, source, 2), pairs)
        found.append(pairs[_best(pairs, factors, source, newest)])
        newest = np.zeros(n, np.bool_)
        newest[found[-1]] = True
        newest &= ~known
    pairs = unique_pairs(np.concatenate(found), n)
    return pairs, own[pairs].sum(axis=1) / 2.0 * (n / own.sum())


def _best(
    pairs: Ints, factors: Floats, source: Ints, wanted: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """Pairs that are among the best of one of the wanted records on the other's list."""
    kept = np.zeros(len(pairs), np.bool_)
    for end in range(2):
        here = np.flatnonzero(wanted[pairs[:, end]])
        key = pairs[here, end] * (int(source.max(initial=0)) + 1) + source[pairs[here, 1 - end]]
        order = np.lexsort((-factors[here], key))
        key = key[order]
        place = np.arange(len(key)) - np.searchsorted(key, key)
        kept[here[order[place < BEST]]] = True
    return kept


def _only(facts: PairFacts, kept: Array) -> PairFacts:
    """Some of the pairs."""
    return PairFacts(
        facts.known[kept],
        facts.same[kept],
        facts.share[kept],
        facts.altered[kept],
        facts.both_altered[kept],
        facts.apart[kept],
        facts.log_density[:, kept],
    )


@dataclass(frozen=True)
class Alikes:
    """Pairs that say the same of a field, which are weighed as one: there are far fewer of these.

    Of measures no two pairs say the same. Where a value is missing a pair says nothing.
    """

    #: One pair of each kind, and by pair its kind; -1 of those that say nothing.
    first: Ints
    of: Ints

    @staticmethod
    def of_field(hyper: kernel.RecordHyper, at: int, facts: PairFacts) -> Alikes:
        """Of the field at this place."""
        of = np.full(len(facts.known), -1, np.int64)
        known = np.flatnonzero(facts.known)
        if hyper.kind[at] == kernel.MEASURE:
            of[known] = np.arange(len(known))
            return Alikes(known, of)
        said = np.where(facts.same, facts.share, facts.altered)
        said = said + 1j * np.where(facts.same, -1.0, facts.both_altered)
        first, of[known] = np.unique(said[known], return_index=True, return_inverse=True)[1:]
        return Alikes(known[first], of)

    def together(self, facts: PairFacts, weight: Floats) -> tuple[PairFacts, Floats]:
        """One pair of each kind, with the weight of all; without those that weigh nothing."""
        counts = (self.of >= 0) & (weight > 0.0)
        seen = weight[counts]
        total = np.bincount(self.of[counts], weights=seen, minlength=len(self.first))
        kept = np.flatnonzero(total > 0.0)
        return _only(facts, self.first[kept]), total[kept].astype(np.float64)


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
    hyper: kernel.RecordHyper,
    compared: tuple[Compared, ...],
    facts: list[PairFacts],
    levels: list[Ints],
    probable: Floats,
) -> Floats:
    """P(level) of every field."""
    fields = enumerate(zip(compared, facts, levels, strict=True))
    return np.stack([_levels_of_field(hyper, at, *found, probable) for at, found in fields])


def _levels_of_field(
    hyper: kernel.RecordHyper,
    at: int,
    one: Compared,
    facts: PairFacts,
    level: Ints,
    probable: Floats,
) -> Floats:
    """P(level): how values of matches differ, if just one of them is altered, and not unrelated.

    Of free text S and J are the same, so that either or both may be altered.
    """
    m, t = 1.0 / (1.0 + np.exp(-law_of_field(hyper, at)[:2])) if level.any() else (1.0, 0.0)
    c, e = (1.0 - m) * t, (1.0 - m) * (1.0 - t)
    unrelated = (m + c) ** 2 - c * c + 2.0 * e * m
    altered = 2.0 * e * c * facts.altered
    both = c * c * facts.both_altered
    usual = usual_levels(one)
    known = altered + both if one.field.kind == "text" else altered
    weight = probable * known / np.maximum(unrelated + altered + both, 1e-300)
    count = np.bincount(level, weights=weight, minlength=len(usual))
    count[0] = 0.0
    return np.asarray((WORTH * usual + count) / (WORTH + count.sum()))

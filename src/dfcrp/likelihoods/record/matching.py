"""How probable each pair of candidates is, if no record has more than one partner in a source.

For two sources a matching has weight Π z R over its pairs, with R their ratio (``kernel``) and

    z = M / ((a - M) (b - M))

for sources of a and b records with M matches: the odds of one more match between two records that
have none, if all matchings of one size are equally likely. The probability of a pair follows from
messages between records (belief propagation), which is exact where candidates form no cycles.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: Rounds of messages at a time, and the change at which they end.
MESSAGES, SETTLED = 10, 1e-3
#: Pairs of less weight keep no other apart.
NO_RIVAL = 1e-5
#: Bounds of log weights, so that sums stay finite.
LEAST_WEIGHT, LARGEST_WEIGHT = -700.0, 300.0
#: Matches that the number expected of two sources is worth, by the overlap of all.
WORTH = 5.0


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
        return self._bounded(expected * (seen + WORTH) / (expected + WORTH))

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
                if np.abs(said - before).max() < SETTLED:
                    break
            free[:, kept] = said
            weight[kept] *= said[0] * said[1]
        return np.asarray(weight / (1.0 + weight))

"""Which simple transformation brings one list to the others.

Coordinates may be exchanged or change their sign, and be shifted or scaled besides. A shift is
found by a vote: every pair of an item and one of the other lists on its image proposes the
difference of their places, and the right one is proposed many times. Scales are shifts of
logarithms.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dfcrp.first_look.nearness import MOST, NEAR, Nearness

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: Items that are moved, pairs that vote.
MOST_MOVED, MOST_PAIRS = 400, 4_000_000
#: A list is brought to the others if this share of it comes to lie near theirs, so much more than
#: before, and so many items.
ENOUGH, MORE, LEAST = 0.5, 0.3, 8
#: How often items are simulated in each way, the smallest share that is near by chance, and of an
#: item's neighbours on its list those that others are made of.
SIMULATED, LEAST_CHANCE, NEIGHBOURS = 4, 0.05, (3, 7)
#: Exchanges and flips that are tried, shifts about that of a pair, scales for each of them; and
#: false alarms among all of it.
FIXED, ABOUT_PAIR, SCALES, FALSE_ALARM = 50, 4, 50, 1e-3
#: A simpler transformation is preferred to one that brings so few more together.
SIMPLER = 0.05
#: Cells along each axis in which votes are counted, at most; and of the coarse look.
MOST_CELLS, GRID = 2_000, 512
#: Scales nearer to one than this are none; logarithms of scales are told apart to this.
SAME_SCALE, SCALE_STEP = 0.03, 0.01
#: Scales that are meant where one near them is found.
USUAL_SCALES = (0.5, 2.0, *(10.0**k for k in range(-6, 7) if k))
#: Of unit and origin at once: the part of the items that spreads are of, how much spreads differ
#: then, and how far about their ratio a scale is looked for.
MIDDLE, OTHER_SPREAD, ABOUT, ABOUT_STEP = (0.1, 0.9), 0.15, 12, 0.02
#: Shifts smaller than this, in ``near``, are none.
NO_SHIFT = 1.0


@dataclass(frozen=True)
class Move:
    """new = scale · sign · old[order] + shift."""

    order: tuple[int, ...]
    sign: tuple[float, ...]
    shift: tuple[float, ...]
    scale: float = 1.0

    def __call__(self, coordinates: Floats) -> Floats:
        """The coordinates after the transformation."""
        return self.scale * np.array(self.sign) * coordinates[:, self.order] + np.array(self.shift)

    @property
    def exchanged(self) -> bool:
        """Whether coordinates change places."""
        return self.order != tuple(range(len(self.order)))

    @property
    def effort(self) -> int:
        """How much it says: what is simpler comes first."""
        return (
            2 * self.exchanged
            + sum(2 for sign in self.sign if sign < 0.0)
            + sum(1 for shift in self.shift if shift)
            + 2 * (self.scale != 1.0)
        )


class Fit(NamedTuple):
    """A transformation, and the share of a list that is near the others, before and after."""

    move: Move
    before: float
    after: float


def find_move(nearness: Nearness, rows: Ints, others: Ints) -> Fit | None:
    """The simplest transformation that brings items to those of the other lists, or None."""
    search = _Search.of(nearness, rows, others)
    if search is None:
        return None
    before = search.share(Move(*_identity(search.p)))
    fits = [
        Fit(move, before, after)
        for move in search.moves()
        if (after := search.share(move)) >= max(before + MORE, ENOUGH)
        and search.no_chance(move, after)
    ]
    if not fits:
        return None
    best = max(fit.after for fit in fits)
    good = [fit for fit in fits if fit.after >= best - SIMPLER]
    return min(good, key=lambda fit: (fit.move.effort, -fit.after))


def _identity(p: int) -> tuple[tuple[int, ...], tuple[float, ...], tuple[float, ...]]:
    return tuple(range(p)), (1.0,) * p, (0.0,) * p


@dataclass
class _Search:
    """Items of one list and those that they are compared with."""

    nearness: Nearness
    coordinates: Floats
    image: Ints
    other: Floats
    other_image: Ints
    rng: np.random.Generator

    @classmethod
    def of(cls, nearness: Nearness, rows: Ints, others: Ints) -> _Search | None:
        """Of items on images that others have items on; None if these are few."""
        rng = np.random.default_rng(len(rows))
        where = nearness.image
        both = np.intersect1d(where[rows], where[others])
        rows = rows[np.isin(where[rows], both) & (nearness.near[where[rows]] > 0.0)]
        others = others[np.isin(where[others], where[rows])]
        if len(rows) < LEAST or not len(others):
            return None
        if len(rows) > MOST_MOVED:
            rows = np.sort(rng.choice(rows, MOST_MOVED, replace=False))
        given = nearness.sight.coordinates
        found = cls(nearness, given[rows], where[rows], given[others], where[others], rng)
        return found

    def __post_init__(self) -> None:
        from scipy.spatial import cKDTree

        places = self.nearness.placed(self.other)
        self.p = self.coordinates.shape[1]
        self.tree = cKDTree(self.nearness.together(places, self.other_image))
        self.near = self.nearness.near[self.image]
        others = np.bincount(self.other_image, minlength=int(self.image.max()) + 1)
        #: Every pair proposes a shift.
        self.pairs = max(int(others[self.image].sum()), 1)

    def no_chance(self, move: Move, share: float) -> bool:
        """Whether the best of all that is tried would hardly bring so many near by chance.

        How many a move brings near by chance is seen from items that are not on the list but lie as
        those that are: beside the places where the move takes them, between neighbours, and with
        coordinates of neighbours. Where a list is shrunk to a spot, on a line or in a grid, these
        come to lie near others as often as the list itself.
        """
        from scipy.special import bdtrc

        n = len(self.coordinates)
        k = round(n * share)
        if k < LEAST:
            return False
        tried = FIXED * (ABOUT_PAIR * self.pairs if any(move.shift) else 1)
        tried *= SCALES if move.scale != 1.0 else 1
        return float(bdtrc(k - 1, n, self._by_chance(move))) * tried < FALSE_ALARM

    def _by_chance(self, move: Move) -> float:
        """Which share of simulated items lies near the others after a move."""
        n, ways = len(self.coordinates), [LEAST_CHANCE]
        for way in (None, self._between, self._mixed):
            near, made = 1.0, 2.0
            for seed in range(1, SIMULATED + 1):
                coordinates, some = (None, None) if way is None else way(seed)
                count = n if some is None else len(some)
                if count:
                    near += n * self.share(move, 0 if way else seed, coordinates, some)
                    made += count
            ways.append(near / made if made > 2.0 else 0.0)
        return max(ways)

    def _between(self, seed: int) -> tuple[Floats, Ints]:
        """Items between one and a neighbour, and which these are instead of."""
        rng, (one, _, some) = np.random.default_rng(seed), self._neighbours(seed)
        part = rng.uniform(0.25, 0.75, (len(one), 1))
        return self.coordinates[some] + part * one, some

    def _mixed(self, seed: int) -> tuple[Floats, Ints]:
        """Items whose coordinates are those of different neighbours."""
        one, other, some = self._neighbours(seed)
        differing = one.copy()
        differing[:, 1::2] = other[:, 1::2]
        return self.coordinates[some] + differing, some

    def _neighbours(self, seed: int) -> tuple[Floats, Floats, Ints]:
        """Differences to two neighbours of items on their list, of those that have any."""
        index, rng = self._own, np.random.default_rng(seed)
        known = (index < len(self.coordinates)).sum(axis=1)
        first, last = np.minimum(NEIGHBOURS[0], known - 1), np.minimum(NEIGHBOURS[1], known)
        some = np.flatnonzero(known > 1)
        low = np.maximum(first[some], 1)
        many = last[some] - low
        at = rng.integers(0, many)
        # The next one round; an item itself where it has one neighbour.
        chosen = low + at, np.where(many > 1, low + (at + 1) % many, 0)
        here = self.coordinates[some]
        one, other = (self._shortest(self.coordinates[index[some, k]] - here) for k in chosen)
        return one, other, some

    @property
    def _own(self) -> Ints:
        """Items of this list that are nearest to each on its image, itself the first."""
        return self._nearest[1]

    @cached_property
    def _own_near(self) -> float:
        """How close is near by the distances within this list alone."""
        known = self._nearest[0][:, 1][np.isfinite(self._nearest[0][:, 1])]
        return NEAR * float(np.quantile(known, MOST)) if known.size else 0.0

    @cached_property
    def _nearest(self) -> tuple[Floats, Ints]:
        """Distances to the nearest items of this list on the image, and which these are."""
        from scipy.spatial import cKDTree

        places = self.nearness.together(self.nearness.placed(self.coordinates), self.image)
        k = min(NEIGHBOURS[1], len(places))
        distance, at = cKDTree(places).query(places, k=k, distance_upper_bound=8.0)
        return np.asarray(distance), np.asarray(at)

    def share(
        self,
        move: Move,
        beside: int = 0,
        coordinates: Floats | None = None,
        some: Ints | None = None,
    ) -> float:
        """Which share of the items lies near the others after a move, each near another one.

        With a number ``beside`` they are put beside these places, each at random; or others are
        moved that are simulated instead of ``some`` of them.
        """
        rows, at = self._near(move, beside, coordinates, some)
        return min(len(rows), len(np.unique(at))) / len(self.coordinates)

    def _near(
        self,
        move: Move,
        beside: int = 0,
        coordinates: Floats | None = None,
        some: Ints | None = None,
    ) -> tuple[Ints, Ints]:
        """The items that lie near others after a move, and the nearest of these."""
        image = self.image if some is None else self.image[some]
        near = self.near if some is None else self.near[some]
        if move.scale != 1.0:
            # Shrunk to a spot, everything would be near everything.
            near = np.minimum(near, move.scale * self._own_near)
        moved = move(self.coordinates if coordinates is None else coordinates)
        if self.nearness.sight.turn is not None and np.abs(moved[:, 1]).max() > 90.0:
            return np.empty(0, np.int64), np.empty(0, np.int64)
        places = self.nearness.placed(moved)
        if beside:
            places = self.nearness.moved_a_little(places, image, beside)
        # What leaves the picture could come to lie on that of another image.
        inside = np.abs(places - 0.5).max(axis=1) < 4.0
        places = np.where(inside[:, np.newaxis], places, 0.5)
        distance, at = self.tree.query(self.nearness.together(places, image))
        rows = np.flatnonzero(inside & (distance <= near))
        return rows, at[rows]

    def moves(self) -> Iterator[Move]:
        """What is tried: exchanges and flips, each with a shift, and scales."""
        identity = _identity(self.p)[0]
        for order in itertools.permutations(range(self.p)):
            for sign in itertools.product((1.0, -1.0), repeat=self.p):
                bare = Move(order, sign, (0.0,) * self.p)
                if bare.effort:
                    yield bare
                yield from self._shifted(bare)
        for order in {identity, tuple(reversed(identity))}:
            yield from self._scaled(order)
        yield from self._scaled_and_shifted()

    def _shifted(self, bare: Move) -> Iterator[Move]:
        """With the shift that most pairs vote for; along fewer axes if that does as well."""
        moved = bare(self.coordinates)
        step = self._step()
        shift = self._vote(moved, self.other, step, True)
        if shift is None:
            return
        for _ in range(2):
            rows, at = self._near(replace(bare, shift=tuple(shift.tolist())))
            if len(rows) >= LEAST:
                shift = np.median(self._shortest(self.other[at] - moved[rows]), axis=0)
        whole = _tidy(self._shortest(shift[np.newaxis])[0], step)
        yield Move(bare.order, bare.sign, whole)
        for axis in range(self.p):
            alone = tuple(value if at == axis else 0.0 for at, value in enumerate(whole))
            if alone != whole and any(alone):
                yield Move(bare.order, bare.sign, alone)

    def _scaled(self, order: tuple[int, ...]) -> Iterator[Move]:
        """With the scale that most pairs vote for."""
        if self.nearness.sight.turn is not None or not self.nearness.sight.placed:
            return
        mine, theirs = self.coordinates[:, order], self.other
        fine, other_fine = (mine != 0.0).all(axis=1), (theirs != 0.0).all(axis=1)
        if np.count_nonzero(fine) < LEAST or not other_fine.any():
            return
        sign = np.sign(np.median(theirs, axis=0)) * np.sign(np.median(mine, axis=0))
        logs = np.log(np.abs(mine[fine])), np.log(np.abs(theirs[other_fine]))
        kept = self.image[fine], self.other_image[other_fine]
        shift = self._vote(logs[0], logs[1], np.full(self.p, SCALE_STEP), False, kept)
        if shift is None or np.ptp(shift) > 4.0 * SCALE_STEP or abs(shift.mean()) < SAME_SCALE:
            return
        signs = tuple(float(value) if value else 1.0 for value in sign)
        yield Move(order, signs, (0.0,) * self.p, self._refined(order, signs, float(shift.mean())))

    def _scaled_and_shifted(self) -> Iterator[Move]:
        """With a scale near that of the spreads, and the shift that then most pairs vote for."""
        if self.nearness.sight.turn is not None or not self.nearness.sight.placed:
            return
        wide = [np.ptp(np.quantile(some, MIDDLE, axis=0), axis=0) for some in self._both]
        if min(wide[0].min(), wide[1].min()) <= 0.0:
            return
        guess = float(np.exp(np.mean(np.log(wide[1] / wide[0]))))
        if abs(math.log(guess)) < OTHER_SPREAD:
            return
        order, signs, _ = _identity(self.p)
        best: tuple[float, Move | None] = (0.0, None)
        for last in (1.0, -1.0):
            for scale in guess * np.exp(np.arange(-ABOUT, ABOUT + 1) * ABOUT_STEP):
                bare = Move(order, (*signs[:-1], last), (0.0,) * self.p, float(scale))
                shift = self._vote(bare(self.coordinates), self.other, self._step(), False)
                if shift is not None:
                    move = self._fitted(replace(bare, shift=tuple(shift.tolist())))
                    best = max(best, (self.share(move), move), key=lambda pair: pair[0])
        if best[1] is not None:
            yield best[1]

    @property
    def _both(self) -> tuple[Floats, Floats]:
        return self.coordinates, self.other

    def _fitted(self, move: Move) -> Move:
        """Scale and shift that fit those that come to lie near, in few digits."""
        turned = replace(move, shift=(0.0,) * self.p, scale=1.0)(self.coordinates)
        for _ in range(3):
            rows, at = self._near(move)
            if len(rows) < LEAST:
                return move
            mine, theirs = turned[rows], self.other[at]
            middle, there = mine.mean(axis=0), theirs.mean(axis=0)
            around = mine - middle
            scale = float((around * (theirs - there)).sum() / (around**2).sum())
            if not scale > 0.0:
                return move
            scale = float(f"{scale:.4g}")
            shift = tuple((there - scale * middle).tolist())
            move = replace(move, scale=scale, shift=shift)
        return replace(move, shift=_tidy(np.array(move.shift), self._step()))

    def _refined(self, order: tuple[int, ...], signs: tuple[float, ...], log_scale: float) -> float:
        """A usual factor if it is near, else what fits those that come to lie near."""
        for value in USUAL_SCALES:
            if abs(math.log(value) - log_scale) < SAME_SCALE:
                return value
        bare = Move(order, signs, (0.0,) * self.p)
        scale, moved = math.exp(log_scale), bare(self.coordinates)
        for _ in range(2):
            rows, at = self._near(replace(bare, scale=scale))
            if len(rows) >= LEAST:
                mine, theirs = moved[rows], self.other[at]
                scale = float((mine * theirs).sum() / (mine * mine).sum())
        return float(f"{scale:.3g}")

    def _step(self) -> Floats:
        """``near`` along each coordinate."""
        places = self.nearness.placed(self.other)
        extent = np.ptp(places, axis=0).max() or 1.0
        spread = np.ptp(self.other, axis=0)
        if self.nearness.sight.placed:
            spread = np.full(self.p, spread.max())
        near = float(np.median(self.near))
        return np.asarray(np.maximum(near / extent, 1e-9) * np.where(spread > 0.0, spread, 1.0))

    def _vote(
        self,
        mine: Floats,
        theirs: Floats,
        step: Floats,
        turn: bool,
        images: tuple[Ints, Ints] | None = None,
    ) -> Floats | None:
        """The difference of places, on one image, that most pairs agree on."""
        differences = self._differences(
            mine, theirs, images or (self.image, self.other_image), step
        )
        if not len(differences):
            return None
        if turn:
            # About one of them, as they lie together wherever that is.
            differences = differences[0] + self._shortest(differences - differences[0])
        low = differences.min(axis=0)
        cell = np.maximum(2.0 * step, np.ptp(differences, axis=0) / MOST_CELLS)
        best, middle = 0, None
        for offset in itertools.product((0.0, 0.5), repeat=self.p):
            at = np.floor((differences - low) / cell + np.array(offset)).astype(np.int64)
            size = at.max(axis=0) + 1
            flat = np.ravel_multi_index(tuple(at.T), tuple(size.tolist()))
            cells, votes = np.unique(flat, return_counts=True)
            most = int(np.argmax(votes))
            if votes[most] > best:
                best = int(votes[most])
                middle = np.median(differences[flat == cells[most]], axis=0)
        return middle

    def _shortest(self, differences: Floats) -> Floats:
        """Differences of what comes back to itself the short way round."""
        turn = self.nearness.sight.turn
        if turn is None:
            return differences
        found = differences.copy()
        found[:, 0] = (found[:, 0] + turn / 2.0) % turn - turn / 2.0
        return found

    def _differences(
        self, mine: Floats, theirs: Floats, images: tuple[Ints, Ints], step: Floats
    ) -> Floats:
        """Of every pair on one image; of very many those that a coarse look leaves."""
        order = np.argsort(images[1], kind="stable")
        there = images[1][order]
        begin, end = (np.searchsorted(there, images[0], side) for side in ("left", "right"))
        counts = end - begin
        if counts.sum() > MOST_PAIRS and self.p == 2 and self.nearness.sight.turn is None:
            fullest = images[0][int(np.argmax(counts))]
            return _by_correlation(mine[images[0] == fullest], theirs[images[1] == fullest], step)
        chosen = np.arange(len(mine))
        if counts.sum() > MOST_PAIRS:
            fewer = max(int(len(mine) * MOST_PAIRS / counts.sum()), LEAST)
            chosen = np.sort(self.rng.choice(len(mine), min(fewer, len(mine)), replace=False))
        parts = [theirs[order[begin[i] : end[i]]] - mine[i] for i in chosen]
        return np.concatenate(parts) if parts else np.empty((0, self.p))


def _by_correlation(mine: Floats, theirs: Floats, step: Floats) -> Floats:
    """Differences near the shift at which counts of both in a grid agree most."""
    from scipy.fft import irfft2, rfft2
    from scipy.spatial import cKDTree

    extent = np.maximum(np.ptp(mine, axis=0), np.ptp(theirs, axis=0))
    cell = np.maximum(extent / (GRID - 1), step)
    counts = []
    for places in (mine, theirs):
        grid = np.zeros((2 * GRID, 2 * GRID))
        at = np.floor((places - places.min(axis=0)) / cell).astype(np.int64)
        np.add.at(grid, (at[:, 0], at[:, 1]), 1.0)
        counts.append(rfft2(grid))
    agreement = irfft2(counts[0].conj() * counts[1], s=(2 * GRID, 2 * GRID))
    most = np.array(np.unravel_index(np.argmax(agreement), agreement.shape))
    most = np.where(most >= GRID, most - 2 * GRID, most)
    shift = theirs.min(axis=0) - mine.min(axis=0) + most * cell
    around = cKDTree(theirs / cell).query_ball_point((mine + shift) / cell, 2.0)
    parts = [theirs[rows] - mine[i] for i, rows in enumerate(around) if rows]
    return np.concatenate(parts) if parts else np.empty((0, 2))


def _tidy(shift: Floats, step: Floats) -> tuple[float, ...]:
    """Without shifts that are none; the others to four digits, or to a tenth of a step."""
    found = []
    for value, small in zip(shift.tolist(), step.tolist(), strict=True):
        if abs(value) < NO_SHIFT * small:
            found.append(0.0)
            continue
        digits = max(-math.floor(math.log10(0.1 * small)), 0) if small > 0.0 else 6
        found.append(round(value, min(digits, 12)))
    return tuple(found)

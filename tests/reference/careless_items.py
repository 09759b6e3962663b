"""Careless items, one update at a time, in the manner of ``unlike_experts``.

    NUMBA_DISABLE_JIT=1 python careless_items.py [--short | KIND ...]

(α, order, c, u, law, shares, levels, offsets, noise, parameters, y) are drawn from the joint, an
update is applied, and what is then there must be distributed as before. Prints JSON: for each kind
of item and each update, and each planted bug, the smallest p value times the number of tests.
"""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from dfcrp.likelihoods import bias, tails
from dfcrp.likelihoods import contract as likelihood
from dfcrp.likelihoods.circle import kernel as circle
from dfcrp.likelihoods.circle import plane, sphere
from dfcrp.likelihoods.circle.hyper import without_sizes
from dfcrp.likelihoods.normal import covariance
from dfcrp.likelihoods.normal import kernel as normal
from dfcrp.moves import revisit
from reference import small_problems as small
from reference import unlike_experts
from reference.unlike_experts import FAMILIES, Bench, N, smallest_p

#: So that careless items are frequent: as many as are allowed.
PRIOR = np.array([2.0, 2.0, 1.5])
ALONE, UPDATED, BUGGED = 2500, 1200, 1200
#: So that numbers stay in reach of doubles, draw after draw from the prior.
bias.SPREAD_SD = 0.4


def careless(hyper: Any, offset_sd: list[float]) -> Any:
    """Hyperparameters with careless items and experts who differ, whose spread is learned."""
    made = tails.with_tails(hyper, N)
    made = made._replace(tails=made.tails._replace(prior=PRIOR))
    experts = np.array(FAMILIES)
    return bias.with_bias(made, "both", experts, np.array(offset_sd), 0.4, learn_spread=True)


def draw_law(rng, hyper) -> np.ndarray:
    """The law from its prior; levels of all items besides, into the hyperparameters."""
    own = np.array(hyper.law_mean) + hyper.law_sd * rng.standard_normal(len(hyper.law_mean))
    share = np.ones(3)
    while share[1] + share[2] > tails.MOST:
        share = rng.dirichlet(hyper.tails.prior)
    scales = np.log([1.0, 3.0, 9.0])
    hyper.tails.log_scale[:] = scales[rng.choice(3, N, p=share)]
    spread = math.log(hyper.bias.noise_sd) + bias.SPREAD_SD * rng.standard_normal()
    given = hyper.bias._replace(noise_sd=math.exp(spread))
    return np.concatenate([own, share[1:], [spread], small.draw_bias(rng, given, 1)[0]])


unlike_experts.draw_law = draw_law


class Features(unlike_experts.Features):
    """Variances only; errors of the first feature grow with the second."""

    def __init__(self) -> None:
        super().__init__()
        # Log sizes that scatter little, as their errors are a power of those of places.
        mean = np.array([-1.0, -4.0, 1.0])
        plain = self.hyper._replace(law=mean.copy(), law_mean=mean, bias=bias.ALIKE)
        self.hyper = careless(plain, [0.7, 0.2])


class Vectors(unlike_experts.Vectors):
    """A full covariance."""

    side = 9.0

    def __init__(self) -> None:
        super().__init__()
        plain = self.hyper._replace(law=self.hyper.law_mean.copy(), bias=bias.ALIKE)
        self.hyper = careless(plain, [0.7, 0.5])


class Globe(unlike_experts.Globe):
    """Circles on a sphere."""

    def __init__(self) -> None:
        super().__init__()
        plain = self.hyper._replace(
            law=self.hyper.law_mean.copy(), reference=self.hyper.law_mean.copy(), bias=bias.ALIKE
        )
        # Small scatters: the law of places is normal but for what is left out.
        mean = np.array([-4.0, 0.5, -2.5, -0.4])
        plain = plain._replace(law=mean.copy(), law_mean=mean, reference=mean.copy())
        self.hyper = careless(plain, [0.3, 0.2, 0.3])

    def mark(self, rng, law, own) -> np.ndarray:
        """Levels widen an item's own row."""
        wider = own.copy()
        factor = np.exp(2.0 * self.hyper.tails.log_scale)
        wider[:, circle.VAR_POSITION] *= factor
        wider[:, circle.VAR_SIZE] *= factor
        return super().mark(rng, law, wider)


class Plane:
    """Circles in a plane."""

    width, axes, columns = circle.WIDTH, 3, 3

    def __init__(self) -> None:
        self.hyper = careless(small.LEARNED, [0.8, 0.6, 0.3])
        self.rows = np.zeros((N, self.width))

    def draw(self, rng, labels) -> tuple[np.ndarray, np.ndarray]:
        hyper, law = self.hyper, draw_law(rng, self.hyper)
        rows = small.random_rows(rng, hyper, (N,), law)
        self.rows[:] = small.complete(rows)
        own = rows[[list(labels).index(k) for k in labels]]
        offsets, noise = small.offsets_and_noise(hyper.bias, law)
        scale = np.exp(noise[:, 0] + hyper.tails.log_scale)[:, np.newaxis]
        error = small.random_features(rng, own) - own[:, :3]
        return law, own[:, :3] + offsets + scale * error

    def fill(self, chain, rng) -> None:
        chain.state.theta[:] = self.rows


class Discs(Plane):
    """Circles of one diameter, which the model does without."""

    axes = 3

    def __init__(self) -> None:
        super().__init__()
        plain = without_sizes(small.LEARNED)
        self.hyper = careless(plain, [0.8, 0.6, 0.3])
        held = self.hyper.bias._replace(scattering=2)
        self.hyper = self.hyper._replace(bias=held)

    def draw(self, rng, labels) -> tuple[np.ndarray, np.ndarray]:
        law, y = super().draw(rng, labels)
        hyper = self.hyper
        self.rows[:, circle.MU_L], self.rows[:, circle.VAR_SIZE] = hyper.mu0_l, 1.0
        self.rows[:, circle.LAMBDA] = circle.UNSIZED
        self.rows[:, circle.VAR_POSITION] = rng.gamma(hyper.nu_x, 1.0 / hyper.nu_x, N)
        self.rows[:, circle.VAR_POSITION] *= math.exp(law[0])
        offsets, noise = small.offsets_and_noise(hyper.bias, law)
        for i in range(N):
            circle.complete_row(self.rows, i)
            own = self.rows[list(labels).index(labels[i])]
            scale = math.exp(noise[i, 0] + hyper.tails.log_scale[i])
            error = scale * math.sqrt(own[circle.VAR_POSITION]) * rng.standard_normal(2)
            y[i, :2] = own[:2] + offsets[i, :2] + error
            y[i, 2] = hyper.mu0_l
        return law, y


class Careless(Bench):
    """The levels belong to the state."""

    def load(self, number: int) -> None:
        super().load(number)
        # In the first scans everything that is learned is updated in each.
        self.chain.state.scans[0] = revisit.NOTE_UNTIL + number

    def statistics(self) -> list[float]:
        """Besides: levels, and how items fit by level."""
        state, hyper = self.chain.state, self.chain.hyper
        level, y = hyper.tails.log_scale, self.chain.problem.data.features
        found = super().statistics()
        together = state.label[0] == state.label[2]
        apart = abs(y[0, 1] - y[2, 1]) if together else math.nan
        found += [level[0], level.sum(), apart]
        found.append(apart if level[0] == 0.0 else math.nan)
        found.append(apart if level[0] > 0.0 else math.nan)
        return [*found, float(level[0] > 0.0 and together), float(level[0] > 0.0) - together]


class _Kept:
    """Levels are put into the chain once a draw has been made, before rows are filled."""

    def __init__(self, kind) -> None:
        self.kind = kind

    def __getattr__(self, name):
        return getattr(self.kind, name)

    def fill(self, chain, rng) -> None:
        chain.hyper.tails.log_scale[:] = self.kind.hyper.tails.log_scale
        self.kind.fill(chain, rng)


# Updates and planted bugs ------------------------------------------------------------------------


def shared(chain) -> None:
    """The law, shares, experts, twice."""
    for _ in range(2):
        likelihood.update_shared(chain.hyper, chain.rng, chain.problem.data, chain.state)


def scan(chain) -> None:
    chain.run(1, 2)


def blind(chain) -> None:
    """Levels are drawn without a look at the item."""
    kept = tails.settle_by_gains

    def by_shares(hyper, rng, i, wide, widest):
        kept(hyper, rng, i, 0.0, 0.0)

    tails.settle_by_gains = by_shares
    try:
        scan(chain)
    finally:
        tails.settle_by_gains = kept


def never_careless_when_joining(chain) -> None:
    """Who may join is weighed as if of the first level, though a level is drawn afterwards."""
    kept = normal.log_of_mixture, circle.log_normal_tail
    normal.log_of_mixture = covariance.log_of_mixture = lambda *_: 0.0
    plain = lambda hyper, law, features, squares: -0.5 * squares  # noqa: E731
    circle.log_normal_tail = plain
    try:
        scan(chain)
    finally:
        normal.log_of_mixture, circle.log_normal_tail = kept
        covariance.log_of_mixture = kept[0]


def members_all_alike(chain) -> None:
    """Clusters are dealt out again as if all members were of the first level."""
    kept = bias.log_scale_of, plane.log_scale_of, sphere.log_scale_of
    bias.log_scale_of = plane.log_scale_of = sphere.log_scale_of = lambda *_: 0.0
    try:
        scan(chain)
    finally:
        bias.log_scale_of, plane.log_scale_of, sphere.log_scale_of = kept


def spread_without_experts(chain) -> None:
    """How much experts differ is drawn from its prior."""
    kept = bias.log_spread_density
    stub = bias.log_target.implementations if hasattr(bias.log_target, "implementations") else {}
    own = stub.get(bias.SpreadTarget)
    stub[bias.SpreadTarget] = lambda target, value: kept(target._replace(free=0.0), value)
    try:
        shared(chain)
        shared(chain)
    finally:
        stub[bias.SpreadTarget] = own


KINDS = {
    "features": (Features, (never_careless_when_joining, spread_without_experts)),
    "vectors": (Vectors, (blind,)),
    "plane": (Plane, (blind, never_careless_when_joining, members_all_alike)),
    "discs": (Discs, (blind, never_careless_when_joining, members_all_alike)),
    "globe": (Globe, (blind, never_careless_when_joining, members_all_alike)),
}


def main_in_short() -> None:
    """One kind, one update and one bug, on fewer draws."""
    alone = Careless(_Kept(Plane()), 110).run(None, ALONE // 2)
    done = {
        run.__name__: smallest_p(Careless(_Kept(Plane()), 130).run(run, UPDATED // 2), alone)
        for run in (shared, scan, blind)
    }
    print(json.dumps(done))


def main(kinds) -> None:
    found: dict = {}
    for seed, kind in enumerate(kinds):
        make, bugs = KINDS[kind]
        alone = Careless(_Kept(make()), 110 + seed).run(None, ALONE)
        found[kind] = {"updates": {}, "bugs": {}}
        for update in (shared, scan):
            after = Careless(_Kept(make()), 130 + seed).run(update, UPDATED)
            found[kind]["updates"][update.__name__] = smallest_p(after, alone)
        for bug in bugs:
            after = Careless(_Kept(make()), 140 + seed).run(bug, BUGGED)
            found[kind]["bugs"][bug.__name__] = smallest_p(after, alone)
    print(json.dumps(found))


if __name__ == "__main__":
    if sys.argv[1:] == ["--short"]:
        main_in_short()
    else:
        main(sys.argv[1:] or KINDS)

"""Experts who differ, one update at a time, the kernels' source run as plain Python.

    NUMBA_DISABLE_JIT=1 python unlike_experts.py [--short | KIND ...]

(α, order, c, u, law, offsets, noise, parameters, y) are drawn from the joint, an update is applied,
and what is then there must be distributed as before: Kolmogorov-Smirnov tests against draws that
were left alone. Prints JSON: for each kind of item and each update, and each planted bug, the
smallest p value times the number of tests.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

sys.path.insert(0, str(Path(__file__).parents[1]))

from dfcrp.likelihoods import bias, integrated
from dfcrp.likelihoods import contract as likelihood
from dfcrp.likelihoods.circle import kernel as circle
from dfcrp.likelihoods.circle import sphere
from dfcrp.likelihoods.normal import covariance
from dfcrp.likelihoods.normal import kernel as normal
from dfcrp.moves import assignment, revisit
from dfcrp.priors import tail
from dfcrp.sampling.chain import Chain
from reference import every_kernel, feature_reference
from reference import small_problems as small
from reference.joint_draws import companions, seat_everyone
from reference.two_samples import same_law

FAMILIES = [0, 0, 1, 1, 2, 2]
N = len(FAMILIES)
SHAPE, RATE = 3.0, 1.5
#: Draws of each kind that are left alone, and that an update or a planted bug is applied to.
ALONE, UPDATED, BUGGED = 3000, 1200, 1000


class Features:
    """Variances only; errors of the first feature grow with the second."""

    width, axes, columns = normal.row_width(2, 2), 2, 2

    def __init__(self) -> None:
        base = every_kernel.normal_hyper([1, 1], [1, -1])._replace(
            spread=np.array([1.5, 0.8]), law_sd=np.array([0.5, 0.5, 0.4])
        )
        self.hyper = bias.with_bias(base, "both", np.array(FAMILIES), np.array([0.7, 0.5]), 0.7)

    def draw(self, rng, labels) -> tuple[np.ndarray, np.ndarray]:
        law = draw_law(rng, self.hyper)
        return law, feature_reference.draw_features(rng, self.hyper, law, labels)

    def fill(self, chain: Chain, rng) -> None:
        fill_rows(chain)


class Vectors:
    """A full covariance; means uniform over a square, draws with an item outside thrown away."""

    width, axes, columns, side = covariance.row_width(2), 2, 2, 4.0

    def __init__(self) -> None:
        base = every_kernel.covariance_hyper(2)._replace(log_volume=2.0 * math.log(self.side))
        self.hyper = bias.with_bias(base, "both", np.array(FAMILIES), np.array([0.7, 0.5]), 0.7)

    def draw(self, rng, labels) -> tuple[np.ndarray, np.ndarray] | None:
        law, y = draw_law(rng, self.hyper), np.empty((N, 2))
        minus, factor = feature_reference.as_if_alike(self.hyper, law, np.zeros((N, 2)), FAMILIES)
        lower = np.diag(np.exp(law[:2])) @ np.array([[1.0, 0.0], [law[2], 1.0]])
        scale = 2.0 * self.hyper.shape * lower @ lower.T
        for k in set(labels):
            members = np.flatnonzero(np.asarray(labels) == k)
            # The first is uniform, whatever its expert does; the others follow it.
            y[members[0]] = rng.uniform(-0.5 * self.side, 0.5 * self.side, 2)
            matrix = stats.invwishart.rvs(2.0 * self.hyper.shape + 1.0, scale, random_state=rng)
            root = np.linalg.cholesky(matrix)
            first = members[0]
            error = math.sqrt(factor[first]) * root @ rng.standard_normal(2)
            mean = y[first] + minus[first] - error
            for i in members[1:]:
                error = math.sqrt(factor[i]) * root @ rng.standard_normal(2)
                y[i] = mean - minus[i] + error
        return (law, y) if (np.abs(y) < 0.5 * self.side).all() else None

    def fill(self, chain: Chain, rng) -> None:
        fill_rows(chain)


class Globe:
    """Circles on a sphere."""

    width, axes, columns = sphere.WIDTH, 3, 4

    def __init__(self) -> None:
        base = every_kernel.SPHERE._replace(radius=25.0)
        offset_sd = np.array([0.5, 0.4, 0.3])
        self.hyper = bias.with_bias(base, "both", np.array(FAMILIES), offset_sd, 0.7)
        self.rows = np.zeros((N, self.width))

    def draw(self, rng, labels) -> tuple[np.ndarray, np.ndarray]:
        hyper, law, rows = self.hyper, draw_law(rng, self.hyper), self.rows
        place = rng.standard_normal((N, 3))
        place *= hyper.radius / np.linalg.norm(place, axis=1, keepdims=True)
        rows[:, [circle.MU_X, circle.MU_Y, sphere.MU_Z]] = place
        rows[:, circle.MU_L] = hyper.mu0_l + math.sqrt(hyper.var0_l) * rng.standard_normal(N)
        away = rows[:, circle.MU_L] - hyper.level
        for column, nu, at in (
            (circle.VAR_POSITION, hyper.nu_x, 0),
            (circle.VAR_SIZE, hyper.nu_d, 2),
        ):
            rows[:, column] = rng.gamma(nu, np.exp(law[at] + law[at + 1] * away) / nu)
        for k in range(N):
            circle.complete_row(rows, k)
        # A cluster has the row of its first member, as ``small.seat_partition`` has it.
        own = rows[[list(labels).index(k) for k in labels]]
        return law, self.mark(rng, law, own)

    def mark(self, rng, law, own) -> np.ndarray:
        """Markings by experts who differ, of objects in these rows."""
        hyper = self.hyper
        offsets, noise = small.offsets_and_noise(hyper.bias, law)
        factor = np.exp(2.0 * noise[:, 0])
        size = own[:, circle.MU_L] + offsets[:, 2]
        size += np.sqrt(factor * own[:, circle.VAR_SIZE]) * rng.standard_normal(N)
        y = np.empty((N, 4))
        for i in range(N):
            mean = own[i, [circle.MU_X, circle.MU_Y, sphere.MU_Z]] / hyper.radius
            far = math.hypot(hyper.radius, *offsets[i, :2])
            kappa = hyper.radius * far / (factor[i] * own[i, circle.VAR_POSITION])
            place = self._as_marked(around(rng, mean, kappa), far, offsets[i])
            y[i] = [place[0], place[1], size[i], place[2]]
        return y

    def _as_marked(self, seen, far: float, offset) -> np.ndarray:
        """Where the expert puts what the mean expert sees: the way of the kernels, turned back."""
        place = seen
        for _ in range(12):
            flat = math.hypot(place[0], place[1])
            east = np.array([-place[1], place[0], 0.0]) / flat
            north = np.cross(place, east)
            moved = far * seen + offset[0] * east + offset[1] * north
            place = moved / np.linalg.norm(moved)
        return self.hyper.radius * place

    def fill(self, chain: Chain, rng) -> None:
        chain.state.theta[:] = self.rows


def around(rng, mean, kappa: float) -> np.ndarray:
    """A direction about another one, by the von Mises-Fisher law."""
    u = 1.0 - rng.random()
    along = 1.0 + math.log(u + (1.0 - u) * math.exp(-2.0 * kappa)) / kappa
    aside = rng.standard_normal(3)
    aside -= (aside @ mean) * mean
    return along * mean + math.sqrt(1.0 - along * along) * aside / np.linalg.norm(aside)


def draw_law(rng, hyper) -> np.ndarray:
    own = np.array(hyper.law_mean) + hyper.law_sd * rng.standard_normal(len(hyper.law_mean))
    return np.concatenate([own, small.draw_bias(rng, hyper.bias, 1)[0]])


def fill_rows(chain: Chain) -> None:
    state, y = chain.state, chain.problem.data.features
    for k in np.flatnonzero(state.size[:-1] > 0):
        integrated.gather(chain.hyper, y, state, k, state.theta, k)


class Bench:
    """One chain that is put into one state after the other."""

    def __init__(self, kind: Any, seed: int) -> None:
        self.kind, self.rng = kind, np.random.default_rng([seed, 96])
        made = small.make_problem(FAMILIES, self.rng.normal(size=(N, kind.columns)))
        problem = replace(
            made,
            hyper=kind.hyper,
            prior=made.prior._replace(alpha_shape=SHAPE, alpha_rate=RATE),
            row_width=kind.width,
            columns=every_kernel.columns_for(8, len(kind.hyper.law)),
        )
        self.chain = Chain(problem, np.random.SeedSequence(seed), "exact")

    def load(self, number: int) -> None:
        """A draw of everything."""
        rng, state, data = self.rng, self.chain.state, self.chain.problem.data
        found = None
        while found is None:
            alpha = rng.gamma(SHAPE) / RATE
            order = rng.permutation(N)
            labels = seat_everyone(rng, FAMILIES, alpha, order.tolist(), rule=True)
            found = self.kind.draw(rng, labels)
        for name, values in small.seat_partition(labels, data.component).items():
            getattr(state, name)[...] = values
        state.law[:], data.features[:] = found
        state.alpha[0], state.order[:], state.rank[order] = alpha, order, np.arange(N)
        seated = companions(state.label[np.newaxis], FAMILIES, state.rank[np.newaxis])[0]
        state.u[:] = rng.standard_exponential(N) / (seated + alpha)
        state.seated[:] = seated[order]
        tail.rebuild_tail(data, state)
        state.scans[0] = revisit.NOTE_UNTIL + number
        self.kind.fill(self.chain, rng)
        given = self.chain.rng, data, self.chain.hyper, state
        assignment.refresh_spares(*given, 0, N, 1)

    def statistics(self) -> list[float]:
        """The law, offsets and noise, α, the number of clusters, and how items fit."""
        state, hyper = self.chain.state, self.chain.hyper
        y = self.chain.problem.data.features[:, : self.kind.axes]
        offsets, noise = small.offsets_and_noise(hyper.bias, state.law)
        apart = math.nan
        if state.label[0] == state.label[2]:
            apart = (y[0, 1] - offsets[0, 1]) - (y[2, 1] - offsets[2, 1])
            apart /= math.exp(noise[0, 0]) + math.exp(noise[2, 0])
        clusters = float((state.size[:-1] > 0).sum())
        return [*state.law, math.log(state.alpha[0]), clusters, y[0, 1] - offsets[0, 1], apart]

    def run(self, update: Callable[[Chain], None] | None, count: int) -> np.ndarray:
        """(count, statistics) after the update."""
        found = []
        for number in range(count):
            self.load(number)
            if update is not None:
                update(self.chain)
            found.append(self.statistics())
        return np.array(found)


def smallest_p(found: np.ndarray, alone: np.ndarray) -> float:
    """Of all statistics, times their number."""
    values = [same_law(a, b) for a, b in zip(found.T, alone.T, strict=True)]
    return float(min(values) * len(values))


# Updates and planted bugs ------------------------------------------------------------------------


def experts(chain: Chain) -> None:
    """How experts differ, three times."""
    problem, state = chain.problem, chain.state
    for _ in range(3):
        likelihood.update_shared(chain.hyper, chain.rng, problem.data, state)


def scan(chain: Chain) -> None:
    chain.run(1, 2)


def offsets_left_on(chain: Chain) -> None:
    """Rows are built of features as they come, offsets and all."""
    kept = normal.feature_of
    normal.feature_of = covariance.feature_of = lambda hyper, y, i, j: y[i, j]
    try:
        experts(chain)
        experts(chain)
    finally:
        normal.feature_of = covariance.feature_of = kept


def noise_left_out_of_rows(chain: Chain) -> None:
    """Parameters are drawn as if all experts were equally exact."""
    kept = normal.log_noise_of, covariance.precision_of
    normal.log_noise_of, covariance.precision_of = lambda *_: 0.0, lambda *_: 1.0
    try:
        for _ in range(3):
            experts(chain)
    finally:
        normal.log_noise_of, covariance.precision_of = kept


def noise_left_out_of_places(chain: Chain) -> None:
    """Means on the sphere are drawn as if all experts were equally exact."""
    kept = sphere.corrected
    given = chain.hyper, chain.rng, chain.prior, chain.problem.data, chain.state
    for _ in range(4):
        sphere.corrected = lambda hyper, y, i: (*kept(hyper, y, i)[:4], 1.0)
        for k in np.flatnonzero(chain.state.size[:-1] > 0):
            sphere.update_mean_of_cluster(*given, k)
        sphere.corrected = kept
        experts(chain)


def noise_of_variances(chain: Chain) -> None:
    """The noise factor is taken for one of variances, not of standard deviations."""
    kept = bias.log_noise_density

    def density(noise_sd, features, count, squares, value):
        extra = 0.5 * (math.exp(-2.0 * value) - math.exp(-value)) * squares
        return kept(noise_sd, features, count, squares, value) + extra

    bias.log_noise_density = density
    try:
        experts(chain)
        experts(chain)
    finally:
        bias.log_noise_density = kept


def north_for_south(chain: Chain) -> None:
    """The gradient to the north has the wrong sign."""
    kept = sphere.add_gradient

    def add(hyper, i, axis, value):
        kept(hyper, i, axis, -value if axis == 1 else value)

    sphere.add_gradient = add
    try:
        experts(chain)
    finally:
        sphere.add_gradient = kept


KINDS = {
    "features": (Features, (offsets_left_on, noise_left_out_of_rows, noise_of_variances)),
    "vectors": (Vectors, (offsets_left_on, noise_left_out_of_rows, noise_of_variances)),
    "globe": (Globe, (noise_left_out_of_places, north_for_south, noise_of_variances)),
}


def main(kinds) -> None:
    found: dict = {}
    for seed, kind in enumerate(kinds):
        make, bugs = KINDS[kind]
        alone = Bench(make(), 10 + seed).run(None, ALONE)
        again = Bench(make(), 20 + seed).run(None, UPDATED)
        found[kind] = {"updates": {"none": smallest_p(again, alone)}, "bugs": {}}
        for update in (experts, scan):
            after = Bench(make(), 30 + seed).run(update, UPDATED)
            found[kind]["updates"][update.__name__] = smallest_p(after, alone)
        for bug in bugs:
            after = Bench(make(), 40 + seed).run(bug, BUGGED)
            found[kind]["bugs"][bug.__name__] = smallest_p(after, alone)
    print(json.dumps(found))


def main_in_short() -> None:
    """One kind, one update and the bug that shows most, on fewer draws."""
    alone = Bench(Globe(), 10).run(None, ALONE // 3)
    done = {run: Bench(Globe(), 30).run(run, UPDATED // 2) for run in (experts, north_for_south)}
    print(json.dumps({run.__name__: smallest_p(after, alone) for run, after in done.items()}))


if __name__ == "__main__":
    if sys.argv[1:] == ["--short"]:
        main_in_short()
    else:
        main(sys.argv[1:] or KINDS)

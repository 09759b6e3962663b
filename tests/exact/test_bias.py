"""Experts who differ: densities against matrices, and each update against the joint density.

``log_joint`` is the slow twin: Σ_i log N(y_i; μ + b_f, r_f² Σ) and the priors, by matrices, for
every kind of item. Offsets are normal given the rest, so the update is a linear map of its normals;
with these set to zero and to unit vectors it gives a mean and a covariance, which must be those of
the joint, cut down to offsets with a weighted sum of zero. The draws of parameters that are
otherwise integrated out are tested with a false-alarm rate of 1e-5 each.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import integrate, stats
from scipy.linalg import null_space

from dfcrp.likelihoods import bias, integrated
from dfcrp.likelihoods import contract as likelihood
from dfcrp.likelihoods.bias import SHARE, with_bias
from dfcrp.likelihoods.circle import kernel as circle
from dfcrp.likelihoods.circle import plane, sphere
from dfcrp.likelihoods.circle.sphere import STEEPEST
from dfcrp.likelihoods.normal import bias as normal_bias
from dfcrp.likelihoods.normal import covariance
from dfcrp.likelihoods.normal import kernel as normal
from reference import every_kernel, feature_reference
from reference import kernel_reference as reference
from reference import small_problems as small

FALSE_ALARM_RATE = 1e-5
FAMILIES = [0, 0, 1, 1, 2, 2, 2]
LABELS = [0, 1, 0, 1, 0, 5, 6]
N = len(FAMILIES)


class Setting:
    """A problem in a fixed state, with offsets and noise that satisfy their constraints."""

    def __init__(self, hyper, features, width: int, rng):
        self.hyper = hyper
        columns = every_kernel.columns_for(1, len(hyper.law))
        made = small.make_problem(FAMILIES, features)
        self.problem = made.__class__(made.data, hyper, made.prior, 1.0, width, columns)
        self.data = self.problem.data
        self.state = small.fill_state(self.problem, LABELS)
        self.state.law[hyper.bias.offsets :] = small.draw_bias(rng, hyper.bias, 1)[0]
        self.hyper = likelihood.of_chain(hyper, self.state.law)
        self.share = hyper.bias.work[:, SHARE]

    @property
    def axes(self) -> int:
        return len(self.hyper.bias.offset_sd)

    def log_item(self, i: int) -> float:
        """log p(y_i | its cluster's parameters) under the current law."""
        raise NotImplementedError

    def log_joint(self) -> float:
        """log p(y, offsets, noise | parameters), up to a constant."""
        bias, law = self.hyper.bias, self.hyper.law
        value = sum(self.log_item(i) for i in range(N))
        offsets = law[bias.offsets : bias.noise].reshape(-1, self.axes)
        value -= 0.5 * ((offsets / bias.offset_sd) ** 2).sum()
        return value - 0.5 * ((law[bias.noise :] / bias.noise_sd) ** 2).sum()

    def offset_and_noise(self, i: int) -> tuple[np.ndarray, float]:
        """Of item i's expert: its offsets and its squared noise factor."""
        offsets, noise = small.offsets_and_noise(self.hyper.bias, self.hyper.law)
        return offsets[i], math.exp(2.0 * noise[i, 0])


class Circles(Setting):
    def __init__(self, seed: int):
        rng = np.random.default_rng([seed, 91])
        hyper = small.biased(FAMILIES)
        self.theta = small.random_rows(rng, hyper, (N,))
        features = self.theta[LABELS, :3] + rng.normal(0.0, [1.0, 1.0, 0.3], (N, 3))
        super().__init__(hyper, features, circle.WIDTH, rng)
        self.state.theta[:] = small.complete(self.theta)

    def log_marking(self, i: int, row) -> float:
        """log p(y_i | θ)."""
        offset, factor = self.offset_and_noise(i)
        mean = np.asarray(row[:3]) + offset
        return reference.log_normal(self.data.features[i], mean, factor * reference.covariance(row))

    def log_item(self, i: int) -> float:
        return self.log_marking(i, self.theta[LABELS[i]])


class Globe(Setting):
    """On a sphere; the twin works with latitude and longitude."""

    def __init__(self, seed: int):
        rng = np.random.default_rng([seed, 92])
        base = every_kernel.SPHERE
        hyper = with_bias(base, "both", np.array(FAMILIES), np.array([0.8, 0.6, 0.3]), 0.5)
        turn, rise = rng.uniform(0.3, 0.5, N), rng.uniform(0.6, 0.8, N)
        self.degrees = np.column_stack([turn, rise])
        place = base.radius * np.column_stack(
            [np.cos(rise) * np.cos(turn), np.cos(rise) * np.sin(turn), np.sin(rise)]
        )
        features = np.column_stack([place[:, :2], rng.normal(1.0, 0.3, N), place[:, 2]])
        super().__init__(hyper, features, sphere.WIDTH, rng)
        for i in range(N):
            circle.open_cluster(self.hyper, rng, self.data.features, i, self.state.theta, i)

    def log_chord(self, i: int, k: int) -> float:
        """log p(y_i | cluster k), but for how areas change."""
        offset, factor = self.offset_and_noise(i)
        turn, rise = self.degrees[i]
        east = np.array([-math.sin(turn), math.cos(turn), 0.0])
        north = np.array(
            [-math.sin(rise) * math.cos(turn), -math.sin(rise) * math.sin(turn), math.cos(rise)]
        )
        y, row = self.data.features[i], self.state.theta[k]
        place = y[[sphere.X, sphere.Y, sphere.Z]] - offset[0] * east - offset[1] * north
        chord = place - row[[circle.MU_X, circle.MU_Y, sphere.MU_Z]]
        a, d = factor * row[circle.VAR_POSITION], factor * row[circle.VAR_SIZE]
        log_place = -0.5 * chord @ chord / a - math.log(2.0 * math.pi * a)
        size = y[circle.SIZE] - offset[2]
        return log_place + stats.norm.logpdf(size, row[circle.MU_L], math.sqrt(d))

    def log_item(self, i: int) -> float:
        north = self.offset_and_noise(i)[0][1]
        steep = north * math.tan(self.degrees[i, 1]) / self.hyper.radius
        return self.log_chord(i, LABELS[i]) + steep - 0.5 * steep * steep


class Features(Setting):
    """Variances only, one shared by two features, whose errors grow with a third."""

    def __init__(self, seed: int):
        rng = np.random.default_rng([seed, 93])
        base = every_kernel.normal_hyper([2, 1], [2, 2, -1])._replace(spread=np.ones(3))
        hyper = with_bias(base, "both", np.array(FAMILIES), np.array([0.8, 0.6, 0.3]), 0.5)
        super().__init__(hyper, rng.normal(size=(N, 3)), normal.row_width(3, 2), rng)
        for k in set(LABELS):
            y = self.data.features
            integrated.gather(self.hyper, y, self.state, k, self.state.theta, k)
            normal_bias.draw_parameters(self.hyper, rng, self.state.theta, k)

    def log_item(self, i: int) -> float:
        offset, factor = self.offset_and_noise(i)
        y, row = self.data.features[i], self.state.theta[LABELS[i]]
        variance, mean = row[normal.FIRST : normal.FIRST + 2], row[normal.FIRST + 2 :][:3]
        grown = math.exp(self.hyper.law[2] * y[2])
        error = np.sqrt(factor * variance[[0, 0, 1]] * np.array([grown, grown, 1.0]))
        return float(stats.norm.logpdf(y, mean + offset, error).sum())


class Vectors(Setting):
    """A full covariance."""

    def __init__(self, seed: int):
        rng = np.random.default_rng([seed, 94])
        base = every_kernel.covariance_hyper(3)
        hyper = with_bias(base, "both", np.array(FAMILIES), np.array([0.8, 0.6, 0.3]), 0.5)
        super().__init__(hyper, rng.normal(size=(N, 3)), covariance.row_width(3), rng)
        for k in set(LABELS):
            y = self.data.features
            integrated.gather(self.hyper, y, self.state, k, self.state.theta, k)
            normal_bias.draw_parameters(self.hyper, rng, self.state.theta, k)

    def log_item(self, i: int) -> float:
        offset, factor = self.offset_and_noise(i)
        row = self.state.theta[LABELS[i]]
        mean, inverse = row[covariance.FIRST :][:3], row[covariance.FIRST + 6 :].reshape(3, 3)
        matrix = factor * np.linalg.inv(inverse)
        return reference.log_normal(self.data.features[i], mean + offset, matrix)


KINDS = {"circles": Circles, "sphere": Globe, "features": Features, "vectors": Vectors}


@pytest.fixture(params=range(3))
def circles(request):
    return Circles(request.param)


@pytest.fixture(params=[(kind, seed) for kind in KINDS for seed in range(3)], ids=str)
def setting(request):
    kind, seed = request.param
    return KINDS[kind](seed)


# Densities -------------------------------------------------------------------------------------


def test_density_and_opening_weight(circles):
    """A new cluster's proposal sees the marking without its offsets, and the wider Σ."""
    hyper, rows = circles.hyper, circles.state.theta
    hyper.reference[4:] = small.draw_bias(np.random.default_rng(6), hyper.bias, 1)[0]
    drawn_by = small.offsets_and_noise(hyper.bias, hyper.reference)
    for i in range(N):
        factor = math.exp(2.0 * drawn_by[1][i, 0])
        y = circles.data.features[i] - drawn_by[0][i]
        for k, row in enumerate(circles.theta):
            fast = circle.log_density(hyper, rows, k, circles.data.features, i)
            assert fast == pytest.approx(circles.log_marking(i, row), rel=1e-10)
            slow = (
                circles.log_marking(i, row)
                + reference.log_base(hyper, row)
                - reference.log_proposal(hyper, row, y, factor)
            )
            fast = circle.opening_weight(hyper, rows, k, circles.data.features, i)
            assert fast == pytest.approx(slow, rel=1e-9, abs=1e-9)


def test_weight_of_proposed_parameters(circles):
    """Its likelihood and its marginal over the mean, by matrices."""
    hyper, state, y = circles.hyper, circles.state, circles.data.features
    mean0, matrix0 = reference.base_mean(hyper)
    for k in (0, 1, 5):
        members = [i for i, label in enumerate(LABELS) if label == k]
        moments = plane.moments_of_cluster(hyper, y, state, k)
        row = circles.theta[k]
        precision, pull = np.linalg.inv(matrix0), np.linalg.solve(matrix0, mean0)
        for i in members:
            offset, factor = circles.offset_and_noise(i)
            inverse = np.linalg.inv(factor * reference.covariance(row))
            precision = precision + inverse
            pull = pull + inverse @ (y[i] - offset)
        spread = np.linalg.inv(precision)
        slow = (
            sum(circles.log_marking(i, row) for i in members)
            + reference.log_normal(row[:3], mean0, matrix0)
            - reference.log_normal(row[:3], spread @ pull, spread)
        )
        fast = plane.log_marginal_of_cluster(hyper, y, state, k, state.theta, k, moments)
        assert fast == pytest.approx(slow, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("seed", range(2))
def test_density_on_a_sphere(seed):
    globe = Globe(seed)
    for i in range(N):
        for k in range(N):
            fast = circle.log_density(globe.hyper, globe.state.theta, k, globe.data.features, i)
            assert fast == pytest.approx(globe.log_chord(i, k), rel=1e-9)


def log_mean_over_means(globe: Globe, members, k: int) -> float:
    """log of the members' density, averaged over the sphere for m and over N(μ0, σ0²) for μ_l.

    By quadrature over a patch around the members, with the cluster's own variances.
    """
    hyper, row = globe.hyper, globe.state.theta[k].copy()
    radius = hyper.radius
    best = max(globe.log_chord(i, k) for i in range(N))

    def log_places(turn, rise) -> float:
        globe.state.theta[k, circle.MU_X] = radius * math.cos(rise) * math.cos(turn)
        globe.state.theta[k, circle.MU_Y] = radius * math.cos(rise) * math.sin(turn)
        globe.state.theta[k, sphere.MU_Z] = radius * math.sin(rise)
        return sum(globe.log_chord(i, k) for i in members)

    middle = globe.degrees[members].mean(axis=0)
    wide = 8.0 * math.sqrt(row[circle.VAR_POSITION] * math.exp(1.0)) / radius
    globe.state.theta[k, circle.MU_L] = hyper.mu0_l
    sizes = sum(_size_density(globe, i, k, hyper.mu0_l) for i in members)
    places, _ = integrate.dblquad(
        lambda rise, turn: math.exp(log_places(turn, rise) - sizes - best) * math.cos(rise),
        middle[0] - 1.5 * wide,
        middle[0] + 1.5 * wide,
        middle[1] - wide,
        middle[1] + wide,
        epsrel=1e-9,
    )
    both, _ = integrate.quad(
        lambda size: math.exp(
            sum(_size_density(globe, i, k, size) for i in members)
            + stats.norm.logpdf(size, hyper.mu0_l, math.sqrt(hyper.var0_l))
        ),
        hyper.mu0_l - 8.0,
        hyper.mu0_l + 8.0,
        epsrel=1e-11,
        limit=400,
    )
    globe.state.theta[k] = row
    return best + math.log(places / (4.0 * math.pi)) + math.log(both)


def _size_density(globe: Globe, i: int, k: int, size: float) -> float:
    offset, factor = globe.offset_and_noise(i)
    d = factor * globe.state.theta[k, circle.VAR_SIZE]
    return stats.norm.logpdf(globe.data.features[i, circle.SIZE] - offset[2], size, math.sqrt(d))


def test_opening_weight_on_a_sphere():
    """p(y | φ) p(m, μ_l) / q(m, μ_l | y) does not depend on m and μ_l: it is their average."""
    globe = Globe(3)
    hyper, theta, y = globe.hyper, globe.state.theta, globe.data.features
    hyper.reference[:4] += [0.3, -0.2, -0.4, 0.2]
    hyper.reference[4:] = small.draw_bias(np.random.default_rng(6), hyper.bias, 1)[0]
    for i in (0, 3):
        log_a, log_d = theta[i, circle.LOG_A], theta[i, circle.LOG_D]
        slow = globe.log_chord(i, i)
        slow += circle.log_variance_prior(hyper, theta[i, circle.MU_L], log_a, log_d)
        # The rest as if the law were what it was drawn by.
        law = hyper.law.copy()
        hyper.law[:] = hyper.reference
        slow += log_mean_over_means(globe, [i], i) - globe.log_chord(i, i)
        size = y[i, circle.SIZE] - globe.offset_and_noise(i)[0][2]
        hyper.law[:] = law
        law_a, law_d = reference.drawn_variances(hyper, size)
        slow -= law_a.logpdf(math.exp(log_a)) + log_a + law_d.logpdf(math.exp(log_d)) + log_d
        assert circle.opening_weight(hyper, theta, i, y, i) == pytest.approx(slow, abs=1e-6)


def test_marginal_on_a_sphere():
    globe = Globe(4)
    hyper, state, y = globe.hyper, globe.state, globe.data.features
    row = state.theta[0]
    # Members a few widths apart, or the integral is of nothing.
    row[circle.VAR_POSITION], row[circle.VAR_SIZE] = 40.0, 0.5
    circle.complete_row(state.theta, 0)
    moments = sphere.moments_of_cluster(hyper, y, state, 0)
    fast = sphere.log_marginal_of_cluster(hyper, y, state, 0, state.theta, 0, moments)
    assert fast == pytest.approx(log_mean_over_means(globe, [0, 2, 4], 0), abs=1e-6)


# Updates ---------------------------------------------------------------------------------------


class Given:
    """In place of a generator: normals that are known."""

    def __init__(self, normals):
        self.normals = iter(normals)

    def standard_normal(self):
        return next(self.normals)


def drawn(setting: Setting, axis: int, normals) -> np.ndarray:
    """One coordinate of the offsets after its update with these normals."""
    before = setting.state.law.copy()
    bias.gather_offsets(setting.hyper, setting.data, setting.state)
    bias.draw_axis.py_func(Given(normals), setting.hyper, axis)
    first = setting.hyper.bias.offsets
    found = setting.state.law[first + axis : setting.hyper.bias.noise : setting.axes].copy()
    setting.state.law[:] = before
    return found


@pytest.mark.parametrize("axis", range(3))
def test_offsets_have_the_conditional_of_the_joint(setting, axis):
    experts = len(setting.share)
    mean = drawn(setting, axis, np.zeros(experts))
    root = np.array([drawn(setting, axis, row) - mean for row in np.eye(experts)]).T
    # The joint is quadratic in the offsets, so finite differences are exact but for rounding.
    free, law = null_space(setting.share[np.newaxis]), setting.state.law
    at = setting.hyper.bias.offsets + axis + 3 * np.arange(experts)
    here = law[at].copy()

    def value(step):
        law[at] = here + free @ step
        found = setting.log_joint()
        law[at] = here
        return found

    unit = np.eye(free.shape[1])
    slope = np.array([(value(u) - value(-u)) / 2.0 for u in unit])
    curve = np.array(
        [[(value(u + v) - value(u - v) - value(v - u) + value(-u - v)) / 4.0 for u in unit]
         for v in unit]
    )  # fmt: skip
    spread = free @ np.linalg.inv(-curve) @ free.T
    assert mean == pytest.approx(here + spread @ (free @ slope), rel=1e-7, abs=1e-7)
    assert root @ root.T == pytest.approx(spread, rel=1e-6, abs=1e-9)
    assert setting.share @ mean == pytest.approx(0.0, abs=1e-12)


def test_gradients_are_kept_up_to_date(setting):
    """After each axis they are what gathering again would give, where they are still needed."""
    hyper, rng = setting.hyper, np.random.default_rng(5)
    bias.gather_offsets(hyper, setting.data, setting.state)
    for axis in range(setting.axes):
        bias.draw_axis(rng, hyper, axis)
        kept = hyper.bias.work.copy()
        bias.gather_offsets(hyper, setting.data, setting.state)
        others = [c for c in range(setting.axes) if c != axis]
        columns = [bias.GRADIENT + c for c in others]
        assert kept[:, columns] == pytest.approx(hyper.bias.work[:, columns], rel=1e-8, abs=1e-8)


def test_noise_has_the_density_of_the_joint(setting):
    hyper, law = setting.hyper, setting.state.law
    bias.gather_squares(hyper, setting.data, setting.state)
    at, start = hyper.bias.noise, setting.log_joint()
    for f, e in ((0, 1), (2, 0)):
        target = bias.noise_target.py_func(hyper, f, e)
        still = bias.log_noise_moved(target, 0.0)
        for step in (-0.7, 0.2, 1.5):
            fast = bias.log_noise_moved(target, step) - still
            law[at + f] += target.first_along * step
            law[at + e] += target.second_along * step
            slow = setting.log_joint() - start
            law[at + f] -= target.first_along * step
            law[at + e] -= target.second_along * step
            assert fast == pytest.approx(slow, rel=1e-9, abs=1e-9)
        held = setting.share[f] * target.first_along + setting.share[e] * target.second_along
        assert held == pytest.approx(0.0, abs=1e-15)


def test_updates_hold_the_sums(setting):
    rng, held, law = np.random.default_rng(6), setting.hyper.bias, setting.state.law
    for _ in range(200):
        bias.update_bias(rng, setting.hyper, setting.data, setting.state)
    offsets = law[held.offsets : held.noise].reshape(-1, setting.axes)
    assert setting.share @ offsets == pytest.approx(0.0, abs=1e-12)
    assert setting.share @ law[held.noise :] == pytest.approx(0.0, abs=1e-12)


def test_a_lone_expert_is_the_mean_expert():
    families = [0, 0]
    problem = small.make_problem(families, np.ones((2, 3)), hyper=small.biased(families))
    state = small.fill_state(problem, [0, 1])
    state.theta[:] = small.complete(
        small.random_rows(np.random.default_rng(7), small.LEARNED, (2,))
    )
    hyper = likelihood.of_chain(problem.hyper, state.law)
    bias.update_bias(np.random.default_rng(8), hyper, problem.data, state)
    assert state.law[4:] == pytest.approx(0.0, abs=1e-12)


def test_experts_alike_are_left_alone():
    """To the last bit, whether the switch is off or all offsets are zero."""
    y = np.random.default_rng(9).normal(size=(N, 3))
    for hyper in (small.LEARNED, small.biased(FAMILIES)):
        for i in range(N):
            assert plane.corrected(hyper, y, i) == (*y[i], 1.0)
            assert bias.log_noise_of(hyper, i) == 0.0
    globe = Globe(0)
    globe.state.law[4:] = 0.0
    for hyper in (every_kernel.SPHERE, globe.hyper):
        for i in range(N):
            place = globe.data.features[i][[sphere.X, sphere.Y, sphere.Z, circle.SIZE]]
            assert sphere.corrected(hyper, globe.data.features, i) == (*place, 1.0)


def test_at_the_pole_nothing_breaks():
    globe = Globe(1)
    globe.data.features[0, [sphere.X, sphere.Y, sphere.Z]] = 0.0, 0.0, globe.hyper.radius
    bias.gather_offsets(globe.hyper, globe.data, globe.state)
    assert np.isfinite(globe.hyper.bias.work).all()
    assert np.isfinite(sphere.corrected(globe.hyper, globe.data.features, 0)).all()
    assert STEEPEST / globe.hyper.radius < 1.0


# Parameters drawn for the occasion ---------------------------------------------------------------


def draws_of(setting: Setting, k: int, count: int = 4000) -> np.ndarray:
    """Rows with drawn parameters of cluster k."""
    rng, theta, found = np.random.default_rng(17), setting.state.theta, []
    for _ in range(count):
        integrated.gather(setting.hyper, setting.data.features, setting.state, k, theta, k)
        normal_bias.draw_parameters(setting.hyper, rng, theta, k)
        found.append(theta[k].copy())
    return np.array(found)


def passes(values, law) -> bool:
    return bool(stats.kstest(values, law).pvalue > FALSE_ALARM_RATE)


def test_variances_and_means_given_the_members():
    """Against the posterior by the slow twin: given v the means are normal."""
    setting, k = Features(5), 0
    rows, hyper = draws_of(setting, k), setting.hyper
    members = [i for i, label in enumerate(LABELS) if label == k]
    alike, factor = feature_reference.as_if_alike(
        hyper, hyper.law, setting.data.features[members], hyper.bias.expert[members]
    )
    for group, features in ((0, (0, 1)), (1, (2,))):
        variance = rows[:, normal.FIRST + group]
        s, squares = math.exp(hyper.law[group]), 0.0
        for j in features:
            w = factor.copy()
            if hyper.size[j] >= 0:
                w *= np.exp(hyper.law[2] * setting.data.features[members, 2])
            kappa = s / hyper.spread[j] ** 2
            precision = kappa + (1.0 / w).sum()
            mean = (kappa * hyper.centre[j] + (alike[:, j] / w).sum()) / precision
            z = alike[:, j] - hyper.centre[j]
            squares += z @ np.linalg.solve(np.diag(w) + 1.0 / kappa, z)
            drawn_mean = rows[:, normal.FIRST + 2 + j]
            assert passes((drawn_mean - mean) / np.sqrt(variance / precision), "norm")
        shape = hyper.shape + 0.5 * len(members) * len(features)
        scale = hyper.shape * s + 0.5 * squares
        assert passes(variance, stats.invgamma(shape, scale=scale).cdf)


def whitened(setting: Setting, rows, k: int) -> tuple[np.ndarray, np.ndarray, float]:
    """Λ and the means' errors where Ψ + S is the unit matrix; and ν + n - 1."""
    hyper = setting.hyper
    members = [i for i, label in enumerate(LABELS) if label == k]
    alike, factor = feature_reference.as_if_alike(
        hyper, hyper.law, setting.data.features[members], hyper.bias.expert[members]
    )
    weight = 1.0 / factor
    mean = weight @ alike / weight.sum()
    unit = np.eye(3)
    unit[np.tril_indices(3, -1)] = hyper.law[3:6]
    lower = np.diag(np.exp(hyper.law[:3])) @ unit
    scatter = 2.0 * hyper.shape * lower @ lower.T + (weight * (alike - mean).T) @ (alike - mean)
    root = np.linalg.cholesky(scatter)
    inverse = rows[:, covariance.FIRST + 6 :].reshape(-1, 3, 3)
    errors = (rows[:, covariance.FIRST :][:, :3] - mean) * math.sqrt(weight.sum())
    freedom = 2.0 * hyper.shape + 1.0 + len(members)
    return root.T @ inverse @ root, np.linalg.solve(root, errors.T).T, freedom


def test_covariances_and_means_given_the_members():
    """Whitened, Λ ~ Wishart(ν + n - 1, 1), and the errors are normal with precision Λ."""
    setting, k = Vectors(5), 0
    inverse, errors, freedom = whitened(setting, draws_of(setting, k), k)
    for direction in (*np.eye(3), np.ones(3) / math.sqrt(3.0), np.array([0.6, 0.0, -0.8])):
        along = np.einsum("i,nij,j->n", direction, inverse, direction)
        assert passes(along, stats.chi2(freedom).cdf)
    # The inverse of an entry of the inverse has fewer degrees of freedom.
    for j in range(3):
        assert passes(1.0 / np.linalg.inv(inverse)[:, j, j], stats.chi2(freedom - 2.0).cdf)
    root = np.linalg.cholesky(inverse)
    normals = np.einsum("nji,nj->ni", root, errors)
    for j in range(3):
        assert passes(normals[:, j], "norm")
    assert passes((normals**2).sum(axis=1), stats.chi2(3).cdf)


def test_a_wrong_number_of_degrees_of_freedom_is_caught():
    setting, k = Vectors(5), 0
    inverse, _, freedom = whitened(setting, draws_of(setting, k), k)
    assert not passes(inverse[:, 0, 0], stats.chi2(freedom - 1.0).cdf)

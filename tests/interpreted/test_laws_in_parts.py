"""What clusters share: updates of laws and of what sources add to them, with known numbers.

And what likelihoods with parameters integrated out have in common, against their marginals.
"""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pytest

from dfcrp.compiled.random import stream
from dfcrp.compiled.slice import log_target
from dfcrp.likelihoods import contract as likelihood
from dfcrp.likelihoods import integrated, law
from dfcrp.likelihoods.normal import bias as normal_bias
from dfcrp.likelihoods.normal import covariance
from dfcrp.likelihoods.normal import kernel as normal
from dfcrp.likelihoods.record import kernel as record
from dfcrp.likelihoods.record import rates
from exact import test_feature_likelihoods as features
from exact import test_record_sources as of_sources
from reference.known_numbers import KnownNumbers

HYPERS = features.HYPERS
IDS = ["normal", "covariance", "normal, experts", "covariance, experts"]
LABELS = np.array(features.Shared.labels)
OF = [np.flatnonzero(np.equal(LABELS, k)) for k in range(3)]


@pytest.fixture(params=HYPERS, ids=IDS)
def shared(request):
    return features.Shared(request.param)


def twin(shared, entries=None) -> float:
    """log p(all features), by the reference."""
    hyper = shared.hyper
    entries = hyper.law if entries is None else entries
    marginal = features.TWIN[type(hyper)]
    return sum(
        marginal(hyper, entries, features.Y[OF[k]], features.EXPERTS[OF[k]]) for k in range(3)
    )


def same_rows(hyper, found, expected) -> None:
    """Above the diagonal of a root there is nothing."""
    found, expected = found.copy(), expected.copy()
    if isinstance(hyper, covariance.CovarianceHyper):
        start = covariance.FIRST + 6
        above = [start + 3 * a + b for a in range(3) for b in range(a + 1, 3)]
        found[above] = expected[above] = 0.0
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


# Laws ---------------------------------------------------------------------------------------------


def test_when_a_law_is_due():
    small, old = law.SMALL, law.EVERY_SCAN
    later = next(age for age in range(old, 3 * old) if age % law.PERIOD == 0)
    for count, age, due in (
        (small, old + 1, (old + 1) % law.PERIOD == 0 or True),
        (small + 1, old - 1, True),
        (small + 1, later, True),
        (small + 1, later + 1, False),
    ):
        state = SimpleNamespace(scans=[age], label=np.zeros(count))
        assert law.law_is_due(state) == due


def test_when_a_short_law_is_due():
    for entries in (law.SHORT, law.SHORT + 1):
        for scan in range(2 * law.OFTEN):
            hyper = SimpleNamespace(law_mean=np.zeros(entries))
            found = law.short_law_is_due(hyper, SimpleNamespace(scans=[scan]))
            assert found == (entries <= law.SHORT and scan % law.OFTEN == 0)


def test_fit_of_an_entry(shared):
    hyper = shared.hyper
    for which in range(len(hyper.law_mean)):
        start = hyper.law[which]
        found, expected = [], []
        for step in (0.0, 0.3, -0.4):
            value = start + step
            found.append(law.log_law_at(hyper, shared.data, shared.state, which, value))
            assert hyper.law[which] == value
            z = (value - hyper.law_mean[which]) / hyper.law_sd[which]
            expected.append(twin(shared) - 0.5 * z * z)
        np.testing.assert_allclose(np.diff(found), np.diff(expected), atol=2e-6)
        far = law.FARTHEST * hyper.law_sd[which]
        for end, open_ in ((0.999999, True), (-0.999999, True), (1.01, False), (-1.01, False)):
            value = hyper.law_mean[which] + end * far
            found = log_target(law.Entry(hyper, shared.data, shared.state, which), value)
            assert (found > -math.inf) == open_
        hyper.law[which] = start


def test_the_plainest_fit(shared):
    state = shared.state
    state.theta[:] = 7.0
    found = law.fit_of_all(shared.hyper, shared.data, state, 0)
    expected = 0.0
    for k in range(3):
        row = features.row_of(shared.hyper, OF[k])
        expected += integrated.log_marginal(shared.hyper, row, 0)
        same_rows(shared.hyper, state.theta[state.label[OF[k][0]]], row[0])
    assert found == pytest.approx(expected)
    state.theta[:] = 7.0
    law.rebuild_rows(shared.hyper, shared.data, state)
    for k in range(3):
        row = features.row_of(shared.hyper, OF[k])
        same_rows(shared.hyper, state.theta[state.label[OF[k][0]]], row[0])


def test_a_cluster_in_the_last_row_counts(shared):
    """As many clusters as items."""
    problem_state = shared.state
    n = len(LABELS)
    for i in range(n):
        problem_state.head[i], problem_state.after[i] = i, -1
        problem_state.label[i], problem_state.size[i] = i, 1
    expected = sum(
        integrated.log_marginal(shared.hyper, features.row_of(shared.hyper, [i]), 0)
        for i in range(n)
    )
    found = law.fit_of_all(shared.hyper, shared.data, problem_state, 0)
    assert found == pytest.approx(expected)
    problem_state.theta[:] = 7.0
    law.rebuild_rows(shared.hyper, shared.data, problem_state)
    row = features.row_of(shared.hyper, [n - 1])
    same_rows(shared.hyper, problem_state.theta[n - 1], row[0])


def test_fit_of_an_entry_where_everyone_is_alone(shared):
    hyper, state, n = shared.hyper, shared.state, len(LABELS)
    for i in range(n):
        state.head[i], state.after[i], state.label[i], state.size[i] = i, -1, i, 1
    marginal_of = features.TWIN[type(hyper)]
    for which in range(len(hyper.law_mean)):
        start, found, expected = hyper.law[which], [], []
        for value in (start, start + 0.3):
            hyper.law[which] = value
            found.append(law.log_fit(hyper, shared.data, state, which))
            each = [
                marginal_of(hyper, hyper.law, features.Y[[i]], features.EXPERTS[[i]])
                for i in range(n)
            ]
            expected.append(sum(each))
        np.testing.assert_allclose(np.diff(found), np.diff(expected), atol=1e-6)
        hyper.law[which] = start


def test_fit_of_the_growth_of_the_last_group():
    hyper = HYPERS[0]._replace(size=np.array([-1, -1, 0]), growth=np.array([-1, 2]))
    shared = features.Shared(hyper)
    hyper, found, expected = shared.hyper, [], []
    for value in (0.2, 0.7):
        hyper.law[:] = [-0.4, -1.2, value]
        found.append(law.log_fit(hyper, shared.data, shared.state, 2))
        expected.append(twin(shared))
    assert np.diff(found) == pytest.approx(np.diff(expected), abs=1e-6)
    assert abs(np.diff(found)[0]) > 1e-3


@pytest.mark.parametrize("hyper", [HYPERS[0], HYPERS[2]], ids=[IDS[0], IDS[2]])
def test_rounding_never_takes_a_row_below_the_prior(hyper):
    """b of each group, which the first member has not changed by more than that."""
    least = hyper.shape * np.exp(hyper.law[:2])
    theta = features.row_of(hyper, [1, 4])
    sums = slice(normal.FIRST, normal.FIRST + 2)
    theta[0, sums] = 0.9 * least
    likelihood.remove_member(hyper, theta, 0, features.Y, 4)
    np.testing.assert_allclose(theta[0, sums], least)
    # Nor is it put there without need.
    theta = features.row_of(hyper, [1, 4])
    likelihood.remove_member(hyper, theta, 0, features.Y, 4)
    same_rows(hyper, theta[0], features.row_of(hyper, [1])[0])
    assert (theta[0, sums] > least).all()


def test_errors_that_grow_with_the_first_feature():
    hyper = HYPERS[0]._replace(size=np.array([-1, 0, 0]), growth=np.array([2, 2]))
    for members in ([1], [0, 2, 5]):
        expected = features.TWIN[type(hyper)](hyper, hyper.law, features.Y[members], None)
        assert marginal(hyper, members) == pytest.approx(expected, abs=1e-6)
        density = marginal(hyper, [*members, 8]) - marginal(hyper, members)
        found = likelihood.log_density(hyper, features.row_of(hyper, members), 0, features.Y, 8)
        assert found == pytest.approx(density, abs=1e-9)


def test_slices_of_a_law(shared, monkeypatch):
    asked = []

    def known(rng, target, start, width, least):
        asked.append((target.which, start, width, least))
        return start + 0.25

    monkeypatch.setattr(law, "slice_update", known)
    hyper = shared.hyper
    start = hyper.law[1]
    for count, narrow in ((9, 1.0), (4 * law.MANY, 0.5)):
        hyper.law[1] = start
        state = SimpleNamespace(label=np.zeros(count))
        law.slice_law(hyper, None, shared.data, state, 1)
        assert hyper.law[1] == start + 0.25
        which, begun, width, least = asked.pop()
        assert (which, begun) == (1, start)
        assert width == pytest.approx(law.WIDTH * hyper.law_sd[1] * narrow)
        assert least == pytest.approx(1e-12 * (1.0 + abs(start)))


def test_which_entries_are_updated(monkeypatch):
    done = []
    monkeypatch.setattr(law, "slice_law", lambda hyper, rng, data, state, which: done.append(which))
    most = int(law.MOST_AT_ONCE)
    law.update_law(SimpleNamespace(law_mean=np.zeros(most)), None, None, None)
    assert done == list(range(most))
    done.clear()
    numbers = [0.49, 0.51] * most
    law.update_law(SimpleNamespace(law_mean=np.zeros(2 * most)), KnownNumbers(numbers), None, None)
    assert done == list(range(0, 2 * most, 2))


def test_a_law_is_updated_when_due(monkeypatch):
    done = []
    for name in ("update_law", "rebuild_rows"):
        monkeypatch.setattr(law, name, lambda *_, name=name: done.append(name))
    for due in (True, False):
        done.clear()
        monkeypatch.setattr(law, "law_is_due", lambda _, due=due: due)
        assert law.update_shared(None, None, None, None) is due
        assert done == ["update_law", "rebuild_rows"] * due


@pytest.mark.parametrize("due", [True, False])
@pytest.mark.parametrize("scales", [True, False])
def test_what_is_due_of_a_law_of_records(due, scales, monkeypatch):
    done, steps = [], ["update_rates", "update_scales", "update_shared_parts", "weigh_rows"]
    for name in steps:
        monkeypatch.setattr(rates, name, lambda *_, name=name: done.append(name))
    monkeypatch.setattr(rates, "rates_are_due", lambda _, less: due and less == rates.LESS_OFTEN)
    monkeypatch.setattr(rates, "law_is_due", lambda _: scales)
    assert rates.update_shared(None, None, None, None) is False
    expected = [name for name in steps if scales or name != "update_scales"]
    assert done == (expected if due else [])


# Parameters integrated out ------------------------------------------------------------------------


def marginal(hyper, members) -> float:
    return integrated.log_marginal(hyper, features.row_of(hyper, members), 0) if members else 0.0


@pytest.mark.parametrize("hyper", HYPERS, ids=IDS)
def test_what_follows_from_the_predictive_density(hyper):
    width, y = features.WIDTH[type(hyper)], features.Y
    theta = np.full((4, width), 5.0)
    weight = likelihood.open_cluster(hyper, None, y, 3, theta, 1)
    assert weight == pytest.approx(marginal(hyper, [3]))
    same_rows(hyper, theta[1], features.row_of(hyper, [3])[0])
    assert likelihood.opening_weight(hyper, theta, 1, y, 3) == pytest.approx(weight)
    assert likelihood.size_of(hyper, theta, 1) == 0.0
    state = SimpleNamespace(
        head=np.array([-1, 4]), after=np.array([-1, -1, 0, -1, 2]), theta=np.full((2, width), 5.0)
    )
    expected = features.row_of(hyper, [4, 2, 0])[0]
    likelihood.propose_row(hyper, None, y, state, 1, theta, 2)
    same_rows(hyper, theta[2], expected)
    found = likelihood.row_weight(hyper, y, state, 1, theta, 2)
    assert found == pytest.approx(marginal(hyper, [4, 2, 0]))
    data = SimpleNamespace(features=y)
    assert likelihood.update_cluster(hyper, None, None, data, state, 1, None)
    same_rows(hyper, state.theta[1], expected)


@pytest.mark.parametrize("hyper", HYPERS, ids=IDS)
def test_members_are_dealt_to_two_sides(hyper):
    data = SimpleNamespace(features=features.Y)
    deal = SimpleNamespace(
        dealt=np.full(2, 9.0), sums=np.full((2, features.WIDTH[type(hyper)]), 5.0)
    )
    likelihood.start_deal(hyper, data, deal, 6, 1)
    likelihood.put_on_side(hyper, data, deal, 1, 7)
    assert deal.dealt.tolist() == [1.0, 2.0]
    for side, members in enumerate(([6], [1, 7])):
        same_rows(hyper, deal.sums[side], features.row_of(hyper, members)[0])
        density = marginal(hyper, [*members, 8]) - marginal(hyper, members)
        found = likelihood.log_attraction(hyper, data, deal, side, 8)
        assert found == pytest.approx(math.log(len(members)) + density, abs=1e-9)


@pytest.mark.parametrize("hyper", HYPERS[:2], ids=IDS[:2])
def test_new_items_are_weighed(hyper):
    y, new = features.Y[:6], features.Y[6:]
    cluster = np.array([0, 1, 0, 1, 1, 0])
    theta, out = np.full((3, features.WIDTH[type(hyper)]), 5.0), np.full((3, 3), 9.0)
    both, size = np.concatenate([y, new]), np.array([3, 3])
    integrated.weigh_new(hyper, stream(0), both, cluster, size, 0, theta, out)
    for m in range(3):
        for k, members in enumerate(([0, 2, 5], [1, 3, 4], [])):
            expected = marginal(hyper, [*members, 6 + m]) - marginal(hyper, members)
            assert out[m, k] == pytest.approx(expected, abs=1e-9)


# Rows as they are recorded ------------------------------------------------------------------------


@pytest.mark.parametrize("hyper", [HYPERS[0], HYPERS[2]], ids=[IDS[0], IDS[2]])
def test_a_row_of_groups_is_recorded(hyper):
    """M, sqrt(E(v) / P) and E(v) of the normal inverse Gamma posterior."""
    members = [0, 2, 5, 7]
    theta = np.concatenate(
        [np.zeros((1, features.WIDTH[type(hyper)])), features.row_of(hyper, members)]
    )
    out = np.full((2, 8), 9.0)
    normal.record_row(hyper, theta, 1, out, 1)
    assert (out[0] == 9.0).all()
    bias = hyper.bias
    y, factor = features.reference.as_if_alike(
        hyper, hyper.law, features.Y[members], features.EXPERTS[members]
    )
    assert bias.on == (factor[0] != 1.0)
    for g in range(2):
        span = range(hyper.start[g], hyper.start[g + 1])
        s = math.exp(hyper.law[g])
        b = hyper.shape * s
        found = {}
        for j in span:
            w = factor.copy()
            if hyper.size[j] >= 0:
                sizes = features.Y[members, hyper.size[j]]
                w *= np.exp(hyper.law[hyper.growth[g]] * (sizes - hyper.level[j]))
            kappa = s / hyper.spread[j] ** 2
            precision = kappa + (1.0 / w).sum()
            mean = (kappa * hyper.centre[j] + (y[:, j] / w).sum()) / precision
            b += 0.5 * (kappa * (hyper.centre[j] - mean) ** 2 + ((y[:, j] - mean) ** 2 / w).sum())
            found[j] = mean, precision
        variance = b / (hyper.shape + 0.5 * len(members) * len(span) - 1.0)
        assert out[1, 6 + g] == pytest.approx(variance)
        for j, (mean, precision) in found.items():
            assert out[1, j] == pytest.approx(mean)
            assert out[1, 3 + j] == pytest.approx(math.sqrt(variance / precision))


@pytest.mark.parametrize("hyper", [HYPERS[1], HYPERS[3]], ids=[IDS[1], IDS[3]])
def test_a_row_of_a_covariance_is_recorded(hyper):
    """The mean, and E(Σ) = (Ψ + S) / (ν + n - p - 2) of the inverse Wishart posterior."""
    members = [0, 2, 5, 7]
    theta = np.concatenate(
        [np.zeros((1, features.WIDTH[type(hyper)])), features.row_of(hyper, members)]
    )
    out = np.full((2, 9), 9.0)
    covariance.record_row(hyper, theta, 1, out, 1)
    y, factor = features.reference.as_if_alike(
        hyper, hyper.law, features.Y[members], features.EXPERTS[members]
    )
    p, weight = 3, 1.0 / factor
    lower = np.diag(np.exp(hyper.law[:p]))
    unit = np.eye(p)
    unit[np.tril_indices(p, -1)] = hyper.law[p : 2 * p]
    scale = 2.0 * hyper.shape * (lower @ unit) @ (lower @ unit).T
    mean = weight @ y / weight.sum()
    scale += (y - mean).T @ np.diag(weight) @ (y - mean)
    expected = np.diag(scale) / (2.0 * hyper.shape - 3.0 + len(members))
    np.testing.assert_allclose(out[1, :3], mean)
    np.testing.assert_allclose(out[1, 6:9], expected)
    np.testing.assert_allclose(out[1, 3:6], np.sqrt(expected / weight.sum()))


def test_parameters_of_a_covariance_are_drawn():
    """Λ = B Bᵀ with Cᵀ B = A of Bartlett's normals and chi squares; the mean by C A⁻ᵀ z / √W."""
    hyper, members, p = HYPERS[3], [0, 2, 5, 7], 3
    theta = np.concatenate(
        [np.zeros((1, features.WIDTH[type(hyper)])), features.row_of(hyper, members)]
    )
    row = theta[1].copy()
    start = covariance.FIRST + 2 * p
    root = np.tril(row[start:].reshape(p, p))
    normals = [0.3, -0.8, 0.5, 1.2, -0.4, 0.9]
    rng = KnownNumbers(normals=list(normals))
    hyper.bias.room[:] = 9.0
    normal_bias.draw_parameters(hyper, rng, theta, 1)
    assert rng.used_up()
    freedom = 2.0 * hyper.shape + p - 2.0 + len(members)
    shapes = [0.5 * (freedom - a) for a in range(p)]
    assert rng.gammas == pytest.approx(shapes)
    lower = np.diag(np.sqrt(2.0 * np.array(shapes)))
    lower[1, 0], lower[2, 0], lower[2, 1] = normals[:3]
    factor = np.linalg.solve(root.T, lower)
    np.testing.assert_allclose(theta[1, start:].reshape(p, p), factor @ factor.T)
    z = np.array(normals[3:])[::-1]
    step = root @ np.linalg.solve(lower.T, z) / math.sqrt(row[covariance.WEIGHT])
    mean = slice(covariance.FIRST, covariance.FIRST + p)
    np.testing.assert_allclose(theta[1, mean], row[mean] + step)


def test_parameters_of_groups_are_drawn():
    hyper, members = HYPERS[2], [0, 2, 5, 7]
    theta = np.concatenate(
        [np.zeros((1, features.WIDTH[type(hyper)])), features.row_of(hyper, members)]
    )
    row = theta[1].copy()
    rng = KnownNumbers(normals=[0.3, -0.8, 0.5])
    normal_bias.draw_parameters(hyper, rng, theta, 1)
    first = normal.FIRST
    shapes = [hyper.shape + 4.0, hyper.shape + 2.0]
    assert rng.gammas == pytest.approx(shapes)
    variances = row[first : first + 2] / shapes
    np.testing.assert_allclose(theta[1, first : first + 2], variances)
    errors = np.sqrt(variances[[0, 0, 1]] / row[first + 5 : first + 8])
    means = row[first + 2 : first + 5] + errors * [0.3, -0.8, 0.5]
    np.testing.assert_allclose(theta[1, first + 2 : first + 5], means)
    np.testing.assert_array_equal(theta[1, first + 5 :], row[first + 5 :])


# What sources add ---------------------------------------------------------------------------------


def test_two_scales_are_split(monkeypatch):
    made = of_sources.Shared()
    hyper, own = made.hyper, made.own[record.SCALE, 0]
    shared = hyper.law[hyper.entry[record.SCALE, 0]]
    start = hyper.law.copy()
    for one, other in ((0, 1), (2, 0)):
        a, b = own[one], own[other]
        hyper.law[:] = start
        both = np.exp(2.0 * (shared + start[[a, b]])).sum()
        asked = []

        def known(rng, target, z, width, least, asked=asked):
            asked.append((target, z, width, least))
            return z + 0.4

        monkeypatch.setattr(rates, "slice_update", known)
        rates.split_scales(hyper, None, made.data, made.state, 0, one, other)
        [(target, z, width, least)] = asked
        assert z == pytest.approx(2.0 * (start[a] - start[b]))
        assert width == rates.WIDTH
        assert 0.0 < least < 1e-6
        now = np.exp(2.0 * (shared + hyper.law[[a, b]]))
        assert now.sum() == pytest.approx(both)
        assert math.log(now[0] / now[1]) == pytest.approx(z + 0.4)
        others = [at for at in range(len(start)) if at not in (a, b)]
        np.testing.assert_array_equal(hyper.law[others], start[others])
        found, expected = [], []
        for at in (z, -z, 0.0, 1.3, -1.1):
            found.append(log_target(target, at))
            parts = both / (1.0 + np.exp([-at, at]))
            np.testing.assert_allclose(hyper.law[[a, b]], 0.5 * np.log(parts) - shared)
            expected.append(made.log_posterior(hyper.law))
        np.testing.assert_allclose(np.diff(found), np.diff(expected), atol=1e-6)
    # Beyond the prior's end of either nothing is possible.
    assert log_target(target, 40.0) == -math.inf
    assert log_target(target, -40.0) == -math.inf


def test_ends_of_the_prior_are_where_they_are():
    made = of_sources.Shared()
    hyper = made.hyper
    assert rates.beyond(hyper, 1, 0.5) == pytest.approx(0.5)
    assert rates.beyond(hyper, 1, -1.5) == pytest.approx(0.5)
    for what in range(3):
        at, own = int(hyper.entry[what, 0]), made.own[what, 0]
        precision = hyper.law_sd[at] ** -2 + (hyper.law_sd[own] ** -2.0).sum()
        start = hyper.law.copy()
        for normal_number, moved in ((0.7, True), (40.0, False), (-40.0, False)):
            hyper.law[:] = start
            rates.draw_shared(hyper, KnownNumbers(normals=[normal_number]), what, 0)
            whole = start[at] + start[own]
            mean = hyper.law_mean[at] / hyper.law_sd[at] ** 2
            mean += ((whole - hyper.law_mean[own]) / hyper.law_sd[own] ** 2).sum()
            expected = mean / precision + normal_number / math.sqrt(precision)
            assert hyper.law[at] == pytest.approx(expected if moved else start[at])
            np.testing.assert_allclose(hyper.law[at] + hyper.law[own], whole)
        hyper.law[:] = start
        # Means of sources count.
        hyper.law_mean[own] = [0.3, -0.2, 0.1]
        rates.draw_shared(hyper, KnownNumbers(normals=[0.0]), what, 0)
        mean = hyper.law_mean[at] / hyper.law_sd[at] ** 2
        mean += ((whole - hyper.law_mean[own]) / hyper.law_sd[own] ** 2).sum()
        assert hyper.law[at] == pytest.approx(mean / precision)
        hyper.law_mean[own] = 0.0
        hyper.law[:] = start


@pytest.mark.parametrize("which", range(3))
def test_no_source_is_moved_beyond_its_end(which):
    """Where all else may be anywhere, a source is drawn from its prior, by the number given."""
    made = of_sources.Shared()
    hyper, own = made.hyper, made.own[0, 0]
    hyper.law_sd[:] = 1e3
    hyper.law_sd[own[which]] = 0.5
    for number, moved in ((5.5, True), (-5.5, True), (6.5, False), (-6.5, False)):
        start = hyper.law.copy()
        rates.draw_shared(hyper, KnownNumbers(normals=[number]), 0, 0)
        assert (hyper.law != start).any() == moved


def three_fields():
    """Entries and what sources add, of which some are not there."""
    entry = np.array([[0, 1, 2], [-1, 3, 4], [5, -1, 6]])
    own = np.arange(10, 37).reshape(3, 3, 3)
    own[0, 2] = -1
    own[2, 2] = -1
    assert record.SCALE == 2
    return SimpleNamespace(own=own, entry=entry, kind=np.zeros(3))


def test_scales_of_every_field_are_updated(monkeypatch):
    done = []
    monkeypatch.setattr(rates, "split_scales", lambda *given: done.append(("split", *given[4:])))
    monkeypatch.setattr(rates, "slice_law", lambda *given: done.append(("slice", given[-1])))
    chosen = iter([True, True, False, True, True])
    monkeypatch.setattr(rates, "is_chosen", lambda *_: next(chosen))
    hyper = three_fields()
    rates.update_scales(hyper, KnownNumbers([0.1, 0.6, 0.9]), None, None)
    splits = [("split", 0, 0, 1), ("split", 0, 1, 0), ("split", 0, 2, 1)]
    own = hyper.own[2, 0]
    assert done == [("slice", 5), ("slice", own[0]), ("slice", own[2]), *splits, ("slice", 6)]
    done.clear()
    monkeypatch.setattr(rates, "is_chosen", lambda *_: False)
    rates.update_scales(hyper, KnownNumbers([0.1, 0.6, 0.9]), None, None)
    assert done == splits


def test_shared_parts_of_every_field_are_drawn(monkeypatch):
    done = []
    monkeypatch.setattr(rates, "draw_shared", lambda *given: done.append(given[2:]))
    monkeypatch.setattr(rates, "note_rates", lambda *given: done.append(given[1]))
    rates.update_shared_parts(three_fields(), None)
    assert done == [(0, 0), (2, 0), 0, (0, 1), (1, 1), 1, (1, 2), 2]

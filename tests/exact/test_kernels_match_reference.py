"""Every fast kernel equals its slow twin on random states, in all layouts of the data.

The twins evaluate the full joint; where a kernel gives a weight or a ratio, the twin takes the
difference of two joints. So these tests also prove the factorisation that the kernels rest on.
"""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest
from scipy.stats import beta, chi2, kstest

from dfcrp.likelihoods.circle import covariance as circle_covariance
from dfcrp.likelihoods.circle import kernel as circle
from dfcrp.likelihoods.circle import plane
from dfcrp.moves import assignment, revisit, scan
from dfcrp.priors import tail
from dfcrp.priors.arrivals import exchange, order
from dfcrp.sampling import problem as problem_module
from reference import kernel_reference as reference
from reference import small_problems as small
from reference.branches import ScriptedGenerator
from reference.random_cases import Case

SEEDS = range(12)
LAYOUTS = [(None, True), (None, False), (1.7, True), (1.7, False)]
NONE = -1


def describe(layout) -> str:
    return f"radius {layout[0]}, {'dense' if layout[1] else 'sparse'} tail"


@pytest.fixture(params=LAYOUTS, ids=describe)
def layout(request, monkeypatch):
    """Sets the tail's layout; returns the radius."""
    radius, dense = request.param
    if not dense:
        monkeypatch.setattr(problem_module, "DENSE_TAIL_ENTRIES", 0)
    return radius


def cases(radius):
    for seed in SEEDS:
        yield Case(seed, radius)


def test_the_twins_have_the_densities_of_scipy():
    """And a frozen law the parameters that the twins use."""
    row, y = [0.4, -0.2, 2.9, 0.7, 0.05, 0.3], [0.1, 0.2, 2.5]
    for hyper in (small.HYPER, small.LEARNED):
        tie = beta.logpdf(0.65, hyper.lambda_a, hyper.lambda_b) - math.log(2.0)
        assert reference.log_tie(hyper, row[5]) == pytest.approx(tie, abs=1e-12)
        by_scipy = [
            law.logpdf(x)
            for x, law in zip(row[3:5], reference.variance_priors(hyper, 2.9), strict=True)
        ]
        found = reference.log_covariance_prior(hyper, row, 2.9)
        assert found == pytest.approx(sum(by_scipy) + tie, abs=1e-12)
        drawn = reference.drawn_variances(hyper, 2.5)
        by_scipy = [law.logpdf(x) for x, law in zip(row[3:5], drawn, strict=True)]
        assert reference.log_drawn(hyper, row, y[2]) == pytest.approx(sum(by_scipy), abs=1e-12)


def test_companions(layout):
    for case in cases(layout):
        expected = reference.companions(case.labels, case.families, case.order)
        assert case.state.seated[case.state.rank].tolist() == expected


def test_tail_sums(layout):
    for case in cases(layout):
        for slot in range(case.n):
            for family in range(case.data.n_families):
                assert tail.tail_sum(case.state.tail, family, slot) == pytest.approx(
                    reference.tail(case.families, case.order, case.u, family, slot), abs=1e-12
                )
            late = [case.u[i] for i in case.order[slot + 1 :]]
            assert case.state.tail.total[slot] == pytest.approx(math.fsum(late), abs=1e-12)


def reference_weights(case: Case, i: int) -> dict[int, float]:
    """Log weight of each option of marking i relative to a new cluster, from the full joint.

    A new cluster takes the row ``opened``; elsewhere that row is i's spare and has density q.
    """
    alone = case.labels.count(case.labels[i]) == 1
    opened = case.theta[case.labels[i]] if alone else case.spare[i]
    theta = {k: case.theta[k] for k in set(case.labels)}
    new = case.log_joint(case.moved(i, NONE), {**theta, NONE: opened})
    q = reference.log_proposal(case.hyper, opened, case.features[i])
    weights = {NONE: 0.0}
    for k in set(case.labels) - ({case.labels[i]} if alone else set()):
        value = case.log_joint(case.moved(i, k), theta)
        if value > -math.inf:
            weights[k] = value + q - new
    return weights


def test_weights_of_a_marking(layout):
    for case in cases(layout):
        for i in range(case.n):
            expected = reference_weights(case, i)
            state = case.fresh_state()
            log_new = assignment.detach(case.data, case.hyper, state, i) + math.log(case.alpha)
            candidate, weight = case.scratch.candidate, case.scratch.weight
            count = assignment.weigh(
                case.data,
                case.hyper,
                case.prior,
                state,
                case.scratch,
                i,
                log_new,
                candidate,
                weight,
            )
            assert candidate[count - 1] == NONE
            found = dict(
                zip(candidate[:count].tolist(), (weight[:count] - log_new).tolist(), strict=True)
            )
            largest = max(expected.values())
            for k, value in expected.items():
                if k in found:
                    assert found.pop(k) == pytest.approx(value, abs=1e-8)
                else:
                    assert value < largest - assignment.NEGLIGIBLE + 1e-8
            assert not found


def test_shortcut_of_a_choice(layout):
    """The same threshold picks the same option with and without the shortcut; it is taken often."""
    exact = small.with_callees(assignment.choose, favourite=lambda *_: NONE)
    taken = 0
    for case in cases(layout):
        for i in range(case.n):
            state = case.fresh_state()
            log_new = assignment.detach(case.data, case.hyper, state, i) + math.log(case.alpha)
            candidate, weight = case.scratch.candidate, case.scratch.weight
            count = assignment.weigh_features(
                case.data,
                case.hyper,
                case.prior,
                state,
                case.scratch,
                i,
                log_new,
                candidate,
                weight,
            )
            for threshold in [0.0, *case.rng.random(5), 1.0 - 2.0**-53]:
                given = case.data, case.prior, state, i
                options = count, candidate.copy(), weight.copy()
                best = assignment.favourite(*given, *options, threshold)
                taken += count > 1 and best != NONE
                results = [
                    choose(
                        ScriptedGenerator([threshold], True), *given, count,
                        candidate.copy(), weight.copy(),
                    )
                    for choose in (assignment.choose.py_func, exact)
                ]  # fmt: skip
                assert results[0] == results[1]
    assert taken > 20


def test_noting_doubt_changes_nothing(layout):
    """Doubt is the probability of all options but the best, the order's share left out."""
    for case in cases(layout):
        state, flat = case.state, np.zeros(case.n)
        before = small.partition_of(state)
        revisit.note_doubt(
            case.data, case.hyper, case.prior, state, case.scratch, small.whole(case.data)
        )
        assert small.partition_of(state) == before
        small.assert_consistent(case.data, state)
        case.u = flat
        for i in range(case.n):
            options = np.array(list(reference_weights(case, i).values()))
            share = np.exp(options - options.max())
            assert state.doubt[i] == pytest.approx(1.0 - 1.0 / share.sum(), abs=1e-8)


def test_densities(layout):
    for case in cases(layout):
        rows = small.complete(case.theta)
        for k in range(case.n):
            again = rows.copy()
            again[k, 6:] = np.nan
            circle.complete_row(again, k)
            assert again[k] == pytest.approx(rows[k], rel=1e-12)
            for i in range(case.n):
                y = case.features[i]
                assert circle.log_density(case.hyper, rows, k, case.features, i) == pytest.approx(
                    reference.log_density(case.theta[k], y), rel=1e-10, abs=1e-9
                )
                assert circle.opening_weight(
                    case.hyper, rows, k, case.features, i
                ) == pytest.approx(
                    reference.opening_weight(case.hyper, case.theta[k], y), rel=1e-10, abs=1e-8
                )


def test_covariance_targets(layout):
    for case in cases(layout):
        theta = {k: case.theta[k] for k in set(case.labels)}
        for k in theta:
            row = case.theta[k]
            given = circle_covariance.Conditional(
                *circle.position_law(case.hyper, row[2]),
                *circle.size_law(case.hyper, row[2]),
                plane.spread_of_cluster(case.hyper, case.state.theta, k, case.features, case.state),
            )
            other = small.random_rows(case.rng, case.hyper, ())
            for coordinate, column in enumerate((3, 4, 5)):
                changed = row.copy()
                changed[column] = other[column]
                rest = [row[c] for c in (3, 4, 5) if c != column]
                fast = [
                    circle_covariance.log_target(
                        case.hyper, given, coordinate,
                        value if column == 5 else math.log(value), *rest,
                    )
                    for value in (changed[column], row[column])
                ]  # fmt: skip
                slow = case.log_joint(case.labels, {**theta, k: changed}) - case.log_joint(
                    case.labels, theta
                )
                if column != 5:  # the kernel works on log a and log d
                    slow += math.log(changed[column] / row[column])
                assert fast[0] - fast[1] == pytest.approx(slow, rel=1e-8, abs=1e-8)


def test_mean_ratio(layout):
    """The mean's acceptance ratio: the joint's, less the normal conditional's own."""
    for case in cases(layout):
        for k in set(case.labels):
            row = case.theta[k]
            log_a, log_d = math.log(row[3]), math.log(row[4])
            other = row.copy()
            other[2] = case.rng.normal(3.0, 0.7)
            fast = circle.log_variance_prior(
                case.hyper, other[2], log_a, log_d
            ) - circle.log_variance_prior(case.hyper, row[2], log_a, log_d)
            slow = reference.log_covariance_prior(
                case.hyper, row, other[2]
            ) - reference.log_covariance_prior(case.hyper, row, row[2])
            assert fast == pytest.approx(slow, rel=1e-9, abs=1e-9)


def test_alpha_target(layout):
    for case in cases(layout):
        clusters = len(set(case.labels))
        grid = case.rng.uniform(0.05, 8.0, size=3)
        fast = [
            order.log_alpha_target(case.state.seated, clusters, 2.0, 0.5, math.log(a)) for a in grid
        ]
        slow = [
            reference.log_alpha(case.labels, case.families, case.order, a, 2.0, 0.5) for a in grid
        ]
        assert np.diff(fast) == pytest.approx(np.diff(slow), abs=1e-9)


def test_exchange_gain(layout):
    """−Σ_s u_s ΔD_s with u tied to the arrival slots, by brute force."""
    for case in cases(layout):
        state, by_slot = case.state, case.u[case.order]
        exchange.lay_out_tables(case.data, state, case.scratch, small.whole(case.data))

        def log_joint(arrivals, case=case, by_slot=by_slot):
            seated = reference.companions(case.labels, case.families, arrivals)
            return -math.fsum(u * seated[i] for u, i in zip(by_slot, arrivals, strict=True))

        for a, b in combinations(range(case.n), 2):
            if case.families[a] != case.families[b]:
                continue
            p, q = int(state.rank[a]), int(state.rank[b])
            gain = exchange.gain_of_move(case.data, state, case.scratch, a, p, q)
            gain += exchange.gain_of_move(case.data, state, case.scratch, b, q, p)
            swapped = case.order.copy()
            swapped[p], swapped[q] = b, a
            assert gain == pytest.approx(log_joint(swapped) - log_joint(case.order), abs=1e-9)


def test_tables_stay_in_order_of_arrival(layout):
    """After many exchanges the tables' lists are what a fresh walk would write."""
    for case in cases(layout):
        part = small.whole(case.data)
        exchange.exchange_slots(case.rng, case.data, case.state, case.scratch, part, 200, 2)
        kept = [case.scratch.seat_rank.copy(), case.scratch.seat_family.copy()]
        exchange.lay_out_tables(case.data, case.state, case.scratch, part)
        assert (kept[0] == case.scratch.seat_rank).all()
        assert (kept[1] == case.scratch.seat_family).all()
        small.assert_consistent(case.data, case.state)


def test_order_move(layout):
    """The surrogate and its change, and the true ratio that corrects it."""
    for case in cases(layout):
        state, scratch = case.state, case.scratch
        count = order.choose_customers(case.rng, state, scratch, 0.7)
        slots = scratch.slots[:count].copy()
        chosen = {int(i) for i in case.order[slots]}
        assert len({case.labels[i] for i in chosen}) == count
        scratch.proposal[:] = state.order
        order.tabulate_surrogate(case.data, state, scratch, count)
        change = order.swap_chosen(case.rng, case.data, state, scratch, count)
        proposal = scratch.proposal.tolist()
        staying = np.setdiff1d(np.arange(case.n), slots)
        assert (case.order[staying] == np.array(proposal)[staying]).all()
        given = case.labels, case.families, case.order, case.alpha, chosen
        crude = scratch.barred.shape[0] == 0
        slow = [
            [reference.surrogate(*given, int(arrivals[s]), int(s), crude=crude) for s in slots]
            for arrivals in (case.order, proposal)
        ]
        assert change == pytest.approx(math.fsum(slow[1]) - math.fsum(slow[0]), abs=1e-9)
        order.walk_arrivals(case.data, state, scratch, scratch.proposal, scratch.proposed)
        fast = [order.log_product(d, case.alpha) for d in (scratch.proposed, state.seated)]
        true = [
            reference.log_order(case.labels, case.families, arrivals, case.alpha)
            for arrivals in (proposal, case.order)
        ]
        assert fast[1] - fast[0] == pytest.approx(true[0] - true[1], abs=1e-9)


def test_long_products_do_not_overflow():
    rng = np.random.default_rng(5)
    for n in (1, 15, 16, 17, 5000):
        seated = rng.integers(0, 10**6, size=n)
        assert order.log_product(seated, 190.0) == pytest.approx(
            math.fsum(np.log(seated + 190.0)), rel=1e-12
        )


def test_products_of_tiny_factors_do_not_vanish():
    seated = np.repeat([0, 3], [4996, 5004])
    for log_alpha in (-25.0, -300.0, -690.0):
        expected = 4996 * log_alpha + 5004 * math.log(3.0)
        assert order.log_product(seated, math.exp(log_alpha)) == pytest.approx(expected, rel=1e-12)


def test_alpha_finds_its_place_where_two_lists_agree():
    """One seat less for thousands of customers, and α is far from where it should be.

    The posterior of log α is then α^5 Π 1/(3 + α), 5,004 times, for all that matters; the mean of
    2,000 updates is compared with that of the law, at 6 standard errors (false alarms: 2e-9).
    """
    rng = np.random.default_rng(6)
    seated = np.repeat([0, 3], [4996, 5004])
    alpha, found = 1.2, []
    for _ in range(2020):
        alpha = order.update_alpha(rng, seated, 5000, 1.0, 0.01, alpha, 1.0)
        found.append(math.log(alpha))
    grid = np.linspace(-30.0, 10.0, 40_001)
    log_p = 5.0 * grid - 5004.0 * np.log(3.0 + np.exp(grid)) - 0.01 * np.exp(grid)
    weight = np.exp(log_p - log_p.max())
    mean = (weight * grid).sum() / weight.sum()
    sd = math.sqrt((weight * (grid - mean) ** 2).sum() / weight.sum())
    # Successive updates of a slice are correlated a little: a tenth of them count as independent.
    assert abs(np.mean(found[20:]) - mean) < 6.0 * sd / math.sqrt(200.0)


@pytest.mark.parametrize("hyper", [small.HYPER, small.LEARNED], ids=["paper", "learned"])
def test_opening_draws_follow_their_density(hyper):
    """Draws of q(θ | y), transformed by its own distribution functions, are uniform or normal.

    Eight Kolmogorov-Smirnov tests of each law; false-alarm rate 2e-4 together. A q centred on the
    wrong size is caught.
    """
    features = np.array([[1.0, 0.0, 3.6], [0.2, -1.0, 1.4]])
    problem = small.make_problem([0, 1], features, hyper=hyper)
    rng = np.random.default_rng(12)
    rows = np.empty((2, 6000, 6))
    one = np.zeros((2, circle.WIDTH))
    for i in range(2):
        for draw in range(rows.shape[1]):
            circle.open_cluster(problem.hyper, rng, features, i, one, i)
            rows[i, draw] = one[i, :6]

    def p_values(shift: float) -> list[float]:
        found = []
        for i, y in enumerate(features):
            found += _proposal_p_values(problem.hyper, rows[i], y + np.array([0, 0, shift]))
        return found

    limit = 1e-4 / 8
    assert min(p_values(0.0)) > limit
    assert min(p_values(0.2)) < limit


def _proposal_p_values(hyper, rows, y) -> list[float]:
    prior_a, prior_d = reference.drawn_variances(hyper, y[2])
    mean0, matrix0 = reference.base_mean(hyper)
    distance = []
    for row in rows:
        precision = np.linalg.inv(matrix0) + np.linalg.inv(reference.covariance(row))
        pull = np.linalg.solve(matrix0, mean0) + np.linalg.solve(reference.covariance(row), y)
        away = row[:3] - np.linalg.solve(precision, pull)
        distance.append(away @ precision @ away)
    return [
        kstest(prior_a.cdf(rows[:, 3]), "uniform").pvalue,
        kstest(prior_d.cdf(rows[:, 4]), "uniform").pvalue,
        kstest(beta.cdf((rows[:, 5] + 1) / 2, hyper.lambda_a, hyper.lambda_b), "uniform").pvalue,
        kstest(chi2.cdf(distance, 3), "uniform").pvalue,
    ]


def test_the_whole_tail_is_sparse_when_asked(monkeypatch):
    monkeypatch.setattr(problem_module, "DENSE_TAIL_ENTRIES", 0)
    case = Case(0, None)
    assert case.state.tail.dense.shape == (0, 0)
    assert case.state.tail.suffix.shape == (case.n,)


def test_start_is_every_marking_alone():
    case = Case(3, 1.7)
    scan.start_alone(case.rng, case.data, case.hyper, case.state)
    small.assert_consistent(case.data, case.state)
    assert case.state.size[: case.n].tolist() == [1] * case.n
    for i in range(case.n):
        assert case.state.spare_weight[i] == pytest.approx(
            reference.opening_weight(case.hyper, case.state.spare[i, :6], case.features[i])
        )

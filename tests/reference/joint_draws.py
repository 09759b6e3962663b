"""Independent draws of everything at once, (α, order, c, u, θ, y), and tests that they are such.

A draw of the joint is an exact draw of the posterior given its own y. So an update that leaves
every posterior unchanged leaves the joint unchanged: after it, the draws must still pass every
test that fresh ones pass. The draws are independent, so the p values need no correction.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import permutations

import numpy as np
from scipy import stats

from dfcrp import prior
from dfcrp.likelihoods.bias import SHARE
from dfcrp.sampling.problem import Problem
from reference import kernel_reference as reference
from reference import small_problems as small
from reference.prior_reference import canonical, prob_given_order


@dataclass
class JointDraws:
    """One row per draw; ``arrays`` are named after the fields of a state."""

    problem: Problem
    families: np.ndarray
    allowed: np.ndarray | None
    features: np.ndarray  # (draws, n, 3)
    arrays: dict[str, np.ndarray]
    #: (draws, n): what markings say, under a prior that knows categories.
    said: np.ndarray | None = None
    #: The same for the levels of their scores.
    scored: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.features)

    def load(self, draw: int, state) -> None:
        """Put one draw into the state, and its y into the data."""
        self.problem.data.features[:] = self.features[draw]
        if self.said is not None:
            self.problem.prior.categories.said[:] = self.said[draw]
        if self.scored is not None:
            self.problem.prior.scores.level[:] = self.scored[draw]
        for name, values in self.arrays.items():
            if name == "dense":
                state.tail.dense[:] = values[draw]
            elif name == "total":
                state.tail.total[:] = values[draw]
            else:
                getattr(state, name)[...] = values[draw]


def seat_everyone(rng, families, alpha, order, rule: bool) -> list[int]:
    """Labels by the seating rule, arrival by arrival; without the rule it is the CRP's."""
    labels = [-1] * len(families)
    tables: list[list[int]] = []
    for i in order:
        open_to = [
            t
            for t, members in enumerate(tables)
            if not rule or all(families[j] != families[i] for j in members)
        ]
        spot = rng.random() * (sum(len(tables[t]) for t in open_to) + alpha)
        chosen = len(tables)
        for t in open_to:
            spot -= len(tables[t])
            if spot < 0.0:
                chosen = t
                break
        if chosen == len(tables):
            tables.append([])
        tables[chosen].append(i)
        labels[i] = chosen
    return labels


def draw_joint(families, draws: int, seed: int, **settings) -> JointDraws:
    """Exact draws; ``settings`` are those of ``small.make_problem``.

    A radius or the constrained CRP cut the joint down to valid partitions: draws of (α, order, c)
    that are not valid are thrown away whole.
    """
    rng = np.random.default_rng([seed, 74])
    n = len(families)
    problem = small.make_problem(families, np.zeros((n, 3)), **settings)
    scan, allowed = problem.prior, settings.get("allowed")
    arrays: dict[str, list] = {"alpha": [], "order": [], "labels": []}
    while len(arrays["labels"]) < draws:
        alpha = problem.alpha_start
        if scan.update_alpha:
            alpha = rng.gamma(scan.alpha_shape) / scan.alpha_rate
        order = rng.permutation(n).tolist() if scan.use_order else list(range(n))
        labels = seat_everyone(rng, families, alpha, order, scan.use_order)
        if reference.keeps_the_rule(labels, families, allowed):
            for name, value in (("alpha", [alpha]), ("order", order), ("labels", labels)):
                arrays[name].append(value)
    return _complete(problem, families, allowed, arrays, rng)


def _complete(problem, families, allowed, drawn, rng) -> JointDraws:
    """Add u, θ and y, and all that a state derives from them."""
    labels = np.array(drawn.pop("labels"))
    arrays = {"alpha": np.array(drawn["alpha"]), "order": np.array(drawn["order"], np.int32)}
    draws, n = labels.shape
    seated = [seat_partition_row(row, problem) for row in labels]
    for name in seated[0]:
        arrays[name] = np.array([row[name] for row in seated])
    arrays["rank"] = np.argsort(arrays["order"], axis=1).astype(np.int32)
    found = companions(arrays["label"], families, arrays["rank"])
    arrays["u"] = rng.standard_exponential((draws, n)) / (found + arrays["alpha"])
    hyper = problem.hyper
    law = np.array(hyper.law_mean) + hyper.law_sd * rng.standard_normal((draws, 4))
    arrays["law"] = law if hyper.learned else law[:, :0]
    if hyper.bias.on:
        drawn_bias = small.draw_bias(rng, hyper.bias, draws)
        arrays["law"] = np.concatenate([arrays["law"], drawn_bias], axis=1)
    rows = small.random_rows(rng, hyper, (draws, n), law[:, np.newaxis])
    arrays["theta"] = small.complete(rows)
    own = np.take_along_axis(rows, arrays["label"][..., None].astype(int), axis=1)
    if problem.prior.use_order:
        arrays["seated"] = np.take_along_axis(found, arrays["order"].astype(int), axis=1)
        by_slot = np.take_along_axis(arrays["u"], arrays["order"].astype(int), axis=1)
        family = np.asarray(families)[arrays["order"]]
        each = (family[..., None] == np.arange(max(families) + 1)) * by_slot[..., None]
        arrays["dense"] = each[:, ::-1].cumsum(axis=1)[:, ::-1] - each
        arrays["total"] = arrays["dense"].sum(axis=2)
    else:
        arrays["seated"] = np.tile(np.arange(n), (draws, 1))
    features = small.random_features(rng, own)
    if hyper.bias.on:
        offsets, noise = small.offsets_and_noise(hyper.bias, arrays["law"])
        features = own[..., :3] + offsets + np.exp(noise) * (features - own[..., :3])
    return JointDraws(problem, np.asarray(families), allowed, features, arrays)


def seat_partition_row(labels, problem) -> dict[str, np.ndarray]:
    """A partition's part of the state."""
    return small.seat_partition(labels, problem.data.component)


def companions(label, families, rank) -> np.ndarray:
    """D by marking for many (partition, order) at once: the twin's count, vectorised."""
    n = label.shape[1]
    found = np.zeros(label.shape, np.int64)
    for i in range(n):
        for j in range(n):
            closed = np.zeros(len(label), bool)
            for t in range(n):
                if t != i and families[t] == families[i]:
                    closed |= (label[:, t] == label[:, j]) & (rank[:, t] < rank[:, i])
            found[:, i] += (rank[:, j] < rank[:, i]) & ~closed
    return found


def partition_probabilities(draws: JointDraws) -> dict[tuple[int, ...], float]:
    """Every valid partition with its probability under the joint, α integrated out."""
    problem, families = draws.problem, draws.families.tolist()
    scan = problem.prior
    alphas, weights = np.array([problem.alpha_start]), np.ones(1)
    if scan.update_alpha:
        # The trapezoid rule on the log scale: the integrand and all its derivatives vanish there.
        alphas = np.exp(np.linspace(-12.0, 5.0, 120))
        weights = stats.gamma.pdf(alphas, scan.alpha_shape, scale=1 / scan.alpha_rate) * alphas
    listed = [
        c
        for c in prior.partitions(families)
        if reference.keeps_the_rule(c, families, draws.allowed)
    ]

    def log_prob(c, alpha):
        if scan.use_order:
            return prior.log_prob(c, families, alpha)
        return reference.log_partition_without_order(c, families, alpha)

    values = np.array(
        [
            math.fsum(w * math.exp(log_prob(c, a)) for a, w in zip(alphas, weights, strict=True))
            for c in listed
        ]
    )
    return dict(zip(listed, (values / values.sum()).tolist(), strict=True))


class After:
    """The states after an update, one row per draw."""

    def __init__(self, draws: JointDraws):
        self.draws = draws
        self.rows: dict[str, list] = {
            name: [] for name in ("label", "order", "rank", "u", "alpha", "theta", "law")
        }

    def add(self, state) -> None:
        for name, rows in self.rows.items():
            rows.append(getattr(state, name).copy())

    def p_values(self, names, partitions=None) -> dict[str, float]:
        """The p values of the tests with these names."""
        self.now = {name: np.array(rows) for name, rows in self.rows.items()}
        self.count = len(self.now["label"])
        self.partitions = partitions
        found: dict[str, float] = {}
        for name in names:
            result = getattr(self, f"_{name}")()
            found.update(result if isinstance(result, dict) else {name: result})
        return found

    def _partition(self) -> float:
        """Chi-square over all valid partitions."""
        place = {c: k for k, c in enumerate(self.partitions)}
        observed = np.zeros(len(place))
        for row in self.now["label"].tolist():
            c = canonical(row)
            if c not in place:
                return 0.0
            observed[place[c]] += 1
        expected = np.array(list(self.partitions.values())) * self.count
        assert expected.min() > 5.0
        statistic = ((observed - expected) ** 2 / expected).sum()
        return float(stats.chi2.sf(statistic, len(place) - 1))

    def _orders(self) -> float:
        """Chi-square over all n! orders: uniform, unless a radius cuts the joint down."""
        n = self.now["order"].shape[1]
        place = {arrivals: k for k, arrivals in enumerate(permutations(range(n)))}
        observed = np.bincount(
            [place[tuple(row)] for row in self.now["order"].tolist()], minlength=len(place)
        )
        return float(stats.chisquare(observed).pvalue)

    def _cells(self) -> float:
        """Chi-square over every (partition, order), for a fixed α and no radius."""
        families, alpha = self.draws.families.tolist(), self.draws.problem.alpha_start
        orders = list(permutations(range(len(families))))
        expected = {
            (c, arrivals): self.count * prob_given_order(c, families, alpha, arrivals)
            for c in self.partitions
            for arrivals in orders
        }
        observed = dict.fromkeys(expected, 0)
        for labels, arrivals in zip(
            self.now["label"].tolist(), self.now["order"].tolist(), strict=True
        ):
            observed[canonical(labels), tuple(arrivals)] += 1
        return float(
            stats.chisquare(
                list(observed.values()), np.array(list(expected.values())) / len(orders)
            ).pvalue
        )

    def _companions(self) -> np.ndarray:
        return companions(self.now["label"], self.draws.families, self.now["rank"])

    def _u(self) -> float:
        """u (D + α) is standard exponential, for every marking."""
        scaled = self.now["u"] * (self._companions() + self.now["alpha"])
        return float(stats.kstest(scaled.ravel(), "expon").pvalue)

    def _joins(self) -> float:
        """Arrivals that join a table, against D / (D + α): a sum of martingale differences."""
        seated = self._companions()
        label, rank = self.now["label"], self.now["rank"]
        same = label[:, :, None] == label[:, None, :]
        joins = (same & (rank[:, None, :] < rank[:, :, None])).any(axis=2)
        chance = seated / (seated + self.now["alpha"])
        spread = math.sqrt((chance * (1 - chance)).sum())
        return float(2 * stats.norm.sf(abs((joins - chance).sum()) / spread))

    def _alpha(self) -> float:
        scan = self.draws.problem.prior
        gamma = stats.gamma(scan.alpha_shape, scale=1 / scan.alpha_rate)
        return float(stats.kstest(self.now["alpha"][:, 0], gamma.cdf).pvalue)

    def _law(self) -> dict[str, float]:
        """The learned law follows its own prior."""
        hyper = self.draws.problem.hyper
        z = (self.now["law"][:, :4] - hyper.law_mean) / hyper.law_sd
        names = ("scale_x", "growth_x", "scale_d", "growth_d")
        return {
            name: float(stats.kstest(column, "norm").pvalue)
            for name, column in zip(names, z.T, strict=True)
        }

    def _bias(self) -> dict[str, float]:
        """Offsets and noise follow their prior: one by one, and the sum of their squares."""
        bias = self.draws.problem.hyper.bias
        law, share = self.now["law"], bias.work[:, SHARE]
        experts = len(share)
        by_name = {
            name: law[:, bias.offsets + axis : bias.offsets + 3 * experts : 3]
            / bias.offset_sd[axis]
            for axis, name in enumerate(("offset_x", "offset_y", "size"))
        }
        by_name["noise"] = law[:, bias.noise : bias.noise + experts] / bias.noise_sd
        spread = np.sqrt(1.0 - share**2 / (share @ share))
        found = {}
        for name, z in by_name.items():
            if np.abs(z @ share).max() > 1e-9:
                return {f"{name}: the sum is not held": 0.0}
            chi_square = stats.chi2.cdf((z**2).sum(axis=1), experts - 1)
            found[name] = float(stats.kstest(chi_square, "uniform").pvalue)
            for f in range(experts):
                one = stats.kstest(z[:, f] / spread[f], "norm").pvalue
                found[f"{name} of {f}"] = float(one)
        return found

    def _parameters(self) -> dict[str, float]:
        """θ of one marking's cluster follows the base measure; y its normal given θ."""
        hyper, n = self.draws.problem.hyper, self.now["label"].shape[1]
        draw, marking = np.arange(self.count), np.arange(self.count) % n
        theta = self.now["theta"][draw, self.now["label"][draw, marking]]
        mu_x, mu_y, mu_l, a, d, lam = theta[:, :6].T
        prior_a, prior_d = reference.variance_priors(hyper, mu_l, self.now["law"])
        v = self.draws.features[draw, marking] - theta[:, :3]
        if hyper.bias.on:
            offsets, noise = small.offsets_and_noise(hyper.bias, self.now["law"])
            v = (v - offsets[draw, marking]) / np.exp(noise[draw, marking])
        z = v[:, 2] - lam * np.sqrt(d / (2 * a)) * (v[:, 0] + v[:, 1])
        distance = (v[:, 0] ** 2 + v[:, 1] ** 2) / a + z**2 / (d * (1 - lam**2))
        uniform = {
            "mu_x": stats.norm.cdf(mu_x, hyper.mu0_x, math.sqrt(hyper.var0_x)),
            "mu_y": stats.norm.cdf(mu_y, hyper.mu0_y, math.sqrt(hyper.var0_y)),
            "mu_l": stats.norm.cdf(mu_l, hyper.mu0_l, math.sqrt(hyper.var0_l)),
            "a": prior_a.cdf(a),
            "d": prior_d.cdf(d),
            "lambda": stats.beta.cdf((lam + 1) / 2, hyper.lambda_a, hyper.lambda_b),
            "y": stats.chi2.cdf(distance, 3),
        }
        return {name: float(stats.kstest(v, "uniform").pvalue) for name, v in uniform.items()}

"""Slow twins of the sampler's kernels: the model's densities in plain loops and plain matrices.

Nothing here uses the factorised formulas of the kernels. Weights and ratios are differences of

    log p(c, order, u, α, θ, y) = log p(α) + Σ_k [log α + log (n_k − 1)! + log p(θ_k)]
                                  − Σ_i u_i (D_i + α) + Σ_i log N(y_i; μ_{c_i}, Σ_{c_i}),

with D_i counted customer by customer and the normal evaluated with matrices. A partition is a
sequence of labels, an order a sequence of markings (first arrival first), the parameters of a
cluster a row (μx, μy, μl, a, d, λ).
"""

from __future__ import annotations

import math

import numpy as np
from scipy import stats

from dfcrp.likelihoods.circle.kernel import TAIL


def clusters(labels) -> list[list[int]]:
    """Members of each cluster, clusters by first appearance."""
    members: dict[int, list[int]] = {}
    for i, label in enumerate(labels):
        members.setdefault(int(label), []).append(i)
    return list(members.values())


def keeps_the_rule(labels, families, allowed=None) -> bool:
    """No family twice in a cluster; every two members allowed together, if that is asked."""
    for members in clusters(labels):
        for i in members:
            for j in members:
                if i < j and families[i] == families[j]:
                    return False
                if i < j and allowed is not None and not allowed[i][j]:
                    return False
    return True


def companions(labels, families, order) -> list[int]:
    """D by marking: earlier arrivals at tables that, at that time, hold no relative."""
    found = [0] * len(labels)
    for rank, i in enumerate(order):
        seated = [int(j) for j in order[:rank]]
        for j in seated:
            table = [t for t in seated if labels[t] == labels[j]]
            if all(families[t] != families[i] for t in table):
                found[i] += 1
    return found


def tail(families, order, u, family, slot) -> float:
    """U_f(r): the sum of u over members of the family that arrive after the slot."""
    return math.fsum(u[i] for rank, i in enumerate(order) if rank > slot and families[i] == family)


def log_partition(labels, families, order, u, alpha, allowed=None) -> float:
    """log p(c, u | order, α), without the truncated prior's constant."""
    if not keeps_the_rule(labels, families, allowed):
        return -math.inf
    value = 0.0
    for members in clusters(labels):
        value += math.log(alpha) + math.lgamma(len(members))
    for i, seated in enumerate(companions(labels, families, order)):
        value -= u[i] * (seated + alpha)
    return value


def log_partition_without_order(labels, families, alpha, allowed=None) -> float:
    """log of the Chinese restaurant's probability where the rule is kept, else −inf."""
    if not keeps_the_rule(labels, families, allowed):
        return -math.inf
    value = 0.0
    for members in clusters(labels):
        value += math.log(alpha) + math.lgamma(len(members))
    return value - math.fsum(math.log(i + alpha) for i in range(len(labels)))


def covariance(row) -> np.ndarray:
    """The structured Σ of a parameter row."""
    _, _, _, a, d, lam = row
    b = lam * math.sqrt(a * d / 2.0)
    return np.array([[a, 0.0, b], [0.0, a, b], [b, b, d]])


def log_normal(y, mean, matrix) -> float:
    """Log density of a multivariate normal, by a linear solve."""
    v = np.asarray(y, dtype=float) - mean
    _, log_determinant = np.linalg.slogdet(matrix)
    quadratic = v @ np.linalg.solve(matrix, v)
    return float(-0.5 * (len(v) * math.log(2.0 * math.pi) + log_determinant + quadratic))


def log_density(row, y) -> float:
    """log p(y | θ)."""
    return log_normal(y, np.asarray(row[:3]), covariance(row))


def variance_laws(hyper, log_diameter, law=None):
    """Shape and scale of the Gamma priors of a and of d, as ``variance_priors``."""
    if hyper.learned:
        law = np.asarray(hyper.law if law is None else law)
        away = log_diameter - hyper.level
        mean_a = np.exp(law[..., 0] + law[..., 1] * away)
        mean_d = np.exp(law[..., 2] + law[..., 3] * away)
        return (hyper.nu_x, mean_a / hyper.nu_x), (hyper.nu_d, mean_d / hyper.nu_d)
    held = np.maximum(log_diameter, hyper.floor)
    return (
        (hyper.tau_x * hyper.kappa_x * held**hyper.eta_x, 1.0 / hyper.tau_x),
        (hyper.tau_d * hyper.kappa_d * held**hyper.eta_d, 1.0 / hyper.tau_d),
    )


def variance_priors(hyper, log_diameter, law=None):
    """The Gamma priors of a and d at these log diameters; ``law`` has a row for each or one."""
    laws = variance_laws(hyper, np.asarray(log_diameter), law)
    return tuple(stats.gamma(shape, scale=scale) for shape, scale in laws)


# One value at a time, SciPy's densities take a hundred times as long as these formulas.


def log_gamma(x, shape, scale) -> float:
    """Log density of a Gamma distribution."""
    kernel = (shape - 1.0) * math.log(x) - x / scale
    return kernel - math.lgamma(shape) - shape * math.log(scale)


def log_beta(x, a, b) -> float:
    """Log density of a Beta distribution."""
    kernel = (a - 1.0) * math.log(x) + (b - 1.0) * math.log1p(-x)
    return kernel + math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)


def log_beta_prime(x, a, b, scale) -> float:
    """Log density of a ratio of two Gammas, times a scale."""
    z = x / scale
    kernel = (a - 1.0) * math.log(z) - (a + b) * math.log1p(z) - math.log(scale)
    return kernel + math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)


def log_tie(hyper, lam) -> float:
    """log p(λ)."""
    return log_beta((lam + 1.0) / 2.0, hyper.lambda_a, hyper.lambda_b) - math.log(2.0)


def log_covariance_prior(hyper, row, log_diameter) -> float:
    """log p(a, d, λ | l), normalised."""
    _, _, _, a, d, lam = row
    law_a, law_d = variance_laws(hyper, log_diameter)
    return log_gamma(a, *law_a) + log_gamma(d, *law_d) + log_tie(hyper, lam)


def base_mean(hyper) -> tuple[np.ndarray, np.ndarray]:
    """μ0 and Σ0."""
    return (
        np.array([hyper.mu0_x, hyper.mu0_y, hyper.mu0_l]),
        np.diag([hyper.var0_x, hyper.var0_y, hyper.var0_l]),
    )


def log_base(hyper, row) -> float:
    """log p(θ) of the base measure."""
    return log_normal(row[:3], *base_mean(hyper)) + log_covariance_prior(hyper, row, row[2])


def _drawn_laws(hyper, log_diameter):
    """Parameters of the laws of ``drawn_variances`` where tolerances are learned."""
    laws = variance_laws(hyper, log_diameter, hyper.reference)
    return [(nu, TAIL, TAIL * scale) for nu, scale in laws]


def drawn_variances(hyper, log_diameter):
    """The laws that a and d of spares have: the priors', or with a heavier tail if learned."""
    if not hyper.learned:
        return variance_priors(hyper, log_diameter)
    return tuple(
        stats.betaprime(nu, tail, scale=scale)
        for nu, tail, scale in _drawn_laws(hyper, np.asarray(log_diameter))
    )


def log_drawn(hyper, row, log_diameter) -> float:
    """Log density of a spare's a and d."""
    if hyper.learned:
        laws = _drawn_laws(hyper, log_diameter)
        return sum(log_beta_prime(x, *law) for x, law in zip(row[3:5], laws, strict=True))
    laws = variance_laws(hyper, log_diameter)
    return sum(log_gamma(x, *law) for x, law in zip(row[3:5], laws, strict=True))


def log_proposal(hyper, row, y, factor=1.0) -> float:
    """log q(θ | y): Σ from its own law at y's size, μ from its normal given (y, factor Σ)."""
    mean0, matrix0 = base_mean(hyper)
    precision = np.linalg.inv(matrix0) + np.linalg.inv(factor * covariance(row))
    pull = np.linalg.solve(matrix0, mean0) + np.linalg.solve(factor * covariance(row), y)
    spread = np.linalg.inv(precision)
    value = log_normal(row[:3], spread @ pull, spread) + log_drawn(hyper, row, y[2])
    return value + log_tie(hyper, row[5])


def opening_weight(hyper, row, y) -> float:
    """log p(y | θ) p(θ) / q(θ | y)."""
    return log_density(row, y) + log_base(hyper, row) - log_proposal(hyper, row, y)


def log_features(hyper, labels, theta, features) -> float:
    """log p(θ) p(y | c, θ); ``theta`` maps a cluster's label to its row."""
    value = 0.0
    for label in set(labels):
        value += log_base(hyper, theta[label])
    for i, label in enumerate(labels):
        value += log_density(theta[label], features[i])
    return value


def log_alpha(labels, families, order, alpha, shape, rate) -> float:
    """log p(α, c | order) on the scale of log α, u integrated out."""
    value = stats.gamma.logpdf(alpha, shape, scale=1.0 / rate) + math.log(alpha)
    for members in clusters(labels):
        value += math.log(alpha) + math.lgamma(len(members))
    for seated in companions(labels, families, order):
        value -= math.log(seated + alpha)
    return float(value)


def log_order(labels, families, order, alpha) -> float:
    """log p(c | order, α): all that the order's conditional knows."""
    value = 0.0
    for members in clusters(labels):
        value += math.log(alpha) + math.lgamma(len(members))
    for seated in companions(labels, families, order):
        value -= math.log(seated + alpha)
    return value


def surrogate(labels, families, order, alpha, chosen, i, slot, *, crude=False) -> float:
    """g_i(slot) of the order move: the effect of one customer, the chosen others left out.

    ``chosen`` are the customers that change places, i among them; counts over the customers that
    stay are scaled up to all. ``crude`` is the form for very many families: i's own companions
    are then all who are seated.
    """
    n = len(labels)
    scale = n / max(n - len(chosen), 1)
    staying = [(rank, int(t)) for rank, t in enumerate(order) if t not in chosen]

    def seats(family, before):
        """Staying customers before a slot, less those at tables that hold the family."""
        seated = [t for rank, t in staying if rank < before]
        barred = 0
        for j in seated:
            if any(labels[t] == labels[j] and families[t] == family for t in seated):
                barred += 1
        return len(seated) - barred

    def late(after, family=None):
        """W: the sum of scaled 1/(D + α) over staying customers after a slot."""
        return math.fsum(
            scale / (scale * seats(families[t], rank) + alpha)
            for rank, t in staying
            if rank > after and (family is None or families[t] == family)
        )

    own = sum(rank < slot for rank, _ in staying) if crude else seats(families[i], slot)
    value = -math.log(scale * own + alpha) - late(slot) + late(slot, families[i])
    for rank, j in staying:
        if labels[j] == labels[i]:
            later = max(slot, rank)
            value += late(later, families[j]) + late(later, families[i])
    return value

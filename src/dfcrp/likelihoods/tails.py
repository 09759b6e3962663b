"""Careless items: each item scatters by its expert's scale, or by a few times that.

Item i of cluster k, by expert f, has the scatter s_i² r_f² Σ_k, where s_i is one of the three
levels 1, 3 and 9. The shares π of the levels are learned, Dirichlet with a prior strongly towards
the first, so that normal data remain normal. ``log_scale`` holds log s_i: it is a chain's own, and
all that weighs members of a cluster (``bias.log_noise_of``, ``bias.precision_of``) takes it into
account. So given the levels nothing is different from experts who differ.

An item that may join a cluster has no level of its own yet: its density is the mixture

    p(y_i | cluster) = Σ_s π_s p(y_i | cluster, s),

and once the cluster is drawn with these weights, the level is drawn given the cluster
(``contract.settle``): the two are one joint Gibbs update. With Q = vᵀ Σ⁻¹ v of p features a normal
density is that of the first level times e^(Q/2) times

    e^(−Q/162) (π_1 x¹⁰ + π_3 3^−p x + π_9 9^−p),   x = e^(−4Q/81),

which takes one exponential.

Careless items are a minority: π_3 + π_9 is at most a quarter. Otherwise the first level could
become the one of a few items that happen to agree, and the scale of all would creep. Given n items
of which n_3 and n_9 are careless, π is Dirichlet cut down to that: π_9 / (π_3 + π_9) is Beta, and
the logarithm x of π_3 + π_9 is moved by a slice update of its log density

    (a_1 + n − n_3 − n_9 − 1) log(1 − e^x) + (a_3 + a_9 + n_3 + n_9) x.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from dfcrp.compiled.abi import F8, frame
from dfcrp.compiled.jit import by_type, implements, inline_kernel, lean_kernel
from dfcrp.compiled.slice import log_target, slice_update
from dfcrp.likelihoods import contract as likelihood
from dfcrp.likelihoods.integrated import empty_row, log_marginal
from dfcrp.likelihoods.law import law_is_due

#: log 3 and log 9: the levels' scales are 1, 3 and 9.
LOG_WIDE, LOG_WIDEST = math.log(3.0), math.log(9.0)
#: The prior of the shares: as if so many items of each level had been seen.
PRIOR = (20.0, 0.5, 0.25)
#: The largest share of careless items, and the least that numbers can hold.
MOST, LEAST = 0.25, 1e-100
LOG_MOST = math.log(MOST)
#: Shares at the start of a chain, those of the prior.
START = (PRIOR[1] / sum(PRIOR), PRIOR[2] / sum(PRIOR))


@frame
class Tails(NamedTuple):
    """Whether items may be careless, and which are."""

    on: bool
    shares: int  # where in the law π_3 and π_9 are
    prior: F8  # (3,)
    log_scale: F8  # (n,): log s_i, a chain's own


NORMAL_TAILS = Tails(on=False, shares=-1, prior=np.zeros(3), log_scale=np.zeros(0))


def with_tails(hyper: Any, n: int) -> Any:
    """The hyperparameters with careless items among n; before ``with_bias``, if at all."""
    at = len(hyper.law)
    laws = [name for name in ("law", "reference") if name in hyper._fields]
    longer = {name: np.append(getattr(hyper, name), START) for name in laws}
    tails = Tails(on=True, shares=at, prior=np.array(PRIOR), log_scale=np.zeros(n))
    return hyper._replace(**longer, tails=tails)


@inline_kernel
def shares_by(hyper, law):
    """The shares of the three levels, by a law."""
    wide, widest = law[hyper.tails.shares], law[hyper.tails.shares + 1]
    return 1.0 - wide - widest, wide, widest


@inline_kernel
def log_scale_of(hyper, i):
    """log s_i of item i, as it is."""
    return hyper.tails.log_scale[i] if hyper.tails.on else 0.0


@inline_kernel
def log_sum(first, wide, widest):
    """log of the sum of three weights that are given as logarithms."""
    largest = max(first, wide, widest)
    return largest + math.log(
        math.exp(first - largest) + math.exp(wide - largest) + math.exp(widest - largest)
    )


@inline_kernel
def log_of_mixture(hyper, wide, widest):
    """log of π_1 + π_3 e^wide + π_9 e^widest."""
    plain, share3, share9 = shares_by(hyper, hyper.law)
    largest = max(0.0, wide, widest)
    total = plain * math.exp(-largest) + share3 * math.exp(wide - largest)
    return largest + math.log(total + share9 * math.exp(widest - largest))


@inline_kernel
def settle_by_gains(hyper, rng, i, wide, widest):
    """Draw the level of item i, whose log density gains so much at the second and at the third."""
    plain, share3, share9 = shares_by(hyper, hyper.law)
    first = math.log(plain)
    hyper.tails.log_scale[i] = draw_level(
        rng, first, math.log(share3) + wide, math.log(share9) + widest
    )


@inline_kernel
def log_normal_tail(hyper, law, features, squares):
    """What takes the place of −Q/2 in a normal log density of so many features."""
    plain, wide, widest = shares_by(hyper, law)
    half = 0.5 * squares
    x = math.exp(half * (-8.0 / 81.0))
    x2 = x * x
    x8 = x2 * x2 * x2 * x2
    smaller = 3.0**-features
    total = plain * x8 * x2 + smaller * (wide * x + smaller * widest)
    return math.log(total) - half / 81.0


@inline_kernel
def draw_level(rng, first, wide, widest):
    """log s drawn with these weights, given as logarithms."""
    threshold = rng.random()
    largest = max(first, wide, widest)
    first, wide = math.exp(first - largest), math.exp(wide - largest)
    threshold *= first + wide + math.exp(widest - largest)
    if threshold < first:
        return 0.0
    return LOG_WIDE if threshold < first + wide else LOG_WIDEST


@inline_kernel
def settle_normal(hyper, rng, i, features, squares):
    """The same where the density is normal, given Q at the first level."""
    wide, widest = 4.0 / 9.0 * squares, 40.0 / 81.0 * squares
    settle_by_gains(hyper, rng, i, wide - features * LOG_WIDE, widest - features * LOG_WIDEST)


@inline_kernel
def tails_are_due(hyper, state):
    """Whether this scan draws the shares."""
    return hyper.tails.on and law_is_due(state)


class CarelessTarget(NamedTuple):
    """x = log(π_3 + π_9) given the levels: weights of the first level and of the others."""

    first: float
    others: float


@implements(log_target, CarelessTarget)
@inline_kernel
def log_careless(target, value):
    """Its log density, up to a constant."""
    if value >= LOG_MOST:
        return -math.inf
    return (target.first - 1.0) * math.log1p(-math.exp(value)) + target.others * value


@lean_kernel
def update_tails(rng, hyper):
    """Draw the shares given the levels; the caller must draw or weigh all spares again."""
    wide, widest = 0.0, 0.0
    items = hyper.tails.log_scale.shape[0]
    for i in range(items):
        level = hyper.tails.log_scale[i]
        if level > 0.5 * (LOG_WIDE + LOG_WIDEST):
            widest += 1.0
        elif level > 0.5 * LOG_WIDE:
            wide += 1.0
    prior, law, at = hyper.tails.prior, hyper.law, hyper.tails.shares
    target = CarelessTarget(prior[0] + items - wide - widest, prior[1] + prior[2] + wide + widest)
    # What rounding may have done is undone.
    start = min(math.log(max(law[at] + law[at + 1], LEAST)), LOG_MOST - 1e-14)
    careless = math.exp(slice_update(rng, target, start, 1.0, 1e-14))
    share = rng.beta(prior[1] + wide, prior[2] + widest)
    law[at], law[at + 1] = careless * share, careless * (1.0 - share)


@by_type
def density_levels(hyper, theta, k, y, i):
    """Where parameters are integrated out: log p(y_i | members of k) of the first level, and what
    it gains at the others."""


@lean_kernel
def opening_weight(hyper, theta, k, y, i):
    """log p(y_i), whatever its level; the row of i alone stays what it is."""
    if not hyper.tails.on:
        return log_marginal(hyper, theta, k)
    empty_row(hyper, theta, k)
    weight = likelihood.log_density(hyper, theta, k, y, i)
    likelihood.add_member(hyper, theta, k, y, i)
    return weight


@lean_kernel
def settle(hyper, rng, theta, k, y, i, alone):
    """Draw the level of i given the members of k; a row of i alone is built again."""
    if not hyper.tails.on:
        return
    if alone:
        empty_row(hyper, theta, k)
    _, wide, widest = density_levels(hyper, theta, k, y, i)
    settle_by_gains(hyper, rng, i, wide, widest)
    if alone:
        likelihood.add_member(hyper, theta, k, y, i)


def may_be_careless(kind: Any) -> Any:
    """Class decorator, above ``integrate_out``: items may be careless, by ``density_levels``."""
    implements(likelihood.opening_weight, kind)(opening_weight)
    implements(likelihood.settle, kind)(settle)
    return kind

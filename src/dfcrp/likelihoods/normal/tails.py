"""Careless items among normal features (``likelihoods.tails``): what a move asks for besides."""

from __future__ import annotations

from dfcrp.compiled.jit import by_type, implements, lean_kernel
from dfcrp.likelihoods import contract as likelihood
from dfcrp.likelihoods.integrated import empty_row, log_marginal
from dfcrp.likelihoods.normal import covariance, kernel
from dfcrp.likelihoods.normal.covariance import CovarianceHyper
from dfcrp.likelihoods.normal.kernel import NormalHyper
from dfcrp.likelihoods.tails import settle_by_gains


@by_type
def log_levels(hyper, theta, k, y, i):
    """log p(y_i | members of k) of the first level, and what it gains at the others."""


implements(log_levels, NormalHyper)(kernel.log_levels)
implements(log_levels, CovarianceHyper)(covariance.log_levels)


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
    _, wide, widest = log_levels(hyper, theta, k, y, i)
    settle_by_gains(hyper, rng, i, wide, widest)
    if alone:
        likelihood.add_member(hyper, theta, k, y, i)


for _kind in (NormalHyper, CovarianceHyper):
    implements(likelihood.opening_weight, _kind)(opening_weight)
    implements(likelihood.settle, _kind)(settle)

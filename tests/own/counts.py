"""Counts in several channels, Poisson about the rates of their object."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from dfcrp.compiled.abi import F8, frame
from dfcrp.compiled.jit import implements, lean_kernel
from dfcrp.errors import InputError
from dfcrp.likelihoods import contract
from dfcrp.likelihoods.integrated import empty_row, integrate_out, log_marginal
from dfcrp.likelihoods.law import fit_of_all, learn_law, log_fit
from dfcrp.likelihoods.own import OwnLikelihood

MEMBERS, LOG_FACTORIALS, SUMS = 0, 1, 2  # columns of a row; one sum for each channel follows


@learn_law  # the entries of ``law`` are learned, with normal priors
@integrate_out
@frame  # compiled code is handed its address; F8 is an array of numbers
class CountHyper(NamedTuple):
    rate: F8  # b of each channel
    law: F8  # log a
    law_mean: F8
    law_sd: F8


@implements(empty_row, CountHyper)
@lean_kernel
def start(hyper, theta, k):
    theta[k, :] = 0.0


@implements(contract.log_density, CountHyper)
@lean_kernel
def log_density(hyper, theta, k, y, i):
    n, total = theta[k, MEMBERS], 0.0
    for j in range(hyper.rate.shape[0]):
        shape, rate = math.exp(hyper.law[0]) + theta[k, SUMS + j], hyper.rate[j] + n
        total += math.lgamma(shape + y[i, j]) - math.lgamma(shape) - math.lgamma(y[i, j] + 1.0)
        total -= shape * math.log1p(1.0 / rate) + y[i, j] * math.log(rate + 1.0)
    return total


@implements(contract.add_member, CountHyper)
@lean_kernel
def add(hyper, theta, k, y, i):
    theta[k, MEMBERS] += 1.0
    for j in range(hyper.rate.shape[0]):
        theta[k, SUMS + j] += y[i, j]
        theta[k, LOG_FACTORIALS] += math.lgamma(y[i, j] + 1.0)


@implements(contract.remove_member, CountHyper)
@lean_kernel
def remove(hyper, theta, k, y, i):
    theta[k, MEMBERS] -= 1.0
    for j in range(hyper.rate.shape[0]):
        theta[k, SUMS + j] -= y[i, j]
        theta[k, LOG_FACTORIALS] -= math.lgamma(y[i, j] + 1.0)


@implements(log_marginal, CountHyper)
@lean_kernel
def marginal(hyper, theta, k):
    a, total = math.exp(hyper.law[0]), -theta[k, LOG_FACTORIALS]
    for j in range(hyper.rate.shape[0]):
        after = a + theta[k, SUMS + j]
        total += math.lgamma(after) - math.lgamma(a) + a * math.log(hyper.rate[j])
        total -= after * math.log(hyper.rate[j] + theta[k, MEMBERS])
    return total


@implements(contract.record_row, CountHyper)
@lean_kernel
def record(hyper, theta, k, out, row):
    for j in range(hyper.rate.shape[0]):
        out[row, j] = theta[k, SUMS + j] / theta[k, MEMBERS]


implements(log_fit, CountHyper)(fit_of_all)


@dataclass(frozen=True)
class CountSettings:
    """The section [likelihood] of a settings file."""

    shape: float = 2.0  # expected a
    shape_sd: float = 1.0  # standard deviation of its logarithm


class CountLikelihood(OwnLikelihood):
    name = "counts:COUNTS"  # module and name, as in run.likelihood
    noun = "count"
    Settings = CountSettings

    def check(self, items, config):
        if (items.values < 0).any():
            raise InputError("counts cannot be negative; correct them")

    def hyper(self, items, settings):
        """Rates such that the prior's mean is the channel's, whatever its level."""
        rate = settings.shape / items.values.mean(axis=0)
        log_a, sd = np.array([math.log(settings.shape)]), np.array([settings.shape_sd])
        return CountHyper(rate, log_a, log_a.copy(), sd)

    def row_width(self, items):
        return SUMS + len(items.columns)

    def learned_names(self, columns):
        return ("log_a",)


COUNTS = CountLikelihood()

"""What all clusters share, learned where their parameters are integrated out.

The posterior of an entry of the law is its normal prior times the marginal likelihood of every
cluster. A slice step needs no tuning and leaves it unchanged; each evaluation takes all markings.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from dfcrp.compiled.jit import by_type, implements, inline_kernel, lean_kernel
from dfcrp.compiled.slice import log_target, slice_update
from dfcrp.compiled.state import Data, State
from dfcrp.likelihoods import contract as likelihood
from dfcrp.likelihoods.integrated import gather, log_marginal

#: The law is updated in each of the first scans, then every so often; up to so many markings say
#: little about it, and it is updated in every scan.
EVERY_SCAN, PERIOD = 40, 8
SMALL = 1000
#: A law of so few entries costs little: it may be updated every so often instead.
SHORT, OFTEN = 2, 2
#: First width of a slice, in standard deviations of the prior; of more than MANY markings less, as
#: the posterior is the narrower.
WIDTH, MANY = 0.5, 500
#: Entries of the law that are updated in one scan, on average, if there are more.
MOST_AT_ONCE = 24.0
#: The prior ends after so many standard deviations: where all numbers agree, nothing else would
#: keep a scale above zero.
FARTHEST = 6.0


@inline_kernel
def law_is_due(state):
    """Whether this scan updates a law.

    Drawing all spares again is most of the cost, and once the law is found it hardly moves.
    """
    age = state.scans[0]
    return state.label.shape[0] <= SMALL or age < EVERY_SCAN or age % PERIOD == 0


@inline_kernel
def short_law_is_due(hyper, state):
    """Whether this scan updates a law if it is a short one."""
    return hyper.law_mean.shape[0] <= SHORT and state.scans[0] % OFTEN == 0


@by_type
def log_fit(hyper, data, state, which):
    """log p(markings | partition, law) but for what does not depend on entry ``which``.

    It may leave the rows of all clusters changed: they are built again after the updates.
    """


@lean_kernel
def fit_of_all(hyper, data, state, which):
    """The plainest ``log_fit``: every row built again and weighed."""
    total = 0.0
    for k in range(state.theta.shape[0]):
        if state.size[k] > 0:
            gather(hyper, data.features, state, k, state.theta, k)
            total += log_marginal(hyper, state.theta, k)
    return total


@lean_kernel
def log_law_at(hyper, data, state, which, value):
    """log posterior of one entry of the law; leaves ``value`` there."""
    hyper.law[which] = value
    z = (value - hyper.law_mean[which]) / hyper.law_sd[which]
    if abs(z) > FARTHEST:
        return -math.inf
    return log_fit(hyper, data, state, which) - 0.5 * z * z


class Entry(NamedTuple):
    """One entry of the law."""

    hyper: NamedTuple
    data: Data
    state: State
    which: int


@implements(log_target, Entry)
@inline_kernel
def log_entry(target, value):
    """Its log posterior; leaves ``value`` in the law."""
    return log_law_at(target.hyper, target.data, target.state, target.which, value)


@inline_kernel
def slice_width(hyper, state, which):
    """The first width of a slice of an entry."""
    return WIDTH * hyper.law_sd[which] * math.sqrt(min(1.0, MANY / state.label.shape[0]))


@lean_kernel
def slice_law(hyper, rng, data, state, which):
    """One slice update of an entry of the law."""
    start = hyper.law[which]
    width = slice_width(hyper, state, which)
    target = Entry(hyper, data, state, which)
    hyper.law[which] = slice_update(rng, target, start, width, 1e-12 * (1.0 + abs(start)))


@lean_kernel
def update_law(hyper, rng, data, state):
    """Update the entries that have a prior of their own; leaves the rows of clusters changed.

    Of a long law some entries are updated at a time, picked at random.
    """
    entries = len(hyper.law_mean)
    share = min(1.0, MOST_AT_ONCE / entries)
    for which in range(entries):
        if share == 1.0 or rng.random() < share:
            slice_law(hyper, rng, data, state, which)


@lean_kernel
def rebuild_rows(hyper, data, state):
    """The rows of all clusters from their members."""
    for k in range(state.theta.shape[0]):
        if state.size[k] > 0:
            gather(hyper, data.features, state, k, state.theta, k)


@lean_kernel
def update_shared(hyper, rng, data, state):
    """Update what is learned of the law if it is due; returns whether it was."""
    if not law_is_due(state):
        return False
    update_law(hyper, rng, data, state)
    rebuild_rows(hyper, data, state)
    return True


def learn_law(kind: Any) -> Any:
    """Class decorator: let the law of such a likelihood be updated by slice steps."""
    implements(likelihood.update_shared, kind)(update_shared)
    return kind

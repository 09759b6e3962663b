"""What markings say besides where they are: the factors of their categories and scores.

Given that a cluster is real, what its members say is independent of how easily it is found and of
its size. So factor(S) = R(S) [Σ_g ... + false F(i) / R({i})], with R(S) the probability of what is
said of a real object and F(i) that of what is said by a false mark; scores count as the ratio of
the two. The rest of the prior's weights stay as they are.
"""

from __future__ import annotations

from dfcrp.compiled.jit import inline_kernel
from dfcrp.compiled.state import NONE
from dfcrp.priors.detection.categories import (
    has_categories,
    log_alone_of,
    log_category_gain,
    log_together,
    said_by,
)
from dfcrp.priors.detection.scores import has_scores, log_score, log_scores


@inline_kernel
def log_marks(prior, data, state, k):
    """log R(S) of cluster k."""
    value = 0.0
    if has_categories(prior):
        value += log_together(prior, data, state, k)
    if has_scores(prior):
        value += log_scores(prior, data, state, k)
    return value


@inline_kernel
def log_marks_gain(prior, data, state, i, k):
    """log of R(S + i) / R(S)."""
    value = 0.0
    if has_categories(prior):
        value += log_category_gain(prior, data, state, i, k)
    if has_scores(prior):
        value += log_score(prior, data, i)
    return value


@inline_kernel
def log_marks_alone(prior, data, i):
    """log R({i})."""
    value = 0.0
    if has_categories(prior):
        value += log_alone_of(prior, data, i)
    if has_scores(prior):
        value += log_score(prior, data, i)
    return value


@inline_kernel
def log_marks_most(prior, data, i):
    """What R gains by i at most."""
    value = 0.0
    if has_categories(prior):
        said = said_by(prior, data, i)
        if said != NONE:
            value += prior.categories.most[prior.person[data.family[i]], said]
    if has_scores(prior):
        value += log_score(prior, data, i)
    return value


@inline_kernel
def log_marks_false(prior, data, i):
    """log F(i)."""
    value = 0.0
    if has_categories(prior):
        said = said_by(prior, data, i)
        if said != NONE:
            value += prior.categories.false[said]
    return value

"""Categories: what an object is called, and who takes what for what.

A real object is of category c with probability ρ_c, whatever its class and size. Person p, who
marks it, says c' with probability θ_p[c, c']; a false mark says c' with probability τ_c'. Nothing
is said by a marking without a category. So the factor of a cluster S is multiplied by

    R(S) = Σ_c ρ_c Π_{i ∈ S} θ_p(i)[c, c_i]          if it is real
    τ_{c_i}                                          if it is one marking, and false

Rows of θ are Dirichlet(s M[c, ·]) about a matrix M that all persons share, whose rows are
Dirichlet about a strong diagonal; s, how alike persons are, is Gamma. Given every object's
category, ρ, τ and θ are Dirichlet. Numbers of tables in restaurants of n_p[c, c'] customers make
M Dirichlet too, and with w ~ Beta(s, n_p[c]) s is Gamma: θ is integrated out for that.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dfcrp.compiled.abi import F8, I4, F8x2, F8x3, frame
from dfcrp.compiled.jit import inline_kernel, lean_kernel
from dfcrp.compiled.state import NONE

#: Below this no number is taken for its logarithm.
LEAST = 1e-300


@frame
class CategoryTables(NamedTuple):
    """What markings say, what follows from the parameters, and counts; C categories, or none."""

    said: I4  # (n,) int32: by item in input order, NONE where it says nothing; (0,) without
    decided: I4  # (n,) int32: what people say of its object, NONE where nothing; or (0,)
    log_said: F8x3  # (P, C', C): log θ_p[c, c']
    likely: F8x3  # (P, C', C): the same, not its logarithm
    most: F8x2  # (P, C'): its largest logarithm
    alone: F8x2  # (P, C'): log Σ_c ρ_c θ_p[c, c']
    share: F8  # (C,): log ρ
    false: F8  # (C,): log τ
    seen: F8  # (C,): objects
    false_seen: F8  # (C,): false marks
    counts: F8x3  # (P, C, C'): what a person said of objects
    tables: F8x2  # (C, C'): of the restaurants of all persons


def category_room(
    said: NDArray[np.int32],
    categories: int,
    persons: int,
    decided: NDArray[Any] | None = None,
) -> CategoryTables:
    """Tables and counts for so many categories and persons."""
    c = categories
    return CategoryTables(
        said=said,
        decided=np.empty(0, np.int32) if decided is None else decided.astype(np.int32),
        log_said=np.zeros((persons, c, c)),
        likely=np.zeros((persons, c, c)),
        most=np.zeros((persons, c)),
        alone=np.zeros((persons, c)),
        share=np.zeros(c),
        false=np.zeros(c),
        seen=np.zeros(c),
        false_seen=np.zeros(c),
        counts=np.zeros((persons, c, c)),
        tables=np.zeros((c, c)),
    )


def usual_matrix(categories: int, accuracy: float) -> NDArray[np.float64]:
    """The right category with this probability, each other one alike."""
    other = (1.0 - accuracy) / max(categories - 1, 1)
    return np.where(np.eye(categories, dtype=bool), accuracy, other)


def category_start(
    said: NDArray[np.int32], categories: int, beliefs: Any
) -> dict[str, NDArray[np.float64] | float]:
    """Where chains begin: shares as said, and the matrix that is expected."""
    counts = np.bincount(said[said != NONE], minlength=categories) + beliefs.category_weight
    share = counts / counts.sum() if categories else np.empty(0)
    usual = usual_matrix(categories, beliefs.accuracy)
    return {
        "category_share": share,
        "false_category": share,
        "confusion": usual[:, :, np.newaxis],
        "usual_confusion": usual,
        "confusion_strength": beliefs.confusion_strength,
    }


@inline_kernel
def has_categories(prior):
    """Whether markings say what they take objects for."""
    return prior.categories.said.shape[0] > 0


@inline_kernel
def said_by(prior, data, i):
    """What marking i says."""
    return prior.categories.said[data.original[i]]


@inline_kernel
def decided_of(prior, data, i):
    """What people decided that marking i's object is, or NONE."""
    decided = prior.categories.decided
    return decided[data.original[i]] if decided.shape[0] > 0 else NONE


@inline_kernel
def log_alone_of(prior, data, i):
    """log Σ_c ρ_c θ_p[c, c_i] of marking i by itself, over the categories it may be of."""
    said, c, p = said_by(prior, data, i), decided_of(prior, data, i), prior.person[data.family[i]]
    if c == NONE:
        return prior.categories.alone[p, said] if said != NONE else 0.0
    value = prior.categories.share[c]
    return value + prior.categories.log_said[p, said, c] if said != NONE else value


@lean_kernel
def log_of_category(prior, data, state, k, c):
    """log of ρ_c Π θ_p(i)[c, c_i] over the members of cluster k; −∞ if it was decided otherwise."""
    log_said = prior.categories.log_said
    value, j = prior.categories.share[c], state.head[k]
    while j != NONE:
        decided = decided_of(prior, data, j)
        if decided != NONE and decided != c:
            return -math.inf
        said = said_by(prior, data, j)
        if said != NONE:
            value += log_said[prior.person[data.family[j]], said, c]
        j = state.after[j]
    return value


@lean_kernel
def log_together(prior, data, state, k):
    """log R(S) of cluster k."""
    largest, total = -math.inf, 0.0
    for c in range(prior.categories.share.shape[0]):
        value = log_of_category(prior, data, state, k, c)
        if value > largest:
            total = total * math.exp(largest - value) + 1.0
            largest = value
        elif value > -math.inf:
            total += math.exp(value - largest)
    return largest + math.log(total)


@lean_kernel
def log_category_gain(prior, data, state, i, k):
    """log of R(S + i) / R(S)."""
    said, decided = said_by(prior, data, i), decided_of(prior, data, i)
    if decided != NONE:
        return log_decided_gain(prior, data, state, i, k, said, decided)
    if said == NONE:
        return 0.0
    likely = prior.categories.likely[prior.person[data.family[i]], said]
    largest, total, after = -math.inf, 0.0, 0.0
    for c in range(likely.shape[0]):
        value = log_of_category(prior, data, state, k, c)
        if value > largest:
            shrink = math.exp(largest - value)
            total, after = total * shrink + 1.0, after * shrink + likely[c]
            largest = value
        elif value > -math.inf:
            weight = math.exp(value - largest)
            total += weight
            after += weight * likely[c]
    return math.log(after / total)


@lean_kernel
def log_decided_gain(prior, data, state, i, k, said, c):
    """log of R(S + i) / R(S) where it was decided that i's object is of category c."""
    value = log_of_category(prior, data, state, k, c) - log_together(prior, data, state, k)
    if said != NONE:
        value += prior.categories.log_said[prior.person[data.family[i]], said, c]
    return value


@lean_kernel
def draw_category(rng, prior, data, state, k):
    """The category of cluster k, an object, given what was said; NONE if nothing was."""
    j, silent = state.head[k], True
    while j != NONE:
        silent = silent and said_by(prior, data, j) == NONE
        silent = silent and decided_of(prior, data, j) == NONE
        j = state.after[j]
    if silent:
        return NONE
    chosen, most = NONE, -math.inf
    for c in range(prior.categories.share.shape[0]):
        # The largest of log weights with Gumbel noise is drawn by the weights.
        noise = -math.log(max(rng.standard_exponential(), LEAST))
        value = log_of_category(prior, data, state, k, c) + noise
        if value > most:
            chosen, most = c, value
    return chosen


@lean_kernel
def forget_categories(prior):
    """Set the counts to nothing."""
    prior.categories.seen[:] = 0.0
    prior.categories.false_seen[:] = 0.0
    prior.categories.counts[:] = 0.0


@lean_kernel
def count_false_category(prior, data, i):
    """Count what a false mark says."""
    said = said_by(prior, data, i)
    if said != NONE:
        prior.categories.false_seen[said] += 1.0


@lean_kernel
def count_category(rng, prior, data, state, k):
    """Draw the category of cluster k, and count it and who said what."""
    c = draw_category(rng, prior, data, state, k)
    if c == NONE:
        return
    prior.categories.seen[c] += 1.0
    j = state.head[k]
    while j != NONE:
        said = said_by(prior, data, j)
        if said != NONE:
            prior.categories.counts[prior.person[data.family[j]], c, said] += 1.0
        j = state.after[j]


@lean_kernel
def draw_dirichlet(rng, values):
    """Put a draw in the place of its parameters."""
    if values.shape[0] == 1:
        values[0] = 1.0
        return
    total = 0.0
    for at in range(values.shape[0]):
        values[at] = max(rng.standard_gamma(max(values[at], LEAST)), LEAST)
        total += values[at]
    for at in range(values.shape[0]):
        values[at] /= total


@inline_kernel
def draw_tables(rng, customers, weight):
    """At how many tables so many customers sit in a restaurant of this concentration."""
    tables = 0.0
    for seated in range(int(customers)):
        tables += rng.random() * (weight + seated) < weight
    return tables


@lean_kernel
def update_usual(rng, prior):
    """M and s given the counts, θ integrated out."""
    categories, parameters, beliefs = prior.categories, prior.parameters, prior.beliefs
    strength, usual = parameters.confusion_strength[0], parameters.usual_confusion
    n = usual.shape[0]
    categories.tables[:] = 0.0
    shape = beliefs.confusion_shape
    rate = beliefs.confusion_shape / beliefs.confusion_strength
    for p in range(categories.counts.shape[0]):
        for c in range(n):
            total = 0.0
            for said in range(n):
                count = categories.counts[p, c, said]
                total += count
                tables = draw_tables(rng, count, max(strength * usual[c, said], LEAST))
                categories.tables[c, said] += tables
                shape += tables
            if total > 0.0:
                rate -= math.log(max(rng.beta(strength, total), LEAST))
    parameters.confusion_strength[0] = max(rng.standard_gamma(shape) / rate, LEAST)
    other = (1.0 - beliefs.accuracy) / (n - 1)
    for c in range(n):
        for said in range(n):
            expected = beliefs.accuracy if said == c else other
            usual[c, said] = beliefs.accuracy_weight * expected + categories.tables[c, said]
        draw_dirichlet(rng, usual[c])


@lean_kernel
def update_categories(rng, prior):
    """ρ, τ, M, s and θ given the counts."""
    categories, parameters, beliefs = prior.categories, prior.parameters, prior.beliefs
    update_usual(rng, prior)
    strength, n = parameters.confusion_strength[0], parameters.category_share.shape[0]
    for c in range(n):
        parameters.category_share[c] = beliefs.category_weight + categories.seen[c]
        parameters.false_category[c] = beliefs.category_weight + categories.false_seen[c]
    draw_dirichlet(rng, parameters.category_share)
    draw_dirichlet(rng, parameters.false_category)
    for p in range(categories.counts.shape[0]):
        for c in range(n):
            row = categories.counts[p, c]
            for said in range(n):
                row[said] += strength * parameters.usual_confusion[c, said]
            draw_dirichlet(rng, row)
            for said in range(n):
                parameters.confusion[c, said, p] = row[said]


@lean_kernel
def rebuild_categories(prior):
    """Bring the tables up to date with the parameters."""
    categories, parameters = prior.categories, prior.parameters
    n = parameters.category_share.shape[0]
    for c in range(n):
        categories.share[c] = math.log(max(parameters.category_share[c], LEAST))
        categories.false[c] = math.log(max(parameters.false_category[c], LEAST))
    for p in range(categories.likely.shape[0]):
        for said in range(n):
            most, total = LEAST, 0.0
            for c in range(n):
                likely = max(parameters.confusion[c, said, p], LEAST)
                categories.likely[p, said, c] = likely
                categories.log_said[p, said, c] = math.log(likely)
                most = max(most, likely)
                total += parameters.category_share[c] * likely
            categories.most[p, said] = math.log(most)
            categories.alone[p, said] = math.log(max(total, LEAST))

"""Where the parameters of chains begin: at the usual place, or where an earlier run ended.

Where a chain begins changes nothing of what it converges to, as long as it is a place where it can
be. So only what is learned is taken over, by name. What is held may be worked out from the data,
and is that of the new run; a quantity of which something held differs stays at its usual start.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dfcrp.compiled.state import State
from dfcrp.draws import Columns, Draws
from dfcrp.items.learned import Learned, LearnedQuantity
from dfcrp.sampling.checkpoints import FARTHEST
from dfcrp.sampling.problem import Problem

#: Axes along which there may be more than before; what is new stays at its usual start.
GROWING = ("expert", "person", "image_of_objects")
#: Axes whose labels are numbers, which mean something else with other data.
NUMBERED = ("look",)
#: Numbers of every draw that are read at a time.
CHUNK = 1024


def learned_of(draws: Draws, chains: int) -> Learned:
    """The last draws of a run, for so many chains."""
    columns, number = draws.columns, np.arange(chains) % draws.n_chains
    quantities = {}
    for variable in columns.shared:
        if set(variable.dims) & set(NUMBERED):
            continue
        place, shape = columns.slices[variable.name], columns.shape(variable)
        last, learned = _last_of(draws, place)
        if not np.isfinite(last).all():
            continue
        quantities[variable.name] = LearnedQuantity(
            variable.dims, last[number].reshape(-1, *shape), learned.reshape(shape)
        )
    used = {dim for one in quantities.values() for dim in one.dims}
    coords = {dim: tuple(labels) for dim, labels in columns.coords.items() if dim in used}
    return Learned(draws.alpha()[number, -1], coords, quantities)


def _last_of(draws: Draws, place: slice) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """The last draw of every chain, and what is not the same in all draws."""
    width = place.stop - place.start
    last, learned = np.empty((draws.n_chains, width)), np.empty(width, bool)
    for start in range(0, width, CHUNK):
        at = slice(start, min(start + CHUNK, width))
        part = draws.shared(slice(place.start + at.start, place.start + at.stop))
        last[:, at] = part[:, -1]
        learned[at] = (part != part[:1, :1]).any(axis=(0, 1))
    return last, learned


def take_over(problem: Problem, state: State, chain: int) -> None:
    """Put what an earlier run had learned in the place of the usual start."""
    learned = problem.learned
    if learned is None or _something_gone(learned, problem.columns):
        return
    number = chain % len(learned.alpha)
    shared = np.concatenate([state.law, state.own])
    found = shared.copy()
    for variable in problem.columns.shared:
        place, shape = problem.columns.slices[variable.name], problem.columns.shape(variable)
        one = learned.quantities.get(variable.name)
        if one is not None and one.dims == variable.dims:
            values = found[place].reshape(shape)
            found[place] = _with_learned(values, one, number, learned, problem.columns).ravel()
    width = len(state.law)
    if _law_can_be(problem, found[:width]):
        state.law[...] = found[:width]
    state.own[...] = found[width:]
    if np.isfinite(state.alpha[0]) and np.isfinite(learned.alpha[number]):
        state.alpha[0] = learned.alpha[number]


def _something_gone(learned: Learned, columns: Columns) -> bool:
    """Whether an expert, image or category of before is no more: less may be learned now."""
    return any(
        not set(labels) <= set(columns.coords.get(dim, ()))
        for dim, labels in learned.coords.items()
    )


def _with_learned(
    values: NDArray[np.float64],
    one: LearnedQuantity,
    chain: int,
    learned: Learned,
    columns: Columns,
) -> NDArray[np.float64]:
    """A quantity as it begins, with what was learned of it."""
    before = [learned.coords[dim] for dim in one.dims]
    now = [columns.coords[dim] for dim in one.dims]
    for dim, old, new in zip(one.dims, before, now, strict=True):
        if old != new and dim not in GROWING:
            return values
    places = []
    for old, new in zip(before, now, strict=True):
        number = {label: at for at, label in enumerate(new)}
        places.append(np.array([number[label] for label in old]))
    at = np.ix_(*places) if places else ()
    known = values[at]
    if not np.array_equal(known[~one.learned], one.values[chain][~one.learned]):
        return values
    found = values.copy()
    found[at] = one.values[chain]
    return found


def _law_can_be(problem: Problem, law: NDArray[np.float64]) -> bool:
    """Whether the likelihood's own part is one that its chains can have.

    Experts' deviations add up to nothing over the items, of which there are others now.
    """
    hyper = problem.hyper
    bias = getattr(hyper, "bias", None)
    if bias is not None and bias.on:
        return False
    mean, sd = getattr(hyper, "law_mean", None), getattr(hyper, "law_sd", None)
    if mean is None:
        return True
    known = min(len(mean), len(law))
    away = np.abs(law[:known] - mean[:known])
    return bool((away <= FARTHEST * np.asarray(sd)[:known]).all())

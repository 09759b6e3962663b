"""Categories under priors that do not know them: the same model, given the clusters of each draw.

Such a prior makes clusters by places alone. Given a draw's clusters, every one of them an object,
the model of ``priors/detection/categories`` is that of Dawid and Skene with matrices that are
drawn together; a short Gibbs chain runs along the draws. What is said has no say in the clusters.
"""

from __future__ import annotations

from typing import Annotated, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dfcrp.compiled.abi import F8, I4, I8, F8x2, F8x3, I4x2, frame
from dfcrp.compiled.jit import entry_kernel
from dfcrp.compiled.random import Stream, stream
from dfcrp.priors.detection.categories import (
    CategoryTables,
    category_room,
    category_start,
    count_category,
    forget_categories,
    rebuild_categories,
    update_categories,
)
from dfcrp.priors.detection.parameters import Axes, joined, parts, shapes_of
from dfcrp.priors.detection.settings import DetectionSettings
from dfcrp.priors.detection.summaries import Lists, SummarySeats, seat

#: Updates before the first draw, and between two.
WARM_UP, BETWEEN = 50, 3


@frame
class OpinionParameters(NamedTuple):
    """As in the detection prior."""

    category_share: Annotated[F8, Axes("category")]
    false_category: Annotated[F8, Axes("category")]
    confusion: Annotated[F8x3, Axes("category", "said", "person")]
    usual_confusion: Annotated[F8x2, Axes("category", "said")]
    confusion_strength: Annotated[F8, Axes()]


@frame
class OpinionBeliefs(NamedTuple):
    """As in the detection prior."""

    category_weight: float
    accuracy: float
    accuracy_weight: float
    confusion_strength: float
    confusion_shape: float


@frame
class Opinions(NamedTuple):
    """What the kernels of categories ask of a prior."""

    person: I4  # (F,) int32
    beliefs: OpinionBeliefs
    parameters: OpinionParameters
    categories: CategoryTables


@entry_kernel
def opine(
    rng: Stream,
    prior: Opinions,
    lists: Lists,
    seats: SummarySeats,
    labels: I4x2,
    sweeps: I8,
    share: F8x2,
    confusion: F8x2,
):
    """ρ and θ for every draw of the labels, ``sweeps`` updates after those of the draw before."""
    parameters = prior.parameters
    for draw in range(labels.shape[0]):
        seat(labels[draw], seats)
        for _ in range(sweeps[draw]):
            rebuild_categories(prior)
            forget_categories(prior)
            for k in range(labels.shape[1]):
                if seats.size[k] > 0:
                    count_category(rng, prior, lists, seats, k)
            update_categories(rng, prior)
        at = 0
        for c in range(parameters.confusion.shape[0]):
            share[draw, c] = parameters.category_share[c]
            for said in range(parameters.confusion.shape[1]):
                for p in range(parameters.confusion.shape[2]):
                    confusion[draw, at] = parameters.confusion[c, said, p]
                    at += 1


def opinions(
    labels: NDArray[np.int32],
    said: NDArray[np.int64],
    categories: int,
    families: NDArray[np.int64],
    persons: NDArray[np.int64],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Draws of ρ, (draws, C), and θ, (draws, C, C', persons), for draws of the labels (draws, n).

    ``persons`` says whose list each family is.
    """
    usual, n_persons = DetectionSettings(), int(persons.max()) + 1
    beliefs = OpinionBeliefs(*(getattr(usual, name) for name in OpinionBeliefs._fields))
    words = said.astype(np.int32)
    start = category_start(words, categories, beliefs)
    sizes = {"category": categories, "said": categories, "person": n_persons}
    shapes = shapes_of(OpinionParameters, sizes)
    prior = Opinions(
        person=persons.astype(np.int32),
        beliefs=beliefs,
        parameters=OpinionParameters(**parts(joined(shapes, start), shapes)),
        categories=category_room(words, categories, n_persons),
    )
    draws, n = labels.shape
    share = np.zeros((draws, categories))
    confusion = np.zeros((draws, categories**2 * n_persons))
    sweeps = np.full(draws, BETWEEN, np.int64)
    sweeps[0] = WARM_UP
    # The same draws give the same answers.
    opine(
        stream([draws, n, categories]),
        prior,
        Lists(families.astype(np.int32), np.arange(n, dtype=np.int32)),
        SummarySeats(*(np.zeros(n, np.int32) for _ in range(3))),
        np.require(labels, np.int32, ["C", "W"]),
        sweeps,
        share,
        confusion,
    )
    return share, confusion.reshape(draws, categories, categories, n_persons)

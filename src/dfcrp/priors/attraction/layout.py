"""The DFCRP with attraction between lists of one person, laid out for the kernels."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from dfcrp.persons import Persons
from dfcrp.priors.attraction.kernel import Arrived, Attraction
from dfcrp.priors.attraction.settings import AttractionSettings

#: The name of τ where it is learned, and so stored with every draw.
STRENGTH = "attraction"
#: Where a learned τ starts.
_START = 0.0


def make_attraction(
    settings: AttractionSettings, alpha_rate: float, persons: Persons, n_items: int
) -> Attraction:
    """The prior for so many items; ``settings.strength`` is τ, or "learned"."""
    learned = isinstance(settings.strength, str)
    strength = _START if isinstance(settings.strength, str) else settings.strength
    return Attraction(
        person=persons.codes.astype(np.int32),
        learned=learned,
        strength_sd=settings.strength_sd,
        alpha_shape=settings.alpha_shape,
        alpha_rate=alpha_rate,
        own=np.full(1 if learned else 0, strength),
        strong=np.array([math.exp(strength)]),
        arrived=_room(n_items, persons.codes),
    )


def for_chain(prior: Attraction, own: NDArray[np.float64]) -> Attraction:
    """The prior of one chain: its parameters are in ``own``, and it counts for itself."""
    mine = prior._replace(
        own=own,
        strong=prior.strong.copy(),
        arrived=_room(len(prior.arrived.open), prior.person),
    )
    refresh(mine)
    return mine


def refresh(prior: Attraction) -> None:
    """What follows from τ."""
    if prior.learned:
        prior.strong[0] = math.exp(prior.own[0])


def _room(n: int, persons: NDArray[np.integer]) -> Arrived:
    return Arrived(
        open=np.zeros(n),
        kin=np.zeros(n),
        mates=np.zeros(n),
        mate_kin=np.zeros(n),
        seated=np.zeros(n),
        of_family=np.zeros(len(persons), np.int64),
        of_person=np.zeros(int(persons.max()) + 1, np.int64),
        barred_kin=np.zeros(len(persons), np.int64),
    )

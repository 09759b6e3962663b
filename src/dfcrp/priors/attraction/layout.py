"""The DFCRP with attraction between lists of one person, laid out for the kernels."""

from __future__ import annotations

import math

import numpy as np

from dfcrp.persons import Persons
from dfcrp.priors.attraction.kernel import Attraction, room_for_walks
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
        arrived=room_for_walks(n_items, persons.codes),
    )

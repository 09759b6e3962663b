"""A prior over partitions as one chain uses it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dfcrp.priors.arrivals.kernel import Arrivals
from dfcrp.priors.attraction import layout as attraction
from dfcrp.priors.attraction.kernel import Attraction
from dfcrp.priors.detection import layout as detection
from dfcrp.priors.detection.kernel import Detection, rebuild_tables

Prior = Arrivals | Attraction | Detection


def prior_of_chain(prior: Prior, own: NDArray[np.float64]) -> Prior:
    """The prior with a chain's own parameters in ``own``, and workspace of its own."""
    if isinstance(prior, Arrivals):
        return prior._replace(own=own)
    if isinstance(prior, Attraction):
        return attraction.for_chain(prior, own)
    mine = detection.for_chain(prior, own)
    rebuild_tables(mine)
    return mine


def bring_up_to_date(prior: Prior) -> None:
    """What follows from parameters that were put in place from outside."""
    if isinstance(prior, Detection):
        rebuild_tables(prior)
    elif isinstance(prior, Attraction):
        attraction.refresh(prior)


def has_order(prior: Prior) -> bool:
    """Whether the prior is about the order of arrival."""
    return isinstance(prior, Attraction) or (isinstance(prior, Arrivals) and prior.use_order)

"""How a cluster is described: from its stored parameters to the numbers of a catalogue."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Centre:
    """What describes an object, and how it follows from the parameters of a cluster."""

    quantities: tuple[str, ...]
    #: Cluster parameters as they are stored with the draws.
    parameters: tuple[str, ...]
    #: From parameters (p, ...) to quantities (q, ...).
    describe: Callable[[Floats], Floats]
    #: Quantities that begin again after so much, as angles do.
    periods: Mapping[str, float] = field(default_factory=dict)
    #: Parameters to be added to the first ones, where single precision does not do for them; other
    #: methods' draws may lack them.
    rest: tuple[str, ...] = ()

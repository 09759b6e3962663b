"""Simulated markings of which it is known what is real: the paper's design and harder ones.

Harder in what the detection prior is about: who finds what, and why.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from dfcrp.items.items import Items
from dfcrp.simulate import SimulationDesign, expert_names

POOR = (0.7, 0.66, 0.62, 0.58, 0.54, 0.5)


@dataclass(frozen=True)
class DetectionDesign:
    """A simulation design with objects of several difficulties, and lists by one person.

    ``difficulties`` are (share of the objects, what is added to an expert's log odds of finding
    one). The experts of a group in ``persons`` are one person, who notices an object with the
    first one's probability over ``listing`` and then puts it on each list with ``listing``.
    """

    base: SimulationDesign = field(default_factory=SimulationDesign)
    difficulties: tuple[tuple[float, float], ...] = ((1.0, 0.0),)
    persons: tuple[tuple[int, ...], ...] = ()
    listing: float = 0.9

    @property
    def groups(self) -> tuple[tuple[str, ...], ...]:
        """The persons' lists by name."""
        names = expert_names(len(self.base.detection))
        return tuple(tuple(names[f] for f in group) for group in self.persons)

    def draw(self, rng: np.random.Generator) -> Items:
        """One data set; an object's number is below ``base.n_objects``, a false mark's is not."""
        base, n = self.base, self.base.n_objects
        places = base.places(n, rng)
        shares = [share for share, _ in self.difficulties]
        shift = np.array([ease for _, ease in self.difficulties])
        ease = rng.choice(shift, n, p=shares)
        spread = np.sqrt([base.position_variance] * 2 + [base.log_diameter_variance])
        rows, truth, expert, number = [], [], [], n
        for f, found in enumerate(self._finds(ease, rng)):
            at = np.flatnonzero(found)
            n_false = int(rng.binomial(n, min(base.false_rate[f], 1.0)))
            rows += [rng.normal(places[at], spread), base.places(n_false, rng)]
            truth += [at, number + np.arange(n_false)]
            expert += [expert_names(len(base.detection))[f]] * (len(at) + n_false)
            number += n_false
        table = np.concatenate(rows)
        return Items.circles(
            table[:, 0], table[:, 1], np.exp(table[:, 2]), expert, truth=np.concatenate(truth)
        )

    def _finds(self, ease: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.bool_]:
        """Who finds which object: (experts, objects)."""
        detection = np.array(self.base.detection)
        chance = 1.0 / (1.0 + np.exp(-(np.log(detection / (1.0 - detection))[:, None] + ease)))
        found: NDArray[np.bool_] = rng.random(chance.shape) < chance
        for group in self.persons:
            noticed = rng.random(len(ease)) < np.minimum(chance[group[0]] / self.listing, 1.0)
            for f in group:
                found[f] = noticed & (rng.random(len(ease)) < self.listing)
        return found


#: The paper's design, and what is harder about it.
DETECTION_DESIGNS: Mapping[str, DetectionDesign] = MappingProxyType(
    {
        "paper": DetectionDesign(),
        "poor-detection": DetectionDesign(SimulationDesign(detection=POOR)),
        "three-difficulties": DetectionDesign(
            SimulationDesign(n_objects=90, width=1200.0, height=900.0),
            difficulties=((0.4, 1.0), (0.3, -2.0), (0.3, -3.5)),
        ),
        "many-false-marks": DetectionDesign(SimulationDesign(false_rate=(0.5,) * 6)),
        "one-person": DetectionDesign(SimulationDesign(detection=POOR), persons=((0, 1),)),
    }
)

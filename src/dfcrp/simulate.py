"""Made-up markings whose true clusters are known.

``paper_design`` follows the simulation study of the paper, ``DESIGNS`` names harder variants,
and ``highlands_like`` stands in for the lunar highlands data where these are absent. In all of
them ``truth`` numbers the objects from 0; false markings follow, each with a number of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from difflib import get_close_matches
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dfcrp.errors import SettingsError
from dfcrp.items.items import Items

#: What one expert found: rows (x, y, log diameter) and the objects' numbers, then the same of
#: the false markings.
ExpertList: TypeAlias = tuple[
    NDArray[np.float64], NDArray[np.int64], NDArray[np.float64], NDArray[np.int64]
]


@dataclass(frozen=True)
class SimulationDesign:
    """The paper's data generation (supplement C); the defaults are its parameters.

    Objects are uniform over the image, log diameters Gamma(shape, rate). Expert j marks each
    object with probability ``detection[j]``, off by a normal error in x, y and log diameter, and
    makes Binomial(n_objects, ``false_rate[j]``) markings where there is nothing.
    """

    n_objects: int = 30
    x_min: float = 0.0
    y_min: float = 0.0
    width: float = 700.0
    height: float = 500.0
    log_diameter_shape: float = 64.0
    log_diameter_rate: float = 16.0
    detection: tuple[float, ...] = (0.98, 0.96, 0.94, 0.92, 0.9, 0.88)
    false_rate: tuple[float, ...] = (0.12, 0.1, 0.08, 0.06, 0.04, 0.02)
    position_variance: float = 5.0
    log_diameter_variance: float = 0.01

    def __post_init__(self) -> None:
        for name in ("detection", "false_rate"):
            rates = tuple(float(rate) for rate in getattr(self, name))
            object.__setattr__(self, name, rates)
            if not rates or not all(0 <= rate <= 1 for rate in rates):
                raise SettingsError(f"{name} is {rates}; it needs a probability for each expert")
        if len(self.detection) != len(self.false_rate):
            raise SettingsError(
                f"detection is given for {len(self.detection)} experts, "
                f"false_rate for {len(self.false_rate)}"
            )
        for name in ("n_objects", "width", "height", "log_diameter_shape", "log_diameter_rate"):
            if not 0 < getattr(self, name) < np.inf:
                raise SettingsError(f"{name} is {getattr(self, name)}; it must be positive")
        if self.n_objects != int(self.n_objects):
            raise SettingsError(f"n_objects is {self.n_objects}; it must be a whole number")
        for name in ("position_variance", "log_diameter_variance"):
            if not 0 <= getattr(self, name) < np.inf:
                raise SettingsError(f"{name} is {getattr(self, name)}; it must not be negative")

    def draw(self, seed: int | np.random.Generator) -> Items:
        """One data set: expert by expert, the objects found and then the false markings."""
        rng = np.random.default_rng(seed)
        objects = self.places(self.n_objects, rng)
        variances = (self.position_variance, self.position_variance, self.log_diameter_variance)
        lists = []
        n_clusters = self.n_objects
        for detection, false_rate in zip(self.detection, self.false_rate, strict=True):
            found = np.flatnonzero(rng.random(self.n_objects) < detection)
            seen = rng.normal(objects[found], np.sqrt(variances))
            n_false = int(rng.binomial(self.n_objects, false_rate))
            false = self.places(n_false, rng)
            lists.append((seen, found, false, n_clusters + np.arange(n_false)))
            n_clusters += n_false
        return _markings(lists, expert_names(len(lists)))

    def places(self, count: int, rng: np.random.Generator) -> NDArray[np.float64]:
        """So many x, y, log diameter from the law of the objects."""
        x = rng.uniform(self.x_min, self.x_min + self.width, count)
        y = rng.uniform(self.y_min, self.y_min + self.height, count)
        log_diameter = rng.gamma(self.log_diameter_shape, 1 / self.log_diameter_rate, count)
        return np.column_stack([x, y, log_diameter])


#: The paper's design and harder ones, each a change of one kind.
DESIGNS: Mapping[str, SimulationDesign] = MappingProxyType(
    {
        "paper": SimulationDesign(),
        "dense": SimulationDesign(n_objects=120),
        "wide-spread": SimulationDesign(position_variance=80, log_diameter_variance=0.04),
        "few-experts": SimulationDesign(detection=(0.95, 0.92, 0.88), false_rate=(0.1, 0.06, 0.02)),
        "poor-detection": SimulationDesign(
            detection=(0.8, 0.7, 0.6, 0.5, 0.4, 0.3), false_rate=(0.3, 0.25, 0.2, 0.15, 0.1, 0.05)
        ),
        "dense-and-wide": SimulationDesign(
            n_objects=120, position_variance=40, log_diameter_variance=0.02
        ),
    }
)


def paper_design(seed: int | np.random.Generator, **changes: Any) -> Items:
    """One data set of the paper's simulation study; ``changes`` are fields of SimulationDesign."""
    known = [field.name for field in fields(SimulationDesign)]
    for name in changes:
        if name not in known:
            near = get_close_matches(name, known, n=1, cutoff=0.0)[0]
            raise SettingsError(f"the simulation has no setting {name!r}; did you mean {near!r}?")
    return replace(DESIGNS["paper"], **changes).draw(seed)


def expert_names(count: int) -> list[str]:
    """A to F as in the paper, then E07, E08, ..."""
    return [*"ABCDEF"[:count], *(f"E{j:02d}" for j in range(7, count + 1))]


@dataclass(frozen=True)
class HighlandsDesign:
    """A stand-in for the highlands image, with the paper's number of markings for each expert.

    Objects are uniform over the image, y negative, with a power law of diameters N(>D) ~ D^slope.
    They differ in how easily they are seen: each expert marks those that appear most plainly, by
    the object's ease (normal) plus noise (standard logistic). Errors have standard deviation
    ``spread_px`` at the median diameter, growing as a power of the diameter, and
    ``spread_log_diameter`` in the logarithm of the diameter. No marking is below ``min_diameter``,
    no object above ``max_diameter``. The defaults give cluster sizes like those found in the image.
    """

    counts: tuple[int, ...] = (636, 945, 653, 1197, 814, 808, 831, 1060, 991, 652, 930)
    false_counts: tuple[int, ...] = (0, 45, 0, 170, 0, 0, 0, 30, 30, 0, 25)
    n_objects: int = 2100
    width: float = 4107.0
    height: float = 2218.0
    min_diameter: float = 18.0
    max_diameter: float = 510.0
    slope: float = -2.0
    ease_spread: float = 5.0
    spread_px: float = 1.4
    spread_exponent: float = 0.85
    spread_log_diameter: float = 0.07

    def scaled(self, factor: float) -> HighlandsDesign:
        """The same density of objects and markings on ``factor`` times the area."""
        if not factor > 0:
            raise SettingsError(f"the scale is {factor}; it must be positive")
        return replace(
            self,
            counts=tuple(round(factor * count) for count in self.counts),
            false_counts=tuple(round(factor * count) for count in self.false_counts),
            n_objects=round(factor * self.n_objects),
            width=self.width * factor**0.5,
            height=self.height * factor**0.5,
        )

    def draw(self, seed: int | np.random.Generator) -> Items:
        """One data set: expert by expert, the objects found and then the false markings."""
        rng = np.random.default_rng(seed)
        # Some start below the limit: an expert may see them larger than they are.
        objects = self._places(self.n_objects, 0.8 * self.min_diameter, rng)
        ease = self.ease_spread * rng.standard_normal(self.n_objects)
        lists = []
        n_clusters = self.n_objects
        for count, n_false in zip(self.counts, self.false_counts, strict=True):
            seen = self._with_errors(objects, rng)
            large = np.flatnonzero(seen[:, 2] >= np.log(self.min_diameter))
            plainness = (ease + rng.logistic(size=self.n_objects))[large]
            found = np.sort(large[np.argsort(-plainness)[: count - n_false]])
            false = self._places(n_false, self.min_diameter, rng)
            lists.append((seen[found], found, false, n_clusters + np.arange(n_false)))
            n_clusters += n_false
        return _markings(lists, list("ABCDEFGHIJK"))

    def _places(self, count: int, smallest: float, rng: np.random.Generator) -> NDArray[np.float64]:
        x = rng.uniform(0, self.width, count)
        y = rng.uniform(-self.height, 0, count)
        # By inversion: N(>D) / N(>smallest) = (D / smallest)^slope is uniform, down to its end.
        share = rng.uniform((self.max_diameter / smallest) ** self.slope, 1, count)
        log_diameter = np.log(smallest) + np.log(share) / self.slope
        return np.column_stack([x, y, log_diameter])

    def _with_errors(
        self, objects: NDArray[np.float64], rng: np.random.Generator
    ) -> NDArray[np.float64]:
        log_median = np.log(self.min_diameter) - np.log(2) / self.slope
        spread_px = self.spread_px * np.exp(self.spread_exponent * (objects[:, 2] - log_median))
        spread_log = np.full(len(objects), self.spread_log_diameter)
        spread = np.column_stack([spread_px, spread_px, spread_log])
        return objects + spread * rng.standard_normal(objects.shape)


def highlands_like(seed: int | np.random.Generator, scale: float = 1.0) -> Items:
    """Generated stand-in for the highlands data: 9,517 markings by 11 experts at scale 1."""
    return HighlandsDesign().scaled(scale).draw(seed)


def _markings(lists: list[ExpertList], names: list[str]) -> Items:
    """Markings of the experts' lists, one after the other."""
    rows = np.concatenate([np.concatenate([seen, false]) for seen, _, false, _ in lists])
    truth = np.concatenate([np.concatenate([found, alone]) for _, found, _, alone in lists])
    expert = np.repeat(names, [len(found) + len(alone) for _, found, _, alone in lists])
    return Items.circles(rows[:, 0], rows[:, 1], np.exp(rows[:, 2]), expert, truth=truth)


@dataclass(frozen=True)
class RecordingDesign:
    """Events in recordings, and listeners who mark them from start to end.

    Each recording has Poisson(``events``) events, uniform in time, with log-normal lengths; a share
    ``close`` of them follows the end of another one after a short pause. Listener j marks an event
    with probability ``detection[j]`` and Poisson(``false_rate[j]``) intervals where there is none.
    Both ends are off by normal errors whose standard deviation is ``precision`` and a share
    ``spread`` of the length. What would be shorter than ``shortest`` is made that long.
    """

    recordings: int = 20
    seconds: float = 300.0
    events: float = 15.0
    log_length: float = 0.7
    log_length_sd: float = 0.8
    close: float = 0.0
    pause: float = 0.3
    detection: tuple[float, ...] = (0.95, 0.9, 0.85, 0.75, 0.6)
    false_rate: tuple[float, ...] = (0.5, 1.0, 0.5, 2.0, 1.0)
    precision: float = 0.1
    spread: float = 0.05
    shortest: float = 0.02

    def draw(self, seed: int | np.random.Generator) -> tuple[Items, dict[str, NDArray[Any]]]:
        """Intervals with true labels, and the events: image, start and end."""
        rng = np.random.default_rng(seed)
        events, rows, n_events = [], [], 0
        for number in range(self.recordings):
            name = f"recording-{number + 1:02d}"
            there = self.places(int(rng.poisson(self.events)), rng)
            events += [(name, *event) for event in there.tolist()]
            for j, expert in enumerate(expert_names(len(self.detection))):
                found = np.flatnonzero(rng.random(len(there)) < self.detection[j])
                seen = self._with_errors(there[found], rng)
                false = self.places(int(rng.poisson(self.false_rate[j])), rng)
                rows += [
                    (name, expert, *ends, n_events + k)
                    for k, ends in zip(found.tolist(), seen.tolist(), strict=True)
                ]
                rows += [(name, expert, *ends, -1) for ends in false.tolist()]
            n_events += len(there)
        images, experts, start, end, truth = map(np.array, zip(*rows, strict=True))
        false_ones = np.flatnonzero(truth < 0)
        truth[false_ones] = n_events + np.arange(len(false_ones))
        heard = [f"recording-{number + 1:02d}" for number in range(self.recordings)]
        looked = [(one, who) for one in heard for who in expert_names(len(self.detection))]
        items = Items.intervals(start, end, experts, image=images, truth=truth, looked=looked)
        columns = zip(*events, strict=True)
        return items, dict(zip(("image", "start", "end"), map(np.array, columns), strict=True))

    def places(self, count: int, rng: np.random.Generator) -> NDArray[np.float64]:
        """So many starts and ends from the law of the events."""
        length = np.exp(rng.normal(self.log_length, self.log_length_sd, count))
        start = rng.uniform(0.0, self.seconds, count)
        for k in np.flatnonzero(rng.random(count) < self.close):
            if k:
                start[k] = start[k - 1] + length[k - 1] + rng.exponential(self.pause)
        return np.column_stack([start, start + length])

    def _with_errors(
        self, ends: NDArray[np.float64], rng: np.random.Generator
    ) -> NDArray[np.float64]:
        length = ends[:, 1] - ends[:, 0]
        sd = self.precision + self.spread * length
        found = ends + sd[:, np.newaxis] * rng.standard_normal(ends.shape)
        found[:, 1] = np.maximum(found[:, 1], found[:, 0] + self.shortest)
        return found

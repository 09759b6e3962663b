"""How experts differ, where that was learned: offsets, sizes and noise relative to the others."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dfcrp.draws import Columns, Draws, Variable, shared_variable
from dfcrp.likelihoods.bias import NOWHERE, Bias
from dfcrp.summaries.streaming import Interval, summarise

Floats = NDArray[np.float64]

#: What is stored with a draw.
OFFSET, NOISE, SPREAD = "offset", "log_noise", "log_noise_sd"
#: The same in plain words, of an expert and an axis.
BIAS_WORDS = {
    OFFSET: "offset of {} in {}",
    NOISE: "scatter of {} relative to others",
    SPREAD: "how much experts differ in scatter",
}
NOISE_FACTOR = "noise_factor"
#: An axis with this prefix is a logarithm: its offset is shown as a factor.
LOG = "log_"
#: What the tables call the factor of a log size.
SIZE_FACTOR = "size_factor"
_SIZES = ("diameter", "size")


def bias_columns(bias: Bias, experts: Sequence[str], axes: Sequence[str]) -> Columns:
    """The spread of noise, the offsets and the noise factors, as they follow in the law."""
    shared: list[Variable] = []
    if bias.spread != NOWHERE:
        shared.append(Variable(SPREAD, behind=True))
    if bias.offsets != NOWHERE:
        shared.append(Variable(OFFSET, ("expert", "axis")))
    if bias.noise != NOWHERE:
        shared.append(Variable(NOISE, ("expert",), behind=True))
    return Columns(shared=tuple(shared), coords={"expert": tuple(experts), "axis": tuple(axes)})


def name_of_offset(axis: str) -> str:
    """What the tables call the offset along an axis: ``offset_x``, or ``width_factor`` of logs."""
    if not axis.startswith(LOG):
        return f"offset_{axis}"
    what = axis.removeprefix(LOG)
    return SIZE_FACTOR if what in _SIZES else f"{what}_factor"


@dataclass(frozen=True)
class ExpertBias:
    """Posterior summaries of F experts, by name of the quantity, in the order of their codes."""

    found: dict[str, Interval]
    #: Features that have offsets, in order.
    axes: tuple[str, ...] = ()
    #: On a sphere, its radius: offsets along the ground are then in km, features in degrees.
    radius_km: float | None = None
    #: What an item is called.
    noun: str = "item"
    #: Which of the features these are, unless they are the first ones.
    places: tuple[int, ...] = ()

    def expert(self, f: int) -> dict[str, Any]:
        """An expert's entries in summary.json."""
        return {name: interval[f].as_dict() for name, interval in self.found.items()}

    def corrected(self, feature: Floats, f: int) -> Floats:
        """The features of an item as the mean expert would have given them."""
        offsets = np.zeros(len(feature))
        for at, axis in enumerate(self.axes):
            mean = float(self.found[name_of_offset(axis)].mean[f])
            place = self.places[at] if self.places else at
            offsets[place] = math.log(mean) if axis.startswith(LOG) else mean
        if self.radius_km is not None and self.axes:
            offsets[:2] = np.degrees(offsets[:2] / self.radius_km)
            offsets[0] /= math.cos(math.radians(feature[1]))
        return feature - offsets

    def noise(self, f: int) -> float:
        """The expert's noise factor."""
        return float(self.found[NOISE_FACTOR].mean[f]) if NOISE_FACTOR in self.found else 1.0

    def in_words(self, experts: Sequence[str]) -> str:
        """Who stands out, in a sentence."""
        parts = []
        if SIZE_FACTOR in self.found:
            size = self.found[SIZE_FACTOR].mean
            large, small = int(np.argmax(size)), int(np.argmin(size))
            parts += [
                f"{experts[large]} draws largest ({100.0 * (size[large] - 1.0):+.1f} %)",
                f"{experts[small]} smallest ({100.0 * (size[small] - 1.0):+.1f} %)",
            ]
        elif self.axes:
            parts.append(self._farthest(experts))
        if NOISE_FACTOR in self.found:
            noise = self.found[NOISE_FACTOR].mean
            most, least = int(np.argmax(noise)), int(np.argmin(noise))
            parts += [
                f"{experts[most]} scatters most ({noise[most]:.2f} times)",
                f"{experts[least]} least ({noise[least]:.2f} times)",
            ]
        return f"Compared with the mean {self.noun}, {', '.join(parts)}."

    def _farthest(self, experts: Sequence[str]) -> str:
        """Whose offset, along one axis, exceeds its uncertainty most."""
        names = [name_of_offset(axis) for axis in self.axes]
        standard = [1.0 if axis.startswith(LOG) else 0.0 for axis in self.axes]
        off = np.array([self.found[name].mean - s for name, s in zip(names, standard, strict=True)])
        width = np.array([self.found[name].hi - self.found[name].lo for name in names])
        sureness = np.abs(off) / np.maximum(width, 1e-300)
        at, f = (int(place) for place in np.unravel_index(np.argmax(sureness), off.shape))
        return f"{experts[f]} is farthest off ({names[at]} {self.found[names[at]].mean[f]:.3g})"


def knows_bias(draws: Draws) -> bool:
    """Whether the draws tell how experts differ; those of several independent images do not."""
    return not {OFFSET, NOISE}.isdisjoint(draws.columns.slices)


def expert_bias(
    draws: Draws,
    axes: Sequence[str],
    noun: str,
    *,
    unit: float = 1.0,
    radius_km: float | None = None,
) -> ExpertBias | None:
    """From the draws; None if experts were taken to be alike.

    ``unit`` is what offsets that are no logarithms are multiplied with.
    """
    found: dict[str, Interval] = {}
    offsets, noise = shared_variable(draws, OFFSET), shared_variable(draws, NOISE)
    if offsets is not None:
        for at, axis in enumerate(axes):
            values = offsets[..., at].reshape(-1, offsets.shape[2])
            values = np.exp(values) if axis.startswith(LOG) else unit * values
            found[name_of_offset(axis)] = summarise(values)
    if noise is not None:
        found[NOISE_FACTOR] = summarise(np.exp(noise.reshape(-1, noise.shape[2])))
    learned = tuple(axes) if offsets is not None else ()
    return ExpertBias(found, learned, radius_km, noun) if found else None


def corrected_all(
    bias: ExpertBias | None, features: Floats, families: NDArray[np.int64]
) -> tuple[Floats, Floats]:
    """All items as the mean expert would have given them, and the noise factor of each."""
    if bias is None:
        return features, np.ones(len(features))
    found = features.copy()
    for f in np.unique(families).tolist():
        mine = families == f
        if bias.radius_km is None:
            found[mine] += bias.corrected(np.zeros(features.shape[1]), f)
        else:
            found[mine] = [bias.corrected(row, f) for row in features[mine]]
    noise = np.array([bias.noise(f) for f in range(int(families.max()) + 1)])
    return found, noise[families]


def rows_with_bias(
    rows: list[dict[str, Any]], bias: ExpertBias | None, experts: Sequence[str]
) -> list[dict[str, Any]]:
    """The rows of the table of experts with what is known of how these differ."""
    if bias is None:
        return rows
    code = {name: f for f, name in enumerate(experts)}
    return [{**row, **bias.expert(code[row["expert"]])} for row in rows]

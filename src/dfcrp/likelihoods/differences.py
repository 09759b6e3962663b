"""How experts differ and how careless items are, outside the kernels: stored, summarised, in words.

Offsets, sizes and noise are relative to the other experts. What is learned of experts and their
items, unless somebody says it, is as much as the data can bear: items may be careless where they
are repeated marks at all, so that a scatter can be told; experts may differ in scatter where there
are a few with enough items each.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from dfcrp.draws import Columns, Draws, Variable, shared_variable
from dfcrp.likelihoods.bias import NOWHERE, Bias
from dfcrp.markup import plural
from dfcrp.rounding import estimate_of
from dfcrp.summaries.streaming import Interval, summarise
from dfcrp.values import Json

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    class Undecided(DataclassInstance, Protocol):
        """Settings that may leave it to the data whether experts differ."""

        @property
        def tails(self) -> str:
            """Whether items may be careless."""

        @property
        def expert_bias(self) -> str:
            """In what experts differ."""


S = TypeVar("S", bound="Undecided")
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
#: Names of the shares of the wider levels, as they follow each other in the law.
WIDE, WIDEST = "careless_3", "careless_9"
#: The same in plain words.
TAIL_WORDS = {
    WIDE: "share of items with 3 times the usual scatter",
    WIDEST: "share of items with 9 times the usual scatter",
}
TAIL_COLUMNS = Columns.plain(shared=(WIDE, WIDEST))
#: What ``careless`` gives.
CARELESS = {
    "careless_percent": "%",
    "careless_wide_percent": "3 times the usual scatter, %",
    "careless_widest_percent": "9 times the usual scatter, %",
}
#: Experts may differ if at least so many of them have at least so many items.
FEWEST_EXPERTS, FEWEST_ITEMS = 3, 20
Codes = NDArray[np.int64]


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

    def expert(self, f: int) -> Json:
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


def rows_with_bias(rows: list[Json], bias: ExpertBias | None, experts: Sequence[str]) -> list[Json]:
    """The rows of the table of experts with what is known of how these differ."""
    if bias is None:
        return rows
    code = {name: f for f, name in enumerate(experts)}
    return [{**row, **bias.expert(code[row["expert"]])} for row in rows]


def careless(draws: Draws) -> dict[str, NDArray[np.float64]]:
    """Percentages of careless items, (chains, draws); nothing if none were allowed."""
    wide, widest = shared_variable(draws, WIDE), shared_variable(draws, WIDEST)
    if wide is None or widest is None:
        return {}
    values = (100.0 * (wide + widest), 100.0 * wide, 100.0 * widest)
    return dict(zip(CARELESS, values, strict=True))


def new_levels(
    columns: Columns, shared: NDArray[np.float64], count: int, rng: np.random.Generator
) -> NDArray[np.float64]:
    """By how much the scatter of so many new items is above the usual, by the shares of a draw."""
    if WIDE not in columns.slices:
        return np.ones(count)
    wide, widest = (float(shared[columns.slices[name]][0]) for name in (WIDE, WIDEST))
    return np.asarray(
        rng.choice([1.0, 3.0, 9.0], size=count, p=[1.0 - wide - widest, wide, widest])
    )


def careless_words(found: Json, noun: str) -> list[str]:
    """How many items are careless, in a sentence."""
    row = found.get("careless_percent")
    if row is None:
        return []
    said = estimate_of(row)
    return [
        f"{said.mean} % of the {plural(noun)} are careless (95 %: {said.interval}): they scatter "
        "by 3 to 9 times as much as the others."
    ]


def decide(settings: S, experts: Codes, images: Codes | None = None) -> S:
    """The settings with a decision in place of each "auto".

    ``experts`` are codes of who listed each item. With ``images`` each is fitted by itself: then
    what holds for the typical one decides.
    """
    chosen = {}
    if settings.tails == "auto":
        repeated = 1 < len(np.unique(experts)) < len(experts)
        chosen["tails"] = "learned" if repeated else "none"
    if settings.expert_bias == "auto":
        several = _experts_with_enough(experts, images) >= FEWEST_EXPERTS
        chosen["expert_bias"] = "precision" if several else "none"
    return replace(settings, **chosen) if chosen else settings


def _experts_with_enough(experts: Codes, images: Codes | None) -> float:
    """How many experts have enough items; of several images, on the typical one."""
    if images is None:
        return float((np.bincount(experts) >= FEWEST_ITEMS).sum())
    count = np.zeros((int(images.max()) + 1, int(experts.max()) + 1), np.int64)
    np.add.at(count, (images, experts), 1)
    return float(np.median((count >= FEWEST_ITEMS).sum(axis=1)))

"""Sums of images' answers under the detection prior, draw by draw, as one image after the other
is done: of an image itself only what its own rows of the tables say is kept.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dfcrp.priors.detection.skills import ExpertRates

if TYPE_CHECKING:
    from dfcrp.priors.detection.answers import DetectionSummary

Codes = NDArray[np.int64]
Few = NDArray[np.int32]
Floats = NDArray[np.float64]

#: Weight, in objects, of an image without objects in what experts are like on several.
LITTLE = 1e-6


class ImageAnswers(NamedTuple):
    """What is kept of an image; by draw its objects, seen and missed."""

    name: str
    seen: Few
    missed: Few
    p_real_marking: Floats
    p_real_cluster: Floats
    p_complete: float
    p_settled: float
    look_value: float

    @classmethod
    def of(cls, one: DetectionSummary) -> ImageAnswers:
        """Of a summary of one image."""
        return cls(
            one.image_names[0],
            one.seen[:, 0].astype(np.int32),
            one.missed[:, 0].astype(np.int32),
            one.p_real_marking,
            one.p_real_cluster,
            float(one.p_complete[0]),
            float(one.p_settled[0]),
            float(one.look_value[0]),
        )


@dataclass
class _RateSums:
    """Of images with parameters of their own: sensitivities weighed by objects, false marks."""

    sensitivity: Floats  # (d, c, experts)
    weight: Floats
    false: Floats  # (d, experts)
    images: Floats  # (experts,)

    def add(self, one: DetectionSummary, experts: Codes) -> None:
        """Take in an image."""
        weight = (one.seen + one.missed + LITTLE)[:, :, np.newaxis]
        known = np.isfinite(one.rates.sensitivity)
        self.sensitivity[:, :, experts] += np.where(known, weight * one.rates.sensitivity, 0.0)
        self.weight[:, :, experts] += np.where(known, weight, 0.0)
        self.false[:, experts] += one.rates.false
        self.images[experts] += 1.0

    def rates(self) -> ExpertRates:
        """A sensitivity counts by the objects on the image, of images without any a little."""
        sensitivity = np.full_like(self.sensitivity, np.nan)
        np.divide(self.sensitivity, self.weight, out=sensitivity, where=self.weight > 0.0)
        rate = np.full_like(self.false, np.nan)
        some = np.broadcast_to(self.images > 0.0, rate.shape)
        np.divide(self.false, self.images, out=rate, where=some)
        return ExpertRates(sensitivity.astype(np.float32), rate)


@dataclass
class ImageSums:
    """Sums over images, (d, c, ...) as in ``DetectionSummary``."""

    size_classes: tuple[str, ...]
    seen: Codes
    missed: Codes
    listed: Few
    false: Few
    classes: Codes
    decoys: Codes
    #: As long as those of the longest image.
    sizes: Codes
    new_sizes: Codes
    #: Unless images share what experts are like.
    own_rates: _RateSums | None = None

    @classmethod
    def begin(cls, first: DetectionSummary, n_experts: int, *, apart: bool) -> ImageSums:
        """Nothing yet, for images like this one; ``apart``: each has parameters of its own."""
        shape = (*first.seen.shape, n_experts)
        own_rates = None
        if apart:
            own_rates = _RateSums(
                np.zeros(shape), np.zeros(shape), np.zeros(shape[::2]), np.zeros(n_experts)
            )
        nothing, none = np.zeros_like(first.seen), np.zeros_like(first.classes)
        return cls(
            first.size_classes,
            nothing,
            nothing.copy(),
            np.zeros(shape, np.int32),
            np.zeros(shape, np.int32),
            none,
            none.copy(),
            np.zeros_like(first.sizes),
            np.zeros_like(first.new_sizes),
            own_rates,
        )

    def add(self, one: DetectionSummary, experts: Codes) -> None:
        """Take in an image; ``experts`` are the codes that its experts have in all images."""
        self.seen += one.seen
        self.missed += one.missed
        self.listed[:, :, experts] += one.listed
        self.false[:, :, experts] += one.false
        np.maximum(self.classes, one.classes, out=self.classes)
        self.decoys += one.decoys
        self.sizes = _sum(self.sizes, one.sizes)
        self.new_sizes = _sum(self.new_sizes, one.new_sizes)
        if self.own_rates is not None:
            self.own_rates.add(one, experts)


def _sum(before: Codes, more: Codes) -> Codes:
    """The sum of (d, sizes), of which one may be longer."""
    if more.shape[1] > before.shape[1]:
        before = np.pad(before, ((0, 0), (0, more.shape[1] - before.shape[1])))
    before[:, : more.shape[1]] += more
    return before

"""How good an expert is: the probability to mark an object, and the false marks on an image.

Both are parameters of the model, not counts: an expert who marked both of two objects is not known
to find every object, and the intervals say so.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dfcrp.priors.detection.kernel import Detection, shapes

#: Probabilities that are in memory at a time.
MAX_VALUES = 1 << 22
#: The parameters that rates are made of.
RATED = (
    *("class_weight", "image_ease", "expected_objects", "notice", "slope", "listing"),
    *("false_marks", "size_share"),
)

Floats = NDArray[np.float64]


class ExpertRates(NamedTuple):
    """In d draws, of F experts, for all sizes first and then for each of the size classes."""

    #: (d, c, F): probability to mark an object, seen or missed, where the expert looks.
    sensitivity: NDArray[np.float32]
    #: (d, F): expected false marks on an image that the expert looks at.
    false: Floats

    def take(
        self, draws: NDArray[np.int64] | None = None, experts: NDArray[np.int64] | None = None
    ) -> ExpertRates:
        """Those of some experts in some draws; None for all."""
        found = self
        if experts is not None:
            found = ExpertRates(found.sensitivity[:, :, experts], found.false[:, experts])
        if draws is not None:
            found = ExpertRates(found.sensitivity[draws], found.false[draws])
        return found


def parameters_by_name(prior: Detection, own: Floats) -> dict[str, Floats]:
    """The prior's parameters in every row of ``own`` (d, all), by name: (d, ...)."""
    parts, end = {}, 0
    for name, shape in shapes(prior, len(prior.parameters.class_weight)).items():
        begin, end = end, end + math.prod(shape)
        parts[name] = own[:, begin:end].reshape(len(own), *shape)
    return parts


def expert_rates(prior: Detection, by_name: Mapping[str, Floats], edges: Floats) -> ExpertRates:
    """Rates of all experts in d draws; ``edges`` are those of size classes.

    ``by_name`` has the parameters in RATED, (d, ...). An object of the data is of class g with a
    probability ∝ Σ_v Λ_v π_vg and of level l with ω_l. A size class without a level has no
    sensitivity.
    """
    middle = np.exp(prior.low + prior.step * (np.arange(len(prior.away)) + 0.5))
    number = np.searchsorted(edges, middle, side="right")
    held = [np.ones(len(middle), bool)]
    held += [number == c for c in range(len(edges) + 1)] if len(edges) else []
    weight = by_name["size_share"][:, np.newaxis] * np.array(held)  # (d, c, levels)
    total = weight.sum(axis=2, keepdims=True)
    weight = np.divide(weight, total, out=np.full_like(weight, np.nan), where=total > 0.0)
    found = np.empty((len(weight), len(held), len(prior.person)), np.float32)
    some = max(MAX_VALUES // (by_name["notice"][:, :, 0].size * len(middle)), 1)
    for start in range(0, len(prior.person), some):
        lists = np.arange(start, min(start + some, len(prior.person)))
        found[:, :, lists] = _sensitivity(prior, by_name, weight, lists)
    return ExpertRates(found, by_name["false_marks"].copy())


def shares_on_images(prior: Detection, weight: Floats, image_ease: Floats) -> Floats:
    """π_v of every image, (..., V, G)."""
    more = np.exp(image_ease[..., np.newaxis] * prior.node)
    more /= more.mean(axis=-1, keepdims=True)
    share = np.repeat(weight[..., np.newaxis, :], image_ease.shape[-1], axis=-2)
    share[..., : prior.real] *= more
    return np.asarray(share / share.sum(axis=-1, keepdims=True))


def expected_by_class(prior: Detection, by_name: Mapping[str, Floats]) -> Floats:
    """How many things of each class are expected on all images, (d, G)."""
    each = zip(
        by_name["class_weight"], by_name["image_ease"], by_name["expected_objects"], strict=True
    )
    # Draw by draw: a table of all images and classes in every draw would be large.
    found = [objects @ shares_on_images(prior, weight, ease) for weight, ease, objects in each]
    return np.array(found).reshape(len(found), -1)


def log_odds_of_noticing(
    found: Mapping[str, Floats], g: NDArray[np.int64], p: NDArray[np.int32], away: Floats
) -> Floats:
    """That persons notice objects of a class, so far from the usual size, by one draw."""
    return np.asarray(found["notice"][g, p] + found["slope"][p] * away)


def _sensitivity(
    prior: Detection, by_name: Mapping[str, Floats], weight: Floats, lists: NDArray[np.int64]
) -> Floats:
    """(d, c, lists)."""
    person = prior.person[lists]
    several = prior.lists[person] > 1
    real = slice(prior.real)
    listing = np.where(several, by_name["listing"][:, real][:, :, lists], 1.0)
    expected = expected_by_class(prior, by_name)[:, real]
    share = expected / expected.sum(axis=1, keepdims=True)
    logit = by_name["slope"][:, np.newaxis, person, np.newaxis] * prior.away
    logit = logit + by_name["notice"][:, real][:, :, person, np.newaxis]
    noticed = 1.0 / (1.0 + np.exp(-logit))  # (d, classes, lists, levels)
    at_level = np.einsum("dg,dgf,dgfl->dfl", share, listing, noticed)
    return np.asarray(np.einsum("dcl,dfl->dcf", weight, at_level))

"""Markings on a sphere: their features for the kernels, and the hyperparameters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dfcrp.errors import SettingsError
from dfcrp.likelihoods.circle.hyper import circle_hyper
from dfcrp.likelihoods.circle.settings import CircleSettings
from dfcrp.likelihoods.circle.sphere import SphereHyper, X, Y, Z
from dfcrp.likelihoods.circle.ties import APART, shared_rows, tie_moves

if TYPE_CHECKING:
    from dfcrp.items.items import Items

PLACE = [X, Y, Z]


def length_unit(model: CircleSettings, site: Any) -> float:
    """The unit of length in km: 1 where tolerances are learned, a pixel for the paper's law."""
    if model.tolerances == "learned":
        return 1.0
    if site.metres_per_pixel is None:
        raise SettingsError(
            "the paper's law of tolerances is in pixels, the data are in degrees and km: say what "
            "a pixel of the marked image covers with --metres-per-pixel, or leave the preset out, "
            "so that tolerances are learned"
        )
    return site.metres_per_pixel / 1000.0


def sphere_features(items: Items, unit: float) -> NDArray[np.float64]:
    """(n, 4): place in space with the log diameter between its second and third coordinate."""
    places = items.places / unit
    sizes = np.log(items.diameter / unit)
    return np.column_stack([places[:, 0], places[:, 1], sizes, places[:, 2]])


def sphere_hyper(
    model: CircleSettings, features: NDArray[np.float64], radius: float, unit: float
) -> SphereHyper:
    """The laws are those of circles; ``radius`` is in the features' unit."""
    laws = circle_hyper(model, features[:, :3])._asdict()
    same = {name: laws[name] for name in SphereHyper._fields if name in laws}
    return SphereHyper(**same, radius=radius, unit=unit)


def set_apart_on_sphere(
    features: NDArray[np.float64], families: NDArray[np.int64]
) -> NDArray[np.float64]:
    """As ``ties.set_apart``, but that places stay on the sphere."""
    place, size = shared_rows(features[:, PLACE], features[:, 2:3], families)
    if not (place.any() or size.any()):
        return features
    moves = tie_moves(features.shape)
    moved = features.copy()
    moved[size, 2] += APART * moves[size, 2]
    radius = np.linalg.norm(features[:, PLACE], axis=1, keepdims=True)
    ways = features[:, PLACE] + APART * np.exp(features[:, 2:3]) * moves[:, PLACE]
    ways *= radius / np.linalg.norm(ways, axis=1, keepdims=True)
    moved[:, PLACE] = np.where(place[:, np.newaxis], ways, features[:, PLACE])
    return moved

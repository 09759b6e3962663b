"""Which circles may share a cluster, by the model's own spread at each size."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dfcrp.neighbours.neighbourhood import (
    CONTACT_DEVIATIONS,
    RIVAL_DEVIATIONS,
    Neighbourhood,
    all_pairs,
    auto_pairs,
    components_of,
    in_chunks,
    learned_reach,
    nearest_pairs,
    number_by_place,
    pairs_within,
    places,
    side_by_side,
    within_images,
)

if TYPE_CHECKING:
    from dfcrp.likelihoods.circle.plane import CircleHyper
    from dfcrp.likelihoods.circle.sphere import SphereHyper

Floats = NDArray[np.float64]
Pairs = NDArray[np.int64]

#: ``auto`` excludes two markings of one object with at most this prior probability.
AUTO_EXCLUSION = 1e-6


def find_neighbours(
    features: Floats,
    experts: NDArray[np.int64],
    radius: float | str | None,
    hyper: CircleHyper | SphereHyper,
    images: NDArray[np.int64] | None = None,
    *,
    nearest: int | None = None,
    candidates: Pairs | None = None,
) -> Neighbourhood:
    """Candidates as given; or the ``nearest``; or by a radius, a number, ``"auto"`` or None.

    Items of different ``images`` are no neighbours.
    """
    if images is not None:
        features = side_by_side(features, images)
    position = places(features)
    bounded = True
    if candidates is not None:
        pairs = candidates
    elif nearest is not None:
        mean_a, mean_d = mean_variances(features[:, 2], hyper)
        scales = np.sqrt([np.median(mean_a)] * position.shape[1] + [np.median(mean_d)])
        pairs = nearest_pairs(np.column_stack([position, features[:, 2]]) / scales, nearest)
    elif radius is None:
        bounded = images is not None
        pairs = np.empty((0, 2), dtype=np.int64) if images is None else all_pairs(images)
    elif radius == "auto":
        reach = learned_reach(features, experts, images) if hyper.learned else None
        pairs = auto_pairs(features, reach or auto_reach(features[:, 2], hyper))
    else:
        pairs = pairs_within(position, np.full(len(position), float(radius)))
    pairs = within_images(pairs, images)
    component = components_of(pairs, len(features), bounded)
    rivals, contacts = _close_pairs(features, experts, pairs if bounded else None, hyper)
    return Neighbourhood(
        bounded=bounded,
        pairs=pairs,
        rivals=rivals,
        contacts=contacts,
        component=component,
        numbering=number_by_place(_flat(position), component),
    )


def _flat(position: Floats) -> Floats:
    """Places of a sphere on a map of equal areas; places in a plane as they are."""
    if position.shape[1] == 2:
        return position
    x, y, z = position.T
    return np.column_stack([np.arctan2(y, x) * np.linalg.norm(position, axis=1), z])


def mean_variances(log_diameter: Floats, hyper: CircleHyper | SphereHyper) -> tuple[Floats, Floats]:
    """Prior means of the position and log diameter variances at each log diameter."""
    if hyper.learned:
        away = log_diameter - hyper.level
        scale_x, growth_x, scale_d, growth_d = hyper.law[:4]
        return np.exp(scale_x + growth_x * away), np.exp(scale_d + growth_d * away)
    held = np.maximum(log_diameter, hyper.floor)
    return hyper.kappa_x * held**hyper.eta_x, hyper.kappa_d * held**hyper.eta_d


def auto_reach(log_diameter: Floats, hyper: CircleHyper | SphereHyper) -> tuple[Floats, Floats]:
    """Distance and difference of log diameter beyond which ``auto`` excludes a pair.

    Two markings of one object differ by N(0, 2a) in x and in y, so their distance exceeds ρ with
    probability at most P(a > A) + exp(−ρ² / 4A) for any A. Half of AUTO_EXCLUSION goes to each
    term: A is a's prior quantile and ρ = sqrt(4 A log(2/ε)). The size difference is treated
    alike with d and the normal tail.
    """
    from scipy.special import gammainccinv, ndtri

    half = AUTO_EXCLUSION / 2.0
    mean_a, mean_d = mean_variances(log_diameter, hyper)
    extreme_a = gammainccinv(hyper.tau_x * mean_a, half) / hyper.tau_x
    extreme_d = gammainccinv(hyper.tau_d * mean_d, half) / hyper.tau_d
    distance = np.sqrt(4.0 * extreme_a * math.log(1.0 / half))
    size = np.sqrt(2.0 * extreme_d) * -ndtri(half / 2.0)
    return distance, size


def _close_pairs(
    features: Floats,
    families: NDArray[np.int64],
    pairs: Pairs | None,
    hyper: CircleHyper | SphereHyper,
) -> tuple[Pairs, Pairs]:
    """Rivals and contacts, by distance in prior standard deviations of position and size."""
    mean_a, mean_d = mean_variances(features[:, 2], hyper)
    if pairs is None:
        pairs = pairs_within(places(features), max(CONTACT_DEVIATIONS) * np.sqrt(mean_a))
    low, high = CONTACT_DEVIATIONS
    rivals, contacts = [pairs[:0]], [pairs[:0]]
    for chunk in in_chunks(pairs):
        first, second = chunk[:, 0], chunk[:, 1]
        apart = features[first] - features[second]
        wide_a = np.maximum(mean_a[first], mean_a[second])
        wide_d = np.maximum(mean_d[first], mean_d[second])
        squared = (places(apart) ** 2).sum(axis=1)
        scaled = np.sqrt(squared / wide_a + apart[:, 2] ** 2 / wide_d)
        relatives = families[first] == families[second]
        rivals.append(chunk[relatives & (scaled <= RIVAL_DEVIATIONS)])
        contacts.append(chunk[~relatives & (scaled >= low) & (scaled <= high)])
    return np.concatenate(rivals), np.concatenate(contacts)

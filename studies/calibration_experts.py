"""Experts who differ, for the calibration study: their prior, and markings as they make them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dfcrp.likelihoods.bias import SHARE, Bias

Floats = NDArray[np.float64]


def draw_experts(rng: np.random.Generator, bias: Bias) -> Floats:
    """Offsets, then log noise factors, from their prior, as they follow each other in the law."""
    share = bias.work[:, SHARE]
    sd = np.array([*bias.offset_sd, bias.noise_sd])
    free = sd * rng.standard_normal((len(share), 4))
    held = free - np.outer(share, share @ free) / (share @ share)
    return np.concatenate([held[:, :3].ravel(), held[:, 3]])


def by_marking(bias: Bias, law: Floats) -> tuple[Floats, Floats]:
    """Offsets (n, 3) and log noise factors (n,) of the markings' experts."""
    offsets = law[bias.offsets : bias.noise].reshape(-1, 3)
    return offsets[bias.expert], law[bias.noise :][bias.expert]


def as_marked(bias: Bias, law: Floats, means: Floats, features: Floats) -> Floats:
    """Markings of experts who are alike, as these would have made them."""
    if not bias.on:
        return features
    offsets, noise = by_marking(bias, law)
    return np.asarray(means + offsets + np.exp(noise)[:, np.newaxis] * (features - means))


def as_if_alike(bias: Bias, law: Floats, means: Floats, features: Floats) -> tuple[Floats, float]:
    """The way back, and the log of how much volume shrinks on it."""
    if not bias.on:
        return features, 0.0
    offsets, noise = by_marking(bias, law)
    alike = means + np.exp(-noise)[:, np.newaxis] * (features - offsets - means)
    return np.asarray(alike), -3.0 * float(noise.sum())


def expert_quantities(bias: Bias, law: Floats) -> dict[str, float]:
    """Of the first and the last expert."""
    if not bias.on:
        return {}
    offsets = law[bias.offsets : bias.noise].reshape(-1, 3)
    noise = law[bias.noise :]
    return {
        "offset_x of the first": float(offsets[0, 0]),
        "offset_y of the last": float(offsets[-1, 1]),
        "log_size of the first": float(offsets[0, 2]),
        "log_size of the last": float(offsets[-1, 2]),
        "log_noise of the first": float(noise[0]),
        "log_noise of the last": float(noise[-1]),
    }

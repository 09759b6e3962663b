"""A stream of random numbers that are not random: what a kernel asks for becomes visible."""

from __future__ import annotations

import numpy as np


class KnownNumbers:
    """Uniforms, exponentials and normals as told; a Gamma or Beta is its mean, and is noted."""

    def __init__(self, uniforms=(), exponentials=(), normals=()):
        self.uniforms = list(uniforms)
        self.exponentials = list(exponentials)
        self.normals = list(normals)
        self.gammas: list[float] = []
        self.betas: list[tuple[float, float]] = []

    def random(self) -> float:
        return self.uniforms.pop(0)

    def standard_exponential(self) -> float:
        return self.exponentials.pop(0)

    def standard_normal(self) -> float:
        return self.normals.pop(0)

    def standard_gamma(self, shape: float) -> float:
        self.gammas.append(shape)
        return shape

    def beta(self, a: float, b: float) -> float:
        self.betas.append((a, b))
        return a / (a + b)

    def used_up(self) -> bool:
        """Whether everything that was told was asked for."""
        return not (self.uniforms or self.exponentials or self.normals)


def just_inside(shares) -> list[tuple[float, int]]:
    """Uniforms close to both ends of each share, and which share they fall into."""
    ends = np.concatenate([[0.0], np.cumsum(shares)]) / np.sum(shares)
    found = []
    for at in range(len(ends) - 1):
        if ends[at + 1] - ends[at] > 1e-6:
            found += [(ends[at] + 1e-9, at), (ends[at + 1] - 1e-9, at)]
    return found

"""Random numbers for compiled code: xoshiro256++ (Blackman and Vigna 2021) and what is made of it.

A ``Stream`` is four words that compiled code advances in place, so that a checkpoint is a copy of
them. Its methods do the same in plain Python; compiled code has them from the kernels below.

Normals and exponentials come from ziggurats of 256 layers (Marsaglia and Tsang 2000, in Doornik's
form, where layer and place come from different bits), Gammas from Marsaglia and Tsang's squeeze
(2000), Betas of small shapes from Jöhnk's method and others from two Gammas.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from dfcrp.compiled.abi import U8, frame
from dfcrp.compiled.jit import lean_kernel

_MASK = (1 << 64) - 1
_LAYERS = 256
#: Where the tails begin, and the area of a layer.
_NORMAL_TAIL, _NORMAL_AREA = 3.654152885361009, 0.004928673233974655
_EXPONENTIAL_TAIL, _EXPONENTIAL_AREA = 7.697117470131050, 0.003949659822581557


Curve = Callable[[float], float]


def _layers(tail: float, area: float, density: Curve, inverse: Curve) -> np.ndarray:
    """Right ends of the layers from the lowest, which holds the tail, to the top, which is 0."""
    ends = np.zeros(_LAYERS + 1)
    ends[0], ends[1] = area / density(tail), tail
    for layer in range(2, _LAYERS):
        ends[layer] = inverse(area / ends[layer - 1] + density(ends[layer - 1]))
    return ends


NORMAL_ENDS = _layers(
    _NORMAL_TAIL,
    _NORMAL_AREA,
    lambda x: math.exp(-0.5 * x * x),
    lambda y: math.sqrt(-2.0 * math.log(y)),
)
EXPONENTIAL_ENDS = _layers(
    _EXPONENTIAL_TAIL, _EXPONENTIAL_AREA, lambda x: math.exp(-x), lambda y: -math.log(y)
)


@frame
class Stream(NamedTuple):
    """A stream of random numbers; ``stream`` makes one from a seed."""

    words: U8

    def next_word(self) -> int:
        """The next 64 bits; compiled code has ``_next_word`` of ``compiled.backend``."""
        a, b, c, d = (int(word) for word in self.words)
        total = (a + d) & _MASK
        found = (((total << 23) | (total >> 41)) + a) & _MASK
        shifted = (b << 17) & _MASK
        c ^= a
        d ^= b
        b ^= c
        a ^= d
        c ^= shifted
        d = ((d << 45) | (d >> 19)) & _MASK
        self.words[:] = np.array([a, b, c, d], np.uint64)
        return found

    def layer_and_uniform(self) -> tuple[int, float]:
        """A layer of a ziggurat and a uniform number, from different bits of one word."""
        word = self.next_word()
        return word & (_LAYERS - 1), (word >> 11) * 2.0**-53

    def random(self) -> float:
        """Uniform on [0, 1)."""
        return (self.next_word() >> 11) * 2.0**-53

    def standard_normal(self) -> float:
        """N(0, 1)."""
        return normal.py_func(self)

    def standard_exponential(self) -> float:
        """Exponential of rate one."""
        return exponential.py_func(self)

    def standard_gamma(self, shape: float) -> float:
        """Gamma of this shape and rate one."""
        return gamma.py_func(self, shape)

    def beta(self, a: float, b: float) -> float:
        """Beta(a, b)."""
        return beta.py_func(self, a, b)


def stream(seed: np.random.SeedSequence | np.random.Generator | int | list[int]) -> Stream:
    """A stream of its own for every seed, or the next one that NumPy's generator gives."""
    if isinstance(seed, np.random.Generator):
        return Stream(seed.integers(0, 1 << 64, 4, np.uint64))
    sequence = seed if isinstance(seed, np.random.SeedSequence) else np.random.SeedSequence(seed)
    return Stream(sequence.generate_state(4, np.uint64).astype(np.uint64))


@lean_kernel
def normal(rng):
    """N(0, 1)."""
    while True:
        layer, u = rng.layer_and_uniform()
        u = 2.0 * u - 1.0
        end, above = NORMAL_ENDS[layer], NORMAL_ENDS[layer + 1]
        x = u * end
        if abs(x) < above:
            return x
        if layer == 0:
            while True:
                x = -math.log1p(-rng.random()) / _NORMAL_TAIL
                y = -math.log1p(-rng.random())
                if y + y >= x * x:
                    return _NORMAL_TAIL + x if u > 0.0 else -_NORMAL_TAIL - x
        low = math.exp(-0.5 * (end * end - x * x))
        high = math.exp(-0.5 * (above * above - x * x))
        if high + rng.random() * (low - high) < 1.0:
            return x


@lean_kernel
def exponential(rng):
    """Exponential of rate one."""
    while True:
        layer, u = rng.layer_and_uniform()
        end, above = EXPONENTIAL_ENDS[layer], EXPONENTIAL_ENDS[layer + 1]
        x = u * end
        if x < above:
            return x
        if layer == 0:
            return _EXPONENTIAL_TAIL - math.log1p(-rng.random())
        low, high = math.exp(x - end), math.exp(x - above)
        if high + rng.random() * (low - high) < 1.0:
            return x


@lean_kernel
def gamma(rng, shape):
    """Gamma of this shape and rate one; below one from the shape above and a power."""
    power, d = 1.0, shape - 1.0 / 3.0
    if shape < 1.0:
        power, d = (1.0 - rng.random()) ** (1.0 / shape), shape + 2.0 / 3.0
    c = 1.0 / math.sqrt(9.0 * d)
    while True:
        x = rng.standard_normal()
        v = 1.0 + c * x
        if v <= 0.0:
            continue
        v = v * v * v
        u = 1.0 - rng.random()
        if u < 1.0 - 0.0331 * x * x * x * x:
            return power * d * v
        if math.log(u) < 0.5 * x * x + d * (1.0 - v + math.log(v)):
            return power * d * v


@lean_kernel
def beta(rng, a, b):
    """Beta(a, b)."""
    if a > 1.0 or b > 1.0:
        x = rng.standard_gamma(a)
        return x / (x + rng.standard_gamma(b))
    while True:
        log_x = math.log(1.0 - rng.random()) / a
        log_y = math.log(1.0 - rng.random()) / b
        total = math.exp(log_x) + math.exp(log_y)
        # Said in this way it also ends for shapes that are no numbers.
        if not total > 1.0:
            # Small shapes: the two may vanish while their ratio does not.
            most = max(log_x, log_y)
            return math.exp(log_x - most) / (math.exp(log_x - most) + math.exp(log_y - most))

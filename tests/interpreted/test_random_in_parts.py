"""Random numbers are accepted where their density says so, to nine digits.

The methods are rejection by layers (ziggurats), by a squeeze (Gammas) and Jöhnk's (Betas). Uniforms
just inside and just outside of what the density allows must be told apart.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from dfcrp.compiled import random
from reference.known_numbers import KnownNumbers


class Layers(KnownNumbers):
    """Layers and uniforms as told."""

    def __init__(self, layers, uniforms=()):
        super().__init__(uniforms)
        self.layers = list(layers)

    def layer_and_uniform(self):
        return self.layers.pop(0)


#: Ends of a second try, which is always taken: the middle of a layer.
AGAIN = (200, 0.51)


def half(x):
    return math.exp(-0.5 * x * x)


def simple(x):
    return math.exp(-x)


@pytest.mark.parametrize(
    ("draw", "ends", "density", "signs"),
    [
        (random.normal, random.NORMAL_ENDS, half, (1.0, -1.0)),
        (random.exponential, random.EXPONENTIAL_ENDS, simple, (1.0,)),
    ],
    ids=["normal", "exponential"],
)
def test_layers_hold_what_is_below_the_density(draw, ends, density, signs):
    """Layer l reaches from density(end) up to density(next end); below is the whole density."""
    two_sided = len(signs) == 2
    for layer in (1, 2, 17, 128, 250, 255):
        end, above = ends[layer], ends[layer + 1]
        for share in (0.05, 0.5, 0.95):
            x = above + share * (end - above)
            for sign in signs:
                u = 0.5 * (sign * x / end + 1.0) if two_sided else x / end
                # Heights fall from the layer's upper edge to its lower one.
                height = (density(above) - density(x)) / (density(above) - density(end))
                rng = Layers([(layer, u)], [height + 1e-7])
                assert draw(rng) == pytest.approx(sign * x, rel=1e-9)
                rng = Layers([(layer, u), AGAIN], [height - 1e-7])
                found = draw(rng)
                u = AGAIN[1]
                assert found == pytest.approx((2 * u - 1 if two_sided else u) * ends[AGAIN[0]])
                assert rng.used_up()
        for sign in signs:
            x = 0.999 * above
            u = 0.5 * (sign * x / end + 1.0) if two_sided else x / end
            if above > 0.0:
                assert draw(Layers([(layer, u)])) == pytest.approx(sign * x, rel=1e-9)
    # The areas of all layers are the same.
    areas = [ends[at] * (density(ends[at + 1]) - density(ends[at])) for at in range(1, 256)]
    np.testing.assert_allclose(areas, areas[0], rtol=1e-6)
    assert ends[0] * density(ends[1]) == pytest.approx(areas[0], rel=1e-6)


def test_tails():
    tail = random._NORMAL_TAIL
    for u, sign in ((0.9999, 1.0), (0.0001, -1.0)):
        # x is exponential of rate tail, and kept if 2 y >= x².
        x = 0.8
        first = -math.expm1(-tail * x)
        edge = -math.expm1(-0.5 * x * x)
        rng = Layers([(0, u)], [first, edge + 1e-9])
        assert random.normal(rng) == pytest.approx(sign * (tail + x))
        second = -math.expm1(-tail * 0.1)
        rng = Layers([(0, u)], [first, edge - 1e-9, second, 0.5])
        assert random.normal(rng) == pytest.approx(sign * (tail + 0.1))
        assert rng.used_up()
    rng = Layers([(0, 0.9999)], [0.7])
    expected = random._EXPONENTIAL_TAIL - math.log1p(-0.7)
    assert random.exponential(rng) == pytest.approx(expected)


@pytest.mark.parametrize("shape", [0.3, 0.9, 1.0, 2.7, 40.0])
def test_gammas(shape):
    """Kept if log u < x² / 2 + d (1 - v + log v), of which the squeeze is a part."""
    small = shape < 1.0
    d = (shape + 1.0 if small else shape) - 1.0 / 3.0
    power = 0.4 ** (1.0 / shape) if small else 1.0
    begin = [0.6] if small else []
    for x in (-3.6, -2.4, -1.0, -0.2, 0.3, 1.1, 2.6):
        v = (1.0 + x / math.sqrt(9.0 * d)) ** 3
        if v <= 0.0:
            rng = KnownNumbers([*begin, 0.5], normals=[x, 0.0])
            assert random.gamma(rng, shape) == pytest.approx(power * d)
            assert rng.used_up()
            continue
        edge = math.exp(min(0.5 * x * x + d * (1.0 - v + math.log(v)), 0.0))
        for u in (0.5 * edge, edge - 1e-9) if edge > 1e-6 else ():
            rng = KnownNumbers([*begin, 1.0 - u], normals=[x])
            assert random.gamma(rng, shape) == pytest.approx(power * d * v)
        if edge < 1.0 - 1e-6:
            for u in (edge + 1e-9, 0.5 * (1.0 + edge), 1.0):
                rng = KnownNumbers([*begin, 1.0 - u, 0.5], normals=[x, 0.0])
                assert random.gamma(rng, shape) == pytest.approx(power * d)
                assert rng.used_up()


def test_betas():
    rng = KnownNumbers()
    assert random.beta(rng, 3.0, 0.5) == pytest.approx(3.0 / 3.5)
    assert random.beta(rng, 0.5, 1.5) == pytest.approx(0.25)
    assert random.beta(rng, 1.5, 0.5) == pytest.approx(0.75)
    assert rng.gammas == [3.0, 0.5, 0.5, 1.5, 1.5, 0.5]
    a, b = 0.4, 0.7
    for ux, uy in ((0.3, 0.2), (0.6, 0.1), (0.05, 0.4)):
        x, y = ux ** (1.0 / a), uy ** (1.0 / b)
        assert x + y < 1.0
        rng = KnownNumbers([1.0 - ux, 1.0 - uy])
        assert random.beta(rng, a, b) == pytest.approx(x / (x + y))
    # Refused if the sum exceeds one.
    rng = KnownNumbers([0.05, 0.05, 0.7, 0.8])
    assert random.beta(rng, a, b) == pytest.approx(
        0.3 ** (1 / a) / (0.3 ** (1 / a) + 0.2 ** (1 / b))
    )
    assert rng.used_up()
    # Both may vanish while their ratio does not.
    rng = KnownNumbers([0.5, 0.25])
    assert random.beta(rng, 1e-4, 1e-4) == 0.0
    assert random.beta(KnownNumbers([0.25, 0.5]), 1e-4, 1e-4) == 1.0
    x = math.exp(math.log(0.5) / 0.001 - math.log(0.501) / 0.001)
    rng = KnownNumbers([0.5, 0.499])
    assert random.beta(rng, 0.001, 0.001) == pytest.approx(x / (1.0 + x))
    # Uniform numbers: both shapes one.
    rng = KnownNumbers([0.8, 0.6])
    assert random.beta(rng, 1.0, 1.0) == pytest.approx(0.2 / 0.6)
    assert not math.isfinite(random.beta(KnownNumbers([0.8, 0.6]), math.nan, 0.5))

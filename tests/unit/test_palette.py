"""The explorer's colours for experts: told apart by every kind of colour vision.

Colour blindness is simulated as by Machado, Oliveira and Fernandes (2009) at full severity, in
linear RGB; differences are CIEDE2000.
"""

from __future__ import annotations

import re
from importlib import resources

import numpy as np
import pytest

#: What full colour vision, and eyes without red, green or blue cones, make of linear RGB.
VISION = {
    "full": np.eye(3),
    "protanopia": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "deuteranopia": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
    "tritanopia": [
        [1.255528, -0.076749, -0.178779],
        [-0.078411, 0.930809, 0.147602],
        [0.004733, 0.691367, 0.303900],
    ],
}
TO_XYZ = np.array(
    [
        [0.4124564, 0.3575761, 0.1804375],
        [0.2126729, 0.7151522, 0.0721750],
        [0.0193339, 0.1191920, 0.9503041],
    ]
)
WHITE = np.array([0.95047, 1.0, 1.08883])
#: Two that differ by this much are told apart at a glance, also as thin lines.
CLEAR = 18.0
GROUND = {"light": "#FFFFFF", "dark": "#14181C"}


def linear(colour):
    value = np.array([int(colour[k : k + 2], 16) for k in (1, 3, 5)]) / 255.0
    return np.where(value <= 0.04045, value / 12.92, ((value + 0.055) / 1.055) ** 2.4)


def lab(colour, vision):
    seen = np.clip(np.asarray(VISION[vision]) @ linear(colour), 0.0, 1.0)
    t = TO_XYZ @ seen / WHITE
    f = np.where(t > 216 / 24389, np.cbrt(t), (24389 / 27 * t + 16) / 116)
    return 116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])


def difference(one, other):
    """CIEDE2000."""
    (l1, a1, b1), (l2, a2, b2) = one, other
    mean_c = (np.hypot(a1, b1) + np.hypot(a2, b2)) / 2
    g = 1.5 - 0.5 * np.sqrt(mean_c**7 / (mean_c**7 + 25.0**7))
    c1, c2 = np.hypot(g * a1, b1), np.hypot(g * a2, b2)
    h1, h2 = (np.degrees(np.arctan2(b, g * a)) % 360 for a, b in ((a1, b1), (a2, b2)))
    turn = (h2 - h1 + 180) % 360 - 180 if c1 * c2 else 0.0
    dh = 2 * np.sqrt(c1 * c2) * np.sin(np.radians(turn) / 2)
    mean_l, mean_c = (l1 + l2) / 2, (c1 + c2) / 2
    hue = h1 + h2 if not c1 * c2 else (h1 + turn / 2) % 360
    angle = np.radians(hue)
    t = (
        1
        - 0.17 * np.cos(angle - np.radians(30))
        + 0.24 * np.cos(2 * angle)
        + 0.32 * np.cos(3 * angle + np.radians(6))
        - 0.2 * np.cos(4 * angle - np.radians(63))
    )
    dl = (l2 - l1) / (1 + 0.015 * (mean_l - 50) ** 2 / np.sqrt(20 + (mean_l - 50) ** 2))
    dc, dh = (c2 - c1) / (1 + 0.045 * mean_c), dh / (1 + 0.015 * mean_c * t)
    around = np.radians(60 * np.exp(-(((hue - 275) / 25) ** 2)))
    twist = -np.sin(around) * 2 * np.sqrt(mean_c**7 / (mean_c**7 + 25.0**7))
    return float(np.sqrt(dl**2 + dc**2 + dh**2 + twist * dc * dh))


def smallest(colours, vision):
    seen = [lab(colour, vision) for colour in colours]
    return min(difference(a, b) for k, a in enumerate(seen) for b in seen[:k])


def palette(shade):
    text = (
        resources.files("dfcrp.report.explorer").joinpath("page", "colours.js").read_text("utf-8")
    )
    listed = re.search(rf"DISTINCT = .*?{shade}: \[(.*?)\]", text, re.DOTALL)
    assert listed
    return re.findall(r"#[0-9A-F]{6}", listed[1])


def test_the_difference_is_that_of_the_published_examples():
    """Pairs of Sharma, Wu and Dalal (2005)."""
    for one, other, known in (
        ((50.0, 2.6772, -79.7751), (50.0, 0.0, -82.7485), 2.0425),
        ((50.0, -1.0, 2.0), (50.0, 0.0, 0.0), 2.3669),
        ((60.2574, -34.0099, 36.2677), (60.4626, -34.1751, 39.4387), 1.2644),
        ((2.0776, 0.0795, -1.1350), (0.9033, -0.0636, -0.5514), 0.9082),
    ):
        assert difference(one, other) == pytest.approx(known, abs=1e-4)


@pytest.mark.parametrize("shade", ["light", "dark"])
@pytest.mark.parametrize("vision", list(VISION))
def test_experts_are_told_apart(shade, vision):
    colours = palette(shade)
    assert len(colours) == 7
    assert smallest(colours, vision) >= CLEAR


def test_the_colours_of_before_would_fail():
    """Six of Okabe and Ito's made darker for lines on white."""
    before = ["#0072B2", "#D55E00", "#009E73", "#BF6A99", "#A36F00", "#2F8FC9"]
    assert smallest(before, "deuteranopia") < 6.0
    assert smallest(before, "protanopia") < 1.0


@pytest.mark.parametrize("shade", ["light", "dark"])
def test_every_colour_stands_out_from_its_ground(shade):
    def luminance(colour):
        return float(TO_XYZ[1] @ linear(colour))

    ground = luminance(GROUND[shade])
    for colour in palette(shade):
        low, high = sorted((luminance(colour), ground))
        assert (high + 0.05) / (low + 0.05) >= 3.0

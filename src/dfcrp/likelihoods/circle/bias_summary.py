"""How experts differ, where that was learned: offsets, sizes and noise relative to the others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dfcrp.draws import Draws, shared_variable
from dfcrp.likelihoods.circle.bias_layout import NOISE, OFFSET
from dfcrp.summaries.intervals import Interval, summarise

#: What the tables call the offsets along each axis; those in FACTORS are stored as logarithms.
OFFSETS = ("offset_x", "offset_y", "size_factor")
FACTORS = ("size_factor", "noise_factor")


@dataclass(frozen=True)
class ExpertBias:
    """Posterior summaries of F experts, by name of the quantity, in the order of their codes."""

    found: dict[str, Interval]

    def expert(self, f: int) -> dict[str, Any]:
        """An expert's entries in summary.json."""
        return {name: interval[f].as_dict() for name, interval in self.found.items()}

    def corrected(self, feature: NDArray[np.float64], f: int) -> NDArray[np.float64]:
        """(x, y, log diameter) of a marking as the mean expert would have drawn it."""
        if "offset_x" not in self.found:
            return feature
        x, y, size = (self.found[name].mean[f] for name in OFFSETS)
        return feature - np.array([x, y, np.log(size)])

    def noise(self, f: int) -> float:
        """The expert's noise factor."""
        return float(self.found["noise_factor"].mean[f]) if "noise_factor" in self.found else 1.0

    def in_words(self, experts: Sequence[str]) -> str:
        """Who stands out, in a sentence."""
        parts = []
        if "size_factor" in self.found:
            size = self.found["size_factor"].mean
            large, small = int(np.argmax(size)), int(np.argmin(size))
            parts += [
                f"{experts[large]} draws largest ({100.0 * (size[large] - 1.0):+.1f} %)",
                f"{experts[small]} smallest ({100.0 * (size[small] - 1.0):+.1f} %)",
            ]
        if "noise_factor" in self.found:
            noise = self.found["noise_factor"].mean
            most, least = int(np.argmax(noise)), int(np.argmin(noise))
            parts += [
                f"{experts[most]} scatters most ({noise[most]:.2f} times)",
                f"{experts[least]} least ({noise[least]:.2f} times)",
            ]
        return f"Compared with the mean marking, {', '.join(parts)}."


def expert_bias(draws: Draws) -> ExpertBias | None:
    """From the draws; None if experts were taken to be alike."""
    found: dict[str, Interval] = {}
    offsets, noise = shared_variable(draws, OFFSET), shared_variable(draws, NOISE)
    if offsets is not None:
        for axis, name in enumerate(OFFSETS):
            values = offsets[..., axis].reshape(-1, offsets.shape[2])
            found[name] = summarise(np.exp(values) if name in FACTORS else values)
    if noise is not None:
        found["noise_factor"] = summarise(np.exp(noise.reshape(-1, noise.shape[2])))
    return ExpertBias(found) if found else None


def rows_with_bias(
    rows: list[dict[str, Any]], bias: ExpertBias | None, experts: Sequence[str]
) -> list[dict[str, Any]]:
    """The rows of the table of experts with what is known of how these differ."""
    if bias is None:
        return rows
    code = {name: f for f, name in enumerate(experts)}
    return [{**row, **bias.expert(code[row["expert"]])} for row in rows]

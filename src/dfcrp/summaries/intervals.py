"""Mean and equal-tailed interval of posterior samples."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: Mass of every interval that dfcrp reports.
LEVEL = 0.95


@dataclass(frozen=True)
class Interval:
    """Posterior mean with a 95 % interval; scalars or arrays of one shape."""

    mean: Any
    lo: Any
    hi: Any

    def as_dict(self) -> dict[str, float]:
        """As in summary.json; scalars only."""
        return {"mean": float(self.mean), "lo": float(self.lo), "hi": float(self.hi)}

    def __getitem__(self, index: Any) -> Interval:
        return Interval(self.mean[index], self.lo[index], self.hi[index])


def summarise(samples: NDArray[Any], level: float = LEVEL) -> Interval:
    """Mean and equal-tailed interval over the first axis.

    Samples that are NaN (an undefined share, say) are left out; where nothing is left, the
    answer is NaN.
    """
    samples = np.asarray(samples, dtype=np.float64)
    tails = [(1.0 - level) / 2.0, (1.0 + level) / 2.0]
    if not np.isnan(samples).any():
        lo, hi = np.quantile(samples, tails, axis=0)
        return Interval(samples.mean(axis=0), lo, hi)
    flat = samples.reshape(len(samples), -1)
    out = np.full((3, flat.shape[1]), np.nan)
    for column in range(flat.shape[1]):
        values = flat[:, column]
        values = values[~np.isnan(values)]
        if values.size:
            out[:, column] = values.mean(), *np.quantile(values, tails)
    return Interval(*out.reshape(3, *samples.shape[1:]))

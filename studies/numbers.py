"""How well a posterior of a whole number agrees with the truth: errors, intervals, coverage."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dfcrp.summaries.streaming import summarise

#: What an interval should hold.
LEVEL = 0.95


def describe(values: NDArray[np.int64], truth: int) -> dict[str, Any]:
    """The posterior of one number, values by chain and draw, beside the truth."""
    numbers, counts = np.unique(values, return_counts=True)
    share = counts / counts.sum()
    equal = summarise(values.ravel())
    low, high = shortest(numbers, share)
    below, up_to = float(share[numbers < truth].sum()), float(share[numbers <= truth].sum())
    return {
        "truth": truth,
        "mean": float(values.mean()),
        "chains": values.mean(axis=1).tolist(),
        "equal": _held(numbers, share, float(equal.lo), float(equal.hi), truth),
        "shortest": _held(numbers, share, low, high, truth),
        "exact": exact_coverage(below, up_to),
    }


def shortest(numbers: NDArray[np.int64], share: NDArray[np.float64]) -> tuple[float, float]:
    """The ends of the shortest interval with at least ``LEVEL`` of the probability."""
    total = np.concatenate([[0.0], np.cumsum(share)])
    best = (float(numbers[0]), float(numbers[-1]))
    for first in range(len(numbers)):
        last = int(np.searchsorted(total, total[first] + LEVEL - 1e-12))
        if last > len(numbers):
            break
        if numbers[last - 1] - numbers[first] < best[1] - best[0]:
            best = (float(numbers[first]), float(numbers[last - 1]))
    return best


def exact_coverage(below: float, up_to: float) -> float:
    """Chance that the truth is in the interval whose ends are drawn so that it holds ``LEVEL``.

    ``below`` and ``up_to`` are the probabilities of less than the truth, and of no more. A number
    that holds the interval's end counts by the part of it that is inside.
    """
    edge = (1.0 - LEVEL) / 2.0
    if up_to <= below:
        return float(edge <= below <= 1.0 - edge)
    inside = min(up_to, 1.0 - edge) - max(below, edge)
    return max(0.0, inside) / (up_to - below)


def _held(
    numbers: NDArray[np.int64], share: NDArray[np.float64], low: float, high: float, truth: int
) -> dict[str, Any]:
    inside = (numbers >= low) & (numbers <= high)
    return {"mass": float(share[inside].sum()), "covers": bool(low <= truth <= high)}


def averages_of(found: list[dict[str, Any]]) -> dict[str, float]:
    """Over data sets: mean, errors, coverages in per cent, and how far chains lie apart."""
    error = np.array([row["mean"] - row["truth"] for row in found])
    apart = [max(row["chains"]) - min(row["chains"]) for row in found]

    def percent(name: str, key: str) -> float:
        return 100.0 * float(np.mean([row[name][key] for row in found]))

    return {
        "true": float(np.mean([row["truth"] for row in found])),
        "found": float(np.mean([row["mean"] for row in found])),
        "bias": float(error.mean()),
        "rmse": float(np.sqrt(np.mean(error**2))),
        "chains apart": float(np.sqrt(np.mean(np.square(apart)))),
        "equal-tailed: coverage, %": percent("equal", "covers"),
        "holds, %": percent("equal", "mass"),
        "shortest: coverage, %": percent("shortest", "covers"),
        "it holds, %": percent("shortest", "mass"),
        "exactly 95 %: coverage, %": 100.0 * float(np.mean([row["exact"] for row in found])),
    }

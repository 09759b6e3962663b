"""Figure of an evaluation: calibration, and precision against recall."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dfcrp.errors import InputError
from dfcrp.plots.style import BLUE, GREY, VERMILION, WIDE, given_axes, new_axes, styled
from dfcrp.posterior.posterior import Posterior

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class EvaluationTable:
    """The two curves; either may be empty."""

    #: What ranks the answer: p_real, score, ...
    score: str
    #: By bin: the mean probability, the share that is right, and the number.
    mean_p: Floats
    right: Floats
    count: NDArray[np.int64]
    precision: Floats
    recall: Floats
    #: Recall and precision of what is listed.
    listed: tuple[float, float]
    average_precision: float


def prepare_evaluation(
    posterior: Posterior | None = None,
    *,
    found: Mapping[str, Any] | None = None,
    truth: Any = None,
) -> EvaluationTable:
    """From what ``dfcrp.evaluate`` or ``Posterior.evaluate`` found, or from a truth."""
    if found is None:
        if posterior is None or truth is None:
            raise InputError("this figure is of an evaluation; give truth=, or found=")
        found = posterior.evaluate(truth)
    bins, curve = found["calibration"], found["curve"]

    def column(rows: Any, name: str) -> Floats:
        return np.array([row[name] for row in rows], np.float64)

    listed = (found["recall"], found["precision"])
    return EvaluationTable(
        score=found["score"] or "",
        mean_p=column(bins, "mean_p"),
        right=column(bins, "right"),
        count=column(bins, "n").astype(np.int64),
        precision=column(curve, "precision"),
        recall=column(curve, "recall"),
        listed=tuple(np.nan if one is None else float(one) for one in listed),  # type: ignore[arg-type]
        average_precision=_number(found["average_precision"]),
    )


def _number(value: float | None) -> float:
    return np.nan if value is None else value


def draw_evaluation(table: EvaluationTable, axes: Any = None) -> list[Any]:
    """Two panels."""
    with styled():
        if axes is None:
            axes = new_axes(WIDE, 3.0, 1, 2)[0]
        left, right = given_axes(axes, 2)[:2]
        _draw_calibration(table, left)
        if len(table.recall):
            left_end = np.append(table.precision[:1], table.precision)
            right.step(np.append(0.0, table.recall), left_end, where="pre", color=BLUE)
            right.set_title(f"average precision {table.average_precision:.3f}")
        right.plot(*table.listed, "o", color=VERMILION, markersize=5.0)
        right.set_xlabel("recall")
        right.set_ylabel("precision")
        for ax in (left, right):
            ax.set_xlim(-0.02, 1.02)
            ax.set_ylim(-0.03, 1.03)
    return [left, right]


def _draw_calibration(table: EvaluationTable, ax: Any) -> None:
    ax.plot([0.0, 1.0], [0.0, 1.0], color=GREY, linewidth=0.8)
    if len(table.mean_p):
        error = 2.0 * np.sqrt(table.right * (1.0 - table.right) / table.count)
        ax.errorbar(
            table.mean_p,
            table.right,
            yerr=error,
            fmt="o-",
            color=BLUE,
            markersize=3.5,
            linewidth=0.6,
        )
        for x, y, count in zip(table.mean_p, table.right, table.count.tolist(), strict=True):
            ax.annotate(f"{count:,}", (x, y), (4, -8), textcoords="offset points", fontsize=6)
    ax.set_xlabel(table.score if len(table.mean_p) else "no probabilities")
    ax.set_ylabel("share that is right")


def plot_evaluation(
    posterior: Posterior | None = None, axes: Any = None, **options: Any
) -> tuple[EvaluationTable, list[Any]]:
    """Prepare with ``options`` and draw."""
    table = prepare_evaluation(posterior, **options)
    return table, draw_evaluation(table, axes)

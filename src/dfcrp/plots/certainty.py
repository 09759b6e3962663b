"""Figures of how sure the catalogue is, and of how right it is beside a truth."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dfcrp.errors import InputError
from dfcrp.markup import plural
from dfcrp.plots.figure import Columns, Figure, Options, Shared
from dfcrp.plots.flat import Floats
from dfcrp.plots.style import (
    BLUE,
    GREY,
    VERMILION,
    WIDE,
    given_axes,
    new_axes,
    styled,
)
from dfcrp.posterior.posterior import Posterior
from dfcrp.settings.consensus import in_short
from dfcrp.values import Json

if TYPE_CHECKING:
    import pandas
    from matplotlib.axes import Axes

    from dfcrp.items.items import Items
    from dfcrp.plots.style import Panels

BINS = 20


@dataclass(frozen=True)
class Certainty:
    """Histograms of probabilities over equal bins from 0 to 1."""

    edges: NDArray[np.float64]
    #: Items by their probability to belong where they are listed.
    members: NDArray[np.int64]
    #: Clusters by their probability to be shared by enough experts, or to be real if that is known.
    clusters: NDArray[np.int64]
    #: Which of the two, in words.
    of: str
    #: What items are called.
    nouns: str = "items"


def prepare_certainty(
    posterior: Posterior, *, catalogue: pandas.DataFrame | None = None, bins: int = BINS
) -> Certainty:
    """``catalogue`` saves making it a second time."""
    table = posterior.catalogue() if catalogue is None else catalogue
    real = "p_real" in table
    agreed = f"p_consensus: clusters with {in_short(posterior.config.summary.min_experts)}"
    edges = np.linspace(0.0, 1.0, bins + 1)
    return Certainty(
        edges=edges,
        members=np.histogram(posterior.membership.p_member, edges)[0],
        clusters=np.histogram(table["p_real" if real else "p_consensus"], edges)[0],
        of="p_real: clusters that are real objects" if real else agreed,
        nouns=plural(posterior.likelihood.noun),
    )


def draw_certainty(table: Certainty, axes: Panels | None = None) -> list[Axes]:
    """Items on the left, clusters on the right; the numbers on a logarithmic scale."""
    with styled():
        panels = given_axes(new_axes(WIDE, 2.4, 1, 2) if axes is None else axes, 2)
        for ax, counts, title, what in (
            (panels[0], table.members, f"p_member: {table.nouns} in their cluster", table.nouns),
            (panels[1], table.clusters, table.of, "clusters"),
        ):
            ax.bar(
                table.edges[:-1],
                counts,
                width=np.diff(table.edges),
                align="edge",
                color=BLUE,
                edgecolor="white",
                linewidth=0.5,
            )
            # Nearly all are sure; on a linear scale the few that are not would vanish.
            ax.set_yscale("log")
            ax.set_ylim(0.7, 2.0 * max(counts.max(), 5))
            ax.set_xlim(0.0, 1.0)
            ax.set_title(title)
            ax.set_xlabel("posterior probability")
            ax.set_ylabel(f"number of {what}")
            _whole_numbers(ax)
    return panels[:2]


def _whole_numbers(ax: Axes) -> None:
    from matplotlib.ticker import FuncFormatter, NullFormatter

    ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    ax.yaxis.set_minor_formatter(NullFormatter())


# --- beside a truth -----------------------------------------------------------------------------
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
    found: Json | None = None,
    truth: Items | None = None,
) -> EvaluationTable:
    """From what ``dfcrp.evaluate`` or ``Posterior.evaluate`` found, or from a truth."""
    if found is None:
        if posterior is None or truth is None:
            raise InputError("this figure is of an evaluation; give truth=, or found=")
        found = posterior.evaluate(truth)
    bins, curve = found["calibration"], found["curve"]

    def column(rows: Iterable[Mapping[str, float]], name: str) -> Floats:
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


def draw_evaluation(table: EvaluationTable, axes: Panels | None = None) -> list[Axes]:
    """Two panels."""
    with styled():
        if axes is None:
            axes = new_axes(WIDE, 3.0, 1, 2)
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


def _draw_calibration(table: EvaluationTable, ax: Axes) -> None:
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


def list_evaluation(table: EvaluationTable) -> Columns:
    """A row for each point of the two curves."""
    curves = (
        ("calibration", table.mean_p, table.right, table.count.tolist()),
        ("precision", table.recall, table.precision, [""] * len(table.recall)),
    )
    rows = [(name, *row) for name, *values in curves for row in zip(*values, strict=True)]
    names = ("curve", "mean_p_or_recall", "right_or_precision", "n")
    return {name: [row[k] for row in rows] for k, name in enumerate(names)}


def _evaluated(shared: Shared) -> Options | None:
    return None if shared.evaluation is None else {"found": shared.evaluation}


FIGURES = (
    Figure(
        "certainty",
        "how many items are how sure of their cluster, and clusters of their consensus",
        prepare_certainty,
        draw_certainty,
        in_report=lambda shared: {"catalogue": shared.catalogue},
    ),
    Figure(
        "evaluation",
        "[beside a truth](evaluate.md): share that is right against the probability that was "
        "given, and precision against recall",
        prepare_evaluation,
        draw_evaluation,
        in_report=_evaluated,
        of_many=True,
        listing=list_evaluation,
    ),
)

"""Figure of the simulation study: the three models' ARI, and DFCRP minus CRP, design by design."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dfcrp.plots.style import BLUE, GREY, INK, WIDE, new_axes, styled
from studies.simulation import MODELS
from studies.simulation_tables import TITLES, ari_columns

_COLOURS = {"dfcrp": BLUE, "dfcrp_radius": INK, "crp": GREY}


@dataclass(frozen=True)
class SimulationTable:
    """ARI by design, model and data set."""

    designs: tuple[str, ...]
    #: For each design, ARI by model.
    ari: tuple[dict[str, NDArray[np.float64]], ...]


def prepare_simulation(results: Mapping[str, Sequence[dict[str, Any]]]) -> SimulationTable:
    """Results of several designs."""
    return SimulationTable(tuple(results), tuple(ari_columns(found) for found in results.values()))


def draw_simulation(table: SimulationTable) -> Any:
    """Medians, quartiles and 5 % to 95 % on the left; paired differences on the right."""
    count = len(table.designs)
    with styled():
        left, right = new_axes(WIDE, 1.1 + 0.5 * count, 1, 2)[0]
        for place, ari in enumerate(table.ari):
            for shift, model in zip((-0.22, 0.0, 0.22), MODELS, strict=True):
                _draw_spread(left, ari[model], place + shift, _COLOURS[model])
            _draw_spread(right, ari["difference"], place, BLUE)
        for axes in (left, right):
            axes.set_ylim(count - 0.5, -0.5)
            axes.set_yticks(range(count), table.designs if axes is left else [])
        left.set_xlabel("adjusted Rand index to the truth")
        right.set_xlabel("DFCRP minus CRP")
        right.axvline(0.0, color=GREY, linewidth=0.6)
        handles = [left.plot([], [], "o-", color=_COLOURS[m], markersize=3)[0] for m in MODELS]
        left.legend(
            handles, [TITLES[m] for m in MODELS], loc="lower left", bbox_to_anchor=(0, 1), ncols=3
        )
    return left.figure


def _draw_spread(axes: Any, values: NDArray[np.float64], place: float, colour: str) -> None:
    low, quarter, middle, three, high = np.quantile(values, [0.05, 0.25, 0.5, 0.75, 0.95])
    axes.plot([low, high], [place, place], "-", color=colour, linewidth=0.8)
    axes.plot([quarter, three], [place, place], "-", color=colour, linewidth=2.5)
    axes.plot(middle, place, "o", color=colour, markersize=3.0)

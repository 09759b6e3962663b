"""The simulation study from plans to files: run, tables, figure, and an overview of designs."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dfcrp.plots.style import BLUE, GREY, INK, WIDE, new_axes, save_figure, styled
from dfcrp.report.tables import (
    markdown_table,
    prepare_out,
    provenance,
    write_csv,
    write_json,
    write_page,
)
from studies.simulation import MODELS, Plan, Step, cores, run_study
from studies.simulation_tables import TITLES, ari_columns, overview_row, write_tables

_COLOURS = {"dfcrp": BLUE, "dfcrp_radius": INK, "crp": GREY}


def reproduce_simulation(
    out: Path,
    plans: Sequence[Plan],
    *,
    workers: int | None = None,
    dask: str | None = None,
    progress: Callable[..., None] | None = None,
) -> Path:
    """Run every plan in a folder of its own; returns the page to read first.

    ``progress`` is called with a line of text, and with ``final=True`` at the end of each plan.
    The tables depend on the plans alone; when and how fast it went is in run.json.
    """
    prepare_out(out)
    begun = time.monotonic()
    found: dict[str, list[dict[str, Any]]] = {}
    for plan in plans:
        folder = out / plan.design
        found[plan.design] = run_study(
            plan, folder, workers=workers, dask=dask, observer=_observer(plan, progress)
        )
        if progress is not None:
            progress(f"{plan.design}: {plan.datasets} data sets done", final=True)
        write_tables(plan, found[plan.design], folder)
        _write_run(folder, plan, found[plan.design], workers, time.monotonic() - begun)
    save_figure(draw_simulation(prepare_simulation(found)), out, "simulation")
    if len(plans) == 1:
        return out / plans[0].design / "tables.md"
    return _write_overview(out, plans, found)


def _observer(plan: Plan, progress: Callable[..., None] | None) -> Callable[[Step], None] | None:
    if progress is None:
        return None

    def tell(step: Step) -> None:
        left = step.seconds_left
        remaining = f"{left / 60:.0f} min" if left > 90 else f"{left:.0f} s"
        progress(f"{plan.design}: {step.done} of {step.total} data sets, {remaining} left")

    return tell


def _write_run(
    folder: Path, plan: Plan, results: Sequence[dict[str, Any]], workers: int | None, wall: float
) -> None:
    """When, where and how fast: kept apart, since the tables must not depend on it."""
    core_seconds = {
        model: sum(result["models"][model]["core_seconds"] for result in results)
        for model in MODELS
    }
    content = {
        **provenance(**plan.identity(), datasets=plan.datasets),
        "workers": workers or cores(),
        "core_seconds": core_seconds,
        "core_seconds_total": sum(core_seconds.values()),
        "wall_seconds_of_last_call": wall,
    }
    write_json(folder / "run.json", content)


def _write_overview(
    out: Path, plans: Sequence[Plan], found: dict[str, list[dict[str, Any]]]
) -> Path:
    rows = [overview_row(plan, found[plan.design]) for plan in plans]
    first = plans[0]
    text = [
        f"{first.scans:,} scans of which {first.burn_in:,} burn-in, seed {first.seed}. ARI is the "
        "posterior mean to the truth, averaged over data sets; the difference is "
        f"{TITLES['dfcrp']} minus {TITLES['crp']}, paired, with its standard error.",
        markdown_table(rows),
        "![ARI by design](simulation.png)",
    ]
    page = out / "designs.md"
    write_page(page, "Simulation study: all designs", text)
    write_csv(out / "designs.csv", rows)
    return page


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

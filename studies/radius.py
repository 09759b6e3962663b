"""Choosing the radius: which clusters it would forbid, and what it saves, on the reduced data."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dfcrp.fitting import fit
from dfcrp.items.items import Items
from dfcrp.plots.neighbourhood import RadiusTable, cluster_widths, draw_radius, prepare_radius
from dfcrp.plots.style import save_figure
from dfcrp.report.tables import (
    markdown_table,
    prepare_out,
    provenance,
    write_csv,
    write_json,
    write_page,
)
from dfcrp.sampling.chain import Chain
from dfcrp.settings.config import make_config
from studies import paper_figures as paper
from studies.highlands_data import Highlands, reduced
from studies.problems import make_problem

#: Radii whose shares are tabulated, and whose runs are timed (the last is no radius at all).
TABULATED_PX = (0.0, 2.5, 5.0, 7.5, 10.0, 15.0, 20.0, 25.0, 30.0, 40.0, 50.0, 75.0, 100.0)
TIMED_PX = (10.0, 20.0, 30.0, 50.0, 70.0, 100.0, 150.0, 300.0, 600.0)
#: Times are for so many scans, as in the paper's figure.
TIMED_FOR = 10_000
#: Suggested radii are multiples of this.
STEP_PX = 5.0


@dataclass(frozen=True)
class RadiusLength:
    """How long the runs are."""

    chains: int = 4
    scans: int = 5000
    burn_in: int = 1000
    timed_scans: int = 1000
    #: Of the whole image, with a generous radius; 0 leaves it out.
    whole_scans: int = 300
    seed: int = 1


@dataclass(frozen=True)
class RadiusChoice:
    """What the study found."""

    n: int
    table: RadiusTable
    #: Seconds for TIMED_FOR scans without a radius.
    seconds_unbounded: float
    #: Smallest multiple of STEP_PX that no draw of the reduced data violates.
    clean_px: float
    #: Widest cluster of the whole image's point partition, if it was looked at.
    widest_px: float | None

    @property
    def suggested_px(self) -> float:
        """Room for the widest cluster, and never less than what the reduced data need."""
        return max(self.clean_px, round_up(self.widest_px or 0.0))


def round_up(width: float) -> float:
    """The next multiple of STEP_PX, or the width itself if it is one."""
    return STEP_PX * math.ceil(width / STEP_PX)


def seconds_of_scans(markings: Items, radius: float | None, scans: int, seed: int) -> float:
    """Time of TIMED_FOR scans on one core, from ``scans`` after a warm-up."""
    run = {"preset": "reduced", "radius": "none" if radius is None else radius}
    problem = make_problem(markings.features, markings.families, make_config({"run": run}))
    chain = Chain(problem, np.random.SeedSequence(seed), "exact")
    chain.run(1, max(scans // 4, 50))
    begun = time.thread_time()
    chain.run(1, scans)
    return (time.thread_time() - begun) * TIMED_FOR / scans


def widest_cluster(markings: Items, length: RadiusLength) -> float:
    """Largest distance within a cluster of the whole image's point partition.

    Run with twice the paper's radius: wide enough that the answer is not the radius itself.
    """
    posterior = fit(
        markings,
        preset="highlands",
        radius=2.0 * paper.RADIUS_ADOPTED_PX,
        chains=2,
        scans=length.whole_scans,
        burn_in=length.whole_scans // 3,
        seed=length.seed,
    )
    return float(cluster_widths(posterior.point_partition().labels, markings, {}).max())


def study_radius(
    data: Highlands, length: RadiusLength, progress: Callable[[str], None] | None = None
) -> RadiusChoice:
    """Draws without a radius, shares against the radius, times, and what follows."""
    tell = progress or (lambda text: None)
    markings = reduced(data.markings)
    tell(f"sampling {len(markings)} markings without a radius")
    posterior = fit(
        markings,
        preset="reduced",
        radius=None,
        chains=length.chains,
        scans=length.scans,
        burn_in=length.burn_in,
        seed=length.seed,
    )
    tell("timing the radii")
    seconds = [
        seconds_of_scans(markings, radius, length.timed_scans, length.seed) for radius in TIMED_PX
    ]
    tell("looking for the widest cluster of the whole image")
    widest = widest_cluster(data.markings, length) if length.whole_scans else None
    shares = prepare_radius(posterior, radii=TABULATED_PX)
    clean = round_up(shares.widest)
    suggested = max(clean, round_up(widest or 0.0))
    grid = np.linspace(0.0, TIMED_PX[-1], 1201)
    return RadiusChoice(
        n=len(markings),
        table=prepare_radius(
            posterior, radii=grid, timed=TIMED_PX, seconds=seconds, chosen=suggested
        ),
        seconds_unbounded=seconds_of_scans(markings, None, length.timed_scans, length.seed),
        clean_px=clean,
        widest_px=widest,
    )


def share_rows(choice: RadiusChoice, radii: Sequence[float] = TABULATED_PX) -> list[dict[str, Any]]:
    """Share of violating clusters at some radii."""
    shares = np.interp(radii, choice.table.radius, choice.table.violating)
    return [
        {"radius (px)": radius, "violating clusters (%)": 100.0 * float(share)}
        for radius, share in zip(radii, shares, strict=True)
    ]


def time_rows(choice: RadiusChoice) -> list[dict[str, Any]]:
    """Seconds for 10,000 scans against the radius, with the paper's hours."""
    rows: list[dict[str, Any]] = [
        {"radius (px)": f"{radius:g}", "seconds": float(seconds)}
        for radius, seconds in zip(choice.table.timed_radius, choice.table.seconds, strict=True)
    ]
    rows.append({"radius (px)": "none", "seconds": choice.seconds_unbounded})
    for row in rows:
        hours = [h for px, h in paper.RADIUS_HOURS.items() if row["radius (px)"] == f"{px:g}"]
        row["paper (hours)"] = hours[0] if hours else None
    return rows


def reproduce_radius(
    out: Path,
    data: Highlands,
    length: RadiusLength,
    progress: Callable[[str], None] | None = None,
) -> RadiusChoice:
    """Write radius.md, .csv, .json and the figure."""
    prepare_out(out)
    choice = study_radius(data, length, progress)
    figure = draw_radius(choice.table)
    figure.set_xlim(0.0, TIMED_PX[-1])
    save_figure(figure.figure, out, "radius")
    whole = (
        "The whole image was not looked at."
        if choice.widest_px is None
        else f"In the whole image the widest cluster measures {choice.widest_px:.1f} px "
        f"(paper: about {paper.RADIUS_WIDEST_CLUSTER_PX:g})."
    )
    text = [
        data.note,
        f"The reduced data set has {choice.n} markings. In {length.chains} chains of "
        f"{length.scans:,} scans without a radius the widest cluster of any draw looked at "
        f"measures {choice.table.widest:.1f} px: from {choice.clean_px:g} px on no cluster "
        f"violates the radius (paper: {paper.RADIUS_CLEAN_PX:g}). {whole}",
        f"**Suggested radius: {choice.suggested_px:g} px** (paper: {paper.RADIUS_ADOPTED_PX:g}).",
        "![shares and times](radius.png)",
        markdown_table(share_rows(choice), 2),
        f"Time for {TIMED_FOR:,} scans on one core:",
        markdown_table(time_rows(choice), 1),
    ]
    write_page(out / "radius.md", "The radius", text)
    write_csv(out / "radius.csv", [*share_rows(choice), *time_rows(choice)])
    content = {
        "n": choice.n,
        "real_data": data.real,
        "clean_px": choice.clean_px,
        "widest_px": choice.widest_px,
        "suggested_px": choice.suggested_px,
        "shares": share_rows(choice),
        "times": time_rows(choice),
        "provenance": provenance(**length.__dict__),
    }
    write_json(out / "radius.json", content)
    return choice

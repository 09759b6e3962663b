"""Draws overview.png from the output of `dfcrp demo`: python docs/images/overview.py demo-run."""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.collections import EllipseCollection

import dfcrp

#: Told apart by every kind of colour vision, as in the explorer.
EXPERTS = ["#2288ff", "#552200", "#227755", "#aa8899", "#4400ee", "#889900"]
AGREEMENT = ["#c8c8c8", "#f3c15f", "#e88b3f", "#cf4f57", "#8a2f7a", "#35125a"]
#: A window of the field, so that single circles can be told apart.
WINDOW = (180, 660, 130, 450)


def main(run: str) -> None:
    """Draw the markings of a run folder beside its catalogue."""
    posterior = dfcrp.load(run)
    figure, (left, right) = plt.subplots(1, 2, figsize=(12, 5), layout="constrained")
    draw_markings(left, posterior.markings)
    draw_catalogue(right, posterior.catalogue(), len(posterior.markings.experts))
    for axes in (left, right):
        axes.set(xlim=WINDOW[:2], ylim=WINDOW[2:], aspect="equal", xticks=[], yticks=[])
        for spine in axes.spines.values():
            spine.set_color("#999999")
    figure.savefig(Path(__file__).with_name("overview.png"), dpi=130)


def draw_markings(axes, markings) -> None:
    """Every expert's circles in a colour of their own."""
    for family, name in enumerate(markings.experts):
        own = markings.families == family
        centres = np.column_stack([markings.x, markings.y])[own]
        circles(axes, centres, markings.diameter[own], EXPERTS[family])
        axes.plot([], [], color=EXPERTS[family], label=name)
    axes.set_title("In: six experts' lists of circles", fontsize=14)
    put_legend(axes, "expert")


def draw_catalogue(axes, table, n_experts: int) -> None:
    """One circle per object, the darker the more experts share it."""
    for count in range(1, n_experts + 1):
        rows = table[table["n_experts"] == count]
        width = 0.8 + 0.3 * count
        color = AGREEMENT[count - 1]
        circles(axes, rows[["x", "y"]], rows["diameter"], color, width)
        axes.plot([], [], color=color, linewidth=width, label=count)
    axes.set_title("Out: one catalogue, with uncertainty", fontsize=14)
    put_legend(axes, "experts who share the object")


def put_legend(axes, title: str) -> None:
    """The same legend under both panels."""
    axes.legend(
        title=title,
        loc="upper center",
        bbox_to_anchor=(0.5, 0.0),
        ncols=6,
        frameon=False,
        handlelength=1.4,
        fontsize=11,
        title_fontsize=11,
    )


def circles(axes, centres, diameter, color, width: float = 1.1) -> None:
    """Circles in data coordinates."""
    axes.add_collection(
        EllipseCollection(
            diameter,
            diameter,
            np.zeros(len(diameter)),
            units="xy",
            offsets=np.asarray(centres),
            offset_transform=axes.transData,
            facecolors="none",
            edgecolors=[color],
            linewidths=width,
        )
    )


if __name__ == "__main__":
    main(sys.argv[1])

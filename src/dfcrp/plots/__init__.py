"""Figures: ``prepare_x`` gives a figure's table, ``draw_x`` draws it, ``plot_x`` does both.

The functions are loaded when first used, so that importing the package stays quick.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

#: Each has three functions, in a module of its name unless ``_HOMES`` says otherwise.
FIGURES = (
    "catalogue_map",
    "certainty",
    "cluster_sizes",
    "coclustering",
    "corrected_sizes",
    "counts_by_size",
    "evaluation",
    "expert_panels",
    "items_map",
    "jaccard",
    "neighbourhood",
    "radius",
    "reality",
    "scores",
    "sensitivity",
    "singletons",
    "size_differential",
    "size_frequency",
    "size_relative",
    "skills",
    "traces",
)
_HOMES = {
    figure: home
    for home, figures in {
        "certainty": ("coclustering",),
        "detection": (
            *("cluster_sizes", "corrected_sizes", "reality", "scores", "sensitivity", "skills"),
        ),
        "experts": ("expert_panels", "jaccard", "singletons"),
        "maps": ("catalogue_map", "items_map"),
        "neighbourhood": ("radius",),
        "sizes": ("counts_by_size", "size_differential", "size_frequency", "size_relative"),
    }.items()
    for figure in figures
}
#: Of the figures, those about diameters, those about any size, such as that of a box, and those
#: that show DBSCAN beside the posterior.
NEED_DIAMETERS = ("size_differential", "size_frequency", "size_relative")
NEED_SIZES = ("corrected_sizes", "sensitivity")
#: And those about scores.
NEED_SCORES = ("scores",)
BESIDE_DBSCAN = ("counts_by_size", "size_differential", "size_frequency", "size_relative")
WITH_ISOCHRONS = ("size_differential", "size_frequency", "size_relative")
_ACTIONS = ("prepare", "draw", "plot")


def __getattr__(name: str) -> Any:
    action, _, figure = name.partition("_")
    if name == "save_figure":
        return import_module("dfcrp.plots.style").save_figure
    if action in _ACTIONS and figure in FIGURES:
        home = _HOMES.get(figure, figure)
        return getattr(import_module(f"dfcrp.plots.{home}"), name)
    raise AttributeError(f"module 'dfcrp.plots' has no attribute {name!r}")


def __dir__() -> list[str]:
    return ["FIGURES", "save_figure", *(f"{a}_{f}" for f in FIGURES for a in _ACTIONS)]

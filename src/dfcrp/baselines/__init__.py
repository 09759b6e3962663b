"""Other ways to merge the lists, behind one interface: markings in, labels or draws out.

The names below are loaded when first used: the kernels of ``collapsed`` are compiled where a wheel
is built, and most of what dfcrp needs to run is not installed there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

__all__ = [
    "METHODS",
    "Comparison",
    "Length",
    "Method",
    "adjusted_rand",
    "adjusted_rand_of_draws",
    "clusters_breaking_family_rule",
    "compare",
    "constrained_crp",
    "dbscan_r14",
    "distance_dependent_crp",
    "kmeans",
    "make_methods",
    "posterior_of_labels",
    "variation_of_information",
]

if TYPE_CHECKING:
    from dfcrp.baselines.comparison import Comparison, compare
    from dfcrp.baselines.methods import METHODS, Length, Method, make_methods
    from dfcrp.baselines.relatives import constrained_crp, distance_dependent_crp
    from dfcrp.baselines.scores import (
        adjusted_rand,
        adjusted_rand_of_draws,
        variation_of_information,
    )
    from dfcrp.baselines.without_model import clusters_breaking_family_rule, dbscan_r14, kmeans
    from dfcrp.baselines.wrapping import posterior_of_labels
else:
    from importlib import import_module

    _HOMES = {
        "comparison": ("Comparison", "compare"),
        "methods": ("METHODS", "Length", "Method", "make_methods"),
        "relatives": ("constrained_crp", "distance_dependent_crp"),
        "scores": ("adjusted_rand", "adjusted_rand_of_draws", "variation_of_information"),
        "without_model": ("clusters_breaking_family_rule", "dbscan_r14", "kmeans"),
        "wrapping": ("posterior_of_labels",),
    }

    def __getattr__(name):
        for home, names in _HOMES.items():
            if name in names:
                return getattr(import_module(f"{__name__}.{home}"), name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

    def __dir__():
        return sorted(__all__)

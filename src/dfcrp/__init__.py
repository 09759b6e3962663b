"""dfcrp merges several experts' lists of the same objects into one catalogue, with uncertainty.

The names below are loaded when first used, so that importing the package costs nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

__version__ = "0.3.0.dev0"

__all__ = [
    "DFCRP",
    "Explorer",
    "Items",
    "Posterior",
    "__version__",
    "baselines",
    "crp",
    "evaluate",
    "fit",
    "load",
    "point_partition",
    "prior",
    "read_items",
    "read_markings",
    "resume",
    "simulate",
    "update",
]

if TYPE_CHECKING:
    from dfcrp import baselines, simulate
    from dfcrp.estimator import DFCRP
    from dfcrp.evaluation.api import evaluate
    from dfcrp.fitting import fit, resume
    from dfcrp.fitting.update import update
    from dfcrp.io import read_items, read_markings
    from dfcrp.items.items import Items
    from dfcrp.posterior.posterior import Posterior
    from dfcrp.posterior.saving import load
    from dfcrp.priors.exact import crp
    from dfcrp.priors.exact import dfcrp as prior
    from dfcrp.report.inline import Explorer
    from dfcrp.summaries.point_partition import point_partition
else:
    # The same names with their homes; a type checker does not see __getattr__, which would let it
    # take any name for known.
    from importlib import import_module

    _HOMES = {
        "DFCRP": "dfcrp.estimator",
        "Explorer": "dfcrp.report.inline",
        "Items": "dfcrp.items.items",
        "read_items": "dfcrp.io",
        "read_markings": "dfcrp.io",
        "fit": "dfcrp.fitting",
        "resume": "dfcrp.fitting",
        "update": "dfcrp.fitting.update",
        "evaluate": "dfcrp.evaluation.api",
        "load": "dfcrp.posterior.saving",
        "Posterior": "dfcrp.posterior.posterior",
        "point_partition": "dfcrp.summaries.point_partition",
    }
    _MODULES = {
        "baselines": "dfcrp.baselines",
        "crp": "dfcrp.priors.exact.crp",
        "prior": "dfcrp.priors.exact.dfcrp",
        "simulate": "dfcrp.simulate",
    }

    def __getattr__(name):
        if name in _HOMES:
            return getattr(import_module(_HOMES[name]), name)
        if name in _MODULES:
            return import_module(_MODULES[name])
        raise AttributeError(f"module 'dfcrp' has no attribute {name!r}")

    def __dir__():
        return sorted(__all__)

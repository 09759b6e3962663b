"""dfcrp merges several experts' markings of one image into a catalogue, with uncertainty.

The names below are loaded when first used, so that importing the package costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

_HOMES = {
    "DFCRP": "dfcrp.estimator",
    "Items": "dfcrp.items.items",
    "read_items": "dfcrp.io.items",
    "read_markings": "dfcrp.io",
    "fit": "dfcrp.fitting",
    "resume": "dfcrp.runs.resuming",
    "load": "dfcrp.runs.folder",
    "Posterior": "dfcrp.posterior.posterior",
    "ImagesPosterior": "dfcrp.posterior.images",
    "point_partition": "dfcrp.summaries.point_partition",
}
_MODULES = ("baselines", "crp", "prior", "simulate")

__all__ = [
    "DFCRP",
    "ImagesPosterior",
    "Items",
    "Posterior",
    "__version__",
    "baselines",
    "crp",
    "fit",
    "load",
    "point_partition",
    "prior",
    "read_items",
    "read_markings",
    "resume",
    "simulate",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    if name in _MODULES:
        return import_module(f"dfcrp.{name}")
    raise AttributeError(f"module 'dfcrp' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)

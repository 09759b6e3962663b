"""Every prior over partitions, by name; one line each."""

from __future__ import annotations

from functools import lru_cache
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dfcrp.priors.base import Prior

#: Name and home. They are loaded when first asked for, so that listing them costs nothing.
HOMES = {
    "dfcrp": "dfcrp.priors.arrivals.prior:DFCRP",
    "constrained": "dfcrp.priors.arrivals.prior:CONSTRAINED",
    "crp": "dfcrp.priors.arrivals.prior:CRP",
    "attraction": "dfcrp.priors.attraction.prior:ATTRACTION",
    "detection": "dfcrp.priors.detection.prior:DETECTION",
}


@lru_cache
def prior_named(name: str) -> Prior:
    """The prior that ``run.prior`` names; the settings have checked the name."""
    module, _, attribute = HOMES[name].partition(":")
    found: Prior = getattr(import_module(module), attribute)
    return found

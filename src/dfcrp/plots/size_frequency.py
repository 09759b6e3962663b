"""Figure: the cumulative size-frequency distribution, N(≥ D)."""

from __future__ import annotations

from typing import Any

from dfcrp.plots.size_curves import draw_sizes, prepare_sizes
from dfcrp.posterior.posterior import Posterior
from dfcrp.posterior.size_frequency import SizeFrequency


def prepare_size_frequency(posterior: Posterior, **options: Any) -> SizeFrequency:
    """Options are ``min_experts``, ``binning``, ``dbscan`` and ``points``."""
    return prepare_sizes(posterior, "cumulative", **options)


def draw_size_frequency(table: SizeFrequency, ax: Any = None) -> Any:
    """Posterior band, DBSCAN and each expert on logarithmic scales."""
    return draw_sizes(table, ax)


def plot_size_frequency(
    posterior: Posterior, ax: Any = None, **options: Any
) -> tuple[SizeFrequency, Any]:
    """Prepare with ``options`` and draw."""
    table = prepare_size_frequency(posterior, **options)
    return table, draw_size_frequency(table, ax)

"""Size-frequency distributions: posterior band, each expert's own curve, and DBSCAN's.

With n objects in a bin of width w around D (the geometric mean of its edges), on an area A:

    cumulative     N(≥ D) / A
    differential   n / (w A)
    relative       D³ n / (w A), the R-plot's R

Each is computed in every draw, so that the band carries both which objects there are and how
large they are. Where no area is known, A is 1.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dfcrp.errors import InputError, SettingsError
from dfcrp.posterior.diameters import mean_diameters
from dfcrp.posterior.size_bins import bin_edges
from dfcrp.summaries.intervals import summarise

if TYPE_CHECKING:
    from dfcrp.posterior.posterior import Posterior

KINDS = ("cumulative", "differential", "relative")
#: The cumulative distribution may also be evaluated at this many diameters, without bins.
UNBINNED = "none"
POINTS = 200

Curve = NDArray[np.float64]


@dataclass(frozen=True)
class SizeFrequency:
    """One kind of distribution on one set of bins; all curves have a value for each."""

    kind: str
    binning: str
    #: Experts that an object of the posterior needs.
    min_experts: int
    #: Of the diameters: "km" where the scale is known.
    unit: str
    #: In km²; without it the curves are numbers of objects, not densities.
    area_km2: float | None
    #: Edges of each bin, equal without bins.
    d_min: Curve
    d_max: Curve
    mean: Curve
    lo: Curve
    hi: Curve
    #: √n of the posterior's mean number n, in the curve's own units: the error of a count.
    counting: Curve
    #: By number of items, fewest first, with their curves (experts, bins).
    experts: tuple[str, ...]
    by_expert: NDArray[np.float64]
    dbscan: Curve | None = None

    @property
    def diameter(self) -> Curve:
        """Where a value is drawn: at the lower edge if cumulative, else at the geometric mean."""
        return self.d_min if self.kind == "cumulative" else np.sqrt(self.d_min * self.d_max)

    def rows(self) -> Iterator[dict[str, Any]]:
        """One row for each curve and bin, as in size_frequency.csv."""
        curves: list[tuple[str, str, Curve, Any, Any]] = [
            ("posterior", "", self.mean, self.lo, self.hi)
        ]
        if self.dbscan is not None:
            curves.append(("dbscan", "", self.dbscan, None, None))
        for name, values in zip(self.experts, self.by_expert, strict=True):
            curves.append(("expert", name, values, None, None))
        for curve, expert, values, lo, hi in curves:
            for k, value in enumerate(values.tolist()):
                yield {
                    "kind": self.kind,
                    "binning": self.binning,
                    "min_experts": self.min_experts if curve != "expert" else "",
                    "unit": self.unit,
                    "area_km2": "" if self.area_km2 is None else self.area_km2,
                    "curve": curve,
                    "expert": expert,
                    "d_min": self.d_min[k],
                    "d_max": self.d_max[k],
                    "value": value,
                    "lo": "" if lo is None else lo[k],
                    "hi": "" if hi is None else hi[k],
                }


@dataclass(frozen=True)
class _Bins:
    """Where objects are counted, and what a count is multiplied by."""

    kind: str
    d_min: Curve
    d_max: Curve
    area: float
    factor: Curve = field(init=False)

    def __post_init__(self) -> None:
        if self.kind == "cumulative":
            factor = np.ones(len(self.d_min))
        else:
            factor = 1.0 / (self.d_max - self.d_min)
        if self.kind == "relative":
            factor = factor * (self.d_min * self.d_max) ** 1.5
        object.__setattr__(self, "factor", factor / self.area)

    def count(self, ascending: Curve) -> NDArray[np.int64]:
        """Objects in each bin, or of at least each diameter; an edge belongs to the bin above."""
        below: NDArray[np.int64] = np.searchsorted(ascending, self.d_min, side="left")
        if self.kind == "cumulative":
            return ascending.size - below
        return np.searchsorted(ascending, self.d_max, side="left") - below


def size_frequency(
    posterior: Posterior,
    kind: str = "cumulative",
    *,
    binning: str | None = None,
    min_experts: int | None = None,
    dbscan: ArrayLike | None = None,
    points: int = POINTS,
) -> SizeFrequency:
    """Tabulate a distribution; ``dbscan`` holds DBSCAN's labels of the items.

    ``binning`` is one of ``size_bins.BINNINGS``, by default "root-2"; the cumulative distribution
    is by default not binned ("none") but evaluated at ``points`` diameters.
    """
    if posterior.diameters is None:
        raise InputError(
            "size-frequency distributions are of diameters, which "
            f"{posterior.config.run.likelihood} do not have"
        )
    if kind not in KINDS:
        raise SettingsError(f"kind is {kind!r}; it must be one of {', '.join(KINDS)}")
    cumulative = kind == "cumulative"
    chosen = binning or (UNBINNED if cumulative else "root-2")
    if chosen == UNBINNED and not cumulative:
        raise SettingsError(f"the {kind} distribution needs bins, such as binning='root-2'")
    usual = posterior.config.summary.min_experts
    wanted = usual if min_experts is None else min_experts
    items, site = posterior.items, posterior.items.site
    km = site.km_per_diameter
    scale = 1.0 if km is None else km
    samples = [scale * draw for draw in posterior.consensus_diameters(wanted)]
    assert posterior.diameters is not None  # or else there would be no samples
    own = scale * posterior.diameters
    largest = max([own.max(), *(s[-1] for s in samples if s.size)])
    # Below the smallest item nothing was looked for, and the curve would end in a plateau.
    bins = _bins(kind, chosen, (float(own.min()), float(largest)), site.area_km2, points)
    counts = np.array([bins.count(draw) for draw in samples])
    band = summarise(counts * bins.factor)
    by_family = [np.sort(own[items.families == f]) for f in range(len(items.experts))]
    order = np.argsort([len(values) for values in by_family], kind="stable")
    return SizeFrequency(
        kind=kind,
        binning=chosen,
        min_experts=wanted,
        unit=site.units if km is None else "km",
        area_km2=site.area_km2,
        d_min=bins.d_min,
        d_max=bins.d_max,
        mean=band.mean,
        lo=band.lo,
        hi=band.hi,
        counting=np.sqrt(counts.mean(axis=0)) * bins.factor,
        experts=tuple(items.experts[f] for f in order),
        by_expert=np.array([bins.count(by_family[f]) * bins.factor for f in order]),
        dbscan=None
        if dbscan is None
        else bins.count(np.sort(mean_diameters(dbscan, own))) * bins.factor,
    )


def _bins(
    kind: str, binning: str, reach: Sequence[float], area_km2: float | None, points: int
) -> _Bins:
    smallest, largest = reach
    area = 1.0 if area_km2 is None else area_km2
    if binning == UNBINNED:
        grid = np.geomspace(smallest, max(largest, 1.01 * smallest), points)
        return _Bins(kind, grid, grid, area)
    edges = bin_edges(binning, smallest, largest)
    return _Bins(kind, edges[:-1], edges[1:], area)

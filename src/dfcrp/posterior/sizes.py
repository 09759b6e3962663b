"""How large the objects are: their diameters, size-frequency distributions, and model ages.

Each is computed in every draw, so that a band carries both which objects there are and how large
they are, and stands beside each expert's own curve. With n objects in a bin of width w around D
(the geometric mean of its edges), on an area A:

    cumulative     N(≥ D) / A
    differential   n / (w A)
    relative       D³ n / (w A), the R-plot's R

Where no area is known, A is 1.
"""

from __future__ import annotations

import dataclasses
import difflib
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dfcrp.craterstats import Ages, Dating, Isochrons, model_ages
from dfcrp.errors import InputError, SettingsError
from dfcrp.markup import plural
from dfcrp.runs.parts import least_by_looked
from dfcrp.settings.consensus import Least
from dfcrp.summaries.consensus import family_arrays, parameter_columns
from dfcrp.summaries.kernels.tables import count_experts
from dfcrp.summaries.streaming import Interval, kept, label_blocks, stride_for, summarise
from dfcrp.values import Array, Json

if TYPE_CHECKING:
    from dfcrp.posterior.posterior import Posterior


#: Bins in a decade, where they are all of one ratio.
_PER_DECADE = {"root-2": 2.0 / math.log10(2.0), "10/decade": 10.0, "20/decade": 20.0}
#: Edges of one decade of the pseudo-logarithmic binning of CraterStats.
_PSEUDO_LOG = (1, 1.1, 1.2, 1.3, 1.4, 1.5, 1.7, 2, 2.5, 3, 3.5, 4, 4.5, 5, 6, 7, 8, 9)
BINNINGS = ("pseudo-log", *_PER_DECADE)


def bin_edges(binning: str, smallest: float, largest: float) -> NDArray[np.float64]:
    """Ascending edges of the bins that hold diameters from the smallest to the largest.

    An edge lies at 1 in the unit of the diameters, so that counts in one unit share their bins.
    """
    if binning not in BINNINGS:
        near = difflib.get_close_matches(binning, BINNINGS, n=1)
        hint = f'; did you mean "{near[0]}"?' if near else "."
        raise SettingsError(
            f'there is no binning "{binning}"{hint} There are {", ".join(BINNINGS)}.'
        )
    low, high = math.log10(smallest), math.log10(largest)
    if binning == "pseudo-log":
        decades = np.arange(math.floor(low) - 1, math.ceil(high) + 1)
        edges = np.outer(10.0**decades, _PSEUDO_LOG).ravel()
    else:
        ratio = _PER_DECADE[binning]
        steps = np.arange(math.floor(low * ratio) - 1, math.ceil(high * ratio) + 2)
        edges = 10.0 ** (steps / ratio)
    # An edge belongs to the bin above it; what lies on one but for rounding does too.
    first = int(np.searchsorted(edges, smallest * (1.0 + 1e-12), side="right")) - 1
    last = int(np.searchsorted(edges, largest, side="right"))
    return edges[first : last + 1]


def consensus_diameters(
    posterior: Posterior, min_experts: Least, limit: int
) -> list[NDArray[np.float64]]:
    """Ascending diameters of the consensus clusters, for at most ``limit`` evenly spaced draws.

    A cluster's diameter is exp of its own log diameter or the mean of its members', as the
    settings say.
    """
    draws, diameters = posterior.draws, posterior.diameters
    if diameters is None:
        raise InputError(f"{plural(posterior.likelihood.noun)} have no diameter")
    parameter = posterior.likelihood.size_parameter()
    from_members = posterior.diameter_from == "members" or parameter is None
    column = 0 if from_members else int(parameter_columns(draws, (str(parameter),))[0])
    step = stride_for(draws, limit)
    codes, holder = family_arrays(posterior.items.families, draws.n_markings)
    experts = np.empty(draws.n_markings, np.int64)
    coverage = posterior.items.coverage
    least = least_by_looked(min_experts, coverage.n_experts)
    out = []
    for chain, start, stop, labels in label_blocks(draws):
        chosen = np.arange(stop - start)[kept(start, step)]
        block = None if from_members else draws.clusters(chain, start, stop)
        for d in chosen:
            count_experts(labels[d], codes, holder, experts)
            names = np.flatnonzero(experts >= least[coverage.looked_at(labels[d], codes)])
            if block is None:
                sizes = np.bincount(labels[d], minlength=len(experts))
                sums = np.bincount(labels[d], diameters, minlength=len(experts))
                found = sums[names] / sizes[names]
            else:
                rows = slice(block.offsets[d], block.offsets[d + 1])
                at = np.searchsorted(block.labels[rows], names)
                found = np.exp(block.parameters[rows, column][at].astype(np.float64))
            out.append(np.sort(found))
    return out


def mean_diameters(labels: ArrayLike, diameter: NDArray[np.float64]) -> NDArray[np.float64]:
    """The members' mean diameter of every cluster of one partition; label -1 is noise."""
    codes: Array = np.asarray(labels)
    if codes.shape != diameter.shape:
        raise InputError(
            f"the labels have shape {codes.shape}; there must be one for each of the "
            f"{len(diameter)} items"
        )
    clustered = codes >= 0
    _, cluster = np.unique(codes[clustered], return_inverse=True)
    means: NDArray[np.float64] = np.bincount(cluster, diameter[clustered]) / np.bincount(cluster)
    return means


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
    min_experts: Least
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
    #: What surfaces of several ages have, to be drawn beside it.
    isochrons: Isochrons | None = None

    @property
    def diameter(self) -> Curve:
        """Where a value is drawn: at the lower edge if cumulative, else at the geometric mean."""
        return self.d_min if self.kind == "cumulative" else np.sqrt(self.d_min * self.d_max)

    def rows(self) -> Iterator[Json]:
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
    min_experts: Least | None = None,
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


#: Quantiles by which the counting error of each draw's age enters the total.
_STEPS = 101


@dataclass(frozen=True)
class ModelAges:
    """Ages in Ga of the consensus objects of every draw, and of each expert's markings."""

    dating: Dating
    min_experts: Least
    draws: Ages
    #: By number of markings, fewest first.
    experts: tuple[str, ...]
    by_expert: Ages

    @property
    def matching(self) -> Interval:
        """Over the draws: what is not known about which craters there are, and how large."""
        return summarise(self.draws.age)

    @property
    def total(self) -> Interval:
        """That, and the error of counting so many craters."""
        return summarise(self.with_counting_error())

    def with_counting_error(self) -> NDArray[np.float64]:
        """Ages that stand for the mixture over draws of CraterStats' own error of each.

        Of it the median and one standard error either way are known: it is taken for two halves
        of normal laws, joined at the median.
        """
        from scipy.special import ndtri

        z = ndtri((np.arange(_STEPS) + 0.5) / _STEPS)[:, np.newaxis]
        found = self.draws
        spread = np.where(z < 0, found.age - found.low, found.high - found.age)
        ages = (found.age + z * spread).ravel()
        return ages[np.isfinite(ages)]

    def to_json(self) -> Json:
        """The numbers of the report, as in ages.json."""

        def numbers(found: Interval) -> dict[str, float]:
            return {name: float(getattr(found, name)) for name in ("mean", "lo", "hi")}

        found, dated = self.by_expert, np.isfinite(self.draws.age)
        return {
            "dating": dataclasses.asdict(self.dating),
            "min_experts": self.min_experts,
            "draws": len(dated),
            "undated": int((~dated).sum()),
            "craters": float(self.draws.craters.mean()),
            "posterior": numbers(self.matching) if dated.any() else None,
            "with_counting_error": numbers(self.total) if dated.any() else None,
            "experts": [
                {
                    "name": name,
                    "craters": int(found.craters[k]),
                    **{
                        end: None if np.isnan(v := getattr(found, end)[k]) else float(v)
                        for end in ("age", "low", "high")
                    },
                }
                for k, name in enumerate(self.experts)
            ],
        }

    def rows(self) -> Iterator[Json]:
        """One row for each draw and each expert, as in ages.csv."""
        numbers = [str(k + 1) for k in range(len(self.draws.age))]
        for kind, names, ages in (
            ("draw", numbers, self.draws),
            ("expert", self.experts, self.by_expert),
        ):
            for k, name in enumerate(names):
                yield {
                    "kind": kind,
                    "name": name,
                    "min_experts": self.min_experts if kind == "draw" else "",
                    "craters": int(ages.craters[k]),
                    **{
                        f"{field}_ga": float(getattr(ages, field)[k])
                        for field in ("age", "low", "high")
                    },
                    "n1_per_km2": float(ages.density[k]),
                }


def posterior_ages(
    posterior: Posterior,
    command: str,
    dating: Dating,
    *,
    draws: int = 200,
    min_experts: Least | None = None,
    keep: Path | None = None,
) -> ModelAges:
    """Date ``draws`` evenly spaced draws and every expert's markings with ``command``."""
    if draws < 1:
        raise SettingsError(f"the number of draws is {draws}; it must be at least 1")
    markings = posterior.markings
    km = markings.site.km_per_diameter
    if km is None:
        raise SettingsError(
            "ages need diameters in km, the data are in pixels; give --metres-per-pixel"
        )
    wanted = posterior.config.summary.min_experts if min_experts is None else min_experts
    samples = [km * found for found in posterior.consensus_diameters(wanted, draws)]
    own = [np.sort(markings.diameter[markings.families == f]) for f in range(len(markings.experts))]
    order = np.argsort([len(values) for values in own], kind="stable")
    counts = [*samples, *(km * own[f] for f in order)]
    found = model_ages(command, counts, dating, keep)
    parts = [
        Ages(**{field.name: getattr(found, field.name)[part] for field in dataclasses.fields(Ages)})
        for part in (slice(len(samples)), slice(len(samples), None))
    ]
    names = tuple(markings.experts[f] for f in order)
    return ModelAges(dating, wanted, parts[0], names, parts[1])

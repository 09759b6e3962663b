"""The catalogue: one row for each cluster of the point partition, with its uncertainty."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dfcrp.draws import Draws
from dfcrp.errors import InputError
from dfcrp.geometry import TangentPlanes
from dfcrp.markup import counted, estimate_of
from dfcrp.summaries.consensus import family_arrays, parameter_columns
from dfcrp.summaries.kernels.tables import gather_parameters, represent_clusters
from dfcrp.summaries.membership import Membership
from dfcrp.summaries.point_partition import members_by_cluster
from dfcrp.summaries.streaming import LEVEL, kept, label_blocks, stride_for
from dfcrp.values import Array, Json

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Centre:
    """What describes an object, and how it follows from the parameters of a cluster."""

    quantities: tuple[str, ...]
    #: Cluster parameters as they are stored with the draws.
    parameters: tuple[str, ...]
    #: From parameters (p, ...) to quantities (q, ...).
    describe: Callable[[Floats], Floats]
    #: Quantities that begin again after so much, as angles do.
    periods: Mapping[str, float] = field(default_factory=dict)
    #: Parameters to be added to the first ones, where single precision does not do for them; other
    #: methods' draws may lack them.
    rest: tuple[str, ...] = ()

    def rest_in(self, draws: Draws) -> tuple[str, ...]:
        """Those of ``rest`` that are stored with these draws."""
        return tuple(name for name in self.rest if name in draws.columns.parameters)


#: A list that differs by more than this share from the draws' number of objects is far from it.
FAR = 0.05
#: Draws, and draws times clusters, that are kept for the intervals.
MAX_DRAWS = 4_000
MAX_VALUES = 8_000_000


def catalogue(
    draws: Draws,
    labels: NDArray[np.int32],
    members: Membership,
    *,
    families: NDArray[np.int64],
    expert_names: Sequence[str],
    min_experts: int | NDArray[np.int64] = 5,
    centre: Centre | None = None,
    described: Mapping[str, Any] | None = None,
    ground: TangentPlanes | None = None,
) -> dict[str, Array]:
    """Columns of the catalogue, in order; ``labels`` is the point partition.

    In each draw a cluster of the point partition is represented by the draw's cluster that
    holds most of its members (the smallest label among equals). What ``centre`` describes (of
    circles position and diameter) is the posterior mean, standard deviation and 95 % interval of
    the representative's; ``p_consensus`` is the share of draws in which the representative
    has at least ``min_experts`` experts and stands for no other cluster of which it holds more.
    ``min_experts`` may differ between clusters, of which not equally many experts saw the place.

    On a sphere ``ground`` has a plane for each cluster, in which means and spreads are taken.
    """
    codes, _ = family_arrays(families, draws.n_markings)
    if len(expert_names) <= int(codes.max()):
        raise InputError(f"{int(codes.max()) + 1} experts, but {len(expert_names)} names")
    names, order, offsets = members_by_cluster(labels)
    table: dict[str, Array] = {"cluster": names, **(described or {})}
    if centre is None:
        agreed = consensus_draws(draws, labels, families, [min_experts])[0]
        p_consensus = agreed / (draws.n_chains * draws.n_draws)
    else:
        moments = _Moments(len(names), draws, centre)
        for start, values, experts in _representatives(draws, order, offsets, codes, centre):
            if ground is not None:
                values[0], values[1] = ground.offsets(values[0], values[1])
            moments.add(start, values, experts >= min_experts)
        columns = moments.columns()
        table.update(columns if ground is None else in_degrees(columns, ground))
        p_consensus = moments.consensus / moments.n
    held = [np.unique(codes[order[a:b]]) for a, b in pairwise(offsets)]
    table["n_experts"] = np.array([len(f) for f in held])
    table["p_consensus"] = p_consensus
    table["experts"] = np.array([join_names([expert_names[c] for c in f]) for f in held])
    table["stability"] = members.stability
    return table


def consensus_draws(
    draws: Draws,
    labels: NDArray[np.int32],
    families: NDArray[np.int64],
    thresholds: Sequence[int | NDArray[np.int64]],
) -> NDArray[np.int64]:
    """In how many draws a cluster is shared by at least so many experts: (thresholds, clusters).

    Divided by the number of draws it is the catalogue's ``p_consensus`` for each threshold.
    """
    codes, holder = family_arrays(families, draws.n_markings)
    _, order, offsets = members_by_cluster(labels)
    found = np.zeros((len(thresholds), len(offsets) - 1), np.int64)
    for _, start, stop, block in label_blocks(draws):
        shape = (stop - start, len(offsets) - 1)
        experts = np.empty(shape, np.int64)
        represent_clusters(block, order, offsets, codes, holder, np.empty(shape, np.int32), experts)
        for m, least in enumerate(thresholds):
            found[m] += (experts >= least).sum(axis=0)
    return found


def listed_words(summary: Json, min_experts: int | str, noun: str) -> str:
    """How many objects the catalogue has, and why the posterior's number is another.

    Where some may be false marks they are called clusters. ``min_experts`` may be a share, as in
    "60%".
    """
    listed = summary["catalogue"]
    agreed = f", {listed['consensus']:,} of them by "
    what = "cluster" if "real" in listed else "object"
    if "real" in listed:
        agreed = f", {listed['real']:,} of them more likely real than not"
    elif isinstance(min_experts, str):
        agreed += f"{min_experts.replace('%', ' %')} or more of those who looked"
    elif 1 < min_experts <= summary["n_experts"]:
        agreed += f"{min_experts} or more experts"
    else:
        agreed = ""
    words = (
        f"The catalogue lists {counted(listed['n_clusters'], what)}{agreed}. It is a point "
        f"estimate: each {noun} is assigned once. "
    )
    far = far_from_counts(summary, min_experts)
    if far is None:
        return words + (
            "Numbers with an interval average over all draws, so they may differ a little from "
            "the list."
        )
    return words + (
        f"It is far from what the draws say: {far.listed:,} {far.what} are listed, the draws have "
        f"{far.shown}, {far.percent:.0f} % {far.more}. No single list "
        "stands for draws that differ so much from each other: to say how many there are, "
        "use the numbers with an interval. See which items are undecided; a longer run may help."
    )


class FarOff(NamedTuple):
    """A number of the list that is far from the draws' own."""

    what: str
    listed: int
    mean: float
    #: The draws' number with its interval, and by how much it is off.
    shown: str
    percent: float

    @property
    def more(self) -> str:
        """Whether the draws have more."""
        return "fewer" if self.listed > self.mean else "more"


def far_from_counts(summary: Json, min_experts: int | str) -> FarOff | None:
    """The number of the list that is furthest from the draws' own; None if all are near.

    It must lie outside the interval, and by more than FAR from the mean.
    """
    listed = summary["catalogue"]
    what = "clusters" if "real" in listed else "objects"
    compared = [(what, listed["n_clusters"], summary["n_clusters"])]
    if "real" in listed:
        compared.append(("real objects", listed["real"], summary["n_objects"]))
    else:
        compared += [
            ("objects with enough experts", listed["consensus"], row)
            for row in summary["consensus"]
            if row["min_experts"] == min_experts and row["size_class"] == "all"
        ]
    found = []
    for what, number, count in compared:
        off = abs(number - count["mean"]) / max(number, 1)
        if off > FAR and not count["lo"] <= number <= count["hi"]:
            shown = str(estimate_of(count))
            found.append(FarOff(what, number, count["mean"], shown, 100.0 * off))
    return max(found, key=lambda one: one.percent, default=None)


def join_names(names: Sequence[str]) -> str:
    """Names joined by ";"; one that holds a ";" or a quote is quoted, as in CSV."""
    out = io.StringIO()
    csv.writer(out, delimiter=";", lineterminator="").writerow(names)
    return out.getvalue()


def _representatives(
    draws: Draws,
    order: NDArray[np.int64],
    offsets: NDArray[np.int64],
    families: NDArray[np.int64],
    centre: Centre,
) -> Iterator[tuple[int, NDArray[np.float64], NDArray[np.int64]]]:
    """Block by block (start, values (q, draws, clusters), experts (draws, clusters))."""
    rest = centre.rest_in(draws)
    columns = parameter_columns(draws, (*centre.parameters, *rest))
    codes, holder = family_arrays(families, draws.n_markings)
    for chain, start, stop, labels in label_blocks(draws):
        block = draws.clusters(chain, start, stop)
        shape = (stop - start, len(offsets) - 1)
        chosen = np.empty(shape, np.int32)
        experts = np.empty(shape, np.int64)
        represent_clusters(labels, order, offsets, codes, holder, chosen, experts)
        values = np.empty((len(columns), *shape))
        gather_parameters(
            chosen,
            np.require(block.offsets, np.int64, ["C", "W"]),
            np.require(block.labels, np.int32, ["C", "W"]),
            np.require(block.parameters, np.float32, ["C", "W"]),
            columns,
            values,
        )
        if rest:
            values[: len(rest)] += values[-len(rest) :]
            values = values[: -len(rest)]
        yield start, centre.describe(values), experts


def in_degrees(columns: dict[str, Array], ground: TangentPlanes) -> dict[str, Array]:
    """Places east and north of the points of contact, in km, as longitude and latitude.

    Spreads are turned into degrees where the place is; ends of intervals run on across ±180°.
    """
    longitude, latitude = ground.places(columns["x"], columns["y"])
    # Up to 180° or up to 360°, as the data count.
    longitude += 360.0 * np.round((ground.longitude - longitude) / 360.0)
    # At a pole nothing is known about the longitude.
    shrunk = np.maximum(np.cos(np.radians(latitude)), 1e-9)
    found = dict(columns)
    for name, middle, scale in (
        ("x", longitude, ground.radius * shrunk),
        ("y", latitude, ground.radius),
    ):
        found[name] = middle
        found[f"{name}_sd"] = np.minimum(np.degrees(columns[f"{name}_sd"] / scale), 180.0)
        for end in (f"{name}_lo", f"{name}_hi"):
            away = np.degrees((columns[end] - columns[name]) / scale)
            found[end] = middle + np.clip(away, -180.0, 180.0)
    return found


class _Moments:
    """Running mean and spread over all draws; samples of evenly spaced ones for quantiles."""

    def __init__(self, n_clusters: int, draws: Draws, centre: Centre) -> None:
        self.n = 0
        self.centre = centre
        self.shift: NDArray[np.float64] | None = None
        self.sum = np.zeros((len(centre.quantities), n_clusters))
        self.squares = np.zeros_like(self.sum)
        self.consensus = np.zeros(n_clusters)
        self.step = stride_for(draws, min(MAX_DRAWS, MAX_VALUES // n_clusters))
        self.samples: list[NDArray[np.float32]] = []

    def add(self, start: int, values: NDArray[np.float64], agreed: NDArray[np.bool_]) -> None:
        """Take in a block of draws that begins at ``start`` of its chain."""
        if self.shift is None:
            # sums of deviations from a typical value do not cancel
            self.shift = values.mean(axis=1)
            turning = [self.centre.quantities.index(name) for name in self.centre.periods]
            self.shift[turning] = values[turning, 0]
        for name, period in self.centre.periods.items():
            q = self.centre.quantities.index(name)
            turned = values[q] - self.shift[q]
            values[q] = self.shift[q] + (turned + period / 2.0) % period - period / 2.0
        deviation = values - self.shift[:, np.newaxis]
        self.sum += deviation.sum(axis=1)
        self.squares += (deviation**2).sum(axis=1)
        self.consensus += agreed.sum(axis=0)
        self.n += values.shape[1]
        self.samples.append(deviation[:, kept(start, self.step)].astype(np.float32))

    def columns(self) -> dict[str, NDArray[np.float64]]:
        """Mean, _sd, _lo and _hi of each quantity."""
        assert self.shift is not None
        mean = self.sum / self.n
        variance = np.maximum(self.squares - self.n * mean**2, 0.0) / max(self.n - 1, 1)
        tails = [(1.0 - LEVEL) / 2.0, (1.0 + LEVEL) / 2.0]
        lo, hi = np.quantile(np.concatenate(self.samples, axis=1), tails, axis=1)
        table = {}
        for q, name in enumerate(self.centre.quantities):
            table[name] = self.shift[q] + mean[q]
            table[f"{name}_sd"] = np.sqrt(variance[q])
            # Ends come from some of the draws, in single precision; they hold the mean.
            table[f"{name}_lo"] = self.shift[q] + np.minimum(lo[q], mean[q])
            table[f"{name}_hi"] = self.shift[q] + np.maximum(hi[q], mean[q])
        return table

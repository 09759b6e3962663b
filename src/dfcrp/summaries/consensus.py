"""How many objects do at least m experts agree on, in each draw, by size class."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from dfcrp.draws import Draws
from dfcrp.errors import InputError, SettingsError
from dfcrp.summaries.kernels.tables import consensus_by_members, consensus_by_mu
from dfcrp.summaries.looked import Coverage, WhoLooked, who_looked
from dfcrp.summaries.streaming import Interval, label_blocks, summarise
from dfcrp.values import Json

DIAMETERS = ("mu", "members")


#: The paper's size classes, in pixels.
PAPER_EDGES = (50.0, 100.0)
#: A class of the paper's with a smaller share of the items says nothing.
LEAST_SHARE = 0.01
#: Numbers that are easily read, times any power of ten.
ROUND = (1.0, 1.2, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0)


def choose_edges(diameters: NDArray[np.float64], classes: int) -> tuple[float, ...]:
    """Edges of so many size classes: the paper's if each has items, else about equal shares.

    Shares are those of the items, and edges are numbers that are easily read.
    """
    if classes < 2:
        return ()
    if classes == len(PAPER_EDGES) + 1:
        held = np.bincount(np.searchsorted(PAPER_EDGES, diameters, side="right"), minlength=classes)
        if (held >= max(LEAST_SHARE * len(diameters), 1.0)).all():
            return PAPER_EDGES
    cuts = np.quantile(diameters, np.arange(1, classes) / classes)
    first, last = np.floor(np.log10(cuts[[0, -1]]))
    powers = 10.0 ** np.arange(first - 1.0, last + 2.0 + classes)
    scale = np.outer(powers, ROUND).ravel()
    edges: list[float] = []
    for cut in cuts:
        left = scale[scale > (edges[-1] if edges else 0.0)]
        edges.append(float(f"{left[np.argmin(np.abs(np.log(left / cut)))]:.2g}"))
    return tuple(edges)


@dataclass(frozen=True)
class SizeClasses:
    """Classes of diameter: below the first edge, between edges, from the last edge on.

    The paper's small class begins at 18 px because its data do: the lowest class takes
    everything below the first edge. ``SizeClasses.none()`` counts all clusters together.
    """

    edges: tuple[float, ...] = PAPER_EDGES
    names: tuple[str, ...] = ("small", "medium", "large")
    #: What diameters are given in; empty if that is not known.
    unit: str = ""

    def __post_init__(self) -> None:
        expected = len(self.edges) + 1 if self.edges else 0
        if len(self.names) != expected:
            raise SettingsError(
                f"{len(self.edges)} size-class edges need {expected} names, not {len(self.names)}"
            )
        if any(b <= a for a, b in zip(self.edges[:-1], self.edges[1:], strict=True)):
            raise SettingsError(f"size-class edges {self.edges} must increase")
        if "all" in self.names:
            raise SettingsError('a size class cannot be called "all"; that is the total')

    @classmethod
    def none(cls) -> SizeClasses:
        """No classes: only the total."""
        return cls(edges=(), names=())

    @property
    def columns(self) -> tuple[str, ...]:
        """The total and the classes, as they are counted."""
        return ("all", *self.names)

    @property
    def bounds(self) -> tuple[str, ...]:
        """What each class means: "below 50", "50 to 100", "100 and more"; empty without classes."""
        if not self.edges:
            return ()
        unit = f" {self.unit}" if self.unit else ""
        between = [f"{low:g} to {high:g}{unit}" for low, high in pairwise(self.edges)]
        first, last = self.edges[0], self.edges[-1]
        return (f"below {first:g}{unit}", *between, f"{last:g}{unit} and more")

    @property
    def described(self) -> dict[str, str]:
        """The total and the classes in words: "small (below 50)"."""
        named = zip(self.names, self.bounds, strict=True)
        return {"all": "all", **{name: f"{name} ({bounds})" for name, bounds in named}}


@dataclass(frozen=True)
class ConsensusCounts:
    """Clusters with at least m experts in every draw."""

    #: Numbers of experts, or shares of those who looked, as in "60%".
    min_experts: tuple[int | str, ...]
    #: "all", then the size classes.
    size_classes: tuple[str, ...]
    #: (chains, draws, min_experts, size_classes)
    counts: NDArray[np.int64]

    def interval(self) -> Interval:
        """Mean and 95 % interval, each of shape (min_experts, size_classes)."""
        return summarise(self.counts.reshape(-1, *self.counts.shape[2:]))

    def rows(self) -> list[Json]:
        """As in summary.json: one row for each threshold and class."""
        interval = self.interval()
        return [
            {"min_experts": m, "size_class": name, **interval[a, b].as_dict()}
            for a, m in enumerate(self.min_experts)
            for b, name in enumerate(self.size_classes)
        ]

    def series(self) -> dict[str, NDArray[np.int64]]:
        """Each count's chains, (chains, draws), under a readable name."""
        return {
            f"clusters of at least {_experts(m)}{f', {name}' if b else ''}": self.counts[:, :, a, b]
            for a, m in enumerate(self.min_experts)
            for b, name in enumerate(self.size_classes)
        }


def _experts(least: int | str) -> str:
    """ "5 experts", "60 % of experts"."""
    if isinstance(least, str):
        return f"{least.replace('%', ' %')} of experts"
    return "1 expert" if least == 1 else f"{least} experts"


def consensus_counts(
    draws: Draws,
    min_experts: Sequence[int] = (4, 5, 6),
    size_classes: SizeClasses | None = None,
    diameter: str = "mu",
    *,
    families: NDArray[np.int64] | None = None,
    diameters: NDArray[np.float64] | None = None,
    parameter: str = "log_diameter",
    looks: tuple[Coverage, NDArray[np.int64]] | None = None,
) -> ConsensusCounts:
    """Count, in every draw, the clusters with at least m experts in each size class.

    A cluster's diameter is exp of its own log diameter (``diameter="mu"``; the cluster parameter
    named ``parameter``) or the mean of its members' ``diameters`` (``"members"``). ``families``
    tells the experts apart; without them every member counts as one expert, which is the same thing
    under the rule that an expert lists an object once.

    ``looks``: who looked where, and the experts that are needed instead of each of ``min_experts``
    by how many looked at the cluster's place, (min_experts, 1 + experts).
    """
    classes = SizeClasses() if size_classes is None else size_classes
    if diameter not in DIAMETERS:
        near = difflib.get_close_matches(diameter, DIAMETERS, n=1, cutoff=0.0)[0]
        raise SettingsError(f'unknown diameter "{diameter}"; did you mean "{near}"?')
    if not classes.edges:
        diameter, diameters = "members", np.zeros(draws.n_markings)
    thresholds = np.asarray(min_experts, np.int64)
    edges = np.asarray(classes.edges, np.float64)
    codes, holder = family_arrays(families, draws.n_markings)
    shape = (draws.n_chains, draws.n_draws, len(thresholds), len(classes.columns))
    counts = np.zeros(shape, np.int64)
    if diameter == "members" and diameters is None:
        raise InputError('size classes by "members" need the diameters of the markings')
    if looks is not None:
        column = -1 if diameter == "members" else int(parameter_columns(draws, (parameter,))[0])
        for chain, start, stop, labels in label_blocks(draws):
            who = who_looked(looks[0], labels, codes)
            if diameter == "members":
                sizes = _mean_by_cluster(who, labels, np.asarray(diameters, np.float64))
            else:
                block = draws.clusters(chain, start, stop)
                sizes = np.exp(block.parameters[:, column].astype(np.float64))
            _count_where_looked(who, sizes, edges, looks[1], counts[chain, start:stop])
    elif diameter == "members":
        own = np.ascontiguousarray(diameters, np.float64)
        for chain, start, stop, labels in label_blocks(draws):
            out = counts[chain, start:stop]
            consensus_by_members(labels, own, codes, edges, thresholds, holder, out)
    else:
        column = parameter_columns(draws, (parameter,))[0]
        for chain, start, stop, labels in label_blocks(draws):
            block = draws.clusters(chain, start, stop)
            log_diameters = block.parameters[:, column].astype(np.float64)
            rows = np.require(block.offsets, np.int64, ["C", "W"])
            names = np.require(block.labels, np.int32, ["C", "W"])
            out = counts[chain, start:stop]
            consensus_by_mu(
                labels, rows, names, log_diameters, codes, edges, thresholds, holder, out
            )
    return ConsensusCounts(tuple(int(m) for m in thresholds), classes.columns, counts)


def _mean_by_cluster(
    who: WhoLooked, labels: NDArray[np.int32], values: NDArray[np.float64]
) -> NDArray[np.float64]:
    """The mean of the members of every cluster."""
    n, code = labels.shape[1], np.arange(len(labels))[:, np.newaxis] * labels.shape[1] + labels
    row = np.searchsorted(who.draw * n + who.name, code.ravel())
    total = np.bincount(row, np.tile(values, len(labels)), minlength=len(who.name))
    return np.asarray(total / np.bincount(row, minlength=len(who.name)))


def _count_where_looked(
    who: WhoLooked,
    diameters: NDArray[np.float64],
    edges: NDArray[np.float64],
    least: NDArray[np.int64],
    out: NDArray[np.int64],
) -> None:
    """Add clusters to ``out`` (draws, min_experts, classes)."""
    size_class = np.searchsorted(edges, diameters, side="right") + 1
    experts, looked = who.experts, who.looked
    for m, needed in enumerate(least):
        agreed = experts >= needed[looked]
        np.add.at(out[:, m, 0], who.draw[agreed], 1)
        if edges.size:
            np.add.at(out[:, m], (who.draw[agreed], size_class[agreed]), 1)


def family_arrays(
    families: NDArray[np.int64] | None, n: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Family codes, and what ``count_experts`` calls holder; both empty without families."""
    if families is None:
        return np.zeros(0, np.int64), np.zeros((2, 0), np.int64)
    codes = np.require(families, np.int64, ["C", "W"])
    if codes.shape != (n,) or codes.min() < 0:
        raise InputError(f"families must be {n} codes from 0 on, one for each marking")
    return codes, np.stack((np.argsort(codes, kind="stable"), np.zeros(n, np.int64)))


def parameter_columns(draws: Draws, names: Sequence[str]) -> NDArray[np.int64]:
    """Where these cluster parameters are; an error if the draws do not have them."""
    missing = [name for name in names if name not in draws.columns.parameters]
    if missing:
        raise InputError(
            f"these draws have no cluster parameter {', '.join(missing)}: "
            "they hold labels only, or were fitted to other features"
        )
    return np.array([draws.columns.parameters.index(name) for name in names], np.int64)


def rest_names(draws: Draws) -> tuple[str, ...]:
    """What is to be added to x and y, where single precision does not do for them."""
    return ("x_rest", "y_rest") if "x_rest" in draws.columns.parameters else ()

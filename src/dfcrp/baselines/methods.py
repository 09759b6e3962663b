"""Every method behind one interface: markings in, a Posterior out; and what each one offers."""

from __future__ import annotations

import difflib
import importlib.util
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from dfcrp.baselines.relatives import (
    Pairs,
    alpha_of,
    check_length,
    constrained_crp,
    distance_dependent_crp,
    model_of,
)
from dfcrp.baselines.without_model import dbscan_r14, kmeans
from dfcrp.baselines.wrapping import posterior_of_labels
from dfcrp.errors import DfcrpWarning, SettingsError
from dfcrp.fitting import fit
from dfcrp.items.items import Items
from dfcrp.posterior.posterior import Posterior
from dfcrp.priors.registry import HOMES as PRIORS


@dataclass(frozen=True)
class Offers:
    """The paper's four criteria (its table of methods): what a method claims to do."""

    unspecified_k: bool
    any_features: bool
    uncertainty: bool
    expert_structure: bool


class Method(Protocol):
    """One way to merge the lists."""

    @property
    def name(self) -> str:
        """Short name, as on the command line."""
        ...

    @property
    def title(self) -> str:
        """The name of the method in tables and figures."""
        ...

    @property
    def offers(self) -> Offers:
        """What the method claims to do."""
        ...

    def fit(self, markings: Items) -> Posterior:
        """Cluster the markings; a method without uncertainty gives a single draw."""
        ...

    def counts(
        self, posterior: Posterior, min_experts: Sequence[int]
    ) -> dict[tuple[int, str], float]:
        """(Mean) number of clusters by threshold and size class."""
        ...


def mean_counts(posterior: Posterior, min_experts: Sequence[int]) -> dict[tuple[int, str], float]:
    """Posterior mean number of clusters with at least so many different experts."""
    wanted = tuple(min_experts)
    found = posterior.consensus_counts(wanted)
    means = found.counts.mean(axis=(0, 1))
    return {
        (threshold, name): float(means[row, column])
        for row, threshold in enumerate(wanted)
        for column, name in enumerate(found.size_classes)
    }


@dataclass(frozen=True)
class Length:
    """How long the samplers run, from which seed, with whose hyperparameters."""

    chains: int = 2
    scans: int = 2000
    burn_in: int = 500
    radius: float | str | None = "auto"
    preset: str | None = None
    seed: int = 1
    #: Settings of the summaries, passed on to all methods alike.
    summary: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_length(self.chains, self.scans, self.burn_in)
        if self.radius == "none":
            object.__setattr__(self, "radius", None)


@dataclass(frozen=True)
class Mixture:
    """The mixture model under one of the partition priors, by the main sampler."""

    name: str
    title: str
    prior: str
    offers: Offers
    length: Length = field(default_factory=Length)

    def fit(self, markings: Items) -> Posterior:
        """``dfcrp.fit`` with this prior."""
        length = self.length
        return fit(
            markings,
            config={"summary": dict(length.summary)},
            prior=self.prior,
            chains=length.chains,
            scans=length.scans,
            burn_in=length.burn_in,
            radius=length.radius,
            preset=length.preset,
            seed=length.seed,
        )

    counts = staticmethod(mean_counts)


@dataclass(frozen=True)
class DistanceDependent:
    """The distance dependent CRP."""

    length: Length = field(default_factory=Length)
    alpha: float = 1.0
    decay: float = 0.25
    reach: float = 1.0
    name: str = "ddcrp"
    title: str = "distance dependent CRP"
    offers: Offers = Offers(True, True, True, False)

    def fit(self, markings: Items) -> Posterior:
        """Gibbs sampling over links."""
        length = self.length
        begun = time.monotonic()
        labels = distance_dependent_crp(
            markings,
            chains=length.chains,
            scans=length.scans,
            burn_in=length.burn_in,
            alpha=self.alpha,
            decay=self.decay,
            reach=self.reach,
            model=model_of(length.preset),
            seed=length.seed,
        )
        return posterior_of_labels(
            labels, markings, seconds=time.monotonic() - begun, **length.summary
        )

    counts = staticmethod(mean_counts)


@dataclass(frozen=True)
class LinkConstrained:
    """The constrained Dirichlet process with any must-link and cannot-link pairs."""

    must_link: Pairs = ()
    cannot_link: Pairs = ()
    families: bool = True
    length: Length = field(default_factory=Length)
    name: str = "links"
    title: str = "C-DPM with given links"

    @property
    def offers(self) -> Offers:
        """Expert structure only as long as the families are cannot-links."""
        return Offers(True, True, True, self.families)

    def fit(self, markings: Items) -> Posterior:
        """Gibbs sampling over blocks of markings that must be together."""
        length = self.length
        begun = time.monotonic()
        labels = constrained_crp(
            markings,
            must_link=self.must_link,
            cannot_link=self.cannot_link,
            families=self.families,
            chains=length.chains,
            scans=length.scans,
            burn_in=length.burn_in,
            radius=length.radius,
            model=model_of(length.preset),
            alpha=alpha_of(length.preset),
            seed=length.seed,
        )
        return posterior_of_labels(
            labels,
            markings,
            keeps_family_rule=self.families,
            seconds=time.monotonic() - begun,
            **length.summary,
        )

    counts = staticmethod(mean_counts)


@dataclass(frozen=True)
class DbscanR14:
    """DBSCAN as Robbins et al. used it."""

    length: Length = field(default_factory=Length)
    distance: float = 0.25
    diameter: float = 0.5
    min_points: int = 5
    name: str = "dbscan"
    title: str = "DBSCAN (R14)"
    offers: Offers = Offers(True, False, False, False)

    def fit(self, markings: Items) -> Posterior:
        """One partition; markings called noise are alone."""
        begun = time.monotonic()
        labels = self._labels(markings, self.min_points)
        summary = {"diameter": "members", **self.length.summary}
        return posterior_of_labels(labels, markings, seconds=time.monotonic() - begun, **summary)

    def counts(
        self, posterior: Posterior, min_experts: Sequence[int]
    ) -> dict[tuple[int, str], float]:
        """Clusters of the run with the threshold as minimum number of points.

        As in R14, whose threshold it is: a cluster counts whether or not its markings are by so
        many different experts.
        """
        found = {}
        for threshold in min_experts:
            labels = self._labels(posterior.markings, threshold)
            kept = labels >= 0
            size = np.bincount(labels[kept])
            mean = np.bincount(labels[kept], posterior.markings.diameter[kept]) / size
            classes = posterior.size_classes
            edges = [-np.inf, *classes.edges, np.inf]
            found[threshold, "all"] = float(mean.size)
            if classes.names:
                numbers = np.histogram(mean, edges)[0]
                found.update(
                    {
                        (threshold, name): float(n)
                        for name, n in zip(classes.names, numbers, strict=True)
                    }
                )
        return found

    def _labels(self, markings: Items, min_points: int) -> Any:
        return dbscan_r14(markings, self.distance, self.diameter, min_points)


@dataclass(frozen=True)
class KMeans:
    """k-means, k by the silhouette unless given."""

    length: Length = field(default_factory=Length)
    k: int | None = None
    name: str = "kmeans"
    title: str = "k-means"

    @property
    def offers(self) -> Offers:
        """The number of clusters is open only as far as the silhouette chooses it."""
        return Offers(self.k is None, True, False, False)

    def fit(self, markings: Items) -> Posterior:
        """One partition."""
        begun = time.monotonic()
        labels = kmeans(markings, self.k, model=model_of(self.length.preset), seed=self.length.seed)
        summary = {"diameter": "members", **self.length.summary}
        return posterior_of_labels(labels, markings, seconds=time.monotonic() - begun, **summary)

    counts = staticmethod(mean_counts)


#: Methods that take places for a plane.
IN_A_PLANE = (KMeans, DistanceDependent, LinkConstrained)


def _mixture(name: str, title: str, prior: str, expert_structure: bool) -> Callable[..., Method]:
    offers = Offers(True, True, True, expert_structure)
    return lambda length: Mixture(name, title, prior, offers, length)


#: Known methods by name, in the order of the paper's table; each is made from a Length.
METHODS: dict[str, Callable[[Length], Method]] = {
    "kmeans": KMeans,
    "dbscan": DbscanR14,
    "constrained": _mixture("constrained", "C-DPM", "constrained", True),
    "crp": _mixture("crp", "CRP", "crp", False),
    "ddcrp": DistanceDependent,
    "dfcrp": _mixture("dfcrp", "DFCRP", "dfcrp", True),
}
if "detection" in PRIORS:
    METHODS["detection"] = _mixture("detection", "detection prior", "detection", True)


def make_methods(names: Sequence[str] | None, length: Length) -> list[Method]:
    """Methods by name; without names all of them that can run here."""
    chosen = _installed() if names is None else list(names)
    for name in chosen:
        if name not in METHODS:
            near = difflib.get_close_matches(name, METHODS, n=1, cutoff=0.0)[0]
            raise SettingsError(
                f"there is no method {name!r}; did you mean {near!r}? Known: {', '.join(METHODS)}."
            )
    return [METHODS[name](length) for name in dict.fromkeys(chosen)]


def _installed() -> list[str]:
    """The known methods, without k-means where scikit-learn is missing."""
    if importlib.util.find_spec("sklearn") is not None:
        return list(METHODS)
    text = "k-means is left out: it needs scikit-learn (pip install 'dfcrp[sklearn]')"
    warnings.warn(text, DfcrpWarning, stacklevel=3)
    return [name for name in METHODS if name != "kmeans"]

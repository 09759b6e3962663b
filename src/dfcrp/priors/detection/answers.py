"""Answers of the detection prior: objects seen and missed, experts' sensitivity, what is real."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dfcrp.draws import ClusterBlock, Draws
from dfcrp.persons import Persons, persons_of
from dfcrp.posterior.kernels.summaries import represent_clusters
from dfcrp.priors.detection.kernel import Detection
from dfcrp.priors.detection.layout import make_detection
from dfcrp.priors.detection.summaries import Found, Lists, SummarySeats, summarise_draws
from dfcrp.summaries.consensus import SizeClasses, family_arrays, parameter_columns
from dfcrp.summaries.intervals import Interval, summarise
from dfcrp.summaries.losses import members_by_cluster
from dfcrp.summaries.streaming import label_blocks

Counts = NDArray[np.int64]


@dataclass(frozen=True)
class DetectionSummary:
    """Objects and false marks in every draw; d draws of all chains, c size classes.

    ``size_classes`` has "all" first, and so have the arrays along c.
    """

    size_classes: tuple[str, ...]
    persons: Persons
    seen: Counts  # (d, c)
    missed: Counts  # (d, c)
    #: Seen and missed objects by narrow levels of diameter, (d, levels); and the levels' edges.
    seen_at: Counts
    missed_at: Counts
    level_edges: NDArray[np.float64]
    listed: Counts  # (d, c, experts): real markings
    false: Counts  # (d, c, experts)
    classes: Counts  # (d,): classes of objects in use
    #: (d, experts): of what a list shares with others of its person, the part that comes of
    #: noticing it once.
    shared_noticing: NDArray[np.float64]
    #: (d, experts + 1): clusters by number of markings, and the same in new data from the model.
    sizes: Counts
    new_sizes: Counts
    #: Probability to be real, by marking and by cluster of the point partition.
    p_real_marking: NDArray[np.float64]
    p_real_cluster: NDArray[np.float64]
    #: Of several images, the objects on those that an expert has items on: (d, c, experts).
    looked: Counts | None = None

    def thinned(self, chains: int, chosen: NDArray[np.int64]) -> DetectionSummary:
        """The same in some draws of each of so many chains."""

        def some(values: NDArray[Any]) -> NDArray[Any]:
            return values.reshape(chains, -1, *values.shape[1:])[:, chosen].reshape(
                -1, *values.shape[1:]
            )

        by_draw = (
            *("seen", "missed", "seen_at", "missed_at", "listed", "false", "classes"),
            *("shared_noticing", "sizes", "new_sizes"),
        )
        fewer: dict[str, Any] = {name: some(getattr(self, name)) for name in by_draw}
        return replace(self, **fewer)

    @property
    def sensitivity(self) -> NDArray[np.float64]:
        """Share of all objects, seen or missed, that an expert marked: (d, c, experts)."""
        total = (self.seen + self.missed)[:, :, np.newaxis] if self.looked is None else self.looked
        share = np.full(self.listed.shape, np.nan)
        np.divide(self.listed, total, out=share, where=np.broadcast_to(total > 0, share.shape))
        return share

    def numbers(self) -> dict[str, Any]:
        """What summary.json says of all objects."""
        return {
            "n_objects": summarise(self.seen[:, 0]).as_dict(),
            "n_missed": summarise(self.missed[:, 0]).as_dict(),
            "n_total": summarise((self.seen + self.missed)[:, 0]).as_dict(),
            "n_false_marks": summarise(self.false[:, 0].sum(axis=1)).as_dict(),
            "classes_in_use": summarise(self.classes).as_dict(),
            "objects": [
                {
                    "size_class": name,
                    "seen": summarise(self.seen[:, c]).as_dict(),
                    "missed": summarise(self.missed[:, c]).as_dict(),
                    "total": summarise((self.seen + self.missed)[:, c]).as_dict(),
                }
                for c, name in enumerate(self.size_classes)
            ],
            "cluster_sizes": self.fit_of_sizes(),
        }

    def fit_of_sizes(self) -> list[dict[str, Any]]:
        """Clusters of each size, and how many the model expects in new data."""
        observed, expected = summarise(self.sizes), summarise(self.new_sizes)
        return [
            {
                "size": size,
                "observed": float(observed.mean[size]),
                "predicted": expected[size].as_dict(),
                "inside": bool(expected.lo[size] <= observed.mean[size] <= expected.hi[size]),
            }
            for size in range(1, self.sizes.shape[1])
        ]

    def expert(self, f: int) -> dict[str, Any]:
        """What summary.json says of one expert."""
        sensitivity, false = summarise(self.sensitivity), summarise(self.false)
        said: dict[str, Any] = {
            "sensitivity": sensitivity[0, f].as_dict(),
            "false_marks": false[0, f].as_dict(),
            "by_size": [
                {
                    "size_class": name,
                    "sensitivity": sensitivity[c, f].as_dict(),
                    "false_marks": false[c, f].as_dict(),
                }
                for c, name in enumerate(self.size_classes)
            ][1:],
        }
        person = self.persons.codes[f]
        if np.count_nonzero(self.persons.codes == person) > 1:
            shared: Interval = summarise(self.shared_noticing[:, f])
            said["person"] = self.persons.names[person]
            said["shared_noticing"] = shared.as_dict()
        return said


def prior_of(posterior: Any) -> tuple[Detection, Persons]:
    """The prior as the run had it, and whose lists are whose."""
    items, config = posterior.items, posterior.config
    persons = persons_of(items.experts, config.run.persons)
    sizes = posterior.diameters
    log_sizes = None if sizes is None else np.log(sizes)
    return make_detection(config.prior, log_sizes, items.families, persons.codes), persons


def detection_summary(posterior: Any) -> DetectionSummary:
    """Go through the draws once."""
    prior, persons = prior_of(posterior)
    classes = posterior.size_classes
    walk = _Walk(posterior, prior, classes)
    for chain, start, stop, block in label_blocks(posterior.draws):
        walk.add(chain, start, stop, block)
    return walk.summary(persons, classes)


class _Walk:
    """One pass over the draws."""

    def __init__(self, posterior: Any, prior: Detection, classes: SizeClasses) -> None:
        draws, families = posterior.draws, posterior.items.families
        n = draws.n_markings
        self.draws, self.prior, self.n_classes = draws, prior, len(classes.edges) + 1
        self.edges = np.asarray(classes.edges, np.float64)
        self.own = draws.shared()[:, :, -len(prior.own) :]
        size = posterior.likelihood.size_parameter()
        #: Where a cluster's log size is stored; None if objects have no size.
        self.column = None if size is None else parameter_columns(draws, (size,))[0]
        self.lists = Lists(families.astype(np.int32))
        self.seats = SummarySeats(*(np.zeros(n, np.int32) for _ in range(3)))
        self.codes, self.holder = family_arrays(families, n)
        _, self.order, self.offsets = members_by_cluster(posterior.point_partition().labels)
        # Filled in once and for all: the same draws give the same answers.
        self.rng = np.random.default_rng(fill_in_seed(draws))
        self.p_marking = np.zeros(n)
        self.p_cluster = np.zeros(len(self.offsets) - 1)
        self.blocks: list[Found] = []

    def add(self, chain: int, start: int, stop: int, labels: NDArray[np.int32]) -> None:
        """Take in a block of draws."""
        block = self.draws.clusters(chain, start, stop)
        found = self._room(stop - start)
        summarise_draws(
            self.rng,
            self.prior,
            np.ascontiguousarray(self.own[chain, start:stop]),
            self.lists,
            self.seats,
            labels,
            np.require(block.offsets, np.int64, ["C", "W"]),
            np.require(block.labels, np.int32, ["C", "W"]),
            self._log_sizes(block),
            self.edges,
            found,
        )
        self.p_marking += np.take_along_axis(found.real, labels, axis=1).sum(axis=0)
        shape = (stop - start, len(self.p_cluster))
        chosen, experts = np.empty(shape, np.int32), np.empty(shape, np.int64)
        represent_clusters(
            labels, self.order, self.offsets, self.codes, self.holder, chosen, experts
        )
        # Where a cluster is the lesser part of a draw's it is no object of its own.
        real = np.take_along_axis(found.real, np.maximum(chosen, 0), axis=1)
        self.p_cluster += np.where(experts > 0, real, 0.0).sum(axis=0)
        self.blocks.append(found._replace(real=found.real[:0]))

    def _log_sizes(self, block: ClusterBlock) -> NDArray[np.float64]:
        if self.column is None:
            return np.zeros(len(block.labels))
        return block.parameters[:, self.column].astype(np.float64)

    def _room(self, b: int) -> Found:
        n_families = len(self.prior.person)
        return Found(
            seen=np.zeros((b, self.n_classes), np.int64),
            missed=np.zeros((b, self.n_classes), np.int64),
            seen_at=np.zeros((b, len(self.prior.away)), np.int32),
            missed_at=np.zeros((b, len(self.prior.away)), np.int32),
            listed=np.zeros((b, self.n_classes, n_families), np.int32),
            false=np.zeros((b, self.n_classes, n_families), np.int32),
            classes=np.zeros(b, np.int64),
            common=np.zeros((b, n_families)),
            common_again=np.zeros((b, n_families)),
            sizes=np.zeros((b, n_families + 1), np.int64),
            new_sizes=np.zeros((b, n_families + 1), np.int64),
            real=np.zeros((b, self.draws.n_markings), np.float32),
        )

    def summary(self, persons: Persons, classes: SizeClasses) -> DetectionSummary:
        """All blocks together."""
        whole = Found(*(np.concatenate(parts) for parts in zip(*self.blocks, strict=True)))
        n = self.draws.n_chains * self.draws.n_draws
        ratio = np.ones_like(whole.common)
        np.divide(whole.common_again, whole.common, out=ratio, where=whole.common > 0)
        return DetectionSummary(
            size_classes=classes.columns,
            persons=persons,
            seen=_with_all(whole.seen, classes),
            missed=_with_all(whole.missed, classes),
            seen_at=whole.seen_at,
            missed_at=whole.missed_at,
            level_edges=level_edges(self.prior),
            listed=_with_all(whole.listed, classes),
            false=_with_all(whole.false, classes),
            classes=whole.classes,
            shared_noticing=1.0 - ratio,
            sizes=whole.sizes,
            new_sizes=whole.new_sizes,
            p_real_marking=self.p_marking / n,
            p_real_cluster=self.p_cluster / n,
        )


def over_images(each: Sequence[DetectionSummary], images: Any, n_experts: int) -> DetectionSummary:
    """Sums over images that were drawn each by itself, draw by draw.

    Experts count on the images that they have items on: of the others it is not known whether they
    looked. Levels of size differ between images and are left out, and so is what lists of one
    person share.
    """
    first = each[0]
    draws, classes = first.seen.shape
    listed = np.zeros((draws, classes, n_experts), np.int64)
    false, objects = np.zeros_like(listed), np.zeros((draws, classes, n_experts), np.int64)
    most = max(one.sizes.shape[1] for one in each)
    sizes, new_sizes = np.zeros((draws, most), np.int64), np.zeros((draws, most), np.int64)
    for one, number in zip(each, images.done, strict=True):
        codes = images.parts.expert_codes[number]
        listed[:, :, codes] += one.listed
        false[:, :, codes] += one.false
        objects[:, :, codes] += (one.seen + one.missed)[:, :, np.newaxis]
        sizes[:, : one.sizes.shape[1]] += one.sizes
        new_sizes[:, : one.sizes.shape[1]] += one.new_sizes
    return replace(
        first,
        persons=Persons(np.arange(n_experts), images.parts.items.experts),
        seen=np.sum([one.seen for one in each], axis=0),
        missed=np.sum([one.missed for one in each], axis=0),
        seen_at=np.zeros((draws, 0), np.int64),
        missed_at=np.zeros((draws, 0), np.int64),
        level_edges=np.zeros(0),
        listed=listed,
        false=false,
        looked=objects,
        classes=np.max([one.classes for one in each], axis=0),
        shared_noticing=np.zeros((draws, n_experts)),
        sizes=sizes,
        new_sizes=new_sizes,
        p_real_marking=images.put_together([one.p_real_marking for one in each], np.nan),
        p_real_cluster=np.concatenate([one.p_real_cluster for one in each]),
    )


def level_edges(prior: Detection) -> NDArray[np.float64]:
    """Diameters at which the levels meet, the ends included."""
    return np.asarray(np.exp(prior.low + prior.step * np.arange(len(prior.away) + 1)))


def fill_in_seed(draws: Draws) -> list[int]:
    """What is filled in depends on the draws alone: a seed made of their numbers."""
    return [draws.n_chains, draws.n_draws, draws.n_markings]


def _with_all(counts: NDArray[Any], classes: SizeClasses) -> NDArray[Any]:
    """The total first; without classes it is all there is."""
    total = counts.sum(axis=1, keepdims=True)
    return np.concatenate([total, counts], axis=1) if classes.names else total

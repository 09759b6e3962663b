"""Answers of the detection prior: objects seen and missed, experts' sensitivity, what is real."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincc

from dfcrp.compiled.random import stream
from dfcrp.draws import ClusterBlock, Draws
from dfcrp.errors import InputError
from dfcrp.persons import Persons, persons_of
from dfcrp.priors.base import Facts
from dfcrp.priors.detection import one_more_look
from dfcrp.priors.detection.image_sums import ImageAnswers, ImageSums
from dfcrp.priors.detection.kernel import Detection, shapes
from dfcrp.priors.detection.laid_out import LaidOut
from dfcrp.priors.detection.layout import detection_of, image_of
from dfcrp.priors.detection.parameters import variables
from dfcrp.priors.detection.skills import ExpertRates
from dfcrp.priors.detection.summaries import (
    Found,
    Lists,
    SummarySeats,
    draw_missed_on,
    summarise_draws,
)
from dfcrp.summaries.consensus import SizeClasses, family_arrays, parameter_columns
from dfcrp.summaries.kernels.tables import represent_clusters
from dfcrp.summaries.point_partition import members_by_cluster
from dfcrp.summaries.streaming import label_blocks, summarise

Counts = NDArray[np.int64]
Whole = NDArray[np.signedinteger[Any]]
#: Experts that are named in a sentence.
MAX_NAMED = 10
#: Above this probability an expert is named as one whose marks are mostly false.
NAMED = 0.99
#: Whose sensitivity is surely below this is named as one who finds hardly anything.
LITTLE_FOUND = 0.1
#: Numbers that are filled in at a time on images without items.
MAX_FILLED = 1 << 23


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
    listed: Whole  # (d, c, experts): real markings
    false: Whole  # (d, c, experts)
    #: What experts are like, of which these counts are a sample.
    rates: ExpertRates
    classes: Counts  # (d,): classes of objects in use
    #: (d,): things that several persons may mark though they are no objects, marked by somebody.
    decoys: Counts
    #: (d, experts): of what a list shares with others of its person, the part that comes of
    #: noticing it once.
    shared_noticing: NDArray[np.float64]
    #: (d, experts + 1): clusters by number of markings, and the same in new data from the model.
    sizes: Counts
    new_sizes: Counts
    #: Probability of being real, by marking and by cluster of the point partition.
    p_real_marking: NDArray[np.float64]
    p_real_cluster: NDArray[np.float64]
    #: (experts,): images that each looked at.
    looks: Counts
    #: Probability that nobody missed an object, and that every cluster is real or false as the
    #: catalogue says; by image of ``image_names``.
    p_complete: NDArray[np.float64]
    p_settled: NDArray[np.float64]
    #: By how much one more look is expected to lower the variance of the number of objects.
    look_value: NDArray[np.float64]
    image_names: tuple[str, ...] = ("",)
    #: Of several images, seen and missed objects on each: (d, images).
    seen_on: Whole | None = None
    missed_on: Whole | None = None

    def thinned(self, chains: int, chosen: NDArray[np.int64]) -> DetectionSummary:
        """The same in some draws of each of so many chains."""

        def some(values: NDArray[Any]) -> NDArray[Any]:
            return values.reshape(chains, -1, *values.shape[1:])[:, chosen].reshape(
                -1, *values.shape[1:]
            )

        by_draw = (
            *("seen", "missed", "seen_at", "missed_at", "listed", "false", "classes", "decoys"),
            *("shared_noticing", "sizes", "new_sizes"),
        )
        fewer: dict[str, Any] = {name: some(getattr(self, name)) for name in by_draw}
        for name in ("seen_on", "missed_on"):
            if getattr(self, name) is not None:
                fewer[name] = some(getattr(self, name))
        fewer["rates"] = ExpertRates(*(some(values) for values in self.rates))
        return replace(self, **fewer)

    @property
    def sensitivity(self) -> NDArray[np.float32]:
        """Probability of an expert to mark an object where they look: (d, c, experts)."""
        return self.rates.sensitivity

    @property
    def p_mostly_false(self) -> NDArray[np.float64]:
        """Probability that more than half of what an expert marks is false: (experts,).

        Real and false marks come at rates of their own, so that given their numbers the share of
        false ones is Beta(false + 1/2, real + 1/2). NaN for who marked nothing.
        """
        false, real = self.false[:, 0], self.listed[:, 0]
        found = np.asarray(np.mean(betaincc(false + 0.5, real + 0.5, 0.5), axis=0))
        return np.where((false + real).any(axis=0), found, np.nan)

    @property
    def finds_nothing(self) -> NDArray[np.bool_]:
        """Whether an expert surely finds hardly anything: sensitivity below LITTLE_FOUND."""
        return np.asarray(summarise(self.sensitivity[:, 0]).hi < LITTLE_FOUND)

    def numbers(self) -> dict[str, Any]:
        """What summary.json says of all objects."""
        return {
            "n_objects": summarise(self.seen[:, 0]).as_dict(),
            "n_missed": summarise(self.missed[:, 0]).as_dict(),
            "n_total": summarise((self.seen + self.missed)[:, 0]).as_dict(),
            "n_false_marks": summarise(self.false[:, 0].sum(axis=1)).as_dict(),
            "n_decoys": summarise(self.decoys).as_dict(),
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

    def experts(self) -> list[dict[str, Any]]:
        """What summary.json says of each expert."""
        sensitivity, false = summarise(self.sensitivity), summarise(self.false)
        per_image, shared = summarise(self.rates.false), summarise(self.shared_noticing)
        mostly_false, person = self.p_mostly_false, self.persons.codes
        rows = []
        for f in range(len(person)):
            said: dict[str, Any] = {
                "sensitivity": sensitivity[0, f].as_dict(),
                "false_marks": false[0, f].as_dict(),
                "false_marks_per_image": per_image[f].as_dict(),
                "looks": int(self.looks[f]),
                "p_mostly_false": None if np.isnan(mostly_false[f]) else float(mostly_false[f]),
                "by_size": [
                    {
                        "size_class": name,
                        "sensitivity": sensitivity[c, f].as_dict(),
                        "false_marks": false[c, f].as_dict(),
                    }
                    for c, name in enumerate(self.size_classes)
                ][1:],
            }
            if np.count_nonzero(person == person[f]) > 1:
                said["person"] = self.persons.names[person[f]]
                said["shared_noticing"] = shared[f].as_dict()
            rows.append(said)
        return rows


def prior_of(posterior: Any) -> LaidOut:
    """The prior as the run had it, with its parameters in every draw."""
    if posterior.independent:
        raise InputError(
            "images that were drawn each by itself have parameters of their own: ask one image, "
            "as in posterior[NAME] (--image NAME), or fit them with shared ones (--images shared)"
        )
    items, config = posterior.items, posterior.config
    persons = persons_of(items.experts, config.run.persons)
    # Finding boxes did not depend on their size once: the draws say how it was.
    by_size = len(posterior.draws.columns.coords.get("level", ())) > 1
    facts = Facts(
        codes=items.families,
        experts=items.experts,
        persons=persons,
        log_sizes=posterior.likelihood.log_sizes(items) if by_size else None,
        sizes_drawn=posterior.likelihood.size_parameter() is not None,
        **items.look_facts(),
    )
    prior = detection_of(facts, config.prior)
    edges = np.asarray(posterior.size_classes.edges, np.float64)
    _refuse_other_parameters(prior, posterior.draws)
    return LaidOut(prior, persons, posterior.draws, edges)


def _refuse_other_parameters(prior: Detection, draws: Draws) -> None:
    """Those of earlier versions were others."""
    needed = variables(shapes(prior, len(prior.parameters.class_weight)))
    missing = [one.name for one in needed if one.name not in draws.columns.slices]
    if missing:
        raise InputError(
            "this run was made by an earlier version, whose detection prior had other parameters "
            f"(without {', '.join(missing)}); its files are as that version left them. Fit the "
            "items again with this version"
        )


class _Image(NamedTuple):
    """What the draws of one image are summarised with."""

    prior: Detection
    #: The prior's parameters, (chains, draws, ...).
    own: NDArray[np.float64]
    persons: Persons
    name: str
    rates: ExpertRates
    #: (chains · draws,): what an expert's false marks are in the middle of all experts.
    usual_false: NDArray[np.float64]


def _image_of(posterior: Any) -> _Image:
    """The prior of a posterior of one image, drawn by itself or with others."""
    run: Any = posterior.whole or posterior
    laid_out: LaidOut = run.prior_laid_out
    whole = laid_out.prior
    looks, codes = run.items.looks, np.arange(len(run.items.experts))
    rows = np.arange(len(posterior.items)) if posterior.whole is None else posterior.rows
    image = int(looks.image[rows[0]])
    if posterior.whole is not None or len(looks.images) > 1:
        codes = looks.experts_of(image)
    prior, columns = image_of(whole, image, rows, codes)
    here = persons_of(posterior.items.experts, posterior.config.run.persons)
    rates = laid_out.rates.take(experts=codes)
    name, usual_false = looks.images[image], laid_out.usual_false
    return _Image(prior, laid_out.parameters(columns), here, name, rates, usual_false)


def parameters_of(posterior: Any, most: int) -> tuple[Detection, NDArray[np.float64]]:
    """The prior of one image or of all, and its parameters in so many draws at most."""
    chains, draws = posterior.draws.n_chains, posterior.draws.n_draws
    chosen = np.arange(0, chains * draws, -(-chains * draws // most))
    if posterior.many is None:
        found = _image_of(posterior)
        return found.prior, found.own.reshape(chains * draws, -1)[chosen]
    laid_out: LaidOut = posterior.prior_laid_out
    return laid_out.prior, laid_out.rows(np.column_stack(np.divmod(chosen, draws)).tolist())


def priors_laid_out(posterior: Any) -> Iterator[Detection]:
    """The prior of one image or of all; of images that were drawn each by itself that of each.

    Without footprints these have the same beliefs, and the first stands for all.
    """
    if not posterior.independent:
        yield (posterior.whole or posterior).prior_laid_out.prior
        return
    drawn = posterior.image_set.done
    for number in drawn if posterior.items.footprints else drawn[:1]:
        yield posterior.image(number).prior_laid_out.prior


def detection_summary(posterior: Any) -> DetectionSummary:
    """Go through the draws of one image once."""
    found = _image_of(posterior)
    classes = posterior.size_classes
    walk = _Walk(posterior, found, classes)
    for chain, start, stop, block in label_blocks(posterior.draws):
        walk.add(chain, start, stop, block)
    summary = walk.summary(found, classes)
    if posterior.whole is None and len(posterior.items.looks.images) > 1:
        # The other images have no items.
        looks = posterior.items.looks
        sums = ImageSums.begin(summary, len(posterior.items.experts), apart=False)
        sums.add(summary, looks.experts_of(int(looks.image[0])))
        return over_images([ImageAnswers.of(summary)], sums, posterior)
    return summary


class _Walk:
    """One pass over the draws."""

    def __init__(self, posterior: Any, image: _Image, classes: SizeClasses) -> None:
        draws, families = posterior.draws, posterior.items.families
        n, self.prior, self.own = draws.n_markings, image.prior, image.own
        self.draws, self.n_classes = draws, len(classes.edges) + 1
        self.edges = np.asarray(classes.edges, np.float64)
        middle = np.exp(self.prior.low + self.prior.step * (np.arange(len(self.prior.away)) + 0.5))
        self.size_numbers = np.searchsorted(self.edges, middle, side="right")
        size = posterior.likelihood.size_parameter()
        #: Where a cluster's log size is stored; None if objects have no size.
        self.column = None if size is None else parameter_columns(draws, (size,))[0]
        self.lists = Lists(families.astype(np.int32), np.arange(n, dtype=np.int32))
        self.seats = SummarySeats(*(np.zeros(n, np.int32) for _ in range(3)))
        self.codes, self.holder = family_arrays(families, n)
        _, self.order, self.offsets = members_by_cluster(posterior.point_partition().labels)
        # Filled in once and for all: the same draws give the same answers.
        self.rng = stream(fill_in_seed(draws))
        self.p_marking = np.zeros(n)
        #: By cluster: probability that it is real and one more expert marks it.
        self.p_marked = np.zeros(len(self.offsets) - 1)
        #: (draws, clusters) of every block: the probability of a cluster to be real.
        self.real: list[NDArray[np.float32]] = []
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
            self.size_numbers,
            found,
        )
        self.p_marking += np.take_along_axis(found.real, labels, axis=1).sum(axis=0)
        shape = (stop - start, len(self.offsets) - 1)
        chosen, experts = np.empty(shape, np.int32), np.empty(shape, np.int64)
        represent_clusters(
            labels, self.order, self.offsets, self.codes, self.holder, chosen, experts
        )
        # Where a cluster is the lesser part of a draw's it is no object of its own.
        real = np.take_along_axis(found.real, np.maximum(chosen, 0), axis=1)
        self.real.append(np.where(experts > 0, real, 0.0).astype(np.float32))
        marked = np.take_along_axis(found.marked, np.maximum(chosen, 0), axis=1)
        self.p_marked += np.where(experts > 0, marked, 0.0).sum(axis=0, dtype=np.float64)
        self.blocks.append(found._replace(real=found.real[:0], marked=found.marked[:0]))

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
            decoys=np.zeros(b, np.int64),
            common=np.zeros((b, n_families)),
            common_again=np.zeros((b, n_families)),
            sizes=np.zeros((b, n_families + 1), np.int64),
            new_sizes=np.zeros((b, n_families + 1), np.int64),
            real=np.zeros((b, self.draws.n_markings), np.float32),
            marked=np.zeros((b, self.draws.n_markings), np.float32),
            hidden=np.zeros((b, 2)),
        )

    def _settled(self, p_real: NDArray[np.float64]) -> float:
        """How often all clusters are real or false as most draws say."""
        likely = p_real > 0.5
        each = [np.where(likely, real, 1.0 - real).prod(axis=1) for real in self.real]
        return float(np.concatenate(each).mean())

    def _look_value(
        self, whole: Found, p_real: NDArray[np.float64], false: NDArray[np.float64]
    ) -> float:
        """What one more look is worth."""
        n = self.draws.n_chains * self.draws.n_draws
        missed = one_more_look.of_missed(whole.hidden[:, 0], whole.hidden[:, 1], false)
        return float(missed + one_more_look.of_clusters(p_real, self.p_marked / n).sum())

    def summary(self, image: _Image, classes: SizeClasses) -> DetectionSummary:
        """All blocks together."""
        whole = Found(*(np.concatenate(parts) for parts in zip(*self.blocks, strict=True)))
        n = self.draws.n_chains * self.draws.n_draws
        p_real = np.sum([real.sum(axis=0, dtype=np.float64) for real in self.real], axis=0) / n
        ratio = np.ones_like(whole.common)
        np.divide(whole.common_again, whole.common, out=ratio, where=whole.common > 0)
        return DetectionSummary(
            size_classes=classes.columns,
            persons=image.persons,
            seen=_with_all(whole.seen, classes),
            missed=_with_all(whole.missed, classes),
            seen_at=whole.seen_at.astype(np.int64),
            missed_at=whole.missed_at.astype(np.int64),
            level_edges=level_edges(self.prior),
            listed=_with_all(whole.listed, classes),
            false=_with_all(whole.false, classes),
            rates=image.rates,
            classes=whole.classes,
            decoys=whole.decoys,
            shared_noticing=1.0 - ratio,
            sizes=whole.sizes,
            new_sizes=whole.new_sizes,
            p_real_marking=self.p_marking / n,
            p_real_cluster=p_real,
            looks=np.ones(len(self.prior.person), np.int64),
            p_complete=np.array([np.mean(whole.missed.sum(axis=1) == 0)]),
            p_settled=np.array([self._settled(p_real)]),
            look_value=np.array([self._look_value(whole, p_real, image.usual_false)]),
            image_names=(image.name,),
        )


class _Empty(NamedTuple):
    """Images without items: objects that nobody marked, in every draw."""

    names: tuple[str, ...]
    missed: Counts  # (d, c), on all of them
    missed_on: NDArray[np.int32]  # (d, images)
    look_value: NDArray[np.float64]


def _empty_images(posterior: Any, draws: NDArray[np.int64], classes: SizeClasses) -> _Empty:
    """What may be on the images that somebody looked at and nobody marked anything on."""
    looks = posterior.items.looks
    empty = np.setdiff1d(np.arange(len(looks.images)), looks.image)
    if posterior.independent:
        empty = empty[:0]  # they belong to no run
    names = tuple(looks.images[v] for v in empty)
    n_classes = len(classes.edges) + 1
    missed = np.zeros((len(draws), n_classes), np.int64)
    missed_on = np.zeros((len(draws), len(empty)), np.int32)
    value = np.zeros(len(empty))
    if empty.size:
        whole: LaidOut = posterior.prior_laid_out
        prior = whole.prior
        middle = np.exp(prior.low + prior.step * (np.arange(len(prior.away)) + 0.5))
        numbers = np.searchsorted(np.asarray(classes.edges, np.float64), middle, side="right")
        rng = stream([*fill_in_seed(posterior.draws), 1])
        hidden = np.zeros((len(draws), len(empty), 2))
        step = max(MAX_FILLED // (len(empty) * n_classes + len(prior.own)), 1)
        for start in range(0, len(draws), step):
            some = slice(start, start + step)
            own = whole.without_looks(draws[some])
            found = np.zeros((len(own), len(empty), n_classes), np.int64)
            draw_missed_on(rng, prior, own, empty, numbers, found, hidden[some])
            missed[some], missed_on[some] = found.sum(axis=1), found.sum(axis=2)
        false = whole.usual_false[draws, np.newaxis]
        value = one_more_look.of_missed(hidden[:, :, 0], hidden[:, :, 1], false)
    return _Empty(names, _with_all(missed, classes), missed_on, value)


def over_images(each: Sequence[ImageAnswers], sums: ImageSums, posterior: Any) -> DetectionSummary:
    """Sums over images, draw by draw; each image has answers, or no items.

    Experts count on the images that they looked at. Levels of size differ between images that were
    drawn each by itself and are left out, and so is what lists of one person share.
    """
    items, many = posterior.items, posterior.many
    looks, experts, draws = items.looks, len(items.experts), len(sums.seen)
    chosen = _chosen_draws(posterior, draws)
    empty = _empty_images(posterior, chosen, posterior.size_classes)
    missed_on = np.column_stack([*(one.missed for one in each), empty.missed_on])
    seen_on = np.column_stack([*(one.seen for one in each), np.zeros_like(empty.missed_on)])
    p_marking = [one.p_real_marking for one in each]
    own = sums.own_rates
    rates = posterior.prior_laid_out.rates.take(chosen) if own is None else own.rates()
    return DetectionSummary(
        size_classes=sums.size_classes,
        persons=Persons(np.arange(experts), items.experts),
        seen=sums.seen,
        missed=sums.missed + empty.missed,
        seen_at=np.zeros((draws, 0), np.int64),
        missed_at=np.zeros((draws, 0), np.int64),
        level_edges=np.zeros(0),
        listed=sums.listed,
        false=sums.false,
        rates=rates,
        classes=sums.classes,
        decoys=sums.decoys,
        shared_noticing=np.broadcast_to(0.0, (draws, experts)),
        sizes=sums.sizes,
        new_sizes=sums.new_sizes,
        p_real_marking=p_marking[0] if many is None else many.put_together(p_marking, np.nan),
        p_real_cluster=np.concatenate([one.p_real_cluster for one in each]),
        looks=np.bincount(looks.pairs[:, 1], minlength=experts),
        p_complete=np.mean(missed_on == 0, axis=0),
        p_settled=np.array([*(one.p_settled for one in each), *[1.0] * len(empty.names)]),
        look_value=np.array([*(one.look_value for one in each), *empty.look_value]),
        image_names=(*(one.name for one in each), *empty.names),
        seen_on=seen_on,
        missed_on=missed_on,
    )


def mostly_false(posterior: Any) -> tuple[str, ...]:
    """Experts whose marks are almost surely false for the most part, the surest first."""
    p = np.nan_to_num(posterior.detection.p_mostly_false, nan=0.0)
    order = np.argsort(-p, kind="stable")
    return tuple(posterior.items.experts[f] for f in order if p[f] > NAMED)


def finds_nothing(posterior: Any) -> tuple[str, ...]:
    """Of the others those who looked and surely find hardly anything, who finds least first."""
    found, false = posterior.detection, set(mostly_false(posterior))
    order = np.argsort(found.sensitivity[:, 0].mean(axis=0), kind="stable")
    names = (posterior.items.experts[f] for f in order if found.finds_nothing[f])
    return tuple(name for name in names if name not in false)


def assumed_looks(posterior: Any) -> float | None:
    """How many are taken to have looked at each image, if nothing says who did; else None."""
    if posterior.items.looked is not None or posterior.independent or posterior.many is None:
        return None
    looks = posterior.prior_laid_out.prior.looks
    viewers = np.diff(looks.start) + looks.silent
    return float(viewers.max()) if looks.silent.any() else None


def looks_words(looks: float | None, *, assumed: bool) -> list[str]:
    """What was assumed of who looked, in sentences."""
    if looks is None or not assumed:
        return []
    return [
        f"Nothing says who looked. Each image is assumed to have had {looks:g} looks, as many as "
        "marked something on the busiest tenth of the images, and those who marked nothing to be "
        "like the others. The p_real of single marks, the missed objects and all totals depend "
        "on this. Give --looked if you know who looked, or set assumed_looks."
    ]


def careless_words(mostly_false: Sequence[str], finds_nothing: Sequence[str]) -> list[str]:
    """Who marks mostly what is not there, and who finds hardly anything, in sentences."""
    words = []
    for said, names in (
        (
            f"Experts whose marks are mostly false, with a probability above {NAMED}",
            mostly_false,
        ),
        (
            f"Experts who find fewer than 1 in {1 / LITTLE_FOUND:.0f} objects where they look",
            finds_nothing,
        ),
    ):
        if names:
            more = f" and {len(names) - MAX_NAMED:,} more" if len(names) > MAX_NAMED else ""
            words.append(f"{said}: {', '.join(names[:MAX_NAMED])}{more}.")
    return words


def retired(posterior: Any) -> NDArray[np.bool_]:
    """The images that need no more looks, by the thresholds of the settings."""
    found, asked = posterior.detection, posterior.config.summary
    return np.asarray(
        (found.p_complete >= asked.retire_complete) & (found.p_settled >= asked.retire_settled)
    )


def image_rows(posterior: Any, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What images.csv says of every image: looks, objects seen and missed, and what is settled."""
    found: DetectionSummary = posterior.detection
    assert found.seen_on is not None
    assert found.missed_on is not None
    looks = posterior.items.looks
    viewers = np.bincount(looks.pairs[:, 0], minlength=len(looks.images))
    number = {name: at for at, name in enumerate(looks.images)}
    known, done = {row["image"]: row for row in rows}, retired(posterior)
    table = []
    for at, name in enumerate(found.image_names):
        row: dict[str, Any] = known.get(name) or {"image": name, "n_markings": 0, "n_experts": 0}
        row = row | {"n_looks": int(viewers[number[name]])}
        # As in summary.json: objects are those that somebody has seen.
        for title, values in (
            ("objects", found.seen_on[:, at]),
            ("missed", found.missed_on[:, at]),
            ("total", found.seen_on[:, at] + found.missed_on[:, at]),
        ):
            said = summarise(values)
            row |= {f"n_{title}": said.mean, f"n_{title}_lo": said.lo, f"n_{title}_hi": said.hi}
        row["p_complete"], row["p_settled"] = found.p_complete[at], found.p_settled[at]
        row["look_value"], row["retire"] = found.look_value[at], bool(done[at])
        table.append(row)
    return table


def _chosen_draws(posterior: Any, wanted: int) -> NDArray[np.int64]:
    """The draws, of all chains, that summaries of images were thinned to."""
    chains, draws = posterior.draws.n_chains, posterior.draws.n_draws
    each = wanted // chains
    chosen = (2 * np.arange(each) + 1) * draws // (2 * each)
    return (np.arange(chains)[:, np.newaxis] * draws + chosen).ravel()


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

"""What a posterior of several images is made of: their draws and summaries, totals, and a verdict.

Images that were fitted as one problem share their draws, which are cut into images here; others
have draws of their own. Totals are sums over images, draw by draw.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from dfcrp.draws import Chosen, ClusterBlock, Columns, Draws, MemoryDraws, blocks
from dfcrp.posterior.findings import MAX_EXPERT_VALUES, Findings, Series, Totals, spaced
from dfcrp.priors.registry import prior_named
from dfcrp.settings.consensus import Least
from dfcrp.summaries.consensus import ConsensusCounts
from dfcrp.summaries.convergence import Diagnostic, Limits, Verdict, diagnose, good, longer, needed
from dfcrp.summaries.experts import ExpertSummary, jaccard_matrix, mean_with_others, shares
from dfcrp.summaries.streaming import Interval, summarise
from dfcrp.values import Json

if TYPE_CHECKING:
    from dfcrp.posterior.answers import ManyImages
    from dfcrp.runs.parts import Parts

T = TypeVar("T")


class once(Generic[T]):
    """A property that is computed once; two threads at a time may both compute it.

    ``functools.cached_property`` of Python 3.11 holds one lock for all objects of a class while it
    computes. A posterior of many images asks those of its images, in threads, for what it is
    itself computing, and would wait for ever.
    """

    def __init__(self, compute: Callable[[Any], T]) -> None:
        self._compute = compute
        self.__doc__ = compute.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type) -> once[T]: ...
    @overload
    def __get__(self, instance: object, owner: type) -> T: ...
    def __get__(self, instance: object | None, owner: type) -> Any:
        if instance is None:
            return self
        value = self._compute(instance)
        instance.__dict__[self._name] = value
        return value


#: With more experts than this the table of each with each would not fit into memory.
MAX_COMPARED = int(MAX_EXPERT_VALUES**0.5)


class Pool:
    """Adds up images, in the order in which they are given: sums of floats depend on it."""

    def __init__(self, parts: Parts, totals: Totals) -> None:
        self.n_experts = len(parts.items.experts)
        self.totals = totals
        #: Sums of the prior's answers; None if it gives none.
        self.detection: Any = None
        self._prior = parts.config.run.prior
        self._apart = parts.config.run.images == "independent"
        self.images = 0
        self._series: Series | None = None
        self._alone: NDArray[np.int64] = np.zeros((0, 0), np.int64)
        self._lacking = self._alone
        # Where each expert looked, whoever's they are.
        self._alone_there = self._alone
        self._lacking_there = self._alone
        self._both: NDArray[np.int32] = np.zeros((0, 0, 0), np.int32)
        self._either = self._both

    def add(self, series: Series, experts: NDArray[np.int64]) -> None:
        """Take in an image; ``experts`` are the codes that its experts have in all images.

        Two experts are compared where both looked, and shares are of the clusters where an expert
        looked.
        """
        if self._series is None:
            self._begin(series)
        else:
            before = self._series
            self._series = Series(
                before.n_clusters + series.n_clusters,
                before.counts + series.counts,
                before.alpha + series.alpha,
                _added(before.learned, series.learned),
                series.experts,
            )
        if series.detection is not None:
            if self.detection is None:
                self.detection = prior_named(self._prior).begin_sums(
                    series.detection, self.n_experts, apart=self._apart
                )
            self.detection.add(series.detection, experts)
        self.images += 1
        self._alone[:, experts] += series.experts.alone
        self._lacking[:, experts] += series.experts.lacking
        self._alone_there[:, experts] += series.experts.alone_there
        self._lacking_there[:, experts] += series.experts.lacking_there
        if self._both.size:
            pairs = (slice(None), experts[:, np.newaxis], experts)
            self._both[pairs] += series.experts.both
            self._either[pairs] += series.experts.either

    def _begin(self, series: Series) -> None:
        self._series = replace(series, detection=None)
        draws, n_experts = len(series.experts.alone), self.n_experts
        self._alone = np.zeros((draws, n_experts), np.int64)
        self._lacking = np.zeros((draws, n_experts), np.int64)
        self._alone_there = np.zeros((draws, n_experts), np.int64)
        self._lacking_there = np.zeros((draws, n_experts), np.int64)
        if n_experts <= MAX_COMPARED:
            self._both = np.zeros((draws, n_experts, n_experts), np.int32)
            self._either = np.zeros_like(self._both)

    @property
    def sums(self) -> Series:
        """The sums over the images so far; ``experts`` are not summed here."""
        assert self._series is not None, "no image was added"
        return self._series

    @property
    def alpha(self) -> NDArray[np.float64]:
        """α, averaged over images; (chains, draws)."""
        return self.sums.alpha / self.images

    @property
    def learned(self) -> dict[str, NDArray[np.float64]]:
        """What was learned of the scatter, averaged over images, by name; (chains, draws)."""
        return {name: values / self.images for name, values in self.sums.learned.items()}

    def counts(self, min_experts: tuple[Least, ...], classes: tuple[str, ...]) -> ConsensusCounts:
        """Objects that at least so many experts marked, on all images."""
        return ConsensusCounts(min_experts, classes, self.sums.counts)

    def diagnostics(self, counts: ConsensusCounts) -> tuple[Diagnostic, ...]:
        """Whether the totals have settled."""
        series = {"number of clusters": self.sums.n_clusters, **counts.series()}
        return tuple(diagnose(f"{name}, all images", values) for name, values in series.items())

    def experts(self, count: NDArray[np.int64], alone: NDArray[np.float64]) -> ExpertSummary:
        """How the experts compare, given their numbers of markings and each marking's solitude."""
        if self._both.size:
            compared = np.arange(self.n_experts)
            matrix = jaccard_matrix(self._both, self._either)
            jaccard, with_others = summarise(matrix), summarise(mean_with_others(matrix))
        else:
            compared = np.zeros(0, np.int64)
            nothing = np.full((0, 0), np.nan)
            jaccard = Interval(nothing, nothing, nothing)
            unknown = np.full(self.n_experts, np.nan)
            with_others = Interval(unknown, unknown, unknown)
        return ExpertSummary(
            count=count,
            jaccard=with_others,
            compared=compared,
            jaccard_matrix=jaccard,
            size_1=summarise(shares(self._alone, self._alone_there)),
            all_but_one=summarise(shares(self._lacking, self._lacking_there)),
            alone=alone,
        )


def _added(
    before: dict[str, NDArray[np.float64]], more: dict[str, NDArray[np.float64]]
) -> dict[str, NDArray[np.float64]]:
    """Sums of what all images have learned."""
    return {name: values + more[name] for name, values in before.items() if name in more}


Summaries = tuple[tuple[Findings, ...], Pool]


class JoinedDraws:
    """Draws of independent images as draws of all their items, behind the ``Draws`` protocol.

    Images are independent given the data, so that one draw of each is a draw of all. Of every image
    evenly spaced draws are taken. Items of images without draws stay alone; α is the mean over
    images, and of what clusters share nothing is kept: every image has its own.
    """

    def __init__(self, images: ManyImages) -> None:
        self._images = images
        self.n_markings = len(images.parts.items)
        first = images.draws_of(images.done[0])
        self.n_chains = first.n_chains
        self.n_draws = images.totals.draws
        self.columns = Columns(first.columns.parameters)

    def _chosen(self, draws: Draws, start: int, stop: int) -> NDArray[np.int64]:
        return spaced(draws.n_draws, self.n_draws)[start:stop]

    def labels(self, chain: int, start: int, stop: int) -> NDArray[np.int32]:
        """Labels of draws ``start:stop`` of a chain."""
        alone = np.arange(self.n_markings, dtype=np.int32)
        whole = np.repeat(alone[np.newaxis], stop - start, axis=0)
        for image, rows in zip(self._images.done, self._images.rows_of_images, strict=True):
            draws = self._images.draws_of(image)
            chosen = self._chosen(draws, start, stop)
            low, high = int(chosen[0]), int(chosen[-1]) + 1
            own = draws.labels(chain, low, high)[chosen - low]
            whole[:, rows] = rows[own]
        return whole

    def alpha(self) -> NDArray[np.float64]:
        """The mean concentration of the images, (chains, draws)."""
        total = np.zeros((self.n_chains, self.n_draws))
        for image in self._images.done:
            draws = self._images.draws_of(image)
            total += draws.alpha()[:, self._chosen(draws, 0, self.n_draws)]
        return total / len(self._images.done)

    def shared(self, chosen: Chosen = None) -> NDArray[np.float64]:
        """Nothing is shared by clusters of different images."""
        return np.empty((self.n_chains, self.n_draws, 0))

    def clusters(self, chain: int, start: int, stop: int) -> ClusterBlock:
        """Cluster parameters of draws ``start:stop`` of a chain."""
        draw, names, values = [], [], []
        for image, rows in zip(self._images.done, self._images.rows_of_images, strict=True):
            draws = self._images.draws_of(image)
            chosen = self._chosen(draws, start, stop)
            low, high = int(chosen[0]), int(chosen[-1]) + 1
            block = draws.clusters(chain, low, high)
            for at, own in enumerate(chosen - low):
                span = slice(block.offsets[own], block.offsets[own + 1])
                names.append(rows[block.labels[span]])
                values.append(block.parameters[span])
                draw.append(np.full(len(names[-1]), at))
        whose, label = np.concatenate(draw), np.concatenate(names)
        order = np.lexsort((label, whose))
        counts = np.bincount(whose, minlength=stop - start)
        return ClusterBlock(
            np.concatenate([[0], np.cumsum(counts)]),
            label[order].astype(np.int32),
            np.concatenate(values)[order],
        )

    def history(self, marking: int) -> NDArray[np.int32]:
        """One item's labels, (chains, draws)."""
        for image, rows in zip(self._images.done, self._images.rows_of_images, strict=True):
            at = np.searchsorted(rows, marking)
            if at < len(rows) and rows[at] == marking:
                draws = self._images.draws_of(image)
                chosen = self._chosen(draws, 0, self.n_draws)
                return rows[draws.history(int(at))[:, chosen]].astype(np.int32)
        return np.full((self.n_chains, self.n_draws), marking, np.int32)


#: Bytes of draws, cut into images, that are in memory at a time; one image may take more.
MAX_CUT = 1 << 29


#: Numbers that draws have in common are kept for the next image if they take no more bytes.
MAX_KEPT, MOST_KEPT = 1 << 24, 16


class Common:
    """What draws of all images have in common: each image in turn asks for the same few numbers."""

    def __init__(self, draws: Draws) -> None:
        self.draws = draws
        self._kept: dict[tuple[int, ...], NDArray[np.float64]] = {}

    def __getstate__(self) -> Json:
        return {"draws": self.draws, "_kept": {}}

    def shared(self, chosen: Chosen) -> NDArray[np.float64]:
        """As ``Draws.shared``."""
        if chosen is None:
            return self.draws.shared()
        at = range(self.draws.columns.width)
        columns = tuple(at[chosen] if isinstance(chosen, slice) else chosen)
        if columns in self._kept:
            return self._kept[columns]
        found = self.draws.shared(chosen)
        if found.nbytes <= MAX_KEPT:
            if len(self._kept) >= MOST_KEPT:
                self._kept.clear()
            self._kept[columns] = found
        return found


class ImageDraws(MemoryDraws):
    """Draws of one image; what they have in common with other images is read when asked for."""

    def __init__(
        self,
        common: Common,
        labels: NDArray[np.int32],
        alpha: NDArray[np.float64],
        clusters: list[ClusterBlock],
    ) -> None:
        super().__init__(labels, alpha, clusters)
        self._common = common
        self.columns = common.draws.columns

    def shared(self, chosen: Chosen = None) -> NDArray[np.float64]:
        """What a draw's clusters share, of all images."""
        return self._common.shared(chosen)


class SharedDraws:
    """Cuts the draws of all images into those of each; several are cut at a time and kept."""

    def __init__(self, draws: Draws, rows: Sequence[NDArray[np.int64]]) -> None:
        self._draws = draws
        self._rows = rows
        self._lock = threading.Lock()
        self._cut: dict[int, ImageDraws] = {}
        self._common = Common(draws)
        #: The image of each marking, and its number there.
        self._image = np.empty(draws.n_markings, np.int64)
        self._local = np.empty(draws.n_markings, np.int32)
        for image, own in enumerate(rows):
            self._image[own] = image
            self._local[own] = np.arange(len(own))
        all_draws = draws.n_chains * draws.n_draws
        # Of every draw of an image, where its clusters begin.
        sizes = all_draws * (self._bytes_of_item() * np.array([len(own) for own in rows]) + 8.0)
        self._group = ((np.cumsum(sizes) - 1.0) // MAX_CUT).astype(np.int64)

    def draws(self, part: int = 0, burn_in: int = 0, stop: int | None = None) -> Draws:
        """One image's draws; its clusters never reach into another. Burn-in is gone already."""
        with self._lock:
            if part not in self._cut:
                self._cut = {}  # before the next ones come
                self._cut = self._cut_group(np.flatnonzero(self._group == self._group[part]))
            return self._cut[part]

    def _bytes_of_item(self) -> float:
        """What an item takes in every draw: its label, and its share of the clusters."""
        draws, last = self._draws, self._draws.n_draws - 1
        blocks = [draws.clusters(chain, last, last + 1) for chain in range(draws.n_chains)]
        clusters = max(len(block.labels) for block in blocks) / draws.n_markings
        return 4.0 + clusters * 4.0 * (1 + blocks[0].parameters.shape[1])

    def _cut_group(self, images: NDArray[np.int64]) -> dict[int, ImageDraws]:
        draws, alpha = self._draws, self._draws.alpha()
        labels: dict[int, list[list[NDArray[np.int32]]]] = {}
        clusters: dict[int, list[list[ClusterBlock]]] = {}
        for image in images.tolist():
            labels[image] = [[] for _ in range(draws.n_chains)]
            clusters[image] = [[] for _ in range(draws.n_chains)]
        for chain, start, stop in blocks(draws):
            part = draws.labels(chain, start, stop)
            for image in images.tolist():
                labels[image][chain].append(self._local[part[:, self._rows[image]]])
            for image, block in self._cut_clusters(draws.clusters(chain, start, stop), images):
                clusters[image][chain].append(block)
        # The pieces of an image go as they are joined: nothing is there twice but one image.
        return {
            image: ImageDraws(
                self._common,
                np.stack([np.concatenate(found) for found in labels.pop(image)]),
                alpha,
                [_joined(found) for found in clusters.pop(image)],
            )
            for image in images.tolist()
        }

    def _cut_clusters(
        self, block: ClusterBlock, images: NDArray[np.int64]
    ) -> list[tuple[int, ClusterBlock]]:
        """The clusters of each image: that of the marking which they are named after."""
        owner = self._image[block.labels]
        order = np.argsort(owner, kind="stable")
        first = np.searchsorted(owner[order], images)
        last = np.searchsorted(owner[order], images, side="right")
        n_draws = len(block.offsets) - 1
        draw = np.repeat(np.arange(n_draws), np.diff(block.offsets))
        found = []
        for image, a, b in zip(images.tolist(), first, last, strict=True):
            own = order[a:b]
            counts = np.bincount(draw[own], minlength=n_draws)
            offsets = np.concatenate([[0], np.cumsum(counts)])
            names = self._local[block.labels[own]]
            found.append((image, ClusterBlock(offsets, names, block.parameters[own])))
        return found


def _joined(parts: list[ClusterBlock]) -> ClusterBlock:
    counts = np.concatenate([np.diff(part.offsets) for part in parts])
    return ClusterBlock(
        np.concatenate([[0], np.cumsum(counts)]),
        np.concatenate([part.labels for part in parts]),
        np.concatenate([part.parameters for part in parts]),
    )


#: Images that are named as the worst.
NAMED = 10


@dataclass(frozen=True)
class ImagesVerdict(Verdict):
    """The verdict on a run over many images: good if it is good for every one of them.

    The numbers are those of the worst image; ``diagnostics`` are of the totals.
    """

    #: Images whose own verdict is not good, worst first.
    not_good: tuple[str, ...] = ()
    #: Images that the run did not come to.
    missing: int = 0
    totals_good: bool = True

    def as_dict(self) -> Json:
        """As in summary.json."""
        extra = {"images_not_good": len(self.not_good), "worst_images": list(self.not_good[:NAMED])}
        return super().as_dict() | extra


def judge_images(
    verdicts: Mapping[str, Verdict], totals: tuple[Diagnostic, ...], missing: int
) -> ImagesVerdict:
    """Put the verdicts on single images together; ``missing`` images were not begun."""
    limits = Limits()
    bad = [name for name, verdict in verdicts.items() if not verdict.ok]
    bad.sort(key=lambda name: -_badness(verdicts[name], limits))
    every = list(verdicts.values())
    totals_good = all(good(d, limits) for d in totals)
    found = ImagesVerdict(
        ok=not bad and not missing,
        max_rhat=_worst([v.max_rhat for v in every], max),
        min_ess=_worst([v.min_ess for v in every], min),
        max_pair_disagreement=_worst([v.max_pair_disagreement for v in every], max),
        pairs_disagreeing=sum(v.pairs_disagreeing for v in every),
        undecided=(),
        parameters_ok=all(v.parameters_ok for v in every),
        parameters=_worst_parameters(every, limits),
        left_out=tuple(dict.fromkeys(name for v in every for name in v.left_out)),
        max_pair_rhat=_worst([v.max_pair_rhat for v in every], max),
        min_pair_ess=_worst([v.min_pair_ess for v in every], min),
        advice=(),
        diagnostics=totals,
        not_good=tuple(bad),
        missing=missing,
        totals_good=totals_good,
        merging=not every or any(v.merging for v in every),
    )
    advice = tuple(_advice(found, verdicts, limits))
    return ImagesVerdict(**{**vars(found), "advice": advice})


def _worst_parameters(verdicts: list[Verdict], limits: Limits) -> tuple[Diagnostic, ...]:
    """Each parameter on the image where it needs the longest run."""
    found: dict[str, Diagnostic] = {}
    for one in (parameter for verdict in verdicts for parameter in verdict.parameters):
        known = found.setdefault(one.name, one)
        if needed(one.rhat, one.ess, limits) > needed(known.rhat, known.ess, limits):
            found[one.name] = one
    return tuple(found.values())


def _worst(values: list[float], pick: Callable[[list[float]], float]) -> float:
    """NaN only if nothing else is there."""
    known = [value for value in values if not np.isnan(value)]
    return float(pick(known)) if known else np.nan


def _badness(verdict: Verdict, limits: Limits) -> float:
    """How many times longer a run of this image should be, about; infinite if it cannot be told."""
    if np.isnan(verdict.max_rhat):
        return np.inf
    return longer(verdict, limits)


def _advice(found: ImagesVerdict, verdicts: Mapping[str, Verdict], limits: Limits) -> list[str]:
    count = len(verdicts)
    advice = []
    if found.missing:
        advice.append(
            f"The run did not reach {found.missing:,} of {found.missing + count:,} images."
        )
    if not found.not_good and not found.merging:
        advice.append(
            "Every image has one expert, who lists nothing twice: nothing can be merged, and every "
            "item is an object of its own. There is no verdict on merging."
        )
        return advice
    if not found.not_good:
        advice.append(
            f"The run was long enough for each of the {count:,} images: R-hat is at most "
            f"{found.max_rhat:.3f} and the smallest effective sample size is {found.min_ess:.0f}."
        )
        behind = sum(not verdict.parameters_ok for verdict in verdicts.values())
        if behind:
            advice.append(
                f"The model parameters have not converged on {behind:,} of "
                f"{count:,} images; counts, catalogue and memberships are good all the same."
            )
        return advice
    named = [_describe(name, verdicts[name]) for name in found.not_good[:NAMED]]
    more = len(found.not_good) - NAMED
    if more > 0:
        named.append(f"and {more:,} more")
    advice.append(
        f"It was not long enough for {len(found.not_good):,} of {count:,} images. "
        f"Worst: {', '.join(named)}."
    )
    rhat, ess = max(d.rhat for d in found.diagnostics), min(d.ess for d in found.diagnostics)
    how = "are good" if found.totals_good else "are not good either"
    advice.append(
        f"The totals over all images {how}: R-hat is at most {rhat:.3f}, the effective sample "
        f"size at least {ess:.0f}."
    )
    needed = _badness(verdicts[found.not_good[0]], limits)
    times = f"{int(np.ceil(needed))}" if needed <= 10 else "at least 10"
    advice.append(f"Run {times} times longer for the worst image; images.csv lists them all.")
    return advice


def _describe(name: str, verdict: Verdict) -> str:
    if np.isnan(verdict.max_rhat):
        return f"{name} (too few draws)"
    rhat = "infinite" if np.isinf(verdict.max_rhat) else f"{verdict.max_rhat:.2f}"
    text = f"{name} (R-hat {rhat}, ESS {verdict.min_ess:.0f}"
    if verdict.pairs_disagreeing:
        text += f", pairs the chains disagree on: {verdict.pairs_disagreeing}"
    return text + ")"

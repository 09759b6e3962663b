"""What a posterior answers by its images: one image, or many, drawn together or each by itself.

``Posterior`` is what users ask. Where the answer depends on the images, it asks one of these, all
behind the protocol ``Answers``; ``of`` is the posterior that asks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dfcrp.draws import Draws
from dfcrp.errors import InputError, did_you_mean
from dfcrp.items.items import Items
from dfcrp.posterior import tables
from dfcrp.posterior.findings import Findings, Series, Totals, find, spaced
from dfcrp.posterior.images import Pool, SharedDraws, Summaries, judge_images
from dfcrp.posterior.model_fit import model_fit
from dfcrp.runs.parts import DrawSource, Parts, RunRecord, least_by_looked
from dfcrp.settings.config import Config
from dfcrp.settings.consensus import Least
from dfcrp.summaries.consensus import ConsensusCounts, consensus_counts
from dfcrp.summaries.convergence import Verdict, check_convergence
from dfcrp.summaries.experts import ExpertSummary, expert_summary
from dfcrp.summaries.fit import ModelFit
from dfcrp.summaries.membership import Membership
from dfcrp.summaries.point_partition import PointPartition, point_partition, settled
from dfcrp.summaries.streaming import n_clusters
from dfcrp.values import Array

if TYPE_CHECKING:
    import pandas

    from dfcrp.posterior.categories import CategorySummary
    from dfcrp.posterior.posterior import Posterior
    from dfcrp.priors.detection.answers import DetectionSummary

Samples = dict[str, NDArray[np.float64]]
CategorySets: TypeAlias = "list[tuple[str | None, CategorySummary]]"


class Answers(Protocol):
    """The answers that depend on the images of a run."""

    @property
    def rows(self) -> NDArray[np.int64] | None:
        """The rows of these items among all, if this is one image of many."""

    @property
    def whole(self) -> Posterior | None:
        """The posterior of all images, if this is one that was drawn together with others."""

    @property
    def many(self) -> ManyImages | None:
        """The images, if there are several."""

    @property
    def apart(self) -> bool:
        """Whether there are several images that were drawn each by itself."""

    def names(self, of: Posterior) -> tuple[str, ...]:
        """Names of the images that there are draws of."""

    def image(self, of: Posterior, name: str) -> Posterior:
        """The posterior of one image."""

    def image_with(self, of: Posterior, row: int) -> tuple[Posterior, int]:
        """The posterior of the image that an item is on, and the item's row there."""

    def alpha(self, of: Posterior) -> NDArray[np.float64]:
        """Concentration (chain, draw)."""

    def n_clusters(self, of: Posterior) -> NDArray[np.int64]:
        """Number of clusters (chain, draw)."""

    def learned(self, of: Posterior) -> Samples:
        """What was learned of the scatter, by name (chain, draw)."""

    def detection(self, of: Posterior) -> DetectionSummary | None:
        """The prior's own summary; None if it has none."""

    def categories(self, of: Posterior) -> CategorySummary | None:
        """Categories of all items that were drawn together."""

    def category_sets(self, of: Posterior) -> CategorySets:
        """What is known of categories: of all images together, or by image."""

    def point_partition(self, of: Posterior, loss: str) -> PointPartition:
        """The partition with the smallest expected loss."""

    def membership(self, of: Posterior) -> Membership:
        """How sure every item is of its cluster."""

    def consensus_counts(self, of: Posterior, least: tuple[Least, ...]) -> ConsensusCounts:
        """Clusters with at least so many experts, in every draw, by size class."""

    def table_counts(self, of: Posterior, least: tuple[Least, ...]) -> ConsensusCounts:
        """The same for the thresholds of the tables."""

    def expert_summary(self, of: Posterior) -> ExpertSummary:
        """How the experts compare."""

    def catalogue(self, of: Posterior) -> dict[str, Array]:
        """The columns of the catalogue, but for categories."""

    def doubles(self, of: Posterior) -> pandas.DataFrame:
        """Items that may be a second one of an object their expert has listed already."""

    def convergence(self, of: Posterior) -> Verdict:
        """Whether the run was long enough."""

    def model_fit(self, of: Posterior) -> ModelFit:
        """Whether the model fits."""


class FromDraws:
    """What draws of all items answer, whether they are of one image or of several."""

    rows: NDArray[np.int64] | None = None
    whole: Posterior | None = None
    apart = False

    def alpha(self, of: Posterior) -> NDArray[np.float64]:
        """As drawn."""
        return of.draws.alpha()

    def n_clusters(self, of: Posterior) -> NDArray[np.int64]:
        """Counted in every draw."""
        return n_clusters(of.draws)

    def learned(self, of: Posterior) -> Samples:
        """As drawn."""
        return of.likelihood.learned_samples(of.draws)

    def categories(self, of: Posterior) -> CategorySummary | None:
        """None if items name fewer than two."""
        if len(of.items.categories) < 2:
            return None
        from dfcrp.posterior.categories import category_summary

        return category_summary(of)

    def category_sets(self, of: Posterior) -> CategorySets:
        """One, or none."""
        return [] if of.categories is None else [(None, of.categories)]

    def consensus_counts(self, of: Posterior, least: tuple[Least, ...]) -> ConsensusCounts:
        """Counted in every draw."""
        coverage, shares = of.items.coverage, any(isinstance(one, str) for one in least)
        numbers = [least_by_looked(one, coverage.n_experts) for one in least]
        found = consensus_counts(
            of.draws,
            [int(one[-1]) for one in numbers],
            of.size_classes,
            of.diameter_from,
            families=of.items.families,
            diameters=of.diameters,
            parameter=of.likelihood.size_parameter() or "",
            looks=(coverage, np.array(numbers)) if coverage.in_parts and shares else None,
        )
        return replace(found, min_experts=least)

    def convergence(self, of: Posterior) -> Verdict:
        """From the draws."""
        return check_convergence(of.draws, of.table_counts, of.pairs, known=of.known_of_run)

    def model_fit(self, of: Posterior) -> ModelFit:
        """From the draws."""
        return model_fit(of)


class SingleImage(FromDraws):
    """A run of one image, or one image that was drawn by itself."""

    many: ManyImages | None = None

    def __init__(self, rows: NDArray[np.int64] | None = None) -> None:
        self.rows = rows
        #: Point partitions by loss, each with how sure its items are.
        self._settled: dict[str, tuple[PointPartition, Membership]] = {}

    def names(self, of: Posterior) -> tuple[str, ...]:
        """None if the items name no image."""
        return of.items.images

    def image(self, of: Posterior, name: str) -> Posterior:
        """This one, if it has the name."""
        if name in self.names(of):
            return of
        near = did_you_mean(name, self.names(of))
        raise InputError(f"there is no image {name!r} in this run{near}")

    def image_with(self, of: Posterior, row: int) -> tuple[Posterior, int]:
        """This one."""
        return of, row

    def detection(self, of: Posterior) -> DetectionSummary | None:
        """Made by the prior from the draws."""
        return of.prior.summarise(of)

    def point_partition(self, of: Posterior, loss: str) -> PointPartition:
        """Searched for in the draws; items that are more often elsewhere are moved there."""
        return self._settle(of, loss)[0]

    def membership(self, of: Posterior) -> Membership:
        """Of the items in the point partition."""
        return self._settle(of, "vi")[1]

    def _settle(self, of: Posterior, loss: str) -> tuple[PointPartition, Membership]:
        if loss not in self._settled:
            families = of.items.families if of.prior.one_per_expert else None
            best = point_partition(of.draws, loss, families)
            self._settled[loss] = settled(best, of.draws, families)
        return self._settled[loss]

    def table_counts(self, of: Posterior, least: tuple[Least, ...]) -> ConsensusCounts:
        """Counted in every draw."""
        return of.consensus_counts(least)

    def expert_summary(self, of: Posterior) -> ExpertSummary:
        """From the draws."""
        return expert_summary(of.draws, of.items.families, coverage=of.items.coverage)

    def catalogue(self, of: Posterior) -> dict[str, Array]:
        """Clusters are named by the row of their first item among all."""
        # The caller has copies, which may be changed.
        return {**of.catalogue_columns, "cluster": of.names(of.catalogue_columns["cluster"])}

    def doubles(self, of: Posterior) -> pandas.DataFrame:
        """Alone in the point partition, and as close to the object as its own members are."""
        return tables.doubles_frame(of.items, of.doubles_columns)


class ImageOfMany(SingleImage):
    """One image that was drawn together with others; what they share is an answer of all."""

    def __init__(self, rows: NDArray[np.int64], whole: Posterior) -> None:
        super().__init__(rows)
        self.whole: Posterior | None = whole
        self._all = whole

    def categories(self, of: Posterior) -> CategorySummary | None:
        """Of all images."""
        return self._all.categories

    def convergence(self, of: Posterior) -> Verdict:
        """From the draws; what all images share was judged once for all of them."""
        return check_convergence(
            of.draws,
            of.table_counts,
            of.pairs,
            known=of.known_of_run_with(self._all.stored_words),
            stored=self._all.stored_diagnostics,
        )

    def model_fit(self, of: Posterior) -> ModelFit:
        """Of all images."""
        return self._all.model_fit


class ManyImages(FromDraws):
    """Several images that were drawn together; those that the run did not come to are left out.

    Tables are put together from those of each image, totals are sums over them.
    """

    def __init__(
        self, parts: Parts, records: Sequence[RunRecord | None], source: DrawSource
    ) -> None:
        self.parts = parts
        self.records = tuple(records)
        self._source = source
        self.done = tuple(i for i, one in enumerate(self.records) if one is not None)
        self._names = tuple(parts.names[image] for image in self.done)
        self.totals = Totals.plan(parts.config, len(parts.items.experts))
        self.summaries: Summaries | None = None

    @property
    def many(self) -> ManyImages | None:
        """These images."""
        return self

    # The images

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {self.parts.names[image]: image for image in self.done}

    def number_of(self, name: str) -> int:
        """The number of an image in ``parts``; an error if there are no draws of it."""
        if name not in self._numbers:
            near = did_you_mean(name, self._names)
            raise InputError(f"there is no image {name!r} in this run{near}")
        return self._numbers[name]

    def record_of(self, number: int) -> RunRecord:
        """How the draws of an image came about."""
        record = self.records[number]
        assert record is not None
        return record

    def draws_of(self, number: int) -> Draws:
        """One image's draws after burn-in."""
        record = self.record_of(number)
        return self._source.draws(
            number, record.burn_in // record.thin, record.scans // record.thin
        )

    @property
    def rows_of_images(self) -> list[NDArray[np.int64]]:
        """The rows of each image that there are draws of."""
        return [self.parts.rows[image] for image in self.done]

    def number(self, of: Posterior, number: int) -> Posterior:
        """The posterior of an image by its number among all images of the items."""
        items = replace(self.parts.items_of(number), origin=of.origin)
        return self._posterior(of, number, items, ImageOfMany(self.parts.rows[number], of))

    def _posterior(self, of: Posterior, number: int, items: Items, answers: Answers) -> Posterior:
        config, record = self.parts.config_of(number), self.record_of(number)
        return type(of)(self.draws_of(number), items, config, record, answers=answers)

    def found(self, of: Posterior) -> Summaries:
        """Every image's summary, in the order of ``done``, and totals; made once."""
        if self.summaries is None:
            pool, findings = Pool(self.parts, self.totals), []
            each = _in_threads(lambda number: find(self.number(of, number), self.totals), self.done)
            for image, (one, series) in zip(self.done, each, strict=True):
                pool.add(series, self.parts.expert_codes[image])
                findings.append(one)
            self.summaries = tuple(findings), pool
        return self.summaries

    def put_together(self, values: Sequence[Array], fill: float) -> Array:
        """One value per item from those of each image; ``fill`` where there are no draws."""
        whole = np.full(len(self.parts.items), fill, np.result_type(*values))
        for rows, own in zip(self.rows_of_images, values, strict=True):
            whole[rows] = own
        return whole

    def names_among_all(self, labels: Sequence[Array]) -> list[NDArray[np.int64]]:
        """Labels of each image's items, or negative numbers, as rows among all items."""
        return [
            np.where(own < 0, own, rows[np.maximum(own, 0)])
            for rows, own in zip(self.rows_of_images, labels, strict=True)
        ]

    # Answers

    def names(self, of: Posterior) -> tuple[str, ...]:
        """Those that the run came to."""
        return self._names

    def image(self, of: Posterior, name: str) -> Posterior:
        """One of them, as if it had been fitted alone."""
        return self.number(of, self.number_of(name))

    def image_with(self, of: Posterior, row: int) -> tuple[Posterior, int]:
        """One of them."""
        assert of.items.image is not None
        image = self.image(of, str(of.items.image[row]))
        assert image.rows is not None
        return image, int(np.searchsorted(image.rows, row))

    def detection(self, of: Posterior) -> DetectionSummary | None:
        """Put together by the prior from those of the images."""
        return of.prior.summarise_images(
            [one.detection for one in of.findings], of.pool.detection, of
        )

    def point_partition(self, of: Posterior, loss: str) -> PointPartition:
        """The images' own, put together."""
        if loss == "vi":
            found = [one.point for one in of.findings]
        else:
            found = [self.number(of, number).point_partition(loss) for number in self.done]
        whole = self.put_together(self.names_among_all([one.labels for one in found]), -1)
        # Pairs add up; bits are per item.
        share = [len(one.labels) / len(of.items) if loss == "vi" else 1.0 for one in found]
        return PointPartition(
            labels=np.where(whole < 0, np.arange(len(of.items)), whole).astype(np.int32),
            loss=loss,
            expected_loss=float(np.dot(share, [one.expected_loss for one in found])),
            n_draws=min(one.n_draws for one in found),
            n_searched=min(one.n_searched for one in found),
            n_components=sum(one.n_components for one in found),
            n_exact=sum(one.n_exact for one in found),
            n_sweeps=sum(one.n_sweeps for one in found),
            n_moved=sum(one.n_moved for one in found),
        )

    def membership(self, of: Posterior) -> Membership:
        """The images' own, put together."""
        found = [one.membership for one in of.findings]
        return Membership(
            p_member=self.put_together([one.p_member for one in found], np.nan),
            second=self.put_together(self.names_among_all([one.second for one in found]), -1),
            p_second=self.put_together([one.p_second for one in found], np.nan),
            p_elsewhere=self.put_together([one.p_elsewhere for one in found], np.nan),
            clusters=np.concatenate(self.names_among_all([one.clusters for one in found])),
            stability=np.concatenate([one.stability for one in found]),
        )

    def consensus_counts(self, of: Posterior, least: tuple[Least, ...]) -> ConsensusCounts:
        """Shares are of those who looked at the image: sums over images."""
        if not any(isinstance(one, str) for one in least):
            return super().consensus_counts(of, least)
        each = []
        for number in self.done:
            image = self.number(of, number)
            found = image.consensus_counts(least)
            chosen = spaced(image.draws.n_draws, of.draws.n_draws)
            each.append(replace(found, counts=found.counts[:, chosen]))
        return replace(each[0], counts=np.sum([one.counts for one in each], axis=0))

    def table_counts(self, of: Posterior, least: tuple[Least, ...]) -> ConsensusCounts:
        """Sums over images."""
        return of.pool.counts(least, of.size_classes.columns)

    def expert_summary(self, of: Posterior) -> ExpertSummary:
        """Over all images."""
        alone = self.put_together([one.alone for one in of.findings], np.nan)
        count = np.bincount(of.items.families, minlength=len(of.items.experts))
        return of.pool.experts(count, alone)

    def catalogue(self, of: Posterior) -> dict[str, Array]:
        """The images' own, one after the other."""
        each = [one.catalogue for one in of.findings]
        named = self.names_among_all([table["cluster"] for table in each])
        columns = {
            "image": np.repeat(self.names(of), [len(table["cluster"]) for table in each]),
            "cluster": np.concatenate(named),
        }
        # Only images with footprints have a column of who looked at an object's place.
        coverage = of.items.coverage
        looked = [coverage.counts[coverage.zone[names]] for names in named]
        for name in max(each, key=len):
            if name == tables.LOOKED:
                found = [table.get(name, n) for table, n in zip(each, looked, strict=True)]
                columns[name] = np.concatenate(found)
            elif name != "cluster":
                columns[name] = np.concatenate([table[name] for table in each])
        return columns

    def doubles(self, of: Posterior) -> pandas.DataFrame:
        """Those of each image, one after the other."""
        each = []
        for number, one in zip(self.done, of.findings, strict=True):
            found = one.doubles or self.number(of, number).doubles_columns
            rows = self.parts.rows[number]
            each.append({**found, "marking": rows[found["marking"]], "other": rows[found["other"]]})
        columns = {name: np.concatenate([one[name] for one in each]) for name in each[0]}
        return tables.doubles_frame(of.items, columns)


class ImagesApart(ManyImages):
    """Several images that were drawn each by itself: draws of all are those of each, joined."""

    apart = True

    def number(self, of: Posterior, number: int) -> Posterior:
        """The posterior of an image, which shares nothing with the others."""
        items = self.parts.items_of(number)
        return self._posterior(of, number, items, SingleImage(self.parts.rows[number]))

    def alpha(self, of: Posterior) -> NDArray[np.float64]:
        """The mean over images."""
        return of.pool.alpha

    def n_clusters(self, of: Posterior) -> NDArray[np.int64]:
        """Sums over images."""
        return of.pool.sums.n_clusters

    def learned(self, of: Posterior) -> Samples:
        """Means over images."""
        return of.pool.learned

    def categories(self, of: Posterior) -> CategorySummary | None:
        """Every image has its own."""
        return None

    def category_sets(self, of: Posterior) -> CategorySets:
        """One for each image on which there are any."""
        each = zip(self._names, of.findings, strict=True)
        return [(name, one.categories) for name, one in each if one.categories is not None]

    def consensus_counts(self, of: Posterior, least: tuple[Least, ...]) -> ConsensusCounts:
        """Shares that the tables have are known already."""
        if any(isinstance(one, str) for one in least):
            known = of.table_counts
            if set(least) <= set(known.min_experts):
                asked = [known.min_experts.index(one) for one in least]
                return ConsensusCounts(least, known.size_classes, known.counts[:, :, asked])
        return super().consensus_counts(of, least)

    def convergence(self, of: Posterior) -> Verdict:
        """For every image, and which are the worst."""
        verdicts = {name: one.verdict for name, one in zip(self._names, of.findings, strict=True)}
        missing = len(self.parts) - len(self._names)
        return judge_images(verdicts, of.pool.diagnostics(of.table_counts), missing)


def many_images(
    parts: Parts, records: Sequence[RunRecord | None], source: DrawSource
) -> ManyImages:
    """Several images, as the settings say how they were drawn."""
    kind = ImagesApart if parts.config.run.images == "independent" else ManyImages
    return kind(parts, records, source)


def answers_of(draws: Draws, items: Items, config: Config, record: RunRecord) -> Answers:
    """Of draws of all items: of one image, or of several whose draws are cut into images."""
    if len(items.images) < 2:
        return SingleImage()
    parts = Parts.of_images(items, config)
    return many_images(parts, [record] * len(parts), SharedDraws(draws, parts.rows))


def _in_threads(
    work: Callable[[int], tuple[Findings, Series]], images: Sequence[int]
) -> Iterator[tuple[Findings, Series]]:
    """Summaries of images, made side by side, in the order asked for."""
    from concurrent.futures import ThreadPoolExecutor

    from dfcrp.sampling.runner import cores

    with ThreadPoolExecutor(cores()) as pool:
        yield from pool.map(work, images)

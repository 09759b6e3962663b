"""A finished run: its draws, its items, its settings, and every question one may ask of them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from dfcrp.draws import Draws
from dfcrp.errors import InputError
from dfcrp.first_look import Finding, first_look
from dfcrp.geometry import TangentPlanes
from dfcrp.items.columns import ColumnChoice
from dfcrp.items.items import Items
from dfcrp.likelihoods.base import Likelihood
from dfcrp.likelihoods.differences import ExpertBias
from dfcrp.likelihoods.registry import likelihood_named
from dfcrp.posterior import tables
from dfcrp.posterior.answers import Answers, ManyImages, answers_of, many_images
from dfcrp.posterior.findings import Findings
from dfcrp.posterior.images import JoinedDraws, Pool, Summaries, once
from dfcrp.posterior.links import LEAST, links_frame
from dfcrp.priors.base import Prior
from dfcrp.priors.registry import prior_named
from dfcrp.runs.parts import DrawSource, Parts, RunRecord
from dfcrp.settings.config import Config
from dfcrp.settings.consensus import REAL, Least, in_words, needed
from dfcrp.summaries.coclustering import Coclustering, coclustering
from dfcrp.summaries.consensus import (
    PAPER_EDGES,
    ConsensusCounts,
    SizeClasses,
    choose_edges,
)
from dfcrp.summaries.convergence import (
    KnownOfRun,
    StoredDiagnostics,
    Verdict,
    diagnose_stored,
)
from dfcrp.summaries.experts import ExpertSummary, expert_frame
from dfcrp.summaries.fit import ModelFit
from dfcrp.summaries.membership import Membership
from dfcrp.summaries.point_partition import PointPartition
from dfcrp.values import Array, Json

if TYPE_CHECKING:
    import pandas
    from xarray import DataTree

    from dfcrp.evaluation.result import Evaluation
    from dfcrp.posterior.categories import CategorySummary
    from dfcrp.posterior.explain import Explanation
    from dfcrp.posterior.predictive import Predictive
    from dfcrp.posterior.sizes import SizeFrequency
    from dfcrp.priors.detection.answers import DetectionSummary
    from dfcrp.report.inline import Explorer


class Posterior:
    """A finished run: draws of the partition of items, and every question one may ask of them.

    Of one image or of many, of any kind of item: what differs comes from the likelihood and the
    prior. Summaries stream over the draws and are kept once computed.

    Attributes
    ----------
    items : Items
    config : Config
    record : RunRecord
        How the draws came about; of many images, the scans of the longest.
    images : tuple of str
        Names of the images that there are draws of; ``posterior[name]`` is the posterior of one.

    Examples
    --------
    >>> posterior = dfcrp.load("run")  # doctest: +SKIP
    >>> posterior.consensus(min_experts=5)  # doctest: +SKIP
    >>> posterior["NAC"].catalogue()  # doctest: +SKIP
    """

    def __init__(
        self,
        draws: Draws,
        items: Items,
        config: Config,
        record: RunRecord,
        *,
        answers: Answers | None = None,
    ) -> None:
        self.draws: Draws = draws
        self.items: Items = items
        self.config: Config = config
        self.record = record
        self._answers = answers or answers_of(draws, items, config, record)
        self._points: dict[str, PointPartition] = {}
        self._counts: dict[tuple[Least, ...], ConsensusCounts] = {}
        self._diameters: dict[tuple[Least, int], list[NDArray[np.float64]]] = {}

    @classmethod
    def of_images(
        cls,
        parts: Parts,
        records: Sequence[RunRecord | None],
        source: DrawSource,
        record: RunRecord,
        summaries: Summaries | None = None,
    ) -> Posterior:
        """The posterior of images that were drawn each by itself."""
        images = many_images(parts, records, source)
        images.summaries = summaries
        return cls(JoinedDraws(images), parts.items, parts.config, record, answers=images)

    def __repr__(self) -> str:
        images = f" on {len(self.images):,} images" if self.many is not None else ""
        return (
            f"<Posterior: {self.items.counted} by {len(self.items.experts):,} experts{images}, "
            f"prior {self.config.run.prior}; "
            f"{self.draws.n_chains} chains × {self.draws.n_draws:,} draws>"
        )

    def _repr_html_(self) -> str:
        from dfcrp.markup import first_rows

        table = self.catalogue()
        caption = f"{self!r}. The first objects of the catalogue:"
        names = [str(name) for name in table if not str(name).endswith(("_sd", "_lo", "_hi"))]
        return first_rows(caption, {name: table[name].tolist() for name in names})

    # Images

    @property
    def images(self) -> tuple[str, ...]:
        """Names of the images that there are draws of; none if the items name no image."""
        return self._answers.names(self)

    def __getitem__(self, name: str) -> Posterior:
        """The posterior of one image, as if it had been fitted alone."""
        return self._answers.image(self, name)

    def __iter__(self) -> Iterator[str]:
        return iter(self.images)

    def image(self, number: int) -> Posterior:
        """The posterior of an image by its number among all images of the items."""
        return self.image_set.number(self, number)

    @property
    def rows(self) -> NDArray[np.int64] | None:
        """The rows of these items among all, if this is one image of many."""
        return self._answers.rows

    @property
    def whole(self) -> Posterior | None:
        """The posterior of all images, if this is one that was drawn together with others."""
        return self._answers.whole

    def drawn_with(self, row: int) -> tuple[Items, int]:
        """The items that were drawn together with this one, and its row among them."""
        if self.whole is None or self.rows is None:
            return self.items, row
        return self.whole.items, int(self.rows[row])

    @property
    def many(self) -> ManyImages | None:
        """The images, if there are several."""
        return self._answers.many

    @property
    def image_set(self) -> ManyImages:
        """The images, of which there must be several."""
        if self.many is None:
            raise InputError("this is a posterior of one image")
        return self.many

    @property
    def findings(self) -> tuple[Findings, ...]:
        """Of several images: the summary of each, in the order of ``images``."""
        return self.image_set.found(self)[0]

    @property
    def pool(self) -> Pool:
        """Of several images: totals."""
        return self.image_set.found(self)[1]

    @property
    def independent(self) -> bool:
        """Whether there are several images that were drawn each by itself."""
        return self._answers.apart

    @property
    def markings(self) -> Items:
        """The items; of circles they are called markings."""
        return self.items

    @property
    def likelihood(self) -> Likelihood:
        """What the items are, and how they are described."""
        return likelihood_named(self.config.run.likelihood)

    @once
    def origin(self) -> NDArray[np.float64] | None:
        """What features are measured from, if it depends on the items."""
        return self.likelihood.origin(self.items)

    @property
    def prior(self) -> Prior:
        """How partitions were weighed."""
        return prior_named(self.config.run.prior)

    @once
    def labels(self) -> NDArray[np.int32]:
        """Labels (chain, draw, marking): a cluster is named after its smallest member."""
        return np.stack(
            [
                self.draws.labels(chain, 0, self.draws.n_draws)
                for chain in range(self.draws.n_chains)
            ]
        )

    @once
    def alpha(self) -> NDArray[np.float64]:
        """Concentration (chain, draw); of independent images, its mean over them."""
        return self._answers.alpha(self)

    @once
    def n_clusters(self) -> NDArray[np.int64]:
        """Number of clusters (chain, draw)."""
        return self._answers.n_clusters(self)

    @once
    def tolerances(self) -> Json | None:
        """How far apart markings of one object lie, if that was learned.

        Not from one expert's list alone, in which no two markings are of one object.
        """
        if not self.mergeable:
            return None
        return self.likelihood.learned(self._answers.learned(self), self.items)

    @once
    def expert_bias(self) -> ExpertBias | None:
        """Offsets and noise of each expert, if that was learned."""
        found: ExpertBias | None = self.likelihood.expert_bias(self.draws, self.items)
        return found

    @once
    def detection(self) -> DetectionSummary | None:
        """Objects seen and missed, sensitivities and false marks, under the detection prior."""
        found = self._answers.detection(self)
        return found

    @once
    def prior_laid_out(self) -> Any:
        """The prior as the run had it, for its own answers."""
        return self.prior.laid_out(self)

    @once
    def categories(self) -> CategorySummary | None:
        """Categories of the clusters, and who confuses what; None if items name fewer than two.

        Of images that were drawn each by itself, ask each image.
        """
        return self._answers.categories(self)

    @property
    def category_sets(self) -> list[tuple[str | None, CategorySummary]]:
        """What is known of categories: of all images together, or by image."""
        return self._answers.category_sets(self)

    def confusions(self) -> pandas.DataFrame:
        """How often each expert says what of objects of which category, with 95 % intervals."""
        from dfcrp.posterior.categories import confusion_frame

        return confusion_frame(self.category_sets)

    def category_probabilities(self) -> pandas.DataFrame:
        """The probability of each category, one row for each cluster of the catalogue."""
        from dfcrp.posterior.categories import probability_frame

        return probability_frame(self)

    @property
    def diameters(self) -> NDArray[np.float64] | None:
        """The items' diameters, for size classes; None where there is no such thing."""
        return self.likelihood.sizes(self.items)

    @property
    def has_sizes(self) -> bool:
        """Whether items have a size of any kind, by which finding an object may depend."""
        return self.likelihood.log_sizes(self.items) is not None

    @property
    def diameter_from(self) -> str:
        """Where a cluster's diameter comes from: "mu", a parameter of its own, or "members"."""
        known = self.likelihood.size_parameter() is not None
        return self.config.summary.diameter if known else "members"

    @property
    def size_classes(self) -> SizeClasses:
        """Size classes of the settings; none where items have no size."""
        if self.diameters is None:
            return SizeClasses.none()
        asked, edges = self.config.summary, self.config.summary.class_edges
        if edges is None:
            # A fit settles them for all images together.
            few = len(asked.class_names) == len(PAPER_EDGES) + 1
            edges = PAPER_EDGES if few else choose_edges(self.diameters, len(asked.class_names))
        units = self.items.site.units
        unit = {"px": "", "deg": "km"}.get(units, units)
        return SizeClasses(edges, asked.class_names if edges else (), unit)

    @once
    def pairs(self) -> Coclustering:
        """Co-clustering counts of every pair that was ever together, chain by chain."""
        return coclustering(self.draws)

    def coclustering(self) -> sparse.csr_array:
        """Symmetric sparse matrix of co-clustering probabilities."""
        return self.pairs.matrix()

    def point_partition(self, loss: str = "vi") -> PointPartition:
        """The partition with the smallest expected loss, ``"vi"`` or ``"binder"``.

        Items that are more often in another place than there are moved to it (``n_moved``).
        """
        if loss not in self._points:
            self._points[loss] = self._answers.point_partition(self, loss)
        return self._points[loss]

    @once
    def membership(self) -> Membership:
        """Membership probabilities of the point partition."""
        return self._answers.membership(self)

    @property
    def min_experts(self) -> int:
        """Experts that make a consensus."""
        return self.needed_experts(self.config.summary.min_experts)

    def needed_experts(self, least: Least) -> int:
        """A number of experts as it is, a share in experts; where places differ the most."""
        coverage = self.items.coverage
        return needed(least, int(coverage.counts[coverage.zone].max()))

    @property
    def consensus_words(self) -> str:
        """What makes a consensus, in a sentence: "at least 5 experts"."""
        alike = self.many is None and not self.items.coverage.in_parts
        counts = self.items.coverage.counts
        looked = len(self.items.experts) if alike else (int(counts.min()), int(counts.max()))
        return in_words(self.config.summary.min_experts, looked)

    def consensus_counts(self, min_experts: tuple[Least, ...]) -> ConsensusCounts:
        """Clusters with at least so many experts, in every draw, by size class.

        Shares, as in "60%", are of the experts who looked at the place.
        """
        if min_experts not in self._counts:
            self._counts[min_experts] = self._answers.consensus_counts(self, min_experts)
        return self._counts[min_experts]

    @once
    def table_counts(self) -> ConsensusCounts:
        """The same for the thresholds of the tables."""
        summary = self.config.summary
        wanted: tuple[Least, ...]
        if isinstance(summary.min_experts, str):
            wanted = (*sorted({*summary.thresholds}), summary.min_experts)
        else:
            wanted = tuple(sorted({*summary.thresholds, summary.min_experts}))
        return self._answers.table_counts(self, wanted)

    def consensus(self, min_experts: Least | None = None) -> pandas.DataFrame:
        """Number of objects that at least ``min_experts`` (5, "60%") marked, by size class."""
        import pandas

        wanted = min_experts or self.config.summary.min_experts
        return pandas.DataFrame(self.consensus_counts((wanted,)).rows())

    @property
    def counted_objects(self) -> Least:
        """Which clusters count as objects: real ones, where the prior says which are, or else those
        of enough experts.
        """
        return self.config.summary.min_experts if self.detection is None else REAL

    def consensus_diameters(
        self, min_experts: Least | None = None, limit: int = 1_000
    ) -> list[NDArray[np.float64]]:
        """Ascending diameters of the objects, for each of ``limit`` even draws.

        Objects are the clusters of at least ``min_experts``, by default `counted_objects`.
        """
        wanted = min_experts or self.counted_objects
        if (wanted, limit) not in self._diameters:
            from dfcrp.posterior.sizes import consensus_diameters

            self._diameters[wanted, limit] = consensus_diameters(self, wanted, limit)
        return self._diameters[wanted, limit]

    def size_frequency(self, kind: str = "cumulative", **options: Any) -> SizeFrequency:
        """The size-frequency distribution: "cumulative", "differential" or "relative" (R)."""
        from dfcrp.posterior.sizes import size_frequency

        return size_frequency(self, kind, **options)

    @once
    def expert_summary(self) -> ExpertSummary:
        """How the experts compare; of several images, over all of them."""
        return self._answers.expert_summary(self)

    def experts(self) -> pandas.DataFrame:
        """One row per expert, by number of markings or, if that is known, by sensitivity."""
        return expert_frame(tables.expert_rows(self))

    def catalogue(self) -> pandas.DataFrame:
        """One row per cluster of the point partition, with uncertainty."""
        return tables.catalogue_frame(self, self._answers.catalogue(self))

    @once
    def catalogue_columns(self) -> dict[str, Array]:
        """The catalogue of one image, with clusters named after their first item here."""
        return tables.catalogue_columns(self)

    def names(self, labels: Array) -> NDArray[np.int64]:
        """What clusters are called in the tables: the row of their first marking.

        Negative numbers, which stand for something else, stay as they are.
        """
        if self.rows is None:
            return labels
        found: NDArray[np.int64] = np.where(labels < 0, labels, self.rows[np.maximum(labels, 0)])
        return found

    @property
    def ground(self) -> TangentPlanes | None:
        """On a sphere, the planes that touch it at the markings that clusters are named after."""
        items = self.items
        if not items.site.on_sphere:
            return None
        names = np.unique(self.point_partition().labels)
        return TangentPlanes(items.x[names], items.y[names], items.site.sphere_radius_km)

    def members(self) -> pandas.DataFrame:
        """One row per marking, in input order, with its cluster and how sure that is."""
        return tables.members_frame(self)

    def links(self, p_min: float = LEAST, *, rows: bool = False) -> pandas.DataFrame:
        """Pairs of items that are one object, with their probabilities.

        Parameters
        ----------
        p_min : float
            List pairs that are more probable than this.
        rows : bool
            Also what describes the two items, column by column.

        Returns
        -------
        DataFrame
            A row for each pair, the most probable first: ``id_l`` and ``id_r``; ``source_l`` and
            ``source_r``, the lists they are on, where there are several; ``image`` where items are
            on images; with ``rows`` each column twice, as in ``name_l`` and ``name_r``; ``p``.

        Examples
        --------
        >>> posterior.links(p_min=0.5)  # doctest: +SKIP
        """
        return links_frame(self, p_min, rows=rows)

    def image_table(self) -> pandas.DataFrame:
        """One row per image: how many items, experts and objects, and how the run went."""
        return tables.image_frame(self)

    @once
    def n_doubles(self) -> int:
        """Number of possible duplicates, each counted once; none where no rule forbids them."""
        if not self.prior.one_per_expert:
            return 0
        return int(self.suspected_doubles()["marking"].nunique())

    @once
    def doubles_columns(self) -> dict[str, Any]:
        """Suspected doubles of one image, by the rows of its items."""
        return tables.doubles_columns(self)

    def suspected_doubles(self) -> pandas.DataFrame:
        """Markings that may be a second one of an object their expert has marked already.

        They are alone in the point partition, and as close to that object as its own members are.
        """
        return self._answers.doubles(self)

    @property
    def first_look(self) -> tuple[Finding, ...]:
        """What looks like a mistake in the data; a run warns of it before it begins."""
        return first_look(self.items, self.config.run.radius, self.prior.one_per_expert)

    @property
    def verdict(self) -> Verdict:
        """Whether the run was long enough, what to do if not, and whether the model fits.

        Of images that were drawn each by itself: for every image, and which are the worst.
        """
        return replace(self.convergence, fit=self.model_fit)

    @once
    def model_fit(self) -> ModelFit:
        """Whether the model fits: checks of what users rely on, each with a size and a sentence."""
        return self._answers.model_fit(self)

    @once
    def convergence(self) -> Verdict:
        """The verdict without checks of the fit, which a run does not wait for."""
        return self._answers.convergence(self)

    @property
    def mergeable(self) -> bool:
        """Whether any two items may share a cluster."""
        experts = self.prior.experts(self.items.families)
        return not self.prior.one_per_expert or len(np.unique(experts)) > 1

    @property
    def known_of_run(self) -> KnownOfRun:
        """What the verdict must know besides the draws."""
        return self.known_of_run_with(self.stored_words)

    def known_of_run_with(self, words: Mapping[str, str]) -> KnownOfRun:
        """The same with plain words for what is stored with the draws, made before."""
        return KnownOfRun(
            noun=self.likelihood.noun,
            names=self.items.id,
            words=words,
            unheard=self.likelihood.unheard(self.items),
            mergeable=self.mergeable,
            scans=self.record.scans,
            seconds=self.record.seconds,
        )

    @once
    def stored_words(self) -> dict[str, str]:
        """Plain words for what the verdict judges of what is stored with the draws."""
        return self.quantity_words_at(self.draws.columns.judged)

    @once
    def stored_diagnostics(self) -> StoredDiagnostics:
        """Convergence of the same: images that were drawn together have it in common."""
        return diagnose_stored(self.draws, self.stored_words)

    @property
    def quantity_words(self) -> dict[str, str]:
        """What is stored with every draw, in plain words by its name there."""
        return self.quantity_words_at(range(self.draws.columns.width))

    def quantity_words_at(self, chosen: Sequence[int]) -> dict[str, str]:
        """The same of α and some of the numbers that are stored."""
        columns = self.draws.columns
        stored = [variable.name for variable in columns.shared]
        words = {**self.likelihood.quantity_words(stored), **self.prior.words}
        alpha = "α, concentration: larger means more clusters"
        return {"α": alpha, **columns.in_words(words, chosen)}

    def summary(self) -> Json:
        """The content of summary.json."""
        return tables.summary(self)

    def to_arviz(self) -> DataTree:
        """α, numbers of clusters, consensus counts and what clusters share, for ArviZ.

        An xarray DataTree, or an InferenceData where ArviZ before 1.0 is installed. What clusters
        share, also parameters of experts and looks, is read from the draws when it is used.
        """
        return tables.to_arviz(self)

    def explain(self, item: int | str) -> Explanation:
        """Why an item is where it is.

        Parameters
        ----------
        item : int or str
            Its row from 0, or its id.

        Returns
        -------
        Explanation
            Candidate clusters with their probabilities and distances, what barred the item from
            them, and whom it sat with; ``print`` it to read it.

        Examples
        --------
        >>> print(posterior.explain("2390"))  # doctest: +SKIP
        """
        from dfcrp.posterior.explain import explain, find_item

        return explain(*self._answers.image_with(self, find_item(self.items, item)))

    def predict(self, new: object, experts: object = None) -> dict[str, Array]:
        """Which cluster new items belong to, and how probable that is.

        Parameters
        ----------
        new : matrix, mapping or data frame
            A row for each item, with the columns of the run's items.
        experts : sequence, optional
            Whose list each is on; a cluster that has an item of that list already is barred.

        Returns
        -------
        dict of arrays
            ``cluster``: the name of the most probable cluster of the point partition, -1 if none of
            them is; ``probability``: of that; ``p_none``: that it is of none of them. α and what
            clusters share are at their posterior means.

        Examples
        --------
        >>> posterior.predict({"name": ["anna"], "town": ["ulm"]})  # doctest: +SKIP
        """
        from dfcrp.posterior.explain import predict_new

        return predict_new(self, new, experts)

    def predictive(self, draws: int = 100, seed: int = 0) -> Predictive:
        """The same lists again, as the fitted model would make them, for checks of your own.

        Each item is made again about its object: partition, objects and differences between
        experts are those of the draw. Which objects an expert lists stays as it is.

        Parameters
        ----------
        draws : int
            How many, evenly spaced over all draws.
        seed : int
            Same seed, same items.

        Returns
        -------
        Predictive
            ``predictive["x"]`` is an array (draws, items), ``predictive.observed["x"]`` the data's;
            ``frame(0)`` is a draw as a table, ``to_arviz()`` what ``arviz.plot_ppc`` takes.

        Examples
        --------
        >>> made = posterior.predictive(200)  # doctest: +SKIP
        >>> (made["diameter"].max(axis=1) > made.observed["diameter"].max()).mean()
        ... # doctest: +SKIP
        """
        from dfcrp.posterior.predictive import predictive

        return predictive(self, draws, seed)

    def update(
        self, items: Any = None, decisions: Any = None, *, out: Any = None, **changes: Any
    ) -> Posterior:
        """Go on with more items, corrected ones and decisions.

        The posterior is that of a new run with all items. Its chains begin with the clusters and
        parameters of the last draws, and with every new item alone.

        Parameters
        ----------
        items : Items, matrix or data frame, optional
            New items of the same kind. One with the id of an earlier item takes its place.
        decisions : path, table or rows, optional
            As in ``dfcrp.fit``, besides those of before. A *slip* removes an item.
        out : path, optional
            A new run folder.
        **changes
            scans, burn_in, thin, max_scans, max_minutes, workers and seed,
            as in ``dfcrp.fit``; all other settings are those of this run.

        Returns
        -------
        Posterior

        Examples
        --------
        >>> posterior.update(decisions=[{"decision": "together", "items": "3 7"}])  # doctest: +SKIP
        """
        import dfcrp

        return dfcrp.update(self, items, decisions=decisions, out=out, **changes)

    def review_queue(self, n: int = 20) -> pandas.DataFrame:
        """What to decide next, if the number of objects is what matters.

        Parameters
        ----------
        n : int
            Questions at most.

        Returns
        -------
        DataFrame
            Best first: ``question`` ("together": are the items one object? "real": do they mark
            an object?), ``items`` (ids), ``image``, ``p`` (probability of yes), ``gain`` (by how
            much the answer is expected to lower the variance of the number of objects), and
            ``left`` (the standard deviation of that number, relative to its mean, once this and
            all questions before are answered: stop where it is small enough, such as 0.01). Each
            cluster is asked about once.

        Examples
        --------
        >>> posterior.review_queue(5)  # doctest: +SKIP
        """
        from dfcrp.posterior.review import review_queue

        return review_queue(self, n)

    def image_with(self, item: int | str) -> Posterior:
        """The posterior of the image that an item (row or id) is on; of one image, this one."""
        from dfcrp.posterior.explain import find_item

        return self._answers.image_with(self, find_item(self.items, item))[0]

    def evaluate(
        self,
        truth: object,
        *,
        iou: float | None = None,
        distance: float | Mapping[str, float] | None = None,
        same_category: bool = False,
        p_real: float | None = None,
        min_experts: int | None = None,
        on: str | Sequence[str] = "truth",
        columns: ColumnChoice = None,
    ) -> Evaluation:
        """How right the answer is, beside a truth of the same kind.

        Parameters
        ----------
        truth : path, data frame, dict of columns or items
            The true objects, with the columns of items. Of records: columns ``id`` and ``entity``,
            or pairs of ids.
        iou : float, optional
            Least intersection over union of a match; 0.5 for items with an area.
        distance : float or dict, optional
            Instead: the largest distance of centres, or the largest difference for each column.
            By default, of points and rows of numbers, what the learned scatter suggests.
        same_category : bool
            Match only objects of the same category.
        p_real : float, optional
            List what is real with more than this; 0.5 under the detection prior. Without it, what
            is listed has a ``p_consensus`` above 0.5.
        min_experts : int, optional
            List what at least so many experts found instead.
        on : str or sequence of str
            Images to evaluate on: those that the truth names ("truth"); those of the "answer", or
            "all", where one that the truth does not name has no object; those that "both" name; or
            these.
        columns : dict or str, optional
            Which column of the truth plays which role, as in ``read_items``.

        Returns
        -------
        Evaluation
            A dict, whose keys are attributes too; ``print`` it to read it.

        Examples
        --------
        >>> found = posterior.evaluate("truth.csv")  # doctest: +SKIP
        >>> found.f1, found.brier  # doctest: +SKIP
        """
        from dfcrp.evaluation.api import Asked, evaluate_run

        asked = Asked(iou, distance, same_category, p_real, min_experts, on=on)
        return evaluate_run(self, truth, asked, columns=columns)

    def explore(self, image: object = None, *, height: int = 760) -> Explorer:
        """The explorer, which a notebook shows; ``explore().save("map.html")`` writes a file.

        Parameters
        ----------
        image : path or array, optional
            Put beneath the map, as ``dfcrp.report.write_report`` takes it.
        height : int
            Of the frame in the notebook, in pixels.

        Returns
        -------
        Explorer

        Examples
        --------
        >>> posterior.explore()  # doctest: +SKIP
        """
        # Pages stand on posteriors, so the page is the one that users know.
        import dfcrp

        return dfcrp.Explorer(self, image, height)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a run folder that ``dfcrp.load`` reads back."""
        from dfcrp.posterior.saving import save_posterior

        save_posterior(self, path)

"""A finished run over several images: one catalogue, totals, and a Posterior for each image."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dfcrp.draws import Draws
from dfcrp.errors import InputError
from dfcrp.likelihoods.circle.bias_summary import ExpertBias, rows_with_bias
from dfcrp.likelihoods.circle.tolerances import describe_spreads
from dfcrp.posterior.findings import Findings, Series, Totals, find
from dfcrp.posterior.images_verdict import judge_images
from dfcrp.posterior.pooling import Pool
from dfcrp.posterior.posterior import Posterior, RunRecord
from dfcrp.runs.parts import ImageParts
from dfcrp.summaries.consensus import ConsensusCounts, SizeClasses
from dfcrp.summaries.convergence import Verdict
from dfcrp.summaries.experts import ExpertSummary, expert_frame
from dfcrp.summaries.intervals import summarise
from dfcrp.summaries.membership import UNDECIDED

if TYPE_CHECKING:
    import pandas

Found = tuple[Findings, Series]


class DrawSource(Protocol):
    """Where the draws of the images are."""

    def draws(self, image: int, record: RunRecord) -> Draws:
        """One image's draws after burn-in."""
        ...


class ImagesPosterior:
    """Posterior draws for every image of a run, with their summaries.

    Images that the run did not come to are left out. Clusters are named after the row of their
    first marking among all rows, so that no two images have a cluster of one name.
    """

    def __init__(
        self,
        parts: ImageParts,
        records: Sequence[RunRecord | None],
        source: DrawSource,
        *,
        record: RunRecord,
        summaries: tuple[tuple[Findings, ...], Pool] | None = None,
        whole: Posterior | None = None,
    ) -> None:
        self.parts = parts
        self.markings = parts.markings
        self.config = parts.config
        self.records = tuple(records)
        #: The run as a whole: the scans of the longest image.
        self.record = record
        #: All images as one problem, if they share their hyperparameters.
        self.whole = whole
        self._source = source
        self.done = tuple(i for i, one in enumerate(self.records) if one is not None)
        #: Names of the images that there are draws of.
        self.images = tuple(parts.names[image] for image in self.done)
        if summaries is not None:
            self._summaries = summaries

    def __len__(self) -> int:
        return len(self.images)

    def __iter__(self) -> Iterator[str]:
        return iter(self.images)

    def __getitem__(self, name: str) -> Posterior:
        return self.image(name)

    def image(self, name: str) -> Posterior:
        """The posterior of one image, as if it had been fitted alone."""
        return self.posterior_of(self.number_of(name))

    def number_of(self, name: str) -> int:
        """The number of an image in ``parts``; an error if there are no draws of it."""
        if name not in self._numbers:
            import difflib

            near = difflib.get_close_matches(name, self.images, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise InputError(f"there is no image {name!r} in this run{hint}")
        return self._numbers[name]

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {self.parts.names[image]: image for image in self.done}

    def posterior_of(self, number: int) -> Posterior:
        """The posterior of an image by its number in ``parts``."""
        record = self.records[number]
        assert record is not None
        return Posterior(
            self._source.draws(number, record),
            self.parts.markings_of(number),
            self.parts.config_of(number),
            record,
            self.parts.rows[number],
        )

    @property
    def findings(self) -> tuple[Findings, ...]:
        """Every image's summary, in the order of ``done``."""
        return self._summaries[0]

    @property
    def pool(self) -> Pool:
        """Totals over the images."""
        return self._summaries[1]

    @cached_property
    def _summaries(self) -> tuple[tuple[Findings, ...], Pool]:
        totals = Totals.plan(self.config, len(self.markings.experts))
        found = _in_threads(lambda image: find(self.posterior_of(image), totals), self.done)
        pool, findings = Pool(len(self.markings.experts), totals), []
        for image, (one, series) in zip(self.done, found, strict=True):
            pool.add(series, self.parts.expert_codes[image])
            findings.append(one)
        return tuple(findings), pool

    @property
    def size_classes(self) -> SizeClasses:
        """Size classes of the settings."""
        return SizeClasses(self.config.summary.class_edges, self.config.summary.class_names)

    @cached_property
    def table_counts(self) -> ConsensusCounts:
        """Objects that at least so many experts marked, on all images, in every draw."""
        summary = self.config.summary
        wanted = tuple(sorted({*summary.thresholds, summary.min_experts}))
        return self.pool.counts(wanted, self.size_classes.columns)

    def consensus(self) -> pandas.DataFrame:
        """Objects that at least so many experts marked, by size class, on all images."""
        import pandas

        return pandas.DataFrame(self.table_counts.rows())

    @cached_property
    def expert_summary(self) -> ExpertSummary:
        """How the experts compare, over all images."""
        alone = np.full(len(self.markings), np.nan)
        for image, found in zip(self.done, self.findings, strict=True):
            alone[self.parts.rows[image]] = found.alone
        return self.pool.experts(np.bincount(self.markings.families), alone)

    @property
    def expert_bias(self) -> ExpertBias | None:
        """Offsets and noise of each expert, if that was learned: from all images together."""
        return None if self.whole is None else self.whole.expert_bias

    def experts(self) -> pandas.DataFrame:
        """One row per expert, by number of markings."""
        return expert_frame(self._expert_rows())

    def _expert_rows(self) -> list[dict[str, Any]]:
        rows = self.expert_summary.rows(self.markings.experts)
        return rows_with_bias(rows, self.expert_bias, self.markings.experts)

    def catalogue(self) -> pandas.DataFrame:
        """One row per cluster of the images' point partitions, with uncertainty."""
        import pandas

        tables = [found.catalogue for found in self.findings]
        columns = {
            "image": np.repeat(self.images, [len(table["cluster"]) for table in tables]),
            "cluster": np.concatenate(
                [
                    self.parts.rows[image][table["cluster"]]
                    for image, table in zip(self.done, tables, strict=True)
                ]
            ),
        }
        for name in tables[0]:
            if name != "cluster":
                columns[name] = np.concatenate([table[name] for table in tables])
        return pandas.DataFrame(columns)

    def members(self) -> pandas.DataFrame:
        """One row per marking, in input order; empty where the run did not come to the image."""
        import pandas

        n = len(self.markings)
        cluster, second = np.full(n, -1, np.int64), np.full(n, -1, np.int64)
        p_member, p_second = np.full(n, np.nan), np.full(n, np.nan)
        reached = np.zeros(n, np.bool_)
        for image, found in zip(self.done, self.findings, strict=True):
            rows = self.parts.rows[image]
            reached[rows] = True
            cluster[rows] = rows[found.labels]
            other = found.membership.second
            second[rows] = np.where(other >= 0, rows[np.maximum(other, 0)], other)
            p_member[rows] = found.membership.p_member
            p_second[rows] = found.membership.p_second
        return pandas.DataFrame(
            {
                "marking": self.markings.id,
                "image": self.markings.image,
                "expert": self.markings.expert,
                "cluster": _known(cluster, reached),
                "p_member": p_member,
                "second_cluster": _known(second, reached),
                "p_second": p_second,
            }
        )

    def image_table(self) -> pandas.DataFrame:
        """One row per image: how many markings, experts and objects, and how the run went."""
        import pandas

        return pandas.DataFrame(
            [self._image_row(i, f) for i, f in zip(self.done, self.findings, strict=True)]
        )

    def _image_row(self, image: int, found: Findings) -> dict[str, Any]:
        row: dict[str, Any] = {
            "image": self.parts.names[image],
            "n_markings": len(self.parts.rows[image]),
            "n_experts": len(self.parts.expert_codes[image]),
        }
        for name in ("n_clusters", "consensus", "alpha"):
            interval = getattr(found, name)
            row |= {name: interval.mean, f"{name}_lo": interval.lo, f"{name}_hi": interval.hi}
        verdict = found.verdict
        return row | {
            "undecided": int(np.count_nonzero(found.membership.p_member < UNDECIDED)),
            "scans": found.record.scans,
            "burn_in": found.record.burn_in,
            "seed": self.parts.config_of(image).run.seed,
            "max_rhat": verdict.max_rhat,
            "min_ess": verdict.min_ess,
            "pairs_disagreeing": verdict.pairs_disagreeing,
            "ok": verdict.ok,
        }

    @cached_property
    def tolerances(self) -> dict[str, Any] | None:
        """How far apart markings of one object lie, averaged over images, if that was learned."""
        spread = self.pool.hyper[:, 1:]
        return describe_spreads(spread, self.markings.diameter) if spread.size else None

    @cached_property
    def verdict(self) -> Verdict:
        """Whether the run was long enough for every image, and which are the worst.

        If they share their hyperparameters: for all of them as one problem.
        """
        if self.whole is not None:
            return self.whole.verdict
        verdicts = {
            name: found.verdict for name, found in zip(self.images, self.findings, strict=True)
        }
        missing = len(self.parts.names) - len(self.images)
        return judge_images(verdicts, self.pool.diagnostics(self.table_counts), missing)

    def summary(self) -> dict[str, Any]:
        """The content of summary.json."""
        sums, hyper = self.pool.sums, self.pool.hyper
        return {
            "n_markings": len(self.markings),
            "n_experts": len(self.markings.experts),
            "n_images": len(self.images),
            "chains": self.config.run.chains,
            "scans": self.record.scans,
            "burn_in": self.record.burn_in,
            "draws": sums.n_clusters.size,
            "seconds": round(self.record.seconds, 3),
            "n_clusters": summarise(sums.n_clusters.ravel()).as_dict(),
            "alpha": summarise(hyper[:, 0]).as_dict(),
            **({"tolerances": self.tolerances} if self.tolerances else {}),
            "consensus": self.table_counts.rows(),
            "experts": self._expert_rows(),
            "convergence": self.verdict.as_dict(),
        }

    def image_with(self, marking: int | str) -> Posterior:
        """The posterior of the image that a marking (row among all, or id) is on."""
        from dfcrp.posterior.explain import find_marking

        assert self.markings.image is not None
        return self.image(str(self.markings.image[find_marking(self.markings, marking)]))

    def explain(self, marking: int | str) -> Any:
        """Why a marking (row among all, or id) is where it is on its image."""
        image = self.image_with(marking)
        if isinstance(marking, str):
            return image.explain(marking)
        assert image.rows is not None
        return image.explain(int(np.searchsorted(image.rows, marking)))

    def save(self, path: Any) -> None:
        """Write a run folder that ``dfcrp.load`` reads back."""
        from dfcrp.runs.images_folder import save_images

        save_images(self, path)


def _known(values: NDArray[np.int64], known: NDArray[np.bool_]) -> Any:
    """Whole numbers as a column, empty where they are not known."""
    import pandas

    return values if known.all() else pandas.arrays.IntegerArray(values, ~known)


def _in_threads(work: Callable[[int], Found], images: Sequence[int]) -> Iterator[Found]:
    """Summaries of images, made side by side, in the order asked for."""
    from concurrent.futures import ThreadPoolExecutor

    from dfcrp.sampling.runner import cores

    with ThreadPoolExecutor(cores()) as pool:
        yield from pool.map(work, images)

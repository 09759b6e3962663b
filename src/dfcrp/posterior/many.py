"""What a posterior of several images is made of: each image's draws and summaries, and totals."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dfcrp.draws import ClusterBlock, Columns, Draws
from dfcrp.errors import InputError, did_you_mean
from dfcrp.posterior.findings import Findings, Series, Totals, spaced
from dfcrp.posterior.pooling import Pool
from dfcrp.runs.part_run import DrawSource
from dfcrp.runs.parts import Parts
from dfcrp.runs.record import RunRecord
from dfcrp.summaries.membership import Membership

Found = tuple[Findings, Series]
Summaries = tuple[tuple[Findings, ...], Pool]


class ManyImages:
    """The images of a run; those that the run did not come to are left out."""

    def __init__(
        self, parts: Parts, records: Sequence[RunRecord | None], source: DrawSource
    ) -> None:
        self.parts = parts
        self.records = tuple(records)
        self._source = source
        self.done = tuple(i for i, one in enumerate(self.records) if one is not None)
        #: Names of the images that there are draws of.
        self.names = tuple(parts.names[image] for image in self.done)
        self.totals = Totals.plan(parts.config, len(parts.items.experts))
        self.summaries: Summaries | None = None

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {self.parts.names[image]: image for image in self.done}

    def number_of(self, name: str) -> int:
        """The number of an image in ``parts``; an error if there are no draws of it."""
        if name not in self._numbers:
            near = did_you_mean(name, self.names)
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

    def summarised(self, find: Callable[[int], Found]) -> Summaries:
        """Every image's summary, in the order of ``done``, and totals; made once."""
        if self.summaries is None:
            pool, findings = Pool(len(self.parts.items.experts), self.totals), []
            for image, (one, series) in zip(self.done, _in_threads(find, self.done), strict=True):
                pool.add(series, self.parts.expert_codes[image])
                findings.append(one)
            self.summaries = tuple(findings), pool
        return self.summaries

    @property
    def rows(self) -> list[NDArray[np.int64]]:
        """The rows of each image that there are draws of."""
        return [self.parts.rows[image] for image in self.done]

    def put_together(self, values: Sequence[NDArray[Any]], fill: float) -> NDArray[Any]:
        """One value per item from those of each image; ``fill`` where there are no draws."""
        whole = np.full(len(self.parts.items), fill, np.result_type(*values))
        for rows, own in zip(self.rows, values, strict=True):
            whole[rows] = own
        return whole

    def names_among_all(self, labels: Sequence[NDArray[Any]]) -> list[NDArray[np.int64]]:
        """Labels of each image's items, or negative numbers, as rows among all items."""
        return [
            np.where(own < 0, own, rows[np.maximum(own, 0)])
            for rows, own in zip(self.rows, labels, strict=True)
        ]

    def membership(self, findings: Sequence[Findings]) -> Membership:
        """How sure every item is of its cluster."""
        found = [one.membership for one in findings]
        return Membership(
            p_member=self.put_together([one.p_member for one in found], np.nan),
            second=self.put_together(self.names_among_all([one.second for one in found]), -1),
            p_second=self.put_together([one.p_second for one in found], np.nan),
            clusters=np.concatenate(self.names_among_all([one.clusters for one in found])),
            stability=np.concatenate([one.stability for one in found]),
        )


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
        for image, rows in zip(self._images.done, self._images.rows, strict=True):
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

    def shared(self) -> NDArray[np.float64]:
        """Nothing is shared by clusters of different images."""
        return np.empty((self.n_chains, self.n_draws, 0))

    def clusters(self, chain: int, start: int, stop: int) -> ClusterBlock:
        """Cluster parameters of draws ``start:stop`` of a chain."""
        draw, names, values = [], [], []
        for image, rows in zip(self._images.done, self._images.rows, strict=True):
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
        for image, rows in zip(self._images.done, self._images.rows, strict=True):
            at = np.searchsorted(rows, marking)
            if at < len(rows) and rows[at] == marking:
                draws = self._images.draws_of(image)
                chosen = self._chosen(draws, 0, self.n_draws)
                return rows[draws.history(int(at))[:, chosen]].astype(np.int32)
        return np.full((self.n_chains, self.n_draws), marking, np.int32)


def _in_threads(work: Callable[[int], Found], images: Sequence[int]) -> Iterator[Found]:
    """Summaries of images, made side by side, in the order asked for."""
    from concurrent.futures import ThreadPoolExecutor

    from dfcrp.sampling.runner import cores

    with ThreadPoolExecutor(cores()) as pool:
        yield from pool.map(work, images)

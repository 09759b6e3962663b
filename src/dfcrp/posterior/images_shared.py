"""Draws of images that were fitted as one problem, cut into images."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dfcrp.draws import ClusterBlock, Draws, MemoryDraws, blocks

#: Labels of all draws that are in memory at a time.
MAX_LABELS = 1 << 26


class SharedDraws:
    """Cuts the draws of all images into those of each; several are cut at a time and kept."""

    def __init__(self, draws: Draws, rows: Sequence[NDArray[np.int64]]) -> None:
        self._draws = draws
        self._rows = rows
        self._lock = threading.Lock()
        self._cut: dict[int, MemoryDraws] = {}
        #: The image of each marking, and its number there.
        self._image = np.empty(draws.n_markings, np.int64)
        self._local = np.empty(draws.n_markings, np.int32)
        for image, own in enumerate(rows):
            self._image[own] = image
            self._local[own] = np.arange(len(own))
        longest = MAX_LABELS // (draws.n_chains * draws.n_draws)
        ends = np.cumsum([len(own) for own in rows])
        self._group = (ends - 1) // max(longest, 1)

    def draws(self, part: int = 0, burn_in: int = 0, stop: int | None = None) -> Draws:
        """One image's draws; its clusters never reach into another. Burn-in is gone already."""
        with self._lock:
            if part not in self._cut:
                self._cut = {}  # before the next ones come
                self._cut = self._cut_group(np.flatnonzero(self._group == self._group[part]))
            return self._cut[part]

    def _cut_group(self, images: NDArray[np.int64]) -> dict[int, MemoryDraws]:
        draws = self._draws
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
        return {
            image: MemoryDraws(
                np.stack([np.concatenate(found) for found in labels[image]]),
                draws.alpha(),
                [_joined(found) for found in clusters[image]],
                draws.columns,
                draws.shared(),
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

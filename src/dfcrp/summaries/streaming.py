"""What every summary stands on: draws read block by block, labels as draws, mean and interval."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dfcrp.draws import Draws, MemoryDraws, blocks
from dfcrp.errors import InputError
from dfcrp.summaries.kernels.partitions import canonical_by_item, count_clusters
from dfcrp.values import Array


def label_blocks(
    draws: Draws, chain: int | None = None
) -> Iterator[tuple[int, int, int, NDArray[np.int32]]]:
    """Every draw once as (chain, start, stop, labels), of one chain or of all.

    The labels are contiguous and writable, so that each kernel is compiled for one kind of array.
    """
    for block_chain, start, stop in blocks(draws):
        if chain is None or block_chain == chain:
            labels = draws.labels(block_chain, start, stop)
            yield block_chain, start, stop, np.require(labels, np.int32, ["C", "W"])


def is_draws(source: object) -> bool:
    """Whether this is a Draws object rather than an array of labels."""
    return hasattr(source, "n_chains") and hasattr(source, "clusters")


def as_draws(source: Any) -> Draws:
    """Draws as they are; an array of labels (draws, n) or (chains, draws, n) as draws.

    The array's labels may be any integers; they are renamed after the smallest members.
    """
    if is_draws(source):
        draws: Draws = source
        return draws
    labels = np.asarray(source)
    if labels.ndim == 2:
        labels = labels[np.newaxis]
    if labels.ndim != 3 or labels.size == 0:
        raise InputError(
            f"labels have shape {np.asarray(source).shape}; expected (draws, n) or "
            "(chains, draws, n) with at least one draw and one item"
        )
    if not (np.issubdtype(labels.dtype, np.integer) or labels.dtype == np.bool_):
        raise InputError(f"labels are of type {labels.dtype}; labels must be integers")
    return MemoryDraws(canonical(labels), np.full(labels.shape[:2], np.nan))


def canonical(labels: Array) -> NDArray[np.int32]:
    """Rename clusters after their smallest member; the last axis runs over the items."""
    flat = labels.reshape(-1, labels.shape[-1])
    lowest, highest = int(flat.min()), int(flat.max())
    if lowest < 0 or highest > 4 * flat.shape[1] + 1000:
        flat = np.unique(flat, return_inverse=True)[1].reshape(flat.shape)
        highest = int(flat.max())
    out = np.empty(flat.shape[::-1], np.int32)
    canonical_by_item(np.require(flat, np.int64, ["C", "W"]), highest + 1, out)
    return np.ascontiguousarray(out.T).reshape(labels.shape)


def stride_for(draws: Draws, limit: int) -> int:
    """Smallest step along each chain that leaves at most ``limit`` draws, or one a chain."""
    per_chain = max(limit // draws.n_chains, 1)
    return -(-draws.n_draws // per_chain)


def kept(start: int, step: int) -> slice:
    """Which draws of a block that begins at ``start`` are multiples of ``step``."""
    return slice(-start % step, None, step)


def labels_by_item(draws: Draws, step: int = 1) -> NDArray[np.int32]:
    """Every ``step``-th draw of each chain, one after the other, as (n_markings, draws)."""
    per_chain = -(-draws.n_draws // step)
    out = np.empty((draws.n_markings, draws.n_chains * per_chain), np.int32)
    filled = 0
    for _, start, _, labels in label_blocks(draws):
        part = labels[kept(start, step)]
        out[:, filled : filled + len(part)] = part.T
        filled += len(part)
    return out


def n_clusters(draws: Draws) -> NDArray[np.int64]:
    """Number of clusters in every draw, shape (n_chains, n_draws)."""
    out = np.empty((draws.n_chains, draws.n_draws), np.int64)
    for chain, start, stop, labels in label_blocks(draws):
        out[chain, start:stop] = count_clusters(labels)
    return out


#: Mass of every interval that dfcrp reports.
LEVEL = 0.95


@dataclass(frozen=True)
class Interval:
    """Posterior mean with a 95 % interval; scalars or arrays of one shape."""

    mean: Any
    lo: Any
    hi: Any

    def as_dict(self) -> dict[str, float]:
        """As in summary.json; scalars only."""
        return {"mean": float(self.mean), "lo": float(self.lo), "hi": float(self.hi)}

    def __getitem__(self, index: object) -> Interval:
        return Interval(self.mean[index], self.lo[index], self.hi[index])


def summarise(samples: Array, level: float = LEVEL) -> Interval:
    """Mean and equal-tailed interval over the first axis.

    The interval of counts (samples of a whole-number type) ends at whole numbers, rounded outwards.
    The interval always holds the mean, which a few far draws could pull out of it. Samples that are
    NaN (an undefined share, say) are left out; where nothing is left, the answer is NaN.
    """
    samples = np.asarray(samples)
    whole = np.issubdtype(samples.dtype, np.integer)
    samples = samples.astype(np.float64, copy=False)
    tails = [(1.0 - level) / 2.0, (1.0 + level) / 2.0]
    if not np.isnan(samples).any():
        lo, hi = np.quantile(samples, tails, axis=0)
        if whole:
            lo, hi = np.floor(lo), np.ceil(hi)
        return holding(samples.mean(axis=0), lo, hi, whole=whole)
    flat = samples.reshape(len(samples), -1)
    out = np.full((3, flat.shape[1]), np.nan)
    for column in range(flat.shape[1]):
        values = flat[:, column]
        values = values[~np.isnan(values)]
        if values.size:
            out[:, column] = values.mean(), *np.quantile(values, tails)
    return holding(*out.reshape(3, *samples.shape[1:]))


def holding(mean: ArrayLike, lo: ArrayLike, hi: ArrayLike, *, whole: bool = False) -> Interval:
    """An interval that holds its mean; of counts it ends at whole numbers."""
    least, most = (np.floor(mean), np.ceil(mean)) if whole else (mean, mean)
    return Interval(mean, np.minimum(lo, least), np.maximum(hi, most))

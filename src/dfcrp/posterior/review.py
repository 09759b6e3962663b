"""What to decide next: the questions whose answers say most about the number of objects.

A question A has the answer yes in some draws and no in others. The variance of the number N of
objects is expected to fall by Cov(N, A)² / (p (1 − p)) when the answer is known, p the share of
draws that say yes. That is its gain. Whether a cluster is real is drawn given the rest, and gains
its own p (1 − p). Each cluster of the point partition is asked about once, so that the
questions are about different things, and what has been decided is not asked again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pandas

    from dfcrp.posterior.posterior import Posterior

#: Nothing is asked whose answer is as likely as this, or as unlikely.
SURE = 0.02
#: Draws that are looked at, of all chains.
MOST_DRAWS = 1_000
COLUMNS = ("question", "items", "image", "p", "gain", "left")


class Question(NamedTuple):
    """One question, before it is known which are asked."""

    question: str
    items: tuple[str, ...]
    image: str
    p: float
    gain: float
    #: Rows of the point partition's clusters that it is about.
    about: frozenset[tuple[int, int]]


def review_queue(posterior: Posterior, n: int) -> pandas.DataFrame:
    """The first ``n`` questions, best first."""
    import pandas as pd

    questions: list[Question] = []
    variance, mean = 0.0, 0.0
    for number, part in enumerate(_parts(posterior)):
        counts = _objects(part)
        variance += float(counts.var())
        mean += float(counts.mean())
        questions += _pairs(part, number) + _realities(part, number)
    asked: set[tuple[int, int]] = set()
    rows: list[dict[str, Any]] = []
    for one in sorted(questions, key=lambda one: -one.gain):
        if len(rows) == n or one.about & asked:
            if len(rows) == n:
                break
            continue
        asked |= one.about
        variance = max(variance - one.gain, 0.0)
        left = float(np.sqrt(variance) / max(mean, 1.0))
        ids = " ".join(f'"{name}"' if " " in name else name for name in one.items)
        rows.append(
            dict(zip(COLUMNS, (one.question, ids, one.image, one.p, one.gain, left), strict=True))
        )
    return pd.DataFrame(rows, columns=list(COLUMNS))


def _parts(posterior: Posterior) -> list[Posterior]:
    """The posterior of every image."""
    if posterior.many is None:
        return [posterior]
    return [posterior.image(number) for number in posterior.image_set.done]


def _chosen(part: Posterior) -> tuple[int, NDArray[np.int64]]:
    """Of how many draws of each chain, which."""
    draws = part.draws.n_draws
    step = max(1, part.draws.n_chains * draws // MOST_DRAWS)
    return step, np.arange(0, draws, step)


def _labels(part: Posterior) -> NDArray[np.int32]:
    """Some draws of all chains, (draws, items)."""
    _, chosen = _chosen(part)
    draws = part.draws
    each = [draws.labels(chain, 0, draws.n_draws)[chosen] for chain in range(draws.n_chains)]
    return np.concatenate(each)


def _objects(part: Posterior) -> NDArray[np.float64]:
    """The number of objects in these draws; of clusters where nothing says what is real."""
    _, chosen = _chosen(part)
    if part.detection is not None:
        seen = np.asarray(part.detection.seen[:, 0], np.float64)
        return seen.reshape(part.draws.n_chains, -1)[:, chosen].ravel()
    return (_labels(part) == np.arange(len(part.items))).sum(axis=1).astype(np.float64)


def _pairs(part: Posterior, number: int) -> list[Question]:
    """Whether two items are one object."""
    found = part.coclustering().tocoo()
    doubtful = (found.row < found.col) & (found.data > SURE) & (found.data < 1.0 - SURE)
    rows, columns = found.row[doubtful], found.col[doubtful]
    labels, counts = _labels(part), _objects(part)
    point = part.point_partition().labels
    away = counts - counts.mean()
    image = "" if part.items.image is None else str(part.items.image[0])
    questions = []
    for i, j in zip(rows.tolist(), columns.tolist(), strict=True):
        same = labels[:, i] == labels[:, j]
        p = float(same.mean())
        if SURE < p < 1.0 - SURE and not _decided(part, i, j):
            gain = float((away * same).mean() ** 2 / (p * (1.0 - p)))
            about = frozenset({(number, int(point[i])), (number, int(point[j]))})
            names = str(part.items.id[i]), str(part.items.id[j])
            questions.append(Question("together", names, image, p, gain, about))
    return questions


def _realities(part: Posterior, number: int) -> list[Question]:
    """Whether a cluster of the point partition is real."""
    if part.detection is None:
        return []
    point = part.point_partition().labels
    image = "" if part.items.image is None else str(part.items.image[0])
    decided = None if part.items.decided is None else part.items.decided.reality
    questions = []
    clusters = np.unique(point)
    for name, p in zip(clusters.tolist(), part.detection.p_real_cluster.tolist(), strict=True):
        members = np.flatnonzero(point == name)
        open_still = decided is None or not decided[members].any()
        if SURE < p < 1.0 - SURE and open_still:
            ids = tuple(map(str, part.items.id[members].tolist()))
            about = frozenset({(number, int(name))})
            questions.append(Question("real", ids, image, p, p * (1.0 - p), about))
    return questions


def _decided(part: Posterior, i: int, j: int) -> bool:
    """Whether people have said of two items that they are one object, or two."""
    decided = part.items.decided
    if decided is None:
        return False
    if decided.group[i] >= 0 and decided.group[i] == decided.group[j]:
        return True
    return bool(((decided.apart == (i, j)) | (decided.apart == (j, i))).all(axis=1).any())

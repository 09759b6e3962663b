"""What objects are called: consensus categories with probabilities, and who confuses what.

Under a prior that knows categories θ and ρ were drawn with the clusters. Under any other they are
drawn afterwards, given the clusters of each draw (``priors/opinions``). Either way an object is of
category c with a probability proportional to ρ_c Π θ_p(i)[c, c_i], averaged over the draws.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from dfcrp.draws import shared_variable
from dfcrp.errors import DfcrpWarning
from dfcrp.persons import persons_of
from dfcrp.priors.detection.layout import too_many
from dfcrp.priors.opinions import opinions
from dfcrp.summaries.consensus import family_arrays
from dfcrp.summaries.kernels.tables import represent_clusters
from dfcrp.summaries.point_partition import members_by_cluster
from dfcrp.summaries.streaming import kept, label_blocks, stride_for, summarise
from dfcrp.values import Array

if TYPE_CHECKING:
    import pandas

    from dfcrp.items.items import Items
    from dfcrp.posterior.posterior import Posterior

Floats = NDArray[np.float64]
Names = tuple[str, ...]
#: Draws of all chains that are looked at, at most, and numbers in all their matrices.
MAX_DRAWS = 1_000
MAX_NUMBERS = 20_000_000
LEAST = 1e-300


@dataclass(frozen=True)
class CategorySummary:
    """Categories of the clusters of the point partition, and confusion matrices of experts."""

    names: tuple[str, ...]
    #: (clusters, C): probability of each category, given that the cluster is an object.
    probability: Floats
    #: The clusters: rows of their first items.
    clusters: NDArray[np.int64]
    #: (draws, experts, C, C'): probability that an expert says C' of an object of category C.
    confusion: Floats
    #: (experts, C'): how often an expert said it.
    said: NDArray[np.int64]
    experts: tuple[str, ...]
    #: Whether categories had a say in the clusters.
    in_clusters: bool

    def confusions(self) -> dict[str, list[object]]:
        """One row for each expert, true category and what is said: mean and 95 % interval."""
        table: dict[str, list[object]] = {
            name: [] for name in ("expert", "category", "said", "p", "p_lo", "p_hi", "n_said")
        }
        found = summarise(self.confusion)
        for f, c, said in np.ndindex(*self.confusion.shape[1:]):
            cell = found[f, c, said]
            who = (self.experts[f], self.names[c], self.names[said])
            row = (*who, float(cell.mean), float(cell.lo), float(cell.hi), int(self.said[f, said]))
            for values, value in zip(table.values(), row, strict=True):
                values.append(value)
        return table

    @property
    def accuracy(self) -> Floats:
        """(draws, experts): how often an expert is right, each category counting alike."""
        return np.asarray(np.trace(self.confusion, axis1=2, axis2=3)) / len(self.names)


def category_summary(posterior: Posterior) -> CategorySummary | None:
    """Categories of all items that were drawn together; None if fewer than two are named."""
    items, draws = posterior.items, posterior.draws
    said = items.category_codes
    if said is None or len(items.categories) < 2:
        return None
    persons = persons_of(items.experts, posterior.config.run.persons).codes
    if too_many(len(items.categories), int(persons.max()) + 1):
        warnings.warn(
            f"{len(items.categories):,} categories are too many for matrices of confusion, and are "
            "ignored; join rare ones",
            DfcrpWarning,
            stacklevel=2,
        )
        return None
    numbers = len(items.categories) ** 2 * (int(persons.max()) + 1)
    step = stride_for(draws, max(min(MAX_DRAWS, MAX_NUMBERS // numbers), 1))
    whole = [block[kept(start, step)] for _, start, _, block in label_blocks(draws)]
    labels = np.concatenate(whole)
    stored = shared_variable(draws, "confusion")
    if stored is None:
        share, confusion = opinions(labels, said, len(items.categories), items.families, persons)
    else:
        share = _chosen(shared_variable(draws, "category_share"), step)
        confusion = _chosen(stored, step)
    clusters, order, offsets = members_by_cluster(posterior.point_partition().labels)
    probability = np.zeros((len(clusters), len(items.categories)))
    person = persons[items.families]
    for draw, row in enumerate(labels):
        logs = _log_weights(row, said, person, share[draw], confusion[draw])
        logs += _decided(row, items)
        standing = _representatives(row, order, offsets, items.families)
        probability += softmax(logs[standing], axis=1)
    counts = np.zeros((len(items.experts), len(items.categories)), np.int64)
    np.add.at(counts, (items.families[said >= 0], said[said >= 0]), 1)
    return CategorySummary(
        items.categories,
        probability / len(labels),
        np.asarray(clusters, np.int64),
        np.moveaxis(confusion[..., persons], -1, 1),
        counts,
        items.experts,
        stored is not None,
    )


def _chosen(values: Array | None, step: int) -> Floats:
    """Every ``step``-th draw of each chain, one chain after the other."""
    assert values is not None
    some = values[:, ::step]
    return np.asarray(some.reshape(-1, *some.shape[2:]))


def _log_weights(
    labels: NDArray[np.int32],
    said: NDArray[np.int64],
    person: NDArray[np.int64],
    share: Floats,
    confusion: Floats,
) -> Floats:
    """log of ρ_c Π θ_p(i)[c, c_i] for the clusters of one draw, (n, C) by label."""
    logs = np.tile(np.log(np.maximum(share, LEAST)), (len(labels), 1))
    known = np.flatnonzero(said >= 0)
    each = np.log(np.maximum(confusion[:, said[known], person[known]], LEAST))
    for c in range(len(share)):
        logs[:, c] += np.bincount(labels[known], weights=each[c], minlength=len(labels))
    return logs


def _decided(labels: NDArray[np.int32], items: Items) -> Floats:
    """−∞ for the categories that people's decisions leave out, (n, C) by label, else 0."""
    logs = np.zeros((len(labels), len(items.categories)))
    if items.decided is not None:
        for at, name in enumerate(items.categories):
            other = (items.decided.category != "") & (items.decided.category != name)
            logs[labels[other], at] = -np.inf
    return logs


def _representatives(
    labels: NDArray[np.int32],
    order: NDArray[np.int64],
    offsets: NDArray[np.int64],
    families: NDArray[np.int64],
) -> NDArray[np.int32]:
    """Which cluster of a draw stands for each cluster of the point partition."""
    codes, holder = family_arrays(families, len(labels))
    shape = (1, len(offsets) - 1)
    names, experts = np.empty(shape, np.int32), np.empty(shape, np.int64)
    row = np.require(labels[np.newaxis], np.int32, ["C", "W"])
    represent_clusters(row, order, offsets, codes, holder, names, experts)
    return names[0]


def _probabilities(posterior: Posterior, clusters: NDArray[np.int64]) -> tuple[Names, Floats]:
    """Categories, and the probability of each for clusters named by row among all items.

    NaN where the items of an image, drawn by itself, say nothing.
    """
    names = (
        posterior.items.categories if posterior.whole is None else posterior.whole.items.categories
    )
    found = np.full((len(clusters), len(names)), np.nan)
    for image, one in posterior.category_sets:
        rows = one.clusters
        if image is not None:
            many = posterior.image_set
            rows = many.parts.rows[many.number_of(image)][rows]
        elif posterior.rows is not None and posterior.whole is None:
            rows = posterior.rows[rows]
        at = np.searchsorted(rows, clusters)
        here = rows[np.minimum(at, len(rows) - 1)] == clusters
        columns = [names.index(name) for name in one.names]
        found[np.ix_(here, range(len(names)))] = 0.0
        found[np.ix_(here, columns)] = one.probability[at[here]]
    return names, found


def category_columns(posterior: Posterior, clusters: NDArray[np.int64]) -> dict[str, Array]:
    """What the catalogue says of categories."""
    names, found = _probabilities(posterior, clusters)
    known = ~np.isnan(found[:, 0])
    best = np.where(known, np.nan_to_num(found).argmax(axis=1), len(names))
    return {
        "category": np.array([*names, ""], dtype=np.str_)[best],
        "p_category": np.where(known, np.nan_to_num(found).max(axis=1), np.nan),
    }


def probability_frame(posterior: Posterior) -> pandas.DataFrame:
    """Clusters as in the catalogue, and a column for each category."""
    table = posterior.catalogue()
    names, found = _probabilities(posterior, table["cluster"].to_numpy())
    kept_columns = [name for name in ("image", "cluster") if name in table]
    frame = table[kept_columns].copy()
    for c, name in enumerate(names):
        frame[name] = found[:, c]
    return frame


def confusion_frame(summaries: list[tuple[str | None, CategorySummary]]) -> pandas.DataFrame:
    """The rows of all summaries; those of images that were drawn by themselves name the image."""
    import pandas

    columns: dict[str, list[object]] = {}
    for image, one in summaries:
        table = one.confusions()
        if image is not None:
            table = {"image": [image] * len(table["expert"]), **table}
        for name, values in table.items():
            columns.setdefault(name, []).extend(values)
    return pandas.DataFrame(columns)

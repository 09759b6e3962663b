"""A run as an answer: its catalogue, how many objects it estimates, how far items scatter."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import chi2

from dfcrp.errors import InputError
from dfcrp.evaluation.linked import LinkAnswer, pairs_within
from dfcrp.evaluation.objects import NUMBERS, Objects
from dfcrp.summaries.streaming import label_blocks

if TYPE_CHECKING:
    from dfcrp.posterior.posterior import Posterior

#: Share of the items of an object that lie within the usual distance of it, if they are normal.
WITHIN = 0.997


def objects_of_run(posterior: Posterior) -> Objects:
    """The catalogue."""
    table, items = posterior.catalogue(), posterior.items
    names = [name for name in items.columns if name in table]
    if len(names) < len(items.columns):
        raise InputError(
            f"the catalogue of {items.kind} does not describe objects by the columns of items; "
            "compare the clusters, with a truth that has the columns id and entity"
        )
    titles = [str(name) for name in table]
    numbers = [name for name in titles if name in NUMBERS or name.endswith(("_lo", "_hi"))]
    image = None
    if "image" in table:
        image = table["image"].to_numpy(dtype=np.str_)
    elif items.images:
        image = np.full(len(table), items.images[0], dtype=f"<U{max(len(items.images[0]), 1)}")
    category = table["category"].to_numpy(dtype=np.str_) if "category" in table else None
    return Objects(
        "the run",
        items.kind,
        {name: table[name].to_numpy(np.float64) for name in names},
        image,
        category,
        numbers={name: table[name].to_numpy(np.float64) for name in numbers},
        site=items.site,
        empty_images=_images(posterior),
    )


def _images(posterior: Posterior) -> tuple[str, ...]:
    """Images that the run has an answer for."""
    items, found = posterior.items, posterior.detection
    if found is not None and found.seen_on is not None:
        return tuple(found.image_names)
    images = items.images if posterior.many is None else posterior.images
    # Where somebody looked and nobody marked anything.
    looked = set() if items.looked is None else set(items.looked[:, 0].tolist())
    return tuple(sorted({*images, *(looked - set(items.images))}))


def totals_of_run(posterior: Posterior) -> dict[str, NDArray[np.int64]] | None:
    """Draws of the number of objects, seen or missed, on each image; None without such a model."""
    found = posterior.detection
    if found is None:
        return None
    if found.seen_on is None or found.missed_on is None:
        draws = (found.seen + found.missed)[:, 0]
        return {"": draws, **dict.fromkeys(posterior.items.images, draws)}
    both = found.seen_on + found.missed_on
    return dict(zip(found.image_names, both.T, strict=True))


def learned_distance(posterior: Posterior) -> tuple[float | Mapping[str, float], str] | None:
    """How far an item may be from its object, by the scatter that was learned.

    One distance where all columns share their scatter, or one for each column.
    """
    found, columns = posterior.tolerances, tuple(posterior.items.columns)
    if not found:
        return None
    reach = float(np.sqrt(chi2.ppf(WITHIN, len(columns))))
    words = f"{reach:.2f} times the scatter that the run learned"
    shared = found.get("_".join(columns))
    if len(columns) > 1 and isinstance(shared, dict):
        return reach * shared["mean"], words
    if all(isinstance(found.get(name), dict) for name in columns):
        return {name: reach * found[name]["mean"] for name in columns}, words
    return None


def links_of_run(posterior: Posterior, least: float | None) -> LinkAnswer:
    """The clusters of the catalogue, and the probability of every pair to be one entity.

    Pairs are listed if they share a cluster, or with ``least``, if they are more probable.
    """
    labels = np.asarray(posterior.point_partition().labels, np.int64)
    found = posterior.pairs
    pairs, p = np.column_stack([found.first, found.second]), found.probability
    within, n = pairs_within(labels), len(labels)
    # A cluster of the point partition may hold a pair that no draw has.
    keys = within[:, 0] * n + within[:, 1]
    extra = within[~np.isin(keys, pairs[:, 0] * n + pairs[:, 1])]
    pairs, p = np.vstack([pairs, extra]), np.append(p, np.zeros(len(extra)))
    if least is None:
        listed, words = labels[pairs[:, 0]] == labels[pairs[:, 1]], "all in one cluster"
    else:
        listed, words = p > least, f"pairs with p > {least:g}"
    return LinkAnswer("the run", labels, pairs, p, listed, words, _numbers_of(posterior))


def _numbers_of(posterior: Posterior) -> Any:
    def numbers(known: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Entities and links among these records, in every draw."""
        entities, links = [], []
        for _, _, _, block in label_blocks(posterior.draws):
            for labels in block[:, known]:
                sizes = np.bincount(labels)
                entities.append(np.count_nonzero(sizes))
                links.append(int((sizes * (sizes - 1) // 2).sum()))
        return np.array(entities, np.int64), np.array(links, np.int64)

    return numbers

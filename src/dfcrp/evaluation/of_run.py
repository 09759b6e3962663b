"""A run as an answer: its catalogue, how many objects it estimates, how far items scatter."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import chi2

from dfcrp.evaluation.objects import NUMBERS, Objects

#: Share of the items of an object that lie within the usual distance of it, if they are normal.
WITHIN = 0.997


def objects_of_run(posterior: Any) -> Objects:
    """The catalogue."""
    table, items = posterior.catalogue(), posterior.items
    names = [name for name in items.columns if name in table]
    numbers = [name for name in table if name in NUMBERS or name.endswith(("_lo", "_hi"))]
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


def _images(posterior: Any) -> tuple[str, ...]:
    """Images that the run has an answer for."""
    items, found = posterior.items, posterior.detection
    if found is not None and found.seen_on is not None:
        return tuple(found.image_names)
    if posterior.many is not None:
        return tuple(posterior.images)
    return tuple(items.images)


def totals_of_run(posterior: Any) -> dict[str, NDArray[np.int64]] | None:
    """Draws of the number of objects, seen or missed, on each image; None without such a model."""
    found = posterior.detection
    if found is None:
        return None
    if found.seen_on is None:
        draws = (found.seen + found.missed)[:, 0]
        return {"": draws, **dict.fromkeys(posterior.items.images, draws)}
    both = found.seen_on + found.missed_on
    return dict(zip(found.image_names, both.T, strict=True))


def learned_distance(posterior: Any) -> tuple[float | Mapping[str, float], str] | None:
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

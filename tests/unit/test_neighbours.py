"""Which items may share a cluster: by image, and in memory that goes with the pairs."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

import dfcrp
from dfcrp.errors import InputError
from dfcrp.likelihoods.normal.hyper import find_pilot
from dfcrp.likelihoods.normal.neighbours import find_feature_neighbours
from dfcrp.likelihoods.normal.shapes import shape_of
from dfcrp.neighbours import neighbourhood
from dfcrp.neighbours.neighbourhood import learned_reach, nearest_pairs, side_by_side, unique_pairs
from dfcrp.sampling.problem import problem_of
from dfcrp.settings.config import resolve

KINDS = {
    "points": ("x", "y"),
    "boxes": ("x", "y", "width", "height"),
    "ellipses": ("x", "y", "major", "minor", "angle"),
    "diagonal": ("u", "v", "w"),
}


def crowd(
    kind: str, *, images: int, experts: int, looks: int, objects: int, seed: int = 1
) -> dfcrp.Items:
    """Each image has some objects, marked by a few experts of many."""
    rng = np.random.default_rng(seed)
    place = rng.uniform(0.0, 1000.0, (images, 1, objects, 2))
    size = rng.uniform(10.0, 20.0, (images, 1, objects))
    shape = (images, looks, objects)
    x, y = np.moveaxis(place + rng.normal(0.0, 1.0, (*shape, 2)), -1, 0)
    grown = size * np.exp(rng.normal(0.0, 0.05, shape))
    angle = rng.uniform(0.0, 180.0, shape)
    values = {
        "points": (x, y),
        "boxes": (x, y, grown, 0.8 * grown),
        "ellipses": (x, y, grown, 0.8 * grown, angle),
        "diagonal": (x, y, grown),
    }[kind]
    first = rng.integers(experts, size=(images, 1, 1)) + np.arange(looks)[:, np.newaxis]
    return dfcrp.Items.from_columns(
        {name: found.ravel() for name, found in zip(KINDS[kind], values, strict=True)},
        [f"e{k}" for k in np.broadcast_to(first % experts, shape).ravel()],
        kind=kind,
        image=[f"i{k}" for k in np.repeat(np.arange(images), looks * objects)],
    )


@pytest.mark.parametrize("kind", KINDS)
def test_memory_does_not_go_with_the_experts_of_other_images(kind: str) -> None:
    """4,000 items by 1,000 experts, of whom four looked at an image."""
    items = crowd(kind, images=200, experts=1000, looks=4, objects=5)
    config = resolve(None, {"likelihood": kind, "images": "shared"})
    tracemalloc.start()
    problem = problem_of(items, config)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert problem.n == 4000
    assert peak < 60e6  # every item with its nearest 4,000 takes 256 MB


@pytest.mark.parametrize("kind", ["points", "diagonal"])
def test_candidates_on_many_images_are_those_of_each(kind: str) -> None:
    """With the scales of all, a run of one image would have the same pairs."""
    items = crowd(kind, images=5, experts=40, looks=3, objects=60)
    shape = shape_of(kind, tuple(items.columns))
    features, experts, images = items.features, items.families, items.image_codes
    assert images is not None
    scales = 20.0 * find_pilot(shape, features, experts, 0.0, images).scales(shape, features, 0.0)

    def found(rows: np.ndarray, images: np.ndarray | None) -> set[tuple[int, int]]:
        got = find_feature_neighbours(
            shape,
            features[rows],
            experts[rows],
            scales[rows],
            radius="auto",
            nearest=None,
            candidates=None,
            images=images,
        )
        return {(int(rows[i]), int(rows[j])) for i, j in got.pairs}

    together = found(np.arange(len(items)), images)
    alone = [found(np.flatnonzero(images == k), None) for k in range(5)]
    assert together == set.union(*alone)
    degree = np.bincount(np.array(sorted(together)).ravel())
    assert degree.max() > 64  # the bound is felt: 180 items on an image, 64 + 3 × 8 nearest


def test_nearest_by_item_is_the_slow_search() -> None:
    """Each item with as many as it asks for, within reach."""
    rng = np.random.default_rng(2)
    places, most = rng.normal(size=(60, 2)), rng.integers(0, 9, 60)
    apart = np.linalg.norm(places[:, np.newaxis] - places, axis=2)
    expected = [
        (i, j)
        for i in range(60)
        for j in np.argsort(apart[i])[1 : most[i] + 1]
        if apart[i, j] < 0.4
    ]
    assert nearest_pairs(places, most, 0.4).tolist() == unique_pairs(np.array(expected)).tolist()


def test_too_many_near_pairs_are_refused_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before memory runs out."""
    monkeypatch.setattr(neighbourhood, "MOST_PAIRS", 100)
    with pytest.raises(InputError, match=r"more than 100 pairs .* smaller radius"):
        nearest_pairs(np.random.default_rng(1).normal(size=(50, 2)), 20)


def test_reach_is_not_that_of_other_images() -> None:
    """An image that one expert looked at alone has no other list: it says nothing of reach."""
    rng = np.random.default_rng(4)
    n = 400
    images = np.repeat(np.arange(100), 4)
    experts = images % 7
    features = np.column_stack([rng.uniform(0.0, 500.0, (n, 2)), np.full(n, 2.0)])
    distance, _ = learned_reach(side_by_side(features, images), experts, images)
    assert distance.max() < 500.0

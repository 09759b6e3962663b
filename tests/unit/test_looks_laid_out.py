"""Who looked where, laid out at once, is as a loop lays it out: the same numbers, bit for bit."""

import numpy as np
import pytest

from dfcrp.priors.base import Zones
from dfcrp.priors.detection.layout import make_looks
from reference import looks_by_loop


def a_crowd(rng):
    """Items, whose lists are whose, and who looked besides."""
    n_images, lists = int(rng.integers(1, 6)), int(rng.integers(1, 7))
    persons = np.unique(rng.integers(0, rng.integers(1, lists + 1), lists), return_inverse=True)[1]
    n = int(rng.integers(1, 25))
    images, families = rng.integers(0, n_images, n), rng.integers(0, lists, n)
    chance = rng.choice([0.2, 0.5, 1.0])
    looks = np.argwhere(rng.random((n_images, lists)) < chance)
    # Every list covers something, and somebody looked at every image.
    every = np.column_stack([np.arange(lists) % n_images, np.arange(lists)])
    some = np.column_stack([np.arange(n_images), np.arange(n_images) % lists])
    return images, families, persons, np.concatenate([looks, every, some])


def some_zones(rng, images, families, persons, looks):
    """Each image cut into zones, some of them as large as others."""
    pairs = np.unique(np.concatenate([looks, np.column_stack([images, families])]), axis=0)
    count = rng.integers(1, 4, int(pairs[:, 0].max()) + 1)
    first = np.cumsum(count) - count
    share = rng.choice([0.1, 0.25, 0.3], count.sum())
    zone = first[images] + rng.integers(0, count[images])
    there = [(first[v] + at, f) for v, f in pairs for at in range(count[v]) if rng.random() < 0.7]
    there += [(first[v], f) for v, f in pairs]
    there += zip(zone, families, strict=True)
    return Zones(zone, np.repeat(np.arange(len(count)), count), share, np.unique(there, axis=0))


def as_bytes(tables):
    return {name: (str(v.dtype), v.shape, v.tobytes()) for name, v in tables._asdict().items()}


@pytest.mark.parametrize("zoned", [False, True])
@pytest.mark.parametrize("told", [False, True])
def test_looks_are_laid_out_as_by_a_loop(told, zoned):
    for seed in range(150):
        rng = np.random.default_rng([seed, told, zoned])
        images, families, persons, looks = a_crowd(rng)
        zones = some_zones(rng, images, families, persons, looks) if zoned else None
        if not told and not zoned:
            looks = None
        given = images, families, persons, looks, zones
        found, wanted = make_looks(*given), looks_by_loop.make_looks(*given)
        assert as_bytes(found) == as_bytes(wanted), seed

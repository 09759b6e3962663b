"""The markings of a run over several images, image by image, and the seed of each."""

from __future__ import annotations

import hashlib
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dfcrp.items.items import Items, encode
from dfcrp.settings.config import Config, with_run


def image_seed(seed: int, name: str) -> int:
    """The seed of one image: it depends on its name and the run's seed, not on other images."""
    return int.from_bytes(hashlib.sha256(f"{seed} {name}".encode()).digest()[:6], "big")


class ImageParts:
    """The markings of a run, image by image."""

    def __init__(self, markings: Items, config: Config) -> None:
        self.markings = markings
        self.config = config
        found = markings.rows_by_image()
        self.names = tuple(found)
        self.rows = tuple(found.values())

    def markings_of(self, image: int) -> Items:
        """One image's markings; its experts are those who marked it."""
        return self.markings.take(self.rows[image])

    def config_of(self, image: int) -> Config:
        """The settings with which a run of this image alone would have the same draws."""
        if self.config.run.images == "shared":
            return self.config
        return with_run(self.config, seed=image_seed(self.config.run.seed, self.names[image]))

    @cached_property
    def expert_codes(self) -> tuple[NDArray[np.int64], ...]:
        """The codes that the experts of each image have in the whole."""
        return tuple(np.unique(self.markings.families[rows]) for rows in self.rows)


def most_experts(markings: Items) -> int:
    """Experts of the image that has most of them; all if no images are named."""
    if len(markings.images) < 2 or markings.image is None:
        return len(markings.experts)
    image = encode(markings.image.tolist())[1]
    held = np.unique(image * len(markings.experts) + markings.families)
    return int(np.bincount(held // len(markings.experts)).max())

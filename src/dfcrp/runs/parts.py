"""A run as a list of parts: one, or one for each image that is drawn by itself."""

from __future__ import annotations

import hashlib
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dfcrp.items.items import Items
from dfcrp.settings.config import Config, with_run


def image_seed(seed: int, name: str) -> int:
    """The seed of one image: it depends on its name and the run's seed, not on other images."""
    return int.from_bytes(hashlib.sha256(f"{seed} {name}".encode()).digest()[:6], "big")


class Parts:
    """Items and settings, part by part.

    Attributes
    ----------
    names : tuple of str
        The image of each part; one empty name if the run has one part.
    rows : tuple of arrays
        The rows of each part among all items.
    """

    def __init__(self, items: Items, config: Config, rows: dict[str, NDArray[np.int64]]) -> None:
        self.items = items
        self.config = config
        self.names = tuple(rows)
        self.rows = tuple(rows.values())

    @classmethod
    def of_run(cls, items: Items, config: Config) -> Parts:
        """What is drawn by itself: every image, unless they share their hyperparameters."""
        if len(items.images) > 1 and config.run.images == "independent":
            return cls(items, config, items.rows_by_image())
        return cls(items, config, {"": np.arange(len(items))})

    @classmethod
    def of_images(cls, items: Items, config: Config) -> Parts:
        """Every image, however it was drawn."""
        return cls(items, config, items.rows_by_image())

    def __len__(self) -> int:
        return len(self.names)

    def items_of(self, part: int) -> Items:
        """The items of one part; its experts are those who listed something there."""
        return self.items if len(self) == 1 else self.items.take(self.rows[part])

    def config_of(self, part: int) -> Config:
        """The settings with which a run of this part alone would have the same draws."""
        if len(self) == 1 or self.config.run.images == "shared":
            return self.config
        return with_run(self.config, seed=image_seed(self.config.run.seed, self.names[part]))

    @cached_property
    def expert_codes(self) -> tuple[NDArray[np.int64], ...]:
        """The codes that the experts of each part have in the whole."""
        return tuple(np.unique(self.items.families[rows]) for rows in self.rows)


def most_experts(items: Items) -> int:
    """Experts of the image that has most of them; all if no images are named."""
    image = items.image_codes
    if image is None:
        return len(items.experts)
    held = np.unique(image * len(items.experts) + items.families)
    return int(np.bincount(held // len(items.experts)).max())

"""What maps need to know of a kind of item: what it is called, where it lies, how large it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dfcrp.posterior.catalogue import CIRCLE, Centre

Floats = NDArray[np.float64]
NOUNS = {"circles": "marking", "points": "point", "boxes": "box", "ellipses": "ellipse"}


@dataclass(frozen=True)
class Outlines:
    """Where to draw items or objects; angles in degrees, counterclockwise."""

    x: Floats
    y: Floats
    width: Floats
    height: Floats
    angle: Floats
    #: "ellipse", "box" or "point".
    shape: str


@dataclass(frozen=True)
class Kind:
    """A kind of item, as a likelihood will describe it."""

    name: str

    @property
    def noun(self) -> str:
        """What one item is called."""
        return NOUNS.get(self.name, "record" if self.text else "item")

    @property
    def text(self) -> bool:
        """Whether columns are text."""
        return self.name == "records"

    def outlines(self, columns: Mapping[str, Any]) -> Outlines | None:
        """Where to draw items, or rows of the catalogue; None if they have no place."""
        if self.text:
            return None
        values = [np.asarray(column, np.float64) for column in columns.values()]
        x, y = [*values, np.zeros_like(values[0])][:2]
        nothing = np.zeros_like(x)
        if self.name == "circles":
            return Outlines(x, y, values[2], values[2], nothing, "ellipse")
        if self.name == "boxes":
            return Outlines(x, y, values[2], values[3], nothing, "box")
        if self.name == "ellipses":
            return Outlines(x, y, values[2], values[3], values[4], "ellipse")
        return Outlines(x, y, nothing, nothing, nothing, "point")

    def sizes(self, items: Any) -> Floats | None:
        """Diameters, for size classes; None if items have no size."""
        return items.diameter if self.name == "circles" else None

    def centre(self, items: Any) -> Centre | None:
        """How a cluster is described in the catalogue; None if it has no centre."""
        from dfcrp.posterior.features import _centre

        if self.name == "circles":
            return CIRCLE
        return None if self.text else _centre(items)


def plural(noun: str) -> str:
    """ "markings", "boxes"."""
    return noun + ("es" if noun.endswith(("s", "x", "ch", "sh")) else "s")


def kind_of(items: Any) -> Kind:
    """The kind of these items."""
    return Kind(getattr(items, "likelihood", "circles"))


def columns_of(items: Any) -> dict[str, Any]:
    """What describes the items, by column."""
    return items.cells if kind_of(items).text else items.numbers

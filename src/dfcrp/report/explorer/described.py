"""What describes items and objects, column by column, for the explorer's panel and its tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from dfcrp.likelihoods.base import Likelihood
from dfcrp.plots.flat import name_of, quantities_of
from dfcrp.report.contents import ABOUT, Contents
from dfcrp.report.explorer.packing import Packer
from dfcrp.report.explorer.places import Places

_ENDS = ("sd", "lo", "hi")


@dataclass(frozen=True)
class Quantity:
    """A column, as the page is told of it."""

    name: str
    #: A column of text has the codes of its values.
    text: bool
    #: Decimals of a number.
    digits: int | None = None
    #: 0 or 1 for what is the map's x or y.
    axis: int | None = None
    #: Whether it is a length on the ground.
    length: bool = False


class Described:
    """The columns of the catalogue, and of the items those that the map does not show."""

    def __init__(self, contents: Contents, places: Places) -> None:
        self.items, self.catalogue = contents.posterior.items, contents.catalogue
        self.places = places
        self.likelihood: Likelihood = contents.posterior.likelihood
        self.cells: Mapping[str, Any] = self.items.columns
        sizes, centre = self.likelihood.sizes(self.items), self.likelihood.centre(self.items)
        #: The column that holds the sizes, empty if items have none or clusters do not.
        self.size = "" if sizes is None else name_of(sizes, self.cells)
        if centre is None or self.size not in centre.quantities:
            self.size = ""
        self.size_digits = contents.size_digits if self.size else 0
        self.quantities = self._quantities()
        placed = places.items
        shown = placed.axes if places.real and placed.equal else ()
        digits = {quantity.name: quantity.digits for quantity in self.quantities}
        is_text = self.likelihood.text
        self.columns = [
            Quantity(name, is_text, None if is_text else digits.get(name, 3))
            for name in self.cells
            if name not in shown
        ]
        self.texts = self._texts()

    def about(self) -> dict[str, Any]:
        """The columns, and the distinct values of those of text."""
        return {
            "quantities": [asdict(quantity) for quantity in self.quantities],
            "columns": [asdict(column) for column in self.columns],
            "texts": {name: list(values) for name, values in self.texts.items()},
            "size": self._about_size(),
        }

    def pack(self, packer: Packer) -> None:
        """A column of the catalogue as its mean and what follows it, one of items as it is."""
        for k, quantity in enumerate(self.quantities):
            values = self.catalogue[quantity.name].to_numpy()
            if quantity.text:
                packer.counts(f"quantity{k}", self._codes(quantity.name, values))
                continue
            packer.floats(f"quantity{k}", values, "float64")
            for end in _ENDS:
                # Ends are relative to the mean, so that single precision is enough.
                start = 0.0 if end == "sd" else values
                column = self.catalogue[f"{quantity.name}_{end}"].to_numpy() - start
                packer.floats(f"quantity{k}{end.capitalize()}", column)
        for k, column in enumerate(self.columns):
            values = self.cells[column.name]
            if column.text:
                packer.counts(f"column{k}", self._codes(column.name, values))
            else:
                packer.floats(f"column{k}", values)
        if self.size:
            packer.floats("itemSize", self.cells[self.size])

    def _about_size(self) -> dict[str, Any] | None:
        if not self.size:
            return None
        place = [quantity.name for quantity in self.quantities].index(self.size)
        return {"name": self.size, "digits": self.size_digits, "quantity": place}

    def _quantities(self) -> list[Quantity]:
        """What describes an object, in the order of the catalogue."""
        table = self.catalogue
        numbers = quantities_of(table)
        other = {f"{name}_{end}" for name in numbers for end in _ENDS} | {*ABOUT}
        axes = self.places.items.axes if self.places.real else ()
        outlines = self.likelihood.outlines(self.cells)
        lengths: set[str] = set()
        if outlines is not None and outlines.shape != "point":
            lengths = {name_of(side, self.cells) for side in (outlines.width, outlines.height)}
        found = []
        for name in map(str, table):
            if name in other:
                continue
            if name not in numbers:
                found.append(Quantity(name, text=True))
                continue
            axis = axes.index(name) if name in axes else None
            found.append(Quantity(name, False, self._digits(name, axis), axis, name in lengths))
        return found

    def _digits(self, name: str, axis: int | None) -> int:
        """Decimals: of others than places and sizes, two digits of the typical sd."""
        if axis is not None and self.places.items.equal:
            return self.places.items.digits
        if name == self.size:
            return self.size_digits
        spread = self.catalogue[f"{name}_sd"].to_numpy()
        spread = spread[spread > 0.0]
        if not spread.size:
            return 3
        return int(np.clip(1 - np.floor(np.log10(np.median(spread))), 0, 12))

    def _texts(self) -> dict[str, dict[str, int]]:
        """The distinct values of every column of text, and the code of each."""
        found: dict[str, dict[str, int]] = {}
        for column in (*self.quantities, *self.columns):
            if not column.text:
                continue
            values = {str(value) for value in self.catalogue.get(column.name, ())}
            if column in self.columns:
                values |= {str(value) for value in self.cells[column.name]}
            known = found.get(column.name, {})
            found[column.name] = {value: k for k, value in enumerate(sorted(values | {*known}))}
        return found

    def _codes(self, name: str, values: Any) -> list[int]:
        codes = self.texts[name]
        return [codes[str(value)] for value in values]

"""The detection prior as a run had it, and its parameters in every draw, read as they are needed.

Every look has a parameter of its own. On thousands of images the parameters of all draws take more
memory than all else, so they are read in blocks of columns, of which a few are kept.
"""

from __future__ import annotations

import math
import threading
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dfcrp.draws import Draws, shared_at_once, shared_rows
from dfcrp.persons import Persons
from dfcrp.priors.detection.kernel import Detection, shapes
from dfcrp.priors.detection.parameters import local
from dfcrp.priors.detection.skills import RATED, ExpertRates, expert_rates

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]

#: Blocks that are kept besides those of what all images have in common.
MORE_BLOCKS = 3


@dataclass
class LaidOut:
    """The prior, whose lists are whose, the draws, and what experts are like in them."""

    prior: Detection
    persons: Persons
    draws: Draws
    #: Edges of the size classes.
    edges: Floats
    _rates: ExpertRates | None = None
    _usual_false: Floats | None = None
    _blocks: OrderedDict[int, Floats] = field(default_factory=OrderedDict)
    _lock: Any = field(default_factory=threading.RLock)

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_blocks": OrderedDict(), "_lock": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._lock = threading.RLock()

    @property
    def columns(self) -> dict[str, slice]:
        """Where the prior has each of its parameters."""
        found, end = {}, 0
        for name, shape in shapes(self.prior, len(self.prior.parameters.class_weight)).items():
            begin, end = end, end + math.prod(shape)
            found[name] = slice(begin, end)
        return found

    def parameters(self, columns: Codes) -> Floats:
        """Some of the parameters, (chains, draws, columns)."""
        draws = self.draws
        found = np.empty((draws.n_chains, draws.n_draws, len(columns)))
        with self._lock:
            for number in np.unique(columns // self._width).tolist():
                here = np.flatnonzero(columns // self._width == number)
                block = self._block(number)
                found[:, :, here] = block[:, :, columns[here] - number * self._width]
        return found

    def by_name(self, names: Iterable[str]) -> dict[str, Floats]:
        """Parameters of all draws as (chains · draws, ...)."""
        each, found = shapes(self.prior, len(self.prior.parameters.class_weight)), {}
        for name in names:
            where = self.columns[name]
            values = self.parameters(np.arange(where.start, where.stop))
            found[name] = values.reshape(-1, *each[name])
        return found

    def rows(self, chosen: Sequence[tuple[int, int]]) -> Floats:
        """All parameters of some draws, each a chain and a number: (draws, all)."""
        return shared_rows(self.draws, chosen)[:, -len(self.prior.own) :]

    def without_looks(self, draws: Codes) -> Floats:
        """All parameters of some of the chains · draws, those of looks as the prior begins."""
        found = np.tile(self.prior.own, (len(draws), 1))
        chain, draw = np.divmod(draws, self.draws.n_draws)
        looks = self.columns["false_marks_on"]
        for first, last in ((0, looks.start), (looks.stop, found.shape[1])):
            found[:, first:last] = self.parameters(np.arange(first, last))[chain, draw]
        return found

    @property
    def rates(self) -> ExpertRates:
        """Of all experts in all draws; images that were drawn together share them."""
        with self._lock:
            if self._rates is None:
                self._rates = expert_rates(self.prior, self.by_name(RATED), self.edges)
            return self._rates

    @property
    def usual_false(self) -> Floats:
        """False marks on an image by the expert in the middle, in every draw."""
        rates = self.rates
        with self._lock:
            if self._usual_false is None:
                self._usual_false = np.asarray(np.median(rates.false, axis=1))
            return self._usual_false

    @property
    def _width(self) -> int:
        """Parameters in a block."""
        return shared_at_once(self.draws)

    def _block(self, number: int) -> Floats:
        """One that was read before, or is read now in the place of the one longest unused."""
        if number not in self._blocks:
            at = self.columns
            apart = sum(at[name].stop - at[name].start for name in at if local(name))
            most = -(-(len(self.prior.own) - apart) // self._width) + MORE_BLOCKS
            while len(self._blocks) >= most:
                self._blocks.popitem(last=False)
            self._blocks[number] = self._read(number)
        self._blocks.move_to_end(number)
        return self._blocks[number]

    def _read(self, number: int) -> Floats:
        """One block; the prior's parameters are the last of what draws have in common."""
        begin = self.draws.columns.width - len(self.prior.own)
        first, last = number * self._width, (number + 1) * self._width
        return self.draws.shared(slice(begin + first, begin + min(last, len(self.prior.own))))

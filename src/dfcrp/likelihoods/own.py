"""A likelihood of your own: what it takes besides its kernels; see docs/own-likelihood.md."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dfcrp.draws import Columns, Draws
from dfcrp.errors import SettingsError
from dfcrp.likelihoods.base import Centre, Layout, Likelihood
from dfcrp.likelihoods.normal.hyper import find_pilot
from dfcrp.likelihoods.normal.neighbours import find_feature_neighbours
from dfcrp.likelihoods.normal.shapes import shape_of
from dfcrp.neighbours.neighbourhood import refuse_copies
from dfcrp.values import Json

if TYPE_CHECKING:
    from dfcrp.items.items import Items
    from dfcrp.settings.config import Config

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class NoSettings:
    """A likelihood without settings."""


class OwnLikelihood(Likelihood):
    """Items described by any numbers, with kernels of your own.

    Say what ``hyper``, ``row_width`` and ``learned_names`` are; the first numbers that
    ``record_row`` writes describe an object in the catalogue, one for each column. Candidates are
    found by distance in the columns, each relative to its scatter between matching items.
    """

    Settings: type[Any] = NoSettings

    def complete(self, values: Mapping[str, object]) -> Json:
        """How experts differ is for the likelihood itself to say."""
        kept = dict(values)
        own = "expert_bias" in _names(self.Settings)
        if kept.pop("expert_bias", "none") not in ("auto", "none") and not own:
            raise SettingsError(
                f"expert_bias (--expert-bias) is not for {self.name}: only the likelihood itself "
                "can say how experts differ; leave it out"
            )
        return dict(values) if own else kept

    def hyper(self, items: Items, settings: Any) -> Any:
        """The named tuple of hyperparameters that the kernels are registered for."""
        raise NotImplementedError

    def row_width(self, items: Items) -> int:
        """Numbers in a row of what is known of a cluster."""
        raise NotImplementedError

    def learned_names(self, columns: Sequence[str]) -> tuple[str, ...]:
        """Names of the entries of the law, where items have these columns."""
        return ()

    def lay_out(self, items: Items, experts: NDArray[np.int64], config: Config) -> Layout:
        """Features as they are; candidates by a pilot of the data."""
        shape, images = shape_of("diagonal", tuple(items.columns)), items.image_codes
        features = items.features
        if items.candidates is None:
            refuse_copies(features, images, "items")
        pilot = find_pilot(shape, features, experts, 1.0, images)
        neighbourhood = find_feature_neighbours(
            shape,
            features,
            experts,
            pilot.scales(shape, features, 1.0),
            radius=config.run.radius,
            nearest=config.run.nearest,
            candidates=items.candidates,
            images=images,
        )
        columns = Columns.plain(tuple(items.columns), self.learned_names(tuple(items.columns)))
        hyper = self.hyper(items, config.likelihood)
        return Layout(features, hyper, self.row_width(items), columns, neighbourhood)

    def learned_samples(self, draws: Draws) -> dict[str, Floats]:
        """The entries of the law."""
        names = self.learned_names(draws.columns.parameters)
        law = np.moveaxis(draws.shared(slice(len(names))), 2, 0)
        return dict(zip(names, law, strict=False))

    def learned_words(self, found: Json) -> list[str]:
        """The mean of each."""
        rows = (f"{name} {row['mean']:.3g}" for name, row in found.items())
        return [f"Learned from the data: {', '.join(rows)}."]

    def centre(self, items: Items) -> Centre:
        """What ``record_row`` writes, by column."""
        names = tuple(items.columns)
        return Centre(names, names, lambda parameters: parameters)


def _names(settings: type[Any]) -> set[str]:
    return {item.name for item in dataclasses.fields(settings)}

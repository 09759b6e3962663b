"""The posterior of items that are no circles: the same answers, in the items' own columns."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dfcrp.draws import Draws
from dfcrp.errors import InputError
from dfcrp.items.markings import Items
from dfcrp.items.measurements import Measurements
from dfcrp.posterior.catalogue import Centre, catalogue
from dfcrp.posterior.consensus import SizeClasses
from dfcrp.posterior.intervals import summarise
from dfcrp.posterior.posterior import Posterior, RunRecord
from dfcrp.settings.config import Config

if TYPE_CHECKING:
    import pandas

#: An ellipse turned by 180° is the same.
PERIODS = {"angle": 180.0}
_SEED = 8


class PlainPosterior(Posterior):
    """Posterior draws of a partition of items that have no diameter."""

    def __init__(self, draws: Draws, items: Items, config: Config, record: RunRecord) -> None:
        # What needs circles is replaced below, or refuses by name (``Measurements``).
        super().__init__(draws, items, config, record)  # type: ignore[arg-type]

    @property
    def _features_and_size(self) -> tuple[NDArray[np.float64], int | None]:
        return self.markings.features, None

    @property
    def diameters(self) -> NDArray[np.float64] | None:
        """There are none."""
        return None

    @property
    def size_classes(self) -> SizeClasses:
        """Without sizes there are no classes of them."""
        return SizeClasses.none()

    def explain(self, marking: int | str) -> Any:
        """Explanations are in the words of circles."""
        raise InputError(
            f"explain is for circles; of {self.config.model.likelihood} members() says where each "
            "item went and what came second"
        )


class FeaturePosterior(PlainPosterior):
    """Posterior draws of a partition of items described by any numbers."""

    def __init__(
        self, draws: Draws, items: Measurements, config: Config, record: RunRecord
    ) -> None:
        super().__init__(draws, items, config, record)
        self.items = items

    @property
    def _features_and_size(self) -> tuple[NDArray[np.float64], int | None]:
        sizes = self.items.shape.size
        return self.items.features, sizes[0] if sizes[0] >= 0 else None

    @cached_property
    def tolerances(self) -> dict[str, Any]:
        """Standard deviations within an object, by the features that share one, and growths.

        Where errors grow with size (``growth_``: variance ∝ size^growth), at the median size.
        """
        shared = self.draws.shared().reshape(-1, len(self.draws.columns.shared))
        power = 1.0 if self.items.likelihood == "normal" else 0.5
        found = {}
        for name, values in zip(self.draws.columns.shared, shared.T, strict=True):
            if name.startswith("scale_"):
                found[name.removeprefix("scale_")] = summarise(np.exp(power * values)).as_dict()
            elif name.startswith("growth_"):
                found[name] = summarise(values).as_dict()
        return found

    def catalogue(self) -> pandas.DataFrame:
        """One row per cluster of the point partition: its centre by column, with uncertainty."""
        import pandas

        return pandas.DataFrame(
            catalogue(
                self.draws,
                self.point_partition().labels,
                self.membership,
                families=self.items.families,
                expert_names=self.items.experts,
                min_experts=self.config.summary.min_experts,
                centre=_centre(self.items),
            )
        )


def _centre(items: Measurements) -> Centre:
    """A cluster's centre as drawn: its mean given the members, and that mean's uncertainty."""
    shape, middle = items.shape, items.centre
    p = len(shape.features)
    rng = np.random.default_rng(_SEED)

    def describe(parameters: NDArray[np.float64]) -> NDArray[np.float64]:
        mean, error = parameters[:p], parameters[p:]
        drawn = mean + error * rng.standard_normal(mean.shape)
        return np.moveaxis(shape.to_columns(np.moveaxis(drawn, 0, -1) + middle), -1, 0)

    stored = (*shape.features, *(f"{name}_se" for name in shape.features))
    turning = {name: PERIODS[name] for name in shape.columns if name in PERIODS}
    return Centre(items.columns, stored, describe, turning if shape.name == "ellipses" else {})

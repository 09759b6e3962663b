"""The posterior of a model age: one for every draw, next to each expert's own."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from dfcrp.craterstats import Ages, Dating, model_ages
from dfcrp.errors import SettingsError
from dfcrp.posterior.posterior import Posterior
from dfcrp.summaries.intervals import Interval, summarise

#: Quantiles by which the counting error of each draw's age enters the total.
_STEPS = 101


@dataclass(frozen=True)
class ModelAges:
    """Ages in Ga of the consensus objects of every draw, and of each expert's markings."""

    dating: Dating
    min_experts: int
    draws: Ages
    #: By number of markings, fewest first.
    experts: tuple[str, ...]
    by_expert: Ages

    @property
    def matching(self) -> Interval:
        """Over the draws: what is not known about which craters there are, and how large."""
        return summarise(self.draws.age)

    @property
    def total(self) -> Interval:
        """That, and the error of counting so many craters."""
        return summarise(self.with_counting_error())

    def with_counting_error(self) -> NDArray[np.float64]:
        """Ages that stand for the mixture over draws of CraterStats' own error of each.

        Of it the median and one standard error either way are known: it is taken for two halves
        of normal laws, joined at the median.
        """
        z = ndtri((np.arange(_STEPS) + 0.5) / _STEPS)[:, np.newaxis]
        found = self.draws
        spread = np.where(z < 0, found.age - found.low, found.high - found.age)
        ages = (found.age + z * spread).ravel()
        return ages[np.isfinite(ages)]

    def rows(self) -> Iterator[dict[str, Any]]:
        """One row for each draw and each expert, as in ages.csv."""
        numbers = [str(k + 1) for k in range(len(self.draws.age))]
        for kind, names, ages in (
            ("draw", numbers, self.draws),
            ("expert", self.experts, self.by_expert),
        ):
            for k, name in enumerate(names):
                yield {
                    "kind": kind,
                    "name": name,
                    "min_experts": self.min_experts if kind == "draw" else "",
                    "craters": int(ages.craters[k]),
                    **{
                        f"{field}_ga": float(getattr(ages, field)[k])
                        for field in ("age", "low", "high")
                    },
                    "n1_per_km2": float(ages.density[k]),
                }


def posterior_ages(
    posterior: Posterior,
    command: str,
    dating: Dating,
    *,
    draws: int = 200,
    min_experts: int | None = None,
    keep: Path | None = None,
) -> ModelAges:
    """Date ``draws`` evenly spaced draws and every expert's markings with ``command``."""
    if draws < 1:
        raise SettingsError(f"the number of draws is {draws}; it must be at least 1")
    markings = posterior.markings
    km = markings.site.km_per_diameter
    if km is None:
        raise SettingsError(
            "ages need diameters in km, the data are in pixels; give --metres-per-pixel"
        )
    wanted = posterior.config.summary.min_experts if min_experts is None else min_experts
    samples = [km * found for found in posterior.consensus_diameters(wanted, draws)]
    own = [np.sort(markings.diameter[markings.families == f]) for f in range(len(markings.experts))]
    order = np.argsort([len(values) for values in own], kind="stable")
    counts = [*samples, *(km * own[f] for f in order)]
    found = model_ages(command, counts, dating, keep)
    parts = [
        Ages(**{field.name: getattr(found, field.name)[part] for field in dataclasses.fields(Ages)})
        for part in (slice(len(samples)), slice(len(samples), None))
    ]
    names = tuple(markings.experts[f] for f in order)
    return ModelAges(dating, wanted, parts[0], names, parts[1])

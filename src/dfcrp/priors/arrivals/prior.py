"""The DFCRP, the constrained CRP and the CRP."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dfcrp.errors import SettingsError, check, check_choice
from dfcrp.priors.arrivals.kernel import Arrivals
from dfcrp.priors.base import Facts, Prior, PriorLayout


@dataclass(frozen=True)
class ArrivalSettings:
    """The concentration α ~ Gamma(shape, rate)."""

    alpha_shape: float = 1.0
    #: "auto": what suits the kind of item, 0.01 in general; of records 1 / their number.
    alpha_rate: float | str = "auto"

    def __post_init__(self) -> None:
        check(self.alpha_shape > 0, "prior.alpha_shape", self.alpha_shape, "above 0")
        if isinstance(self.alpha_rate, str):
            check_choice("prior.alpha_rate", self.alpha_rate, ("auto",))
        else:
            check(self.alpha_rate > 0, "prior.alpha_rate", self.alpha_rate, "above 0")

    def rate(self, usual: float) -> float:
        """The rate, where ``usual`` is what suits the kind of item."""
        return usual if isinstance(self.alpha_rate, str) else self.alpha_rate


class ArrivalPrior(Prior):
    """Customers arrive one after the other and sit down by the number of those at a table."""

    Settings = ArrivalSettings
    #: Whether the order of arrival matters, and is averaged out.
    ordered = False

    def check_sampler(self, sampler: str) -> None:
        """The paper's samplers are for these; the unmodified one needs an order."""
        if sampler == "unmodified" and not self.ordered:
            raise SettingsError(
                'run.sampler = "unmodified" differs from "paper" only in the order of arrival, '
                f'which the prior "{self.name}" does not have; use sampler "paper" or "exact"'
            )

    def lay_out(self, facts: Facts, settings: ArrivalSettings) -> PriorLayout:
        """α ~ Gamma(shape, rate), starting at its mean."""
        rate = settings.rate(facts.usual_alpha_rate)
        prior = Arrivals(
            use_order=self.ordered,
            update_alpha=True,
            alpha_shape=settings.alpha_shape,
            alpha_rate=rate,
            own=np.empty(0),
        )
        return PriorLayout(prior, settings.alpha_shape / rate)


class _Dfcrp(ArrivalPrior):
    """Families, with the order of arrival averaged out."""

    name = "dfcrp"
    ordered = True
    sentence = "Two {items} by one expert never share a cluster (DFCRP)."


class _Constrained(ArrivalPrior):
    """Families, but the CRP's weights.

    The joint prior of (c, α) is the CRP's, cut down to valid partitions.
    """

    name = "constrained"
    sentence = "Two {items} by one expert never share a cluster (the CRP, constrained)."


class _Crp(ArrivalPrior):
    """No rule: every item is an expert of its own, so that nothing is excluded."""

    name = "crp"
    one_per_expert = False
    sentence = "Several {items} by one expert could share a cluster (CRP)."

    def experts(self, codes: NDArray[np.int64]) -> NDArray[np.int64]:
        """Every item by itself."""
        return np.arange(len(codes), dtype=np.int64)


DFCRP: Any = _Dfcrp()
CONSTRAINED: Any = _Constrained()
CRP: Any = _Crp()

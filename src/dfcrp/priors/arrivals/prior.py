"""The DFCRP, the constrained CRP and the CRP."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dfcrp.errors import SettingsError
from dfcrp.priors.arrivals.kernel import Arrivals
from dfcrp.priors.arrivals.settings import ArrivalSettings
from dfcrp.priors.base import Facts, Prior, PriorLayout


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

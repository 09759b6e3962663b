"""Settings of the priors of customers who arrive one after the other."""

from __future__ import annotations

from dataclasses import dataclass

from dfcrp.errors import check, check_choice


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

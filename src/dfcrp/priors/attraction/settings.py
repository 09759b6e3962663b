"""Settings of the DFCRP with attraction between lists of one person."""

from __future__ import annotations

from dataclasses import dataclass

from dfcrp.errors import check, check_choice
from dfcrp.priors.arrivals.settings import ArrivalSettings


@dataclass(frozen=True)
class AttractionSettings(ArrivalSettings):
    """How much more an item is drawn to those on other lists by the same person."""

    #: The logarithm of a factor, or "learned", then normal about 0 with this spread.
    strength: float | str = "learned"
    strength_sd: float = 1.5

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.strength, str):
            check_choice("prior.strength", self.strength, ("learned",))
        else:
            check(abs(self.strength) <= 20, "prior.strength", self.strength, "-20 to 20")
        check(self.strength_sd > 0, "prior.strength_sd", self.strength_sd, "above 0")

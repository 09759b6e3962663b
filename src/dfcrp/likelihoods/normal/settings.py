"""Settings of items described by numbers: points, boxes, ellipses, any features."""

from __future__ import annotations

from dataclasses import dataclass

from dfcrp.errors import check, check_choice
from dfcrp.likelihoods import EXPERT_BIAS, TAILS

#: What the paper's samplers go with.
AS_IN_THE_PAPER = {"expert_bias": "none", "tails": "none"}


@dataclass(frozen=True)
class NormalSettings:
    """Hyperparameters of normal features; scales are relative to a guess from the data."""

    #: Shape of the inverse Gamma law of a cluster's variances, and how uncertain the logarithm of
    #: the typical standard deviation is about a guess from the data.
    variance_shape: float = 2.5
    scale_sd: float = 1.5
    #: Where errors grow with size: the variance goes as size to this power, and how uncertain
    #: that is.
    growth: float = 1.0
    growth_sd: float = 0.7
    #: Whether experts differ in where they place items ("offset"), in how exactly ("precision"),
    #: or in both; standard deviations between experts of the offsets, relative to the typical
    #: standard deviation of a feature, and of the log of the noise.
    expert_bias: str = "none"
    expert_offset_sd: float = 0.5
    expert_noise_sd: float = 0.3
    #: Whether some items may be careless, with a share that is learned ("learned"), or none are.
    tails: str = "none"

    def __post_init__(self) -> None:
        check_choice("likelihood.expert_bias", self.expert_bias, EXPERT_BIAS)
        check_choice("likelihood.tails", self.tails, TAILS)
        check(self.variance_shape > 1, "likelihood.variance_shape", self.variance_shape, "above 1")
        for name in ("scale_sd", "growth_sd", "expert_offset_sd", "expert_noise_sd"):
            check(getattr(self, name) > 0, f"likelihood.{name}", getattr(self, name), "above 0")

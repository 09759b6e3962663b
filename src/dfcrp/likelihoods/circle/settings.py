"""Settings of circles: the paper's hyperparameters (section 5), and what is learned instead."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dfcrp.errors import check, check_choice
from dfcrp.likelihoods import EXPERT_BIAS, TAILS

TOLERANCES = ("learned", "fixed")
#: Settings of the fixed law: giving one of them asks for it.
FIXED_LAW = ("kappa_x", "eta_x", "tau_x", "kappa_d", "eta_d", "tau_d", "log_diameter_floor")
#: What the paper's model does not have.
AS_IN_THE_PAPER = {"expert_bias": "none", "tails": "none"}
Triple = tuple[float, float, float]


@dataclass(frozen=True)
class CircleSettings:
    """Hyperparameters of circles, in the units of the data.

    ``mu0`` and ``sigma0`` (standard deviations) describe where cluster means may lie; without
    them they are taken from the data, see ``dfcrp.likelihoods.circle.hyper``.
    """

    #: "learned": the spread of markings about their object is learned from the data, free of
    #: units (the second group below). "fixed": the paper's law, set by eye for pixels (the first).
    tolerances: str = "learned"
    kappa_x: float = 0.08
    eta_x: float = 4.5
    tau_x: float = 1.0
    kappa_d: float = 0.124
    eta_d: float = -0.8
    tau_d: float = 100.0
    lambda_a: float = 100.0
    lambda_b: float = 100.0
    mu0: Triple | None = None
    sigma0: Triple | None = None
    #: Below this log diameter the variance laws are held constant: they are powers of the log
    #: diameter, set by eye for 18 px and more, and have no meaning near or below zero.
    log_diameter_floor: float = 2.0
    #: Typical standard deviation of position at the median diameter, relative to that diameter,
    #: and of log diameter; how uncertain their logarithms are; how the variances grow with
    #: diameter (exponents) and how uncertain that is; shapes of the clusters' own variances.
    scale_x: float = 0.1
    scale_x_sd: float = 0.75
    growth_x: float = 1.0
    scale_d: float = 0.14
    scale_d_sd: float = 0.75
    growth_d: float = 0.0
    growth_sd: float = 0.7
    nu_x: float = 5.0
    nu_d: float = 5.0
    #: Whether experts differ in where and how large they draw ("offset"), in how exactly
    #: ("precision"), or in both; standard deviations, between experts, of the offset of x and y
    #: relative to the median diameter, of that of log diameter, and of the log of the noise.
    expert_bias: str = "none"
    expert_position_sd: float = 0.05
    expert_size_sd: float = 0.1
    expert_noise_sd: float = 0.3
    #: Whether some items may be careless, with a share that is learned ("learned"), or none are.
    tails: str = "none"

    def __post_init__(self) -> None:
        check_choice("likelihood.tolerances", self.tolerances, TOLERANCES)
        check_choice("likelihood.expert_bias", self.expert_bias, EXPERT_BIAS)
        check_choice("likelihood.tails", self.tails, TAILS)
        fixed = ("kappa_x", "tau_x", "kappa_d", "tau_d", "log_diameter_floor")
        learned = ("scale_x", "scale_x_sd", "scale_d", "scale_d_sd", "growth_sd", "nu_x", "nu_d")
        experts = ("expert_position_sd", "expert_size_sd", "expert_noise_sd")
        for name in (*fixed, *learned, *experts, "lambda_a", "lambda_b"):
            check(getattr(self, name) > 0, f"likelihood.{name}", getattr(self, name), "above 0")
        if self.sigma0 is not None:
            check(min(self.sigma0) > 0, "likelihood.sigma0", self.sigma0, "three numbers above 0")


def _preset(mu0: Triple, sigma0: Triple, shape: float, rate: float) -> dict[str, dict[str, Any]]:
    return {
        "likelihood": {"mu0": mu0, "sigma0": sigma0, "tolerances": "fixed", **AS_IN_THE_PAPER},
        "prior": {"alpha_shape": shape, "alpha_rate": rate},
    }


#: The paper's values for its three data sets: highlands (section 5.1), reduced and simulation
#: (supplement D).
PRESETS = {
    "highlands": _preset((2068.2, -1105.5, 3.8), (920.0, 600.0, 0.65), 3.0, 0.04),
    "reduced": _preset((2050.0, -150.0, 3.2), (200.0, 110.0, 0.5), 1.0, 0.01),
    "simulation": _preset((350.0, 250.0, 3.9), (300.0, 225.0, 0.45), 1.0, 0.01),
}

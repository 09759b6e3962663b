"""Settings, features and hyperparameters of circles, in a plane and on a sphere.

Markings that agree exactly, as rounding or copying makes them, are set a little apart. Where
several experts give the very same numbers, nothing keeps the variance of their cluster above zero:
its density grows without bound as the variance shrinks, and there is no posterior to draw from. No
marking is exact to a thousandth of its diameter, so such markings are moved by about that much,
always by the same amounts for the same data.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from numpy.typing import NDArray

from dfcrp.errors import SettingsError, check, check_choice
from dfcrp.likelihoods import EXPERT_BIAS, TAILS
from dfcrp.likelihoods.base import HELD, NARROW
from dfcrp.likelihoods.bias import with_bias
from dfcrp.likelihoods.circle.kernel import TAIL, with_law, without_law
from dfcrp.likelihoods.circle.plane import CircleHyper
from dfcrp.likelihoods.circle.sphere import SphereHyper, X, Y, Z
from dfcrp.values import Json

if TYPE_CHECKING:
    from dfcrp.items.items import Items
    from dfcrp.items.site import Site

#: Hyperparameters of circles in a plane or on a sphere.
H = TypeVar("H", CircleHyper, SphereHyper)
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


def _preset(mu0: Triple, sigma0: Triple, shape: float, rate: float) -> dict[str, Json]:
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


PLACE = [X, Y, Z]
#: Log diameters that differ by no more are the same.
SAME = 1e-9
#: Variance of an object's log diameter then.
HELD_SIZE = 1e-18
#: Standard deviation of the moves, relative to the marking's diameter.
APART = 1e-3
#: Experts that must agree for it to matter. The law of a variance bears two at one place, even
#: where it is weakest, and five with the same diameter; what fewer agree on is left as it is.
FEWEST_AT_A_PLACE = 3
FEWEST_OF_A_SIZE = 6
_SEED = 20_140_415


def base_measure(features: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """μ0 and its standard deviations when no setting gives them.

    Position: the middle of the data's range and a quarter of its width, so that the whole image
    lies within two standard deviations. Log diameter: mean and 1.25 standard deviations (at
    least 0.25). A range of zero counts as the median diameter.
    """
    low, high = features.min(axis=0), features.max(axis=0)
    centre = (low + high) / 2.0
    width = (high - low) / 4.0
    width[:2] = np.maximum(width[:2], np.exp(np.median(features[:, 2])))
    centre[2] = features[:, 2].mean()
    width[2] = max(1.25 * float(features[:, 2].std()), 0.25)
    return centre, width


def circle_hyper(model: CircleSettings, features: NDArray[np.float64]) -> CircleHyper:
    """The circle likelihood's hyperparameters."""
    centre, width = base_measure(features)
    mu0 = centre if model.mu0 is None else np.asarray(model.mu0)
    sigma0 = width if model.sigma0 is None else np.asarray(model.sigma0)
    numbers = (
        model.kappa_x,
        model.eta_x,
        model.tau_x,
        model.kappa_d,
        model.eta_d,
        model.tau_d,
        model.lambda_a,
        model.lambda_b,
        *mu0,
        *sigma0**2,
        model.log_diameter_floor,
    )
    level = float(np.median(features[:, 2]))
    # Position scale is relative to the median diameter, as a variance: no unit enters.
    law_mean = np.array(
        [
            2.0 * (math.log(model.scale_x) + level),
            model.growth_x,
            2.0 * math.log(model.scale_d),
            model.growth_d,
        ]
    )
    law_sd = np.array(
        [2.0 * model.scale_x_sd, model.growth_sd, 2.0 * model.scale_d_sd, model.growth_sd]
    )
    if np.ptp(features[:, 2]) < NARROW:
        law_sd[[1, 3]] = HELD
    named: Json = dict(zip(CircleHyper._fields, map(float, numbers), strict=False))
    law = with_law((model.nu_x, model.nu_d), level, law_mean, law_sd, len(features))
    if model.tolerances != "learned":
        law |= without_law()
    hyper = CircleHyper(**named, **law)
    return hyper if are_sized(features[:, 2]) or not hyper.learned else without_sizes(hyper)


def are_sized(log_diameter: NDArray[np.float64]) -> bool:
    """Whether diameters differ at all."""
    return float(np.ptp(log_diameter)) > SAME


def without_sizes(hyper: CircleHyper) -> CircleHyper:
    """The hyperparameters where all diameters are the same: they stay as they are."""
    return hyper._replace(
        sized=False,
        mu0_l=hyper.level,
        var0_l=HELD_SIZE,
        log_gamma=math.lgamma(hyper.nu_x),
        log_beta=math.lgamma(hyper.nu_x) + math.lgamma(TAIL) - math.lgamma(hyper.nu_x + TAIL),
    )


def with_experts(hyper: H, settings: CircleSettings, experts: NDArray[np.int64], count: int) -> H:
    """The hyperparameters, in a plane or on a sphere, with experts who differ.

    ``experts`` are codes in the numbering of the kernels, of ``count`` in all. Offsets of places
    are relative to the median diameter: no unit enters.
    """
    place = settings.expert_position_sd * float(np.exp(hyper.level))
    offset_sd = np.array([place, place, settings.expert_size_sd])
    return with_bias(
        hyper,
        settings.expert_bias,
        experts,
        offset_sd,
        settings.expert_noise_sd,
        learn_spread=True,
        scattering=3 if hyper.sized else 2,
        count=count,
    )


def length_unit(model: CircleSettings, site: Site) -> float:
    """The unit of length in km: 1 where tolerances are learned, a pixel for the paper's law."""
    if model.tolerances == "learned":
        return 1.0
    if site.metres_per_pixel is None:
        raise SettingsError(
            "the paper's law of tolerances is in pixels, the data are in degrees and km: say what "
            "a pixel of the marked image covers with --metres-per-pixel, or leave the preset out, "
            "so that tolerances are learned"
        )
    return site.metres_per_pixel / 1000.0


def sphere_features(items: Items, unit: float) -> NDArray[np.float64]:
    """(n, 4): place in space with the log diameter between its second and third coordinate."""
    places = items.places / unit
    sizes = np.log(items.diameter / unit)
    return np.column_stack([places[:, 0], places[:, 1], sizes, places[:, 2]])


def sphere_hyper(
    model: CircleSettings, features: NDArray[np.float64], radius: float, unit: float
) -> SphereHyper:
    """The laws are those of circles; ``radius`` is in the features' unit."""
    laws = circle_hyper(model, features[:, :3])._asdict()
    same = {name: laws[name] for name in SphereHyper._fields if name in laws}
    return SphereHyper(**same, radius=radius, unit=unit)


def set_apart(
    features: NDArray[np.float64], families: NDArray[np.int64], *, sized: bool = True
) -> NDArray[np.float64]:
    """The features (x, y, log diameter), with those moved on which many experts agree exactly.

    Unless they are ``sized``, the model does without diameters, which stay as they are.
    """
    place, size = shared_rows(features[:, :2], features[:, 2:], families)
    size &= sized
    if not (place.any() or size.any()):
        return features
    moves = APART * tie_moves(features.shape)
    moves[:, :2] *= np.exp(features[:, 2:])
    return features + moves * np.stack([place, place, size], axis=1)


def set_apart_on_sphere(
    features: NDArray[np.float64], families: NDArray[np.int64], *, sized: bool = True
) -> NDArray[np.float64]:
    """As ``set_apart``, but that places stay on the sphere."""
    place, size = shared_rows(features[:, PLACE], features[:, 2:3], families)
    size &= sized
    if not (place.any() or size.any()):
        return features
    moves = tie_moves(features.shape)
    moved = features.copy()
    moved[size, 2] += APART * moves[size, 2]
    radius = np.linalg.norm(features[:, PLACE], axis=1, keepdims=True)
    ways = features[:, PLACE] + APART * np.exp(features[:, 2:3]) * moves[:, PLACE]
    ways *= radius / np.linalg.norm(ways, axis=1, keepdims=True)
    moved[:, PLACE] = np.where(place[:, np.newaxis], ways, features[:, PLACE])
    return moved


def shared_rows(
    places: NDArray[np.float64], sizes: NDArray[np.float64], families: NDArray[np.int64]
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Whose place, and whose size, many experts agree on exactly."""
    return (
        _shared(places, families, FEWEST_AT_A_PLACE),
        _shared(sizes, families, FEWEST_OF_A_SIZE),
    )


def tie_moves(shape: tuple[int, ...]) -> NDArray[np.float64]:
    """Standard normal moves, the same for data of the same shape."""
    return np.random.default_rng(_SEED).standard_normal(shape)


def _shared(
    values: NDArray[np.float64], families: NDArray[np.int64], fewest: int
) -> NDArray[np.bool_]:
    """Which rows are the same by at least so many families."""
    _, group = np.unique(values, axis=0, return_inverse=True)
    group = group.reshape(-1)
    by_group = np.unique(np.stack([group, families], axis=1), axis=0)[:, 0]
    return np.bincount(by_group, minlength=int(group.max()) + 1)[group] >= fewest

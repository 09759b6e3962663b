"""Every setting of a run, as frozen objects; TOML in and out; the paper's presets."""

from __future__ import annotations

import dataclasses
import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from dfcrp.errors import SettingsError
from dfcrp.priors.detection.settings import DetectionSettings
from dfcrp.settings.checks import check as _check
from dfcrp.settings.checks import check_choice as _check_choice
from dfcrp.settings.checks import shown as _shown
from dfcrp.settings.values import build, toml_value, unknown

SAMPLERS = ("exact", "paper", "unmodified")
PRIORS = ("dfcrp", "constrained", "crp", "detection")
TOLERANCES = ("learned", "fixed")
LIKELIHOODS = ("circles", "points", "boxes", "ellipses", "diagonal", "normal", "records")
EXPERT_BIAS = ("none", "offset", "precision", "both")
IMAGES = ("independent", "shared")
IMAGE_Y = ("auto", "up", "down")
#: Settings of the fixed law: giving one of them asks for it.
FIXED_LAW = ("kappa_x", "eta_x", "tau_x", "kappa_d", "eta_d", "tau_d", "log_diameter_floor")
#: Settings of the run that change no draw, only how many there are, or who waits for them.
LENGTH_SETTINGS = ("scans", "burn_in", "max_scans", "max_minutes", "workers", "checkpoint_seconds")
#: Each chain has its state in memory and its files open.
MOST_CHAINS = 10_000
Triple = tuple[float, float, float]


@dataclass(frozen=True)
class Model:
    """Hyperparameters of the mixture model (the paper's section 5), in the units of the data.

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
    #: Circles: whether experts differ in where and how large they draw ("offset"), in how exactly
    #: ("precision"), or in both; standard deviations, between experts, of the offset of x and y
    #: relative to the median diameter, of that of log diameter, and of the log of the noise.
    expert_bias: str = "none"
    expert_position_sd: float = 0.05
    expert_size_sd: float = 0.1
    expert_noise_sd: float = 0.5
    alpha_shape: float = 1.0
    alpha_rate: float = 0.01
    #: Under the prior "dfcrp": how much more a marking is drawn to those on other lists by the same
    #: person (``detection.persons``), as the logarithm of a factor, or "learned", then normal about
    #: 0 with this spread.
    attraction: float | str = 0.0
    attraction_sd: float = 1.5
    #: What is marked: "circles", or one of the likelihoods for other features.
    likelihood: str = "circles"
    #: Of those: shape of the inverse Gamma law of a cluster's variances, and how uncertain the
    #: logarithm of the typical standard deviation is about a guess from the data.
    variance_shape: float = 2.5
    scale_sd: float = 1.5
    #: Of records: log odds that a field's value has nothing to do with the true one (miss), and
    #: that it is a slip if it has; how uncertain they are before the data speak.
    miss_odds: float = -3.5
    slip_odds: float = -3.0
    odds_sd: float = 1.0

    def __post_init__(self) -> None:
        _check_choice("model.likelihood", self.likelihood, LIKELIHOODS)
        _check_choice("model.tolerances", self.tolerances, TOLERANCES)
        _check_choice("model.expert_bias", self.expert_bias, EXPERT_BIAS)
        if self.expert_bias != "none" and self.likelihood != "circles":
            raise SettingsError(
                f'model.expert_bias = "{self.expert_bias}" is for circles, not {self.likelihood}; '
                'leave it at "none"'
            )
        _check(self.variance_shape > 1, "model.variance_shape", self.variance_shape, "above 1")
        _check(self.scale_sd > 0, "model.scale_sd", self.scale_sd, "above 0")
        _check(self.odds_sd > 0, "model.odds_sd", self.odds_sd, "above 0")
        fixed = ("kappa_x", "tau_x", "kappa_d", "tau_d", "log_diameter_floor")
        learned = ("scale_x", "scale_x_sd", "scale_d", "scale_d_sd", "growth_sd", "nu_x", "nu_d")
        experts = ("expert_position_sd", "expert_size_sd", "expert_noise_sd")
        for name in (
            *fixed,
            *learned,
            *experts,
            "lambda_a",
            "lambda_b",
            "alpha_shape",
            "alpha_rate",
        ):
            _check(getattr(self, name) > 0, f"model.{name}", getattr(self, name), "above 0")
        if isinstance(self.attraction, str):
            _check_choice("model.attraction", self.attraction, ("learned",))
        else:
            _check(abs(self.attraction) <= 20, "model.attraction", self.attraction, "-20 to 20")
        _check(self.attraction_sd > 0, "model.attraction_sd", self.attraction_sd, "above 0")
        if self.sigma0 is not None:
            _check(min(self.sigma0) > 0, "model.sigma0", self.sigma0, "three numbers above 0")


@dataclass(frozen=True)
class Run:
    """How long, how many, and by which route."""

    chains: int = 4
    scans: int | None = None
    burn_in: int | None = None
    thin: int = 1
    max_scans: int = 20_000
    max_minutes: float | None = None
    radius: float | str | None = "auto"
    nearest: int | None = None
    seed: int = 1
    workers: int | None = None
    checkpoint_seconds: float = 30.0
    sampler: str = "exact"
    prior: str = "dfcrp"
    preset: str | None = None
    #: Several images: each with α and tolerances of its own, or all with the same.
    images: str = "independent"

    def __post_init__(self) -> None:
        for name in ("chains", "thin", "max_scans"):
            _check(getattr(self, name) >= 1, f"run.{name}", getattr(self, name), "at least 1")
        _check(self.chains <= MOST_CHAINS, "run.chains", self.chains, f"at most {MOST_CHAINS:,}")
        for name in ("seed", "checkpoint_seconds"):
            _check(getattr(self, name) >= 0, f"run.{name}", getattr(self, name), "0 or more")
        _check_choice("run.sampler", self.sampler, SAMPLERS)
        _check_choice("run.prior", self.prior, PRIORS)
        _check_choice("run.images", self.images, IMAGES)
        if self.preset is not None:
            _check_choice("run.preset", self.preset, tuple(PRESETS))
        if self.sampler == "unmodified" and self.prior != "dfcrp":
            raise SettingsError(
                'run.sampler = "unmodified" differs from "paper" only in the order of arrival, '
                f'which the prior "{self.prior}" does not have; use sampler "paper" or "exact"'
            )
        if self.sampler != "exact" and self.prior == "detection":
            raise SettingsError(
                f'run.sampler = "{self.sampler}" is about the order of arrival, which the prior '
                '"detection" does not have; use sampler "exact"'
            )
        if isinstance(self.radius, str):
            _check_choice("run.radius", self.radius, ("auto", "none"))
            if self.radius == "none":
                object.__setattr__(self, "radius", None)
        elif self.radius is not None:
            _check(self.radius > 0, "run.radius", self.radius, 'above 0, "auto" or "none"')
        for name in ("scans", "workers", "max_minutes", "nearest"):
            value = getattr(self, name)
            _check(value is None or value > 0, f"run.{name}", value, "above 0")
        if self.burn_in is not None:
            _check(self.burn_in >= 0, "run.burn_in", self.burn_in, "0 or more")
        longest = self.max_scans if self.scans is None else self.scans
        if self.burn_in is not None and self.burn_in >= longest:
            raise SettingsError(
                f"run.burn_in is {self.burn_in}, which leaves nothing of {longest} scans; "
                "make it smaller or run more scans"
            )
        if self.thin > longest:
            raise SettingsError(
                f"run.thin is {self.thin}: not one of {longest} scans would be kept; "
                "make it smaller or run more scans"
            )


@dataclass(frozen=True)
class RecordSettings:
    """What the fields of records are, and which records may be of one object."""

    #: Fields whose values may differ by typing errors, also with day and month exchanged, by small
    #: amounts, or are equal or not; those not named are dates if they look like it, numbers if
    #: they have fractions, else strings.
    strings: tuple[str, ...] = ()
    dates: tuple[str, ...] = ()
    numbers: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    #: Records may be of one object if they agree in one of these: a field, or several as "a+b".
    #: None given: in any field.
    keys: tuple[str, ...] = ()

    @property
    def kinds(self) -> dict[str, str]:
        """The kind of each field that is named."""
        named = {
            "string": self.strings,
            "date": self.dates,
            "number": self.numbers,
            "category": self.categories,
        }
        return {name: kind for kind, names in named.items() for name in names}

    @property
    def split_keys(self) -> list[list[str]] | None:
        """The keys as lists of fields; None if there are none."""
        return [key.split("+") for key in self.keys] or None


@dataclass(frozen=True)
class Summary:
    """What the summaries count."""

    min_experts: int = 5
    thresholds: tuple[int, ...] = (4, 5, 6)
    #: Diameters that separate the size classes.
    class_edges: tuple[float, ...] = (50.0, 100.0)
    class_names: tuple[str, ...] = ("small", "medium", "large")
    #: A cluster's diameter: its mean's, exp(μ), or the mean of its members'.
    diameter: str = "mu"
    #: Under the prior "detection": whether the report also says how many objects so many experts
    #: share, beside how many are real.
    side_by_side: bool = False

    def __post_init__(self) -> None:
        _check(self.min_experts >= 1, "summary.min_experts", self.min_experts, "at least 1")
        _check(
            min(self.thresholds, default=0) >= 1,
            "summary.thresholds",
            self.thresholds,
            "one or more whole numbers from 1",
        )
        _check_choice("summary.diameter", self.diameter, ("mu", "members"))
        edges = self.class_edges
        _check(
            list(edges) == sorted(set(edges)), "summary.class_edges", edges, "in increasing order"
        )
        wanted = len(edges) + 1 if edges else 0
        if len(self.class_names) != wanted:
            raise SettingsError(
                f"summary.class_names has {len(self.class_names)} names for {len(edges)} edges; "
                f"it must have {wanted}"
            )
        if "all" in self.class_names:
            raise SettingsError('summary.class_names has "all", which stands for the total')


@dataclass(frozen=True)
class Image:
    """The image that was marked, to be shown beneath the maps, and where it lies."""

    file: str | None = None
    #: Where y runs: "up", "down" (as rows of pixels do), or "auto": up if most y are negative.
    y: str = "auto"
    #: x and y of the upper left corner of the image.
    offset: tuple[float, float] = (0.0, 0.0)
    #: Units of x and y that one pixel of the image spans.
    scale: float = 1.0

    def __post_init__(self) -> None:
        _check_choice("image.y", self.y, IMAGE_Y)
        _check(len(self.offset) == 2, "image.offset", self.offset, "two numbers [x, y]")
        _check(self.scale > 0, "image.scale", self.scale, "above 0")


@dataclass(frozen=True)
class Config:
    """All settings of a run."""

    run: Run = field(default_factory=Run)
    model: Model = field(default_factory=Model)
    detection: DetectionSettings = field(default_factory=DetectionSettings)
    records: RecordSettings = field(default_factory=RecordSettings)
    summary: Summary = field(default_factory=Summary)
    image: Image = field(default_factory=Image)


#: The paper's values for its three data sets: highlands (section 5.1), reduced and simulation
#: (supplement D).
PRESETS: dict[str, dict[str, Any]] = {
    "highlands": {
        "mu0": (2068.2, -1105.5, 3.8),
        "sigma0": (920.0, 600.0, 0.65),
        "alpha_shape": 3.0,
        "alpha_rate": 0.04,
    },
    "reduced": {
        "mu0": (2050.0, -150.0, 3.2),
        "sigma0": (200.0, 110.0, 0.5),
        "alpha_shape": 1.0,
        "alpha_rate": 0.01,
    },
    "simulation": {
        "mu0": (350.0, 250.0, 3.9),
        "sigma0": (300.0, 225.0, 0.45),
        "alpha_shape": 1.0,
        "alpha_rate": 0.01,
    },
}


def load_config(path: str | os.PathLike[str]) -> dict[str, dict[str, Any]]:
    """Read a TOML settings file into its tables; ``make_config`` checks the names."""
    try:
        with open(path, "rb") as stream:
            return tomllib.load(stream)
    except OSError as error:
        raise SettingsError(f"{path}: cannot be read: {error.strerror}") from None
    except ValueError as error:  # of TOML, of UTF-8, or of numbers of thousands of digits
        raise SettingsError(f"{path}: is not valid TOML: {error}") from None
    except RecursionError:
        raise SettingsError(f"{path}: is not valid TOML: brackets in too many brackets") from None


def make_config(
    tables: Mapping[str, Any] | None = None,
    overrides: Mapping[str, Mapping[str, Any]] | None = None,
) -> Config:
    """Combine preset, file and overrides, the later winning; an unknown name is an error.

    ``tables`` is what a TOML file holds: {"run": {...}, "model": {...}, ...}.
    """
    sections: dict[str, dict[str, Any]] = {f.name: {} for f in dataclasses.fields(Config)}
    layers: list[Mapping[str, Any]] = [tables or {}, overrides or {}]
    for layer in layers:
        for name, values in layer.items():
            if name not in sections:
                raise SettingsError(unknown("section", name, sections))
            if not isinstance(values, Mapping):
                raise SettingsError(f"{name} must be a table of settings, not {_shown(values)}")
            sections[name].update(values)
    preset = sections["run"].get("preset")
    if preset is not None:
        _check_choice("run.preset", preset, tuple(PRESETS))
        sections["model"] = {**PRESETS[preset], **sections["model"]}
    if preset is not None or any(name in sections["model"] for name in FIXED_LAW):
        sections["model"].setdefault("tolerances", "fixed")
    return Config(
        run=build(Run, "run", sections["run"]),
        model=build(Model, "model", sections["model"]),
        detection=build(DetectionSettings, "detection", sections["detection"]),
        records=build(RecordSettings, "records", sections["records"]),
        summary=build(Summary, "summary", sections["summary"]),
        image=build(Image, "image", sections["image"]),
    )


def with_run(config: Config, **changes: Any) -> Config:
    """A copy with some of the run settings changed."""
    return replace(config, run=replace(config.run, **changes))


def settings_of_draws(config: Config) -> dict[str, Any]:
    """The settings on which a chain's draws depend, by their full names."""
    settings = {
        f"{section}.{name}": value
        for section in ("run", "model", "detection", "records")
        for name, value in dataclasses.asdict(getattr(config, section)).items()
    }
    for name in LENGTH_SETTINGS:
        del settings[f"run.{name}"]
    return settings


def fewest_for_consensus(n_experts: int) -> int:
    """Experts that make a consensus where nobody has said: five, or a majority of fewer."""
    usual = Summary.min_experts
    return usual if n_experts >= usual else n_experts // 2 + 1


def default_thresholds(n_experts: int) -> tuple[int, ...]:
    """What the tables count where nobody has said: with few experts, every possible number."""
    usual = Summary.thresholds
    if n_experts >= Summary.min_experts:
        return usual
    return tuple(range(2, n_experts + 1)) or (1,)


def to_toml(config: Config) -> str:
    """All settings as TOML; those that are None (not set) are left out."""
    lines = ["# Settings of a dfcrp run; --config reads them back.", ""]
    for section in dataclasses.fields(Config):
        lines.append(f"[{section.name}]")
        values = getattr(config, section.name)
        for item in dataclasses.fields(values):
            value = getattr(values, item.name)
            if section.name == "run" and item.name == "radius" and value is None:
                value = "none"
            if value is not None:
                lines.append(f"{item.name} = {toml_value(value)}")
        lines.append("")
    return "\n".join(lines)

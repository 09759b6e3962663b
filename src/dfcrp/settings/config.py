"""Every setting of a run, resolved once: defaults, preset, file and keywords.

The sections of a settings file are [run], [likelihood], [prior], [summary] and [image]. The first
names the likelihood and the prior; the schemas of [likelihood] and [prior] are those of the named
parts and live in their folders.
"""

from __future__ import annotations

import dataclasses
import os
import tomllib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from dfcrp.errors import SettingsError, check, check_choice, shown
from dfcrp.likelihoods.registry import is_own, likelihood_named
from dfcrp.priors import registry as priors
from dfcrp.settings import consensus
from dfcrp.settings.values import IMAGE_Y, IMAGES, SAMPLERS, build, coerced, unknown
from dfcrp.values import Json

#: Settings of the run that change no draw, only how many there are, or who waits for them.
LENGTH_SETTINGS = ("scans", "burn_in", "max_scans", "max_minutes", "workers", "checkpoint_seconds")
#: Bytes of a settings file; what is larger, or has no end, is none.
LARGEST_CONFIG = 16 << 20
#: Each chain has its state in memory and its files open.
MOST_CHAINS = 10_000
#: Experts that are one person, by their names; a group for each person.
Persons = tuple[tuple[str, ...], ...]
SECTIONS = ("run", "likelihood", "prior", "summary", "image")
#: Keywords of ``dfcrp.fit`` that are settings of another section than [run]: which, and their name.
ELSEWHERE = {
    "expert_bias": ("likelihood", "expert_bias"),
    "min_experts": ("summary", "min_experts"),
    "side_by_side": ("summary", "side_by_side"),
    "retire_complete": ("summary", "retire_complete"),
    "retire_settled": ("summary", "retire_settled"),
    "image_file": ("image", "file"),
    "image_y": ("image", "y"),
    "image_offset": ("image", "offset"),
    "image_scale": ("image", "scale"),
}
#: Keywords that follow from the items unless somebody says them; None is as if left out.
FROM_ITEMS = ("likelihood", "min_experts")


@dataclass(frozen=True)
class RunSettings:
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
    #: What is listed, and how partitions are weighed: their settings are the sections [likelihood]
    #: and [prior].
    likelihood: str = "circles"
    prior: str = "dfcrp"
    preset: str | None = None
    #: Several images: each with α and tolerances of its own, or all with the same; "auto": as suits
    #: the prior.
    images: str = "auto"
    #: Lists by one person, as groups of experts' names.
    persons: Persons = ()

    def __post_init__(self) -> None:
        for name in ("chains", "thin", "max_scans"):
            check(getattr(self, name) >= 1, f"run.{name}", getattr(self, name), "at least 1")
        check(self.chains <= MOST_CHAINS, "run.chains", self.chains, f"at most {MOST_CHAINS:,}")
        for name in ("seed", "checkpoint_seconds"):
            check(getattr(self, name) >= 0, f"run.{name}", getattr(self, name), "0 or more")
        check_choice("run.sampler", self.sampler, SAMPLERS)
        check_choice("run.prior", self.prior, tuple(priors.HOMES))
        check_choice("run.images", self.images, IMAGES)
        if self.images == "auto":
            shared = priors.prior_named(self.prior).shares_images
            object.__setattr__(self, "images", "shared" if shared else "independent")
        likelihood = likelihood_named(self.likelihood)
        if self.preset is not None:
            if not likelihood.presets:
                raise SettingsError(
                    f"run.preset is {self.preset!r}: the paper's presets are for circles, not for "
                    f"{self.likelihood}; leave it out"
                )
            check_choice("run.preset", self.preset, tuple(likelihood.presets))
        priors.prior_named(self.prior).check_sampler(self.sampler)
        names = [name for group in self.persons for name in group]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise SettingsError(
                f"run.persons has {', '.join(twice)} more than once; a list is by one person"
            )
        if isinstance(self.radius, str):
            check_choice("run.radius", self.radius, ("auto", "none"))
            if self.radius == "none":
                object.__setattr__(self, "radius", None)
        elif self.radius is not None:
            check(self.radius > 0, "run.radius", self.radius, 'above 0, "auto" or "none"')
        for name in ("scans", "workers", "max_minutes", "nearest"):
            value = getattr(self, name)
            check(value is None or value > 0, f"run.{name}", value, "above 0")
        if self.burn_in is not None:
            check(self.burn_in >= 0, "run.burn_in", self.burn_in, "0 or more")
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
class SummarySettings:
    """What the summaries count."""

    #: Experts that make a consensus, or a share of those who looked: "60%".
    min_experts: int | str = consensus.USUAL
    thresholds: tuple[int, ...] = consensus.THRESHOLDS
    #: Diameters that separate the size classes; without them they come from the data.
    class_edges: tuple[float, ...] | None = None
    class_names: tuple[str, ...] = ("small", "medium", "large")
    #: A cluster's diameter: its mean's, exp(μ), or the mean of its members'.
    diameter: str = "mu"
    #: Under the prior "detection": whether the report also says how many objects so many experts
    #: share, beside how many are real.
    side_by_side: bool = False
    #: Under the prior "detection": an image needs no more looks where nothing was missed, and all
    #: is real or false as listed, with probabilities of at least these.
    retire_complete: float = 0.9
    retire_settled: float = 0.9

    def __post_init__(self) -> None:
        for name in ("retire_complete", "retire_settled"):
            value = getattr(self, name)
            check(0.0 <= value <= 1.0, f"summary.{name}", value, "a probability from 0 to 1")
        least = consensus.checked(self.min_experts, "summary.min_experts")
        object.__setattr__(self, "min_experts", least)
        check(
            min(self.thresholds, default=0) >= 1,
            "summary.thresholds",
            self.thresholds,
            "one or more whole numbers from 1",
        )
        check_choice("summary.diameter", self.diameter, ("mu", "members"))
        edges = self.class_edges
        if edges is not None:
            check(
                list(edges) == sorted(set(edges)),
                "summary.class_edges",
                edges,
                "in increasing order",
            )
            wanted = len(edges) + 1 if edges else 0
            if len(self.class_names) != wanted:
                raise SettingsError(
                    f"summary.class_names has {len(self.class_names)} names for {len(edges)} "
                    f"edges; it must have {wanted}"
                )
        if "all" in self.class_names:
            raise SettingsError('summary.class_names has "all", which stands for the total')


@dataclass(frozen=True)
class ImageSettings:
    """The image that was marked, to be shown beneath the maps, and where it lies."""

    file: str | None = None
    #: Where y runs: "up", "down" (as rows of pixels do), or "auto": up if most y are negative.
    y: str = "auto"
    #: x and y of the upper left corner of the image.
    offset: tuple[float, float] = (0.0, 0.0)
    #: Units of x and y that one pixel of the image spans.
    scale: float = 1.0

    def __post_init__(self) -> None:
        check_choice("image.y", self.y, IMAGE_Y)
        check(len(self.offset) == 2, "image.offset", self.offset, "two numbers [x, y]")
        check(self.scale > 0, "image.scale", self.scale, "above 0")


@dataclass(frozen=True)
class Config:
    """All settings of a run; ``likelihood`` and ``prior`` are of the types that ``run`` names."""

    run: RunSettings = field(default_factory=RunSettings)
    likelihood: Any = None
    prior: Any = None
    summary: SummarySettings = field(default_factory=SummarySettings)
    image: ImageSettings = field(default_factory=ImageSettings)

    def __post_init__(self) -> None:
        # What is left out has its defaults.
        if self.likelihood is None:
            settings = likelihood_named(self.run.likelihood).Settings()
            object.__setattr__(self, "likelihood", settings)
        if self.prior is None:
            object.__setattr__(self, "prior", priors.prior_named(self.run.prior).Settings())


def load_config(path: str | os.PathLike[str]) -> dict[str, Json]:
    """Read a TOML settings file into its tables; ``make_config`` checks the names."""
    try:
        with open(path, "rb") as stream:
            text = stream.read(LARGEST_CONFIG + 1)
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        reason = getattr(error, "strerror", None) or error
        raise SettingsError(f"{path}: cannot be read: {reason}") from None
    if len(text) > LARGEST_CONFIG:
        raise SettingsError(f"{path}: is no settings file: it has more than 16 MB")
    return parse_config(text, str(path))


def parse_config(text: bytes, where: str) -> dict[str, Json]:
    """The tables of a TOML text; ``where`` is what a message calls it."""
    try:
        return tomllib.loads(text.decode())
    except ValueError as error:  # of TOML, of UTF-8, or of numbers of thousands of digits
        raise SettingsError(f"{where}: is not valid TOML: {error}") from None
    except RecursionError:
        raise SettingsError(f"{where}: is not valid TOML: brackets are nested too deeply") from None


def make_config(
    tables: Mapping[str, object] | None = None,
    overrides: Mapping[str, Mapping[str, object]] | None = None,
) -> Config:
    """Combine preset, file and overrides, the later winning; an unknown name is an error.

    ``tables`` is what a TOML file holds: {"run": {...}, "likelihood": {...}, ...}.
    """
    sections: dict[str, Json] = {name: {} for name in SECTIONS}
    for layer in (tables or {}, overrides or {}):
        for name, values in layer.items():
            if name not in sections:
                raise SettingsError(unknown("section", "", name, sections))
            if not isinstance(values, Mapping):
                raise SettingsError(f"{name} must be a table of settings, not {shown(values)}")
            sections[name].update(values)
    run = build(RunSettings, "run", sections["run"])
    likelihood, prior = likelihood_named(run.likelihood), priors.prior_named(run.prior)
    if run.preset is not None:
        preset = likelihood.presets[run.preset]
        sections["likelihood"] = {**preset["likelihood"], **sections["likelihood"]}
        if issubclass(prior.Settings, priors.prior_named("dfcrp").Settings):
            sections["prior"] = {**preset["prior"], **sections["prior"]}
    if run.sampler != "exact":
        sections["likelihood"] = {**likelihood.as_in_the_paper, **sections["likelihood"]}
    values = likelihood.complete(sections["likelihood"])
    return Config(
        run=run,
        likelihood=build(likelihood.Settings, "likelihood", values, run.likelihood),
        prior=build(prior.Settings, "prior", sections["prior"], f"the prior {run.prior}"),
        summary=build(SummarySettings, "summary", sections["summary"]),
        image=build(ImageSettings, "image", sections["image"]),
    )


AnyConfig = Config | Mapping[str, Any] | str | os.PathLike[str] | None


@dataclass(frozen=True)
class Requested:
    """What somebody asked for, in a config of any form and by keywords; read, not yet checked."""

    #: What the config holds, as a settings file does.
    tables: Mapping[str, Any]
    #: By section; they win over the tables.
    keywords: Mapping[str, Mapping[str, Any]]
    #: The file of the tables, for messages; empty if they are from none.
    where: str = ""

    def said(self, section: str, name: str) -> Any:
        """What a setting was asked to be; None if nobody said."""
        for layer in (self.keywords, self.tables):
            values = layer.get(section)
            if isinstance(values, Mapping) and name in values:
                return values[name]
        return None

    def unless_a_keyword_says(self, **run: object) -> Requested:
        """The same with settings of the run that only keywords win over."""
        return replace(
            self, keywords={**self.keywords, "run": {**run, **self.keywords.get("run", {})}}
        )

    def kind(self, usual: str) -> str:
        """The kind of items, ``usual`` if nobody names one; known before all else is checked."""
        if self.where:
            _refuse_code_of_file(self.tables, self.keywords, self.where)
        named = self.said("run", "likelihood")
        return usual if named is None else str(coerced("run.likelihood", named, str))

    def resolve(self, likelihood: str | None = None) -> Config:
        """Every setting, checked; an unknown name is an error.

        ``likelihood`` is the kind of the items, if they are known, for where nobody names it.
        """
        kind = self.said("run", "likelihood")
        if likelihood is not None and kind in (None, likelihood):
            asked = self.unless_a_keyword_says(likelihood=likelihood)
        else:
            asked = self
        if self.where:
            return made_from_file(asked.tables, asked.keywords, self.where)
        return make_config(asked.tables, asked.keywords)

    def for_looks(self, config: Config, looked: Collection[int]) -> Config:
        """The settings with what makes a consensus, unless somebody has said it.

        It follows from how many experts ``looked`` at each image.
        """
        usual: Json = {
            "min_experts": consensus.usual(looked),
            "thresholds": consensus.usual_thresholds(max(looked)),
        }
        open_ = {name: value for name, value in usual.items() if self.said("summary", name) is None}
        return replace(config, summary=replace(config.summary, **open_))


def read_settings(config: AnyConfig, keywords: Mapping[str, object]) -> Requested:
    """Read a config of any form, once, and sort keywords by their section."""
    if isinstance(config, Config):
        if "preset" in keywords:
            raise SettingsError("a preset cannot be laid over a finished Config; put it inside")
        return Requested(as_tables(config), _by_section(keywords))
    if config is None or isinstance(config, Mapping):
        return Requested(config or {}, _by_section(keywords))
    return Requested(load_config(config), _by_section(keywords), str(config))


def resolve(
    config: AnyConfig, keywords: Mapping[str, object], looked: Collection[int] = ()
) -> Config:
    """All settings, from a config of any form and keywords; unknown names are errors."""
    asked = read_settings(config, keywords)
    found = asked.resolve()
    return asked.for_looks(found, looked) if looked else found


def _by_section(keywords: Mapping[str, object]) -> dict[str, Json]:
    found: dict[str, Json] = {}
    for name, value in keywords.items():
        if value is None and name in FROM_ITEMS:
            continue
        section, key = ELSEWHERE.get(name, ("run", name))
        unbounded = name == "radius" and value is None
        found.setdefault(section, {})[key] = "none" if unbounded else value
    return found


def made_from_file(
    tables: Mapping[str, object], overrides: Mapping[str, Mapping[str, object]] | None, where: str
) -> Config:
    """The same as ``make_config``; a message on what the file says names the file."""
    _refuse_code_of_file(tables, overrides or {}, where)
    try:
        return make_config(tables, overrides)
    except SettingsError as error:
        named = (
            f"{section}.{key}"
            for section, values in tables.items()
            if isinstance(values, Mapping)
            for key in values
            if key not in (overrides or {}).get(section, {})
        )
        if any(name in str(error) for name in named):
            raise SettingsError(f"{where}: {error}") from None
        raise


def _refuse_code_of_file(
    tables: Mapping[str, object], overrides: Mapping[str, Mapping[str, object]], where: str
) -> None:
    """Code that a file names is not run: a likelihood of one's own must be among the overrides."""
    run = tables.get("run")
    named = run.get("likelihood") if isinstance(run, Mapping) else None
    if isinstance(named, str) and is_own(named) and "likelihood" not in overrides.get("run", {}):
        raise SettingsError(
            f"{where}: run.likelihood is {shown(named)}, which is code, and dfcrp runs no code "
            "because a file names it. If you know it and trust it, name it yourself: "
            f"likelihood={shown(named)}, or --likelihood {named[:200]}"
        )


def as_tables(config: Config) -> dict[str, Json]:
    """All settings as a settings file holds them; those that are None (not set) are left out."""
    tables = {
        section: {name: value for name, value in values.items() if value is not None}
        for section, values in dataclasses.asdict(config).items()
    }
    if config.run.radius is None:
        tables["run"]["radius"] = "none"
    return tables


def with_run(config: Config, **changes: Any) -> Config:
    """A copy with some of the run settings changed."""
    return replace(config, run=replace(config.run, **changes))


def settings_of_draws(config: Config) -> Json:
    """The settings on which a chain's draws depend, by their full names."""
    settings = {
        f"{section}.{name}": value
        for section in ("run", "likelihood", "prior")
        for name, value in dataclasses.asdict(getattr(config, section)).items()
    }
    for name in LENGTH_SETTINGS:
        del settings[f"run.{name}"]
    return settings


def lengths_asked(config: Config) -> Json:
    """How long the run was to be, by the full names of the settings."""
    return {f"run.{name}": getattr(config.run, name) for name in LENGTH_SETTINGS}


def to_toml(config: Config) -> str:
    """All settings as TOML."""
    import tomli_w

    text = tomli_w.dumps(as_tables(config))
    return f"# Settings of a dfcrp run; --config reads them back.\n\n{text}"

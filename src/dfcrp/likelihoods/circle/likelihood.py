"""Circles, as markings by x, y and diameter, in a plane or on a sphere."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dfcrp.draws import Columns, Draws
from dfcrp.errors import InputError, SettingsError
from dfcrp.geometry import unit_vectors
from dfcrp.likelihoods.base import (
    NARROW,
    Centre,
    Layout,
    Likelihood,
    Offsets,
    Outlines,
    Place,
    Sight,
)
from dfcrp.likelihoods.circle import kernel, sphere
from dfcrp.likelihoods.circle.hyper import (
    AS_IN_THE_PAPER,
    FIXED_LAW,
    PRESETS,
    CircleSettings,
    H,
    are_sized,
    circle_hyper,
    length_unit,
    set_apart,
    set_apart_on_sphere,
    sphere_features,
    sphere_hyper,
    with_experts,
)
from dfcrp.likelihoods.circle.neighbours import find_neighbours
from dfcrp.likelihoods.circle.scatter import (
    AXES,
    GROWTHS,
    LAW,
    LAW_WORDS,
    OF_DIAMETERS,
    REST,
    circle_columns,
    circle_offsets,
    circle_scatter,
    spreads,
)
from dfcrp.likelihoods.differences import (
    BIAS_WORDS,
    CARELESS,
    TAIL_COLUMNS,
    TAIL_WORDS,
    bias_columns,
    careless,
    careless_words,
    decide,
    expert_bias,
    knows_bias,
)
from dfcrp.likelihoods.report import counted_items, estimates, learned_section
from dfcrp.likelihoods.tails import with_tails
from dfcrp.markup import Section, SectionMaker, significant
from dfcrp.neighbours.neighbourhood import Neighbourhood
from dfcrp.summaries.tails import Scatter
from dfcrp.values import Array, Json

if TYPE_CHECKING:
    from dfcrp.items.items import Items
    from dfcrp.likelihoods.differences import ExpertBias
    from dfcrp.posterior.posterior import Posterior
    from dfcrp.report.contents import Contents
    from dfcrp.settings.config import Config

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]

#: Relative error of what is stored as a 32-bit float, as clusters' positions are.
SINGLE = 2.0**-24
#: Relative error of a position after sums and differences of 64-bit floats, with room to spare.
DOUBLE = 2.0**-40
#: Largest error of a position that is let pass, in median diameters.
WORST_ERROR = 0.05
#: Largest error of a stored position for which nothing is done.
SMALL_ERROR = 0.001
#: Largest ratio of two diameters; what is beyond it is no list of like objects.
WIDEST_RANGE = 1e9
#: Rows of the table of tolerances.
ROWS = {
    "position": "x and y",
    "position_growth": "x and y: growth of the variance",
    "diameter_percent": "diameter, %",
    "diameter_growth": "diameter: growth of the variance",
    **{name: f"careless markings, {words}" for name, words in CARELESS.items()},
}


class _Circles(Likelihood):
    """The paper's likelihood: a structured normal in x, y and log diameter."""

    name = "circles"
    noun = "marking"
    verb = "marked"
    figures = ("size_frequency", "size_differential", "size_relative")
    Settings = CircleSettings
    columns = ("x", "y", "diameter")
    alternatives = (("x", "y", "radius"),)
    positive = ("diameter", "radius")
    sphere = True
    weighs_new = False
    presets = PRESETS
    as_in_the_paper = AS_IN_THE_PAPER

    def standard(self, columns: dict[str, Array], place: Place) -> dict[str, Array]:
        """A radius becomes a diameter."""
        if "radius" not in columns:
            return columns
        return {
            "diameter" if name == "radius" else name: 2 * values if name == "radius" else values
            for name, values in columns.items()
        }

    def complete(self, values: Mapping[str, object]) -> Json:
        """Giving a setting of the fixed law asks for it, and that is the paper's model."""
        fixed = any(name in values for name in FIXED_LAW)
        known = {"tolerances": "fixed", **values} if fixed else dict(values)
        return {**AS_IN_THE_PAPER, **known} if known.get("tolerances") == "fixed" else known

    def decide(self, items: Items, settings: CircleSettings, independent: bool) -> CircleSettings:
        """Whether markings may be careless and experts differ, unless that is said."""
        return decide(settings, items.families, items.image_codes if independent else None)

    def check(self, items: Items, config: Config) -> None:
        """Coordinates that lose their digits, degrees without a body, pixels in metres."""
        _refuse_beyond_reason(items)
        if items.site.on_sphere:
            _ = items.site.sphere_radius_km
        elif items.site.units in ("m", "km") and config.likelihood.tolerances == "fixed":
            raise SettingsError(
                f"the paper's law of tolerances is in pixels, the data are in {items.site.units}: "
                "leave the preset out, so that tolerances are learned, or give the data in pixels"
            )

    def features(self, items: Items) -> Floats:
        """x, y and log diameter."""
        return np.column_stack([items.x, items.y, np.log(items.diameter)])

    def lay_out(self, items: Items, experts: Codes, config: Config) -> Layout:
        """In a plane, or on a sphere if the data are in degrees and km."""
        if items.site.on_sphere:
            return _lay_out_on_sphere(items, experts, config)
        return lay_out_circles(
            items.features,
            items.families,
            items.experts,
            config,
            experts=experts,
            images=items.image_codes,
            candidates=items.candidates,
        )

    def centre(self, items: Items) -> Centre:
        """Position and diameter of the cluster's mean."""
        return Centre(("x", "y", "diameter"), ("x", "y", "log_diameter"), _circle, rest=REST)

    def sizes(self, items: Items) -> Floats:
        """Diameters."""
        return items.diameter

    def size_parameter(self) -> str:
        """The mean's log diameter."""
        return "log_diameter"

    def learned_samples(self, draws: Draws) -> dict[str, Floats]:
        """How far apart markings of one object lie, unless the paper's law was used."""
        return {**spreads(draws), **careless(draws)}

    def quantity_words(self, names: Sequence[str]) -> dict[str, str]:
        """The law in plain words."""
        return {**BIAS_WORDS, **LAW_WORDS, **TAIL_WORDS}

    def unheard(self, items: Items) -> frozenset[str]:
        """How scatter grows with diameter, where diameters are all about the same."""
        log_diameter = np.log(items.diameter)
        if not are_sized(log_diameter):
            return GROWTHS | {"scale_d"}
        return GROWTHS if np.ptp(log_diameter) < NARROW else frozenset()

    def learned(self, samples: Mapping[str, Floats], items: Items) -> Json | None:
        """Without diameters, if they are all the same."""
        if not are_sized(np.log(items.diameter)):
            kept = {name: values for name, values in samples.items() if name not in OF_DIAMETERS}
            return super().learned(kept, items)
        return super().learned(samples, items)

    def learned_about(self, items: Items) -> Json:
        """Positions are at the median diameter; the unit of both, where a file names one."""
        unit = "km" if items.site.on_sphere else items.site.units
        known = {} if unit == "px" else {"unit": unit}
        return {"median_diameter": float(np.median(items.diameter)), **known}

    def learned_words(self, found: Json) -> list[str]:
        """Around an object of the median diameter."""
        unit = f" {found['unit']}" if "unit" in found else ""
        diameters = "; their diameters are all the same, and say nothing (1 sd)"
        if "diameter_percent" in found:
            diameters = f" and by {found['diameter_percent']['mean']:.2g} % in diameter (1 sd)"
        return [
            f"Learned from the data: around an object of the median diameter "
            f"({found['median_diameter']:.4g}{unit}) markings scatter by "
            f"{found['position']['mean']:.3g}{unit} in x and y{diameters}.",
            *careless_words(found, "marking"),
        ]

    def data_words(self, items: Items) -> list[str]:
        """With the range of diameters, and what x and y are."""
        site = items.site
        smallest, largest = float(items.diameter.min()), float(items.diameter.max())
        unit = {"px": "the units of the data", "deg": "km"}.get(site.units, site.units)
        words = [
            f"{counted_items(items, 'marking')}, with diameters from {significant(smallest)} to "
            f"{significant(largest)}, in {unit}."
        ]
        if site.on_sphere:
            words.append(
                "x and y are longitude and latitude in degrees; distances are those on a sphere "
                f"with a radius of {site.body_radius_km:g} km."
            )
        return words

    def law_words(self, posterior: Posterior) -> list[str]:
        """The paper's law, or learned."""
        if posterior.config.likelihood.tolerances == "learned":
            return [
                "How far apart markings of one object lie was learned from the data, relative to "
                "the median diameter, so the unit does not matter."
            ]
        site = posterior.items.site
        words = "How far apart markings of one object may lie followed the paper's law"
        if site.on_sphere:
            words += f", which is in pixels; one pixel was taken for {site.metres_per_pixel:g} m"
        return [f"{words}."]

    def sections(self) -> tuple[SectionMaker, ...]:
        """What was learned of the scatter of markings."""
        return (_learned_section,)

    def expert_bias(self, draws: Draws, items: Items) -> ExpertBias | None:
        """Offsets, size factors and noise factors, if they were learned.

        On a sphere offsets are along the ground, to the east and north, in km.
        """
        site = items.site
        if not knows_bias(draws):
            return None
        if not site.on_sphere:
            return expert_bias(draws, AXES, self.noun)
        learned = LAW[0] in draws.columns.slices
        unit = length_unit(CircleSettings(tolerances="learned" if learned else "fixed"), site)
        radius = site.sphere_radius_km
        return expert_bias(draws, AXES, self.noun, unit=unit, radius_km=radius)

    def distances(self, items: Items) -> tuple[Floats, int | None]:
        """Places, and the log diameter last."""
        places = items.places
        return np.column_stack([places, np.log(items.diameter)]), places.shape[1]

    def sight(self, items: Items) -> Sight:
        """Centres, in a plane or on the sphere, and diameters."""
        coordinates = np.column_stack([items.x, items.y])
        if not items.site.on_sphere:
            return Sight(coordinates, ("x", "y"), lambda found: found, items.diameter)
        radius = items.site.sphere_radius_km

        def on_ground(found: Floats) -> Floats:
            return radius * unit_vectors(found[:, 0], found[:, 1])

        names = ("longitude", "latitude")
        return Sight(coordinates, names, on_ground, items.diameter, turn=360.0)

    def apart(self, items: Items, row: int) -> Floats:
        """The distance of the centres."""
        places = items.places
        return np.asarray(np.linalg.norm(places - places[row], axis=1))

    def scatter(self, posterior: Posterior) -> Callable[[Floats], Scatter] | None:
        """By the law of the variances, learned or the paper's."""
        return circle_scatter(posterior)

    def offsets(self, posterior: Posterior, row: int) -> Offsets:
        """Of position and diameter, as the mean expert would have drawn the marking."""
        return circle_offsets(posterior, row)

    def outlines(self, columns: Mapping[str, Array]) -> Outlines:
        """Circles."""
        x, y, d = (np.asarray(columns[name], np.float64) for name in ("x", "y", "diameter"))
        return Outlines(x, y, d, d, np.zeros_like(x), "ellipse")


def _circle(parameters: Floats) -> Floats:
    return np.stack([parameters[0], parameters[1], np.exp(parameters[2])])


def lay_out_circles(
    features: Floats,
    codes: Codes,
    names: Sequence[str],
    config: Config,
    *,
    experts: Codes,
    images: Codes | None = None,
    candidates: Codes | None = None,
) -> Layout:
    """Circles in a plane by their features (x, y, log diameter).

    ``codes`` say whose list each is on, ``experts`` who counts as one for the rule.
    """
    hyper = circle_hyper(config.likelihood, features)
    log_sizes = features[:, 2]
    features = set_apart(features, codes, sized=hyper.sized)
    neighbourhood = find_neighbours(
        features,
        experts,
        config.run.radius,
        hyper,
        images,
        nearest=config.run.nearest,
        candidates=candidates,
    )
    columns = circle_columns(hyper, with_rest=far_from_origin(features))
    settings = decide(config.likelihood, codes)
    hyper, columns = _with_differences(hyper, columns, settings, codes, names, neighbourhood)
    return Layout(features, hyper, kernel.WIDTH, columns, neighbourhood, log_sizes, possible_rows)


def _with_differences(
    hyper: H,
    columns: Columns,
    settings: CircleSettings,
    codes: Codes,
    names: Sequence[str],
    neighbourhood: Neighbourhood,
) -> tuple[H, Columns]:
    """Where careless markings and experts who differ are learned: what these take besides."""
    if settings.tails == "learned":
        hyper, columns = with_tails(hyper, len(codes)), columns.joined(TAIL_COLUMNS)
    if settings.expert_bias != "none":
        hyper = with_experts(hyper, settings, codes[neighbourhood.original], len(names))
        columns = columns.joined(bias_columns(hyper.bias, names, AXES))
    return hyper, columns


def _lay_out_on_sphere(items: Items, experts: Codes, config: Config) -> Layout:
    """Circles in degrees and km."""
    unit = length_unit(config.likelihood, items.site)
    features = sphere_features(items, unit)
    radius = items.site.sphere_radius_km / unit
    hyper = sphere_hyper(config.likelihood, features, radius, unit)
    log_sizes = features[:, 2]
    features = set_apart_on_sphere(features, items.families, sized=hyper.sized)
    reach = config.run.radius
    if isinstance(reach, float):
        # Along the ground in km; neighbours are found by straight lines.
        reach = 2.0 * radius * math.sin(min(0.5 * reach / (unit * radius), 0.5 * math.pi))
    neighbourhood = find_neighbours(
        features,
        experts,
        reach,
        hyper,
        items.image_codes,
        nearest=config.run.nearest,
        candidates=items.candidates,
    )
    columns = circle_columns(hyper, with_rest=True)
    settings = decide(config.likelihood, items.families)
    hyper, columns = _with_differences(
        hyper, columns, settings, items.families, items.experts, neighbourhood
    )
    return Layout(features, hyper, sphere.WIDTH, columns, neighbourhood, log_sizes, possible_rows)


CIRCLES = _Circles()


def possible_rows(rows: Floats) -> NDArray[np.bool_]:
    """Which rows ``kernel.complete_row`` could have left."""
    a, d, lam = rows[:, [kernel.VAR_POSITION, kernel.VAR_SIZE, kernel.LAMBDA]].T
    if (lam == kernel.UNSIZED).all():
        return (a > 0.0) & np.isclose(rows[:, kernel.INV_A] * a, 1.0)
    with np.errstate(all="ignore"):
        s = d * (1.0 - lam * lam)
        derived = {
            kernel.INV_A: 1.0 / a,
            kernel.BETA: lam * np.sqrt(0.5 * d / a),
            kernel.INV_S: 1.0 / s,
            kernel.LOG_A: np.log(a),
            kernel.LOG_D: np.log(d),
            kernel.LOG_NORM: -np.log(a) - 0.5 * np.log(s) - 1.5 * kernel.LOG_2PI,
        }
    expected = np.column_stack(list(derived.values()))
    same = np.isclose(rows[:, list(derived)], expected, rtol=1e-9, atol=1e-9).all(axis=1)
    return (a > 0.0) & (d > 0.0) & (s > 0.0) & same


def _learned_section(contents: Contents) -> Section | None:
    """What was learned of the scatter of markings about their object."""
    posterior = contents.posterior
    found = posterior.tolerances
    if found is None:
        return None
    return learned_section(
        "How far do markings scatter?",
        posterior.likelihood.learned_words(found),
        estimates(found, ROWS),
        "Standard deviation of the markings of one object, at the median diameter. A growth of 2 "
        "means that it is proportional to the diameter, 0 that it is the same for all diameters.",
    )


def far_from_origin(features: NDArray[np.float64]) -> bool:
    """Whether positions (x, y, log diameter) need more digits than a 32-bit float has."""
    farthest = float(np.abs(features[:, :2]).max())
    return farthest * SINGLE > SMALL_ERROR * float(np.exp(np.median(features[:, 2])))


def _refuse_beyond_reason(items: Items) -> None:
    """Refuse coordinates too large for their diameters, and diameters of all magnitudes."""
    smallest, largest = float(items.diameter.min()), float(items.diameter.max())
    if largest > WIDEST_RANGE * smallest:
        raise InputError(
            f"the diameters go from {smallest:g} to {largest:g}, too far for one kind of object; "
            "look for misread rows, or leave some out with min_diameter= (--min-diameter)"
        )
    median = float(np.median(items.diameter))
    for axis in ("x", "y"):
        values = getattr(items, axis)
        farthest = float(values[np.argmax(np.abs(values))])
        if abs(farthest) * DOUBLE > WORST_ERROR * median:
            raise InputError(
                f"{axis} goes to {farthest:g}, where diameters are about {median:g}: positions are "
                "known to about twelve digits, and the objects would be lost in the rounding. "
                + _way_out(axis, values, median)
            )


def _way_out(axis: str, values: NDArray[np.float64], median: float) -> str:
    """A constant to be subtracted, if that is enough."""
    low, high = float(values.min()), float(values.max())
    middle = low + (high - low) / 2.0
    if (high - low) / 2.0 * DOUBLE <= WORST_ERROR * median:
        return f"Subtract a constant from {axis}, as in {axis} - {middle:.6g}, or check the units"
    return (
        f"The items are as far apart as from {low:g} to {high:g}: look for misread rows, check the "
        "units of diameters, or fit parts of the ground by themselves"
    )

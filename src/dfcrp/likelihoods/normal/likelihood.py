"""Items described by numbers, normal about the mean of their object.

Points, boxes and ellipses have columns of their own; "diagonal" and "normal" take any columns, with
variances only or with a full covariance for each cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dfcrp.draws import Columns, Draws
from dfcrp.errors import InputError
from dfcrp.likelihoods.base import (
    NARROW,
    Centre,
    Layout,
    Likelihood,
    NewItems,
    Offsets,
    Outlines,
    Place,
    Sight,
)
from dfcrp.likelihoods.bias import NEWCOMER_ROUNDS, with_bias, with_newcomers
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
)
from dfcrp.likelihoods.integrated import Newcomers
from dfcrp.likelihoods.normal import covariance, kernel
from dfcrp.likelihoods.normal.hyper import (
    AS_IN_THE_PAPER,
    NormalSettings,
    covariance_hyper,
    find_pilot,
    normal_hyper,
    set_ties_apart,
)
from dfcrp.likelihoods.normal.neighbours import find_feature_neighbours
from dfcrp.likelihoods.normal.scatter import normal_offsets, normal_scatter
from dfcrp.likelihoods.normal.shapes import (
    SHAPES,
    Shape,
    heard_features,
    shape_of,
    stored_places,
    without_silent,
)
from dfcrp.likelihoods.report import estimates, learned_section
from dfcrp.likelihoods.tails import with_tails
from dfcrp.markup import Section, SectionMaker, plural
from dfcrp.neighbours.neighbourhood import refuse_copies
from dfcrp.summaries.tails import Scatter
from dfcrp.values import Array, Json

if TYPE_CHECKING:
    from dfcrp.items.items import Items
    from dfcrp.likelihoods.differences import ExpertBias
    from dfcrp.posterior.posterior import Posterior
    from dfcrp.report.contents import Contents
    from dfcrp.settings.config import Config

Floats = NDArray[np.float64]
#: An ellipse turned by 180° is the same.
PERIODS = {"angle": 180.0}
CORNERS = ("left", "top", "right", "bottom")
CORNER_AND_SIDES = ("left", "top", "width", "height")
TURNED_BOX = ("x", "y", "width", "height", "angle")
#: Seed of the draws of means given a cluster's members: the same draws give the same answers.
_SEED = 8
GROWTH = "growth_"
#: What groups of features are called, and the factor that makes a percentage of a log size.
GROUPS = {
    "x_y": ("x and y", 1.0),
    "log_width_log_height": ("width and height", 100.0),
    "log_size": ("size", 100.0),
    "elongation_0_elongation_45": ("shape (half the log ratio of the axes)", 1.0),
}


class NormalLikelihood(Likelihood):
    """What all of them have in common; a shape says how columns become features."""

    Settings = NormalSettings
    as_in_the_paper = AS_IN_THE_PAPER

    def __init__(self, name: str, noun: str = "item") -> None:
        self.name, self.noun = name, noun
        shape = SHAPES.get(name)
        if shape is not None:
            self.columns, self.positive = shape.columns, shape.positive
            self.verb = "marked"
            self.size_word = f"size √({' · '.join(shape.positive)})"

    def shape(self, items: Items) -> Shape:
        """How columns become features."""
        return shape_of(self.name, tuple(items.columns))

    def raw_features(self, items: Items) -> Floats:
        """Features as they are, not about their mean."""
        return self.shape(items).to_features(items.values.astype(np.float64))

    def origin(self, items: Items) -> Floats:
        """The mean of all items that were drawn together, which features are measured from."""
        known = items.origin
        return self.raw_features(items).mean(axis=0) if known is None else known

    def features(self, items: Items) -> Floats:
        """About their mean, so that stored means keep their digits."""
        return self.raw_features(items) - self.origin(items)

    def features_of_new(self, items: Items, values: Floats) -> Floats:
        """About the mean of ``items``."""
        return self.shape(items).to_features(values) - self.origin(items)

    def newcomers(self, asked: NewItems) -> Newcomers:
        """By the features that are heard, with how experts differ."""
        plain, items = super().newcomers(asked), asked.items
        heard = heard_features(items.features, self.origin(items))
        return plain._replace(
            hyper=with_newcomers(asked.hyper, items.families, asked.sources),
            known=plain.known[:, heard],
            new=plain.new[:, heard],
            rounds=NEWCOMER_ROUNDS if asked.hyper.tails.on else 0,
        )

    def decide(self, items: Items, settings: NormalSettings, independent: bool) -> NormalSettings:
        """Whether items may be careless and experts differ, unless that is said."""
        return decide(settings, items.families, items.image_codes if independent else None)

    def lay_out(self, items: Items, experts: NDArray[np.int64], config: Config) -> Layout:
        """A pilot of the data gives scales, free of units."""
        settings, shape, features = config.likelihood, self.shape(items), items.features
        images, heard = items.image_codes, heard_features(features, self.origin(items))
        if items.candidates is None:
            refuse_copies(features, images, plural(self.noun))
        pilot = find_pilot(shape, features, experts, settings.growth, images)
        apart = set_ties_apart(
            shape, items.values.astype(np.float64), features, items.families, pilot
        )
        if apart is not features:
            features = apart
            pilot = find_pilot(shape, features, experts, settings.growth, images)
        neighbourhood = find_feature_neighbours(
            shape,
            features,
            experts,
            pilot.scales(shape, features, settings.growth),
            radius=config.run.radius,
            nearest=config.run.nearest,
            candidates=items.candidates,
            images=images,
            origin=self.origin(items),
            heard=heard,
        )
        hyper: Any
        full, columns = shape, columns_of(shape)
        if len(heard) < len(full.features):
            shape, features = without_silent(full, heard), np.ascontiguousarray(features[:, heard])
            pilot = find_pilot(shape, features, experts, settings.growth, images)
            columns = columns._replace(shared=columns_of(shape).shared)
        p, groups = len(shape.features), len(shape.groups)
        if self.name == "normal":
            hyper, width = covariance_hyper(settings, features, pilot), covariance.row_width(p)
        else:
            hyper = normal_hyper(settings, shape, features, pilot)
            width = kernel.row_width(p, groups)
        if shape is not full:
            hyper = hyper._replace(stored=len(full.features), **stored_places(full, heard))
        settings = decide(settings, items.families)
        if settings.tails == "learned":
            hyper, columns = with_tails(hyper, len(items)), columns.joined(TAIL_COLUMNS)
        if settings.expert_bias != "none":
            within = np.repeat(pilot.within, shape.groups)
            hyper = with_bias(
                hyper,
                settings.expert_bias,
                items.families[neighbourhood.original],
                settings.expert_offset_sd * within,
                settings.expert_noise_sd,
                learn_spread=True,
                count=len(items.experts),
            )
            columns = columns.joined(bias_columns(hyper.bias, items.experts, shape.features))
        return Layout(features, hyper, width, columns, neighbourhood, self.log_sizes(items))

    def log_sizes(self, items: Items) -> Floats | None:
        """Of boxes and ellipses: the mean log length of the two sides or axes."""
        if not self.positive:
            return None
        return np.asarray(np.mean([np.log(items.columns[name]) for name in self.positive], axis=0))

    def centre(self, items: Items) -> Centre:
        """A cluster's mean given the members, and how uncertain that is."""
        shape, middle = self.shape(items), self.origin(items)
        p = len(shape.features)
        rng = np.random.default_rng(_SEED)

        def describe(parameters: Floats) -> Floats:
            mean, error = parameters[:p], parameters[p : 2 * p]
            drawn = mean + error * rng.standard_normal(mean.shape)
            return np.moveaxis(shape.to_columns(np.moveaxis(drawn, 0, -1) + middle), -1, 0)

        stored = (*shape.features, *(f"{name}_se" for name in shape.features))
        turning = {name: PERIODS[name] for name in self.columns or () if name in PERIODS}
        return Centre(tuple(items.columns), stored, describe, turning)

    def learned_samples(self, draws: Draws) -> dict[str, Floats]:
        """Standard deviations within an object, by the features that share one, and growths.

        Where errors grow with size (``growth_``: variance ∝ size^growth), at the median size.
        """
        power = 1.0 if self.name == "normal" else 0.5
        found = {}
        laws = draws.columns.named("scale_", "growth_")
        shared = np.moveaxis(draws.shared(list(laws)), 2, 0)
        for name, values in zip(laws.values(), shared, strict=True):
            if name.startswith("scale_"):
                found[name.removeprefix("scale_")] = np.exp(power * values)
            elif name.startswith("growth_"):
                found[name] = values
        return {**found, **careless(draws)}

    def quantity_words(self, names: Sequence[str]) -> dict[str, str]:
        """Scatter by columns, how it grows, and correlations."""
        found = {**BIAS_WORDS, **TAIL_WORDS}
        for name in names:
            what, _, columns = name.partition("_")
            text = columns.removeprefix("log_").replace("_", ", ")
            if what == "scale":
                found[name] = f"scatter of {text}"
            elif what == "growth":
                found[name] = f"how the scatter of {text} grows with size"
            elif what == "tie":
                found[name] = f"correlation of {text}"
        return found

    def unheard(self, items: Items) -> frozenset[str]:
        """How scatter grows with size, where sizes are all about the same."""
        shape, features = self.shape(items), items.features
        starts = np.cumsum([0, *shape.groups])
        return frozenset(
            "growth_" + "_".join(shape.features[a:b])
            for a, b in pairwise(starts)
            if max(shape.size[a:b]) >= 0 and np.ptp(features[:, max(shape.size[a:b])]) < NARROW
        )

    def learned_words(self, found: Json) -> list[str]:
        """By column."""
        return _learned_words(found, self.noun)

    def law_words(self, posterior: Posterior) -> list[str]:
        """It is always learned."""
        return [f"How far {plural(self.noun)} of one object scatter was learned from the data."]

    def sections(self) -> tuple[SectionMaker, ...]:
        """What was learned of the scatter."""
        return (_learned_section,)

    def expert_bias(self, draws: Draws, items: Items) -> ExpertBias | None:
        """Offsets of the features and noise factors, if they were learned."""
        names = self.shape(items).features
        found = expert_bias(draws, draws.columns.coords.get("axis", names), self.noun)
        if found is None:
            return None
        return replace(found, places=tuple(names.index(axis) for axis in found.axes))

    def scatter(self, posterior: Posterior) -> Callable[[Floats], Scatter] | None:
        """By the scales of the draw; stored are log variances, of full covariances log scales."""
        power = 1.0 if self.name == "normal" else 0.5
        items = posterior.items
        heard = heard_features(items.features, self.origin(items))
        shape = without_silent(self.shape(items), heard)
        return normal_scatter(posterior, shape, heard, power=power)

    def distances(self, items: Items) -> tuple[Floats, int | None]:
        """The features; positions of boxes and ellipses go with their sizes."""
        sizes = self.shape(items).size
        return items.features, sizes[0] if sizes[0] >= 0 else None

    def sight(self, items: Items) -> Sight | None:
        """Of points, boxes and ellipses the centres, and the mean of sides or axes."""
        if self.columns is None:
            return super().sight(items)
        log_sizes = self.log_sizes(items)
        sizes = None if log_sizes is None else np.exp(log_sizes)
        coordinates = np.column_stack([items.x, items.y])
        return Sight(coordinates, ("x", "y"), lambda found: found, sizes)

    def apart(self, items: Items, row: int) -> Floats:
        """The distance of the centres, where items lie in a plane."""
        if self.columns is None:
            return super().apart(items, row)
        places = items.places
        return np.asarray(np.linalg.norm(places - places[row], axis=1))

    def offsets(self, posterior: Posterior, row: int) -> Offsets:
        """Of position, sizes and shape, or of each column."""
        items, row = posterior.drawn_with(row)
        given = self.shape(items), posterior.draws.columns, items.features, row
        return normal_offsets(*given, posterior.expert_bias, int(items.families[row]))


class _Boxes(NormalLikelihood):
    """Boxes by centre and sides, by corners, or by the first corner and sides."""

    alternatives = (CORNERS, CORNER_AND_SIDES, TURNED_BOX)

    def standard(self, columns: dict[str, Array], place: Place) -> dict[str, Array]:
        """Corners become centre and sides; an angle must be a multiple of 90°."""
        if "angle" in columns:
            return _upright(columns, place)
        if "left" not in columns:
            return columns
        used = {*CORNERS, *CORNER_AND_SIDES}
        rest = {name: values for name, values in columns.items() if name not in used}
        left, top = columns["left"], columns["top"]
        if "right" in columns:
            width, height = columns["right"] - left, columns["bottom"] - top
            ends = {"width": "right", "height": "bottom"}
        else:
            width, height = columns["width"], columns["height"]
            ends = {"width": "width", "height": "height"}
        for side, values in (("width", width), ("height", height)):
            bad = np.flatnonzero(values <= 0.0)
            if bad.size:
                raise InputError(
                    f"{place(ends[side], int(bad[0]))}: the {side} of the box would be "
                    f"{values[bad[0]]:g}; it must be above zero"
                )
        centre = {"x": left + width / 2.0, "y": top + height / 2.0}
        return {**centre, "width": width, "height": height, **rest}

    def outlines(self, columns: Mapping[str, Array]) -> Outlines:
        """Upright boxes."""
        parts = (np.asarray(columns[n], np.float64) for n in ("x", "y", "width", "height"))
        x, y, width, height = parts
        return Outlines(x, y, width, height, np.zeros_like(x), "box")


class _Ellipses(NormalLikelihood):
    """Ellipses by their axes and the angle of the major one, or as boxes that are turned."""

    alternatives = (TURNED_BOX,)

    def standard(self, columns: dict[str, Array], place: Place) -> dict[str, Array]:
        """A turned box stands for the ellipse in it; its angle is that of the width."""
        if "width" not in columns:
            return columns
        rest = {name: values for name, values in columns.items() if name not in TURNED_BOX}
        width, height, angle = (columns[name] for name in ("width", "height", "angle"))
        for name, values in (("width", width), ("height", height)):
            bad = np.flatnonzero(values <= 0.0)
            if bad.size:
                raise InputError(
                    f"{place(name, int(bad[0]))}: the {name} of the box is {values[bad[0]]:g}; "
                    "it must be above zero"
                )
        wide = width >= height
        return {
            "x": columns["x"],
            "y": columns["y"],
            "major": np.where(wide, width, height),
            "minor": np.where(wide, height, width),
            "angle": np.where(wide, angle, angle + 90.0),
            **rest,
        }

    def outlines(self, columns: Mapping[str, Array]) -> Outlines:
        """Turned ellipses."""
        names = ("x", "y", "major", "minor", "angle")
        x, y, major, minor, angle = (np.asarray(columns[n], np.float64) for n in names)
        return Outlines(x, y, major, minor, angle, "ellipse")


def _upright(columns: dict[str, Array], place: Place) -> dict[str, Array]:
    """Boxes whose sides are along x and y although they have an angle."""
    rest = {name: values for name, values in columns.items() if name != "angle"}
    angle, width, height = (columns[name] for name in ("angle", "width", "height"))
    turned = np.flatnonzero(angle % 90.0)
    if turned.size:
        more = f" (and {turned.size - 1} more rows)" if turned.size > 1 else ""
        raise InputError(
            f"{place('angle', int(turned[0]))}: the box is turned by {angle[turned[0]]:g}°{more}; "
            "read turned boxes with --likelihood ellipses, by their sides and angles, or leave the "
            "angles aside with --columns angle="
        )
    lying = angle % 180.0 != 0.0
    sides = {"width": np.where(lying, height, width), "height": np.where(lying, width, height)}
    return {**rest, **sides}


def columns_of(shape: Shape) -> Columns:
    """Names of what is stored with every draw.

    A cluster has its mean of each feature, how uncertain that is (``_se``) and the variances of
    its members (``var_``, one for each group). Shared are the scales, as logarithms of variances
    (of standard deviations for full covariances), and what the likelihood learns besides.
    """
    starts = np.cumsum([0, *shape.groups])
    groups = ["_".join(shape.features[a:b]) for a, b in pairwise(starts)]
    parameters = (
        *shape.features,
        *(f"{name}_se" for name in shape.features),
        *(f"var_{name}" for name in groups),
    )
    shared = [f"scale_{name}" for name in groups]
    if shape.name == "normal":
        shared += [
            f"tie_{shape.features[a]}_{shape.features[b]}"
            for a in range(len(shape.features))
            for b in range(a)
        ]
    else:
        shared += [
            f"growth_{name}"
            for name, first in zip(groups, starts[:-1], strict=True)
            if shape.size[first] >= 0
        ]
    return Columns.plain(parameters, shared)


POINTS = NormalLikelihood("points", "point")


BOXES = _Boxes("boxes", "box")


ELLIPSES = _Ellipses("ellipses", "ellipse")


DIAGONAL = NormalLikelihood("diagonal")


NORMAL = NormalLikelihood("normal")


def _learned_words(found: Json, noun: str) -> list[str]:
    """How far items of one object scatter, in a sentence."""
    parts = []
    for name, row in found.items():
        if name in CARELESS:
            continue
        if not name.startswith(GROWTH):
            words, factor = GROUPS.get(name, (name, 1.0))
            percent = " %" if factor != 1.0 else ""
            parts.append(f"{factor * row['mean']:.3g}{percent} in {words}")
    items = plural(noun)
    return [
        f"Learned from the data: {items} of one object scatter by {', '.join(parts)} (1 sd).",
        *careless_words(found, noun),
    ]


def _learned_section(contents: Contents) -> Section | None:
    """The learned standard deviations."""
    posterior = contents.posterior
    found, nouns = posterior.tolerances, plural(posterior.likelihood.noun)
    if not found:
        return None
    shown, names, grows = {}, {}, False
    for name, row in found.items():
        if name in CARELESS:
            shown[name], names[name] = row, f"careless {nouns}, {CARELESS[name]}"
            continue
        group = name.removeprefix(GROWTH)
        words, factor = GROUPS.get(group, (group, 1.0))
        if group != name:
            shown[name], names[name], grows = row, f"{words}: growth of the variance", True
        else:
            shown[name] = {key: factor * value for key, value in row.items()}
            names[name] = words if factor == 1.0 else f"{words}, %"
    caption = f"Standard deviation of the {nouns} of one object, by column."
    if grows:
        caption += (
            " Where it grows with size, it is that at the median size; a growth of 2 means that it "
            "goes in proportion to the size."
        )
    title, said = f"How far do {nouns} scatter?", posterior.likelihood.learned_words(found)
    return learned_section(title, said, estimates(shown, names), caption)

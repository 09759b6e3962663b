"""The parameters of the detection prior.

Each is declared once: its name, which is that in the draws, its axes, and what it is. Their order
in one array, their shapes, which of them belong to one image and the columns of draws follow.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cache
from typing import Annotated, Any, NamedTuple, get_type_hints

import numpy as np
from numpy.typing import NDArray

from dfcrp.compiled.abi import F8, F8x2, F8x3, frame
from dfcrp.draws import Variable


class Axes:
    """The axes of a parameter; one without axes is a single number.

    ``needs`` names an axis without which there is no such parameter.
    """

    def __init__(self, *names: str, needs: str = "") -> None:
        self.names = names
        self.needs = needs

    def shape(self, sizes: Mapping[str, int]) -> tuple[int, ...]:
        """The shape for axes of these sizes; empty where a needed axis is."""
        there = min(sizes[self.needs], 1) if self.needs else 1
        if not self.names:
            return (there,)
        return tuple(sizes[name] * there for name in self.names)


@frame
class Parameters(NamedTuple):
    """What is updated; every array is float64 and a part of ``Detection.own``."""

    #: π; with decoys these are the last class.
    class_weight: Annotated[F8, Axes("class")]
    #: θ, how much easier than elsewhere the objects of an image are.
    image_ease: Annotated[F8, Axes("image_of_objects")]
    #: How much images differ in that; 0 where they are alike.
    image_ease_sd: Annotated[F8, Axes()]
    #: Expected a_gp of a person, in falling order, but for the decoys'.
    ease: Annotated[F8, Axes("class")]
    #: a.
    notice: Annotated[F8x2, Axes("class", "person")]
    #: By how much a person's a_gp is above the ease, in all classes.
    skill: Annotated[F8, Axes("person")]
    #: Spread of the skills.
    skill_sd: Annotated[F8, Axes()]
    #: b.
    slope: Annotated[F8, Axes("person")]
    #: r.
    listing: Annotated[F8x2, Axes("class", "expert")]
    #: φ_f, expected on an image.
    false_marks: Annotated[F8, Axes("expert")]
    #: φ_fv of the looks with markings.
    false_marks_on: Annotated[F8, Axes("look")]
    #: κ, the smaller the more false marks come in clumps.
    look_shape: Annotated[F8, Axes()]
    #: q, of an expert's markings typically false.
    false_share: Annotated[F8, Axes()]
    #: c, the larger the more alike experts are in their false marks.
    false_shape: Annotated[F8, Axes()]
    #: Λ.
    expected_objects: Annotated[F8, Axes("image_of_objects")]
    #: Shape and mean of Λ's Gamma law.
    objects_law: Annotated[F8, Axes("law_of_objects")]
    #: ω.
    size_share: Annotated[F8, Axes("level")]
    #: ψ.
    false_size: Annotated[F8, Axes("level")]
    #: ρ.
    category_share: Annotated[F8, Axes("category")]
    #: τ.
    false_category: Annotated[F8, Axes("category")]
    #: θ of what persons say.
    confusion: Annotated[F8x3, Axes("category", "said", "person", needs="category")]
    #: M.
    usual_confusion: Annotated[F8x2, Axes("category", "said")]
    #: s.
    confusion_strength: Annotated[F8, Axes(needs="category")]
    #: γ.
    score_slope: Annotated[F8, Axes("expert", needs="score")]
    #: a of a list's scores.
    score_offset: Annotated[F8, Axes("expert", needs="score")]
    #: m.
    usual_slope: Annotated[F8, Axes(needs="score")]
    #: Objects seen and missed and false marks, as last filled in.
    tally: Annotated[F8, Axes("tally")]


#: Of the tally each number is a variable of its own: they need no class to be named, and a run is
#: judged by them.
TALLY = ("n_objects", "n_missed", "n_false_marks")
#: The law of the expected numbers of objects on images.
LAW = ("shape", "mean")
#: Axes along which images are apart.
OF_IMAGES = ("image_of_objects", "look")


@cache
def axes_of(declared: type) -> dict[str, Axes]:
    """The axes of every field, in order."""
    hints = get_type_hints(declared, include_extras=True)
    return {name: hints[name].__metadata__[-1] for name in declared.__annotations__}


def shapes_of(declared: type, sizes: Mapping[str, int]) -> dict[str, tuple[int, ...]]:
    """The fields in their order in one array, with their shapes."""
    return {name: axes.shape(sizes) for name, axes in axes_of(declared).items()}


def parts(
    own: NDArray[np.float64], each: Mapping[str, tuple[int, ...]]
) -> dict[str, NDArray[np.float64]]:
    """The parameters as parts of one array."""
    ends = np.cumsum([math.prod(shape) for shape in each.values()])
    found = zip(each.items(), np.split(own, ends[:-1]), strict=True)
    return {name: part.reshape(shape) for (name, shape), part in found}


def joined(each: Mapping[str, tuple[int, ...]], values: Mapping[str, Any]) -> NDArray[np.float64]:
    """One array of all parameters; one value may stand for a whole parameter."""
    return np.concatenate(
        [np.broadcast_to(values[name], shape).ravel() for name, shape in each.items()]
    ).astype(np.float64)


def of_image(
    each: Mapping[str, tuple[int, ...]], chosen: Mapping[str, NDArray[np.int64]]
) -> NDArray[np.int64]:
    """Which numbers of the one array belong to an image: the chosen ones along some axes."""
    found, end = [], 0
    for name, shape in each.items():
        size, last = math.prod(shape), axes_of(Parameters)[name].names[-1:]
        if last and last[0] in chosen and size:
            # Those of all images, experts and looks are not counted through for one image.
            rows = end + shape[-1] * np.arange(size // shape[-1])
            found.append((rows[:, np.newaxis] + chosen[last[0]]).ravel())
        else:
            found.append(np.arange(end, end + size))
        end += size
    return np.concatenate(found).astype(np.int64)


def local(name: str) -> bool:
    """Whether a parameter has a number for every image or look."""
    return any(axis in OF_IMAGES for axis in axes_of(Parameters)[name].names)


def variables(each: Mapping[str, tuple[int, ...]]) -> tuple[Variable, ...]:
    """What the draws have of them.

    A run is judged by the tally only: a class that no object needs wanders about as it likes,
    between its neighbours.
    """
    axes = axes_of(Parameters)
    shown = [name for name, shape in each.items() if math.prod(shape) and name != "tally"]
    return (
        *(Variable(name, axes[name].names, judged=False) for name in shown),
        *(Variable(name) for name in TALLY),
    )

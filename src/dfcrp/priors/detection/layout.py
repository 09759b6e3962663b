"""The detection prior laid out for the kernels, and the names of its parameters."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dfcrp.draws import Columns, Variable
from dfcrp.priors.detection.kernel import (
    CLASSES,
    Beliefs,
    Counts,
    Detection,
    DetectionTables,
    Parameters,
    with_room,
)
from dfcrp.priors.detection.settings import DetectionSettings

#: Levels into which the range of log sizes is cut.
LEVELS = 32
#: Of the prior's own parameters those that need no class to be named: a run is judged by them.
TALLY_NAMES = ("n_objects", "n_missed", "n_false_marks")


def number_of_classes(settings: DetectionSettings, n_persons: int) -> int:
    """Classes of objects at most; those that are not needed stay empty.

    Two persons cannot tell a mixture from one class, three can tell two, five three and seven
    four: the numbers of finders have as many moments as there are persons, and each class but the
    first takes two of them.
    """
    if settings.classes == "auto":
        return int(min(CLASSES, (n_persons + 1) // 2))
    return int(settings.classes)


def make_detection(
    settings: DetectionSettings,
    log_sizes: NDArray[np.float64] | None,
    families: NDArray[np.int64],
    persons: NDArray[np.int64],
) -> Detection:
    """The prior for these markings; ``persons`` says whose list each family is.

    ``log_sizes`` are the markings', or None if objects have no size.
    """
    n_persons = int(persons.max()) + 1
    classes = number_of_classes(settings, n_persons)
    low, step, away = _levels(log_sizes if settings.by_size else None)
    per_family = np.maximum(np.bincount(families, minlength=len(persons)), 1)
    beliefs = Beliefs(
        objects_shape=settings.objects_shape,
        objects_rate=settings.objects_shape / len(families),
        false_shape=settings.false_shape,
        markings=per_family.astype(np.float64),
        share_shape=settings.share_shape,
        share_rate=settings.share_shape * settings.false_share,
        class_weight=settings.class_weight,
        listing_a=settings.listing_a,
        listing_b=settings.listing_b,
        ease_mean=settings.ease_mean,
        ease_sd=settings.ease_sd,
        ease_least=settings.ease_least,
        skill_sd=settings.skill_sd,
        slope_sd=settings.slope_sd,
    )
    nothing = np.empty(0)
    return with_room(
        Detection(
            low=low,
            step=step,
            away=away,
            person=persons.astype(np.int32),
            lists=np.bincount(persons).astype(np.int32),
            first_list=np.unique(persons, return_index=True)[1].astype(np.int32),
            beliefs=beliefs,
            own=_start(beliefs, classes, n_persons),
            parameters=Parameters(*[nothing] * len(Parameters._fields)),
            tables=DetectionTables(*[nothing] * len(DetectionTables._fields)),
            counts=Counts(*[nothing] * len(Counts._fields)),
        ),
        classes,
    )


def parameter_columns(prior: Detection, experts: Sequence[str], persons: Sequence[str]) -> Columns:
    """The prior's own parameters, in order; a run is judged by the tally only.

    A class that no object needs wanders about as it likes, and which class is called which may
    change.
    """
    classes = tuple(str(g + 1) for g in range(len(prior.parameters.weight)))
    by_class = {
        "class_weight": ("class",),
        "ease": ("class",),
        "skill": ("class", "person"),
        "slope": ("person",),
        "listing": ("class", "expert"),
        "false_marks": ("expert",),
        "false_share": (),
        "expected_objects": (),
    }
    return Columns(
        shared=(
            *(Variable(name, dims, judged=False) for name, dims in by_class.items()),
            *(Variable(name) for name in TALLY_NAMES),
        ),
        coords={"class": classes, "person": tuple(persons), "expert": tuple(experts)},
    )


def _levels(
    log_sizes: NDArray[np.float64] | None,
) -> tuple[float, float, NDArray[np.float64]]:
    """Where the levels begin, how wide they are, and each one's middle less the median size."""
    if log_sizes is None or np.ptp(log_sizes) == 0.0:
        return 0.0, 1.0, np.zeros(1)
    low, high = float(log_sizes.min()), float(log_sizes.max())
    step = (high - low) / LEVELS
    middle = low + step * (np.arange(LEVELS) + 0.5)
    return low, step, np.asarray(middle - np.median(log_sizes), np.float64)


def _start(beliefs: Beliefs, classes: int, n_persons: int) -> NDArray[np.float64]:
    """Where chains begin: classes of equal weight from easy to hard, few false marks."""
    spread = np.linspace(1.0, -1.0, classes) if classes > 1 else np.zeros(1)
    ease = np.maximum(beliefs.ease_mean + beliefs.ease_sd * spread, beliefs.ease_least)
    share = beliefs.share_rate / beliefs.share_shape
    return np.concatenate(
        [
            np.full(classes, 1.0 / classes),
            ease,
            np.repeat(ease, n_persons),
            np.zeros(n_persons),
            np.full(classes * len(beliefs.markings), 0.5),
            share * beliefs.markings,
            [share],
            [float(beliefs.markings.max())],
            np.zeros(len(TALLY_NAMES)),
        ]
    )

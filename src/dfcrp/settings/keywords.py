"""The settings that ``dfcrp.fit`` takes as keywords: their names, types and sections.

The defaults are those of the sections (``dfcrp.settings.config``) alone. A type checker reads
``FitSettings``; ``help`` and ``inspect.signature`` show what ``expanded`` makes of it.
"""

import dataclasses
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypedDict, TypeVar

from dfcrp.errors import SettingsError, did_you_mean
from dfcrp.likelihoods.registry import likelihood_named
from dfcrp.settings.config import (
    ELSEWHERE,
    FROM_ITEMS,
    ImageSettings,
    RunSettings,
    SummarySettings,
)
from dfcrp.values import Json


class FitSettings(TypedDict, total=False):
    """Keywords of ``dfcrp.fit``; those that are left out come from ``config`` or are the defaults.

    A test compares them with the sections.
    """

    likelihood: str | None
    prior: str
    chains: int
    scans: int | None
    burn_in: int | None
    thin: int
    max_scans: int
    max_minutes: float | None
    radius: float | str | None
    nearest: int | None
    seed: int
    workers: int | None
    checkpoint_seconds: float
    sampler: str
    preset: str | None
    images: str
    persons: Sequence[Sequence[str]]
    expert_bias: str
    min_experts: int | str | None
    side_by_side: bool
    retire_complete: float
    retire_settled: float
    image_file: str | None
    image_y: str
    image_offset: tuple[float, float]
    image_scale: float


def default_of(keyword: str) -> Any:
    """What a keyword is if nobody says it; None where that follows from the items."""
    if keyword in FROM_ITEMS:
        return None
    section, key = ELSEWHERE.get(keyword, ("run", keyword))
    homes: Json = {
        "run": RunSettings,
        "likelihood": likelihood_named(RunSettings.likelihood).Settings,
        "summary": SummarySettings,
        "image": ImageSettings,
    }
    [field] = (one for one in dataclasses.fields(homes[section]) if one.name == key)
    return field.default


F = TypeVar("F", bound=Callable[..., Any])


def expanded(function: F) -> F:
    """Show each setting as a parameter with its default, where a function takes them all."""
    own = inspect.signature(function)
    settings = [
        inspect.Parameter(
            name, inspect.Parameter.KEYWORD_ONLY, default=default_of(name), annotation=hint
        )
        for name, hint in FitSettings.__annotations__.items()
    ]
    kept = [one for one in own.parameters.values() if one.kind is not one.VAR_KEYWORD]
    function.__signature__ = own.replace(parameters=[*kept, *settings])  # type: ignore[attr-defined]
    return function


def refuse_unknown(keywords: Mapping[str, object], function: Callable[..., object]) -> None:
    """Name the nearest keyword of a function beside one that it does not have."""
    known = inspect.signature(function).parameters
    for name in keywords:
        if name not in known:
            near = did_you_mean(name, known)
            raise SettingsError(f"{function.__name__} has no setting {name!r}{near}")

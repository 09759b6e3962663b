"""What settings may be, and from what a user wrote to what a setting holds.

Loads nothing heavy, for the command line."""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from dfcrp.errors import SettingsError, did_you_mean, shown

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

T = TypeVar("T", bound="DataclassInstance")
SAMPLERS = ("exact", "paper", "unmodified")
IMAGES = ("auto", "independent", "shared")
IMAGE_Y = ("auto", "up", "down")
#: What makes two names of images the same image; see ``dfcrp.items.image_names``.
IMAGE_NAMES = ("auto", "path", "name", "stem", "id", "size")
#: The paper's data sets, whose hyperparameters are in ``dfcrp.likelihoods.circle.hyper``.
PRESETS = ("highlands", "reduced", "simulation")


#: Numbers beyond this are typing errors, and squares of them would overflow.
LARGEST_SETTING = 1e100


def build(kind: type[T], section: str, values: Mapping[str, object], owner: str = "") -> T:
    """A section of the settings; an unknown name or a value of another type is an error.

    ``owner`` names the part that the section belongs to, for messages.
    """
    known = [item.name for item in dataclasses.fields(kind)]
    hints = typing.get_type_hints(kind)
    for name in values:
        if name not in known:
            what = f"setting of {owner}" if owner else "setting"
            raise SettingsError(unknown(what, section, name, known))
    return kind(
        **{name: coerced(f"{section}.{name}", value, hints[name]) for name, value in values.items()}
    )


def unknown(what: str, section: str, name: str, known: typing.Iterable[str]) -> str:
    """Say that there is no such name, and which may have been meant."""
    names = list(known)
    full = f"{section}.{name}" if section else name
    near = did_you_mean(name, names, cutoff=0.5) or "."
    return f"there is no {what} {full!r}{near} Known: {', '.join(names)}."


def coerced(name: str, value: object, hint: Any) -> Any:
    """Accept what the type says, a whole number where a float is asked for, lists for tuples."""
    union = typing.get_origin(hint) in (typing.Union, types.UnionType)
    allowed = typing.get_args(hint) if union else (hint,)
    for one in allowed:
        found = _as(name, value, one)
        if found is not _NO:
            return found
    raise SettingsError(f"{name} is {shown(value)}; it must be {_describe(allowed, value)}")


_NO = object()


def _as(name: str, value: Any, one: Any) -> Any:
    if one is type(None):
        return None if value is None else _NO
    if one in (str, bool):
        return value if isinstance(value, one) else _NO
    if one in (int, float):
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if not number or not abs(value) <= LARGEST_SETTING:
            return _NO
        if one is int and not float(value).is_integer():
            return _NO
        return one(value)
    if typing.get_origin(one) is tuple and isinstance(value, list | tuple):
        inner = typing.get_args(one)
        if inner[-1] is Ellipsis:
            return tuple(coerced(name, item, inner[0]) for item in value)
        if len(inner) == len(value):
            return tuple(coerced(name, item, of) for item, of in zip(value, inner, strict=True))
    return _NO


def _describe(allowed: tuple[object, ...], value: Any) -> str:
    words = " or ".join(_word(one) for one in allowed)
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if number and {int, float} & set(allowed) and not abs(value) <= LARGEST_SETTING:
        return f"{words}, and no number beyond {LARGEST_SETTING:g}"
    return words


def _word(one: object) -> str:
    words = {
        int: "a whole number",
        float: "a number",
        str: "a text",
        bool: "true or false",
        type(None): "left out",
    }
    if one in words:
        return words[one]
    inner = typing.get_args(one)
    if inner and inner[-1] is not Ellipsis:
        return f"{len(inner)} numbers"
    if inner and typing.get_origin(inner[0]) is tuple:
        return 'lists of names, as in [["A", "B"], ["C", "D"]]'
    return "a list"

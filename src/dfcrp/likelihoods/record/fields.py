"""Fields of records: their kinds, told from their values, and their values as codes."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dfcrp.errors import InputError, SettingsError, did_you_mean

#: Text with typing errors; the same of dates; measured numbers; places on a sphere; right or wrong
#: as a whole, with few values or with a value for each object.
KINDS = ("string", "date", "number", "place", "category", "identifier")
#: Dates that are told by their look: year first, or year last.
DATE = re.compile(r"(\d{4})[-/.](\d{1,2})[-/.](\d{1,2})|(\d{1,2})[-/.](\d{1,2})[-/.](\d{4})")
#: Names of the columns of a place, in lower case without anything but letters.
LATITUDE = frozenset({"lat", "latitude", "latdd", "decimallatitude", "geolat", "latwgs"})
LONGITUDE = frozenset(
    {"lon", "lng", "long", "longitude", "londd", "decimallongitude", "geolon", "geolng", "lonwgs"}
)
#: A category has at most so many values, each in at least so many records.
MOST_CATEGORIES, LEAST_OF_EACH = 100, 4
#: Kilometres from the centre of the Earth.
EARTH = 6371.0
#: Numbers are measured in steps of this at least, relative to the largest.
FINEST = 1e-12


@dataclass(frozen=True)
class Field:
    """One field as codes of its values, -1 where a value is missing."""

    name: str
    kind: str
    #: The columns it is made of: two of a place.
    columns: tuple[str, ...]
    codes: NDArray[np.int64]
    #: The distinct values, sorted.
    values: tuple[str, ...]
    #: Coordinates of each value of a measure, (values, 3), or (0, 3); in km of a place.
    places: NDArray[np.float64]
    #: The step in which a measure is written down.
    step: float = 0.0

    @property
    def dimensions(self) -> int:
        """Of a measure: 1 or 2; else 0."""
        return {"number": 1, "place": 2}.get(self.kind, 0)


@dataclass(frozen=True)
class Fields:
    """All fields of records."""

    fields: tuple[Field, ...]
    codes: NDArray[np.int64]

    @property
    def names(self) -> tuple[str, ...]:
        """Of the fields."""
        return tuple(field.name for field in self.fields)

    @property
    def kinds(self) -> tuple[str, ...]:
        """Of the fields."""
        return tuple(field.kind for field in self.fields)

    @property
    def values(self) -> tuple[tuple[str, ...], ...]:
        """The distinct values of each field, sorted."""
        return tuple(field.values for field in self.fields)


def encode_fields(columns: Mapping[str, NDArray[np.str_]], kinds: Mapping[str, str]) -> Fields:
    """The fields of records, one value per record, "" where it is missing.

    ``kinds`` says what a field is; "a+b" is a place made of two columns. What is not named is told
    by its values (``kind_of``), and latitude and longitude by their names.
    """
    texts = {name: values.tolist() for name, values in columns.items()}
    chosen = {**_told_places(texts, kinds), **kinds}
    _check_kinds(chosen, texts)
    inside = {part for name, kind in chosen.items() if kind == "place" for part in name.split("+")}
    wanted = [name for name in texts if name not in inside]
    wanted += [name for name, kind in chosen.items() if kind == "place"]
    found = tuple(_encode(name, chosen.get(name), texts) for name in wanted)
    return Fields(found, np.stack([field.codes for field in found], axis=1))


def kind_of(column: Sequence[str]) -> str:
    """A date by its look, a number by a fraction, a category by few values that are all frequent.

    Digits alone are mostly codes and are compared as text.
    """
    known = [text for text in column if text]
    if known and all(DATE.fullmatch(text) for text in known):
        return "date"
    distinct, count = np.unique(np.array(known), return_counts=True)
    few = 0 < len(distinct) <= min(MOST_CATEGORIES, len(known) // 10)
    if few and count.min() >= LEAST_OF_EACH:
        return "category"
    try:
        numbers = [float(text) for text in known]
    except ValueError:
        return "string"
    return "number" if numbers and any(number % 1.0 for number in numbers) else "string"


def plain(text: str) -> str:
    """In lower case, without accents and with single blanks: what makes no difference."""
    if text.isascii():
        return " ".join(text.lower().split())
    apart = unicodedata.normalize("NFKD", text.casefold())
    kept = "".join(letter for letter in apart if not unicodedata.combining(letter))
    return " ".join(kept.split()) or text


def digits_of_date(text: str) -> str:
    """yyyymmdd where the text is a date with separators, whichever end the year is at."""
    found = DATE.fullmatch(text)
    if not found:
        return text
    year, month, day = found.groups()[:3] if found[1] else found.groups()[:2:-1]
    return f"{year}{int(month):02d}{int(day):02d}"


def on_earth(degrees: NDArray[np.float64]) -> NDArray[np.float64]:
    """Latitude and longitude as points in space, in km from the centre."""
    latitude, longitude = np.radians(degrees.T)
    flat = np.cos(latitude)
    found = [flat * np.cos(longitude), flat * np.sin(longitude), np.sin(latitude)]
    return EARTH * np.column_stack(found)


def _told_places(texts: Mapping[str, list[str]], kinds: Mapping[str, str]) -> dict[str, str]:
    """A pair of columns whose names and values are those of latitude and longitude."""

    def named(known: frozenset[str], most: float) -> list[str]:
        letters = {name: re.sub(r"[^a-z]", "", name.lower()) for name in texts}
        return [
            name
            for name in texts
            if letters[name] in known and name not in kinds and _within(texts[name], most)
        ]

    if any(kind == "place" for kind in kinds.values()):
        return {}
    latitude, longitude = named(LATITUDE, 90.0), named(LONGITUDE, 360.0)
    alone = len(latitude) == 1 and len(longitude) == 1
    return {f"{latitude[0]}+{longitude[0]}": "place"} if alone else {}


def _within(column: Sequence[str], most: float) -> bool:
    try:
        return any(column) and all(abs(float(text)) <= most for text in column if text)
    except ValueError:
        return False


def _check_kinds(kinds: Mapping[str, str], texts: Mapping[str, list[str]]) -> None:
    for name, kind in kinds.items():
        parts = name.split("+") if kind == "place" else [name]
        for part in parts:
            if part not in texts:
                raise SettingsError(
                    f"there is no field {part!r}{did_you_mean(part, texts)}; the fields are "
                    f"{', '.join(texts)}"
                )
        if kind not in KINDS:
            raise SettingsError(f"the kind of {name!r} is {kind!r}; it must be {', '.join(KINDS)}")
        if kind in {"number", "place"}:
            for part in parts:
                _check_numbers(part, texts[part])


def _check_numbers(name: str, column: Sequence[str]) -> None:
    for row, text in enumerate(column):
        try:
            fine = np.isfinite(float(text or 0))
        except ValueError:
            fine = False
        if not fine:
            raise InputError(f"index {row}, field {name!r}: {text!r} is not a number")


def _encode(name: str, kind: str | None, texts: Mapping[str, list[str]]) -> Field:
    if kind == "place":
        return _encode_place(name, texts)
    column = texts[name]
    kind = kind or kind_of(column)
    if kind != "number":
        column = [plain(text) for text in column]
    values = tuple(sorted(set(column) - {""}))
    places, step = np.empty((0, 3)), 0.0
    if kind == "number":
        numbers = np.array([float(value) for value in values])
        places = np.column_stack([numbers, np.zeros((len(values), 2))])
        step = step_of(values)
    return Field(name, kind, (name,), _codes(column, values), values, places, step)


def _encode_place(name: str, texts: Mapping[str, list[str]]) -> Field:
    """Of a place one coordinate alone says nothing."""
    columns = tuple(name.split("+"))
    both = zip(*(texts[part] for part in columns), strict=True)
    column = [f"{one} {other}" if one and other else "" for one, other in both]
    values = tuple(sorted(set(column) - {""}))
    degrees = np.array([value.split() for value in values], dtype=np.float64).reshape(-1, 2)
    step = max(step_of([value.split()[at] for value in values]) for at in range(2))
    places = on_earth(degrees)
    return Field(
        name, "place", columns, _codes(column, values), values, places, np.radians(step) * EARTH
    )


def step_of(values: Sequence[str]) -> float:
    """The step in which numbers are written down: one of their last decimal place."""
    sizes = [abs(float(value)) for value in values]
    finest = FINEST * max([*sizes, 1e-300])
    if any("e" in value.lower() for value in values):
        apart = np.diff(np.unique(np.array(values, dtype=np.float64)))
        return max(float(apart.min(initial=np.inf)), finest) if len(apart) else finest
    decimals = max([len(value.partition(".")[2]) for value in values] or [0])
    return max(10.0**-decimals, finest)


def _codes(column: Sequence[str], values: Sequence[str]) -> NDArray[np.int64]:
    code = {value: at for at, value in enumerate(values)} | {"": -1}
    return np.fromiter(map(code.__getitem__, column), np.int64, len(column))

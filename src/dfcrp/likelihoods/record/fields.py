"""Fields of records: their kinds, told from their values, and their values as codes.

What makes no difference to what a value means should make none to the comparison of two lists, each
of which has its own habits: text, dates, numbers and codes that are written in several ways get one
spelling.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dfcrp.errors import InputError, SettingsError, did_you_mean

#: English months by their first three letters.
MONTHS = {
    **{"jan": 1, "feb": 2, "mar": 3, "apr": 4, "may": 5, "jun": 6},
    **{"jul": 7, "aug": 8, "sep": 9, "oct": 10, "nov": 11, "dec": 12},
}
#: Dates that are told by their look: year first; year last; with the name of a month; digits alone.
_TIME = r"(?:[T ]\d{1,2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?:Z|[+-]\d{2}:?\d{2})?)?"
YEAR_FIRST = re.compile(rf"(\d{{4}})[-/.](\d{{1,2}})[-/.](\d{{1,2}}){_TIME}")
YEAR_LAST = re.compile(rf"(\d{{1,2}})([-/.])(\d{{1,2}})[-/.](\d{{4}}|\d{{2}}){_TIME}")
_MONTH = r"(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.?"
DAY_MONTH = re.compile(rf"(\d{{1,2}})(?:st|nd|rd|th)?\.?[ -]?{_MONTH}[ ,-]*(\d{{4}}|\d{{2}})", re.I)
MONTH_DAY = re.compile(rf"{_MONTH} ?(\d{{1,2}})(?:st|nd|rd|th)?,? (\d{{4}})", re.I)
DIGITS = re.compile(r"(?:1[89]|20)\d\d(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])")
#: Of years in two digits, the first that is of the century before.
PIVOT = 30
#: Numbers with a currency, and with separators of thousands.
CURRENCIES = "$€£¥₹"
MONEY = re.compile(
    rf"([-+]?)(?:([{CURRENCIES}]|[A-Z]{{3}}) ?)?(\d[\d.,']*)(?: ?([{CURRENCIES}]|[A-Z]{{3}}))?"
)
GROUPED = re.compile(r"\d{1,3}(?:([,.'])\d{3})(?:\1\d{3})*")
#: A text without letters and with so many digits is a code, in which signs are decoration.
LEAST_DIGITS = 7
#: What parts several values of one field.
APART = re.compile(r"\s*[;|]\s*")
#: Text with typing errors; free text, of many words; dates with typing errors; measured numbers;
#: places on a sphere; right or wrong as a whole, with few values or with a value for each object.
KINDS = ("string", "text", "date", "number", "place", "category", "identifier")
#: Share of the known values that must look like dates, and values that are looked at first; share
#: with several values in one.
MOSTLY, FIRST_LOOK, SEVERAL = 0.95, 200, 0.05
#: Free text has so many words, or fewer if so many of the texts have codes of letters and digits;
#: and at least this share of the texts is distinct.
WORDS, WORDS_BESIDE_CODES, WITH_CODES, DISTINCT = 5, 3, 0.4, 0.5
#: Letters and digits of a code that counts.
LEAST_CODE = 4
#: Values that are parted by semicolons are free text only if they have more words than this.
SHORT_VALUE = 3
#: Names of the columns of a place, in lower case without anything but letters.
LATITUDE = frozenset({"lat", "latitude", "latdd", "decimallatitude", "geolat", "latwgs"})
LONGITUDE = frozenset(
    {"lon", "lng", "long", "longitude", "londd", "decimallongitude", "geolon", "geolng", "lonwgs"}
)
#: How far a place may be from the equator and from the meridian, in degrees.
MOST_LATITUDE, MOST_LONGITUDE = 90.0, 360.0
#: A category has at most so many values, each in at least so many records.
MOST_CATEGORIES, LEAST_OF_EACH = 100, 4
#: Kilometres from the centre of the Earth.
EARTH = 6371.0
#: Numbers are measured in steps of this at least, relative to the largest.
FINEST = 1e-12


def plain(text: str) -> str:
    """In lower case, without accents and with single blanks: what makes no difference."""
    if text.isascii():
        return " ".join(text.lower().split())
    apart = unicodedata.normalize("NFKD", text.casefold())
    kept = "".join(letter for letter in apart if not unicodedata.combining(letter))
    return " ".join(kept.split()) or text


def plain_code(text: str) -> str:
    """As ``plain``; of telephone numbers and the like the digits alone."""
    digits = re.sub(r"\D", "", text)
    bare = len(digits) >= LEAST_DIGITS and not any(letter.isalpha() for letter in text)
    return digits if bare else plain(text)


def parts_of(text: str) -> list[str]:
    """The values in a cell that may hold several, each in one spelling and in one order."""
    return sorted({plain_code(part) for part in APART.split(text)} - {""})


# Dates ----------------------------------------------------------------------------------------
def is_date(text: str) -> bool:
    """Whether a text looks like a date."""
    return any(form.fullmatch(text) for form in (YEAR_FIRST, YEAR_LAST, DAY_MONTH, MONTH_DAY))


def dates_as_digits(column: Sequence[str]) -> list[str]:
    """Every date as yyyymmdd, in whatever way it is written; what is no date as plain text.

    Whether day or month comes first, where the year comes last, is told by the numbers above 12
    among the dates with the same sign between them.
    """
    later: Counter[str] = Counter()
    for text in column:
        if found := YEAR_LAST.fullmatch(text):
            later[found[2]] += (int(found[3]) > 12) - (int(found[1]) > 12)
    month_first = {sign for sign, more in later.items() if more > 0}
    known = {text: digits_of_date(text, month_first) for text in set(column)}
    return [known[text] for text in column]


def digits_of_date(text: str, month_first: set[str] | frozenset[str] = frozenset()) -> str:
    """One date as yyyymmdd; ``month_first`` has the signs between month, day and year."""
    if found := YEAR_FIRST.fullmatch(text):
        year, month, day = found[1], int(found[2]), int(found[3])
    elif found := YEAR_LAST.fullmatch(text):
        year, day, month = found[4], int(found[1]), int(found[3])
        if found[2] in month_first:
            day, month = month, day
    elif found := DAY_MONTH.fullmatch(text):
        year, month, day = found[3], MONTHS[found[2].lower()], int(found[1])
    elif found := MONTH_DAY.fullmatch(text):
        year, month, day = found[3], MONTHS[found[1].lower()], int(found[2])
    else:
        return plain(text)
    if len(year) == 2:
        year = ("19" if int(year) >= PIVOT else "20") + year
    return f"{year}{month:02d}{day:02d}"


# Numbers --------------------------------------------------------------------------------------
def number_of(text: str) -> tuple[str, str] | None:
    """A number as Python writes it, and its currency; None if it is no number."""
    try:
        float(text)
    except ValueError:
        pass
    else:
        return text, ""
    found = MONEY.fullmatch(text.strip())
    if not found or (found[2] and found[4]):
        return None
    digits = found[3]
    if grouped := GROUPED.fullmatch(digits):
        digits = digits.replace(grouped[1], "")
    elif cut := re.fullmatch(r"([\d.,']*\d)[.,](\d+)", digits):
        whole = cut[1]
        if not whole.isdigit():
            grouped = GROUPED.fullmatch(whole)
            if not grouped:
                return None
            whole = whole.replace(grouped[1], "")
        digits = f"{whole}.{cut[2]}"
    return (found[1] + digits, found[2] or found[4] or "") if digits[-1].isdigit() else None


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
    #: Whether a value may be several, parted by semicolons.
    several: bool = False

    @property
    def dimensions(self) -> int:
        """Of a measure: 1 or 2; else 0."""
        return {"number": 1, "place": 2}.get(self.kind, 0)


@dataclass(frozen=True)
class Aside:
    """A value that is left aside, as if it were missing, since it cannot be one of its field."""

    column: str
    row: int
    value: str
    what: str


@dataclass(frozen=True)
class Fields:
    """All fields of records."""

    fields: tuple[Field, ...]
    codes: NDArray[np.int64]
    aside: tuple[Aside, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the fields, in order."""
        return tuple(field.name for field in self.fields)

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of the fields, in order."""
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
    told = [name for name in texts if name not in chosen and name not in inside]
    chosen |= {name: kind_of(texts[name]) for name in told}
    aside = _left_aside(texts, chosen)
    for one in aside:
        texts[one.column][one.row] = ""
    wanted = [name for name in texts if name not in inside]
    wanted += [name for name, kind in chosen.items() if kind == "place"]
    found = tuple(_encode(name, chosen[name], texts) for name in wanted)
    return Fields(found, np.stack([field.codes for field in found], axis=1), aside)


def kind_of(column: Sequence[str]) -> str:
    """A date by its look, a number by a fraction, a category by few values that are all frequent.

    Digits alone are mostly codes and are compared as text.
    """
    known = [text for text in column if text]
    if _are_dates(known):
        return "date"
    distinct, count = np.unique(np.array(known), return_counts=True)
    few = 0 < len(distinct) <= min(MOST_CATEGORIES, len(known) // 10)
    if few and count.min() >= LEAST_OF_EACH:
        return "category"
    numbers = [found for text in distinct.tolist() if (found := finite(text)) is not None]
    odd = np.array([finite(text) is None for text in distinct.tolist()], np.bool_)
    if not numbers or odd @ count > (1.0 - MOSTLY) * len(known):
        return "text" if is_free_text(distinct.tolist(), len(known)) else "string"
    currencies = {currency for _, currency in numbers} - {""}
    measured = len(currencies) == 1 or any(float(number) % 1.0 for number, _ in numbers)
    return "number" if measured and len(currencies) <= 1 else "string"


def finite(text: str) -> tuple[str, str] | None:
    """``number_of`` if it is a number that something may have."""
    found = number_of(text)
    return found if found is not None and np.isfinite(float(found[0])) else None


def is_free_text(distinct: Sequence[str], known: int) -> bool:
    """Whether distinct values, of so many known ones, are texts of many words or with codes."""
    if not distinct or len(distinct) < DISTINCT * known:
        return False
    words = [re.findall(r"[^\W_]+", text) for text in distinct]
    usual = float(np.median([len(one) for one in words]))
    if _several(distinct):
        parts = [part for text in distinct for part in APART.split(text)]
        long = np.median([len(part.split()) for part in parts]) > SHORT_VALUE
        return bool(long) and usual >= WORDS
    codes = [any(_is_code(word) for word in one) for one in words]
    return usual >= WORDS or (usual >= WORDS_BESIDE_CODES and float(np.mean(codes)) >= WITH_CODES)


def _is_code(word: str) -> bool:
    letters = any(map(str.isalpha, word))
    return len(word) >= LEAST_CODE and letters and any(map(str.isdigit, word))


def _are_dates(known: Sequence[str]) -> bool:
    """Nearly all look like dates; digits alone do beside others only, as they are mostly codes."""

    def share(texts: Sequence[str]) -> float:
        written = sum(map(is_date, texts))
        bare = sum(DIGITS.fullmatch(text) is not None for text in texts)
        return (written + bare) / len(texts) if written else 0.0

    # Dates may come last, or after digits, in lists one after the other.
    step = max(len(known) // FIRST_LOOK, 1)
    return bool(known) and share(known[::step]) >= MOSTLY - 0.05 and share(known) >= MOSTLY


def on_earth(degrees: NDArray[np.float64]) -> NDArray[np.float64]:
    """Latitude and longitude as points in space, in km from the centre."""
    latitude, longitude = np.radians(degrees.T)
    flat = np.cos(latitude)
    found = [flat * np.cos(longitude), flat * np.sin(longitude), np.sin(latitude)]
    return EARTH * np.column_stack(found)


def _told_places(texts: Mapping[str, list[str]], kinds: Mapping[str, str]) -> dict[str, str]:
    """A pair of columns whose names and nearly all values are those of latitude and longitude."""

    def named(known: frozenset[str], most: float) -> list[str]:
        letters = {name: re.sub(r"[^a-z]", "", name.lower()) for name in texts}
        return [
            name
            for name in texts
            if letters[name] in known and name not in kinds and _mostly(texts[name], most)
        ]

    if any(kind == "place" for kind in kinds.values()):
        return {}
    latitude, longitude = named(LATITUDE, MOST_LATITUDE), named(LONGITUDE, MOST_LONGITUDE)
    alone = len(latitude) == 1 and len(longitude) == 1
    return {f"{latitude[0]}+{longitude[0]}": "place"} if alone else {}


def _mostly(column: Sequence[str], most: float) -> bool:
    """Whether nearly all known values are numbers up to so much on either side of zero."""
    known = [text for text in column if text]
    return sum(_within(text, most) for text in known) >= max(MOSTLY * len(known), 1)


def _within(text: str, most: float) -> bool:
    try:
        return abs(float(text)) <= most
    except ValueError:
        return False


def _left_aside(texts: Mapping[str, list[str]], kinds: Mapping[str, str]) -> tuple[Aside, ...]:
    """Values of places and numbers that cannot be one: no number, or beyond the poles."""
    found = []
    for name, kind in kinds.items():
        parts = name.split("+") if kind == "place" else [name]
        ends = (MOST_LATITUDE, MOST_LONGITUDE) if kind == "place" else (None,)
        words = ("latitude", "longitude") if kind == "place" else ("number",)
        for part, most, word in zip(parts, ends, words, strict=True):
            if kind not in {"place", "number"}:
                continue
            for row, text in enumerate(texts[part]):
                fine = finite(text) is not None if most is None else _within(text, most)
                if text and not fine:
                    found.append(Aside(part, row, text, word))
    return tuple(found)


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
    """Refuse a column of which not nearly all are numbers; of others the odd one is left aside."""
    odd = [row for row, text in enumerate(column) if text and finite(text) is None]
    if len(odd) > (1.0 - MOSTLY) * sum(map(bool, column)):
        raise InputError(f"index {odd[0]}, field {name!r}: {column[odd[0]]!r} is not a number")


def _encode(name: str, kind: str, texts: Mapping[str, list[str]]) -> Field:
    if kind == "place":
        return _encode_place(name, texts)
    column = texts[name]
    several = kind == "string" and _several(column)
    column = _in_one_spelling(column, kind, several)
    values = tuple(sorted(set(column) - {""}))
    places, step = np.empty((0, 3)), 0.0
    if kind == "number":
        numbers = np.array([float(value) for value in values])
        places = np.column_stack([numbers, np.zeros((len(values), 2))])
        step = step_of(values)
    return Field(name, kind, (name,), _codes(column, values), values, places, step, several)


def _several(column: Sequence[str]) -> bool:
    """Whether cells hold several values often enough to be no accident."""
    known = [text for text in column if text]
    return sum(len(APART.split(text)) > 1 for text in known) > SEVERAL * len(known)


def _in_one_spelling(column: Sequence[str], kind: str, several: bool) -> list[str]:
    """Values as they are compared, "" where they are missing."""
    if kind == "date":
        return dates_as_digits(column)
    if kind == "number":
        found = (number_of(text) for text in column)
        return ["" if one is None else one[0] for one in found]
    if several:
        return ["; ".join(parts_of(text)) for text in column]
    spell = plain_code if kind == "string" else plain
    spelled = {text: spell(text) for text in set(column)}
    return [spelled[text] for text in column]


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

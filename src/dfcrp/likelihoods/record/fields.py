"""Fields of records: their kinds, their values as codes, and which records may be of one object."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dfcrp.errors import InputError, SettingsError, did_you_mean
from dfcrp.neighbours.neighbourhood import within_images

#: How two values of a field may differ by: typing errors, also with day and month
#: exchanged, by a small amount, or not.
KINDS = ("string", "date", "number", "category")
#: Dates that are told by their look: year first, or year last.
DATE = re.compile(r"(\d{4})[-/.](\d{1,2})[-/.](\d{1,2})|(\d{1,2})[-/.](\d{1,2})[-/.](\d{4})")
#: A block of more records than this is no evidence that two of them are alike.
LARGEST_BLOCK = 200
#: Without keys candidates agree in so many fields, if there are many.
AGREEMENTS, MANY_FIELDS = 2, 4


@dataclass(frozen=True)
class Fields:
    """Records as codes of their values, -1 where a value is missing."""

    names: tuple[str, ...]
    kinds: tuple[str, ...]
    codes: NDArray[np.int64]
    #: The distinct values of each field, sorted.
    values: tuple[tuple[str, ...], ...]
    #: Pairs of records that may be of one object, as rows (m, 2).
    candidates: NDArray[np.int64]


def encode_fields(
    columns: Mapping[str, NDArray[np.str_]],
    *,
    kinds: Mapping[str, str],
    keys: Sequence[str | Sequence[str]] | None,
    candidates: NDArray[np.int64] | None,
    images: NDArray[np.int64] | None = None,
) -> Fields:
    """The fields of records, one value per record, "" where it is missing.

    ``kinds`` says what a field is ("string", unless all its values are dates, then "date", or
    numbers with fractions, then "number"; "category": only equal or not). Records may be of
    one object if they agree in one of the ``keys``, a field or several together ("name", or
    ("name", "year")); if left out, in any two fields, or in one if there are fewer than four.
    ``candidates`` gives such pairs outright. Records of different images are none.
    """
    texts = {name: values.tolist() for name, values in columns.items()}
    chosen = {**{name: _kind(column) for name, column in texts.items()}, **kinds}
    _check_kinds(chosen, texts)
    encoded = [_encode(column) for column in texts.values()]
    matrix = np.stack([found for _, found in encoded], axis=1)
    names = tuple(texts)
    pairs = blocked_pairs(matrix, names, keys) if candidates is None else candidates
    return Fields(
        names=names,
        kinds=tuple(chosen[name] for name in names),
        codes=matrix,
        values=tuple(values for values, _ in encoded),
        candidates=within_images(pairs, images),
    )


def repeated_pairs(pairs: NDArray[np.int64], times: int) -> NDArray[np.int64]:
    """The pairs that are listed at least so many times, in either direction."""
    low, high = pairs.min(axis=1), pairs.max(axis=1)
    span = int(high.max(initial=0)) + 1
    keys, count = np.unique((low * span + high)[low < high], return_counts=True)
    return np.column_stack(np.divmod(keys[count >= times], span))


def blocked_pairs(
    codes: NDArray[np.int64],
    fields: tuple[str, ...],
    keys: Sequence[str | Sequence[str]] | None = None,
) -> NDArray[np.int64]:
    """Pairs that agree in a key; values shared by too many records make no block.

    Without keys: pairs that agree in a field, in two if there are at least four.
    """
    found = [np.empty((0, 2), dtype=np.int64)]
    for key in fields if keys is None else keys:
        names = (key,) if isinstance(key, str) else tuple(key)
        for name in names:
            if name not in fields:
                raise SettingsError(f"there is no field {name!r} to look for candidates by")
        part = codes[:, [fields.index(name) for name in names]]
        known = np.flatnonzero((part >= 0).all(axis=1))
        if known.size:
            block = np.unique(part[known], axis=0, return_inverse=True)[1].reshape(-1)
            found.append(known[_pairs_within(block)])
    needed = AGREEMENTS if keys is None and len(fields) >= MANY_FIELDS else 1
    return repeated_pairs(np.concatenate(found), needed)


def _pairs_within(block: NDArray[np.int64]) -> NDArray[np.int64]:
    """All pairs of positions with the same block number."""
    order = np.argsort(block, kind="stable")
    sizes = np.bincount(block)
    found = [np.empty((0, 2), dtype=np.int64)]
    start = 0
    for size in sizes.tolist():
        if 1 < size <= LARGEST_BLOCK:
            first, second = np.triu_indices(size, 1)
            members = order[start : start + size]
            found.append(np.column_stack([members[first], members[second]]))
        start += size
    return np.concatenate(found)


def _kind(column: list[str]) -> str:
    """Numbers with a fraction are quantities; digits alone are mostly codes."""
    known = [text for text in column if text]
    if known and all(DATE.fullmatch(text) for text in known):
        return "date"
    try:
        numbers = [float(text) for text in known]
    except ValueError:
        return "string"
    return "number" if numbers and any(number % 1.0 for number in numbers) else "string"


def digits_of_date(text: str) -> str:
    """yyyymmdd where the text is a date with separators, whichever end the year is at."""
    found = DATE.fullmatch(text)
    if not found:
        return text
    year, month, day = found.groups()[:3] if found[1] else found.groups()[:2:-1]
    return f"{year}{int(month):02d}{int(day):02d}"


def _check_kinds(kinds: Mapping[str, str], texts: Mapping[str, list[str]]) -> None:
    for name, kind in kinds.items():
        if name not in texts:
            raise SettingsError(
                f"there is no field {name!r}{did_you_mean(name, texts)}; the fields are "
                f"{', '.join(texts)}"
            )
        if kind not in KINDS:
            raise SettingsError(f"the kind of {name!r} is {kind!r}; it must be {', '.join(KINDS)}")
        if kind == "number":
            for row, text in enumerate(texts[name]):
                try:
                    float(text or 0)
                except ValueError:
                    where = f"index {row}, field {name!r}"
                    raise InputError(f"{where}: {text!r} is no number") from None


def _encode(column: list[str]) -> tuple[tuple[str, ...], NDArray[np.int64]]:
    values = tuple(sorted(set(column) - {""}))
    code = {value: at for at, value in enumerate(values)} | {"": -1}
    return values, np.fromiter(map(code.__getitem__, column), np.int64, len(column))

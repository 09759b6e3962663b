"""Records of several fields, such as names, dates and codes, from several lists."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dfcrp.errors import InputError, SettingsError
from dfcrp.items.candidates import checked_pairs
from dfcrp.items.markings import Items, encode

#: How two values of a field may differ by a slip: by typing errors, also with day and month
#: exchanged, by a small amount, or not.
KINDS = ("string", "date", "number", "category")
#: Dates that are told by their look: year first, or year last.
DATE = re.compile(r"(\d{4})[-/.](\d{1,2})[-/.](\d{1,2})|(\d{1,2})[-/.](\d{1,2})[-/.](\d{4})")
#: What stands for a missing value.
MISSING = ("", "nan", "none", "null", "na", "<na>")
#: A block of more records than this is no evidence that two of them are alike.
LARGEST_BLOCK = 200
#: Without keys candidates agree in so many fields, if there are many.
AGREEMENTS, MANY_FIELDS = 2, 4


@dataclass(frozen=True, eq=False, kw_only=True)
class Records(Items):
    """Records as codes of their values, -1 where a value is missing."""

    fields: tuple[str, ...]
    kinds: tuple[str, ...]
    codes: NDArray[np.int64]
    #: The distinct values of each field, sorted.
    values: tuple[tuple[str, ...], ...]
    #: Pairs of records that may be of one object, as indices (m, 2).
    candidates: NDArray[np.int64]
    likelihood: str = field(default="records", init=False)

    @classmethod
    def from_columns(
        cls,
        columns: Mapping[str, ArrayLike],
        families: ArrayLike | None = None,
        *,
        kinds: Mapping[str, str] | None = None,
        keys: Sequence[str | Sequence[str]] | None = None,
        candidates: ArrayLike | None = None,
        id: ArrayLike | None = None,
        truth: ArrayLike | None = None,
    ) -> Records:
        """Check and encode columns of equal length, one value per record.

        ``kinds`` says what a field is ("string", unless all its values are dates, then "date", or
        numbers with fractions, then "number"; "category": only equal or not). Records may be of
        one object if they agree in one of the ``keys``, a field or several together ("name", or
        ("name", "year")); if left out, in any two fields, or in one if there are fewer than four.
        ``candidates`` gives such pairs outright.
        """
        texts = {name: _texts(column) for name, column in columns.items()}
        count = _equal_length(texts)
        experts, codes = _sources(families, count)
        chosen = {**{name: _kind(column) for name, column in texts.items()}, **(kinds or {})}
        _check_kinds(chosen, texts)
        encoded = [_encode(column) for column in texts.values()]
        matrix = np.stack([found for _, found in encoded], axis=1)
        names = tuple(texts)
        if candidates is None:
            pairs = blocked_pairs(matrix, names, keys)
        else:
            pairs = checked_pairs(candidates, count)
        return cls(
            expert=np.array(experts)[codes],
            experts=experts,
            families=codes,
            id=np.array(range(1, count + 1) if id is None else id, dtype=np.str_),
            truth=None if truth is None else np.asarray(truth, dtype=np.int64),
            fields=names,
            kinds=tuple(chosen[name] for name in names),
            codes=matrix,
            values=tuple(values for values, _ in encoded),
            candidates=pairs,
        )

    @property
    def features(self) -> NDArray[np.float64]:
        """Codes, then the record's own number, by which a cluster knows its members."""
        return np.column_stack([self.codes, np.arange(len(self))]).astype(np.float64)

    @property
    def cells(self) -> dict[str, list[str]]:
        """The fields as text, empty where missing."""
        return {
            name: [values[code] if code >= 0 else "" for code in self.codes[:, at].tolist()]
            for at, (name, values) in enumerate(zip(self.fields, self.values, strict=True))
        }

    @property
    def digest(self) -> str:
        """SHA-256 of fields, sources and candidates."""
        hasher = hashlib.sha256(repr((self.fields, self.kinds, self.values)).encode())
        for array in (self.codes, self.families, self.candidates):
            hasher.update(array.astype("<i8").tobytes())
        hasher.update(repr(self.experts).encode())
        return hasher.hexdigest()


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


def _texts(column: Any) -> list[str]:
    """Values as text, without blanks around them; missing ones empty."""
    found = []
    for value in np.asarray(column, dtype=object).tolist():
        text = "" if value is None else str(value).strip()
        found.append("" if text.lower() in MISSING else text)
    return found


def _equal_length(texts: Mapping[str, list[str]]) -> int:
    lengths = {name: len(column) for name, column in texts.items()}
    if not lengths:
        raise InputError("records need at least one field")
    if len(set(lengths.values())) > 1:
        raise InputError(f"the fields have different lengths: {lengths}")
    return next(iter(lengths.values()))


def _sources(families: Any, count: int) -> tuple[tuple[str, ...], NDArray[np.int64]]:
    if families is None:
        return encode([f"{i + 1:0{len(str(count))}d}" for i in range(count)])
    raw = np.asarray(families)
    if raw.shape != (count,):
        raise InputError(f"families must be {count} names, one per record, not {raw.shape}")
    return encode([str(name) for name in raw.tolist()])


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
            raise SettingsError(f"there is no field {name!r}; the fields are {', '.join(texts)}")
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

"""The checks that every column of items passes, wherever it comes from, and pairs of items."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from dfcrp.errors import InputError
from dfcrp.items.coded import CodedColumn, NumberColumn
from dfcrp.values import Array, Json

Cells = Sequence[object] | Array
"""One column as it came in: text, numbers, or whatever a data frame holds."""

Place = Callable[[str, int], str]
"""Says where a cell is, given its role and position: "markings.csv, row 318, column 'D'"."""

NAMES = ("expert", "image", "id", "person")
"""Roles that are names, for items of every kind; truth is a number."""

LARGEST = 1e15
"""Beyond this, differences of coordinates lose the digits that clustering needs."""
SMALLEST = 1e-15
MISSING = ("", "nan", "none", "null", "na", "<na>")
"""What stands for a missing value in text."""
LONGEST_NAME = 200
"""Longer names are a misread column; each would also widen the whole array of names."""

_DECIMAL_COMMA = re.compile(r"[+-]?\d+,\d+")
_THOUSANDS = re.compile(r"[+-]?\d{1,3}(,\d{3})+\.\d*")


def check_columns(
    cells: Mapping[str, Cells],
    place: Place,
    *,
    positive: Collection[str] = (),
    texts: Collection[str] = (),
) -> Json:
    """Turn raw columns, keyed by role, into float arrays and lists of names, or refuse them.

    Roles in ``positive`` are numbers above zero, those in ``texts`` any text; the rest but NAMES
    are numbers. An expert for whom no person is named is a person of their own.

    Every column is looked at before the complaint is made, so that the message can name the first
    bad item of all and say how many more there are.
    """
    cells = {role: _one_dimensional(role, raw) for role, raw in cells.items()}
    _refuse_unequal(cells)
    columns: Json = {}
    bad: dict[str, NDArray[np.intp]] = {}
    for role, raw in cells.items():
        if role in texts:
            columns[role] = np.array(to_texts(raw), dtype=np.str_)
        elif role in NAMES:
            columns[role] = to_names(raw)
            if role == "person" and "expert" in cells:
                lists = to_names(cells["expert"])
                columns[role] = [
                    name or own for name, own in zip(columns[role], lists, strict=True)
                ]
            bad[role] = bad_names(columns[role])
        else:
            columns[role] = to_numbers(raw)
            fine = acceptable(columns[role], positive=role in positive, whole=role == "truth")
            bad[role] = np.flatnonzero(~fine)
    faulty = {role: rows for role, rows in bad.items() if rows.size}
    if faulty:
        role = min(faulty, key=lambda role: faulty[role][0])
        row = int(faulty[role][0])
        total = np.unique(np.concatenate(list(faulty.values()))).size
        cell = cells[role][row]
        why = why_not_name(role, cell) if role in NAMES else _why_not_number(role, cell)
        raise InputError(f"{place(role, row)}: {why}{_and_more(total)}")
    if "id" in columns:
        columns["id"] = _unique_ids(columns, place)
    return columns


def checked_words(said: Mapping[str, object], count: int, place: Place) -> Json:
    """What items say of their objects, by role; None where it is None or says nothing at all."""
    found: Json = {}
    for role, raw in said.items():
        if raw is None:
            continue
        cells = _one_dimensional(role, raw)
        if len(cells) != count:
            raise InputError(
                f"there are {count} items but {role} has {len(cells)} values; give one per item"
            )
        check = _checked_scores if role == "score" else _checked_names
        found[role] = check(role, cells, place)
    return found


def _checked_scores(role: str, cells: Cells, place: Place) -> NDArray[np.float64] | None:
    """Numbers, of which any may be missing: NaN."""
    values = to_numbers(cells)
    texts = to_texts(cells)
    bad = [row for row in np.flatnonzero(~acceptable(values)).tolist() if texts[row]]
    if bad:
        why = _why_not_number(role, cells[bad[0]])
        raise InputError(f"{place(role, bad[0])}: {why}{_or_ignore(role)}{_and_more(len(bad))}")
    values[~acceptable(values)] = np.nan
    return None if np.isnan(values).all() else values


def _checked_names(role: str, cells: Cells, place: Place) -> NDArray[np.str_] | None:
    """Names, of which any may be missing."""
    names = to_texts(cells)
    bad = [row for row in bad_names(names).tolist() if names[row]]
    if bad:
        why = why_not_name(role, cells[bad[0]])
        raise InputError(f"{place(role, bad[0])}: {why}{_or_ignore(role)}{_and_more(len(bad))}")
    return np.array(names, dtype=np.str_) if any(names) else None


def to_numbers(cells: Cells) -> NDArray[np.float64]:
    """Read a column as floats; what is not a number becomes NaN."""
    if isinstance(cells, NumberColumn):
        return cells.numbers.copy()
    if isinstance(cells, CodedColumn):
        return to_numbers(cells.words)[cells.codes]
    if isinstance(cells, np.ndarray):
        if cells.dtype.kind in "iuf":
            return np.array(cells, dtype=np.float64)
        if cells.dtype.kind not in "OUS":  # dates, truth values and the like are not numbers
            return np.full(cells.shape, np.nan)
        cells = cells.tolist()
    # Python, and numpy after it, read "1_0" as 10; in a table it is a typo.
    if not any(isinstance(cell, str) and "_" in cell for cell in cells):
        try:
            return np.array(cells, dtype=np.float64)
        except (TypeError, ValueError, OverflowError):
            pass
    return np.array([_number_or_nan(cell) for cell in cells], dtype=np.float64)


def to_names(cells: Cells) -> list[str]:
    """Read a column as names, without blanks around them; a missing one becomes empty."""
    if isinstance(cells, CodedColumn):
        return cells.each([_name(word) for word in cells.words]).tolist()
    return [_name(cell) for cell in (cells.tolist() if isinstance(cells, np.ndarray) else cells)]


def to_texts(cells: Cells) -> list[str]:
    """Read a column as text, without blanks around it; what stands for a missing value is empty."""
    found = to_names(cells)
    return ["" if text.lower() in MISSING else text for text in found]


def acceptable(
    values: NDArray[np.float64], *, positive: bool = False, whole: bool = False
) -> NDArray[np.bool_]:
    """Say which numbers may stand in a column; NaN never may."""
    with np.errstate(invalid="ignore"):
        fine: NDArray[np.bool_] = np.abs(values) <= LARGEST
        if positive:
            fine &= values >= SMALLEST
        if whole:
            fine &= values == np.round(values)
    return fine


def _number_or_nan(cell: object) -> float:
    try:
        return math.nan if isinstance(cell, str) and "_" in cell else float(cell)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return math.nan


def _name(cell: object) -> str:
    if isinstance(cell, str):
        return cell.strip()
    if isinstance(cell, bytes):
        return cell.decode("utf-8", "replace").strip()
    text = str(cell).strip()
    # How None and the missing values of floats, pandas and dates print.
    return "" if text in ("None", "nan", "<NA>", "NaT") else text


def _why_not_number(role: str, cell: object) -> str:
    text = str(cell).strip()
    if not text:
        return "no value; every item needs a number here"
    value = _number_or_nan(text)
    if math.isnan(value) and text.lstrip("+-").lower() != "nan":
        if _DECIMAL_COMMA.fullmatch(text):
            return f"{quoted(text)} is not a number; write {quoted(text.replace(',', '.'))}"
        if _THOUSANDS.fullmatch(text):
            return f"{quoted(text)} is not a number; write {quoted(text.replace(',', ''))}"
        if role == "truth":
            return (
                f"{quoted(text)} is not a number; true labels are whole numbers, one for each "
                "object: number them, or ignore the column with --columns truth= (in Python "
                "{'truth': ''})"
            )
        return f"{quoted(text)} is not a number; correct it or remove the row"
    if not math.isfinite(value):
        return f"{quoted(text)} is not finite; give a value or remove the row"
    if abs(value) > LARGEST:
        return f"{quoted(text)} is beyond {LARGEST:g}; use a larger unit or correct the value"
    if role == "truth":
        return f"{quoted(text)} is not a whole number; true labels are whole numbers"
    if value > 0:
        return f"{quoted(text)} is below {SMALLEST:g}; use a smaller unit or correct the value"
    noun = {"radius": "radii"}.get(role, f"{role}s")
    return f"{quoted(text)} is not a {role}; {noun} must be positive"


def why_not_name(role: str, cell: object) -> str:
    """What is wrong with a name of ``bad_names``, and what to do."""
    name = _name(cell)
    if not name:
        return f"no {role}; fill it in" + _or_ignore(role)
    if len(name) > LONGEST_NAME:
        return (
            f"{role} {quoted(name)} has {len(name)} characters, the most is {LONGEST_NAME}; "
            "is this the right column, and is every quote closed?"
        )
    return (
        f"{role} {quoted(name)} contains a line break or another character that cannot be "
        "printed; remove it, and see that every quote is closed"
    )


def _or_ignore(role: str) -> str:
    if role == "expert":
        return ""
    return f", or ignore the column with --columns {role}= (in Python {{'{role}': ''}})"


def _printable(name: str) -> bool:
    # Lone surrogates cannot be written out as UTF-8 again; numpy drops trailing NULs.
    return not any(ord(character) < 32 or 0xD800 <= ord(character) < 0xE000 for character in name)


def bad_names(names: list[str]) -> NDArray[np.intp]:
    """Where names are empty, too long, or cannot be printed."""
    bad = {name for name in set(names) if not 0 < len(name) <= LONGEST_NAME or not _printable(name)}
    return np.array([row for row, name in enumerate(names) if name in bad] if bad else [], np.intp)


def _one_dimensional(role: str, raw: object) -> Cells:
    """Give a column that can be indexed by position, which a pandas series cannot."""
    if isinstance(raw, CodedColumn | NumberColumn):
        return raw
    if isinstance(raw, (list, tuple)):
        if raw and isinstance(raw[0], (list, tuple, np.ndarray)):
            raise InputError(f"{role} is a table, not a column; give one value per item")
        return raw
    if isinstance(raw, np.ma.MaskedArray):
        raw = np.ma.filled(raw.astype(object), np.nan)
    array = np.asarray(raw)
    if array.ndim != 1:
        raise InputError(f"{role} has {array.ndim} dimensions; give one value per item")
    return array


def _refuse_unequal(cells: Mapping[str, Cells]) -> None:
    first, *others = cells
    for role in others:
        if len(cells[role]) != len(cells[first]):
            raise InputError(
                f"{first} has {len(cells[first])} values but {role} has {len(cells[role])}; "
                "give one of each per item"
            )
    if len(cells[first]) == 0:
        raise InputError("there are no items; give at least one")


def _unique_ids(columns: Mapping[str, list[str]], place: Place) -> list[str]:
    """The ids; with the expert, the image or both before them if each numbers its own items."""
    ids = columns["id"]
    if len(set(ids)) == len(ids):
        return ids
    for roles in (("expert",), ("image",), ("image", "expert")):
        if all(role in columns for role in roles):
            parts = zip(*(columns[role] for role in roles), ids, strict=True)
            named = [":".join(part) for part in parts]
            if len(set(named)) == len(named):
                return named
    first = {name: row for row, name in reversed(list(enumerate(ids)))}
    repeats = [row for row, name in enumerate(ids) if first[name] != row]
    raise InputError(
        f"{place('id', repeats[0])}: id {quoted(ids[repeats[0]])} was used before; "
        f"make ids unique{_or_ignore('id')}{_and_more(len(repeats))}"
    )


def _and_more(total: int) -> str:
    return "" if total == 1 else f" (and {total - 1} more bad row{'s' if total > 2 else ''})"


def quoted(text: str) -> str:
    """Quote a piece of the user's data for a message, shortened where it is long."""
    return repr(text if len(text) <= 60 else text[:57] + "...")


def checked_pairs(candidates: object, n: int) -> NDArray[np.int64]:
    """Each pair of n items once, the smaller number first; an item with itself is no pair."""
    pairs = np.asarray(candidates)
    if pairs.ndim != 2 or pairs.shape[1] != 2 or not np.issubdtype(pairs.dtype, np.integer):
        raise InputError("candidates are pairs of row numbers from 0: an integer array (m, 2)")
    if pairs.size and (pairs.min() < 0 or pairs.max() >= n):
        wrong = pairs.min() if pairs.min() < 0 else pairs.max()
        raise InputError(f"candidates name the row {wrong}; rows go from 0 to {n - 1}")
    ordered = np.sort(pairs.astype(np.int64), axis=1)
    return np.unique(ordered[ordered[:, 0] < ordered[:, 1]], axis=0)

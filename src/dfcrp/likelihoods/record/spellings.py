"""One spelling for values that are written in several ways: text, dates, numbers, codes.

What makes no difference to what a value means should make none to the comparison of two lists, each
of which has its own habits.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence

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
    """By its look."""
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

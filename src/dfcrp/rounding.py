"""How numbers are rounded, everywhere: tables, figures, the terminal, pages, sentences.

An *estimate* is a mean with the ends of its 95 % interval. The mean lies within the interval, in
full precision (``summaries.streaming.summarise``) and as it is shown:

- ends that are whole numbers (counts) are shown as such, the mean with one decimal: 41.3 (34 to
  53); where all draws agree, without: 151 (151 to 151);
- otherwise all three have the same decimals: those asked for, or as many as it takes to show two
  digits of the width of the interval, and up to three more if the ends look alike but are not.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

#: Decimals that an interval may get beyond those asked for, so that its ends differ.
MORE = 3
#: Digits of a number that is exactly known, and most digits of a mean.
USUAL_DIGITS, MOST_DIGITS = 4, 8


def number(value: float, digits: int = 0) -> str:
    """A number with thousands parted by commas; a dash if it does not exist."""
    if value is None or not math.isfinite(value):
        return "∞" if value is not None and math.isinf(value) else "–"
    return f"{value:,.{digits}f}"


def significant(value: float, digits: int = 4) -> str:
    """A number with so many significant digits, and no exponent for those one meets in tables."""
    if value is None or not math.isfinite(value):
        return number(value)
    if value == 0:
        return "0"
    places = digits - 1 - math.floor(math.log10(abs(value)))
    if not -6 <= places <= 8:
        return f"{value:.{digits - 1}e}"
    return f"{value:,.{max(places, 0)}f}"


def probability(value: float) -> str:
    """Two digits, and never 0 or 1 for what is not quite that."""
    if 0.0 < value < 0.005:
        return "< 0.01"
    if 0.995 < value < 1.0:
        return "> 0.99"
    return number(value, 2)


class Estimate(NamedTuple):
    """A mean and its interval as they are shown."""

    mean: str
    lo: str
    hi: str

    @property
    def interval(self) -> str:
        """From a to b; a dash if it does not exist."""
        return "–" if self.lo == "–" else f"{self.lo} to {self.hi}"

    @property
    def cells(self) -> tuple[str, str]:
        """The mean and the interval, for a table."""
        return self.mean, self.interval

    def __str__(self) -> str:
        return f"{self.mean} ({self.interval})"


def estimate(mean: float, lo: float, hi: float, digits: int | None = None) -> Estimate:
    """A mean and its interval; ``digits`` are decimals, at least."""
    if any(value is None or not math.isfinite(value) for value in (mean, lo, hi)):
        return Estimate(number(mean, digits or 0), "–", "–")
    mean, lo, hi = float(mean), float(lo), float(hi)
    mean = min(max(mean, lo), hi)
    if digits is None and lo.is_integer() and hi.is_integer():
        certain = lo == hi
        return Estimate(number(mean, 0 if certain else 1), number(lo), number(hi))
    places = decimals_for(mean, lo, hi) if digits is None else digits
    most = places + MORE
    while lo < hi and number(lo, places) == number(hi, places) and places < most:
        places += 1
    return Estimate(number(mean, places), number(lo, places), number(hi, places))


def estimate_of(found: Any, digits: int | None = None) -> Estimate:
    """The same of a row of summary.json."""
    return estimate(found["mean"], found["lo"], found["hi"], digits)


def decimals_for(mean: float, lo: float, hi: float) -> int:
    """Decimals that show two digits of the width of an interval."""
    width = hi - lo
    largest = max(abs(mean), abs(lo), abs(hi))
    if largest == 0.0:
        return 0
    first = math.floor(math.log10(largest))
    if width <= 0.0:
        places = USUAL_DIGITS - 1 - first
    else:
        places = min(1 - math.floor(math.log10(width)), MOST_DIGITS - 1 - first)
    return min(max(places, 0), 12)


def interval(lo: float, hi: float, digits: int | None = None) -> str:
    """From a to b; a dash if it does not exist. Without digits, whole numbers stay whole."""
    if lo is None or hi is None or not (math.isfinite(lo) and math.isfinite(hi)):
        return "–"
    return estimate(lo, lo, hi, digits).interval

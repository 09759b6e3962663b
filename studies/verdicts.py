"""Ours beside the paper's: does a figure agree within Monte Carlo error?

A figure agrees if it lies within three standard errors of the difference, plus half a unit of
the last printed digit. Of figures that are truly equal, about one in 400 would be called
different.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

STANDARD_ERRORS = 3.0


@dataclass(frozen=True)
class JudgedFigure:
    """One of our figures beside the paper's."""

    name: str
    ours: float
    #: Standard errors of ours and (as far as it can be known) of the paper's.
    se: float
    paper: float
    paper_se: float
    #: Half a unit of the last digit that the paper prints.
    rounding: float
    #: What stands in place of a verdict where there can be none.
    remark: str = ""

    @property
    def agrees(self) -> bool | None:
        """None where no standard error exists."""
        if not math.isfinite(self.se):
            return None
        allowed = STANDARD_ERRORS * math.hypot(self.se, self.paper_se) + self.rounding
        return abs(self.ours - self.paper) <= allowed

    @property
    def verdict(self) -> str:
        """In words."""
        if self.agrees is None:
            return self.remark or "not judged"
        if self.agrees:
            return "agrees"
        spread = math.hypot(self.se, self.paper_se)
        away = f" ({abs(self.ours - self.paper) / spread:.1f} s.e.)" if spread > 0 else ""
        return f"differs by {self.ours - self.paper:+.3g}{away}"

    def row(self) -> dict[str, Any]:
        """As a table row."""
        return {
            "figure": self.name,
            "ours": self.ours,
            "s.e.": self.se if math.isfinite(self.se) else None,
            "paper": self.paper,
            "verdict": self.verdict,
        }


def inside(value: float, low: float, high: float, rounding: float = 0.0) -> str:
    """Whether our value lies in the paper's interval, as printed: its ends may be rounded."""
    return "inside" if low - rounding <= value <= high + rounding else "outside"

"""What makes a consensus: a number of experts, or a share of those who looked at the image.

A share is written as in ``"60%"``. Of n experts who looked it takes the smallest whole number that
is not less, and at least two where two looked: one expert agrees with nobody.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection

from dfcrp.errors import SettingsError, shown
from dfcrp.markup import counted

#: A number of experts, or a share of them.
Least = int | str

#: What makes a consensus where nobody has said, and what the tables count.
USUAL = 5
THRESHOLDS = (4, 5, 6)
#: In place of a number of experts, where the prior says which clusters are real: those.
REAL = "real"
#: The same where the number of experts who looked differs between images.
USUAL_SHARE = "60%"

_SHARE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*%\s*")


def checked(least: Least, name: str) -> Least:
    """A number from 1 (also in text), or a share in one spelling.

    ``name`` is what a message calls it.
    """
    if isinstance(least, str) and least.strip().isdecimal():
        least = int(least)
    if isinstance(least, str):
        found = _SHARE.fullmatch(least)
        if found is None or not 0.0 < float(found[1]) <= 100.0:
            raise SettingsError(
                f"{name} is {shown(least)}; it must be a whole number from 1, or a share of the "
                'experts who looked, above 0% and up to 100%, as in "60%"'
            )
        return f"{float(found[1]):g}%"
    if least < 1:
        raise SettingsError(f"{name} is {least}; it must be at least 1")
    return least


def needed(least: Least, looked: int) -> int:
    """Experts that make a consensus where so many looked."""
    if not isinstance(least, str):
        return least
    part = float(least.rstrip("%")) / 100.0 * looked
    return max(math.ceil(part - 1e-9), min(looked, 2))


def usual(looked: Collection[int]) -> Least:
    """What makes a consensus where nobody has said, given how many looked at each image.

    Five, or a majority of fewer; a share, if not equally many looked at all images.
    """
    if len(set(looked)) > 1:
        return USUAL_SHARE
    most = max(looked)
    return USUAL if most >= USUAL else most // 2 + 1


def usual_thresholds(most: int) -> tuple[int, ...]:
    """What the tables count where nobody has said: with few experts, every possible number."""
    return THRESHOLDS if most >= USUAL else tuple(range(2, most + 1)) or (1,)


def in_words(least: Least, looked: int | tuple[int, int] | None = None) -> str:
    """In a sentence: at least 5 experts.

    ``looked`` is how many looked, on one image, or the fewest and the most of several images.
    """
    if not isinstance(least, str):
        return f"at least {counted(least, 'expert')}"
    share = least.replace("%", " %")
    if isinstance(looked, tuple):
        fewest, most = looked
        if fewest < most:
            return f"at least {share} of the {fewest} to {most} experts who looked"
        looked = None
    if looked is None:
        return f"at least {share} of the experts who looked"
    return (
        f"at least {counted(needed(least, looked), 'expert')} ({share} of the {looked} who looked)"
    )


def why_share(least: Least, looked: Collection[int], image: str = "image") -> str:
    """Why a share makes a consensus where nobody has asked for one; empty if it is no share."""
    if not isinstance(least, str) or len(set(looked)) < 2:
        return ""
    return (
        f"not equally many experts looked at every {image} or part of it ({min(looked)} to "
        f"{max(looked)})"
    )


def in_short(least: Least) -> str:
    """In a figure or a tile."""
    if least == REAL:
        return "real objects"
    if not isinstance(least, str):
        return f"≥ {least} experts"
    return f"≥ {least.replace('%', ' %')} of experts"


def or_more(least: Least) -> str:
    """In a table of counts."""
    if least == REAL:
        return "real objects"
    if not isinstance(least, str):
        return f"{least} or more experts"
    return f"{least.replace('%', ' %')} or more of experts"

"""A list that is given twice under two names, and lists on which everything stands twice."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from dfcrp.first_look.agreement import Naming
from dfcrp.first_look.finding import Finding, named, percent
from dfcrp.first_look.nearness import MOST_COMPARED, Nearness

#: Two lists are one if they have so many items, and this share of the shorter is the same.
LEAST_SAME, NEARLY_ALL = 5, 0.8
#: A list has everything twice if this share of its items is near another of its own, where the
#: usual share is below the second.
TWICE, USUALLY = 0.6, 0.15
#: Items that this takes.
LEAST_TWICE = 15


def same_lists(nearness: Nearness, experts: tuple[str, ...], words: Naming) -> Iterator[Finding]:
    """Pairs of lists of which one is a copy of the other."""
    pairs = _twins(nearness)
    if not pairs:
        return
    said = "; ".join(f"{experts[one]} and {experts[other]}" for one, other, _ in pairs[:5])
    said += "; ..." if len(pairs) > 5 else ""
    share = min(share for *_, share in pairs)
    how = "the same" if share == 1.0 else f"the same in {percent(share)} of the {words.nouns}"
    whose = sorted({f for one, other, _ in pairs for f in (one, other)})
    more = " of each pair" if len(pairs) > 1 else ""
    yield Finding(
        "same list",
        f"the lists of {said} are {how}, digit for digit or nearly so: is one list given twice, "
        "under two names? Two experts never draw the same, and a copy counts as a second opinion. "
        f"If so, leave one{more} out (--exclude-expert NAME)",
        tuple(experts[f] for f in whose),
        {"share_same": share},
    )


def _twins(nearness: Nearness) -> list[tuple[int, int, float]]:
    """Pairs of experts, and the share of the shorter list that is the same."""
    found: dict[tuple[int, int], float] = {}
    if len(nearness.lists) <= MOST_COMPARED:
        looked_up, same = nearness.pairs.shares.looked_up, nearness.pairs.same
        for one, other in np.argwhere(same >= LEAST_SAME).tolist():
            share = same[one, other] / looked_up[one, other]
            key = min(one, other), max(one, other)
            if share >= NEARLY_ALL:
                found[key] = max(share, found.get(key, 0.0))
    else:
        looked_up, same = nearness.others.shares.looked_up, nearness.others.same
        for one in np.flatnonzero((same >= LEAST_SAME) & (same >= NEARLY_ALL * looked_up)).tolist():
            other = int(nearness.others.twin[one])
            found[min(one, other), max(one, other)] = same[one] / looked_up[one]
    return [(one, other, float(share)) for (one, other), share in sorted(found.items())]


def marked_twice(nearness: Nearness, experts: tuple[str, ...], words: Naming) -> Iterator[Finding]:
    """Experts who seem to have gone over their image twice."""
    rows = nearness.sample
    close = nearness.within_list <= nearness.near[nearness.image[rows]]
    # What repeats an item exactly has a warning of its own.
    close &= nearness.within_list > 0.0
    mine, n = nearness.families[rows], len(experts)
    count = np.bincount(mine, minlength=n)
    share = np.bincount(mine, weights=close, minlength=n) / np.maximum(count, 1)
    enough = count >= LEAST_TWICE
    if np.count_nonzero(enough) < 2 or float(np.median(share[enough])) >= USUALLY:
        return
    whose = np.flatnonzero(enough & (share >= TWICE))
    if not whose.size:
        return
    names = [experts[f] for f in whose]
    some = percent(float(share[whose].min())) + (" or more" if len(names) > 1 else "")
    usual = percent(float(np.median(share[enough])))
    yield Finding(
        "marked twice",
        f"{named(names)}: {some} of their {words.nouns} lie close to another of their own, where "
        f"{usual} is usual: were these lists submitted twice, or are they of two persons? Each "
        "copy will be an object of its own. If so, remove the copies, or give the two lists two "
        "names",
        tuple(names),
        {"share_close_to_own": [float(share[f]) for f in whose]},
    )

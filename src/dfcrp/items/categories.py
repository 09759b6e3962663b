"""Categories in several spellings: joined where the user says so, and named in a warning if not."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence

from dfcrp.errors import InputError, SettingsError, did_you_mean
from dfcrp.items.checks import quoted
from dfcrp.items.columns import parse_pairs, quoted_names

SPELLINGS = "spellings"
"""Join what differs in upper and lower case, blanks, dashes and the like only."""
#: Examples in a warning.
NAMED = 3

Joins = str | Mapping[str, str] | None


def spelling(name: str) -> str:
    """What two spellings of a category have in common."""
    return re.sub(r"[\s_\-.]+", "", name).casefold()


def join_names(told: Sequence[str | None], joins: Joins) -> tuple[list[str], list[str], list[str]]:
    """One name for each category, what was joined, and which others look like one.

    ``joins`` says which are one; "" and None say nothing of an item.
    """
    counts = Counter(name for name in told if name)
    if joins and not counts:
        raise InputError(
            "there are no categories to join; name their column with --columns category=NAME"
        )
    names = _names(counts, joins)
    changed = {name: new for name, new in names.items() if name != new}
    notes = []
    if changed:
        each = ", ".join(
            f"{quoted(name)} to {quoted(new)} ({counts[name]:,})" for name, new in changed.items()
        )
        noun = "category is" if len(changed) == 1 else "categories are"
        notes.append(f"{len(changed)} {noun} joined to others: {each}")
    category = [names.get(name, name) if name else "" for name in told]
    return category, notes, _doubts(Counter(name for name in category if name))


def _names(counts: Counter[str], joins: Joins) -> dict[str, str]:
    """The name of each category after joining; of spellings the commonest."""
    if joins is None or joins == "":
        return {}
    if joins == SPELLINGS:
        best: dict[str, str] = {}
        for name in sorted(counts, key=lambda name: (-counts[name], name)):
            best.setdefault(spelling(name), name)
        return {name: best[spelling(name)] for name in counts}
    pairs = parse_pairs(joins) if isinstance(joins, Mapping) or "=" in joins else None
    if pairs is None:
        raise SettingsError(
            f"join_categories is {quoted(str(joins))}; it must be {SPELLINGS}, or pairs as in "
            "Bi-nucleated=Binucleated"
        )
    for old, new in pairs.items():
        if old not in counts:
            raise InputError(
                f"--join-categories: no category is called {quoted(old)}"
                f"{did_you_mean(old, counts)}; there are {quoted_names(sorted(counts))}"
            )
        if not new:
            raise SettingsError(f"--join-categories: nothing is given to join {quoted(old)} to")
    return pairs


def _doubts(counts: Counter[str]) -> list[str]:
    """Categories that may be one, in words."""
    groups: dict[str, list[str]] = {}
    for name in sorted(counts):
        groups.setdefault(spelling(name), []).append(name)
    several = [names for names in groups.values() if len(names) > 1]
    if not several:
        return []
    each = "; ".join(
        " and ".join(f"{quoted(name)} ({counts[name]:,})" for name in names)
        for names in several[:NAMED]
    )
    return [
        f"categories that may be one in several spellings: {each}"
        f"{'; ...' if len(several) > NAMED else ''}. They count as different ones; "
        f"--join-categories {SPELLINGS} joins them (in Python join_categories={SPELLINGS!r})"
    ]

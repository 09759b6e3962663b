"""Which decisions of several reviewers can all be, and which contradict each other.

What contradicts is named and left out, all of it, until one of its authors withdraws.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dfcrp.errors import InputError
from dfcrp.fitting.api import check_decisions
from dfcrp.items.decisions import WITHDRAW, ContradictionError, Decision, standing, with_decisions
from dfcrp.items.items import Items
from dfcrp.runs.folder import without_formula
from dfcrp.settings.config import Config

#: Characters of a name and of a note, and items, that a decision may have.
LONGEST_NAME, LONGEST_NOTE, MOST_ITEMS = 100, 2_000, 1_000
_MOST_CONFLICTS = 100


@dataclass(frozen=True)
class Conflict:
    """Decisions of which not all can be, and why."""

    reason: str
    decisions: tuple[Decision, ...]


def settle(
    items: Items, config: Config, decisions: Sequence[Decision]
) -> tuple[tuple[Decision, ...], list[Conflict]]:
    """The decisions without those in conflict, and the conflicts."""
    kept = tuple(decisions)
    found: list[Conflict] = []
    while len(found) < _MOST_CONFLICTS:
        try:
            check_decisions(with_decisions(items, kept), config)
        except ContradictionError as error:
            about = {id(one) for one in error.decisions}
            left = tuple(one for one in kept if id(one) not in about)
            if len(left) == len(kept):
                raise
            found.append(Conflict(error.reason, error.decisions))
            kept = _without_orphans(left)
        else:
            return kept, found
    raise InputError(f"there are more than {_MOST_CONFLICTS} conflicts; withdraw some decisions")


def _without_orphans(decisions: Sequence[Decision]) -> tuple[Decision, ...]:
    """Without withdrawals of what is no longer there."""
    there: set[tuple[str, frozenset[str]]] = set()
    kept = []
    for one in decisions:
        key = one.by, frozenset(one.items)
        if one.decision != WITHDRAW:
            there.add(key)
        elif key not in there:
            continue
        kept.append(one)
    return tuple(kept)


def check(items: Items, config: Config, made: Decision, before: Sequence[Decision]) -> None:
    """Refuse a decision that could not be even if it were the only one."""
    texts = {"by": (made.by, LONGEST_NAME), "note": (made.note, LONGEST_NOTE)}
    texts["value"] = made.value, LONGEST_NAME
    for name, (text, longest) in texts.items():
        if len(text) > longest:
            raise InputError(f"{name} has {len(text):,} characters; at most {longest:,} are kept")
        if not text.isprintable():
            raise InputError(f"{name} has characters that cannot be printed")
        if without_formula(text) != text:
            raise InputError(f"{name}: a spreadsheet would take {text[:20]!r} for a formula")
    if len(made.items) > MOST_ITEMS:
        raise InputError(f"a decision may name {MOST_ITEMS:,} items, not {len(made.items):,}")
    if made.decision == WITHDRAW:
        about = frozenset(made.items)
        own = (one for one in before if one.by == made.by and frozenset(one.items) == about)
        standing(items, (*own, made))
        return
    check_decisions(with_decisions(items, (made,)), config)

"""A section on what people decided: what stands, by whom, and what the draws would say without."""

from __future__ import annotations

from dfcrp.items.decisions import Decision
from dfcrp.markup import Column, Section, counted, details, join, listed, paragraph, table
from dfcrp.report.contents import Contents

#: Rows that the page shows; all are in decisions.csv.
MOST = 500


def decisions(contents: Contents) -> Section | None:
    """All decisions that stand; None if there are none."""
    items = contents.posterior.items
    if items.decided is None or not items.decided.standing:
        return None
    stands = items.decided.standing
    taken_back = len(items.decisions) - len(stands)
    words = [
        f"{counted(len(stands), 'decision')} by {_people(stands)} count as facts here: every "
        "number on this page is given that they are true."
    ]
    if taken_back > 0:
        words.append(f"{counted(taken_back, 'row')} more were taken back or take something back.")
    head = [Column(name, number=False) for name in ("decision", "items", "by", "when", "note")]
    rows = [(_what(one), " ".join(one.items), one.by, one.when, one.note) for one in stands[:MOST]]
    shown = f"The first {MOST:,} of them" if len(stands) > MOST else "All of them"
    return Section(
        "decisions",
        "What was decided",
        join([paragraph(" ".join(words)), details(shown, table(head, rows))]),
    )


def _what(one: Decision) -> str:
    name = one.decision.replace("_", " ")
    return f"{name}: {one.value}" if one.value else name


def _people(stands: tuple[Decision, ...]) -> str:
    """Who decided, with how many decisions each."""
    counts: dict[str, int] = {}
    for one in stands:
        counts[one.by] = counts.get(one.by, 0) + 1
    return listed([f"{by or 'somebody without a name'} ({n:,})" for by, n in counts.items()], 12)

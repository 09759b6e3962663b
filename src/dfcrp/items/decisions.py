"""What people decided about items: one row each, of which later ones take back earlier ones.

A decision names items and says that they are one object (*together*), that every two of them are
two (*apart*), that each marks something real (*real*) or not (*not_real*), that each is a *slip*
and counts for nothing, that each is by another *expert* (the value), or what the object that each
marks is (*category*, the value; such an object is real). A later decision of the same person about
the same items on the same question takes the place of the earlier one, and *withdraw* takes it
back. All rows are kept. Those that stand are facts: items are conditioned on them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dfcrp.errors import InputError, did_you_mean

if TYPE_CHECKING:
    from dfcrp.items.items import Items

#: The columns of a table of decisions; the first two it must have.
COLUMNS = ("decision", "items", "by", "when", "note", "value")
#: What may be decided, and the question that it answers.
QUESTIONS = {
    "together": "one object",
    "apart": "one object",
    "real": "real",
    "not_real": "real",
    "slip": "real",
    "expert": "expert",
    "category": "category",
}
WITHDRAW = "withdraw"
#: Decisions that need a value, and those that need two items or more.
VALUED, SEVERAL = ("expert", "category"), ("together", "apart")
#: Items that a message names.
NAMED = 6

Codes = NDArray[np.int64]


@dataclass(frozen=True)
class Decision:
    """One decision, as somebody made it.

    Attributes
    ----------
    decision : str
        "together", "apart", "real", "not_real", "slip", "expert", "category" or "withdraw".
    items : tuple of str
        The ids of the items that it is about.
    by, when, note, value : str
        Who decided, when (ISO 8601), anything else; the expert or the category.
    place : str
        Where it stands, for messages.
    """

    decision: str
    items: tuple[str, ...]
    by: str = ""
    when: str = ""
    note: str = ""
    value: str = ""
    place: str = ""

    @property
    def words(self) -> str:
        """Such as "row 3 (together 4 7, by ann)"."""
        named = " ".join(self.items[:NAMED]) + (" ..." if len(self.items) > NAMED else "")
        value = f" = {self.value}" if self.value else ""
        by = f", by {self.by}" if self.by else ""
        return f"{self.place} ({self.decision} {named}{value}{by})"

    @property
    def cells(self) -> list[str]:
        """As a row of a table."""
        ids = " ".join(f'"{one}"' if re.search(r"\s", one) else one for one in self.items)
        return [self.decision, ids, self.by, self.when, self.note, self.value]


@dataclass(frozen=True)
class Decided:
    """The decisions that stand, as arrays over the items."""

    #: The group that each item is one object with, −1 for none.
    group: Codes
    #: (m, 2): two objects.
    apart: Codes
    #: 1: real, −1: not, 0: undecided.
    reality: NDArray[np.int8]
    #: "" where undecided.
    category: NDArray[np.str_]
    standing: tuple[Decision, ...] = ()

    @property
    def solitary(self) -> Codes:
        """Items that are not real."""
        return np.flatnonzero(self.reality < 0)

    def take(self, rows: Codes) -> Decided:
        """Of these rows; a group of which one item is left is none."""
        group = self.group[rows]
        sizes = np.bincount(group[group >= 0], minlength=int(self.group.max(initial=-1)) + 1)
        group = np.where((group >= 0) & (sizes[group] > 1), group, -1) if len(sizes) else group
        place = np.full(len(self.group), -1, np.int64)
        place[rows] = np.arange(len(rows))
        apart = place[self.apart]
        apart = apart[(apart >= 0).all(axis=1)]
        numbers = np.unique(group[group >= 0])
        group = np.where(group >= 0, np.searchsorted(numbers, group), -1)
        return Decided(group, apart, self.reality[rows], self.category[rows], self.standing)

    def at_odds(self, pairs: Codes) -> NDArray[np.bool_]:
        """Pairs of which one is real and the other not, or that are of two categories."""
        first, second = pairs.T
        real = self.reality[first] * self.reality[second] < 0
        one, other = self.category[first], self.category[second]
        return real | ((one != "") & (other != "") & (one != other))

    def refuse_groups_not_real(self) -> None:
        """Refuse items that are not real and yet one object with others."""
        if not ((self.group >= 0) & (self.reality < 0)).any():
            return
        unreal = [one for one in self.standing if one.decision == "not_real"]
        fewest = Fewest()
        for one in self.standing:
            for other in unreal if one.decision == "together" else ():
                both = [name for name in one.items if name in other.items]
                if both:
                    fewest.offer(
                        f"{both[0]}, a false mark, is one object with others", (other, one)
                    )
        fewest.refuse()

    def key(self) -> list[str]:
        """What the model knows of them, as text."""
        parts = (self.group, np.sort(self.apart, axis=1), self.reality, self.category)
        return [" ".join(map(str, np.asarray(part).ravel().tolist())) for part in parts]


def decisions_given(table: Any, name: str = "decisions") -> tuple[Decision, ...]:
    """Decisions in whatever form a user gives them: a table, rows as dicts, or `Decision`."""
    if isinstance(table, Mapping) or hasattr(table, "columns"):
        titles = [str(title) for title in (table.keys() if isinstance(table, Mapping) else table)]
        cells = [[_text(value) for value in table[title]] for title in titles]
        named = [dict(zip(titles, row, strict=True)) for row in zip(*cells, strict=True)]
        return decisions_given(named, name)
    elif isinstance(table, Iterable) and not isinstance(table, str):
        rows: list[Any] = []
        for row in table:
            if not isinstance(row, (Decision, Mapping)):
                raise InputError(
                    f"{name} has the entry {row!r}; each must be a dict of its columns"
                )
            rows.append(row)
    else:
        raise InputError(
            f"{name} is {table!r}; it must be a table with the columns decision, items"
        )
    return tuple(
        row if isinstance(row, Decision) else decision_in(row, f"{name}, index {at}")
        for at, row in enumerate(rows)
    )


def _text(value: object) -> Any:
    if isinstance(value, (list, tuple)):
        return value
    missing = value is None or (isinstance(value, float) and math.isnan(value))
    return "" if missing else str(value)


def check_titles(titles: Sequence[str], name: str) -> None:
    """Refuse a table that is not one of decisions."""
    for title in titles:
        if title not in COLUMNS:
            near = did_you_mean(title, COLUMNS)
            raise InputError(
                f"{name}: unknown column {title!r}{near}; the columns are {', '.join(COLUMNS)}"
            )
    for title in COLUMNS[:2]:
        if title not in titles:
            raise InputError(
                f"{name}: no column {title!r}; a table of decisions has decision and items, and "
                f"perhaps {', '.join(COLUMNS[2:])}"
            )


def decision_in(row: Mapping[str, Any], place: str) -> Decision:
    """One row, checked as far as that can be done without the items."""
    check_titles(list(row), place)
    cells = {title: row.get(title) or "" for title in COLUMNS}
    told = cells.pop("items")
    ids = split_ids(told) if isinstance(told, str) else tuple(map(str, told))
    found = Decision(items=ids, place=place, **{k: str(v).strip() for k, v in cells.items()})
    kinds = (*QUESTIONS, WITHDRAW)
    if found.decision not in kinds:
        near = did_you_mean(found.decision, kinds)
        raise InputError(
            f"{place}, decision: {found.decision!r} is none{near}; it is {', '.join(kinds)}"
        )
    if not ids:
        raise InputError(f"{place}, items: names no item; write their ids, separated by spaces")
    if len(set(ids)) < len(ids):
        twice = next(one for one in ids if ids.count(one) > 1)
        raise InputError(f"{place}, items: names {twice!r} twice")
    if found.decision in SEVERAL and len(ids) < 2:
        raise InputError(f"{place}, items: {found.decision!r} needs two items or more, not one")
    if found.decision in VALUED and not found.value:
        raise InputError(f"{place}, value: {found.decision!r} needs the {found.decision}'s name")
    if found.when:
        moment(found)
    return found


def split_ids(text: str) -> tuple[str, ...]:
    """Ids separated by spaces; one that has spaces itself is in double quotes."""
    return tuple(quoted or plain for quoted, plain in re.findall(r'"([^"]+)"|(\S+)', text))


def moment(decision: Decision) -> datetime:
    """When it was made; a time without a zone is taken for UTC."""
    try:
        when = datetime.fromisoformat(decision.when)
    except ValueError:
        raise InputError(
            f"{decision.place}, when: {decision.when!r} is no date; write it as "
            "2026-11-20T14:05:00+01:00"
        ) from None
    return when if when.tzinfo is not None else when.replace(tzinfo=UTC)


class Rows:
    """The row of every id, also without the name of its file before it."""

    def __init__(self, items: Items) -> None:
        names = items.id.tolist()
        files = {source.file for source in items.sources}
        self._rows: dict[str, int] = {}
        for row, name in enumerate(names):
            file, colon, bare = name.partition(":")
            if colon and file in files:
                self._add(bare, row)
        whole = set(names)
        self._rows = {name: row for name, row in self._rows.items() if name not in whole}
        for row, name in enumerate(names):
            self._add(name, row)

    def _add(self, name: str, row: int) -> None:
        self._rows[name] = -1 if name in self._rows else row

    def of(self, decision: Decision) -> tuple[int, ...]:
        """The rows of its items."""
        return tuple(self._row(name, decision.place) for name in decision.items)

    def _row(self, name: str, place: str) -> int:
        row = self._rows.get(name)
        if row is None:
            near = did_you_mean(name, sorted(self._rows)[:10_000])
            raise InputError(f"{place}, items: no item has the id {name!r}{near}")
        if row < 0:
            raise InputError(f"{place}, items: several items have the id {name!r}")
        return row


@dataclass(frozen=True)
class Standing:
    """A decision that stands, with the rows of its items."""

    decision: Decision
    rows: tuple[int, ...]

    @property
    def kind(self) -> str:
        """What was decided."""
        return self.decision.decision


def standing(items: Items, decisions: Sequence[Decision]) -> list[Standing]:
    """What is left when later decisions have taken back earlier ones, in order.

    Rows are in the order of ``when`` if all have it, else in that of the table.
    """
    known = Rows(items)
    ordered = list(decisions)
    if all(one.when for one in ordered):
        ordered.sort(key=moment)  # stable
    found: dict[tuple[str, frozenset[int], str], Standing] = {}
    for one in ordered:
        rows = known.of(one)
        if one.decision != WITHDRAW:
            key = one.by, frozenset(rows), QUESTIONS[one.decision]
            found.pop(key, None)
            found[key] = Standing(one, rows)
            continue
        gone = [
            key
            for key, old in found.items()
            if key[:2] == (one.by, frozenset(rows)) and one.value in ("", old.kind)
        ]
        if not gone:
            raise InputError(
                f"{one.place}: there is nothing to withdraw: no earlier decision"
                f"{f' by {one.by}' if one.by else ''} is about exactly these items"
            )
        for key in gone:
            del found[key]
    return list(found.values())


class ContradictionError(InputError):
    """Decisions of which not all can be."""

    def __init__(self, message: str, reason: str, decisions: tuple[Decision, ...]) -> None:
        super().__init__(message)
        self.reason, self.decisions = reason, decisions


def refuse_together(reason: str, rows: Iterable[Decision]) -> None:
    """Refuse decisions of which not all can be."""
    found = tuple(dict.fromkeys(rows))
    words = list(dict.fromkeys(one.words for one in found))
    raise ContradictionError(
        f"these decisions contradict each other, as {reason}: {'; '.join(words)}. Withdraw or "
        "correct one of them: a row with the decision withdraw, the same items and the same by",
        reason,
        found,
    )


class DecidedLinks:
    """Which items decisions bring together, and by which of them."""

    def __init__(self, n: int, stands: Sequence[Standing]) -> None:
        self._n = n
        self._of: dict[int, list[Standing]] = {}
        for one in stands:
            if one.kind == "together":
                for row in one.rows:
                    self._of.setdefault(row, []).append(one)

    def groups(self) -> Codes:
        """The group of each item, numbered from 0; −1 for none."""
        found = np.full(self._n, -1, np.int64)
        count = 0
        for row in sorted(self._of):
            if found[row] < 0:
                found[list(self.ways(row))] = count
                count += 1
        return found

    def ways(self, row: int) -> dict[int, tuple[Decision, ...]]:
        """Every item of its group, with the fewest decisions that bring the two together."""
        found: dict[int, tuple[Decision, ...]] = {row: ()}
        queue = [row]
        for here in queue:
            for one in self._of.get(here, ()):
                for other in one.rows:
                    if other not in found:
                        found[other] = (*found[here], one.decision)
                        queue.append(other)
        return found

    @property
    def rows(self) -> list[int]:
        """The items in groups."""
        return sorted(self._of)


class Fewest:
    """The smallest contradiction that was found."""

    def __init__(self) -> None:
        self._found: tuple[str, tuple[Decision, ...]] | None = None

    def offer(self, reason: str, rows: Iterable[Decision]) -> None:
        """Note one, if it is smaller."""
        rows = tuple(dict.fromkeys(rows))
        if self._found is None or len(rows) < len(self._found[1]):
            self._found = reason, rows

    def refuse(self) -> None:
        """Refuse it, if there is any."""
        if self._found is not None:
            refuse_together(*self._found)


def with_decisions(items: Items, decisions: object) -> Items:
    """The items together with what was decided of them, besides what had been before.

    Slips are left out, experts corrected; the rest is in ``Items.decided``. What stands and cannot
    be is refused with the fewest decisions that contradict each other.
    """
    given = items.given or items
    every = (*items.decisions, *decisions_given(decisions))
    stands = standing(given, every)
    if not every:
        return items
    _check_values(given, stands)
    links, fewest = DecidedLinks(len(given), stands), Fewest()
    _contradictions(given, stands, links, fewest)
    fewest.refuse()
    corrected, kept = _corrected(given, stands)
    decided = _decided(len(given), stands, links).take(kept)
    return replace(corrected, decisions=every, given=given, decided=decided)


def _check_values(items: Items, stands: Sequence[Standing]) -> None:
    """Refuse experts and categories that nobody has heard of."""
    known = {"expert": items.experts, "category": items.categories}
    for one in stands:
        if one.kind not in known or one.decision.value in known[one.kind]:
            continue
        there, value = known[one.kind], one.decision.value
        near = did_you_mean(value, there)
        if not there:
            raise InputError(f"{one.decision.place}, value: the items have no categories")
        listed = ", ".join(there[:NAMED]) + (", ..." if len(there) > NAMED else "")
        raise InputError(
            f"{one.decision.place}, value: no {one.kind} is called {value!r}{near}; there are "
            f"{listed}"
        )


def _answers(stands: Sequence[Standing], kinds: Iterable[str]) -> dict[int, list[Decision]]:
    """By item, what was decided of it alone."""
    found: dict[int, list[Decision]] = {}
    for one in stands:
        if one.kind in kinds:
            for row in one.rows:
                found.setdefault(row, []).append(one.decision)
    return found


def _contradictions(
    items: Items, stands: Sequence[Standing], links: DecidedLinks, fewest: Fewest
) -> None:
    """What cannot be whatever the model."""
    name = items.id.tolist()
    own = _answers(stands, ("expert", "slip", "real", "not_real", "category"))
    apart = {
        (a, b): one.decision
        for one in stands
        if one.kind == "apart"
        for a in one.rows
        for b in one.rows
        if a < b
    }
    with_apart: dict[int, list[int]] = {}
    for a, b in apart:
        with_apart.setdefault(a, []).append(b)
    for row in sorted({*links.rows, *own}):
        for other, way in links.ways(row).items():
            for one in own.get(row, ()):
                for two in own.get(other, ()) if other >= row else ():
                    reason = _clash(one, two, name[row], name[other], same=row == other)
                    if reason:
                        fewest.offer(reason, (one, two, *way))
            if items.image is not None and items.image[row] != items.image[other]:
                what = f"{name[row]} and {name[other]} are on two images"
                fewest.offer(what, way)
        slips = [one for one in own.get(row, ()) if one.decision == "slip"]
        for one in slips:
            for together in links.ways(row).values():
                if together:
                    fewest.offer(f"{name[row]} is a slip", (one, together[0]))
    for a, others in with_apart.items():
        ways = links.ways(a)
        for b in others:
            if b in ways:
                what = f"{name[a]} and {name[b]} are one object and two"
                fewest.offer(what, (apart[a, b], *ways[b]))


def _clash(one: Decision, two: Decision, a: str, b: str, *, same: bool) -> str:
    """Why two decisions, about items of one object or about one item, cannot both be."""
    kinds = {one.decision, two.decision}
    of = a if same else f"{a} and {b}, one object,"
    verb = "is" if same else "are"
    if kinds in ({"real", "not_real"}, {"category", "not_real"}):
        return f"{of} {verb} real and not real"
    if same and kinds in ({"slip", "real"}, {"slip", "category"}):
        return f"{a} is a slip and real"
    if one.decision == two.decision and one.value != two.value:
        if one.decision == "category":
            return f"{of} {verb} of two categories"
        if one.decision == "expert" and same:
            return f"{a} is by two experts"
    return ""


def _corrected(items: Items, stands: Sequence[Standing]) -> tuple[Items, Codes]:
    """The items with experts corrected and without slips, and the rows that are left."""
    from dfcrp.items.items import encode
    from dfcrp.items.looks import Looked, with_looks

    names = items.expert.tolist()
    persons = None if items.person is None else items.person.tolist()
    own = {} if persons is None else dict(zip(names, persons, strict=True))
    slip = np.zeros(len(items), bool)
    for one in stands:
        if one.kind == "slip":
            slip[list(one.rows)] = True
        elif one.kind == "expert":
            for row in one.rows:
                names[row] = one.decision.value
                if persons is not None:
                    persons[row] = own.get(names[row], persons[row])
    found = items
    if names != items.expert.tolist():
        experts, families = encode(names)
        found = replace(items, expert=np.array(names), experts=experts, families=families)
        found = replace(found, person=None if persons is None else np.array(persons))
        if items.looked is not None:
            looked = Looked(items.looked, items.footprints or {})
            found = with_looks(found, looked, tell=False)
    kept = np.flatnonzero(~slip)
    if not len(kept):
        raise InputError("all items are slips by the decisions; nothing is left")
    return found.take(kept) if slip.any() else found, kept


def _decided(n: int, stands: Sequence[Standing], links: DecidedLinks) -> Decided:
    """The arrays, over all items."""
    reality, category = np.zeros(n, np.int8), np.full(n, "", dtype=object)
    apart = {
        (a, b) for one in stands if one.kind == "apart" for a in one.rows for b in one.rows if a < b
    }
    for one in stands:
        rows = list(one.rows)
        if one.kind in ("real", "category"):
            reality[rows] = 1
        elif one.kind == "not_real":
            reality[rows] = -1
        if one.kind == "category":
            category[rows] = one.decision.value
    return Decided(
        group=links.groups(),
        apart=np.array(sorted(apart), np.int64).reshape(-1, 2),
        reality=reality,
        category=category.astype(np.str_),
        standing=tuple(one.decision for one in stands),
    )


def refuse_shared_experts(items: Items) -> None:
    """Refuse decisions that make two items of one expert one object; not all priors allow that."""
    if items.decided is None or items.given is None:
        return
    given = items.given
    stands = standing(given, items.decisions)
    links, fewest = DecidedLinks(len(given), stands), Fewest()
    expert = dict(zip(range(len(given)), given.expert.tolist(), strict=True))
    why: dict[int, Decision] = {}
    for one in stands:
        if one.kind == "expert":
            for row in one.rows:
                expert[row], why[row] = one.decision.value, one.decision
    for row in links.rows:
        for other, way in links.ways(row).items():
            if other > row and expert[row] == expert[other]:
                a, b = given.id[row], given.id[other]
                corrected = [why[at] for at in (row, other) if at in why]
                what = f"{a} and {b} are by one expert, {expert[row]}"
                fewest.offer(what, (*way, *corrected))
    fewest.refuse()

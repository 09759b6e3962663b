"""Which records are one entity: read from a table of entities, or from pairs of ids.

A table of entities has a column for the record (``id``) and one for the entity (``entity`` or
``cluster``). Pairs are two columns of ids; a column of probabilities (``p``) and one that says
which pairs are one entity and which are not (``match``) may be there as well.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from dfcrp.errors import InputError, SettingsError, did_you_mean
from dfcrp.io.registry import read_file
from dfcrp.io.tables import ReadOptions
from dfcrp.items.checks import Cells, quoted, to_names, to_numbers
from dfcrp.items.columns import ABOUT, ABOUT_ELSE, ColumnChoice, parse_pairs, plain, quoted_names
from dfcrp.items.items import Items

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]

ROLES: dict[str, frozenset[str]] = {
    "id": ABOUT["id"] | ABOUT_ELSE["id"],
    "entity": frozenset({"entity", "entityid", "entityname", "cluster", "clusterid"})
    | ABOUT["truth"],
    "source": ABOUT["expert"] | ABOUT_ELSE["expert"],
    "left": frozenset({"idl", "idleft", "left", "leftid", "lid", "id1", "first", "ltableid"}),
    "right": frozenset({"idr", "idright", "right", "rightid", "rid", "id2", "second", "rtableid"}),
    "left_source": frozenset({"sourcel", "sourceleft", "source1", "expertl", "imagel"}),
    "right_source": frozenset({"sourcer", "sourceright", "source2", "expertr", "imager"}),
    "p": frozenset({"p", "probability", "matchprobability", "score", "plink", "pmatch"}),
    "match": frozenset({"match", "ismatch", "label", "same", "link", "islink", "truelink"}),
}
YES, NO = (
    frozenset({"1", "true", "yes", "y", "match"}),
    frozenset({"0", "false", "no", "n", "nonmatch"}),
)


@dataclass(frozen=True)
class Table:
    """A table of entities, or of pairs; columns by role."""

    name: str
    columns: Mapping[str, Sequence[str]]
    p: Floats | None
    match: NDArray[np.bool_] | None
    places: Sequence[str]
    titles: Mapping[str, str]

    @property
    def of_pairs(self) -> bool:
        """Whether rows are pairs."""
        return "left" in self.columns


def has_entities(source: object, choice: ColumnChoice = None) -> bool:
    """Whether a truth says of items, by their ids, which entity they are of."""
    if isinstance(source, (str, os.PathLike)):
        path = Path(source)
        if path.suffix.lower() not in (".csv", ".tsv", ".txt", ".parquet") or not path.is_file():
            return False
        try:
            raw, _ = read_file(path.name, path, ReadOptions(kind="records"))
        except InputError:  # no table: it is read as what it is, or refused, in its turn
            return False
        header: Sequence[object] = raw.header
    else:
        header = (
            list(source) if isinstance(source, Mapping) else list(getattr(source, "columns", ()))
        )
    chosen, names = parse_pairs(choice), {plain(str(title)) for title in header}
    known = all(role in chosen or names & ROLES[role] for role in ("id", "entity"))
    return known and not names & {"x", "left", "xmin", "lon", "longitude"}


def read_identities(source: Any, name: str, choice: ColumnChoice = None) -> Table:
    """A table from a file, a data frame, a dict of columns, or pairs of ids."""
    if isinstance(source, (str, os.PathLike)):
        path = Path(source)
        raw, _ = read_file(path.name, path, ReadOptions(kind="records"))
        places = [raw.where(row) for row in range(len(raw.rows))]
        return _table(path.name, list(raw.header), list(raw.columns), places, choice)
    if isinstance(source, Mapping) or hasattr(source, "columns"):
        titles = list(source) if isinstance(source, Mapping) else list(source.columns)
        cells: Sequence[Cells] = [np.asarray(source[title], dtype=object) for title in titles]
    else:
        pairs = [tuple(pair) for pair in source]
        if any(len(pair) != 2 for pair in pairs):
            raise InputError(f"{name}: give a table, or pairs of ids")
        titles = ["left", "right"]
        cells = [np.array([pair[k] for pair in pairs], dtype=object) for k in (0, 1)]
    count = len(cells[0]) if cells else 0
    places = [f"{name}, index {row}" for row in range(count)]
    return _table(name, [str(title) for title in titles], cells, places, choice)


def _table(
    name: str, header: list[str], cells: Sequence[Cells], places: list[str], choice: ColumnChoice
) -> Table:
    at = _roles(name, header, parse_pairs(choice))
    columns = {role: to_names(cells[k]) for role, k in at.items() if role not in ("p", "match")}
    for role, names in columns.items():
        if "" in names:
            row = names.index("")
            raise InputError(
                f"{places[row]}, column {quoted(header[at[role]])}: no {role}; fill it in, or "
                "remove the row"
            )
    p = None if "p" not in at else to_numbers(cells[at["p"]])
    if p is not None and not ((p >= 0.0) & (p <= 1.0)).all():
        row = int(np.flatnonzero(~((p >= 0.0) & (p <= 1.0)))[0])
        raise InputError(
            f"{places[row]}, column {quoted(header[at['p']])}: it must be a probability, from "
            "0 to 1"
        )
    match = (
        None if "match" not in at else _yes_or_no(cells[at["match"]], header[at["match"]], places)
    )
    titles = {role: header[k] for role, k in at.items()}
    return Table(name, columns, p, match, places, titles)


def _roles(name: str, header: list[str], chosen: Mapping[str, str]) -> dict[str, int]:
    """The column of each role."""
    at: dict[str, int] = {}
    for role, title in chosen.items():
        if role not in ROLES:
            raise SettingsError(
                f"columns: unknown role {quoted(role)}{did_you_mean(role, ROLES)}; of entities and "
                f"pairs the roles are {', '.join(ROLES)}"
            )
        if title and title not in header:
            raise InputError(
                f"{name}: column {quoted(title)}, wanted for {role}, is not in the header"
                f"{did_you_mean(title, header)}; the header is {quoted_names(header)}"
            )
        if title:
            at[role] = header.index(title)
    for role, names in ROLES.items():
        free = [k for k, title in enumerate(header) if k not in at.values()]
        matches = [k for k in free if plain(header[k]) in names]
        if role not in at and role not in chosen and matches:
            at[role] = matches[0]
    if "id" in at and "entity" in at:
        return {role: at[role] for role in ("id", "entity", "source") if role in at}
    pair = [k for k in range(len(header)) if k not in {at.get("p"), at.get("match")}]
    if not ("left" in at and "right" in at) and len(pair) == 2:
        at = {"left": pair[0], "right": pair[1], **{r: at[r] for r in ("p", "match") if r in at}}
    if "left" in at and "right" in at:
        return {role: k for role, k in at.items() if role not in ("id", "entity", "source")}
    raise InputError(
        f"{name}: needs a column id and a column entity, or two columns with the ids of pairs; it "
        f"has {quoted_names(header)}; name them with --truth-columns id=NAME,entity=NAME or "
        "left=NAME,right=NAME"
    )


def _yes_or_no(cells: Cells, title: str, places: Sequence[str]) -> NDArray[np.bool_]:
    names = [cell.casefold().removesuffix(".0") for cell in to_names(cells)]
    for row, cell in enumerate(names):
        if cell not in YES | NO:
            raise InputError(
                f"{places[row]}, column {quoted(title)}: {quoted(cell)} is neither yes nor no; "
                "write 1 or 0"
            )
    return np.array([cell in YES for cell in names], dtype=np.bool_)


class Records:
    """The records of a run, by all the names they may be called by; or, without a run, any."""

    def __init__(self, items: Items | None = None) -> None:
        self.open = items is None
        self.names: list[str] = [] if items is None else items.id.tolist()
        self.rows: dict[str, list[int]] = {}
        self.experts = None if items is None else items.expert.tolist()
        before = (
            frozenset()
            if items is None
            else frozenset(
                {*items.experts, *items.images, *(source.file for source in items.sources)}
            )
        )
        for row, name in enumerate(self.names):
            for known in _called(before, name):
                self.rows.setdefault(known, []).append(row)

    def __len__(self) -> int:
        return len(self.names)

    def find(self, table: Table, column: str, row: int, source: str | None) -> int:
        """The number of the record that a cell names."""
        name = table.columns[column][row]
        if self.open:
            key = name if source is None else f"{source}:{name}"
            if key not in self.rows:
                self.rows[key] = [len(self.names)]
                self.names.append(key)
            return self.rows[key][0]
        found = self.rows.get(name, [])
        if source is not None:
            found = [k for k in found if self._is_of(k, source)]
        if len(found) == 1:
            return found[0]
        where = f"{table.places[row]}, column {quoted(table.titles[column])}"
        if not found:
            near = did_you_mean(name, sorted(self.rows)[:10_000])
            of = "" if source is None else f" of {quoted(source)}"
            raise InputError(f"{where}: no record{of} in the run has the id {quoted(name)}{near}")
        raise InputError(
            f"{where}: {len(found)} records have the id {quoted(name)}; write the file's or the "
            f"expert's name before it, as in {self.names[found[0]]}, or add a column source"
        )

    def _is_of(self, row: int, source: str) -> bool:
        assert self.experts is not None
        return source in (self.experts[row], self.names[row].rpartition(":")[0])

    @property
    def two_lists(self) -> tuple[str, str] | None:
        """The experts of a run of two lists, in input order, if ids alone are ambiguous."""
        if self.open or self.experts is None:
            return None
        experts = list(dict.fromkeys(self.experts))
        ambiguous = any(len(rows) > 1 for rows in self.rows.values())
        return (experts[0], experts[1]) if len(experts) == 2 and ambiguous else None


def _called(before: frozenset[str], name: str) -> list[str]:
    """An id, and the same without what may stand before it: file, expert, or image."""
    known = [name]
    for one in known:  # grows while it is gone through
        colons = [k for k, letter in enumerate(one) if letter == ":"]
        known += [one[k + 1 :] for k in colons if one[:k] in before and one[k + 1 :] not in known]
    return known


@dataclass(frozen=True)
class Identities:
    """A table in numbers of records."""

    #: Of a table of entities: the record and the entity of each row.
    record: Whole | None
    entity: Whole | None
    #: Of pairs, (m, 2).
    pairs: Whole | None
    p: Floats | None
    match: NDArray[np.bool_] | None
    #: How the ids of pairs were understood, in words.
    words: str = ""


def in_numbers(table: Table, records: Records, *, two_lists: bool = False) -> Identities:
    """Look up every id."""
    sources = table.columns.get("source")
    count = len(table.places)
    if not table.of_pairs:
        rows = [
            records.find(table, "id", row, None if sources is None else sources[row])
            for row in range(count)
        ]
        record = np.array(rows, np.int64)
        _refuse_twice(table, record, records)
        _, entity = np.unique(np.array(table.columns["entity"], dtype=np.str_), return_inverse=True)
        return Identities(record, entity.astype(np.int64), None, None, None)
    words, sides = _sides(table, records, two_lists)
    pairs = np.array(
        [
            [records.find(table, side, row, source[row]) for row in range(count)]
            for side, source in zip(("left", "right"), sides, strict=True)
        ],
        np.int64,
    ).T.reshape(-1, 2)
    same = np.flatnonzero(pairs[:, 0] == pairs[:, 1])
    if same.size:
        raise InputError(
            f"{table.places[same[0]]}: a pair of a record with itself; remove the row"
            + (", or say that the columns are of two lists (--two-lists)" if records.open else "")
        )
    return Identities(None, None, np.sort(pairs, axis=1), table.p, table.match, words)


def _refuse_twice(table: Table, record: Whole, records: Records) -> None:
    first: dict[int, int] = {}
    for row, one in enumerate(record.tolist()):
        if one in first:
            raise InputError(
                f"{table.places[row]}: the record {quoted(records.names[one])} is there "
                "already, in "
                f"{table.places[first[one]]}; give each record one entity"
            )
        first[one] = row


def _sides(
    table: Table, records: Records, two_lists: bool
) -> tuple[str, list[Sequence[str | None]]]:
    """The source of the left and of the right id of every pair, as far as it is known."""
    count = len(table.places)
    given = [table.columns.get(f"{side}_source") for side in ("left", "right")]
    if given[0] is not None and given[1] is not None:
        return "", [given[0], given[1]]
    if records.open:
        return "", [["1"] * count, ["2"] * count] if two_lists else [[None] * count] * 2
    lists = records.two_lists
    ambiguous = any(
        len(records.rows.get(name, [])) > 1
        for side in ("left", "right")
        for name in table.columns[side]
    )
    if lists is None or not ambiguous:
        return "", [[None] * count] * 2
    for first, second in (lists, lists[::-1]):
        if all(
            any(records._is_of(k, source) for k in records.rows.get(name, ()))
            for side, source in (("left", first), ("right", second))
            for name in table.columns[side]
        ):
            words = (
                f"ids in column {table.titles['left']} are of {first}, in {table.titles['right']} "
                f"of {second}"
            )
            return words, [[first] * count, [second] * count]
    return "", [[lists[0]] * count, [lists[1]] * count]


def closure(pairs: Whole, n: int) -> Whole:
    """Labels of the records that pairs connect."""
    graph = sparse.coo_array((np.ones(len(pairs)), (pairs[:, 0], pairs[:, 1])), shape=(n, n))
    return np.asarray(connected_components(graph, directed=False)[1], np.int64)

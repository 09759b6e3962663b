"""Which column of a table plays which role, by its name or by the user's word."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence

from dfcrp.errors import InputError, SettingsError
from dfcrp.items.checks import shown

ColumnChoice = Mapping[str, str | None] | str | None
"""Role to column name, as a dict or as "x=LON,y=LAT"; an empty name leaves a role unfilled."""

_UNITS = ("", "px", "pix", "pixel", "pixels", "m", "km")


def _with_units(*names: str) -> frozenset[str]:
    return frozenset(name + unit for name in names for unit in _UNITS)


def _axis(axis: str) -> frozenset[str]:
    words = ("center", "centre", "coord", "coordinate", "pos", "position")
    pairs = [pair for word in words for pair in (axis + word, word + axis)]
    return _with_units(axis, axis + "c", "c" + axis, *pairs)


SPELLINGS: dict[str, frozenset[str]] = {
    "x": _axis("x"),
    "y": _axis("y"),
    "diameter": _with_units("diameter", "diam", "dia", "d", "craterdiameter")
    | {"diamcircimg", "diamcircleimage"},  # of Robbins's catalogues
    "radius": _with_units("radius", "rad", "r", "craterradius"),
    "expert": frozenset(
        base + ending
        for base in ("expert", "observer", "user", "annotator", "rater", "labeler", "labeller")
        for ending in ("", "name")
    )
    | {"analyst", "volunteer", "expertid", "observerid", "annotatorid", "raterid"},
    "image": frozenset(
        base + ending
        for base in ("image", "img", "subject")
        for ending in ("", "s", "id", "ids", "name")
    )
    | {"imagefile", "picture", "photo", "tile", "scene"},
    "id": frozenset({"id", "markid", "markingid", "marking", "craterid", "objectid"}),
    "person": frozenset({"person", "personname", "personid"}),
    "truth": frozenset({"truth", "truelabel", "truelabels", "truecluster"}),
}
"""Names that are recognised, as `plain` leaves them."""

GEOGRAPHIC: dict[str, frozenset[str]] = {
    "x": frozenset({"lon", "long", "longitude", "loncircimg", "longitudecircleimage"}),
    "y": frozenset({"lat", "latitude", "latcircimg", "latitudecircleimage"}),
}
"""Names of coordinates in degrees, for tables in which no column is called x or y."""

_BRACKETED_UNIT = re.compile(r"\s*[(\[][^)\]]*[)\]]\s*$")
_FILLING = re.compile(r"[\s_.\-]+")


def plain(name: str) -> str:
    """Reduce a column name to what matters: "X_Centre (px)" and "xcentre" are the same."""
    return _FILLING.sub("", _BRACKETED_UNIT.sub("", name)).casefold()


def unit_of(name: str) -> str:
    """Give the unit that a column's name ends in, "m", "km" or "px", or nothing."""
    bracketed = _BRACKETED_UNIT.search(name)
    ending = bracketed[0].strip(" ()[]").casefold() if bracketed else _FILLING.split(name)[-1]
    ending = {"pix": "px", "pixel": "px", "pixels": "px"}.get(ending.casefold(), ending.casefold())
    return ending if ending in ("m", "km", "px") else ""


def units_by_name(header: Sequence[str], found: Mapping[str, int]) -> str:
    """Tell the units of a table from the names of its columns; pixels where they do not tell."""
    if all(plain(header[found[role]]) in GEOGRAPHIC[role] for role in GEOGRAPHIC):
        return "deg"
    size = "diameter" if "diameter" in found else "radius"
    named = {unit_of(header[found[role]]) for role in ("x", "y", size)}
    return named.pop() if len(named) == 1 and "" not in named else "px"


def parse_pairs(choice: ColumnChoice) -> dict[str, str]:
    """Read the user's word on columns, from a dict or from "x=LON,y=LAT", whatever the roles."""
    if choice is None:
        return {}
    if not isinstance(choice, str):
        return {str(role): str(name or "") for role, name in choice.items()}
    parsed: dict[str, str] = {}
    for part in choice.split(","):
        if not part.strip():
            continue
        role, equals, name = (piece.strip() for piece in part.partition("="))
        if not equals:
            raise SettingsError(f"columns: {shown(part)} is not of the form role=NAME")
        if role in parsed:
            raise SettingsError(f"columns: {role} is given twice")
        parsed[role] = name
    return parsed


def parse_choice(choice: ColumnChoice) -> dict[str, str]:
    """The same, for the columns of circles."""
    parsed = parse_pairs(choice)
    for role in parsed:
        if role not in SPELLINGS:
            raise SettingsError(
                f"columns: unknown role {shown(role)}{did_you_mean(role, SPELLINGS)}; "
                f"the roles are {', '.join(SPELLINGS)}"
            )
    return parsed


def recognise(header: Sequence[str], choice: ColumnChoice, where: str) -> dict[str, int]:
    """Map each role that the table fills to the position of its column.

    A column called diameter goes before one called radius; the user's word goes before both.
    """
    chosen = parse_choice(choice)
    found = {role: _position(header, role, name, where) for role, name in chosen.items() if name}
    _refuse_shared(found, header, where)
    size_chosen = "diameter" in found or "radius" in found

    def fill(role: str, spellings: frozenset[str]) -> None:
        matches = [
            position
            for position, name in enumerate(header)
            if plain(name) in spellings and position not in found.values()
        ]
        if len(matches) > 1:
            names = ", ".join(shown(header[position]) for position in matches)
            raise InputError(
                f"{where}: the columns {names} could all be {role}; " + _say_which(role)
            )
        if matches:
            found[role] = matches[0]

    for role, spellings in SPELLINGS.items():
        if role in chosen or (role in ("diameter", "radius") and size_chosen):
            continue
        if role == "radius" and "diameter" in found:
            continue
        fill(role, spellings)
    if all(role in chosen for role in GEOGRAPHIC if role in found):
        for role in GEOGRAPHIC.keys() - found.keys() - chosen.keys():
            fill(role, GEOGRAPHIC[role])
    _refuse_missing(found, header, where)
    return found


def did_you_mean(name: str, known: Sequence[str] | Mapping[str, object]) -> str:
    """Give "; did you mean 'x'?" for the nearest known name, or nothing."""
    folded = {candidate.casefold(): candidate for candidate in known}
    nearest = difflib.get_close_matches(name.casefold(), folded, n=1)
    return f"; did you mean {shown(folded[nearest[0]])}?" if nearest else ""


def listed(names: Sequence[str]) -> str:
    """List names for a message, the first twenty of them."""
    return ", ".join(shown(name) for name in names[:20]) + (", ..." if len(names) > 20 else "")


def _say_which(role: str) -> str:
    return f"say which with --columns {role}=NAME (in Python columns={{'{role}': 'NAME'}})"


def _position(header: Sequence[str], role: str, name: str, where: str) -> int:
    same = [position for position, known in enumerate(header) if known == name]
    same = same or [
        position for position, known in enumerate(header) if known.casefold() == name.casefold()
    ]
    if len(same) > 1:
        raise InputError(
            f"{where}: column {shown(name)}, wanted for {role}, is there {len(same)} times; "
            "rename the others"
        )
    if not same:
        raise InputError(
            f"{where}: column {shown(name)}, wanted for {role}, is not in the header"
            f"{did_you_mean(name, header)}; the header is {listed(header)}"
        )
    return same[0]


def _refuse_shared(found: Mapping[str, int], header: Sequence[str], where: str) -> None:
    if "diameter" in found and "radius" in found:
        raise SettingsError("columns: give either diameter or radius, not both")
    roles: dict[int, str] = {}
    for role, position in found.items():
        if position in roles:
            raise SettingsError(
                f"{where}: column {shown(header[position])} is wanted "
                f"for both {roles[position]} and {role}; give one column to each"
            )
        roles[position] = role


def _refuse_missing(found: Mapping[str, int], header: Sequence[str], where: str) -> None:
    missing = [role for role in ("x", "y") if role not in found]
    if "diameter" not in found and "radius" not in found:
        missing.append("diameter")
    if not missing:
        return
    role = missing[0]
    wanted = ", ".join("diameter (or radius)" if name == "diameter" else name for name in missing)
    raise InputError(
        f"{where}: no column for {wanted}; the header is {listed(header)}"
        f"{_nearest_column(role, header, found)}; {_say_which(role)}{_numbers_hint(header)}"
    )


def _nearest_column(role: str, header: Sequence[str], found: Mapping[str, int]) -> str:
    free = {
        plain(name): name
        for position, name in enumerate(header)
        if len(plain(name)) > 2 and position not in found.values()
    }
    for spelling in sorted(SPELLINGS[role], key=len, reverse=True):
        near = difflib.get_close_matches(spelling, free, n=1, cutoff=0.8)
        if near:
            return f"; is {role} {shown(free[near[0]])}?"
    return ""


def _numbers_hint(header: Sequence[str]) -> str:
    if not any(re.fullmatch(r"[+-]?\d*\.?\d+(e[+-]?\d+)?", name, re.IGNORECASE) for name in header):
        return ""
    return (
        ". The header holds numbers; is it missing? "
        "(A header that begins with '#' is taken for a comment)"
    )

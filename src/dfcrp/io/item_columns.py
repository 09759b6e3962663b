"""Which column of a table of items plays which role: whose list, which image, which number."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dfcrp.errors import InputError, SettingsError
from dfcrp.io.columns import SPELLINGS as OF_CIRCLES
from dfcrp.io.columns import did_you_mean, listed, plain
from dfcrp.likelihoods.normal.shapes import SHAPES

#: Names that are recognised, as ``plain`` leaves them.
SPELLINGS: dict[str, frozenset[str]] = {
    "expert": OF_CIRCLES["expert"] | {"source", "detector", "list", "file", "model"},
    "image": OF_CIRCLES["image"],
    "id": OF_CIRCLES["id"] | {"recid", "record", "recordid"},
    "x": OF_CIRCLES["x"],
    "y": OF_CIRCLES["y"],
    "width": frozenset({"width", "w", "boxwidth", "bboxwidth"}),
    "height": frozenset({"height", "h", "boxheight", "bboxheight"}),
    "major": frozenset({"major", "majoraxis"}),
    "minor": frozenset({"minor", "minoraxis"}),
    "angle": frozenset({"angle", "orientation", "rotation"}),
    "left": frozenset({"left", "xmin", "x1", "x0"}),
    "top": frozenset({"top", "ymin", "y1", "y0"}),
    "right": frozenset({"right", "xmax", "x2"}),
    "bottom": frozenset({"bottom", "ymax", "y2"}),
}
#: The other way to give a box.
CORNERS = ("left", "top", "right", "bottom")
_ABOUT = ("expert", "image", "id")


def roles_of(likelihood: str) -> tuple[str, ...]:
    """The roles that columns may play; of plain numbers and of records only those about a row."""
    if likelihood not in SHAPES:
        return ("expert", "id")
    corners = CORNERS if likelihood == "boxes" else ()
    return (*_ABOUT, *SHAPES[likelihood].columns, *corners)


def recognise_items(
    header: Sequence[str], likelihood: str, choice: Mapping[str, str], where: str
) -> dict[str, str]:
    """The name of the column that plays each role, as far as there is one.

    What the user chose goes before what the names tell.
    """
    roles = roles_of(likelihood)
    found: dict[str, str] = {}
    for role, name in choice.items():
        if role not in roles:
            raise SettingsError(
                f"columns: unknown role {role!r}{did_you_mean(role, roles)}; for {likelihood} the "
                f"roles are {', '.join(roles)}"
            )
        if name and name not in header:
            raise InputError(
                f"{where}: column {name!r}, wanted for {role}, is not in the header"
                f"{did_you_mean(name, header)}; the header is {listed(header)}"
            )
        found[role] = name
    for role in roles:
        if role not in found:
            free = [name for name in header if name not in found.values()]
            found[role] = next((name for name in free if plain(name) in SPELLINGS[role]), "")
    return {role: name for role, name in found.items() if name}


def refuse_missing(
    found: Mapping[str, str], header: Sequence[str], likelihood: str, where: str
) -> None:
    """A shape needs all of its columns; a box may be given by its corners."""
    wanted = SHAPES[likelihood].columns
    missing = [name for name in wanted if name not in found]
    if not missing or by_corners(found):
        return
    either = f" (or {', '.join(CORNERS)})" if likelihood == "boxes" else ""
    raise InputError(
        f"{where}: {likelihood} need the columns {', '.join(wanted)}{either}; {', '.join(missing)} "
        f"{'is' if len(missing) == 1 else 'are'} missing; the header is {listed(header)}; say "
        f"which it is with --columns {missing[0]}=NAME"
    )


def by_corners(found: Mapping[str, str]) -> bool:
    """Whether boxes are given by their corners, and not by centre and sides."""
    whole = all(name in found for name in SHAPES["boxes"].columns)
    return not whole and all(name in found for name in CORNERS)

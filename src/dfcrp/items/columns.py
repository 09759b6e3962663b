"""Which column of a table plays which role, by its name or by the user's word."""

from __future__ import annotations

import difflib
import re
import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dfcrp.errors import DfcrpWarning, InputError, SettingsError, did_you_mean
from dfcrp.items.checks import Cells, quoted, to_names
from dfcrp.likelihoods.registry import HOMES, likelihood_named
from dfcrp.values import Json

if TYPE_CHECKING:
    from dfcrp.likelihoods.base import Likelihood

ColumnChoice = Mapping[str, str | None] | str | None
"""Role to column name, as a dict or as "x=LON,y=LAT"; an empty name leaves a column aside.

"b.csv:surname=family_name" is for one file; of items described by any columns it renames a column.
"""

_UNITS = ("", "px", "pix", "pixel", "pixels", "m", "km")


def _with_units(*names: str) -> frozenset[str]:
    return frozenset(name + unit for name in names for unit in _UNITS)


def _axis(axis: str) -> frozenset[str]:
    words = ("center", "centre", "coord", "coordinate", "pos", "position")
    pairs = [pair for word in words for pair in (axis + word, word + axis)]
    return _with_units(axis, axis + "c", "c" + axis, *pairs)


#: What is known of an item besides the columns that describe it, for items of every kind.
ABOUT: dict[str, frozenset[str]] = {
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
    "id": frozenset({"id", "markid", "markingid", "marking", "craterid", "objectid", "itemid"}),
    "person": frozenset({"person", "personname", "personid"}),
    "truth": frozenset({"truth", "truelabel", "truelabels", "truecluster"}),
    "category": frozenset({"category", "categoryname"}),
    "score": frozenset({"score", "confidence"}),
}
#: Of these the ones that items say of their objects. Items that are described by any columns, such
#: as records, may have a column of that name: it is theirs unless the user says otherwise.
SAID = ("category", "score")
#: Names that count where no column has one of those above.
ABOUT_ELSE: dict[str, frozenset[str]] = {
    "expert": frozenset({"source", "detector", "list", "file", "model"}),
    "id": frozenset({"recid", "record", "recordid"}),
}
#: Names of columns that describe items; a likelihood may add to them.
SPELLINGS: dict[str, frozenset[str]] = {
    "x": _axis("x"),
    "y": _axis("y"),
    "diameter": _with_units("diameter", "diam", "dia", "d", "craterdiameter")
    | {"diamcircimg", "diamcircleimage"},  # of Robbins's catalogues
    "radius": _with_units("radius", "rad", "r", "craterradius"),
    "width": _with_units("width", "w", "boxwidth", "bboxwidth"),
    "height": _with_units("height", "h", "boxheight", "bboxheight"),
    "left": _with_units("left", "xmin", "x1", "x0"),
    "top": _with_units("top", "ymin", "y1", "y0"),
    "right": _with_units("right", "xmax", "x2"),
    "bottom": _with_units("bottom", "ymax", "y2"),
    "major": _with_units("major", "majoraxis"),
    "minor": _with_units("minor", "minoraxis"),
    "angle": frozenset({"angle", "orientation", "rotation"}),
}
#: Columns by the lesser names of experts have so few different values, or one for so many rows.
MOST_WEAKLY, ROWS_EACH = 12, 10
#: Names for the same field of a record, as ``plain`` leaves them.
SAME_FIELD: tuple[frozenset[str], ...] = (
    frozenset({"surname", "lastname", "familyname", "lname", "sname", "namelast"}),
    frozenset({"givenname", "firstname", "forename", "fname", "gname", "namefirst"}),
    frozenset({"name", "title", "productname", "fullname", "label"}),
    frozenset({"dateofbirth", "dob", "birthdate", "birthday", "born", "bdate"}),
    frozenset({"yearofbirth", "birthyear", "yob", "byear"}),
    frozenset({"postcode", "zip", "zipcode", "postalcode", "plz"}),
    frozenset({"phone", "telephone", "tel", "phonenumber", "mobile", "phoneno"}),
    frozenset({"email", "mail", "emailaddress"}),
    frozenset({"city", "town", "suburb", "place", "locality"}),
    frozenset({"address", "street", "addr", "address1", "streetaddress"}),
    frozenset({"sex", "gender"}),
    frozenset({"description", "desc", "text", "details"}),
    frozenset({"price", "cost", "amount", "listprice"}),
    frozenset({"manufacturer", "brand", "maker", "producer"}),
    frozenset({"author", "authors", "creator", "writer"}),
    frozenset({"venue", "journal", "booktitle", "conference"}),
    frozenset({"year", "yr", "date", "releaseyear"}),
)
#: Names of coordinates in degrees, for tables in which no column is called x or y.
GEOGRAPHIC: dict[str, frozenset[str]] = {
    "x": frozenset({"lon", "long", "longitude", "loncircimg", "longitudecircleimage"}),
    "y": frozenset({"lat", "latitude", "latcircimg", "latitudecircleimage"}),
}

#: Words in the names of columns that may well be images or experts, and words beside them that
#: say that they are not.
_LOOKS_LIKE: dict[str, frozenset[str]] = {
    "image": frozenset(
        {"image", "images", "img", "picture", "photo", "frame", "tile", "scene", "subject", "slide"}
        | {"filename", "file", "page", "patch", "plate", "exposure", "imagefilename", "imagename"}
    ),
    "expert": frozenset(
        {"expert", "observer", "user", "username", "annotator", "rater", "labeler", "labeller"}
        | {"analyst", "volunteer", "reader", "worker", "login", "author", "creator", "contributor"}
    ),
}
_BUT_NOT = frozenset(
    {"width", "height", "size", "w", "h", "x", "y", "scale", "quality", "score", "agent", "ip"}
    | {"time", "date", "count", "number", "rate", "url", "version", "type", "format", "area"}
)
_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")
_IMAGE_FILE = re.compile(r"\.(png|jpe?g|tiff?|img|cub|gif|bmp|fits?|jp2|svs)$", re.IGNORECASE)
#: Cells of a column that are looked at for names of image files.
_LOOK_AT = 100

_BRACKETED_UNIT = re.compile(r"\s*[(\[][^)\]]*[)\]]\s*$")
_FILLING = re.compile(r"[\s_.\-]+")


@dataclass(frozen=True)
class Roles:
    """The position in the header of the column that plays each role."""

    columns: Mapping[str, int]
    """What describes an item."""
    about: Mapping[str, int]
    """Expert, image, id, person, truth, category, score, as far as there is a column for them."""

    aside: frozenset[str] = frozenset()
    """Roles that the user left aside."""

    def used(self) -> set[int]:
        """All positions that have a role."""
        return {*self.columns.values(), *self.about.values()}

    def position(self, role: str) -> int | None:
        """The column of a role; None for one that is worked out from others."""
        return self.columns.get(role, self.about.get(role))


def plain(name: str) -> str:
    """Reduce a column name to what matters: "X_Centre (px)" and "xcentre" are the same."""
    return _FILLING.sub("", _BRACKETED_UNIT.sub("", name)).casefold()


def unit_of(name: str) -> str:
    """Give the unit that a column's name ends in, "m", "km" or "px", or nothing."""
    bracketed = _BRACKETED_UNIT.search(name)
    ending = bracketed[0].strip(" ()[]").casefold() if bracketed else _FILLING.split(name)[-1]
    ending = {"pix": "px", "pixel": "px", "pixels": "px"}.get(ending.casefold(), ending.casefold())
    return ending if ending in ("m", "km", "px") else ""


def units_by_name(header: Sequence[str], columns: Mapping[str, int]) -> str:
    """Tell the units of a table from the names of its columns; pixels where they do not tell."""
    if all(role in columns and plain(header[columns[role]]) in GEOGRAPHIC[role] for role in "xy"):
        return "deg"
    lengths = [at for role, at in columns.items() if role in SPELLINGS and role != "angle"]
    named = {unit_of(header[at]) for at in lengths}
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
            raise SettingsError(f"columns: {quoted(part)} is not of the form role=NAME")
        if role in parsed:
            raise SettingsError(f"columns: {role} is given twice")
        parsed[role] = name
    return parsed


def for_file(choice: ColumnChoice, files: Sequence[str]) -> list[dict[str, str]]:
    """What the user said of columns, for each file: what names the file, or no file."""
    found: list[dict[str, str]] = [{} for _ in files]
    own: list[dict[str, str]] = [{} for _ in files]
    for key, name in parse_pairs(choice).items():
        file, colon, role = key.rpartition(":")
        at = _which_file(file, files) if colon else []
        if colon and not at:
            raise SettingsError(
                f"columns: {quoted(key)} is about a file {quoted(file)}, which is not given"
                f"{did_you_mean(file, files)}; the files are {quoted_names(files)}"
            )
        for one in at or range(len(files)):
            (own if colon else found)[one][role if colon else key] = name
    return [{**all_files, **one} for all_files, one in zip(found, own, strict=True)]


def _which_file(file: str, files: Sequence[str]) -> list[int]:
    """By its name, with or without the folder or the ending."""
    ways: tuple[Callable[[str], str], ...] = (
        str,
        lambda name: re.split(r"[/\\]", name)[-1],
        lambda name: re.split(r"[/\\]", name)[-1].partition(".")[0],
    )
    for way in ways:
        at = [one for one, name in enumerate(files) if way(name) == file]
        if len(at) == 1:
            return at
    return []


def recognise(
    header: Sequence[str],
    likelihood: Likelihood,
    choice: ColumnChoice,
    where: str,
    cells: Sequence[Cells] | None = None,
) -> Roles:
    """Map each role that the table fills to the position of its column.

    The user's word goes before the names. Where a kind of item can be described in several ways,
    as a circle by its diameter or its radius, the longest for which there are all columns counts,
    of equally long ones the first.
    Of items described by any columns, every column without another role describes them.
    ``cells``, by column, keep a column with a value for nearly each row from being the experts'.
    """
    return _Recognition(header, likelihood, parse_pairs(choice), where, cells).roles()


class _Recognition:
    """One table's header against the roles of one kind of item."""

    def __init__(
        self,
        header: Sequence[str],
        likelihood: Likelihood,
        chosen: Mapping[str, str],
        where: str,
        cells: Sequence[Cells] | None = None,
    ) -> None:
        self.header = header
        self.cells = cells
        #: Where the columns are whose names are the same but for what does not matter.
        self.places: dict[str, list[int]] = {}
        for at, title in enumerate(header):
            self.places.setdefault(plain(title), []).append(at)
        self.likelihood = likelihood
        self.where = where
        self.ways = (
            () if likelihood.columns is None else (likelihood.columns, *likelihood.alternatives)
        )
        self.known = [*dict.fromkeys(role for way in self.ways for role in way), *ABOUT]
        self._refuse_unknown(chosen)
        self.aside = {role for role, name in chosen.items() if not name}
        self.found = {
            role: self._position(role, name)
            for role, name in chosen.items()
            if name and not self._has_it_already(role, name)
        }
        self._refuse_shared()
        self.taken = set(self.found.values())

    def _has_it_already(self, role: str, name: str) -> bool:
        """Whether a column is to be renamed that is not there, and has the name already."""
        return (
            not self.ways
            and role not in ABOUT
            and name not in self.header
            and (role in self.header)
        )

    def roles(self) -> Roles:
        """Columns that describe an item first, then those about it."""
        columns = self._columns() if self.ways else {}
        about: dict[str, int] = {}
        aside: set[int] = set()
        for role, names in ABOUT.items():
            other = self._lesser_names(role)
            matches = self._matches(names) or self._plausible(role, self._matches(other))
            if role in self.found:
                about[role] = self.found[role]
            elif role in SAID and not self.ways:
                continue
            elif role in self.aside:
                # All that would be recognised: an id must not become a field of a record.
                aside |= {*self._matches(names), *self._matches(other)}
            elif matches:
                about[role] = self._only(role, matches)
        if not self.ways:
            columns = self._all_others({*about.values(), *aside}, about)
        return Roles(columns, about, frozenset(self.aside))

    def _columns(self) -> dict[str, int]:
        """The first way to describe an item for which every column is there."""
        chosen = [role for role in self.found if role not in ABOUT]
        ways = [way for way in self.ways if set(chosen) <= set(way)]
        if not ways:
            first = next(way for way in self.ways if chosen[0] in way)
            other = next(role for role in chosen if role not in first)
            raise SettingsError(f"columns: give either {chosen[0]} or {other}, not both")
        matches = {role: self._described(role) for way in ways for role in way}
        if not any(matches[role] for role in ("x", "y") if role in matches and self._free(role)):
            for role in ("x", "y"):
                if role in matches and self._free(role):
                    matches[role] = self._matches(GEOGRAPHIC[role])
        # The way that says most of an item goes before the others.
        for way in sorted(ways, key=len, reverse=True):
            if all(matches[role] for role in way):
                return {role: self._only(role, matches[role]) for role in way}
        missing = [role for role in ways[0] if not matches[role]]
        raise InputError(self._missing(missing, matches))

    def _lesser_names(self, role: str) -> frozenset[str]:
        """Names that count where no column has a better one; a kind's own go before the rest."""
        spellings = self.likelihood.spellings
        taken = {name for one in ABOUT if one != role for name in spellings.get(one, ())}
        return (ABOUT_ELSE.get(role, frozenset()) - taken) | spellings.get(role, frozenset())

    def _plausible(self, role: str, matches: list[int]) -> list[int]:
        """Of columns by lesser names those with few values: what a record says has many."""
        if role != "expert" or self.cells is None or self.ways:
            return matches
        kept = []
        for at in matches:
            names = to_names(self.cells[at])
            if all(names) and len(set(names)) <= max(MOST_WEAKLY, len(names) / ROWS_EACH):
                kept.append(at)
        return kept

    def _free(self, role: str) -> bool:
        return role not in self.found and role not in self.aside

    def _described(self, role: str) -> list[int]:
        if role in self.found:
            return [self.found[role]]
        if role in self.aside:
            return []
        return self._matches(names_of(role, self.likelihood))

    def _matches(self, names: frozenset[str]) -> list[int]:
        found = [at for name in names for at in self.places.get(name, ())]
        return sorted(at for at in found if at not in self.taken)

    def _only(self, role: str, matches: Sequence[int]) -> int:
        if len(matches) > 1:
            names = ", ".join(quoted(self.header[at]) for at in matches)
            raise InputError(
                f"{self.where}: the columns {names} could all be {role}; " + _say_which(role)
            )
        return matches[0]

    def _all_others(self, used: set[int], about: Collection[str]) -> dict[str, int]:
        """Every column that has no other role, under its own title."""
        columns: dict[str, int] = {}
        named = {at: role for role, at in self.found.items() if role not in ABOUT}
        gone = {at for role in self.aside for at in self.places.get(plain(role), ())}
        for at, own_title in enumerate(self.header):
            title = named.get(at, own_title)
            if at in used or (at in gone and at not in named):
                continue
            if not title:
                raise InputError(
                    f"{self.where}: column {at + 1} has no name; name it, or remove the column"
                )
            if title in columns:
                raise InputError(
                    f"{self.where}: column {quoted(title)} is there several times; rename the "
                    "others"
                )
            if title in ABOUT and (title in about or title not in SAID):
                raise InputError(
                    f"{self.where}: column {quoted(title)} cannot describe items under that name, "
                    f"since {title} is another column; rename it"
                )
            columns[title] = at
        if not columns:
            raise InputError(
                f"{self.where}: no column describes an item, among "
                f"{quoted_names(self.header)}; add one, "
                "or say what the others are with --columns"
            )
        return columns

    def _position(self, role: str, name: str) -> int:
        same = [at for at, known in enumerate(self.header) if known == name]
        same = same or [
            at for at, known in enumerate(self.header) if known.casefold() == name.casefold()
        ]
        if len(same) > 1:
            raise InputError(
                f"{self.where}: column {quoted(name)}, wanted for {role}, is there {len(same)} "
                "times; rename the others"
            )
        if not same:
            raise InputError(
                f"{self.where}: column {quoted(name)}, wanted for {role}, is not in the header"
                f"{did_you_mean(name, self.header)}; the header is {quoted_names(self.header)}"
            )
        return same[0]

    def _refuse_unknown(self, chosen: Mapping[str, str]) -> None:
        for role, name in chosen.items():
            # Of items described by any columns a column may have any name.
            near = difflib.get_close_matches(role, self.known, n=1, cutoff=0.8)
            own = role == name or not near or plain(role) in self.places
            if role in self.known or (not self.ways and own):
                continue
            raise SettingsError(
                f"columns: unknown role {quoted(role)}{did_you_mean(role, self.known)}; "
                f"the roles are {', '.join(self.known)}"
            )

    def _refuse_shared(self) -> None:
        roles: dict[int, str] = {}
        for role, at in self.found.items():
            if at in roles:
                raise SettingsError(
                    f"{self.where}: column {quoted(self.header[at])} is wanted "
                    f"for both {roles[at]} and {role}; give one column to each"
                )
            roles[at] = role

    def _missing(self, missing: Sequence[str], matches: Mapping[str, Sequence[int]]) -> str:
        found = {at for positions in matches.values() for at in positions}
        wanted = list(missing)
        either = ""
        for way in self.ways[1:]:
            instead = [role for role in way if role not in self.ways[0]]
            replaced = [role for role in self.ways[0] if role not in way]
            if len(replaced) == 1 and replaced[0] in wanted:
                at = wanted.index(replaced[0])
                wanted[at] += f" (or {', '.join(instead)})"
            elif len(replaced) > 1:
                ways = ", or ".join(", ".join(one) for one in self.ways)
                either = f" ({self.likelihood.name} have {ways})"
        return (
            f"{self.where}: no column for {', '.join(wanted)}{either}; the header is "
            f"{quoted_names(self.header)}{self._other_kind()}{self._nearest(missing[0], found)}; "
            f"{_say_which(missing[0])}{_numbers_hint(self.header)}"
        )

    def _other_kind(self) -> str:
        """The kind of item that has the most of these columns, if it is another one."""
        best: tuple[int, str, str] = (0, "", "")
        for kind in HOMES:
            other = likelihood_named(kind)
            if other.columns is None:
                continue
            for way in (other.columns, *other.alternatives):
                titles = [self._matches(names_of(role, other)) for role in way]
                if all(titles) and len(way) > best[0]:
                    columns = ", ".join(quoted(self.header[at[0]]) for at in titles)
                    best = len(way), kind, columns
        if not best[0] or best[1] == self.likelihood.name:
            return ""
        return f"; {best[2]} would do for {best[1]} (--likelihood {best[1]})"

    def _nearest(self, role: str, found: set[int]) -> str:
        free = {
            plain(title): title
            for at, title in enumerate(self.header)
            if len(plain(title)) > 2 and at not in found
        }
        for spelling in sorted(names_of(role, self.likelihood), key=len, reverse=True):
            near = difflib.get_close_matches(spelling, free, n=1, cutoff=0.8)
            if near:
                return f"; is {role} {quoted(free[near[0]])}?"
        return ""


def suspects(
    header: Sequence[str], columns: Sequence[Cells], roles: Roles
) -> list[tuple[str, str]]:
    """Columns without a role that look as if they had one: the role, and the column's name.

    Only images and experts, which change what may share a cluster; only where no column has the
    role and the user did not leave it aside; and only columns in which there are several names.
    """
    found = []
    used = roles.used()
    for role, words in _LOOKS_LIKE.items():
        if role in roles.about or role in roles.aside:
            continue
        for at, title in enumerate(header):
            if at in used or not title:
                continue
            parts = {word.casefold() for word in _WORDS.findall(title)}
            named = bool(words & {*parts, plain(title)}) and not parts & _BUT_NOT
            if (named or (role == "image" and _image_files(columns[at]))) and _several(columns[at]):
                found.append((role, title))
                break
    return found


def _image_files(cells: Cells) -> bool:
    """Whether a column holds names of image files."""
    some = to_names(cells[:_LOOK_AT])
    return bool(some) and all(_IMAGE_FILE.search(name) for name in some)


def _several(cells: Cells) -> bool:
    """Whether a column holds different names."""
    return len(set(to_names(cells))) > 1


def suspect_words(role: str, title: str) -> str:
    """The warning about a column that is not used and looks as if it should be."""
    what = {
        "image": "all items are taken to be on one image",
        "expert": "every file is taken to be one expert's list",
    }[role]
    return (
        f"the column {quoted(title)} looks like {role}s and is not used: {what}. If it is, give "
        f"--columns {role}={title} (in Python columns={{'{role}': {title!r}}}); if not, --columns "
        f"{role}= says so"
    )


def names_of(role: str, likelihood: Likelihood) -> frozenset[str]:
    """The names by which the column of a role is recognised, as ``plain`` leaves them."""
    return (
        SPELLINGS.get(role, frozenset())
        | likelihood.spellings.get(role, frozenset())
        | frozenset({plain(role)})
    )


def titles_of(titles: Collection[str], likelihood: Likelihood) -> dict[str, str]:
    """By role the title that stands for it, if the titles, all of them, describe an item.

    Names of degrees are not among them, as no name can tell the units of columns alone.
    """
    ways = () if likelihood.columns is None else (likelihood.columns, *likelihood.alternatives)
    for way in ways:
        found = {
            role: [title for title in titles if plain(title) in names_of(role, likelihood)]
            for role in way
        }
        once = all(len(same) == 1 for same in found.values())
        if once and sorted(same[0] for same in found.values()) == sorted(titles):
            return {role: same[0] for role, same in found.items()}
    return {title: title for title in titles}


def frame_columns(
    frame: Any, likelihood: Likelihood, choice: ColumnChoice = None
) -> tuple[Json, Json, dict[str, str]]:
    """Columns of a data frame or a dict of columns: those that describe items and those about them.

    The third part has the frame's own name for each role, for messages.
    """
    names = list(frame) if isinstance(frame, Mapping) else list(getattr(frame, "columns", ()))
    if not names:
        raise InputError(
            f"a {type(frame).__name__} is not a table with named columns; "
            "give a data frame or a dict of columns"
        )
    header = [str(name) for name in names]
    values = [np.asarray(frame[name]) for name in names] if likelihood.text else None
    roles = recognise(header, likelihood, choice, "the table", values)
    if likelihood.columns is not None and "expert" in roles.about:
        cells = [np.asarray(frame[name]) for name in names]
        for role, title in suspects(header, cells, roles):
            warnings.warn(suspect_words(role, title), DfcrpWarning, stacklevel=4)
    columns = {role: frame[names[at]] for role, at in roles.columns.items()}
    about = {role: frame[names[at]] for role, at in roles.about.items()}
    titles = {role: header[at] for role, at in {**roles.columns, **roles.about}.items()}
    return columns, about, titles


def same_field(one: str, other: str) -> bool:
    """Whether two titles are obviously of one field: the same letters, or names for the same."""
    both = {plain(one), plain(other)}
    return len(both) == 1 or any(both <= names for names in SAME_FIELD)


def quoted_names(names: Sequence[str]) -> str:
    """List names for a message, the first twenty of them."""
    return ", ".join(quoted(name) for name in names[:20]) + (", ..." if len(names) > 20 else "")


def _say_which(role: str) -> str:
    return f"say which with --columns {role}=NAME (in Python columns={{'{role}': 'NAME'}})"


def _numbers_hint(header: Sequence[str]) -> str:
    if not any(re.fullmatch(r"[+-]?\d*\.?\d+(e[+-]?\d+)?", name, re.IGNORECASE) for name in header):
        return ""
    return (
        ". The header holds numbers; is it missing? "
        "(A header that begins with '#' is taken for a comment)"
    )

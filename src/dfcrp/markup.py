"""Small pieces of HTML: every text passes through here, and nothing gets out unescaped."""

from __future__ import annotations

import html
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dfcrp.rounding import estimate, estimate_of, interval, number, probability, significant

#: Also what numbers look like, which goes through the same hands.
__all__ = [
    "VOID",
    "Column",
    "Markup",
    "Section",
    "SectionMaker",
    "bullets",
    "counted",
    "details",
    "escape",
    "estimate",
    "estimate_of",
    "first_rows",
    "interval",
    "join",
    "listed",
    "number",
    "one",
    "paragraph",
    "plural",
    "probability",
    "significant",
    "table",
    "tag",
    "with_interval",
]

#: Elements without content, which HTML does not close.
VOID = ("img", "meta", "br")


class Markup(str):
    """Text that is HTML already; everything else is escaped when it is put into the page."""

    __slots__ = ()


def escape(value: object) -> Markup:
    """HTML as it is, any other value as text."""
    return value if isinstance(value, Markup) else Markup(html.escape(str(value)))


def tag(name: str, *content: object, **attributes: object) -> Markup:
    """An element; attributes are written without their trailing underscore (``class_``)."""
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{html.escape(str(value))}"'
        for key, value in attributes.items()
    )
    if name in VOID:
        return Markup(f"<{name}{written}>")
    return Markup(f"<{name}{written}>{join(content)}</{name}>")


def join(parts: Iterable[object], between: str = "") -> Markup:
    """Pieces one after the other."""
    return Markup(html.escape(between).join(escape(part) for part in parts))


def paragraph(*content: object, **attributes: object) -> Markup:
    """A paragraph; its pieces are parted by nothing."""
    return tag("p", *content, **attributes)


def bullets(items: Iterable[object]) -> Markup:
    """A list of points, one below the other."""
    return tag("ul", *(tag("li", item) for item in items))


@dataclass(frozen=True)
class Section:
    """A section of a page: a heading with what follows it."""

    id: str
    title: str
    body: Markup
    #: Takes the width of the window rather than that of a column of text.
    wide: bool = False

    def html(self) -> Markup:
        """The section as it stands in the page."""
        kind = {"class_": "wide"} if self.wide else {}
        return tag("section", tag("h2", self.title), self.body, id=self.id, **kind)


#: From the contents of a report to one of its sections; None if there is nothing to say.
SectionMaker = Callable[[Any], Section | None]


@dataclass(frozen=True)
class Column:
    """How a column of a table is headed and set."""

    head: str
    #: Numbers are set flush right.
    number: bool = True
    #: What the head means, shown when pointed at.
    note: str = ""
    #: Cells of a row that it is the head of.
    cells: int = 1


def with_interval(head: str, note: str = "") -> Column:
    """The head of an estimate and of its 95 % interval, which have a cell each."""
    return Column(f"{head} (95 %)", note=note, cells=2)


def table(columns: Sequence[Column], rows: Iterable[Sequence[object]], caption: str = "") -> Markup:
    """A table that scrolls sideways by itself when the screen is narrow."""
    kinds = [{"class_": "number"} if c.number else {} for c in columns for _ in range(c.cells)]
    head = tag(
        "tr",
        *(
            tag(
                "th",
                c.head,
                scope="col" if c.cells == 1 else "colgroup",
                **({"class_": "number"} if c.number else {}),
                **({"title": c.note} if c.note else {}),
                **({"colspan": str(c.cells)} if c.cells > 1 else {}),
            )
            for c in columns
        ),
    )
    body = [
        tag("tr", *(tag("td", cell, **kind) for cell, kind in zip(row, kinds, strict=True)))
        for row in rows
    ]
    title = tag("caption", caption) if caption else ""
    whole = tag("table", title, tag("thead", head), tag("tbody", *body))
    return tag("div", whole, class_="scroll", tabindex="0")


def details(summary: str, *content: object) -> Markup:
    """Content that opens when its summary is clicked."""
    return tag("details", tag("summary", summary), *content)


def plural(noun: str) -> str:
    """ "markings", "boxes"."""
    return noun + ("es" if noun.endswith(("s", "x", "ch", "sh")) else "s")


def one(noun: str) -> str:
    """ "a marking", "an item"."""
    return f"{'an' if noun[0] in 'aeiou' else 'a'} {noun}"


def counted(count: int, noun: str) -> str:
    """ "1 marking", "12 markings"."""
    return f"{count:,} {noun if count == 1 else plural(noun)}"


def listed(names: Sequence[object], most: int = 12) -> str:
    """Names joined by commas; only so many of them."""
    shown = ", ".join(str(name) for name in names[:most])
    hidden = len(names) - most
    return shown if hidden <= 0 else f"{shown} and {hidden:,} more"


def _in_short(value: object) -> object:
    """A fraction with six digits, anything else as it is."""
    return f"{value:.6g}" if isinstance(value, float) else value


def first_rows(caption: str, columns: Mapping[str, Any], most: int = 5) -> Markup:
    """A small table for notebooks: the caption and the first rows of some columns."""
    shown = [[_in_short(value) for value in values[:most]] for values in columns.values()]
    rows = zip(*shown, strict=True)
    head = [Column(name, number=False) for name in columns]
    return join([paragraph(caption), table(head, [list(row) for row in rows])])

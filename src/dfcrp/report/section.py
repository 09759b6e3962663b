"""A section of the page: what every ``about_*`` module makes."""

from __future__ import annotations

from dataclasses import dataclass

from dfcrp.markup import Markup, tag


@dataclass(frozen=True)
class Section:
    """A heading with what follows it."""

    id: str
    title: str
    body: Markup
    #: Takes the width of the window rather than that of a column of text.
    wide: bool = False

    def html(self) -> Markup:
        """The section as it stands in the page."""
        kind = {"class_": "wide"} if self.wide else {}
        return tag("section", tag("h2", self.title), self.body, id=self.id, **kind)

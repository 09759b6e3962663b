"""A section of the page: what every ``about_*`` module makes."""

from __future__ import annotations

from dataclasses import dataclass

from dfcrp.report.markup import Markup, tag


@dataclass(frozen=True)
class Section:
    """A heading with what follows it."""

    id: str
    title: str
    body: Markup

    def html(self) -> Markup:
        """The section as it stands in the page."""
        return tag("section", tag("h2", self.title), self.body, id=self.id)

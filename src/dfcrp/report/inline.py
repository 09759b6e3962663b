"""The explorer on its own: inside a notebook, or as one file."""

from __future__ import annotations

import html
from pathlib import Path
from typing import Any

from dfcrp.errors import InputError
from dfcrp.files import write_text
from dfcrp.markup import Markup
from dfcrp.posterior.posterior import Posterior
from dfcrp.report.contents import Contents
from dfcrp.report.explorer.embed import SCRIPT_HASH, explorer, style
from dfcrp.report.write import make_page, title_of

#: In a notebook the page is a frame, which needs no second heading and no margin.
FRAMED = """
header, footer, #explore > h2 { display: none }
main, body, #explore { margin-top: 0; padding-top: 0.2rem; border-top: 0 }
"""


class Explorer:
    """The map of a posterior; a notebook shows it when it is the last line of a cell."""

    def __init__(self, posterior: Posterior, image: Any = None, height: int = 760) -> None:
        if len(posterior.images) > 1:
            names = ", ".join(repr(name) for name in posterior.images[:3])
            raise InputError(
                f"the explorer shows one image, and there are {len(posterior.images)}; choose one, "
                f"as in posterior[{posterior.images[0]!r}].explore() (there are {names}, ...)"
            )
        self.height = height
        self.page = make_page(
            title_of(posterior.items),
            Markup(""),
            [explorer(Contents(posterior, image))],
            style=style() + FRAMED,
            script_hash=SCRIPT_HASH,
        )

    def __repr__(self) -> str:
        return "<Explorer: the last line of a notebook's cell shows it, save(path) writes it>"

    def _repr_html_(self) -> str:
        """A frame that holds the whole page, so that neither changes the other's looks."""
        return (
            f'<iframe title="Explorer" srcdoc="{html.escape(self.page)}" '
            f'style="width: 100%; height: {self.height}px; border: 1px solid #8888"></iframe>'
        )

    def save(self, path: str | Path) -> Path:
        """Write one HTML file that needs no other."""
        target = Path(path)
        write_text(target.parent, target.name, self.page)
        return target

"""A figure that a notebook shows.

Figures here do not touch pyplot, which is what otherwise tells a notebook how to show them. A
module of its own, so that matplotlib is loaded when the first figure is made.
"""

from __future__ import annotations

import io

from matplotlib.figure import Figure


class ShownFigure(Figure):
    """Matplotlib's figure, which a notebook shows when it is the last line of a cell."""

    def _repr_png_(self) -> bytes:
        out = io.BytesIO()
        self.savefig(out, format="png", dpi=110)
        return out.getvalue()

"""Figures: each is one object of the registry ``FIGURES``, which its module makes.

``prepare_x`` gives the table of figure x, ``draw_x`` draws it, ``plot_x`` does both. Figures are
loaded when first used, so that importing the package stays quick.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dfcrp.plots.figure import Figure

    FIGURES: Mapping[str, Figure[Any, Any]]

#: Modules with figures, in the order of the report; each lists its own as ``FIGURES``.
_MODULES = ("traces", "maps", "experts", "sizes", "certainty", "neighbourhood", "detection")
_ACTIONS = ("prepare", "draw", "plot")


@cache
def _figures() -> Mapping[str, Figure[Any, Any]]:
    homes = [import_module(f"dfcrp.plots.{module}") for module in _MODULES]
    return {figure.name: figure for home in homes for figure in home.FIGURES}


def __getattr__(name: str) -> Any:
    if name == "FIGURES":
        return _figures()
    action, _, figure = name.partition("_")
    if name == "save_figure":
        return getattr(import_module("dfcrp.plots.style"), name)
    if action in _ACTIONS and figure in _figures():
        return getattr(_figures()[figure], action)
    raise AttributeError(f"module 'dfcrp.plots' has no attribute {name!r}")


def __dir__() -> list[str]:
    functions = (f"{action}_{name}" for name in _figures() for action in _ACTIONS)
    return ["FIGURES", "save_figure", *functions]

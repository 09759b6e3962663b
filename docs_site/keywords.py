"""The signature of ``dfcrp.fit`` on the page of the API: every keyword with its default.

The source has ``**settings: Unpack[FitSettings]``; what Python shows is made when it is loaded.
"""

from __future__ import annotations

import inspect
from typing import Any

from griffe import Extension, Function, Parameter, ParameterKind, Parameters

from dfcrp.settings.keywords import FitSettings, default_of


class Keywords(Extension):
    """Puts the settings in the place of ``**settings``."""

    def on_function(self, *, func: Function, **_: Any) -> None:
        """Called by griffe for each function that it reads."""
        own = list(func.parameters)
        if not own or str(own[-1].annotation) != f"Unpack[{FitSettings.__name__}]":
            return
        settings = [
            Parameter(
                name,
                annotation=inspect.formatannotation(hint),
                kind=ParameterKind.keyword_only,
                default=repr(default_of(name)),
            )
            for name, hint in FitSettings.__annotations__.items()
        ]
        func.parameters = Parameters(*own[:-1], *settings)

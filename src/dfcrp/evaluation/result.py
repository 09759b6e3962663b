"""What an evaluation found: a dict whose keys are attributes too, and a text of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from dfcrp.files import replace_file


class Evaluation(dict[str, Any]):
    """How right an answer is, as ``dfcrp evaluate --json`` writes it.

    Numbers that do not exist, such as the precision where nothing is listed, are None.

    Examples
    --------
    >>> found = dfcrp.load("run").evaluate("truth.csv")  # doctest: +SKIP
    >>> found["f1"], found.intervals["f1"]  # doctest: +SKIP
    """

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(
                f"an evaluation has no {name!r}; it has {', '.join(self)}"
            ) from None

    def __repr__(self) -> str:
        from dfcrp.evaluation.words import describe

        return describe(self)

    def _repr_html_(self) -> str:
        from dfcrp.markup import tag

        return tag("pre", repr(self))

    def save(self, path: str | Path) -> None:
        """Write it as JSON, the whole file or nothing."""
        replace_file(Path(path), (json.dumps(self, indent=1) + "\n").encode())


def plain(value: Any) -> Any:
    """Numbers of Python, with None for those that do not exist, all the way down."""
    if isinstance(value, dict):
        return {str(key): plain(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(one) for one in value]
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, float) and not np.isfinite(value):
        return None
    return value

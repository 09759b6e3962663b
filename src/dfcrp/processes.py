"""Python processes of our own: they find modules where this one does, never where data lie.

``python -c`` and ``python -m`` look for modules in the current folder first. That may be a run
folder that somebody else made, in which a file called ``numpy.py`` would be run.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

#: Where a process of ours works: there are no data, and no settings of other libraries either, such
#: as a ``matplotlibrc``.
WORKPLACE = Path(__file__).resolve().parent


def python(*arguments: str) -> tuple[list[str], dict[str, str]]:
    """The command and the environment of a new Python with these arguments."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(search_path())}
    return [sys.executable, "-P", *arguments], environment


def search_path() -> list[str]:
    """Where this process looks for modules, without the current folder and what is relative to it.

    The folder of this package stays, wherever it is.
    """
    home = str(WORKPLACE.parent)
    here = os.path.realpath(os.curdir)
    found = [
        path
        for path in sys.path
        if isinstance(path, str) and os.path.isabs(path) and os.path.realpath(path) != here
    ]
    return found if home in found else [*found, home]

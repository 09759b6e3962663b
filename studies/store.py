"""Results of a long study, one small file per data set, so that it can be stopped at any time.

A result is written beside its place and then moved there, so a file is whole or absent. Each one
names the settings it was made with; a folder made with other settings is refused.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dfcrp.errors import RunFolderError
from dfcrp.report.tables import prepare_out, write_json
from dfcrp.values import as_json

SETTINGS = "settings.json"
RESULTS = "datasets"


class ResultStore:
    """A folder of results with the settings that they all share."""

    def __init__(self, folder: Path, settings: Mapping[str, Any]) -> None:
        self.folder = prepare_out(folder)
        self.settings = as_json(settings)
        self.digest = digest_of(self.settings)
        known = self._known_settings()
        if known is None:
            write_json(folder / SETTINGS, self.settings)
        elif digest_of(known) != self.digest:
            changed = sorted(
                name
                for name in {*known, *self.settings}
                if known.get(name) != self.settings.get(name)
            )
            raise RunFolderError(
                f"{folder}: holds results made with other settings ({', '.join(changed)} "
                "differ); choose another --out, or give the same settings to resume"
            )
        prepare_out(folder / RESULTS)

    def _known_settings(self) -> dict[str, Any] | None:
        path = self.folder / SETTINGS
        try:
            found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            raise RunFolderError(f"{path}: cannot be read: {error}") from None
        return found

    def path(self, index: int) -> Path:
        """Where the result of a data set is."""
        return self.folder / RESULTS / f"{index:05d}.json"

    def save(self, index: int, result: Mapping[str, Any]) -> None:
        """Keep a result; from here on it survives whatever happens to the program."""
        write_json(self.path(index), {"index": index, "settings": self.digest, **result})

    def load(self, index: int) -> dict[str, Any] | None:
        """A finished result, or None; what cannot be read counts as not done."""
        try:
            found = json.loads(self.path(index).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        if not isinstance(found, dict) or found.get("settings") != self.digest:
            return None
        return found


def digest_of(settings: Mapping[str, Any]) -> str:
    """A short name for these settings."""
    text = json.dumps(settings, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]

"""Zip files taken apart and put together again, for whoever spoils shards."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any


def members(path: Path) -> dict[str, bytes]:
    """What a zip file holds."""
    with zipfile.ZipFile(path) as file:
        return {name: file.read(name) for name in file.namelist()}


def put_together(path: Path, content: dict[str, bytes]) -> None:
    """Write a zip file with right checksums."""
    with zipfile.ZipFile(path, "w") as file:
        for name, data in content.items():
            file.writestr(zipfile.ZipInfo(name), data)


def change_index(path: Path, change: Callable[[dict[str, Any]], Any], group: str = "") -> None:
    """Change the index of a shard; what ``change`` returns, unless None, takes its place."""
    content = members(path)
    name = f"{group}zarr.json"
    text = json.loads(content[name])
    new = change(text["attributes"])
    text["attributes"] = text["attributes"] if new is None else new
    put_together(path, {**content, name: json.dumps(text).encode()})


def place_of_member(path: Path, name: str) -> slice:
    """Where the bytes of a member lie in the file."""
    with zipfile.ZipFile(path) as file:
        found = file.getinfo(name)
    start = found.header_offset + 30 + len(name.encode())
    return slice(start, start + found.file_size)

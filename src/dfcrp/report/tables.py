"""Tables as Markdown and CSV, results as JSON, and where the numbers came from."""

from __future__ import annotations

import csv
import io
import json
import platform
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dfcrp import __version__
from dfcrp.errors import InputError
from dfcrp.files import write_text
from dfcrp.values import Json, as_json

Row = Mapping[str, Any]


def prepare_out(folder: Path) -> Path:
    """Make the output folder, parents included."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{folder}: cannot be made a folder: {error.strerror}") from None
    return folder


def columns_of(rows: Sequence[Row]) -> list[str]:
    """All keys, in order of first appearance."""
    return list(dict.fromkeys(key for row in rows for key in row))


def markdown_table(rows: Sequence[Row], digits: int = 3) -> str:
    """A Markdown table with aligned columns; floats with so many digits after the point."""
    names = columns_of(rows)
    cells = [names, *([cell_text(row.get(name), digits) for name in names] for row in rows)]
    widths = [max(len(line[column]) for line in cells) for column in range(len(names))]
    lines = [
        "| "
        + " | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        + " |"
        for line in cells
    ]
    return "\n".join(
        [lines[0], "|" + "|".join("-" * (width + 2) for width in widths) + "|", *lines[1:]]
    )


def cell_text(value: object, digits: int = 3) -> str:
    """A cell as text: numbers rounded, truth as a check mark, nothing for what is missing."""
    if value is None:
        return ""
    if isinstance(value, bool | np.bool_):
        return "✓" if value else ""
    if isinstance(value, float | np.floating):
        return f"{value:.{digits}f}" if np.isfinite(value) else ""
    return str(value)


def write_csv(path: Path, rows: Sequence[Row]) -> None:
    """Rows as CSV, numbers with ten digits, written whole or not at all."""
    out = io.StringIO()
    writer = csv.DictWriter(out, columns_of(rows), lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow({key: f"{v:.10g}" if isinstance(v, float) else v for key, v in row.items()})
    write_text(path.parent, path.name, out.getvalue())


def write_json(path: Path, content: object) -> None:
    """JSON without NaN, written whole or not at all."""
    write_text(
        path.parent, path.name, json.dumps(as_json(content), indent=1, ensure_ascii=False) + "\n"
    )


def write_page(path: Path, title: str, parts: Iterable[str]) -> None:
    """A Markdown page of paragraphs and tables."""
    write_text(path.parent, path.name, "\n\n".join([f"# {title}", *parts]) + "\n")


def provenance(**settings: object) -> Json:
    """Versions, machine and settings behind a result."""
    return {
        "dfcrp": __version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "machine": platform.machine(),
        "written": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "settings": as_json(settings),
    }

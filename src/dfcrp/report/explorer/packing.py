"""Arrays for a page: the smallest type that holds them, one after the other, as base64."""

from __future__ import annotations

import base64
import hashlib
import json
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: JavaScript's typed arrays by NumPy's type.
TYPES = {"uint8": "Uint8", "uint16": "Uint16", "uint32": "Uint32", "float32": "Float32"}
TYPES["float64"] = "Float64"
#: Every array begins at a multiple of this many bytes, as typed arrays must.
ALIGNMENT = 8


@dataclass
class Packer:
    """Arrays put one after the other, with a table of where each is."""

    content: bytearray = field(default_factory=bytearray)
    #: Name to [type, first byte, length]; arrays with the same content lie there once.
    table: dict[str, tuple[str, int, int]] = field(default_factory=dict)
    known: dict[tuple[str, bytes], tuple[str, int, int]] = field(default_factory=dict)

    def floats(self, name: str, values: Any, kind: str = "float32") -> None:
        """Real numbers, in single precision unless told."""
        self._add(name, np.asarray(values, kind))

    def counts(self, name: str, values: Any) -> None:
        """Whole numbers from zero on, in the smallest type that holds the largest."""
        numbers = np.asarray(values)
        largest = int(numbers.max()) if numbers.size else 0
        kind = next(k for k in ("uint8", "uint16", "uint32") if largest <= np.iinfo(k).max)
        self._add(name, numbers.astype(kind))

    def _add(self, name: str, values: NDArray[Any]) -> None:
        little = np.ascontiguousarray(values.ravel(), values.dtype.newbyteorder("<"))
        kind, content = TYPES[values.dtype.name], little.tobytes()
        key = kind, hashlib.sha256(content).digest()
        if key not in self.known:
            self.content += bytes(-len(self.content) % ALIGNMENT)
            self.known[key] = kind, len(self.content), little.size
            self.content += content
        self.table[name] = self.known[key]

    def base64(self) -> str:
        """Everything that was packed."""
        return base64.b64encode(self.content).decode("ascii")


def script_json(value: Any) -> str:
    """JSON that can stand in a script element: nothing in it ends the element or begins another."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")

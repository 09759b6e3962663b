"""One name for one thing: no class name is given twice in the package."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

import dfcrp

PACKAGE = Path(dfcrp.__file__).parent


def test_every_class_has_a_name_of_its_own() -> None:
    homes = defaultdict(list)
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                homes[node.name].append(f"{path.relative_to(PACKAGE)}:{node.lineno}")
    assert {name: where for name, where in homes.items() if len(where) > 1} == {}

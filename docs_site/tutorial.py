"""A tutorial: one Markdown page that is read, run, and turned into a notebook.

A page is text with blocks of code. ``sh`` blocks hold commands, ``python`` blocks share their
names from the first to the last, and a ``text`` block after either shows what it printed. Pictures
of a page's end lie in docs/images.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import shlex
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from glob import glob
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
TUTORIALS = ROOT / "docs" / "tutorials"
_BLOCK = re.compile(r"^```(sh|python|text)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    """A piece of a page: ``markdown``, ``sh``, ``python`` or ``text`` (what was printed)."""

    kind: str
    text: str


def pages() -> list[Path]:
    """The tutorials; the page that lists them is none."""
    return sorted(page for page in TUTORIALS.glob("*.md") if page.name != "index.md")


def blocks(page: str) -> list[Block]:
    """Cut a page into its blocks, in order."""
    found, at = [], 0
    for match in _BLOCK.finditer(page):
        if before := page[at : match.start()].strip():
            found.append(Block("markdown", before))
        found.append(Block(match[1], match[2].rstrip("\n")))
        at = match.end()
    if rest := page[at:].strip():
        found.append(Block("markdown", rest))
    return found


def commands(block: Block) -> Iterator[list[str]]:
    """The command lines of an ``sh`` block as words; ``*`` is resolved, as a shell does it."""
    for line in block.text.replace("\\\n", " ").splitlines():
        words = shlex.split(line, comments=True)
        if words:
            yield [
                name
                for word in words
                for name in (sorted(glob(word)) if "*" in word and glob(word) else [word])
            ]


def run(
    page: str, call: Callable[[list[str]], int], names: dict[str, Any] | None = None
) -> list[str]:
    """Run the code of a page in the present folder, and return what each block printed.

    ``call`` runs the words of one command and returns its exit code; ``names`` are known to the
    Python code from the beginning. An exception ends the page; so does a command that fails.
    """
    names = {"__name__": "__main__", **(names or {})}
    printed = []
    for block in blocks(page):
        if block.kind not in ("sh", "python"):
            continue
        with contextlib.redirect_stdout(io.StringIO()) as said:
            if block.kind == "python":
                _run_python(block.text, names)
            else:
                for words in commands(block):
                    if code := call(words):
                        raise RuntimeError(f"{' '.join(words)} ended with {code}")
        printed.append(said.getvalue().strip("\n"))
    return printed


def _run_python(code: str, names: dict[str, Any]) -> None:
    """Run code as a notebook does: an expression on the last line is printed."""
    *before, last = code.rstrip().splitlines()
    try:
        expression = compile(last, "<tutorial>", "eval")
    except SyntaxError:
        exec(compile(code, "<tutorial>", "exec"), names)
        return
    exec(compile("\n".join(before), "<tutorial>", "exec"), names)
    if (value := eval(expression, names)) is not None:
        print(value)


def with_output(page: str, printed: list[str]) -> str:
    """The page with what was printed in its ``text`` blocks; where there is none, none is added."""
    waiting = iter(printed)
    last = ""

    def renewed(match: re.Match[str]) -> str:
        nonlocal last
        if match[1] != "text":
            last = next(waiting)
            return match[0]
        return f"```text\n{last}\n```"

    return _BLOCK.sub(renewed, page)


def notebook(page: str) -> str:
    """The page as a Jupyter notebook; commands become ``!`` lines."""
    cells: list[dict[str, Any]] = []
    for number, block in enumerate(blocks(page)):
        cell: dict[str, Any] = {"id": f"cell-{number}", "metadata": {}}
        if block.kind == "text":
            continue
        if block.kind == "markdown":
            cell |= {"cell_type": "markdown", "source": _without_links(block.text)}
        else:
            source = block.text
            if block.kind == "sh":
                lines = block.text.replace("\\\n", " ").splitlines()
                source = "\n".join(line if line.startswith("#") else f"!{line}" for line in lines)
            cell |= {
                "cell_type": "code", "source": source, "outputs": [], "execution_count": None,
            }  # fmt: skip
        cells.append(cell)
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    whole = {
        "cells": cells,
        "metadata": {"kernelspec": kernel, "language_info": {"name": "python"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    return json.dumps(whole, indent=1, ensure_ascii=False) + "\n"


def _without_links(text: str) -> str:
    """Text whose links to other pages are plain words: a notebook travels alone."""
    text = re.sub(r"!\[([^\]]*)\]\((?!http)[^)]*\)(\{[^}]*\})?", r"*\1*", text)
    return re.sub(r"(?<!!)\[([^\]]+)\]\((?!http)[^)]*\)", r"\1", text)


def call(words: list[str], more: Sequence[str] = ()) -> int:
    """Run ``dfcrp`` in this process, a fit with ``more`` options; ages only with CraterStats."""
    from dfcrp.cli.main import main as dfcrp

    if words[0] != "dfcrp":
        raise ValueError(f"tutorials call dfcrp, not {words[0]}")
    if words[1] == "age" and shutil.which("craterstats") is None:
        return 0
    return dfcrp([*words[1:], *(more if words[1] == "fit" else ())])


def main() -> None:
    """Run the tutorials that are named, or all, and renew what their pages say was printed."""
    wanted = sys.argv[1:]
    for path in pages():
        if wanted and path.stem not in wanted:
            continue
        page = path.read_text(encoding="utf-8")
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            printed = run(page, call)
            os.chdir(ROOT)
        path.write_text(with_output(page, printed), encoding="utf-8")
        print(f"{path.name}: {len(printed)} blocks run")


if __name__ == "__main__":
    main()

"""MkDocs calls these while it builds the site (``hooks`` in mkdocs.yml)."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from docs_site import tutorial  # noqa: E402

#: Pages that lie beside docs/, and what they are called on the site.
BESIDE = {"CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changes.md"}
#: Files beside docs/ that are no page of the site: links to them become their names.
NO_PAGES = ("README.md", "LICENSE", "CITATION.cff")


def on_files(files: Files, config: Any) -> Files:
    """Add the pages beside docs/, and each tutorial as a notebook."""
    for name, page in BESIDE.items():
        text = (ROOT / name).read_text(encoding="utf-8")
        files.append(File.generated(config, page, content=text))
    for path in tutorial.pages():
        content = tutorial.notebook(path.read_text(encoding="utf-8"))
        where = f"tutorials/{path.stem}.ipynb"
        files.append(File.generated(config, where, content=content))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Lead links that leave docs/ to the pages that stand for them; offer the notebooks."""
    here = page.file.src_uri
    if here in BESIDE.values():
        markdown = re.sub(r"\]\(docs/", "](", markdown)
    for name, target in BESIDE.items():
        markdown = re.sub(rf"\]\((?:\.\./)*{re.escape(name)}", f"]({target}", markdown)
    for name in NO_PAGES:
        markdown = re.sub(rf"\[([^\]]+)\]\((?:\.\./)*{re.escape(name)}(#[^)]*)?\)", r"\1", markdown)
    if here.startswith("tutorials/") and here != "tutorials/index.md":
        name = Path(here).stem
        heading, _, rest = markdown.partition("\n")
        offer = f"[This page as a notebook]({name}.ipynb){{ download }}"
        markdown = f"{heading}\n\n{offer}\n{rest}"
    return markdown

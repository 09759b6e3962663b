"""The documentation as a site: it builds strictly, its tutorials run, its notebooks are whole."""

from __future__ import annotations

import importlib.util
import json
import re
from pathlib import Path
from typing import Any

import pytest

import dfcrp
from docs_site import tutorial

ROOT = Path(__file__).resolve().parents[2]
#: Enough to go through every step; the page itself runs until the verdict is good.
SHORT = ("--chains", "2", "--scans", "40", "--no-report")
PAGES = tutorial.pages()


@pytest.fixture
def short_runs(monkeypatch):
    """Runs from Python are short as well."""
    fit = dfcrp.fit

    def short(*data: Any, **settings: Any) -> Any:
        return fit(*data, **{"chains": 2, "scans": 40, **settings})

    monkeypatch.setattr(dfcrp, "fit", short, raising=False)


@pytest.mark.filterwarnings("ignore::dfcrp.errors.DfcrpWarning")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_tutorial_runs_from_data_to_result(page, tmp_path, monkeypatch, short_runs):
    monkeypatch.chdir(tmp_path)
    text = page.read_text(encoding="utf-8")
    printed = tutorial.run(text, lambda words: tutorial.call(words, SHORT))
    code = [block for block in tutorial.blocks(text) if block.kind in ("sh", "python")]
    assert len(printed) == len(code)
    again = tutorial.with_output(text, printed)
    assert [block.kind for block in tutorial.blocks(again)] == [
        block.kind for block in tutorial.blocks(text)
    ]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_tutorial_shows_what_it_prints_and_its_end(page):
    text = page.read_text(encoding="utf-8")
    shown = [block.text for block in tutorial.blocks(text) if block.kind == "text"]
    assert shown
    assert all(shown), "an output is empty; renew it with python -m docs_site.tutorial"
    pictures = re.findall(r"!\[[^\]]+\]\(([^)]+)\)", text)
    assert pictures
    for picture in pictures:
        assert 5_000 < (page.parent / picture).stat().st_size < 200_000, picture


def test_tutorials_can_share_a_folder():
    """Their notebooks are saved into one folder of downloads: each has a run folder of its own."""
    texts = [page.read_text(encoding="utf-8") for page in PAGES]
    used = [
        name for text in texts for name in set(re.findall(r"(?m)^dfcrp fit.* --out (\S+)", text))
    ]
    assert len(used) >= 4
    assert len(used) == len(set(used))


def test_a_command_that_fails_ends_the_tutorial(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(RuntimeError, match="dfcrp fit"):
        tutorial.run("```sh\ndfcrp fit nothing.csv --out run\n```\n", tutorial.call)
    with pytest.raises(NameError):
        tutorial.run("```python\nunknown\n```\n", tutorial.call)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_notebook_has_the_code_of_its_page(page):
    text = page.read_text(encoding="utf-8")
    book = json.loads(tutorial.notebook(text))
    cells = ["".join(cell["source"]) for cell in book["cells"] if cell["cell_type"] == "code"]
    code = [block for block in tutorial.blocks(text) if block.kind in ("sh", "python")]
    assert len(cells) == len(code)
    for cell, block in zip(cells, code, strict=True):
        assert cell.replace("!dfcrp", "dfcrp") == block.text
    nbformat = pytest.importorskip("nbformat", reason="nbformat is not installed")
    nbformat.validate(nbformat.reads(json.dumps(book), as_version=4))


@pytest.mark.skipif(importlib.util.find_spec("mkdocs") is None, reason="MkDocs is not installed")
def test_the_site_builds_without_a_warning(tmp_path, monkeypatch):
    """Links, anchors and the API are checked on the way; nothing is fetched when it is read."""
    from mkdocs.commands.build import build
    from mkdocs.config import load_config

    monkeypatch.setenv("NO_MKDOCS_2_WARNING", "1")
    site = tmp_path / "site"
    config = load_config(str(ROOT / "mkdocs.yml"), site_dir=str(site), strict=True)
    build(config)
    page = (site / "tutorials" / "craters.html").read_text(encoding="utf-8")
    assert "craters.ipynb" in page
    assert (site / "tutorials" / "craters.ipynb").is_file()
    api = (site / "reference" / "api.html").read_text(encoding="utf-8")
    assert "to_arviz" in api
    plain = re.sub(r"<[^>]+>|\s", "", api)
    assert "thin:int=1,max_scans:int=20000,max_minutes:float|None=None" in plain
    fetched = re.compile(r"<(?:script|img|link)[^>]+(?:src|href)=\"?https?://")
    for html in site.rglob("*.html"):
        assert not fetched.search(html.read_text(encoding="utf-8")), html.name


def test_every_page_has_its_place():
    """The navigation names every page of docs/ once."""
    text = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").split("\nnav:")[1]
    named = re.findall(r"[\w/-]+\.md", text)
    there = {path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")}
    there = {path for path in there if not path.startswith("measurements/")}
    assert len(named) == len(set(named))
    assert set(named) == there | {"contributing.md", "changes.md"}

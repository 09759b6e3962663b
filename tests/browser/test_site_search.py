"""The documentation's site, opened as a file: its search finds pages, without a network."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.skipif(importlib.util.find_spec("mkdocs") is None, reason="MkDocs is not installed")
def test_the_search_works_in_a_file(browser, tmp_path, monkeypatch):
    from mkdocs.commands.build import build
    from mkdocs.config import load_config

    monkeypatch.setenv("NO_MKDOCS_2_WARNING", "1")
    build(load_config(str(ROOT / "mkdocs.yml"), site_dir=str(tmp_path / "site"), strict=True))
    page = browser.new_page()
    fetched = []
    page.on("request", lambda asked: fetched.append(asked.url))
    page.goto((tmp_path / "site" / "tutorials" / "craters.html").as_uri())
    page.keyboard.press("/")
    page.keyboard.type("isochron")
    first = page.locator(".md-search-result__link").first
    first.wait_for(timeout=10_000)
    assert "/ages.html" in first.get_attribute("href")
    page.close()
    assert [url for url in fetched if not url.startswith(("file:", "data:", "about:"))] == []

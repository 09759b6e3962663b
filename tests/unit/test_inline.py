"""The explorer inside a notebook: a frame that holds the whole page."""

from __future__ import annotations

import html
import re

import pytest

from dfcrp.errors import InputError
from dfcrp.report.explorer.embed import SCRIPT_HASH
from reference.kind_posteriors import KINDS, kind_posterior


@pytest.mark.parametrize("kind", KINDS)
def test_a_notebook_gets_the_page_in_a_frame(kind, tmp_path):
    shown = kind_posterior(kind).explore(height=500)
    frame = shown._repr_html_()
    [inside] = re.findall(r'srcdoc="([^"]*)"', frame)
    assert html.unescape(inside) == shown.page
    assert "height: 500px" in frame
    assert f"sha256-{SCRIPT_HASH}" in shown.page
    assert 'id="explorer-about"' in shown.page
    assert shown.save(tmp_path / "map.html").read_text(encoding="utf-8") == shown.page


def test_of_several_images_one_is_chosen():
    with pytest.raises(InputError, match=r"posterior\['.*'\]\.explore\(\)"):
        kind_posterior("points", images=("a", "b")).explore()

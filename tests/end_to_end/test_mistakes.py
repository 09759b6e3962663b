"""The page of common mistakes shows what the command prints."""

from __future__ import annotations

import warnings

import pytest

from docs_site.mistakes import MISTAKES, PAGE, Mistake, make, section

WRONG_INPUT = 2
LEAST = 20


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake.title)
def test_the_page_says_what_dfcrp_says(mistake: Mistake) -> None:
    """``./run python -m docs_site.mistakes`` renews the page after a message was changed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        code, said = make(mistake)
    assert code == (WRONG_INPUT if mistake.refused else 0)
    assert said, "dfcrp says nothing of this mistake"
    assert section(mistake, said) in PAGE.read_text(encoding="utf-8")


def test_the_page_has_nothing_else() -> None:
    """Each of the mistakes once."""
    titles = [mistake.title for mistake in MISTAKES]
    page = PAGE.read_text(encoding="utf-8").splitlines()
    assert [line[3:] for line in page if line.startswith("## ")] == titles
    assert len(set(titles)) == len(titles) >= LEAST

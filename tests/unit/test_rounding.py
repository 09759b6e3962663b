"""One rule for numbers: a mean lies in its interval, and both are shown with the same digits."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dfcrp.rounding import Estimate, estimate, estimate_of, interval
from dfcrp.summaries.streaming import summarise

NUMBERS = st.floats(-1e6, 1e6)


@pytest.mark.parametrize(
    ("given", "digits", "shown"),
    [
        ((33.007, 33.0, 34.0), None, "33.0 (33 to 34)"),
        ((151.0, 151.0, 151.0), None, "151 (151 to 151)"),
        ((41.26, 34.0, 53.0), None, "41.3 (34 to 53)"),
        ((33.3333, 33.333, 33.3338), 2, "33.333 (33.333 to 33.334)"),
        ((33.338, 33.3331, 33.3349), 2, "33.335 (33.333 to 33.335)"),
        ((0.1, 0.1, 0.1), 2, "0.10 (0.10 to 0.10)"),
        ((1234.5, 1200.25, 1300.75), None, "1,234 (1,200 to 1,301)"),
        ((0.00123, 0.00112, 0.00135), None, "0.00123 (0.00112 to 0.00135)"),
        ((np.nan, np.nan, np.nan), None, "– (–)"),
        ((2.0, 3.0, 4.0), None, "3.0 (3 to 4)"),
    ],
)
def test_what_is_shown(given, digits, shown):
    assert str(estimate(*given, digits)) == shown


def as_number(text: str) -> float:
    return float(text.replace(",", ""))


@given(st.lists(NUMBERS, min_size=3, max_size=3), st.sampled_from([None, 0, 2, 3]))
def test_the_mean_shown_is_in_the_interval_shown(values, digits):
    lo, mean, hi = sorted(values)
    found = estimate(mean, lo, hi, digits)
    assert as_number(found.lo) <= as_number(found.mean) <= as_number(found.hi)


@given(st.lists(st.integers(0, 60), min_size=1, max_size=300))
def test_an_interval_of_counts_holds_their_mean(counts):
    found = summarise(np.array(counts))
    assert found.lo <= found.mean <= found.hi
    assert float(found.lo).is_integer()
    assert float(found.hi).is_integer()
    assert isinstance(estimate_of(found.as_dict()), Estimate)


def test_a_mean_that_few_far_draws_pull_out_of_the_interval():
    """33 in 993 draws of 1,000, and 34 in 7: it used to say 33.007 (33 to 33)."""
    found = summarise(np.repeat([33, 34], [993, 7]))
    assert (found.lo, found.hi) == (33.0, 34.0)
    values = np.concatenate([np.ones(995), np.full(5, 1e6)])
    assert summarise(values).hi >= values.mean()


def test_undefined_numbers_stay_so():
    assert np.isnan(summarise(np.full((4, 2), np.nan)).hi).all()
    assert interval(None, 1.0) == "–"


def test_no_page_or_line_rounds_an_interval_by_itself():
    """Whoever formats both ends of an interval does so through ``dfcrp.rounding``."""
    from pathlib import Path

    import dfcrp

    root = Path(dfcrp.__file__).parent
    by_hand = re.compile(r"""\{[^{}]*(\blo\b|_lo\b|\["lo"\]|\['lo'\])[^{}]*:[,.\d]*[fg]\}""")
    found = [
        f"{path.relative_to(root)}: {line.strip()}"
        for path in root.rglob("*.py")
        for line in path.read_text(encoding="utf-8").splitlines()
        if by_hand.search(line)
    ]
    assert not found

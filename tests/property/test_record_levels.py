"""Whatever two texts are: how they differ does not depend on which of them comes first."""

from __future__ import annotations

import numpy as np
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from dfcrp.likelihoods.record.fields import encode_fields
from dfcrp.likelihoods.record.levels import SHORT, LevelComparison
from reference import record_reference as twin

# Compiling may fall into the first example.
PROFILE = settings(
    max_examples=300, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
#: Words of few letters, long ones among them, so that many are similar or abbreviate one another.
WORD = st.text("srtab", min_size=1, max_size=9)
TEXT = st.lists(WORD, min_size=1, max_size=4).map(" ".join)
GREEDY = ("sareta sb", "sarexxeta saretb")


def levels(one: str, other: str) -> list[int]:
    """Both ways."""
    field = encode_fields({"name": np.array([one, other])}, {"name": "string"}).fields[0]
    code = {value: at for at, value in enumerate(field.values)}
    pair = [code[one], code[other]]
    return LevelComparison(field).levels(np.array([pair, pair[::-1]])).tolist()


@PROFILE
@given(TEXT, TEXT)
@example(*GREEDY)
def test_levels_are_symmetric(one, other):
    if one == other:
        return
    there, back = levels(one, other)
    assert there == back
    words = one.split(), other.split()
    assert twin.level_of_parts(*words) == twin.level_of_parts(*words[::-1])


def test_one_side_alone_is_not_symmetric():
    """Planted: the words of the first text choose."""
    one, other = (text.split() for text in GREEDY)
    found = [twin.level_by_choice(one, other), twin.level_by_choice(other, one)]
    assert found == [0, SHORT]
    assert levels(*GREEDY) == [SHORT, SHORT]

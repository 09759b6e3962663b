"""Words of strings against their slow twins, on words that differ in every way there is."""

from __future__ import annotations

import numpy as np
import pytest

from dfcrp.likelihoods.record import levels
from dfcrp.likelihoods.record.levels import words_of
from reference import record_reference as twin

#: The last one is how others begin: after its letters there are none.
WORDS = [
    "sareta", "sareta", "saretb", "aareta", "sarea", "saretaa", "sarreta", "xsareta", "areta",
    "sraeta", "asreta", "sareat", "saerta", "aserat", "stera", "sar", "st", "s", "sa", "saret",
    "sarex", "saxet", "abcde", "abced", "bacde", "abxde", "abcdef", "abcd", "a", "b", "sareta1",
    "sareta",
]  # fmt: skip


def test_pairs_of_words():
    words = words_of(WORDS)
    for a, one in enumerate(WORDS):
        for b, other in enumerate(WORDS):
            assert bool(levels.abbreviates(words, a, b)) == twin.abbreviates(one, other)
            found = bool(levels.one_error(words, a, b))
            assert found == twin.one_error(one, other), (one, other)
            assert bool(levels.same_letters(words, words.start[a], words.start[b], 1)) == (
                one[0] == other[0]
            )


@pytest.mark.parametrize("taken", [(), (1,), (0, 1)])
def test_the_word_that_is_found(taken):
    texts = ["sareta", "sareta abcde saretaa sar sareta"]
    words = words_of(texts)
    begin, end = words.first[1], words.first[2]
    listed = texts[1].split()
    at = {w: [begin + i for i, x in enumerate(listed) if x == w] for w in listed}
    words.taken[: end - begin] = 0
    places = at["sareta"]
    for number in taken:
        words.taken[places[number] - begin] = 1
    free = [place for number, place in enumerate(places) if number not in taken]
    assert levels.same_word(words, 0, begin, end) == (free[0] if free else -1)
    # With one error: the longest, whatever was the same.
    assert levels.similar_word(words, 0, begin, end, False) == at["saretaa"][0]
    words.taken[at["saretaa"][0] - begin] = 1
    assert levels.similar_word(words, 0, begin, end, True) == at["sar"][0]
    words.taken[at["sar"][0] - begin] = 1
    assert levels.similar_word(words, 0, begin, end, True) == -1


def test_the_first_of_all_words_is_a_word():
    """Its number is 0. Of equally long words the first is taken."""
    words = words_of(["saretaa sareta saretac", "saretab", "saretad"])
    words.taken[:] = 0
    assert levels.similar_word(words, 3, 0, 3, False) == 0
    assert levels.similar_word(words, 4, 0, 3, False) == 0
    words.taken[0] = 1
    assert levels.similar_word(words, 3, 0, 3, False) == 2


@pytest.mark.parametrize(
    ("one", "other", "level"),
    [
        ("sareta abcde zzzzz", "saretb abcde", levels.PARTS),
        ("sareta abcde", "saretb abcde", levels.ORDER),
        # "sareta" would choose "saretb", and leave none to "sb"; but "sarexxeta" may choose, too:
        # "sareta" abbreviates it, and "sb" is left to "saretb".
        ("sareta sb", "sarexxeta saretb", levels.SHORT),
        ("sarexxeta saretb", "sareta sb", levels.SHORT),
        # Both may choose, one of them better.
        ("b bssbsba bssssba", "b bssbsb bssssba", levels.ORDER),
        ("b bssbsb bssssba", "b bssbsba bssssba", levels.ORDER),
        ("assb sasbba bbasas", "assbba sasbba bbasas", levels.SHORT),
    ],
)
def test_levels_of_two(one, other, level):
    out = np.full(1, -1, np.int64)
    levels.levels_of_words(words_of([one, other]), np.array([0]), np.array([1]), out)
    assert out[0] == level == twin.level_of_parts(one.split(), other.split())


def test_levels_of_lists():
    rng = np.random.default_rng(9)
    texts = ["", "sareta", "sareta abcde", "abcde sareta", "s abcde", "sareta abcde st x y"]
    pool = [
        "sareta",
        "saretb",
        "abcde",
        "abced",
        "st",
        "s",
        "stone",
        "q",
        "zzzzz",
        "yyyyy",
        "wwwww",
    ]
    for _ in range(60):
        texts.append(" ".join(rng.choice(pool, rng.integers(1, 7))))
    words = words_of(texts)
    pairs = rng.integers(len(texts), size=(400, 2))
    pairs[: len(texts), 0] = np.arange(len(texts))
    first, second = pairs.T.copy()
    out = np.full(len(pairs), -1, np.int64)
    levels.levels_of_words(words, first, second, out)
    expected = [twin.level_of_parts(texts[a].split(), texts[b].split()) for a, b in pairs]
    assert out.tolist() == expected
    assert len(set(expected)) == 5

"""How two strings differ: typing errors between them, and the words that they have in common."""

from __future__ import annotations

from typing import NamedTuple

from dfcrp.compiled.abi import I8, I8x2, frame
from dfcrp.compiled.jit import entry_kernel, inline_kernel, lean_kernel

#: Levels of two lists of words: the same in another order or with other signs; some abbreviated;
#: some left out; only half of them in common.
ORDER, SHORT, PARTS, COMMON = 5, 6, 7, 10
#: Words that may be left out, and the length from which a word may have a typing error.
MOST_LEFT_OUT, LONG = 2, 5
#: Words that must be in common at least, where not every word stands for another.
LEAST_COMMON = 2


@frame
class Words(NamedTuple):
    """The words of all strings, one after the other."""

    letters: I8  # by letter
    start: I8  # by word: where its letters begin, and at last where the last one ends
    first: I8  # by string: where its words begin, and at last where the last one's end
    order: I8  # by word: the string's words by length, the longest first
    taken: I8  # room for the words of one string


@entry_kernel
def edit_distances(text: I8, start: I8, first: I8, second: I8, most: int, rows: I8x2, out: I8):
    """For each pair: insertions, deletions, replacements and swaps of neighbours between them.

    String s is ``text[start[s]:start[s + 1]]``. Distances above ``most`` are given as most + 1;
    ``rows`` is room for three rows of the table, one longer than the longest string.
    """
    for pair in range(first.shape[0]):
        a, b = start[first[pair]], start[second[pair]]
        n, m = start[first[pair] + 1] - a, start[second[pair] + 1] - b
        if abs(n - m) > most:
            out[pair] = most + 1
            continue
        for j in range(m + 1):
            rows[0, j] = j
        for i in range(1, n + 1):
            now, last, older = i % 3, (i - 1) % 3, (i - 2) % 3
            rows[now, 0] = i
            for j in range(1, m + 1):
                same = text[a + i - 1] == text[b + j - 1]
                best = rows[last, j - 1] + (0 if same else 1)
                best = min(best, rows[last, j] + 1, rows[now, j - 1] + 1)
                if (
                    i > 1
                    and j > 1
                    and text[a + i - 1] == text[b + j - 2]
                    and text[a + i - 2] == text[b + j - 1]
                ):
                    best = min(best, rows[older, j - 2] + 1)
                rows[now, j] = best
        out[pair] = min(rows[n % 3, m], most + 1)


@entry_kernel
def levels_of_words(words: Words, first: I8, second: I8, out: I8):
    """For each pair of strings: a level of words, or 0 if their words do not go together.

    Each word of the one with fewer should stand for one of the other: it is the same, has one
    typing error, or one of the two abbreviates the other. The longest choose first. Where some do
    not, the level is COMMON if those that do, abbreviations aside, are half of the longer list. Of
    as many words either side chooses once, and the lesser level counts, so that the order of the
    two makes no difference.
    """
    for pair in range(first.shape[0]):
        one, other = first[pair], second[pair]
        fewer = words.first[one + 1] - words.first[one]
        more = words.first[other + 1] - words.first[other]
        if fewer > more:
            one, other, fewer, more = other, one, more, fewer
        needed = max(LEAST_COMMON, (more + 1) // 2)
        if fewer == 0 or (more - fewer > MOST_LEFT_OUT and fewer < needed):
            out[pair] = 0
        else:
            found = level_of_words(words, one, other, more - fewer, needed)
            if 1 < fewer == more:
                turned = level_of_words(words, other, one, 0, needed)
                found = min(found, turned) if min(found, turned) > 0 else max(found, turned)
            out[pair] = found


@lean_kernel
def level_of_words(words, one, other, left, needed):
    """The level of a string with fewer words than another, which has ``left`` more.

    ``needed`` are the words in common that will do where not every one stands for another.
    """
    begin, end = words.first[other], words.first[other + 1]
    for place in range(end - begin):
        words.taken[place] = 0
    short, known, lost = False, 0, 0
    may_be_lost = words.first[one + 1] - words.first[one] - needed
    for at in range(words.first[one], words.first[one + 1]):
        word = words.order[at]
        match = same_word(words, word, begin, end)
        if match >= 0:
            known += 1 if length_of(words, word) > 1 else 0
        else:
            match = similar_word(words, word, begin, end, False)
            if match >= 0:
                known += 1
            else:
                match, short = similar_word(words, word, begin, end, True), True
        if match >= 0:
            words.taken[match - begin] = 1
            continue
        lost += 1
        if lost > may_be_lost:
            return 0
    if lost > 0 or left > MOST_LEFT_OUT:
        return COMMON if known >= needed else 0
    if left > 0:
        return PARTS if known > 0 else 0
    return SHORT if short else ORDER


@inline_kernel
def length_of(words, word):
    """Of a word."""
    return words.start[word + 1] - words.start[word]


@inline_kernel
def same_letters(words, a, b, count):
    """Whether so many letters from a and from b on are the same."""
    for step in range(count):
        if words.letters[a + step] != words.letters[b + step]:
            return False
    return True


@lean_kernel
def same_word(words, word, begin, end):
    """The first of the words that is the same and not taken, or -1."""
    size = length_of(words, word)
    for found in range(begin, end):
        free = words.taken[found - begin] == 0 and length_of(words, found) == size
        if free and same_letters(words, words.start[word], words.start[found], size):
            return found
    return -1


@lean_kernel
def similar_word(words, word, begin, end, abbreviated):
    """The longest of the words, not taken, with one error or that abbreviates or is so; or -1."""
    best = -1
    for found in range(begin, end):
        if words.taken[found - begin]:
            continue
        if best >= 0 and length_of(words, found) <= length_of(words, best):
            continue
        if abbreviated:
            like = abbreviates(words, word, found) or abbreviates(words, found, word)
        else:
            like = one_error(words, word, found)
        if like:
            best = found
    return best


@lean_kernel
def abbreviates(words, short, word):
    """Whether a word has letters of the other, in order and from the first on: "st", "saint"."""
    a, b = words.start[short], words.start[word]
    size, longer = length_of(words, short), length_of(words, word)
    if size >= longer or words.letters[a] != words.letters[b]:
        return False
    step = 0
    for at in range(longer):
        if step < size and words.letters[a + step] == words.letters[b + at]:
            step += 1
    return step == size


@lean_kernel
def one_error(words, one, other):
    """Whether two long words differ by one typing error."""
    a, b = words.start[one], words.start[other]
    n, m = length_of(words, one), length_of(words, other)
    if min(n, m) < LONG or abs(n - m) > 1:
        return False
    at = 0
    while at < n and at < m and words.letters[a + at] == words.letters[b + at]:
        at += 1
    a, b, n, m = a + at, b + at, n - at, m - at
    if n > m:
        return same_letters(words, a + 1, b, m)
    if m > n:
        return same_letters(words, a, b + 1, n)
    if n < 2 or same_letters(words, a + 1, b + 1, n - 1):
        return True
    swapped = words.letters[a] == words.letters[b + 1] and words.letters[a + 1] == words.letters[b]
    return swapped and same_letters(words, a + 2, b + 2, n - 2)

"""How many typing errors lie between two strings."""

from __future__ import annotations

from dfcrp.compiled.abi import I8, I8x2
from dfcrp.compiled.jit import entry_kernel


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

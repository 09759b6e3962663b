"""Random changes of inputs, without coverage: for targets that atheris does not serve."""

from __future__ import annotations

import random
from collections.abc import Sequence

#: Numbers at which programs break.
_EDGES = (
    *(b"0", b"-1", b"1e308", b"-1e308", b"nan", b"inf", b"null", b"[]", b"{}", b'""'),
    *(b"2147483648", b"9223372036854775808", b"1e-320", b"9" * 40, b"[" * 60, b"true"),
)
LONGEST = 1 << 16


def mutated(rng: random.Random, inputs: Sequence[bytes], words: Sequence[bytes]) -> bytes:
    """One of the inputs with one to six changes."""
    data = bytearray(rng.choice(inputs))
    for _ in range(rng.randint(1, 6)):
        _change(rng, data, inputs, words)
    return bytes(data[:LONGEST])


def _change(
    rng: random.Random, data: bytearray, inputs: Sequence[bytes], words: Sequence[bytes]
) -> None:
    at = rng.randint(0, len(data))
    end = min(len(data), at + int(rng.paretovariate(0.7)))
    way = rng.randrange(7)
    if way == 0 and data:
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    elif way == 1:
        del data[at:end]
    elif way == 2:
        data[at:at] = data[at:end] * rng.randint(1, 3)
    elif way == 3:
        data[at:end] = rng.choice([*_EDGES, *words])
    elif way == 4:
        other = rng.choice(inputs)
        start = rng.randint(0, len(other))
        data[at:end] = other[start : start + rng.randint(0, 80)]
    elif way == 5:
        data[at:at] = bytes(rng.randrange(256) for _ in range(rng.randint(1, 8)))
    else:
        del data[at:]

"""What people decided about items: whether they mark something real.

An item of which people said that it is *real* is of an object: neither a decoy nor a false mark.
One that is *not real* is a decoy, or a false mark. A factor is a sum over what its cluster may be,
of which the word leaves some parts out. No item that is real and none that is not are neighbours,
and where there are no decoys what is not real has no neighbours: so something is always left.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from dfcrp.compiled.jit import inline_kernel

#: The words.
UNDECIDED, REAL, UNREAL = 0, 1, 2


def words_of(reality: NDArray[np.int8] | None) -> NDArray[np.int8]:
    """The word on each item, where 1 stands for real and −1 for not; none if nothing is decided."""
    if reality is None or not reality.any():
        return np.empty(0, np.int8)
    return np.where(reality < 0, UNREAL, reality).astype(np.int8)


def allowed_classes(real: int, classes: int, columns: int) -> NDArray[np.float64]:
    """What is added to the log weights of the classes by each word."""
    found = np.zeros((3, columns))
    found[REAL, real:] = -math.inf
    found[UNREAL, :real] = found[UNREAL, classes:] = -math.inf
    return found


@inline_kernel
def word_of(prior, item):
    """The word on an item, by its place in the input."""
    return prior.word[item] if prior.word.shape[0] > 0 else UNDECIDED


@inline_kernel
def is_decided(prior, item):
    """Whether there is a word on an item."""
    return word_of(prior, item) != UNDECIDED


@inline_kernel
def within_word(prior, item, first, second, third, fourth):
    """Log weights of the classes, −∞ where the word on an item leaves them out."""
    if is_decided(prior, item):
        allowed = prior.allowed[prior.word[item]]
        first, second = first + allowed[0], second + allowed[1]
        third, fourth = third + allowed[2], fourth + allowed[3]
    return first, second, third, fourth

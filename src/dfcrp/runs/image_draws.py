"""One image of many: what its chains drew, and where they stand."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dfcrp.draws import Columns, DrawBlock
from dfcrp.errors import RunFolderError
from dfcrp.sampling.chain import Chain


class ChainState(NamedTuple):
    """Where a chain stands: its state arrays as one, its generators, its scans."""

    content: NDArray[np.int32]
    generators: list[dict[str, Any]]
    scans: int

    @classmethod
    def of(cls, chain: Chain) -> ChainState:
        """Take a chain's state."""
        arrays, generators = chain.snapshot()
        content = b"".join(array.tobytes() for array in arrays.values())
        padded = content + bytes(-len(content) % 4)
        return cls(np.frombuffer(padded, np.int32), generators, chain.scans)

    def restore(self, chain: Chain) -> None:
        """Bring a chain of the same problem to this state."""
        content, arrays, start = self.content.tobytes(), chain.snapshot()[0], 0
        if len(content) - sum(array.nbytes for array in arrays.values()) not in range(4):
            raise RunFolderError("the state of a chain does not fit this run")
        for array in arrays.values():
            part = np.frombuffer(content, array.dtype, array.size, start)
            array[...] = part.reshape(array.shape)
            start += array.nbytes
        chain.restore(arrays, self.generators)


class ImageDraws(NamedTuple):
    """What an image's chains drew, each of them as one block, and where they stand."""

    image: int
    columns: Columns
    chains: list[DrawBlock]
    states: list[ChainState]
    seconds: float
    #: Draws of each chain before these.
    before: list[int]

    @property
    def nbytes(self) -> int:
        """Bytes before compression."""
        return sum(array.nbytes for chain in self.chains for array in chain)


def no_draws(n_markings: int, columns: Columns) -> DrawBlock:
    """A block of no draws."""
    return DrawBlock(
        labels=np.zeros((0, n_markings), np.int32),
        alpha=np.zeros(0),
        offsets=np.zeros(1, np.int64),
        cluster_labels=np.zeros(0, np.int32),
        parameters=np.zeros((0, len(columns.parameters)), np.float32),
        shared=np.zeros((0, columns.width)),
    )

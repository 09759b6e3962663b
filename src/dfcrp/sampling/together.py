"""Chains that advance together and stop together, wherever they are run."""

from __future__ import annotations

import threading
from typing import Generic, Protocol, TypeVar


class Advancing(Protocol):
    """A chain, here or on another machine."""

    @property
    def scans(self) -> int:
        """Scans done since the start."""


OneChain = TypeVar("OneChain", bound=Advancing)


class Together(Generic[OneChain]):
    """What all runners share; ``advance`` and ``restore`` are theirs."""

    def __init__(self, chains: list[OneChain]) -> None:
        self.chains = chains
        #: Time spent in ``advance``, and before that if a run is resumed.
        self.seconds = 0.0
        self._stop = threading.Event()

    @property
    def scans(self) -> int:
        """Scans that every chain has done."""
        return min(chain.scans for chain in self.chains)

    @property
    def most_scans(self) -> int:
        """Scans of the chain that is furthest ahead."""
        return max(chain.scans for chain in self.chains)

    @property
    def stopped(self) -> bool:
        """Whether a stop was asked for."""
        return self._stop.is_set()

    def stop(self) -> None:
        """Let every chain finish its block and return."""
        self._stop.set()

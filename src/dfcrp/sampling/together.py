"""Chains that advance together and stop together, wherever they are run."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Protocol


class Advancing(Protocol):
    """A chain, here or elsewhere."""

    @property
    def scans(self) -> int:
        """Scans done since the start."""


class Together:
    """What all runners share; ``advance`` and ``restore`` are theirs."""

    def __init__(self, chains: Sequence[Advancing]) -> None:
        #: Time spent in ``advance``, and before that if a run is gone on with.
        self.seconds = 0.0
        self._advancing = chains
        self._stop = threading.Event()

    @property
    def scans(self) -> int:
        """Scans that every chain has done."""
        return min(chain.scans for chain in self._advancing)

    @property
    def most_scans(self) -> int:
        """Scans of the chain that is furthest ahead."""
        return max(chain.scans for chain in self._advancing)

    @property
    def stopped(self) -> bool:
        """Whether a stop was asked for."""
        return self._stop.is_set()

    def stop(self) -> None:
        """Let every chain finish its block and return."""
        self._stop.set()

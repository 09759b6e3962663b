"""How the draws of a run came about."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class RunRecord:
    """How long the chains ran, and what of it counts."""

    scans: int
    burn_in: int
    thin: int
    seconds: float
    stopped_early: bool = False
    #: Proposals and acceptances of each chain, by kind of move.
    tallies: list[dict[str, int]] = field(default_factory=list)

"""The highlands markings for the studies: a file, or a generated stand-in that says so."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dfcrp.errors import DfcrpWarning
from dfcrp.io import read_markings
from dfcrp.items.items import Items
from dfcrp.simulate import highlands_like
from studies import paper_figures as paper


@dataclass(frozen=True)
class Highlands:
    """Markings to be fitted, all of them for DBSCAN, and where they came from."""

    #: The experts' markings of at least 18 px.
    markings: Items
    #: Smaller ones too, as R14 clustered them before the cut.
    everything: Items
    real: bool

    @property
    def note(self) -> str:
        """One sentence for the top of every output."""
        if self.real:
            names = ", ".join(source.file for source in self.markings.sources)
            return f"Data: {names}, {len(self.markings):,} markings by {self.n_experts} experts."
        return (
            f"Data: a GENERATED STAND-IN ({len(self.markings):,} markings by {self.n_experts} "
            "experts, `dfcrp.simulate.highlands_like`), because no --data file was given. The "
            "paper's figures are of the real image; agreement with them cannot be expected."
        )

    @property
    def n_experts(self) -> int:
        """Number of lists."""
        return len(self.markings.experts)

    def letter(self, expert: str) -> str:
        """The paper's letter for an expert; the name itself if it has none."""
        letters = {name: letter for letter, name in paper.EXPERT_NAMES.items()}
        return letters.get(expert, expert)


def load_highlands(
    data: Path | None,
    *,
    seed: int = 1,
    scale: float = 1.0,
    min_diameter: float = paper.HIGHLANDS_MIN_DIAMETER_PX,
    exclude_experts: Sequence[str] = (),
) -> Highlands:
    """Read the R14 file (without R14's own merged list), or generate a stand-in."""
    if data is None:
        generated = highlands_like(seed, scale)
        return Highlands(generated, generated, real=False)
    with warnings.catch_warnings():
        # A first look at the names; what is wrong with the lists that stay is said below.
        warnings.simplefilter("ignore", DfcrpWarning)
        present = read_markings(data).experts
    left_out = [*exclude_experts, *(name for name in present if name == paper.CONSENSUS_OBSERVER)]
    return Highlands(
        markings=read_markings(data, min_diameter=min_diameter, exclude_experts=left_out),
        everything=read_markings(data, exclude_experts=left_out),
        real=True,
    )


def reduced(markings: Items) -> Items:
    """The part of the highlands image that the paper calls the reduced data set."""
    inside = np.ones(len(markings), dtype=bool)
    for axis, (low, high) in paper.REDUCED_WINDOW.items():
        values = getattr(markings, axis)
        inside &= (values >= low) & (values <= high)
    return markings.select(inside)

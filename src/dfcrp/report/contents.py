"""What the report is made from: every summary, computed once and shared by all sections."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dfcrp.plots.flat import flat_map, flat_map_or_none
from dfcrp.plots.underlay import Underlay, configured_underlay, read_underlay
from dfcrp.posterior.explain import Explanation, explain
from dfcrp.summaries.consensus import ConsensusCounts
from dfcrp.summaries.membership import UNDECIDED


@dataclass
class Contents:
    """A posterior, its image and DBSCAN's answer, and what follows from them."""

    #: An ImagesPosterior does for what is said about all of many images.
    posterior: Any
    image: Any = None
    #: DBSCAN's labels, or {min_experts: labels}.
    dbscan: Any = None

    @property
    def of_circles(self) -> bool:
        """Whether the items are circles: much of the page is about their diameters."""
        return bool(self.posterior.config.run.likelihood == "circles")

    @cached_property
    def summary(self) -> dict[str, Any]:
        """As in summary.json."""
        return self.posterior.summary()

    @cached_property
    def catalogue(self) -> Any:
        """As in catalogue.csv."""
        return self.posterior.catalogue()

    @cached_property
    def underlay(self) -> Underlay | None:
        """The image given, or else that of the settings, read once."""
        placed = flat_map_or_none(self.posterior.markings)
        if placed is None:
            return None
        y = placed.y
        if self.image is None:
            return configured_underlay(self.posterior.config.image, y)
        return read_underlay(self.image, y)

    @property
    def knows_reality(self) -> bool:
        """Whether the prior says what is real."""
        return bool(self.posterior.config.run.prior == "detection")

    @property
    def by_threshold(self) -> bool:
        """Whether the page counts by number of experts: not, unless asked, if it knows better."""
        return not self.knows_reality or self.posterior.config.summary.side_by_side

    @property
    def min_experts(self) -> int:
        """Experts that make a consensus."""
        return self.posterior.config.summary.min_experts

    @cached_property
    def place_digits(self) -> int:
        """Decimals of a coordinate."""
        return flat_map(self.posterior.markings).digits

    @cached_property
    def size_digits(self) -> int:
        """Decimals of a diameter: three digits of a typical one."""
        typical = float(np.median(self.posterior.markings.diameter))
        return int(max(2 - np.floor(np.log10(typical)), 0))

    @cached_property
    def counts(self) -> ConsensusCounts:
        """Consensus clusters of every draw."""
        return self.posterior.consensus_counts((self.min_experts,))

    @cached_property
    def undecided(self) -> NDArray[np.int64]:
        """Markings that are not sure of their cluster, least sure first."""
        p_member = self.posterior.membership.p_member
        found = np.flatnonzero(p_member < UNDECIDED)
        return found[np.argsort(p_member[found], kind="stable")]

    @cached_property
    def doubles(self) -> Any:
        """Markings that may be a second one of an object by the same expert."""
        return self.posterior.suspected_doubles()

    @cached_property
    def example(self) -> Explanation | None:
        """The least certain marking, explained; None if all are as good as certain."""
        return explain(self.posterior, int(self.undecided[0])) if self.undecided.size else None

    @cached_property
    def has_singletons(self) -> bool:
        """Whether any marking is more likely alone than not."""
        return bool((self.posterior.expert_summary.alone >= 0.5).any())

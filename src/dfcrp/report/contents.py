"""What the report is made from: every summary, computed once and shared by all sections."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dfcrp.craterstats import Isochrons
from dfcrp.markup import Markup, plural
from dfcrp.plots.flat import flat_map, flat_map_or_none
from dfcrp.plots.underlay import (
    Underlay,
    configured_underlay,
    frame_of,
    places_of,
    read_underlay,
)
from dfcrp.posterior.explain import Explanation, explain
from dfcrp.summaries.consensus import ConsensusCounts
from dfcrp.summaries.membership import UNDECIDED
from dfcrp.values import Json

if TYPE_CHECKING:
    import pandas

    from dfcrp.posterior.posterior import Posterior
    from dfcrp.values import Array

#: Columns of a catalogue that do not describe the object itself, and ends of those that say how
#: sure a number is.
ABOUT = (
    "cluster",
    "image",
    "n_experts",
    "p_consensus",
    "experts",
    "stability",
    "p_real",
    "p_category",
)
ENDS = ("_sd", "_lo", "_hi")


@dataclass
class Contents:
    """A posterior, its image and DBSCAN's answer, and what follows from them.

    Sections take it as their one argument, those of likelihoods and priors too.
    """

    posterior: Posterior
    image: Any = None
    #: DBSCAN's labels, or {min_experts: labels}.
    dbscan: Array | None = None
    #: The figures that were made, by name; of ``report.pictures.Picture``.
    pictures: Mapping[str, Any] = field(default_factory=dict)
    #: What ``dfcrp age`` found for these draws, as in ages.json; empty if it did not run.
    ages: Json = field(default_factory=dict)
    #: What ``dfcrp evaluate`` found for these draws, as in evaluation.json; None if it did not run.
    evaluation: Json | None = None

    def figure(self, name: str, alt: str, caption: object) -> Markup:
        """A figure with its caption; nothing if these data have no such figure."""
        found = self.pictures.get(name)
        return Markup("") if found is None else found.html(alt, caption)

    @cached_property
    def isochrons(self) -> Isochrons | None:
        """Curves of CraterStats for the figures of sizes."""
        found = self.ages.get("isochrons")
        if found is None:
            return None
        low, high = self.ages["dating"]["fit_range"]
        return replace(Isochrons.from_json(found), fit_range=(float(low), float(high)))

    @property
    def noun(self) -> str:
        """What one item is called."""
        return str(self.posterior.likelihood.noun)

    @property
    def nouns(self) -> str:
        """What items are called."""
        return plural(self.noun)

    @property
    def verb(self) -> str:
        """What experts did with objects: "marked" or "listed"."""
        return str(self.posterior.likelihood.verb)

    @cached_property
    def summary(self) -> Json:
        """The summary as in summary.json, computed once."""
        return self.posterior.summary()

    @cached_property
    def catalogue(self) -> pandas.DataFrame:
        """The catalogue as in catalogue.csv, computed once."""
        return self.posterior.catalogue()

    @cached_property
    def placed(self) -> bool:
        """Whether items have a place on a map."""
        return flat_map_or_none(self.posterior.items) is not None

    @cached_property
    def underlay(self) -> Underlay | None:
        """The image given, or else that of the settings, read once."""
        if not self.placed:
            return None
        y, places = flat_map(self.posterior.items).y, places_of(self.posterior.items)
        if self.image is None:
            settings, items = self.posterior.config.image, self.posterior.items
            one = len(items.images) == 1
            framed = frame_of(settings, items, items.images[0]) if one else None
            return configured_underlay(settings, y, places, framed)
        return read_underlay(self.image, y, places=places)

    @property
    def knows_reality(self) -> bool:
        """Whether the prior says what is real."""
        return bool(self.posterior.prior.knows_reality)

    @property
    def by_threshold(self) -> bool:
        """Whether the page counts by number of experts: not, unless asked, if it knows better."""
        return not self.knows_reality or self.posterior.config.summary.side_by_side

    @property
    def image_word(self) -> str:
        """What an image is called in sentences."""
        return str(self.posterior.likelihood.image_word(self.posterior.items))

    @property
    def min_experts(self) -> int:
        """Experts that make a consensus."""
        return int(self.posterior.min_experts)

    @property
    def consensus_words(self) -> str:
        """What makes a consensus: "at least 5 experts"."""
        return str(self.posterior.consensus_words)

    @cached_property
    def described(self) -> tuple[str, ...]:
        """The columns of the catalogue that describe an object."""
        names = [str(name) for name in self.catalogue.columns]
        ends = {name + end for name in names if f"{name}_sd" in names for end in ENDS}
        return tuple(name for name in names if name not in ends and name not in ABOUT)

    @cached_property
    def digits(self) -> dict[str, int]:
        """Decimals of each numeric column that describes an object.

        Of places by the width of the data, of sizes three digits of a typical one, of other
        numbers two digits of a typical standard deviation.
        """
        likelihood, items = self.posterior.likelihood, self.posterior.items
        found = {}
        for name in self.described:
            if f"{name}_sd" not in self.catalogue:
                continue
            if name in ("x", "y") and likelihood.columns is not None:
                found[name] = self.place_digits
            elif name in likelihood.positive:
                found[name] = digits_for(float(np.median(items.columns[name])), 3)
            else:
                spread = self.catalogue[f"{name}_sd"].to_numpy()
                spread = spread[spread > 0.0]
                found[name] = digits_for(float(np.median(spread)), 2) if spread.size else 3
        return found

    @cached_property
    def place_digits(self) -> int:
        """Decimals of a coordinate."""
        return flat_map(self.posterior.items).digits

    @cached_property
    def size_digits(self) -> int:
        """Decimals of a diameter: three digits of a typical one."""
        diameters = self.posterior.diameters
        assert diameters is not None  # or else there is no size to be written
        return digits_for(float(np.median(diameters)), 3)

    @cached_property
    def counts(self) -> ConsensusCounts:
        """Consensus clusters of every draw."""
        return self.posterior.consensus_counts((self.posterior.config.summary.min_experts,))

    @cached_property
    def undecided(self) -> NDArray[np.int64]:
        """Items that are not sure of their cluster, least sure first."""
        p_member = self.posterior.membership.p_member
        found = np.flatnonzero(p_member < UNDECIDED)
        return found[np.argsort(p_member[found], kind="stable")]

    @cached_property
    def doubles(self) -> Any:
        """Items that may be a second one of an object by the same expert."""
        return self.posterior.suspected_doubles()

    @cached_property
    def example(self) -> Explanation | None:
        """The least certain item, explained; None if all are as good as certain."""
        return explain(self.posterior, int(self.undecided[0])) if self.undecided.size else None

    @cached_property
    def n_singletons(self) -> int:
        """Items that are more likely alone than not."""
        return int((self.posterior.expert_summary.alone >= 0.5).sum())


def digits_for(typical: float, significant: int) -> int:
    """Decimals that show so many digits of a typical value."""
    return int(np.clip(significant - 1 - np.floor(np.log10(typical)), 0, 12))

"""The DFCRP with attraction between lists of one person."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from dfcrp.draws import Columns, Variable, shared_variable
from dfcrp.errors import SettingsError, check, check_choice
from dfcrp.markup import estimate_of
from dfcrp.persons import Persons
from dfcrp.priors.arrivals.prior import ArrivalSettings
from dfcrp.priors.attraction.kernel import Attraction, room_for_walks
from dfcrp.priors.base import Facts, Prior, PriorLayout
from dfcrp.summaries.streaming import summarise
from dfcrp.values import Json


@dataclass(frozen=True)
class AttractionSettings(ArrivalSettings):
    """How much more an item is drawn to those on other lists by the same person."""

    #: The logarithm of a factor, or "learned", then normal about 0 with this spread.
    strength: float | str = "learned"
    strength_sd: float = 1.5

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.strength, str):
            check_choice("prior.strength", self.strength, ("learned",))
        else:
            check(abs(self.strength) <= 20, "prior.strength", self.strength, "-20 to 20")
        check(self.strength_sd > 0, "prior.strength_sd", self.strength_sd, "above 0")


#: The name of τ where it is learned, and so stored with every draw.
STRENGTH = "attraction"
#: Where a learned τ starts.
_START = 0.0
WORDS = {STRENGTH: "how strongly lists by one person attract each other"}


class _Attraction(Prior):
    """An item is drawn more strongly to those on other lists by the same person."""

    name = "attraction"
    words = WORDS
    Settings = AttractionSettings
    sentence = (
        "Two {items} by one expert never share a cluster, and lists by one person attract each "
        "other (DFCRP with attraction)."
    )

    def check(self, persons: Persons) -> None:
        """There must be a person with several lists."""
        if len(persons.names) == len(persons.codes):
            raise SettingsError(
                'the prior "attraction" is for several lists by one person, but here every list is '
                "by another person; name the lists of one person in run.persons, or in a column "
                "person"
            )

    def lay_out(self, facts: Facts, settings: AttractionSettings) -> PriorLayout:
        """α starts at the mean of its law; the strength is stored if it is learned."""
        rate = settings.rate(facts.usual_alpha_rate)
        prior = make_attraction(settings, rate, facts.persons, facts.n)
        columns = Columns(shared=(Variable(STRENGTH, behind=True),)) if prior.learned else Columns()
        return PriorLayout(prior, settings.alpha_shape / rate, columns)

    def numbers(self, posterior: Any) -> Json:
        """α, and the strength where it is learned."""
        found = super().numbers(posterior)
        strength = shared_variable(posterior.draws, STRENGTH)
        if strength is not None:
            found[STRENGTH] = summarise(strength.ravel()).as_dict()
        return found

    def learned_words(self, numbers: Mapping[str, Any], nouns: str) -> list[str]:
        """How strong the attraction is, as a factor."""
        found = numbers.get(STRENGTH)
        if found is None:
            return []
        shown = estimate_of({key: math.exp(found[key]) for key in ("mean", "lo", "hi")})
        return [
            f"Learned from the data: {nouns} on another list by the same person attract "
            f"{shown.mean} times as much as those by somebody else ({shown.interval})."
        ]


def make_attraction(
    settings: AttractionSettings, alpha_rate: float, persons: Persons, n_items: int
) -> Attraction:
    """The prior for so many items; ``settings.strength`` is τ, or "learned"."""
    learned = isinstance(settings.strength, str)
    strength = _START if isinstance(settings.strength, str) else settings.strength
    return Attraction(
        person=persons.codes.astype(np.int32),
        learned=learned,
        strength_sd=settings.strength_sd,
        alpha_shape=settings.alpha_shape,
        alpha_rate=alpha_rate,
        own=np.full(1 if learned else 0, strength),
        strong=np.array([math.exp(strength)]),
        arrived=room_for_walks(n_items, persons.codes),
    )


ATTRACTION: Any = _Attraction()

"""Settings of records: what their fields are, and which records may be of one object."""

from __future__ import annotations

from dataclasses import dataclass

from dfcrp.errors import check


@dataclass(frozen=True)
class RecordSettings:
    """Kinds of fields, keys for candidates, and how often fields go wrong."""

    #: Fields of text with typing errors, parts in another order or abbreviated; of free text, in
    #: which rare words and codes count; of dates; of numbers measured with a learned width; of
    #: places, "latitude+longitude"; of categories and identifiers, which are right or wrong as a
    #: whole. Those not named are told by their values.
    strings: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()
    dates: tuple[str, ...] = ()
    numbers: tuple[str, ...] = ()
    places: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    identifiers: tuple[str, ...] = ()
    #: Records may be of one object if they agree in one of these: a field, or several as "a+b".
    #: None given: keys are chosen from the data.
    keys: tuple[str, ...] = ()
    #: Whether a list may have an object several times, as the prior says: records of one list then
    #: are compared like those of different lists.
    repeats: bool = False
    #: Log odds that a field's value has nothing to do with the true one (miss), and that it has a
    #: typo if it has; how uncertain they are before the data speak.
    miss_odds: float = -3.5
    typo_odds: float = -2.5
    odds_sd: float = 1.0

    def __post_init__(self) -> None:
        check(self.odds_sd > 0, "likelihood.odds_sd", self.odds_sd, "above 0")
        for place in self.places:
            two = len([part for part in place.split("+") if part]) == 2
            check(two, "likelihood.places", place, 'of the form "latitude+longitude"')

    @property
    def kinds(self) -> dict[str, str]:
        """The kind of each field that is named."""
        named = {
            "string": self.strings,
            "text": self.texts,
            "date": self.dates,
            "number": self.numbers,
            "place": self.places,
            "category": self.categories,
            "identifier": self.identifiers,
        }
        return {name: kind for kind, names in named.items() for name in names}

    @property
    def split_keys(self) -> list[list[str]] | None:
        """The keys as lists of fields; None if there are none."""
        return [key.split("+") for key in self.keys] or None

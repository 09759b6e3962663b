"""Settings of records: what their fields are, and which records may be of one object."""

from __future__ import annotations

from dataclasses import dataclass

from dfcrp.checks import check


@dataclass(frozen=True)
class RecordSettings:
    """Kinds of fields, keys for candidates, and how often fields go wrong."""

    #: Fields whose values may differ by typing errors, also with day and month exchanged, by small
    #: amounts, or are equal or not; those not named are dates if they look like it, numbers if
    #: they have fractions, else strings.
    strings: tuple[str, ...] = ()
    dates: tuple[str, ...] = ()
    numbers: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    #: Records may be of one object if they agree in one of these: a field, or several as "a+b".
    #: None given: in any field.
    keys: tuple[str, ...] = ()
    #: Log odds that a field's value has nothing to do with the true one (miss), and that it has a
    #: typo if it has; how uncertain they are before the data speak.
    miss_odds: float = -3.5
    typo_odds: float = -3.0
    odds_sd: float = 1.0

    def __post_init__(self) -> None:
        check(self.odds_sd > 0, "likelihood.odds_sd", self.odds_sd, "above 0")

    @property
    def kinds(self) -> dict[str, str]:
        """The kind of each field that is named."""
        named = {
            "string": self.strings,
            "date": self.dates,
            "number": self.numbers,
            "category": self.categories,
        }
        return {name: kind for kind, names in named.items() for name in names}

    @property
    def split_keys(self) -> list[list[str]] | None:
        """The keys as lists of fields; None if there are none."""
        return [key.split("+") for key in self.keys] or None

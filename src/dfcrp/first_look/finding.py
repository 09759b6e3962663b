"""What a first look says: one finding, in a sentence or two, with its numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from dfcrp.values import Json

#: What stands before findings, beside the verdict of a run.
LOOKED = (
    "The verdict is about the length of the run. Before it a first look at the data found what may "
    "be a mistake; if it is one, the answers mean little:"
)
#: Names that a sentence lists.
NAMED = 5


@dataclass(frozen=True)
class Finding:
    """Something in the data that looks like a mistake.

    Attributes
    ----------
    check : str
        What was looked at: "axes", "sizes", "radius", "size of one list", "corners", "same list",
        "marked twice", "no agreement", "one list apart", "images", "fields" or "repeats".
    text : str
        What was found, and what to do if it is a mistake.
    experts : tuple of str
        Whose lists it is about; none if it is about all.
    numbers : mapping
        What it rests on.
    """

    check: str
    text: str
    experts: tuple[str, ...] = ()
    numbers: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def sentence(self) -> str:
        """The text with its full stop."""
        return self.text if self.text.endswith("?") else f"{self.text}."

    def as_dict(self) -> Json:
        """As in summary.json."""
        return {
            "check": self.check,
            "text": self.text,
            "experts": list(self.experts),
            **self.numbers,
        }


def named(names: Sequence[str]) -> str:
    """Names in a sentence: "ann", "ann and bob", "ann, bob and 7 more"."""
    if len(names) > NAMED:
        return f"{', '.join(names[:NAMED])} and {len(names) - NAMED:,} more"
    return f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else "".join(names)


def percent(share: float) -> str:
    """A share in whole percent."""
    return f"{100.0 * share:.0f} %"


def factor(value: float) -> str:
    """A factor in two digits."""
    rounded = float(f"{value:.2g}")
    return f"{rounded:,.0f}" if rounded >= 100.0 else f"{rounded:g}"

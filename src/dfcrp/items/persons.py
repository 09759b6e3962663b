"""Whose lists are whose: experts who are one person."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dfcrp.errors import InputError, SettingsError
from dfcrp.items.markings import Markings


class Persons(NamedTuple):
    """The person behind every expert's list."""

    codes: NDArray[np.int64]  # by expert
    names: tuple[str, ...]


def persons_of(experts: Sequence[str], groups: Sequence[Sequence[str]]) -> Persons:
    """Number the persons in the order of their first lists; who is in no group stands alone.

    A person with several lists is named after all of them.
    """
    group_of: dict[str, int] = {}
    for number, group in enumerate(groups):
        for name in group:
            if name not in experts:
                near = difflib.get_close_matches(name, experts, n=1, cutoff=0.0)
                raise SettingsError(
                    f"detection.persons names {name!r}, but there is no such expert; "
                    f"did you mean {near[0]!r}?"
                )
            group_of[name] = number
    codes: list[int] = []
    names: list[str] = []
    number_of: dict[object, int] = {}
    for expert in experts:
        key: object = group_of.get(expert, expert)
        if key not in number_of:
            number_of[key] = len(names)
            names.append("/".join(groups[key]) if isinstance(key, int) else expert)
        codes.append(number_of[key])
    return Persons(np.array(codes, dtype=np.int64), tuple(names))


def groups_by_person(markings: Markings) -> tuple[tuple[str, ...], ...]:
    """The lists of every person with several, by the markings' own word."""
    if markings.person is None:
        return ()
    person_of: dict[str, str] = {}
    rows = zip(markings.id, markings.expert.tolist(), markings.person.tolist(), strict=True)
    for name, expert, person in rows:
        if person_of.setdefault(expert, person) != person:
            raise InputError(
                f"marking {name}: the list of {expert!r} is by {person_of[expert]!r} in an earlier "
                f"row and by {person!r} here; a list is by one person: correct the column person, "
                "or give the two parts names of their own in the column expert"
            )
    groups: dict[str, list[str]] = {}
    for expert in markings.experts:
        groups.setdefault(person_of[expert], []).append(expert)
    return tuple(tuple(lists) for lists in groups.values() if len(lists) > 1)

"""Whose lists are whose: experts who are one person."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dfcrp.errors import InputError, SettingsError, did_you_mean

Groups = tuple[tuple[str, ...], ...]


class Persons(NamedTuple):
    """The person behind every expert's list."""

    codes: NDArray[np.int64]  # by expert
    names: tuple[str, ...]


def check_groups(experts: Sequence[str], groups: Sequence[Sequence[str]]) -> None:
    """Refuse groups that name an expert who is not there."""
    for name in (name for group in groups for name in group):
        if name not in experts:
            near = did_you_mean(name, experts, cutoff=0.0)
            raise SettingsError(f"run.persons names {name!r}, but there is no such expert{near}")


def persons_of(experts: Sequence[str], groups: Sequence[Sequence[str]]) -> Persons:
    """Number the persons in the order of their first lists; who is in no group stands alone.

    A person with several lists is named after all of them. Experts of the groups who are not
    among ``experts``, as on one image of many, are left out.
    """
    there = set(experts)
    present = [[name for name in group if name in there] for group in groups]
    group_of = {name: number for number, group in enumerate(present) for name in group}
    codes: list[int] = []
    names: list[str] = []
    number_of: dict[object, int] = {}
    for expert in experts:
        key: object = group_of.get(expert, expert)
        if key not in number_of:
            number_of[key] = len(names)
            names.append("/".join(present[key]) if isinstance(key, int) else expert)
        codes.append(number_of[key])
    return Persons(np.array(codes, dtype=np.int64), tuple(names))


def groups_by_person(ids: Sequence[str], experts: Sequence[str], persons: Sequence[str]) -> Groups:
    """The lists of every person with several, from one value of each per item."""
    person_of: dict[str, str] = {}
    for name, expert, person in zip(ids, experts, persons, strict=True):
        if person_of.setdefault(expert, person) != person:
            raise InputError(
                f"item {name}: the list of {expert!r} is by {person_of[expert]!r} in an earlier "
                f"row and by {person!r} here; a list is by one person: correct the column person, "
                "or give the two parts names of their own in the column expert"
            )
    groups: dict[str, list[str]] = {}
    for expert in sorted(person_of):
        groups.setdefault(person_of[expert], []).append(expert)
    return _several(groups)


def _several(groups: Mapping[str, list[str]]) -> Groups:
    return tuple(tuple(lists) for lists in groups.values() if len(lists) > 1)

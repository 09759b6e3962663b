"""Who looked at which image, or at which part of it, also those who marked nothing there.

An expert who looked at an image and marked nothing there missed all of its objects; one who did
not look missed none. Where nothing says who looked, whoever has an item on an image did.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dfcrp.errors import DfcrpWarning, InputError
from dfcrp.items.checks import bad_names, why_not_name
from dfcrp.items.footprints import Footprint, Look, both, footprint_columns, footprints_in
from dfcrp.items.image_names import composed

if TYPE_CHECKING:
    from dfcrp.items.items import Items

#: Experts and images that a message names.
NAMED = 3

Pairs = NDArray[np.str_]


class Looked(NamedTuple):
    """Who looked where, as given: (m, 2) pairs of an image and an expert, each once."""

    pairs: Pairs
    #: Of looks at a part of an image, the part.
    footprints: Mapping[Look, Footprint] = MappingProxyType({})

    def select(self, chosen: NDArray[np.bool_]) -> Looked:
        """Some of the looks."""
        return Looked(self.pairs[chosen], self.footprints)


class Looks(NamedTuple):
    """Who looked where, in numbers."""

    #: All images that were looked at, sorted; one without a name if items name no images.
    images: tuple[str, ...]
    #: The image of each item.
    image: NDArray[np.int64]
    #: (m, 2): an image and an expert who looked at it, sorted, each pair once.
    pairs: NDArray[np.int64]

    def experts_of(self, image: int) -> NDArray[np.int64]:
        """The experts who looked at an image, ascending."""
        first, last = np.searchsorted(self.pairs[:, 0], [image, image + 1])
        return self.pairs[first:last, 1]

    @property
    def most_experts(self) -> int:
        """How many experts looked at one image, where they are most."""
        return int(np.bincount(self.pairs[:, 0], minlength=1).max())


def looks_given(looked: Any) -> Looked:
    """Looks in whatever form a user gives them.

    A table (data frame or dict) with the columns image and expert, and perhaps footprint or x_min,
    y_min, x_max and y_max; pairs of image and expert; or, of one image, the experts' names alone.
    """
    if isinstance(looked, Looked):
        return looked
    parts: list[Footprint | None] = []
    if isinstance(looked, Mapping) or hasattr(looked, "columns"):
        names = list(looked.keys()) if isinstance(looked, Mapping) else list(looked.columns)
        if "expert" not in names:
            raise InputError(
                "looked has no column expert: it needs the columns image and expert, one row for "
                "each expert who looked at an image"
            )
        experts = [str(value) for value in looked["expert"]]
        images = [str(v) for v in looked["image"]] if "image" in names else [""] * len(experts)
        if len(images) != len(experts):
            raise InputError(f"looked has {len(images)} images and {len(experts)} experts")
        rows = list(zip(images, experts, strict=True))
        table = {
            role: list(looked[name]) for role, name in footprint_columns(names, "looked").items()
        }
        if table:
            parts = footprints_in(table, lambda row, column: f"looked, index {row}, {column}")
    elif isinstance(looked, str) or not isinstance(looked, Iterable):
        raise InputError(
            f"looked is {looked!r}; it must be pairs of an image and an expert, or a table with "
            "these columns"
        )
    else:
        rows = [("", row) if isinstance(row, str) else _pair(row) for row in looked]
    return looks_in_rows(rows, parts)


def looks_in_rows(rows: Sequence[Look], parts: Sequence[Footprint | None] = ()) -> Looked:
    """Looks by image and expert, checked; ``parts`` has the footprint of each row, if any has."""
    rows = [(composed(image), composed(expert)) for image, expert in rows]
    for role, names in (
        ("image", [image for image, _ in rows if image]),
        ("expert", [expert for _, expert in rows]),
    ):
        for at in bad_names(names)[:1]:
            raise InputError(f"looked: {why_not_name(role, names[at])}")
    pairs = np.array(sorted(set(rows)), dtype=np.str_).reshape(-1, 2)
    return Looked(pairs, _together(rows, parts))


def _together(rows: Sequence[Look], parts: Sequence[Footprint | None]) -> dict[Look, Footprint]:
    """One footprint for each look at a part; several rows of one look add up."""
    found: dict[Look, Footprint | None] = {}
    for look, part in zip(rows, parts, strict=bool(parts)):
        found[look] = both(found[look], part) if look in found else part
    return {look: part for look, part in found.items() if part is not None}


def _pair(row: Any) -> tuple[str, str]:
    try:
        image, expert = row
    except (TypeError, ValueError):
        raise InputError(
            f"looked has the entry {row!r}; each must be a pair of an image and an expert"
        ) from None
    return str(image), str(expert)


def with_looks(items: Items, looked: object, *, tell: bool = True) -> Items:
    """The items together with who looked; an expert with an item on an image looked at it.

    ``tell`` warns of experts with items on images at which they did not look.
    """
    given = looks_given(looked)
    pairs = _named(items, given.pairs)
    footprints = {
        (image, expert): given.footprints[before, expert]
        for (before, expert), (image, _) in zip(given.pairs.tolist(), pairs.tolist(), strict=True)
        if (before, expert) in given.footprints
    }
    if footprints and not {"x", "y"} <= set(items.columns):
        raise InputError(
            f"looked has footprints, but {items.kind} have no position; leave out the columns of "
            "the footprint"
        )
    images = _images_of(items)
    own_experts = [items.experts[at] for at in np.unique(items.families).tolist()]
    by_image = _Names.of(images, pairs[:, 0].tolist())
    by_expert = _Names.of(own_experts, pairs[:, 1].tolist())
    # Of an expert without items the number is never asked for.
    families = np.array([by_expert.code.get(name, -1) for name in items.experts], np.int64)
    families = families[items.families]
    own = np.unique(by_image.codes(images) * len(by_expert.code) + families)
    told = by_image.codes(pairs[:, 0].tolist()) * len(by_expert.code)
    told = np.unique(told + by_expert.codes(pairs[:, 1].tolist()))
    if tell:
        missing = _pairs_named(np.setdiff1d(own, told, assume_unique=True), by_image, by_expert)
        if len(missing):
            _warn([(image, expert) for image, expert in missing.tolist()])
    return replace(
        items,
        looked=_pairs_named(np.union1d(told, own), by_image, by_expert),
        footprints=footprints or None,
        experts=tuple(by_expert.code),
        families=families,
    )


class _Names(NamedTuple):
    """Different names with their numbers, in the order of both."""

    code: dict[str, int]

    @classmethod
    def of(cls, *lists: list[str]) -> _Names:
        """All of these."""
        return cls({name: at for at, name in enumerate(sorted(set().union(*lists)))})

    def codes(self, names: list[str]) -> NDArray[np.int64]:
        """The number of each."""
        return np.array([self.code[name] for name in names], np.int64)

    def named(self, codes: NDArray[np.int64]) -> Pairs:
        """The name of each."""
        return np.array(list(self.code), dtype=np.str_)[codes]


def _pairs_named(pairs: NDArray[np.int64], images: _Names, experts: _Names) -> Pairs:
    """Pairs of an image and an expert by name, from those that are one number each."""
    if not len(pairs):
        return np.zeros((0, 2), np.str_)
    image, expert = np.divmod(pairs, len(experts.code))
    return np.column_stack([images.named(image), experts.named(expert)])


def _images_of(items: Items) -> list[str]:
    return [""] * len(items) if items.image is None else items.image.tolist()


def _named(items: Items, pairs: Pairs) -> Pairs:
    """Pairs whose images are named as the items' are."""
    names = sorted(set(pairs[:, 0].tolist()))
    if items.image is None:
        if len(names) > 1:
            raise InputError(
                f"looked names {len(names)} images ({', '.join(names[:NAMED])}, ...), but the "
                "items name none: give the items an image column, or leave it out of looked"
            )
        return np.column_stack([np.full(len(pairs), ""), pairs[:, 1]])
    if "" in names and len(items.images) == 1:
        return np.array(
            [(image or items.images[0], expert) for image, expert in pairs.tolist()], dtype=np.str_
        )
    if "" in names:
        raise InputError(
            f"looked names no images, but the items are on {len(items.images)}: give it the column "
            "image"
        )
    return pairs


def _warn(missing: list[tuple[str, str]]) -> None:
    examples = ", ".join(f"{expert} on {image or 'the image'}" for image, expert in missing[:NAMED])
    warnings.warn(
        f"{len(missing):,} times an expert has items on an image without being listed as having "
        f"looked at it: {examples}{', ...' if len(missing) > NAMED else ''}; they are taken to "
        "have looked. If names are spelled in two ways, correct them",
        DfcrpWarning,
        stacklevel=4,
    )


def without_experts(looked: Pairs | None, experts: Iterable[str]) -> Pairs | None:
    """The looks of the others."""
    return None if looked is None else looked[~np.isin(looked[:, 1], list(experts))]


def looks_of(items: Items) -> Looks:
    """Who looked where; if nothing says it, whoever has an item on an image."""
    images = _images_of(items)
    known = images if items.looked is None else items.looked[:, 0].tolist()
    names = tuple(sorted(set(known)))
    code = {name: at for at, name in enumerate(names)}
    image = np.array([code[name] for name in images], np.int64)
    count = max(len(items.experts), 1)
    if items.looked is None:
        pairs = image * count + items.families
    else:
        expert = {name: at for at, name in enumerate(items.experts)}
        where, who = items.looked.T.tolist()
        pairs = np.array([code[name] for name in where], np.int64) * count
        pairs += np.array([expert[name] for name in who], np.int64)
    return Looks(names, image, np.column_stack(np.divmod(np.unique(pairs), count)))

"""What writers for annotation tools share: images, categories and scores in the tool's terms."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np

from dfcrp.errors import InputError
from dfcrp.io.tables import LENGTHS, ReadTable, only_one_list
from dfcrp.items.checks import to_names
from dfcrp.items.image_names import Mention
from dfcrp.items.source_tables import CategoryEntry, ImageEntry, SourceTables
from dfcrp.values import Json

#: Where an object's score comes from: the first of these columns that a catalogue has.
SCORES = ("p_real", "p_consensus")
#: Columns of a catalogue that are shown with an object, as attributes or in words.
SHOWN = (*SCORES, "n_experts", "p_category")
#: What objects are called where nothing names them.
NAMELESS = "object"


@dataclass(frozen=True)
class OutImage:
    """An image of the file to be written, and which items are on it."""

    name: str
    """What the run calls it."""
    path: str
    """What the user's files call it."""
    size: tuple[int, int] | None
    entry: ImageEntry | None
    """What a file of the same format says of it."""
    rows: Sequence[int]

    @property
    def fields(self) -> Json:
        """The same, field by field."""
        return {} if self.entry is None else dict(self.entry.fields)


class Outgoing:
    """A list of items on its way to an annotation tool's file.

    Images and categories are those of the files that the items came from, also where there is
    no item of them, in the order of these files; then others that items name.
    """

    def __init__(self, table: ReadTable, path: Path, formats: Sequence[str]) -> None:
        only_one_list(table, path)
        self.table, self.path = table, path
        self.sources = table.sources
        #: Entries of the same format, whose ids can be used again.
        self.own = SourceTables(
            self.sources.files,
            tuple(one for one in self.sources.images if self._is_of(one, formats)),
            tuple(one for one in self.sources.categories if self._is_of(one, formats)),
        )
        self.extra = table.typed_extra()
        drawn_on = table.about.get("image")
        self.names: list[str] = [""] * len(table) if drawn_on is None else to_names(drawn_on)
        told = table.about.get("category", self.extra.pop("category", None))
        said = [""] * len(table) if told is None else to_names(told)
        plain, on_image = self.sources.only_category or NAMELESS, self.sources.only_on
        self.labels = [
            label or on_image.get(image, plain)
            for label, image in zip(said, self.names, strict=True)
        ]
        self.scores = self._scores()

    def _is_of(self, entry: ImageEntry | CategoryEntry, formats: Sequence[str]) -> bool:
        return any(self.sources.files[at].format in formats for at in entry.files)

    def _scores(self) -> list[float | None] | None:
        if not self.table.scores:
            return None
        found = next((self.extra[title] for title in SCORES if title in self.extra), None)
        if found is None and "score" in self.table.about:
            found = [None if v is None or math.isnan(v) else v for v in self.table.about["score"]]
        return None if found is None else [None if v is None else float(v) for v in found]

    def score(self, row: int) -> float | None:
        """Of an item; None if there is none."""
        return None if self.scores is None else self.scores[row]

    @cached_property
    def images(self) -> list[OutImage]:
        """All images."""
        entries, own = self.sources.first_of_each()[0], self.own.first_of_each()[0]
        sizes = self.sources.sizes
        rows: dict[str, list[int]] = {
            name: [] for name in dict.fromkeys([*entries, *sorted({*self.names})])
        }
        for row, name in enumerate(self.names):
            rows[name].append(row)
        return [
            OutImage(
                name,
                (own.get(name) or entries[name]).path if name in entries else name,
                sizes.get(name),
                own.get(name),
                at,
            )
            for name, at in rows.items()
        ]

    @cached_property
    def image_of(self) -> list[OutImage]:
        """The image of each item."""
        found = {one.name: one for one in self.images}
        return [found[name] for name in self.names]

    @cached_property
    def categories(self) -> dict[str, Json]:
        """What a file of the same format says of each category, by name; {} of the others."""
        known = self.own.first_of_each()[1]
        others = self.sources.first_of_each()[1]
        names = dict.fromkeys([*known, *others, *sorted(set(self.labels))])
        return {name: dict(known[name].fields) if name in known else {} for name in names}

    def file_fields(self, key: str) -> Any:
        """What the first file of the same format that has this field says in it."""
        entries = [one.files for one in self.own.images] + [c.files for c in self.own.categories]
        at = sorted({at for files in entries for at in files})
        told = (self.sources.files[k].fields.get(key) for k in at)
        return next((value for value in told if value is not None), None)

    def size_of(self, image: OutImage) -> tuple[int, int]:
        """Width and height, or a request for them."""
        if image.size is None:
            raise InputError(
                f"{self.path}: the width and height of the image {image.path!r} are needed, and no "
                "file says them; give them with --image-size, as in --image-size 1024x768"
            )
        return image.size

    def in_pixels(self) -> Outgoing:
        """Lengths in pixels; shares of the image's sides are multiplied by these."""
        return self._scaled(down=False) if self._in_shares else self

    def in_shares(self) -> Outgoing:
        """Lengths as shares of the image's sides; pixels are divided by these."""
        return self if self._in_shares else self._scaled(down=True)

    @property
    def _in_shares(self) -> bool:
        return self.table.shares

    def _scaled(self, *, down: bool) -> Outgoing:
        table = self.table
        if table.site.units != "px":
            raise InputError(
                f"{self.path}: it holds pixels of images, and the data are in {table.site.units}; "
                "write a map format, as .geojson or .gpkg"
            )
        if table.kind not in ("boxes", "points"):
            raise InputError(
                f"{self.path}: {table.kind} as shares of an image's sides are none in pixels, and "
                "the other way round; write boxes or points"
            )
        sides = np.array([self.size_of(image) for image in self.image_of], float).reshape(-1, 2)
        factors = {"x": 0, "width": 0, "y": 1, "height": 1}
        columns = {
            role: values * (1 / sides[:, factors[role]] if down else sides[:, factors[role]])
            for role, values in table.columns.items()
            if role in LENGTHS
        }
        return Outgoing(
            replace(table, columns={**table.columns, **columns}, shares=down), self.path, ()
        )._like(self)

    def _like(self, other: Outgoing) -> Outgoing:
        self.own = other.own
        return self

    def row_columns(self) -> list[tuple[float, ...]]:
        """The numbers of each item."""
        return list(zip(*(v.tolist() for v in self.table.columns.values()), strict=True))

    def files(self, ending: str, folder: str = "") -> Iterator[tuple[OutImage, Path]]:
        """The file of each image below the folder: where it was, or where the image is.

        No name leads out of the folder, whatever a file says.
        """
        taken: set[str] = set()
        for image in self.images:
            was = image.fields.get("file")
            parts = safe_parts(was if isinstance(was, str) else image.path)
            if not isinstance(was, str) and folder:
                parts = [folder, *parts]
            below = PurePosixPath(*parts[:-1], PurePosixPath(parts[-1]).stem + ending)
            if str(below).casefold() in taken:
                # The run's names differ where files of several lists have the same one.
                *above, name = safe_parts(image.name)
                below = PurePosixPath(*above, PurePosixPath(name).stem + ending)
            if str(below).casefold() in taken:
                raise InputError(
                    f"{self.path}: two images would be in the same file {below}; convert them one "
                    "by one with --image"
                )
            taken.add(str(below).casefold())
            yield image, self.path / below


def safe_parts(path: str) -> list[str]:
    """Folders and name of a path that leads nowhere else, without signs that a system forbids."""
    parts = Mention(path, drawn=True).parts
    clean = ["".join("_" if c in '<>:"|?*' or c < " " else c for c in part) for part in parts]
    kept = [part for part in (one.strip(" ").rstrip(".") for one in clean) if part]
    return kept or ["image"]


def new_ids(entries: Sequence[object], *, first: int = 1) -> list[int | str]:
    """The id of each entry, as far as it has one that no other has; the others get new numbers."""
    taken: set[int | str] = set()
    found: list[int | str | None] = []
    for told in entries:
        if isinstance(told, (int, str)) and not isinstance(told, bool) and told not in taken:
            found.append(told)
            taken.add(told)
        else:
            found.append(None)
    numbers = [told for told in taken if isinstance(told, int)]
    following = itertools.count(max([first - 1, *numbers]) + 1)
    return [next(following) if told is None else told for told in found]

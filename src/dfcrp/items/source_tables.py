"""What the user's files say of images and categories, so that results can go out in their terms.

Names are enough to fit. A tool that takes results back also wants its own ids of images and
categories, sizes of images, and whatever else stands beside them. All that is kept here as it came,
entry by entry, and the run folder has it in ``source_tables.json``.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from dfcrp.errors import InputError, did_you_mean
from dfcrp.values import Json

Fields = Mapping[str, Any]
#: Where the run folder has them, and the bytes that are read of it.
SOURCE_TABLES = "source_tables.json"
LARGEST_TABLES = 1 << 30
#: Characters of an entry, as JSON: what is longer, such as an image, is no entry of a table.
LONGEST = 10_000
#: Examples in a sentence.
NAMED = 3


def kept_fields(entry: Mapping[str, object], *without: str) -> Json:
    """What a file says in an entry, but for these keys and for what is too long to be a cell."""
    fields = {key: value for key, value in entry.items() if key not in without}
    return {key: value for key, value in fields.items() if _length(value) <= LONGEST}


def _length(value: object) -> int:
    try:
        return len(json.dumps(value))
    except (ValueError, TypeError, RecursionError):
        return LONGEST + 1


@dataclass(frozen=True)
class SourceFile:
    """A file or folder that items came from."""

    file: str
    format: str
    """The name of its format, as in the registry."""
    fields: Fields = field(default_factory=dict)
    """What it says of itself."""
    shares: bool = False
    """Whether its lengths are shares of the sides of the image."""


@dataclass(frozen=True)
class FileTables:
    """What one file says besides its items and images."""

    format: str = ""
    fields: Fields = field(default_factory=dict)
    categories: Mapping[str, Fields] = field(default_factory=dict)
    """By name, in the order of the file."""

    def joined(self, other: FileTables) -> FileTables:
        """With what another file of the same folder adds."""
        return replace(self, categories={**other.categories, **self.categories})


@dataclass(frozen=True)
class ImageEntry:
    """An image as one file has it, or several that say the same."""

    name: str
    """What the run calls it."""
    files: tuple[int, ...]
    path: str
    number: str | None = None
    size: tuple[int, int] | None = None
    fields: Fields = field(default_factory=dict)


@dataclass(frozen=True)
class CategoryEntry:
    """A category as one file has it, or several that say the same."""

    name: str
    files: tuple[int, ...]
    fields: Fields = field(default_factory=dict)


Entry = TypeVar("Entry", ImageEntry, CategoryEntry)


@dataclass(frozen=True)
class SourceTables:
    """Files, and the images and categories in them; the first file's entries go first."""

    files: tuple[SourceFile, ...] = ()
    images: tuple[ImageEntry, ...] = ()
    categories: tuple[CategoryEntry, ...] = ()
    only_category: str | None = None
    """The category of all items, where there is no other; a catalogue does not name it."""
    only_on: Mapping[str, str] = field(default_factory=dict)
    """The same of all items on an image, where items on others have others."""

    def __bool__(self) -> bool:
        """Whether there is anything that a list of names does not say."""
        told = any(file.fields or file.shares for file in self.files)
        return bool(told or self.images or self.categories)

    @property
    def format(self) -> str | None:
        """The format of all files; None if they are of several."""
        formats = {file.format for file in self.files}
        return formats.pop() if len(formats) == 1 else None

    @property
    def shares(self) -> bool:
        """Whether lengths are shares of the sides of the image."""
        return any(file.shares for file in self.files)

    def of_file(self, name: str) -> SourceTables:
        """With the entries of one file before those of the others."""
        names = [file.file for file in self.files]
        if name not in names:
            raise InputError(
                f"--ids-from {name}: the items are of no such file{did_you_mean(name, names)}; "
                f"there are {', '.join(names[:10])}"
            )
        at = names.index(name)

        def first(entries: Iterable[Entry]) -> tuple[Entry, ...]:
            return tuple(sorted(entries, key=lambda entry: at not in entry.files))

        return replace(self, images=first(self.images), categories=first(self.categories))

    def on(self, images: Iterable[str]) -> SourceTables:
        """The entries of these images."""
        wanted = set(images)
        return replace(self, images=tuple(one for one in self.images if one.name in wanted))

    def with_size(self, size: tuple[int, int], names: Iterable[str]) -> SourceTables:
        """With this size for images of which no file says it, also for those without an entry."""
        sizes, there = self.sizes, {one.name for one in self.images}
        images = [one if one.name in sizes else replace(one, size=size) for one in self.images] + [
            ImageEntry(name, (), name, size=size) for name in names if name not in there
        ]
        return replace(self, images=tuple(images))

    @property
    def sizes(self) -> dict[str, tuple[int, int]]:
        """Width and height of the images, as far as a file says them."""
        return {one.name: one.size for one in reversed(self.images) if one.size is not None}

    def first_of_each(self) -> tuple[dict[str, ImageEntry], dict[str, CategoryEntry]]:
        """Of each image and each category the first entry, in the order of the files."""
        images: dict[str, ImageEntry] = {}
        categories: dict[str, CategoryEntry] = {}
        for image in self.images:
            images.setdefault(image.name, image)
        for category in self.categories:
            categories.setdefault(category.name, category)
        return images, categories

    def disagreements(self, key: str) -> list[str]:
        """What to say where files give an image or a category different values of this field."""
        said = []
        for noun, nouns, entries in (
            ("image", "images", self.images),
            ("category", "categories", self.categories),
        ):
            values: dict[str, dict[str, str]] = {}
            for one in entries:
                if key in one.fields:
                    told = values.setdefault(one.name, {})
                    told.setdefault(str(one.fields[key])[:40], self.files[one.files[0]].file)
            differing = [name for name, told in values.items() if len(told) > 1]
            if differing:
                name = differing[0]
                listed = " and ".join(
                    f"{value} in {file}" for value, file in list(values[name].items())[:NAMED]
                )
                first = next(iter(values[name].values()))
                count = (
                    f"1 {noun} has" if len(differing) == 1 else f"{len(differing):,} {nouns} have"
                )
                said.append(
                    f"{count} different values of {key} in the files ({name!r}: {listed}); those "
                    f"of {first} are written; --ids-from FILE chooses another file"
                )
        return said

    def text(self) -> str:
        """For the run folder."""
        return json.dumps(self._content(), ensure_ascii=False) + "\n"

    def _content(self) -> Json:
        return {
            "files": [
                {"file": one.file, "format": one.format, "fields": one.fields, "shares": one.shares}
                for one in self.files
            ],
            "images": [
                {
                    "name": one.name,
                    "files": one.files,
                    "path": one.path,
                    "number": one.number,
                    "size": one.size,
                    "fields": one.fields,
                }
                for one in self.images
            ],
            "categories": [
                {"name": one.name, "files": one.files, "fields": one.fields}
                for one in self.categories
            ],
            "only_category": self.only_category,
            "only_on": dict(self.only_on),
        }

    @classmethod
    def read(cls, text: bytes) -> SourceTables:
        """What ``text`` made; a value of another type is a ValueError."""
        try:
            content = json.loads(text)
        except RecursionError:
            raise ValueError("brackets are nested too deeply") from None
        if not isinstance(content, dict):
            raise ValueError("it holds no JSON object")
        files = tuple(
            SourceFile(
                _text(one, "file"), _text(one, "format"), _fields(one), one.get("shares") is True
            )
            for one in _objects(content, "files")
        )
        images = tuple(
            ImageEntry(
                _text(one, "name"),
                _places(one, len(files)),
                _text(one, "path"),
                None if one.get("number") is None else _text(one, "number"),
                _size(one.get("size")),
                _fields(one),
            )
            for one in _objects(content, "images")
        )
        categories = tuple(
            CategoryEntry(_text(one, "name"), _places(one, len(files)), _fields(one))
            for one in _objects(content, "categories")
        )
        only = None if content.get("only_category") is None else _text(content, "only_category")
        only_on = content.get("only_on", {})
        if not isinstance(only_on, dict) or not all(isinstance(v, str) for v in only_on.values()):
            raise ValueError("only_on does not name the categories of images")
        return cls(files, images, categories, only, only_on)


def _objects(content: Mapping[str, object], key: str) -> Sequence[Json]:
    found = content.get(key, [])
    if not isinstance(found, list) or not all(isinstance(one, dict) for one in found):
        raise ValueError(f"{key} is no list of objects")
    return found


def _text(entry: Mapping[str, object], key: str) -> str:
    if not isinstance(entry.get(key), str):
        raise ValueError(f"an entry has no {key}")
    return str(entry[key])


def _fields(entry: Mapping[str, object]) -> Fields:
    found = entry.get("fields", {})
    if not isinstance(found, dict):
        raise ValueError("the fields of an entry are no JSON object")
    return found


def _places(entry: Fields, count: int) -> tuple[int, ...]:
    found = entry.get("files")
    good = isinstance(found, list) and all(type(at) is int and 0 <= at < count for at in found)
    if not good or not found:
        raise ValueError("an entry does not say which file it is of")
    return tuple(found)


def _size(value: object) -> tuple[int, int] | None:
    if value is None:
        return None
    if isinstance(value, list) and len(value) == 2 and all(type(v) is int and v > 0 for v in value):
        return value[0], value[1]
    raise ValueError("the size of an image is no pair of whole numbers")


class Gathered:
    """Makes the tables, with one entry for what several files say alike."""

    def __init__(self) -> None:
        self._files: list[SourceFile] = []
        self._images: dict[tuple[object, ...], tuple[ImageEntry, list[int]]] = {}
        self._categories: dict[tuple[object, ...], tuple[CategoryEntry, list[int]]] = {}

    def file(self, file: SourceFile) -> None:
        """Begin with a file; what follows is said by it."""
        self._files.append(file)

    def image(
        self, name: str, path: str, number: str | None, size: tuple[int, int] | None, fields: Fields
    ) -> None:
        """An image of the file."""
        key = (name, path, number, size, json.dumps(fields, sort_keys=True))
        entry = ImageEntry(name, (), path, number, size, fields)
        files = self._images.setdefault(key, (entry, []))[1]
        files.append(len(self._files) - 1)

    def category(self, name: str, fields: Fields) -> None:
        """A category of the file."""
        key = (name, json.dumps(fields, sort_keys=True))
        files = self._categories.setdefault(key, (CategoryEntry(name, (), fields), []))[1]
        files.append(len(self._files) - 1)

    def tables(self) -> SourceTables:
        """All of it."""
        return SourceTables(
            tuple(self._files),
            tuple(replace(entry, files=tuple(at)) for entry, at in self._images.values()),
            tuple(replace(entry, files=tuple(at)) for entry, at in self._categories.values()),
        )

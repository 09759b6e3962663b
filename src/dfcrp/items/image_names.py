"""Which names of images stand for one image: the one place where that is decided.

A file says of an image its path, or its name alone, sometimes the number that a program gave it,
and its size in pixels. Lists of several experts name the same image differently: one has absolute
paths, another names, a third lacks the endings. The rules are in ``docs/input.md``; in short: a
list keeps its own images apart; lists that share a path use the same paths; between others the end
of the path counts; and what could be meant in two ways is refused.
"""

from __future__ import annotations

import itertools
import re
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple, NoReturn

from dfcrp.errors import InputError, SettingsError, did_you_mean
from dfcrp.settings.values import IMAGE_NAMES
from dfcrp.values import Json

ENDINGS = (
    *("png", "jpg", "jpeg", "tif", "tiff", "bmp", "gif", "webp", "jp2", "img", "cub", "fits"),
    *("svs", "ndpi", "mrxs", "scn", "czi", "mrc", "mrcs", "pgm", "ppm", "dcm", "nii", "vrt"),
)
"""Endings of image files; what else follows a dot is part of the name."""
_ENDING = re.compile(rf"\.({'|'.join(ENDINGS)})$", re.IGNORECASE)
_ABSOLUTE = re.compile(r"^([A-Za-z]:|[A-Za-z][\w+.-]*:/|/|~)")
#: What Label Studio puts before the name of an uploaded file.
_UPLOAD = re.compile(r"^[0-9a-f]{8}-(?=.)")
_WHOLE = re.compile(r"^(\d+)\.0+$")
#: Examples in a message.
NAMED = 3
#: Of names that are nearly equal, so many are compared with each other.
MOST_NEAR = 50

Parts = tuple[str, ...]


def composed(text: str) -> str:
    """Letters with accents as single characters (NFC), as not all systems write them."""
    return text if text.isascii() else unicodedata.normalize("NFC", text)


def in_one_spelling(about: Mapping[str, Any]) -> tuple[Json, list[str]]:
    """Names with accented letters as single characters (NFC), and how many were not."""
    found, notes = dict(about), []
    for role in ("expert", "person", "image", "category"):
        if role not in about:
            continue
        other = {name: composed(name) for name in set(about[role]) if name}
        changed = sum(name != spelled for name, spelled in other.items())
        if changed:
            found[role] = [other.get(name, name) for name in about[role]]
            noun = {"category": "categories"}.get(role, f"{role}s")
            count = f"1 {role} is" if changed == 1 else f"{changed:,} {noun} are"
            notes.append(
                f"{count} with accents as separate characters (NFD), which are read as single ones "
                "(NFC)"
            )
    return found, notes


def size_or_none(size: Sequence[Any]) -> tuple[int, int] | None:
    """A width and a height, if they are whole numbers above zero."""
    try:
        found = tuple(int(float(side)) for side in size if not isinstance(side, bool))
    except (TypeError, ValueError, OverflowError):
        return None
    return (found[0], found[1]) if len(found) == 2 and min(found) > 0 else None


def is_absolute(path: str) -> bool:
    """Whether a path, with slashes, says where a file is on a computer or server."""
    return bool(_ABSOLUTE.match(path))


@dataclass(frozen=True)
class Mention:
    """What a file says of an image."""

    path: str
    """Its path or name, as it is written."""
    number: str | None = None
    """By which the program that wrote the file tells images apart."""
    size: tuple[int, int] | None = None
    """Width and height in pixels."""
    drawn: bool = False
    """Whether a drawing tool wrote it, so that what lies before a slash is a folder. Of a table
    only what ends like an image file is a path: other names may have any characters."""
    fields: Mapping[str, object] = field(default_factory=dict, compare=False)
    """What else the file says of it, for results that go back to the program."""

    @cached_property
    def parts(self) -> Parts:
        """Folders and name; what says nothing, such as ``./``, is taken off."""
        path = composed(self.path).strip()
        if not (self.drawn or _ENDING.search(path)):
            return (path,)
        path = path.replace("\\", "/").split("://", 1)[-1]
        kept = tuple(one for one in path.split("/") if one not in ("", ".", ".."))
        return kept or (path,)

    @cached_property
    def folded(self) -> Parts:
        """The same without the ending of an image file, upper and lower case the same."""
        return _folded(self.parts)

    @cached_property
    def order(self) -> tuple[object, ...]:
        """To sort pictures by."""
        return self.path, self.number or "", self.size or (), self.drawn

    @property
    def personal(self) -> bool:
        """Whether its folders are those of someone's computer, and not those of the data."""
        path = self.path.replace("\\", "/")
        return len(self.parts) > 1 and (is_absolute(path) or path.startswith(".."))


class Named(NamedTuple):
    """The name of each picture of each list, and what is to be said of it."""

    names: dict[tuple[str, Mention], str]
    notes: list[str]
    warnings: list[str]


class _Seen(NamedTuple):
    """An image as one list has it."""

    owner: str
    picture: Mention


def _order(one: _Seen) -> tuple[object, ...]:
    return one.owner, one.picture.order


@dataclass
class _OneImage:
    """Names that stand for one image."""

    key: Parts
    """What makes it this image."""
    seen: set[_Seen] = field(default_factory=set)
    schemes: set[int] = field(default_factory=set)

    @property
    def owners(self) -> set[str]:
        return {one.owner for one in self.seen}

    @property
    def parts(self) -> Parts:
        """Folders and name, as far as they are part of what makes it this image."""
        length = len(self.key)
        # Most lists write it alike.
        return max({one.picture.parts[-length:] for one in self.seen}, key=_spelling)


def checked_mode(mode: str) -> str:
    """One of the ways to tell images apart."""
    if mode not in IMAGE_NAMES:
        raise SettingsError(
            f"image_names is {mode!r}{did_you_mean(str(mode), IMAGE_NAMES)}; it must be one of "
            f"{', '.join(IMAGE_NAMES)}"
        )
    return mode


def name_images(seen: Iterable[tuple[str, Mention]], mode: str = "auto") -> Named:
    """A name for every picture of every list: equal names are one image.

    ``seen`` has the list that a picture is in, and the picture. What could be one image or two is
    refused, and the message says which ``mode`` decides it.
    """
    pairs = {_Seen(owner, picture) for owner, picture in seen}
    order = sorted(pairs, key=_order)
    if checked_mode(mode) == "auto":
        found = _Auto(order)
        images, warned = found.images(), found.warnings
        titles = _titles(images)
    else:
        images, warned = _chosen(order, mode), []
        titles = ["/".join(image.key) for image in images]
        if mode == "path":
            titles = [
                _as_written(image) or title for image, title in zip(images, titles, strict=True)
            ]
    if mode != "size":
        _refuse_sizes(images, titles)
    names = {
        (one.owner, one.picture): title
        for image, title in zip(images, titles, strict=True)
        for one in image.seen
    }
    return Named(names, _notes(images, titles), warned)


def _chosen(order: Sequence[_Seen], mode: str) -> list[_OneImage]:
    """Images by the user's word."""
    keys: dict[str, Callable[[Mention], Parts]] = {
        "path": lambda one: one.parts,
        "name": lambda one: one.parts[-1:],
        "stem": lambda one: (stem(one.parts[-1]),),
        "id": lambda one: (one.number or "",),
        "size": lambda one: (
            one.parts[-1] + ("" if one.size is None else f" ({one.size[0]}x{one.size[1]})"),
        ),
    }
    found: dict[Parts, _OneImage] = {}
    for one in order:
        picture = one.picture
        if mode != "path" and "/" in picture.path:
            picture = Mention(picture.path, picture.number, picture.size, drawn=True)
        key = keys[mode](picture)
        if mode == "id" and not key[0]:
            raise InputError(
                f"--image-names id: the list of {one.owner} gives the image {picture.path!r} no "
                "number; choose another way to tell images apart"
            )
        found.setdefault(key, _OneImage(key)).seen.add(one)
    return list(found.values())


def stem(name: str) -> str:
    """A name without the ending of an image file, upper and lower case the same."""
    found = _ENDING.sub("", name).casefold()
    whole = _WHOLE.match(found)
    return whole[1] if whole else found


def near(name: str) -> str:
    """What is left of a name without what is easily mistyped: blanks, dashes, leading zeros."""
    text = _UPLOAD.sub("", stem(name))
    text = re.sub(r"[\s_\-.()]+", "_", text)
    text = re.sub(r"(?<!\d)_|_(?!\d)", "", text)
    return re.sub(r"(?<!\d)0+(?=\d)", "", text)


class _Auto:
    """Finds out which names are one image."""

    def __init__(self, order: Sequence[_Seen]) -> None:
        self.order = order
        #: Of each way to be in doubt, and what to do, the images.
        self.doubts: dict[tuple[str, str], list[str]] = defaultdict(list)
        self.scheme = _schemes(order)
        #: The folders that tell images of a scheme apart.
        self.folders: dict[int, set[str]] = defaultdict(set)
        paths: dict[int, list[Mention]] = defaultdict(list)
        for one in order:
            paths[self.scheme[one.owner]].append(one.picture)
        for scheme, pictures in paths.items():
            self.folders[scheme] = _telling(pictures)

    def images(self) -> list[_OneImage]:
        """All images; pictures of a list with different paths are different ones."""
        groups: dict[str, list[_Seen]] = defaultdict(list)
        for one in self.order:
            groups[one.picture.folded[-1]].append(one)
        images: list[_OneImage] = []
        for _, group in sorted(groups.items()):
            if self._told_apart(group):
                images += self._spelled(group)
            else:
                found = self._by_path(group, folded=True)
                images += found
                for image in found:
                    self._warn_of_spelling(image)
        self._warn_of_near(images)
        return images

    def _told_apart(self, group: Sequence[_Seen]) -> bool:
        """Whether lists with the same paths have names that differ in their spelling alone."""
        found: dict[tuple[int, Parts], Parts] = {}
        for one in group:
            parts = one.picture.parts
            if found.setdefault((self.scheme[one.owner], one.picture.folded), parts) != parts:
                return True
        return False

    def _by_path(self, group: Sequence[_Seen], *, folded: bool) -> list[_OneImage]:
        """Images whose names are the same, but for the folders before them."""
        found: dict[int, dict[Parts, _OneImage]] = defaultdict(dict)
        for one in group:
            at = self.scheme[one.owner]
            key = one.picture.folded if folded else one.picture.parts
            image = found[at].get(key)
            if image is None:
                image = found[at][key] = _OneImage(key, schemes={at})
            image.seen.add(one)
        if len(found) == 1:
            images = list(next(iter(found.values())).values())
            if {len(image.key) == 1 for image in images} == {True, False}:
                self._warn_apart(images, "name")
            return images
        several = [paths for paths in found.values() if len(paths) > 1]
        if not several:
            return [self._one(list(found.values()))]
        return self._among(found)

    def _one(self, schemes: Sequence[Mapping[Parts, _OneImage]]) -> _OneImage:
        """One image of each scheme, with the same name: are they the same image?"""
        images = [image for paths in schemes for image in paths.values()]
        first = max(images, key=lambda image: (len(image.key), image.key))
        for other in images:
            doubt = self._doubt(first, other)
            if doubt == "either":
                _refuse_either(first, other)
            if doubt:
                way = "if they are two, give --image-names path"
                told = f"{_told(first)} and {_told(other)}"
                self.doubts["lie in different folders and are taken as one image", way].append(told)
        return _union(images, _common_end([image.key for image in images]))

    def _doubt(self, one: _OneImage, other: _OneImage) -> str:
        """Whether images of the same name may be two: not, perhaps, or just as well."""
        same = len(_common_end([one.key, other.key]))
        if same == min(len(one.key), len(other.key)):
            return ""
        folders = [image.key[-same - 1].casefold() for image in (one, other)]
        telling = [self._tells(image, at) for image, at in zip((one, other), folders, strict=True)]
        if all(telling):
            return "either"
        for says, image, elsewhere in (
            (telling[0], one, folders[1]),
            (telling[1], other, folders[0]),
        ):
            if says and any(elsewhere in self.folders[at] for at in image.schemes):
                return "either"
        return "perhaps" if any(telling) or _differ_twice(one.key, other.key) else ""

    def _tells(self, image: _OneImage, folder: str) -> bool:
        """Whether a folder is one of the data: it tells images apart, or is no one's own."""
        relative = any(not one.picture.personal for one in image.seen)
        return relative or any(folder in self.folders[at] for at in image.schemes)

    def _among(self, found: Mapping[int, Mapping[Parts, _OneImage]]) -> list[_OneImage]:
        """Some list has several images of this name: others must say which they mean."""
        every = [key for paths in found.values() for key in paths]
        length = next(
            k
            for k in range(1, 1 + max(map(len, every)))
            if all(len({parts[-k:] for parts in paths}) == len(paths) for paths in found.values())
        )
        ends: dict[Parts, _OneImage] = {}
        told = sorted(found.items(), key=lambda item: (-len(item[1]), item[0]))
        for _, paths in told:
            for parts, image in sorted(paths.items()):
                end = parts[-length:]
                if end not in ends and ends and not self._another(image, paths, ends):
                    others = [e for e in ends.values() if e.schemes.isdisjoint(image.schemes)]
                    if others:
                        _refuse_either(others[0], image, *others[1:2])
                ends[end] = _union([ends[end], image] if end in ends else [image], end)
        return list(ends.values())

    def _another(
        self, image: _OneImage, paths: Mapping[Parts, _OneImage], ends: Mapping[Parts, _OneImage]
    ) -> bool:
        """Whether an image that no other list has is clearly one of its own."""
        if len(image.key) < 2:
            return False
        shared = any(one[-len(end) :] == end for one in paths for end in ends)
        return self._tells(image, image.key[-2].casefold()) and (shared or len(paths) == 1)

    def _spelled(self, group: Sequence[_Seen]) -> list[_OneImage]:
        """Names that differ in their spelling, which tells images apart: each is an image."""
        by_name: dict[str, list[_Seen]] = defaultdict(list)
        for one in group:
            by_name[one.picture.parts[-1]].append(one)
        images = [image for own in by_name.values() for image in self._by_path(own, folded=False)]
        for image in images:
            others = [one for one in images if one is not image]
            if not _ENDING.search(image.parts[-1]) and all(
                one.schemes.isdisjoint(image.schemes) for one in others
            ):
                _refuse_either(others[0], image, *others[1:2])
        by_path: dict[Parts, list[_OneImage]] = defaultdict(list)
        for image in images:
            by_path[_folded(image.parts)].append(image)
        for same in by_path.values():
            owners = [owner for image in same for owner in image.owners]
            names = [image.parts[-1].casefold() for image in same]
            apart = len(set(owners)) == len(owners) or len(set(names)) < len(names)
            if len(same) > 1 and apart:
                self._warn_apart(same)
        return images

    def _warn_of_spelling(self, image: _OneImage) -> None:
        """Say which names were taken as one; a name without an ending is one with it."""
        spellings: dict[str, _Seen] = {}
        for one in sorted(image.seen, key=_order):
            spellings.setdefault(one.picture.parts[-1], one)
        bare = [name for name in spellings if not _ENDING.search(name)]
        folded = {_ENDING.sub("", name) for name in spellings}
        if len(spellings) < 2 or (len(spellings) == 2 and len(bare) == 1 and len(folded) == 1):
            return
        told = " and ".join(_told_one(one) for one in list(spellings.values())[:NAMED])
        way = "if they are several, give --image-names name"
        self.doubts["are taken as one image", way].append(told)

    def _warn_of_near(self, images: Sequence[_OneImage]) -> None:
        """Name images that may be one, spelled in two ways: no list has both."""
        groups: dict[str, list[tuple[Parts, _OneImage]]] = defaultdict(list)
        for image in images:
            parts = tuple(near(part) for name in image.parts for part in name.split("/"))
            groups[parts[-1]].append((parts, image))
        for group in groups.values():
            for (one, image), (two, other) in itertools.combinations(group[:MOST_NEAR], 2):
                alike = one[-len(two) :] == two[-len(one) :]
                same = stem(image.parts[-1]) == stem(other.parts[-1])
                if alike and not same and image.owners.isdisjoint(other.owners):
                    self._warn_apart([image, other])

    def _warn_apart(self, group: Sequence[_OneImage], mode: str = "stem") -> None:
        told = " and ".join(_told(image) for image in group[:NAMED])
        same = len({stem(image.parts[-1]) for image in group}) == 1
        way = f"give --image-names {mode}" if same else "name them alike in the files"
        self.doubts[f"are taken as {len(group)} images", f"if they are one, {way}"].append(told)

    @property
    def warnings(self) -> list[str]:
        """One for each way to be in doubt, with examples."""
        said = []
        for (what, way), told in self.doubts.items():
            others = ""
            if len(told) > 1:
                dots = ", ..." if len(told) > NAMED else ""
                others = f" (and so for {len(told) - 1:,} more: {', '.join(told[1:NAMED])}{dots})"
            said.append(f"{told[0]} {what}{others}; {way}")
        return said


def _schemes(order: Sequence[_Seen]) -> dict[str, int]:
    """Lists that share a path use the same paths: the number of the scheme of each list."""
    root: dict[str, str] = {}

    def top(owner: str) -> str:
        while root[owner] != owner:
            root[owner] = root[root[owner]]
            owner = root[owner]
        return owner

    first: dict[Parts, str] = {}
    for one in order:
        root.setdefault(one.owner, one.owner)
        other = first.setdefault(one.picture.parts, one.owner)
        root[top(one.owner)] = top(other)
    numbers: dict[str, int] = {}
    return {owner: numbers.setdefault(top(owner), len(numbers)) for owner in root}


def _telling(pictures: Sequence[Mention]) -> set[str]:
    """Folders below what all paths of a scheme have in common, or all folders of the data."""
    paths = {one.parts: one.personal for one in pictures}
    start = 0
    folders = [parts[:-1] for parts in paths]
    if all(paths.values()):
        while len({one[: start + 1] for one in folders}) == 1 and start < len(folders[0]):
            start += 1
    return {name.casefold() for one in folders for name in one[start:]}


def _common_end(paths: Sequence[Parts]) -> Parts:
    """The names at the end that all paths have in common."""
    columns = zip(*(reversed(one) for one in paths), strict=False)
    same = list(itertools.takewhile(lambda column: len(set(column)) == 1, columns))
    return tuple(column[0] for column in reversed(same))


def _differ_twice(one: Parts, other: Parts) -> bool:
    """Whether folders differ, above these agree, and above those differ again.

    ``/home/ann/s1/a`` and ``/home/bob/s1/a`` differ once, as the folders of two persons do.
    """
    pairs = zip(reversed(one[:-1]), reversed(other[:-1]), strict=False)
    runs = [same for same, _ in itertools.groupby(a.casefold() == b.casefold() for a, b in pairs)]
    return runs.count(False) > 1


def _union(images: Sequence[_OneImage], key: Parts) -> _OneImage:
    seen = {one for image in images for one in image.seen}
    return _OneImage(key, seen, {at for image in images for at in image.schemes})


def _spelling(parts: Parts) -> tuple[object, ...]:
    """Of several spellings that with an ending, in lower case, counts."""
    name = parts[-1]
    return bool(_ENDING.search(name)), not _WHOLE.match(name), name.islower(), parts


def _folded(parts: Parts) -> Parts:
    """A path without the ending, upper and lower case the same."""
    return (*(part.casefold() for part in parts[:-1]), stem(parts[-1]))


def _told(image: _OneImage) -> str:
    """An image as a list has it, with the list."""
    return _told_one(min(image.seen, key=_order))


def _told_one(one: _Seen) -> str:
    return f"{_short(one.picture.path)} (list of {one.owner})"


def _short(text: str) -> str:
    return repr(text if len(text) <= 80 else "..." + text[-77:])


def _refuse_either(one: _OneImage, other: _OneImage, *more: _OneImage) -> NoReturn:
    between = " or ".join(_told(image) for image in (one, *more))
    raise InputError(
        f"the image {_told(other)} may be the same as {between}, or another: say what makes images "
        "the same, with --image-names name (what follows the last slash), stem (the same without "
        "the ending) or path (the whole path); in Python image_names="
    )


def refuse_same_name(where: str, path: str, numbers: Sequence[str]) -> NoReturn:
    """One name, several numbers: one image that is there twice, or two images of the same name."""
    raise InputError(
        f"{where}: several images are called {_short(path)} ({', '.join(numbers[:NAMED])}): say "
        "with --image-names id that these are different images, or with --image-names name that "
        "they are one (in Python image_names=)"
    )


def _as_written(image: _OneImage) -> str:
    """The name in the lists, if all write it alike."""
    paths = {composed(one.picture.path).strip() for one in image.seen}
    return paths.pop() if len(paths) == 1 else ""


def _titles(images: Sequence[_OneImage]) -> list[str]:
    """What images are called: names in tables as they are written, if all write them so."""
    written = [{composed(one.picture.path).strip() for one in image.seen} for image in images]
    mixed = {
        one.owner
        for image, paths in zip(images, written, strict=True)
        for one in image.seen
        if len(paths) > 1 or one.picture.drawn
    }
    kept = [mixed.isdisjoint(image.owners) and len(image.parts) > 1 for image in images]
    titles = [
        next(iter(paths)) if keep else "/".join(image.parts)
        for image, paths, keep in zip(images, written, kept, strict=True)
    ]
    # Others are called by their names, as long as these tell them apart.
    ends: dict[str, list[int]] = defaultdict(list)
    for at, image in enumerate(images):
        if not kept[at]:
            ends[image.parts[-1]].append(at)
    taken = set(titles)
    for end, same in ends.items():
        if len(same) == 1 and (end not in taken or titles[same[0]] == end):
            titles[same[0]] = end
        elif len(same) > 1:
            _shorten(titles, images, same)
    first: dict[str, int] = {}
    for at, title in enumerate(titles):
        if first.setdefault(title, at) != at:
            _refuse_either(images[first[title]], images[at])
    return titles


def _shorten(titles: list[str], images: Sequence[_OneImage], at: Sequence[int]) -> None:
    """As many folders as it takes to tell images of one name apart."""
    for length in range(1, max(len(images[k].parts) for k in at) + 1):
        short = ["/".join(images[k].parts[-length:]) for k in at]
        if len(set(short)) == len(at):
            for k, title in zip(at, short, strict=True):
                titles[k] = title
            return


def _refuse_sizes(images: Sequence[_OneImage], titles: Sequence[str]) -> None:
    """The pixels of one image in two sizes are not the same."""
    for image, title in zip(images, titles, strict=True):
        sizes: dict[tuple[int, int], str] = {}
        for one in sorted(image.seen, key=_order):
            if one.picture.size is not None:
                sizes.setdefault(one.picture.size, one.owner)
        if len(sizes) > 1:
            said = ", ".join(
                f"{width} x {height} px in the list of {owner}"
                for (width, height), owner in sorted(sizes.items())[:NAMED]
            )
            raise InputError(
                f"the image {_short(title)} has several sizes: {said}; places in one are not those "
                "in the other. Export all lists from images of the same size; if these are "
                "different images, give --image-names size (in Python image_names='size')"
            )


def _notes(images: Sequence[_OneImage], titles: Sequence[str]) -> list[str]:
    """What became of names, with counts and examples."""
    joined, renamed = [], []
    for image, title in zip(images, titles, strict=True):
        written = sorted({one.picture.path.strip() for one in image.seen})
        if len(written) > 1:
            joined.append(f"{_short(title)} for {', '.join(map(_short, written[:NAMED]))}")
        elif composed(written[0]) != title:
            renamed.append(f"{_short(title)} for {_short(written[0])}")
    said = []
    for found, one, more in (
        (joined, "image is named in several ways", "images are named in several ways"),
        (renamed, "image is called by a shorter name", "images are called by shorter names"),
    ):
        if found:
            dots = ", ..." if len(found) > NAMED else ""
            count = f"1 {one}" if len(found) == 1 else f"{len(found):,} {more}"
            said.append(f"{count}: {'; '.join(found[:NAMED])}{dots}")
    return said

"""Images of several files: each gets the name by which all lists know it."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from dfcrp.io.tables import ReadTable
from dfcrp.items.image_names import Mention, composed, name_images

#: Examples in a warning.
NAMED = 3


def pictures_of(table: ReadTable) -> dict[str, Mention]:
    """What a table says of each image on it; of a column of names the name."""
    names = dict.fromkeys(table.about.get("image", ()))
    names |= dict.fromkeys(image for image, _ in table.looked)
    return {name: table.pictures.get(name) or Mention(name) for name in names}


def with_places_of_their_own(tables: Sequence[ReadTable]) -> list[ReadTable]:
    """Tables in which equal names of images are equal pictures, so that they can be joined."""
    taken: dict[str, Mention] = {}
    keys: dict[Mention, str] = {}
    found = []
    for table in tables:
        own: dict[str, str] = {}
        for name, picture in pictures_of(table).items():
            if picture not in keys:
                names = itertools.chain([name], (f"{name} [{n}]" for n in itertools.count(2)))
                keys[picture] = next(one for one in names if one not in taken)
                taken[keys[picture]] = picture
            own[name] = keys[picture]
        pictures = {own[name]: picture for name, picture in pictures_of(table).items()}
        found.append(replace(_renamed(table, own, {}), pictures=pictures))
    return found


def one_file_each(parts: Sequence[ReadTable]) -> list[str]:
    """What to say where several files of a folder are of the same image, or name none."""
    if len(parts) > 1 and not any("image" in part.about for part in parts):
        names = ", ".join(part.name for part in parts[:NAMED])
        return [
            f"{len(parts)} files that name no image are taken to be of one image: {names}"
            f"{', ...' if len(parts) > NAMED else ''}; if each is of another, add a column or "
            "property called image"
        ]
    files: dict[Mention, list[str]] = {}
    for part in parts:
        marked = set(part.about.get("image", ()))
        for key, picture in pictures_of(part).items():
            if picture.drawn and key in marked:
                files.setdefault(picture, []).append(part.name)
    several = {picture: names for picture, names in files.items() if len(names) > 1}
    if not several:
        return []
    examples = ", ".join(
        f"{picture.path} ({' and '.join(names[:NAMED])})"
        for picture, names in itertools.islice(several.items(), NAMED)
    )
    count = "1 image is" if len(several) == 1 else f"{len(several)} images are"
    return [
        f"{count} in several files, whose marks are joined: {examples}; if a file repeats another, "
        "or the images are different ones of the same name, give them in folders of their own"
    ]


def in_one_naming(
    parts: Sequence[ReadTable], mode: str
) -> tuple[list[ReadTable], list[str], list[str]]:
    """The tables with images named as all lists know them, what was renamed, and what is doubtful.

    A table's stem is the name of its list where no column says whose it is.
    """
    known = [pictures_of(part) for part in parts]
    if not any(known):
        return list(parts), [], []
    owners = [_owned(part) for part in parts]
    seen = {
        (owner, pictures[name])
        for pictures, owned in zip(known, owners, strict=True)
        for owner, name in owned
    }
    found = name_images(seen, mode)
    named = []
    for part, pictures, owned in zip(parts, known, owners, strict=True):
        names = {(owner, name): found.names[owner, pictures[name]] for owner, name in owned}
        # Where the file does not say whose an image is, all its names are those of its list.
        named.append(_renamed(part, {}, names))
    return named, found.notes, found.warnings


def _owned(table: ReadTable) -> set[tuple[str, str]]:
    """Whose list has which image; the stem stands for whoever is not named."""
    owned: set[tuple[str, str]] = set()
    if "image" in table.about:
        images = table.about["image"]
        owned.update(
            zip(table.about.get("expert") or [table.stem] * len(images), images, strict=True)
        )
    return owned | {
        (table.stem if expert is None else expert, image) for image, expert in table.looked
    }


def _renamed(
    table: ReadTable, own: Mapping[str, str], names: Mapping[tuple[str, str], str]
) -> ReadTable:
    """A table with other names of images, by their name alone or with the expert before it."""

    def name(expert: str | None, image: str) -> str:
        whose = table.stem if expert is None else expert
        return own.get(image, image) if own else names[whose, image]

    about = dict(table.about)
    if "image" in about:
        experts = about.get("expert") or [None] * len(about["image"])
        about["image"] = [name(*pair) for pair in zip(experts, about["image"], strict=True)]
    looked = [(name(expert, image), expert) for image, expert in table.looked]
    known = {
        (new, table.pictures.get(image) or Mention(image)): None
        for (_, image), new in sorted(names.items())
    }
    # In the order of the file.
    order = {image: at for at, image in enumerate(table.pictures.values())}
    named = sorted(known, key=lambda pair: order.get(pair[1], len(order)))
    aliases = frozenset((composed(picture.path), new) for new, picture in named)
    return replace(table, about=about, looked=looked, aliases=aliases, named=tuple(named))


def naming(table: ReadTable) -> Callable[[str], str]:
    """What the table calls an image that a user, or another file, names in some way.

    A name in the files of the table will do, and the end of a path that only one image has.
    """
    own = set(table.about.get("image", ())) | {image for image, _ in table.looked}
    other: dict[str, set[str]] = {}
    for name, new in table.aliases:
        other.setdefault(name, set()).add(new)
    ends: dict[str, list[tuple[tuple[str, ...], str]]] = {}
    for name in own:
        parts = Mention(name).parts
        ends.setdefault(parts[-1], []).append((parts, name))

    def name_of(image: str) -> str:
        image = composed(image)
        if image in own or not image:
            return image
        found = other.get(image)
        if found is None:
            parts = Mention(image).parts
            found = {
                name
                for known, name in ends.get(parts[-1], ())
                if known[-len(parts) :] == parts or parts[-len(known) :] == known
            }
        return next(iter(found)) if len(found) == 1 else image

    return name_of


def known_as(table: ReadTable, image: Any) -> Any:
    """The user's name or names of images, as the table calls them; others stay as they are."""
    if image is None:
        return None
    name_of = naming(table)
    return name_of(image) if isinstance(image, str) else [name_of(str(one)) for one in image]

"""Images on which nothing can meet: named in two ways, or marked by one expert only."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dfcrp.first_look.agreement import Naming
from dfcrp.first_look.finding import Finding, named, percent

if TYPE_CHECKING:
    from dfcrp.items.items import Items

#: Of the images that several looked at, such a share marked by one alone is odd.
MOSTLY_ALONE, LEAST_IMAGES = 0.8, 5
#: Pairs of names that a sentence shows.
EXAMPLES = 2


def bare_name(name: str) -> str:
    """An image's name without folder, ending, case, blanks, dashes and underscores."""
    whole = unicodedata.normalize("NFC", name).casefold().replace("\\", "/")
    return re.sub(r"[\s_-]+", "", PurePosixPath(whole).stem)


def images_apart(items: Items, words: Naming) -> Iterator[Finding]:
    """Nothing is on an image of two experts; or others looked and marked nothing."""
    if len(items.images) < 2:
        return
    image = items.image_codes
    assert image is not None
    marked = np.unique(np.column_stack([image, items.families]), axis=0)
    markers = np.bincount(marked[:, 0], minlength=len(items.images))
    experts = len(np.unique(items.families))
    if experts > 1 and int(markers.max()) == 1:
        yield _nobody_meets(items, marked, words)
        return
    if items.looked is None:
        return
    looks = items.looks
    viewers = np.bincount(looks.pairs[:, 0], minlength=len(looks.images))
    seen = viewers[np.searchsorted(np.array(looks.images), np.array(items.images))] > 1
    alone = seen & (markers == 1)
    if seen.sum() >= LEAST_IMAGES and alone.sum() >= MOSTLY_ALONE * seen.sum():
        yield Finding(
            "images",
            f"of {int(seen.sum()):,} images with {words.nouns} that several experts looked at, "
            f"{percent(float(alone.sum() / seen.sum()))} have {words.nouns} of one expert only: do "
            "the lists name images in the same way as the list of who looked?",
            numbers={"images_seen": int(seen.sum()), "images_of_one": int(alone.sum())},
        )


def _nobody_meets(items: Items, marked: NDArray[np.int64], words: Naming) -> Finding:
    """No image has items of two experts."""
    whose = {int(image): items.experts[int(f)] for image, f in marked}
    same: dict[str, list[int]] = {}
    for number, name in enumerate(items.images):
        same.setdefault(bare_name(name), []).append(number)
    twins = [
        numbers
        for numbers in same.values()
        if len(numbers) > 1 and len({whose[number] for number in numbers}) == len(numbers)
    ]
    text = (
        f"no image has {words.nouns} of two experts, so that nothing can be merged: the "
        f"{len(items.images):,} images have one expert each"
    )
    if twins:
        shown = [
            " and ".join(f"{items.images[number]!r} ({whose[number]})" for number in numbers[:3])
            for numbers in twins[:EXAMPLES]
        ]
        text += (
            f". {len(twins):,} of them look like one image under several names: "
            f"{'; '.join(shown)}{'; ...' if len(twins) > EXAMPLES else ''}. Name an image in one "
            "way"
        )
    else:
        some = [f"{items.images[n]!r} ({whose[n]})" for n in sorted(whose)[:3]]
        text += (
            f", as {named(some)}. Are the lists of the same images, and is the column of the image "
            "the right one?"
        )
    return Finding("images", text, numbers={"images_with_two_names": len(twins)})

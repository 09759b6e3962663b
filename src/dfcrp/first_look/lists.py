"""What lists tell by their names and values alone.

Images on which nothing can meet, as they are named in two ways or marked by one expert only; a list
that is given twice under two names, and lists on which everything stands twice; of records, fields
of one list that share no value with those of the others, and a list that seems to have its objects
in several rows.

Two records of one list are taken for two objects. In a list of credits, say, a person stands in as
many rows as there are films. Then records of one list agree in everything that both have as often
as records of different lists do, and a model that takes the former for chance and for likeness of
different objects finds no matches at all.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dfcrp.first_look.agreement import Naming
from dfcrp.first_look.finding import Finding, named, percent
from dfcrp.first_look.nearness import MOST_COMPARED, Nearness

if TYPE_CHECKING:
    from dfcrp.items.items import Items

#: Of the images that several looked at, such a share marked by one alone is odd.
MOSTLY_ALONE, LEAST_IMAGES = 0.8, 5
#: Pairs of names that a sentence shows.
EXAMPLES = 2
#: Two lists are one if they have so many items, and this share of the shorter is the same.
LEAST_SAME, NEARLY_ALL = 5, 0.8
#: A list has everything twice if this share of its items is near another of its own, where the
#: usual share is below the second.
TWICE, USUALLY = 0.6, 0.15
#: Items that this takes.
LEAST_TWICE = 15
Texts = NDArray[np.str_]
#: Values that are compared, at most, and that a field must have to tell.
MOST_VALUES, LEAST_VALUES = 20_000, 10
#: Lists that are compared one by one.
MOST_LISTS = 25
#: A list shares hardly any value of a field if it is less than the first, where another field of
#: its list, or the same field of other lists, shares more than the second.
HARDLY, USUALLY_SHARED = 0.02, 0.3


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


def same_lists(nearness: Nearness, experts: tuple[str, ...], words: Naming) -> Iterator[Finding]:
    """Pairs of lists of which one is a copy of the other."""
    pairs = _twins(nearness)
    if not pairs:
        return
    said = "; ".join(f"{experts[one]} and {experts[other]}" for one, other, _ in pairs[:5])
    said += "; ..." if len(pairs) > 5 else ""
    share = min(share for *_, share in pairs)
    how = "the same" if share == 1.0 else f"the same in {percent(share)} of the {words.nouns}"
    whose = sorted({f for one, other, _ in pairs for f in (one, other)})
    more = " of each pair" if len(pairs) > 1 else ""
    yield Finding(
        "same list",
        f"the lists of {said} are {how}, digit for digit or nearly so: is one list given twice, "
        "under two names? Two experts never draw the same, and a copy counts as a second opinion. "
        f"If so, leave one{more} out (--exclude-expert NAME)",
        tuple(experts[f] for f in whose),
        {"share_same": share},
    )


def _twins(nearness: Nearness) -> list[tuple[int, int, float]]:
    """Pairs of experts, and the share of the shorter list that is the same."""
    found: dict[tuple[int, int], float] = {}
    if len(nearness.lists) <= MOST_COMPARED:
        looked_up, same = nearness.pairs.shares.looked_up, nearness.pairs.same
        for one, other in np.argwhere(same >= LEAST_SAME).tolist():
            share = same[one, other] / looked_up[one, other]
            key = min(one, other), max(one, other)
            if share >= NEARLY_ALL:
                found[key] = max(share, found.get(key, 0.0))
    else:
        looked_up, same = nearness.others.shares.looked_up, nearness.others.same
        for one in np.flatnonzero((same >= LEAST_SAME) & (same >= NEARLY_ALL * looked_up)).tolist():
            other = int(nearness.others.twin[one])
            found[min(one, other), max(one, other)] = same[one] / looked_up[one]
    return [(one, other, float(share)) for (one, other), share in sorted(found.items())]


def marked_twice(nearness: Nearness, experts: tuple[str, ...], words: Naming) -> Iterator[Finding]:
    """Experts who seem to have gone over their image twice."""
    rows = nearness.sample
    close = nearness.within_list <= nearness.near[nearness.image[rows]]
    # What repeats an item exactly has a warning of its own.
    close &= nearness.within_list > 0.0
    mine, n = nearness.families[rows], len(experts)
    count = np.bincount(mine, minlength=n)
    share = np.bincount(mine, weights=close, minlength=n) / np.maximum(count, 1)
    enough = count >= LEAST_TWICE
    if np.count_nonzero(enough) < 2 or float(np.median(share[enough])) >= USUALLY:
        return
    whose = np.flatnonzero(enough & (share >= TWICE))
    if not whose.size:
        return
    names = [experts[f] for f in whose]
    some = percent(float(share[whose].min())) + (" or more" if len(names) > 1 else "")
    usual = percent(float(np.median(share[enough])))
    yield Finding(
        "marked twice",
        f"{named(names)}: {some} of their {words.nouns} lie close to another of their own, where "
        f"{usual} is usual: were these lists submitted twice, or are they of two persons? Each "
        "copy will be an object of its own. If so, remove the copies, or give the two lists two "
        "names",
        tuple(names),
        {"share_close_to_own": [float(share[f]) for f in whose]},
    )


def _letters(text: str) -> str:
    return re.sub(r"[\W_]+", "", text.casefold())


def _sorted_numbers(text: str) -> str:
    """A date's numbers in any order, and its letters."""
    numbers = sorted(part.lstrip("0") for part in re.findall(r"\d+", text))
    return " ".join([*numbers, re.sub(r"[\W\d_]+", "", text.casefold())])


def _sorted_words(text: str) -> str:
    return " ".join(sorted(re.findall(r"\w+", text.casefold())))


#: What would bring values together, and how values are compared then.
WAYS: tuple[tuple[str, Callable[[str], str]], ...] = (
    ("in other case or punctuation", _letters),
    ("with their numbers in another order", _sorted_numbers),
    ("with their words in another order", _sorted_words),
)


def fields_apart(items: Items) -> Iterator[Finding]:
    """A field of a list whose values no other list has, where such fields are mostly shared."""
    experts = len(items.experts)
    if not 2 <= experts <= MOST_LISTS:
        return
    values = {name: _by_list(column, items) for name, column in items.columns.items()}
    shared = {
        name: [_share(lists[f], _others(lists, f)) for f in range(experts)]
        for name, lists in values.items()
    }
    for name in values:
        for f in range(experts):
            if not shared[name][f] < HARDLY:
                continue
            found = _explained(name, f, values)
            if found is not None:
                share, how = found
                yield Finding(
                    "fields",
                    f"{items.experts[f]}: {percent(shared[name][f])} of the values of {name} stand "
                    f"on another list as they are, {percent(share)} {how}. Write the field in one "
                    "way on all lists",
                    (items.experts[f],),
                    {"field": name, "share": shared[name][f], "share_if_mended": share},
                )
            if experts == 2:
                break  # what one list lacks the other lacks as well


def _by_list(column: Texts, items: Items) -> list[Texts]:
    """The distinct values of a field on each list."""
    found = []
    for f in range(len(items.experts)):
        own = np.unique(column[items.families == f])
        own = own[own != ""]
        if len(own) > MOST_VALUES:
            # By what a value is, so that lists keep the same ones.
            own = own[np.array([hash_of(value) for value in own.tolist()]).argsort()[:MOST_VALUES]]
        found.append(own)
    return found


def hash_of(text: str) -> int:
    """The same number for the same text, in every process."""
    import zlib

    return zlib.crc32(text.encode())


def _others(lists: list[Texts], f: int) -> Texts:
    return np.concatenate([own for g, own in enumerate(lists) if g != f])


def _share(own: Texts, others: Texts) -> float:
    """The share of values that others have; NaN where there are few."""
    if len(own) < LEAST_VALUES or len(others) < LEAST_VALUES:
        return float("nan")
    return float(np.isin(own, others).mean())


def _explained(name: str, f: int, values: dict[str, list[Texts]]) -> tuple[float, str] | None:
    """The share of values that others have if read in another way, and in which."""
    own = values[name][f]
    for other, lists in values.items():
        if other != name and (share := _share(own, _others(lists, f))) > USUALLY_SHARED:
            mine = _share(own, lists[f])
            if not mine > HARDLY:
                return share, f"in their field {other}, as if the two were exchanged"
    theirs = _others(values[name], f)
    best = USUALLY_SHARED, ""
    for how, way in WAYS:
        read = np.unique([way(value) for value in own.tolist()])
        known = np.unique([way(value) for value in theirs.tolist()])
        share = _share(read[read != ""], known[known != ""])
        best = (share, how) if share > best[0] else best
    return best if best[1] else None


Ints = NDArray[np.int64]

#: Records that are looked at, and others with the same value of a field that are compared.
MOST_LOOKED, MOST_ALIKE = 3000, 30
#: Records of a list that would agree with one in as much by chance, at most, where values say
#: anything; and fewest fields in which an agreement may differ.
BY_CHANCE = 2.0
#: A list repeats objects if this share of its records agree with another one of it, and this share
#: of as many as agree with one of another list.
MANY, AS_MANY = 0.1, 0.5
#: Lists that are looked at one by one.
MOST_LISTS = 25


def objects_repeated(items: Items) -> Iterator[Finding]:
    """Lists with records that agree with others of the same list in all that both have."""
    experts = len(items.experts)
    codes = np.column_stack([_codes(values) for values in items.columns.values()])
    if not 2 <= experts <= MOST_LISTS or len(codes) < 2:
        return
    source = np.asarray(items.families, np.int64)
    looked = np.sort(np.random.default_rng(len(codes)).permutation(len(codes))[:MOST_LOOKED])
    pairs = _agreeing(codes, looked, len(codes) / experts)
    same = source[pairs[:, 0]] == source[pairs[:, 1]]
    number = np.bincount(source[looked], minlength=experts)
    own, other = (_with_any(pairs[kind], source, experts) / number for kind in (same, ~same))
    for f in np.flatnonzero((own >= MANY) & (own >= AS_MANY * other)).tolist():
        one, two = pairs[same & (source[pairs[:, 0]] == f)][0]
        yield Finding(
            "repeats",
            f"{items.experts[f]}: {percent(own[f])} of the records agree in all that both have "
            f"with another record of the same list (records {items.id[one]} and {items.id[two]}, "
            f"for example), {percent(other[f])} with one of another list. No list is thought to "
            "have an object twice, so that records of one list are never linked, and such likeness "
            "counts against links. If objects may stand in several rows of a list, say so with "
            '--prior crp (in Python prior="crp"), or leave one row of each',
            (items.experts[f],),
            {"share_like_own": float(own[f]), "share_like_others": float(other[f])},
        )


def _codes(values: NDArray[np.str_]) -> Ints:
    """A number for each value, whatever its capital letters; -1 where it is missing."""
    plain = np.char.strip(np.char.lower(values))
    codes = np.unique(plain, return_inverse=True)[1].ravel().astype(np.int64)
    codes[plain == ""] = -1
    return codes


def _agreeing(codes: Ints, looked: Ints, per_list: float) -> Ints:
    """Pairs of a record that is looked at and another one, which differ in nothing that both have.

    What they agree in must be more than chance: a value of a field that is as good as d equally
    frequent ones is met by one in d of the other objects.
    """
    telling = np.log(np.maximum([_distinct(column) for column in codes.T], 1.0))
    found = [np.empty((0, 2), np.int64)]
    for column in codes.T:
        pairs = _alike_in(column, looked)
        one, other = codes[pairs[:, 0]], codes[pairs[:, 1]]
        both = (one >= 0) & (other >= 0)
        agree = both & (one == other)
        told = agree @ telling >= np.log(max(per_list, 1.0) / BY_CHANCE)
        found.append(pairs[(agree == both).all(axis=1) & told])
    return np.unique(np.concatenate(found), axis=0)


def _distinct(column: Ints) -> float:
    """The number of values of a field: as many equally frequent ones are as surprising."""
    count = np.unique(column[column >= 0], return_counts=True)[1]
    share = count / max(count.sum(), 1)
    return float(np.exp(-(share * np.log(share)).sum())) if len(count) else 1.0


def _alike_in(column: Ints, looked: Ints) -> Ints:
    """Each record looked at, with up to so many of those that have its value."""
    order = np.argsort(column, kind="stable")
    ranked = column[order]
    wanted = looked[column[looked] >= 0]
    low = np.searchsorted(ranked, column[wanted], "left")
    high = np.searchsorted(ranked, column[wanted], "right")
    few = high - low <= MOST_ALIKE
    wanted, low, high = wanted[few], low[few], high[few]
    one = np.repeat(wanted, high - low)
    step = np.arange(len(one)) - np.repeat(np.cumsum(high - low) - (high - low), high - low)
    other = order[np.repeat(low, high - low) + step]
    return np.column_stack([one, other])[one != other]


def _with_any(pairs: Ints, source: Ints, experts: int) -> Ints:
    """By list, records that are the first of any of the pairs."""
    return np.bincount(source[np.unique(pairs[:, 0])], minlength=experts)

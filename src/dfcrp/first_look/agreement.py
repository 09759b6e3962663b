"""Lists that lie apart from the others, and what would bring them together."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dfcrp.first_look.finding import Finding, named, percent
from dfcrp.first_look.nearness import LEAST_ITEMS, MOST_COMPARED, Nearness, Shares
from dfcrp.first_look.transformations import Fit, Move, find_move

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

#: Lists that are tried to be brought to the others, at most, those that agree least first.
MOST_TRIED = 10
#: A list that agrees with others, but with so much fewer than is usual, is tried as well.
MUCH_LESS = 0.5
#: In a crowd a list is tried that has so much fewer items near any of the others'.
LESS_IN_CROWDS = 0.7
#: Images that are tried each by itself, the fullest first.
IMAGES_TRIED = 3
#: Items that it takes to say that lists lie apart for no reason that is known.
LEAST_APART = 20
#: Below this share, and no more than by chance, nothing agrees.
HARDLY = 0.2


@dataclass(frozen=True)
class Naming:
    """What things are called: one item, several, and the columns of the coordinates."""

    noun: str
    nouns: str
    #: By coordinate, the column of the file.
    columns: tuple[str, ...] = ()
    roles: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Groups:
    """Experts who agree with each other; the first group is the main one."""

    groups: list[list[int]]
    #: Of each expert: of what was looked up, which share was near any other list.
    share: Floats
    looked_up: Ints


def lists_apart(
    nearness: Nearness, experts: tuple[str, ...], images: tuple[str, ...], words: Naming
) -> list[Finding]:
    """Findings on lists that do not lie where those of the others do."""
    crowd = len(nearness.lists) > MOST_COMPARED
    found = _groups_of_crowd(nearness) if crowd else _groups(nearness)
    if found is None:
        return []
    return list(_findings(nearness, found, experts, images, words, crowd=crowd))


def _groups(nearness: Nearness) -> _Groups | None:
    """Few experts, by which of them agree with which."""
    shares = nearness.pairs.shares
    known = (shares.looked_up >= LEAST_ITEMS) | (shares.looked_up.T >= LEAST_ITEMS)
    if not known.any():
        return None
    agree = shares.beyond_chance | shares.beyond_chance.T
    experts = len(agree)
    with np.errstate(invalid="ignore"):
        either = np.fmax(shares.share, shares.share.T)
    best = np.array([np.nanmax(np.append(either[f], 0.0)) for f in range(experts)])
    usual = float(np.median(best[known.any(axis=1)]))
    groups = _connected(agree & (either >= MUCH_LESS * usual))
    length = [sum(len(nearness.lists[f]) for f in group) for group in groups]
    order = sorted(range(len(groups)), key=lambda g: (-len(groups[g]), -length[g], groups[g]))
    looked_up = np.maximum(shares.looked_up, shares.looked_up.T).max(axis=1)
    return _Groups([groups[g] for g in order], best, looked_up)


def _connected(agree: NDArray[np.bool_]) -> list[list[int]]:
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    count, group = connected_components(csr_array(agree), directed=False)
    return [np.flatnonzero(group == g).tolist() for g in range(count)]


def _groups_of_crowd(nearness: Nearness) -> _Groups | None:
    """Many experts: those who agree with anybody, and each of the others."""
    shares: Shares = nearness.others.shares
    enough = shares.looked_up >= LEAST_ITEMS
    if not enough.any():
        return None
    usual = float(np.median(shares.share[enough]))
    apart = enough & (shares.share < LESS_IN_CROWDS * usual)
    order = np.flatnonzero(apart)
    order = order[np.argsort(shares.share[order], kind="stable")]
    main = np.flatnonzero(~apart).tolist()
    groups = [main, *([int(f)] for f in order[:MOST_TRIED])]
    return _Groups(groups, shares.share, shares.looked_up)


def _findings(
    nearness: Nearness,
    found: _Groups,
    experts: tuple[str, ...],
    images: tuple[str, ...],
    words: Naming,
    *,
    crowd: bool,
) -> Iterator[Finding]:
    main, *rest = found.groups
    others = np.concatenate([nearness.lists[f] for f in main])
    mended, left = False, []
    for group in rest[:MOST_TRIED]:
        rows = np.concatenate([nearness.lists[f] for f in group])
        if len(rows) < LEAST_ITEMS:
            continue
        fit, image = _fit(nearness, rows, others)
        names = [experts[f] for f in group]
        if fit is not None:
            mended = True
            rival = named([experts[f] for f in main]) if len(main) == len(group) else ""
            where = "" if image is None else f" on image {images[image]}"
            yield _mend(fit, names, rival, where, words)
        elif found.looked_up[group].max() >= LEAST_APART:
            left += group
    if not nearness.sight.placed or crowd:
        return
    shares = nearness.pairs.shares
    if len(main) == 1:
        if left and not mended and not shares.beyond_chance.any():
            yield from _nothing_agrees(nearness, words)
        return
    usual = float(np.median(found.share[main]))
    less = MUCH_LESS * usual
    away = [f for f in left if shares.all_by_chance(f) and found.share[f] < less]
    if away:
        yield _far(experts, away, found.share, usual, words)


def _fit(nearness: Nearness, rows: Ints, others: Ints) -> tuple[Fit | None, int | None]:
    """What brings a list to the others: on all images, or an exchange or a flip on several.

    Where images differ in height, y that runs the other way does so about another line on each.
    """
    fit = find_move(nearness, rows, others)
    on_image = np.bincount(nearness.image[rows])
    if fit is not None or np.count_nonzero(on_image) < 2:
        return fit, None
    seen: dict[tuple[Any, ...], tuple[Fit, int]] = {}
    for image in np.argsort(-on_image, kind="stable")[:IMAGES_TRIED].tolist():
        some, there = (part[nearness.image[part] == image] for part in (rows, others))
        found = find_move(nearness, some, there)
        if found is None or not (found.move.exchanged or min(found.move.sign) < 0.0):
            continue
        if (way := (found.move.order, found.move.sign)) in seen:
            return seen[way]
        seen[way] = found, image
    return None, None


def _nothing_agrees(nearness: Nearness, words: Naming) -> Iterator[Finding]:
    near = nearness.pairs.any_near
    by_chance = nearness.pairs.shares.all_by_chance()
    if len(near) < LEAST_APART or near.mean() >= HARDLY or not by_chance:
        return
    share = float(near.mean())
    yield Finding(
        "no agreement",
        f"only {percent(share)} of the {words.nouns} lie near one of another expert, no more than "
        "by chance, and no exchange of axes, flip, shift or scale of a list changes that: hardly "
        "anything can be merged. Are the lists of the same objects, on the same image?",
        numbers={"share_near": share},
    )


def _far(
    experts: tuple[str, ...], away: list[int], share: Floats, usual: float, words: Naming
) -> Finding:
    names = [experts[f] for f in away]
    now = ", ".join(percent(float(share[f])) for f in away[:5])
    several = len(away) > 1
    return Finding(
        "one list apart",
        f"{named(names)}: {now} of their {words.nouns} lie near those of any one other expert, no "
        f"more than by chance, where {percent(usual)} is usual; no exchange of axes, flip, shift "
        f"or scale changes that. {'Are these lists' if several else 'Is this a list'} of the same "
        "objects, on the same image?",
        tuple(names),
        {"share_near": [float(share[f]) for f in away], "usual": usual},
    )


def _mend(fit: Fit, names: list[str], rival: str, where: str, words: Naming) -> Finding:
    what, formula = describe(fit.move, words.roles)
    who = named(names) + (f" (or else {rival})" if rival else "")
    text = (
        f"{who}: {what}: {percent(fit.before)} of their {words.nouns} lie near those of "
        f"{rival or 'the others'}{where} as they are, {percent(fit.after)} with {formula}. "
        f"{remedy(fit.move, words)}"
    )
    numbers = {"share_near": fit.before, "share_near_if_mended": fit.after, "mended_by": formula}
    return Finding("axes", text, tuple(names), numbers)


def describe(move: Move, roles: tuple[str, ...]) -> tuple[str, str]:
    """What looks wrong, and the formula that mends it."""
    moved = [roles[at] for at, source in enumerate(move.order) if at != source]
    exchanged = move.exchanged
    turned = [roles[at] for at, sign in enumerate(move.sign) if sign < 0.0]
    shifted = any(move.shift)
    both = " and ".join(roles)
    if exchanged:
        what = f"{' and '.join(moved)} look exchanged"
        what += f", and {' and '.join(turned)} turned round" if turned else ""
    elif turned:
        runs = "runs the other way" if len(turned) == 1 else "run the other way"
        what = f"{' and '.join(turned)} {runs}"
    elif move.scale != 1.0:
        what = f"{both} look to be in another unit"
        what += " and to have another origin" if shifted else ""
    else:
        what = f"{both} look to have another origin"
    if move.scale != 1.0 and (exchanged or turned):
        what += ", in another unit"
    if shifted and exchanged:
        what += ", with another origin"
    terms = [_term(move, at, roles) for at in range(len(roles))]
    changed = [term for term in terms if term is not None]
    return what, " and ".join(changed)


def _term(move: Move, at: int, roles: tuple[str, ...]) -> str | None:
    """The new value of one coordinate from the old ones; None if it stays."""
    source, sign, shift = roles[move.order[at]], move.sign[at], move.shift[at]
    body = source if move.scale == 1.0 else f"{move.scale:.6g} {source}"
    if sign < 0.0:
        body = f"{shift:.12g} - {body}" if shift else f"-{body}"
    elif shift:
        body = f"{body} {'+' if shift > 0.0 else '-'} {abs(shift):.12g}"
    return None if body == roles[at] else f"{roles[at]} = {body}"


def remedy(move: Move, words: Naming) -> str:
    """What to do about it."""
    exchanged = move.order == (1, 0)
    if exchanged and min(move.sign) > 0.0 and not any(move.shift) and move.scale == 1.0:
        if words.columns:
            first, second = words.columns
            return (
                f"If they are, read that list with --columns x={second},y={first} (dfcrp convert "
                "makes a file of it that can be read beside the others)"
            )
        return "If they are, exchange the two columns"
    return "If that is a mistake, correct the list"

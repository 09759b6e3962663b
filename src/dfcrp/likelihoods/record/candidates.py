"""Which records may be of one object: keys chosen so that few pairs are made and few are missed.

A *key* is a set of fields, in each of which two records have the same *mark*: the value itself, or
something that small faults leave unchanged (the first letters, the consonants). Records that agree
in a key are candidates. Text has its rarest letter triples besides, measures their nearest
neighbours. Keys are taken one after the other, by how many matches they find that others do not,
for each pair they make. How many that is follows from what is believed of the fields' faults: made
up matches, with the missing values of real records, are tested against every key.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from dfcrp.errors import SettingsError
from dfcrp.likelihoods.record.fields import Field, Fields

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Truths = NDArray[np.bool_]

#: Pairs in a block of more records than this are left to keys of more fields.
LARGEST_BLOCK = 200
#: Pairs for each record, in all and of one key.
PAIRS_PER_RECORD = 60.0
#: Simulated matches by which keys are chosen, and the share of them that is worth a further key.
MADE_UP, WORTHWHILE = 4000, 0.0005
#: The same where more than this share of the matches is in doubt: there many pairs that are not
#: probable by themselves are some matches together, and rates would come out low without them.
IN_DOUBT, WORTHWHILE_IN_DOUBT = 0.06, 0.00005
#: What it is worth to find a match for the first time, the second, and so on.
WORTH = np.array([1.0, 0.3, 0.1, 0.05, 0.03, 0.02, 0.01, 0.0])
#: Fields that are combined in every way; of more, up to so many at a time.
FEW_FIELDS, MOST_COMBINED = 7, 3
#: Candidates of a record that no key has any for, and pairs that are looked at for them.
LONELY, MOST_COMPARED = 8, 20_000_000
#: Probable pairs with a record of which the same fields are known, from which a partner is taken.
KNOWN_PARTNERS = 5
SIDES: tuple[Literal["left", "right"], ...] = ("left", "right")
NOBODY = np.empty((0, 2), np.int64)
#: Nearest neighbours of a measure.
NEAREST = 12
#: Rarest letter triples of a text that are marks.
TRIPLES = 4
#: Blocks of records that share a triple, largest first, and pairs for each record that they make.
TRIPLE_BLOCKS, TRIPLE_PAIRS = (100, 50, 20, 10), 15.0
#: What a fault leaves unchanged: the first letters, the consonants, one of the rare triples.
FIRST_LETTERS = 3
#: Of free text, whether a match is among the most similar ones.
KEPT_BY_FAULT = {"first": 0.75, "sound": 0.45, "triples": 0.8, "words": 0.99}


@dataclass(frozen=True)
class KeyRates:
    """How often a field of two records of one object is the same or near, and how near."""

    same: Floats
    near: Floats
    scale: Floats


@dataclass(frozen=True)
class Candidates:
    """Pairs of records that may be of one object, (m, 2), and what is known of those left out."""

    pairs: Ints
    #: The keys, in words, and the pairs that each makes.
    keys: tuple[tuple[str, int], ...]
    #: Records without any candidate in another source.
    alone: int
    #: Share of the true pairs that is thought to be missed; NaN where it is not known.
    missed: float


@dataclass(frozen=True)
class KeyMark:
    """One thing in which records may agree: a number for each record, -1 where it is missing."""

    field: int
    name: str
    codes: Ints
    #: Whether each simulated match agrees in it.
    agrees: Truths
    exact: bool = True


@dataclass(frozen=True)
class Option:
    """A way to make candidates: the simulated matches it finds, and its pairs."""

    name: str
    finds: Truths
    count: float
    pairs: Callable[[], Ints]


@dataclass(frozen=True)
class MadeUp:
    """Matches as they would be by the rates: two records, and by field what became of the value.

    The first MADE_UP are by themselves; the others are either record of these with a third, in the
    same order, which may bring together two that have no key in common.
    """

    rows: Ints
    same: Truths
    near: Truths
    #: Of near values, how lucky they are with what a fault leaves unchanged.
    luck: Floats
    #: How far apart measures are.
    apart: Floats

    @staticmethod
    def of(records: Fields, rates: KeyRates, rng: np.random.Generator, matches: Ints) -> MadeUp:
        """With the missing values of records picked at random, and of their ``_partners``."""
        fields = records.fields
        first = rng.integers(len(records.codes), size=MADE_UP)
        others = [_partners(records, first, rng, matches) for _ in range(2)]
        three = np.column_stack([first, *others])
        rows = np.concatenate([three[:, [0, 1]], three[:, [0, 2]], three[:, [1, 2]]])
        known = (records.codes[rows] >= 0).all(axis=1)
        drawn = rng.random((len(rows), len(fields)))
        same = known & (drawn < rates.same)
        near = known & ~same & (drawn < rates.same + rates.near)
        apart = np.column_stack(
            [
                np.linalg.norm(rng.standard_normal((len(rows), max(field.dimensions, 1))), axis=1)
                for field in fields
            ]
        )
        apart = np.where(near, np.sqrt(2.0) * rates.scale * apart, 0.0)
        return MadeUp(rows, same, near, rng.random(drawn.shape), apart)


def _partners(records: Fields, first: Ints, rng: np.random.Generator, matches: Ints) -> Ints:
    """For each record a random one, or a partner of one with the same fields if these are known.

    Values are not missing at random where a list has records of several kinds, such as persons and
    films, and no person is a film.
    """
    found = rng.integers(len(records.codes), size=len(first))
    pattern = np.unique(records.codes >= 0, axis=0, return_inverse=True)[1].ravel()
    ends = np.concatenate([matches, matches[:, ::-1]])
    ends = ends[np.argsort(pattern[ends[:, 0]], kind="stable")]
    begin, end = (np.searchsorted(pattern[ends[:, 0]], pattern[first], side) for side in SIDES)
    known = end - begin >= KNOWN_PARTNERS
    picked = begin + (rng.random(len(first)) * (end - begin)).astype(np.int64)
    found[known] = ends[picked[known], 1]
    return found


def given_keys(records: Fields, keys: Sequence[Sequence[str]], source: Ints) -> Candidates:
    """Pairs that agree in one of the user's keys."""
    found, made = [np.empty((0, 2), np.int64)], []
    for key in keys:
        for name in key:
            if name not in records.names:
                raise SettingsError(
                    f"there is no field {name!r} to look for candidates by; the fields are "
                    f"{', '.join(records.names)}"
                )
        codes = joined([records.codes[:, records.names.index(name)] for name in key])
        found.append(pairs_within(codes, LARGEST_BLOCK))
        made.append((" + ".join(key), len(found[-1])))
    pairs = unique_pairs(np.concatenate(found), len(records.codes))
    return Candidates(pairs, tuple(made), alone(pairs, source), float("nan"))


def find_candidates(
    records: Fields,
    rates: KeyRates,
    source: Ints,
    texts: Mapping[int, Ints],
    thirds: float = 0.0,
    doubt: float = 0.0,
    matches: Ints = NOBODY,
) -> Candidates:
    """The pairs of the keys that find most for their number.

    ``texts`` has the pairs of records with the most similar free texts, by field, ``thirds`` is how
    many further records an object of two is expected to have, ``doubt`` the share of the matches
    that the best guess would miss or make by mistake; ``matches`` are pairs that are probable.
    """
    n = len(records.codes)
    made_up = MadeUp.of(records, rates, np.random.default_rng(n), matches)
    found, keys = [np.empty((0, 2), np.int64)], []
    covered = np.zeros(len(made_up.rows), np.bool_)
    worthwhile = WORTHWHILE_IN_DOUBT if doubt > IN_DOUBT else WORTHWHILE
    for option in _choose(_options(records, made_up, texts), n, worthwhile):
        pairs = option.pairs()
        found.append(pairs)
        keys.append((option.name, len(pairs)))
        covered |= option.finds
    pairs = unique_pairs(np.concatenate(found), n)
    more = _for_lonely(records, made_up, lonely(pairs, source), source)
    if len(more):
        keys.append(("most fields, of records without another candidate", len(more)))
        pairs = unique_pairs(np.concatenate([pairs, more]), n)
    return Candidates(pairs, tuple(keys), alone(pairs, source), _missed(covered, thirds))


def _missed(covered: Truths, thirds: float) -> float:
    """Share of the matches that are missed, also through a third record if there is one."""
    alone, first, second = covered.reshape(3, MADE_UP)
    through = (first & second) * -np.expm1(-thirds)
    return float((~alone * (1.0 - through)).mean())


def alone(pairs: Ints, source: Ints) -> int:
    """How many records have no candidate in another source."""
    return len(lonely(pairs, source))


def lonely(pairs: Ints, source: Ints) -> Ints:
    """Records without a candidate in another source."""
    across = pairs[source[pairs[:, 0]] != source[pairs[:, 1]]]
    return np.setdiff1d(np.arange(len(source)), across)


def unique_pairs(pairs: Ints, n: int) -> Ints:
    """Each pair once, the smaller number first."""
    keys = sorted_once(pairs.min(axis=1) * n + pairs.max(axis=1))
    return np.column_stack(np.divmod(keys, max(n, 1)))


def sorted_once(numbers: Ints) -> Ints:
    """Each number once, in order: by sorting, which is far quicker than a table of millions."""
    found = np.sort(numbers)
    return found[np.diff(found, prepend=-1) != 0]


def joined(columns: Sequence[Ints]) -> Ints:
    """One code for all columns together, -1 where one of them is missing."""
    known = np.all([column >= 0 for column in columns], axis=0)
    code = np.zeros(len(known), np.int64)
    for column in columns:
        code = np.unique(code * (int(column.max(initial=0)) + 2) + column, return_inverse=True)[1]
    return np.where(known, code, -1)


def pairs_within(codes: Ints, most: int) -> Ints:
    """All pairs of records with the same code, unless more than ``most`` share it."""
    known = np.flatnonzero(codes >= 0)
    return known[_pairs_of_equal(codes[known], most)]


def _pairs_of_equal(codes: Ints, most: int) -> Ints:
    """Pairs of positions with the same code; sizes of blocks are handled one after the other."""
    order = np.argsort(codes, kind="stable")
    ends = np.flatnonzero(np.diff(codes[order], append=-1)) + 1
    sizes = np.diff(ends, prepend=0)
    found = [np.empty((0, 2), np.int64)]
    for size in np.unique(sizes[(sizes > 1) & (sizes <= most)]).tolist():
        members = order[(ends[sizes == size] - size)[:, None] + np.arange(size)]
        first, second = np.triu_indices(size, 1)
        found.append(np.column_stack([members[:, first].ravel(), members[:, second].ravel()]))
    return np.concatenate(found)


def _options(records: Fields, made_up: MadeUp, texts: Mapping[int, Ints]) -> list[Option]:
    """All ways to make candidates."""
    marks: list[KeyMark] = []
    found: list[Option] = []
    for at, field in enumerate(records.fields):
        if field.dimensions:
            found.append(_nearest(at, field, made_up))
        else:
            marks += _marks(at, field, made_up)
        if field.kind == "string":
            found += _triples(at, field, made_up)
        if at in texts:
            found.append(_most_similar(at, field, made_up, texts[at]))
    return found + [_key(key, made_up.rows[:, 0]) for key in _combined(marks)]


def _for_lonely(records: Fields, made_up: MadeUp, rows: Ints, source: Ints) -> Ints:
    """For each of these records, those of other sources that agree with it in most.

    An agreement counts the logarithm of its rarity, and all of them together must be rarer than one
    in sqrt(n). If lonely records are very many, not all are served.
    """
    n = len(source)
    fields = [
        _marks(at, field, made_up)
        for at, field in enumerate(records.fields)
        if not field.dimensions
    ]
    found = [np.empty((0, 2), np.int64)]
    for row in rows[: MOST_COMPARED // max(n, 1)].tolist():
        score = np.zeros(n)
        for marks in fields:
            most = np.zeros(n)
            for mark in marks:
                if mark.codes[row] >= 0:
                    same = mark.codes == mark.codes[row]
                    most = np.maximum(most, same * np.log(n / np.count_nonzero(same)))
            score += most
        score[source == source[row]] = 0.0
        best = np.argpartition(-score, min(LONELY, n - 1))[:LONELY]
        best = best[score[best] > 0.5 * np.log(n)]
        found.append(np.column_stack([np.full(len(best), row), best]))
    return np.concatenate(found)


def _choose(options: list[Option], n: int, worthwhile: float) -> list[Option]:
    """One after the other, what finds most for each pair until the pairs are used up.

    Real faults come together more often than simulated ones, so that a match which is found already
    is worth finding by other keys as well, only less.
    """
    options = [option for option in options if option.count <= PAIRS_PER_RECORD * n]
    chosen: list[Option] = []
    left, times = PAIRS_PER_RECORD * n, np.zeros(MADE_UP, np.int64)
    finds = {id(option): option.finds[:MADE_UP] for option in options}
    while options:
        worth = WORTH[np.minimum(times, len(WORTH) - 1)]
        gain = np.array([float((finds[id(option)] * worth).mean()) for option in options])
        # A key without pairs costs the time to look for them.
        cost = np.array([option.count + n / 2.0 for option in options])
        gain[[option.count > left for option in options]] = 0.0
        best = int(np.argmax(gain / cost))
        if gain[best] < worthwhile:
            break
        chosen.append(options.pop(best))
        times += finds[id(chosen[-1])]
        left -= chosen[-1].count
    return chosen


def _marks(at: int, field: Field, made_up: MadeUp) -> list[KeyMark]:
    """What records may agree in, in this field."""
    same, near = made_up.same[:, at], made_up.near[:, at]
    found = [KeyMark(at, field.name, field.codes, same)]
    if field.kind not in {"string", "date"} or not len(field.values):
        return found
    texts = list(field.values)
    looks: dict[str, Callable[[str], str]] = {"first": _first_letters, "sound": _consonants}
    for name, look in looks.items():
        code = np.unique(np.array([look(text) for text in texts]), return_inverse=True)[1]
        if len(np.unique(code)) < len(texts):
            agrees = same | (near & (made_up.luck[:, at] < KEPT_BY_FAULT[name]))
            codes = np.where(field.codes >= 0, code[np.maximum(field.codes, 0)], -1)
            found.append(KeyMark(at, f"{field.name} ({name})", codes, agrees, exact=False))
    return found


def _first_letters(text: str) -> str:
    return text[:FIRST_LETTERS]


def _consonants(text: str) -> str:
    """Without vowels and doubled letters, the words in the order of the alphabet."""
    words = re.findall(r"\w+", text)
    without = [word[:1] + re.sub("[aeiouhwy]", "", word[1:]) for word in words]
    return " ".join(sorted(re.sub(r"(.)\1+", r"\1", word) for word in without))


def _combined(marks: list[KeyMark]) -> list[tuple[KeyMark, ...]]:
    """Sets of marks of different fields: in every way if there are few fields."""
    fields = {mark.field for mark in marks}
    exact = [mark for mark in marks if mark.exact]
    few = len(fields) <= FEW_FIELDS
    found: list[tuple[KeyMark, ...]] = []
    for size in range(1, (len(fields) if few else MOST_COMBINED) + 1):
        for key in combinations(marks if size <= 2 else exact, size):
            if len({mark.field for mark in key}) == size:
                found.append(key)
    if not few:
        # All fields but a few, for records of categories alone.
        for left_out in range(3):
            for gone in combinations(range(len(exact)), left_out):
                found.append(tuple(mark for at, mark in enumerate(exact) if at not in gone))
    return found


def _key(key: tuple[KeyMark, ...], rows: Ints) -> Option:
    """Records that agree in all marks of the key, in blocks that are not too large."""
    codes = joined([mark.codes for mark in key])
    sizes = np.bincount(codes[codes >= 0], minlength=1)
    small = sizes <= LARGEST_BLOCK
    agrees = np.all([mark.agrees for mark in key], axis=0)
    here = codes[rows]
    return Option(
        " + ".join(mark.name for mark in key),
        agrees & (here >= 0) & small[np.maximum(here, 0)],
        float((sizes[small] * (sizes[small] - 1.0)).sum()) / 2.0,
        lambda: pairs_within(joined([mark.codes for mark in key]), LARGEST_BLOCK),
    )


def _nearest(at: int, field: Field, made_up: MadeUp) -> Option:
    """Nearest neighbours of a measure."""
    from scipy.spatial import cKDTree

    known = np.flatnonzero(field.codes >= 0)
    reach = np.full(len(field.codes), -1.0)
    k = min(NEAREST + 1, len(known))
    pairs = np.empty((0, 2), np.int64)
    if k > 1:
        places = field.places[field.codes[known]]
        far, near = cKDTree(places).query(places, k=k)
        reach[known] = far[:, -1]
        pairs = np.column_stack([np.repeat(known, k), known[near.ravel()]])
        pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    there = made_up.same[:, at] | made_up.near[:, at]
    finds = there & (made_up.apart[:, at] <= reach[made_up.rows].max(axis=1))
    return Option(f"{field.name} (nearest)", finds, float(len(pairs)), lambda: pairs)


def _most_similar(at: int, field: Field, made_up: MadeUp, pairs: Ints) -> Option:
    """The most similar free texts."""
    near = made_up.near[:, at] & (made_up.luck[:, at] < KEPT_BY_FAULT["words"])
    finds = made_up.same[:, at] | near
    return Option(f"{field.name} (most similar)", finds, float(len(pairs)), lambda: pairs)


def _triples(at: int, field: Field, made_up: MadeUp) -> list[Option]:
    """Records that share one of the rarest letter triples of either."""
    texts = [f" {value} " for value in field.values]
    listed = [
        (value, text[at : at + 3])
        for value, text in enumerate(texts)
        for at in range(max(len(text) - 2, 0))
    ]
    if not listed:
        return []
    value = np.array([one for one, _ in listed])
    triple = np.unique(np.array([text for _, text in listed]), return_inverse=True)[1]
    count = np.bincount(field.codes[field.codes >= 0], minlength=len(texts))
    times = np.asarray(np.bincount(triple, weights=count[value]), np.float64)
    for most in TRIPLE_BLOCKS:
        codes = _rarest(value, triple, times, most, len(texts))
        made = [np.where(field.codes >= 0, code[field.codes], -1) for code in codes]
        # A record has several triples, so one list of all.
        every = np.concatenate(made)
        sizes = np.bincount(every[every >= 0], minlength=1)
        pairs = float((sizes * (sizes - 1.0)).sum()) / 2.0
        if pairs <= TRIPLE_PAIRS * len(field.codes):
            break
    else:
        return []
    n = len(field.codes)
    has = (np.stack(made)[:, made_up.rows[:, 0]] >= 0).any(axis=0)
    near = made_up.near[:, at] & (made_up.luck[:, at] < KEPT_BY_FAULT["triples"])
    finds = has & (made_up.same[:, at] | near)
    name = f"{field.name} (rare letters)"
    return [Option(name, finds, pairs, lambda: _apart(pairs_within(every, most) % n))]


def _apart(pairs: Ints) -> Ints:
    return pairs[pairs[:, 0] != pairs[:, 1]]


def _rarest(value: Ints, triple: Ints, times: Floats, most: int, values: int) -> list[Ints]:
    """The rarest triples of each value that are in 2 to ``most`` records; -1 for none."""
    fine = (times[triple] >= 2) & (times[triple] <= most)
    value, triple = value[fine], triple[fine]
    order = np.lexsort((triple, times[triple], value))
    value, triple = value[order], triple[order]
    first = np.searchsorted(value, np.arange(values))
    last = np.searchsorted(value, np.arange(values), side="right")
    found = []
    for which in range(TRIPLES):
        there = first + which < last
        code = np.full(values, -1, np.int64)
        code[there] = triple[first[there] + which]
        found.append(code)
    return found

"""Simulated lists of records with known truth: places from four sources, and two surveys."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

#: Syllables of simulated names, and words that come before or after them.
SYLLABLES = tuple(
    first + second for first in "bdfgklmnprstv" for second in ("a", "e", "i", "o", "an", "er")
)
WORDS = (
    *("Hotel", "Villa", "Castle", "Saint", "Old", "New", "Upper"),
    *("Lower", "Great", "North", "South", "Royal", "Grand", "Little"),
)
SHORT = {"Saint": "St", "Great": "Gt", "Upper": "Up", "Lower": "Low", "North": "N", "South": "S"}
LETTERS = "abcdefghijklmnopqrstuvwxyz"


@dataclass(frozen=True)
class MadeUp:
    """Columns of records, "" where a value is missing, with their source and object."""

    columns: dict[str, list[str]]
    source: list[str]
    truth: list[int]
    #: What should be learned: percentages of values that are wrong (miss_), or altered or wrong
    #: (fault_), and errors in km.
    rates: dict[str, float]


def places(
    rng: np.random.Generator,
    objects: int = 800,
    errors: tuple[float, ...] = (0.001, 0.005, 0.02, 0.05),
    missing: float = 0.2,
    typos: float = 0.15,
    abbreviated: float = 0.15,
    listed: float = 0.8,
) -> MadeUp:
    """Objects with a name, a place, a street and a year; a source lists each with a probability.

    ``errors`` are the standard deviations of a source's coordinates, in degrees.
    """
    names = [_name(rng) for _ in range(objects)]
    where = np.column_stack([rng.uniform(44, 52, objects), rng.uniform(-3, 12, objects)])
    years = rng.integers(1700, 2000, objects)
    roads = [_name(rng) for _ in range(objects // 4)]
    streets = [f"{rng.choice(roads)} Street {rng.integers(1, 120)}" for _ in range(objects)]
    columns: dict[str, list[str]] = {
        "name": [],
        "latitude": [],
        "longitude": [],
        "street": [],
        "built": [],
    }
    source, truth = [], []
    for at, error in enumerate(errors):
        for which in np.flatnonzero(rng.random(objects) < listed):
            name = names[which]
            if rng.random() < abbreviated:
                name = _abbreviated(rng, name)
            if rng.random() < typos:
                name = mistyped(rng, name)
            found = where[which] + error * rng.standard_normal(2)
            year = str(years[which] + (rng.integers(-2, 3) if rng.random() < 0.1 else 0))
            street = streets[which] if rng.random() > typos else mistyped(rng, streets[which])
            cells = [name, f"{found[0]:.5f}", f"{found[1]:.5f}", street, year]
            # Latitude and longitude are missing together.
            gone = (rng.random(4) < missing)[[0, 1, 1, 2, 3]]
            cells = ["" if lost else cell for lost, cell in zip(gone, cells, strict=True)]
            for column, cell in zip(columns.values(), cells, strict=True):
                column.append(cell)
            source.append(f"source{at + 1}")
            truth.append(int(which))
    true = {"name": names, "street": streets, "built": [str(year) for year in years]}
    rates = {f"fault_{name}": _differing(columns[name], truth, true[name]) for name in true}
    for at, error in enumerate(errors):
        rates[f"scale_latitude+longitude (source{at + 1})"] = _in_km(error, where[:, 0])
    return MadeUp(columns, source, truth, rates)


def _differing(column: list[str], truth: list[int], true: list[str]) -> float:
    """Percentage of the known values that are not the true ones."""
    known = [(cell, true[which]) for cell, which in zip(column, truth, strict=True) if cell]
    return 100.0 * sum(cell != value for cell, value in known) / len(known)


def _in_km(degrees: float, latitude: np.ndarray) -> float:
    """Of an error in latitude and longitude, as one standard deviation in a plane."""
    narrow = np.cos(np.radians(latitude)) ** 2
    return float(np.radians(degrees) * 6371.0 * np.sqrt((1.0 + narrow.mean()) / 2.0))


#: Fields of the survey with the number of their values; of the hard one there are fewer.
SURVEY = {
    **{"sex": 2, "region": 20, "education": 6, "job": 40},
    **{"status": 4, "origin": 15, "kids": 6},
}
HARD_SURVEY = ("sex", "region", "education", "status", "origin")


def survey(
    rng: np.random.Generator,
    persons: int = 20_000,
    listed: float = 0.68,
    changed: float = 0.03,
    fields: tuple[str, ...] = tuple(SURVEY),
) -> MadeUp:
    """Two waves in which persons have categories and a year of birth only, in random order.

    Persons in one order on both lists would help whoever breaks ties by the place of a row.
    """
    true = {
        name: rng.choice(SURVEY[name], persons, p=_uneven(rng, SURVEY[name])) for name in fields
    }
    true["birth_year"] = 1930 + rng.integers(0, 75, persons)
    given = {"sex": 0.002, "birth_year": 0.02, "origin": 0.01}
    columns: dict[str, list[str]] = {name: [] for name in true}
    source, truth = [], []
    for wave in ("first", "second"):
        seen = rng.permutation(np.flatnonzero(rng.random(persons) < listed))
        for name, values in true.items():
            wrong = rng.random(len(seen)) < given.get(name, changed)
            other = rng.permutation(values)[: len(seen)]
            found = np.where(wrong, other, values[seen])
            columns[name] += [str(value) for value in found.tolist()]
        source += [wave] * len(seen)
        truth += seen.tolist()
    rates = {f"miss_{name}": 100.0 * given.get(name, changed) for name in true}
    return MadeUp(columns, source, truth, rates)


def mistyped(rng: np.random.Generator, text: str) -> str:
    """With one typing error, or sometimes two."""
    for _ in range(1 + (rng.random() < 0.2)):
        at = int(rng.integers(len(text)))
        letter = LETTERS[rng.integers(26)]
        written = (
            text[:at] + letter + text[at + 1 :],
            text[:at] + letter + text[at:],
            text[:at] + text[at + 1 :] if len(text) > 3 else text,
            text[:at] + text[at : at + 2][::-1] + text[at + 2 :],
        )
        text = written[rng.integers(4)]
    return text


def _name(rng: np.random.Generator) -> str:
    syllables = rng.choice(SYLLABLES, int(rng.integers(2, 5)))
    own = "".join(syllables).capitalize()
    words = [own]
    if rng.random() < 0.6:
        words.insert(int(rng.integers(2)), str(rng.choice(WORDS)))
    if rng.random() < 0.2:
        words.insert(0, str(rng.choice(WORDS)))
    return " ".join(words)


def _abbreviated(rng: np.random.Generator, name: str) -> str:
    """A word shortened, words in another order, or one left out; one word stays as it is."""
    words = name.split()
    if len(words) == 1:
        return name
    kind = rng.integers(3)
    if kind == 0:
        return " ".join(SHORT.get(word, word[0] + "." if word in WORDS else word) for word in words)
    if kind == 1:
        return ", ".join([words[-1], " ".join(words[:-1])])
    kept = [word for word in words if word not in WORDS]
    return " ".join(kept or words)


def _uneven(rng: np.random.Generator, size: int) -> np.ndarray:
    return rng.dirichlet(np.full(size, 2.0))

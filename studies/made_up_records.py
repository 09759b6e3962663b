"""Simulated lists of records with known truth.

Places from four sources and two surveys have fields that go wrong one by one and tell nothing of
each other. In the others fields hang together: persons of one household share name, address and
telephone, and who moves changes two of these; answers of a panel go with age and education; a shop
has series of products; a list of credits has a person in many rows, each another part to be linked,
and a list of films has them in many rows that are all to be linked.
"""

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


# Fields that hang together ---------------------------------------------------------------------


def households(rng: np.random.Generator, homes: int = 900, listed: float = 0.55) -> MadeUp:
    """Persons of households on two lists: the surname, address and telephone are the home's.

    A sixth has moved, and then address and telephone have both changed. Ages are in years only, and
    missing for a third.
    """
    given = [_word(rng) for _ in range(150)]
    popular = np.arange(1, 151.0) ** -0.9
    surnames = [_word(rng) for _ in range(400)]
    common = np.arange(1, 401.0) ** -0.7
    roads = [_word(rng) for _ in range(120)]
    persons: list[tuple[str, str, int, int]] = []
    for home in range(homes):
        surname = str(rng.choice(surnames, p=common / common.sum()))
        eldest = int(rng.integers(1930, 1990))
        for member in range(int(rng.integers(1, 6))):
            own = surname if rng.random() < 0.9 else str(rng.choice(surnames))
            born = eldest + int(rng.normal(0, 4)) if member < 2 else eldest + int(rng.normal(28, 5))
            persons.append((str(rng.choice(given, p=popular / popular.sum())), own, born, home))

    def address() -> tuple[str, str]:
        return f"{rng.choice(roads)} Street {rng.integers(1, 90)}", f"0{rng.integers(10**8)}"

    where = [address() for _ in range(homes)]
    columns: dict[str, list[str]] = {
        name: [] for name in ("given_name", "surname", "address", "phone", "year")
    }
    source, truth = [], []
    for name in ("register", "clinic"):
        moved = {home: address() for home in range(homes) if rng.random() < 0.16}
        for which in rng.permutation(np.flatnonzero(rng.random(len(persons)) < listed)).tolist():
            first, last, born, home = persons[which]
            cells = [first, last, *moved.get(home, where[home]), str(born)]
            cells[0] = mistyped(rng, cells[0]) if rng.random() < 0.06 else cells[0]
            cells[1] = mistyped(rng, cells[1]) if rng.random() < 0.06 else cells[1]
            gone = rng.random(5) < np.array([0.0, 0.0, 0.1, 0.25, 0.33])
            for column, cell, lost in zip(columns.values(), cells, gone, strict=True):
                column.append("" if lost else cell)
            source.append(name)
            truth.append(which)
    return MadeUp(columns, source, truth, {})


def panel(rng: np.random.Generator, persons: int = 6000, listed: float = 0.3) -> MadeUp:
    """Two waves of a survey with answers that go with age, education and region."""
    region = rng.choice(20, persons, p=_uneven(rng, 20))
    sex = rng.integers(2, size=persons)
    born = 1920 + rng.integers(0, 70, persons)
    stage = np.digitize(born, [1940, 1955, 1970, 1980])
    learned = np.clip(rng.poisson(1.0 + 0.5 * stage), 0, 5)
    status = np.where(stage < 4, rng.choice(4, persons, p=PLAIN), 0)
    status = np.where(stage == 0, rng.choice([1, 3], persons, p=[0.6, 0.4]), status)
    work = np.where(stage < 2, 9, np.clip(learned + rng.integers(0, 3, persons), 0, 8))
    birthplace = np.where(rng.random(persons) < 0.85, region, rng.integers(20, size=persons))
    size = np.where(stage == 0, 1 + (rng.random(persons) < 0.6), rng.integers(1, 6, persons))
    true = {
        **{"sex": sex, "birth_year": born, "region": region, "birthplace": birthplace},
        **{"education": learned, "status": status, "work": work, "people": size},
    }
    changed = {"sex": 0.005, "birth_year": 0.04, "region": 0.02, "birthplace": 0.05}
    columns: dict[str, list[str]] = {name: [] for name in true}
    source, truth = [], []
    for wave in ("first", "second"):
        seen = rng.permutation(np.flatnonzero(rng.random(persons) < listed))
        # Who answers in haste errs in several fields together.
        hasty = rng.random(len(seen)) < 0.1
        for name, values in true.items():
            rate = np.where(hasty, 4.0, 0.7) * changed.get(name, 0.08)
            wrong = rng.random(len(seen)) < rate
            found = np.where(wrong, rng.permutation(values)[: len(seen)], values[seen])
            columns[name] += [str(value) for value in found.tolist()]
        source += [wave] * len(seen)
        truth += seen.tolist()
    return MadeUp(columns, source, truth, {})


#: Shares of answers to a question about the family.
PLAIN = (0.2, 0.6, 0.15, 0.05)
KINDS = (
    *("camera", "printer", "headphones", "drill", "mixer", "speaker", "monitor", "router"),
    *("freezer", "vacuum cleaner", "keyboard", "receiver", "projector", "phone", "oven"),
)
FEATURES = (
    *("black", "silver", "white", "red", "wireless", "portable", "digital", "compact", "stainless"),
    *("with remote", "for home", "professional", "energy saving", "high definition", "10 inch"),
    *("20 inch", "500 W", "rechargeable", "stereo", "twin pack", "with case", "widescreen"),
)


def shop(rng: np.random.Generator, products: int = 900, listed: float = 0.7) -> MadeUp:
    """Two shops' titles and prices: makers have series, and shops word the same in other ways."""
    makers = [_word(rng).capitalize() for _ in range(40)]
    made: list[tuple[str, str, str, list[str], float]] = []
    while len(made) < products:
        maker, kind = str(rng.choice(makers)), str(rng.choice(KINDS))
        letters = "".join(rng.choice(list(LETTERS.upper()), int(rng.integers(2, 4))))
        number, price = int(rng.integers(10, 900)), float(np.exp(rng.normal(4.5, 0.8)))
        for step in range(int(rng.integers(1, 5))):
            features = rng.choice(FEATURES, int(rng.integers(2, 6)), replace=False).tolist()
            code = f"{letters}-{number + 10 * step}{rng.choice(['', 'B', 'S', 'X2'])}"
            made.append((maker, kind, code, features, price * (1.0 + 0.2 * step)))
    columns: dict[str, list[str]] = {"title": [], "price": []}
    source, truth = [], []
    for name in ("shop1", "shop2"):
        for which in rng.permutation(np.flatnonzero(rng.random(len(made)) < listed)).tolist():
            maker, kind, code, features, price = made[which]
            if name == "shop2":
                code = code.replace("-", " " if rng.random() < 0.3 else "")
                code += str(rng.choice(["", "", "", "/B", "EU"]))
            words = [word for word in features if rng.random() < 0.6]
            parts = [maker, *words, kind] if rng.random() < 0.5 else [maker, kind, *words]
            if rng.random() < 0.9:
                parts.insert(int(rng.choice([1, len(parts)])), code)
            columns["title"].append(" ".join(parts))
            asked = price * float(np.exp(rng.normal(0, 0.1)))
            columns["price"].append(f"{asked:.2f}" if rng.random() < 0.6 else "")
            source.append(name)
            truth.append(which)
    return MadeUp(columns, source, truth, {})


def credits(rng: np.random.Generator, persons: int = 700, listed: float = 0.6) -> MadeUp:
    """Parts that persons have in films, on two lists: a person's name stands in several rows.

    The year of birth is known for some; titles are worded in other ways on the second list.
    """
    firsts, lasts = [_word(rng) for _ in range(120)], [_word(rng) for _ in range(500)]
    names = [f"{rng.choice(firsts)} {rng.choice(lasts)}".title() for _ in range(persons)]
    films = [" ".join(_word(rng) for _ in range(int(rng.integers(1, 4)))) for _ in range(400)]
    years = rng.integers(1950, 2020, len(films))
    parts = []
    for name in names:
        for film in rng.choice(len(films), min(int(rng.geometric(0.4)), 8), replace=False):
            parts.append((name, int(film), str(rng.choice(["actor", "director", "writer"]))))
    columns: dict[str, list[str]] = {name: [] for name in ("name", "film", "role", "year")}
    source, truth = [], []
    for at, source_name in enumerate(("first", "second")):
        for which in rng.permutation(np.flatnonzero(rng.random(len(parts)) < listed)).tolist():
            name, film, role = parts[which]
            title = films[film]
            if at and rng.random() < 0.3:
                title = f"{title.split()[-1]}, {' '.join(title.split()[:-1])}".strip(", ")
            cells = [mistyped(rng, name) if rng.random() < 0.05 else name, title, role]
            cells.append(str(years[film]))
            gone = rng.random(4) < np.array([0.0, 0.45, 0.1, 0.5])
            for column, cell, lost in zip(columns.values(), cells, gone, strict=True):
                column.append("" if lost else cell)
            source.append(source_name)
            truth.append(which)
    return MadeUp(columns, source, truth, {})


def films(rng: np.random.Generator, persons: int = 350, listed: float = 0.7) -> MadeUp:
    """Persons on two lists, in a row for each of their films: no list has a person just once."""
    firsts, lasts = [_word(rng) for _ in range(120)], [_word(rng) for _ in range(500)]
    names = [f"{rng.choice(firsts)} {rng.choice(lasts)}".title() for _ in range(persons)]
    titles = [" ".join(_word(rng) for _ in range(int(rng.integers(1, 4)))) for _ in range(300)]
    born = rng.integers(1920, 2000, persons)
    jobs = [str(rng.choice(["actor", "director", "writer"])) for _ in names]
    columns: dict[str, list[str]] = {name: [] for name in ("name", "born", "film", "job")}
    source, truth = [], []
    for source_name, rows in (("first", 2.2), ("second", 1.6)):
        own = np.flatnonzero(rng.random(persons) < listed)
        for which in rng.permutation(np.repeat(own, rng.geometric(1.0 / rows, len(own)))).tolist():
            name = names[which] if rng.random() > 0.05 else mistyped(rng, names[which])
            cells = [name, str(born[which]), str(rng.choice(titles)), jobs[which]]
            gone = rng.random(4) < np.array([0.0, 0.4, 0.2, 0.1])
            for column, cell, lost in zip(columns.values(), cells, gone, strict=True):
                column.append("" if lost else cell)
            source.append(source_name)
            truth.append(which)
    return MadeUp(columns, source, truth, {})


def _word(rng: np.random.Generator) -> str:
    return "".join(rng.choice(SYLLABLES, int(rng.integers(2, 4))))

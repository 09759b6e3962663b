"""The rates and errors that records were made with come back, and none takes the blame of another.

Two lists of 500 objects with a name, a number and a category. Checked is whether the true values
lie within four posterior standard deviations of the mean, which fails by chance in less than one of
1,000 cases. The planted bug, a fixed width of the number's error as it once was, fails.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

import dfcrp
from dfcrp.items.items import Items
from dfcrp.likelihoods.record import hyper as record_hyper
from studies.made_up_records import mistyped

OBJECTS = 500
TYPO, MISS, CHANGED, EXACT, ERROR = 0.12, 0.03, 0.05, 0.3, 0.4


def made(rng: np.random.Generator):
    """Columns and lists, with the rates that came about."""
    letters = list("abcdefghijklmnopqrstuvwxyz")
    names = ["".join(rng.choice(letters, 9)) for _ in range(OBJECTS)]
    numbers, groups = rng.uniform(0, 1000, OBJECTS), rng.integers(0, 8, OBJECTS)
    columns = {"name": [], "number": [], "group": []}
    for _ in range(2):
        for k in range(OBJECTS):
            name = mistyped(rng, names[k]) if rng.random() < TYPO else names[k]
            name = names[rng.integers(OBJECTS)] if rng.random() < MISS else name
            off = 0.0 if rng.random() < EXACT else ERROR * rng.standard_normal()
            group = rng.integers(0, 8) if rng.random() < CHANGED else groups[k]
            columns["name"].append(name)
            columns["number"].append(f"{numbers[k] + off:.3f}")
            columns["group"].append(f"g{group}")
    return columns, np.repeat(["first", "second"], OBJECTS)


def learned(seed: int):
    columns, lists = made(np.random.default_rng(seed))
    items = Items.from_columns(columns, lists, kind="records")
    posterior = dfcrp.fit(items, chains=2, scans=240, burn_in=80, max_scans=240, seed=seed)
    return {
        name: (float(np.log(values).mean()), float(np.log(values).std()))
        for name, values in posterior.likelihood.learned_samples(posterior.draws).items()
    }


TRUE = {
    "typo_name": 100 * TYPO * 0.97,  # an exchange of equal letters is no typo
    "miss_name": 100 * MISS,
    "miss_group": 100 * CHANGED,
    "typo_number": 100 * (1 - EXACT),
    "scale_number": ERROR,
}


def worst(found) -> float:
    """The largest distance in standard deviations; of the data's own chance a tenth is allowed."""
    return max(
        abs(found[name][0] - math.log(true)) / math.hypot(found[name][1], 0.1)
        for name, true in TRUE.items()
    )


def test_rates_come_back():
    found = learned(3)
    assert worst(found) < 4.0
    # Nothing of the number is unrelated, and its errors must not be taken for that.
    assert found["miss_number"][0] < math.log(2.0)


def test_a_fixed_width_is_noticed(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(record_hyper, "SCALE_SHARE", 0.1)
    monkeypatch.setattr(record_hyper, "SCALE_SD", 1e-6)
    assert worst(learned(3)) > 8.0

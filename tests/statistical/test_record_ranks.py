"""Rates drawn from the prior, lists made with them, and where among the draws the true rates lie.

If the model learns what it should, the rank of a true rate among posterior draws is uniform
(simulation-based calibration, Talts et al. 2018). Two lists have a name, a number and two
categories, made by the model's own story: unrelated, altered or the same. Only what the model tells
from the data in advance (how frequent values are, and in what ways text differs) is not as in the
story. The false-alarm rate is 1e-4 in all; planted: numbers that are taken to agree by chance more
often than they are, and a prior of misses that is too large.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy import special, stats

import dfcrp
from dfcrp.items.items import Items
from dfcrp.likelihoods.record import levels
from dfcrp.likelihoods.record.hyper import RecordSettings
from dfcrp.likelihoods.record.likelihood import RECORDS
from studies.made_up_records import mistyped

pytestmark = pytest.mark.filterwarnings("ignore:expect about")
FALSE_ALARM_RATE = 1e-4
LETTERS = list("abcdefghijklmnopqrstuvwxyz")
OBJECTS, LISTED, KEPT = 80, 0.85, 30
USUAL = RecordSettings()


def word(rng: np.random.Generator) -> str:
    return "".join(rng.choice(LETTERS, 9))


def altered(rng: np.random.Generator, text: str) -> str:
    found = text
    while found == text:
        found = mistyped(rng, text)
    return found


def made(rng: np.random.Generator):
    """Columns, lists, and the rates in percent and the scale, as the likelihood names them."""
    odds = {f"miss_{name}": rng.normal(USUAL.miss_odds, USUAL.odds_sd) for name in FIELDS}
    odds["typo_name"] = rng.normal(USUAL.typo_odds, USUAL.odds_sd)
    odds["typo_number"] = rng.normal(0.0, 2.0)
    rate = {name: float(special.expit(value)) for name, value in odds.items()}
    scale = float(np.exp(rng.normal(1.0, 0.7)))
    true = [{name: draw(rng) for name, draw in FIELDS.items()} for _ in range(OBJECTS)]
    columns: dict[str, list[str]] = {name: [] for name in FIELDS}
    lists = []
    for which in ("first", "second"):
        for k in np.flatnonzero(rng.random(OBJECTS) < LISTED):
            for name, draw in FIELDS.items():
                value = true[k][name]
                if rng.random() < rate[f"miss_{name}"]:
                    value = draw(rng)
                elif rng.random() < rate.get(f"typo_{name}", 0.0):
                    off = scale * rng.standard_normal()
                    value = altered(rng, value) if name == "name" else f"{float(value) + off:.3f}"
                columns[name].append(value)
            lists.append(which)
    return columns, lists, {n: 100.0 * r for n, r in rate.items()} | {"scale_number": scale}


FIELDS = {
    "name": word,
    "number": lambda rng: f"{rng.uniform(0.0, 1000.0):.3f}",
    "group": lambda rng: f"g{rng.integers(8)}",
    "kind": lambda rng: f"k{rng.integers(5)}",
}


def ranks(count: int, **settings) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {}
    for seed in range(count):
        rng = np.random.default_rng([20, seed])
        columns, lists, true = made(rng)
        items = Items.from_columns(columns, lists, kind="records")
        posterior = dfcrp.fit(
            items,
            chains=1,
            scans=300,
            burn_in=60,
            max_scans=300,
            seed=seed,
            config={"likelihood": settings},
        )
        learned = RECORDS.learned_samples(posterior.draws)
        for name, value in true.items():
            draws = learned[name].reshape(-1)[:: 240 // KEPT]
            below = int((draws < value).sum())
            found.setdefault(name, []).append((below + rng.random()) / (len(draws) + 1))
    return found


def least_p(found: dict[str, list[float]]) -> float:
    """The smallest p of all rates, for so many of them."""
    return min(stats.kstest(one, "uniform").pvalue for one in found.values()) * len(found)


def test_true_rates_lie_anywhere_among_the_draws():
    assert least_p(ranks(6)) > FALSE_ALARM_RATE


@pytest.mark.long
def test_true_rates_of_many_data_sets_lie_anywhere_among_the_draws():
    found = ranks(150)
    assert least_p(found) > FALSE_ALARM_RATE
    outside = np.mean([rank < 0.025 or rank > 0.975 for one in found.values() for rank in one])
    assert outside < 0.09


def test_a_wrong_prior_is_caught():
    """Four standard deviations off; the data say little against it."""
    assert least_p(ranks(6, miss_odds=0.5, odds_sd=0.3)) < FALSE_ALARM_RATE


@pytest.mark.long
def test_ties_that_are_taken_for_frequent_are_caught(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(levels, "tie_rate", lambda ties, pairs, _: (1 + ties) / (1 + pairs))
    assert least_p(ranks(300)) < FALSE_ALARM_RATE

"""Draws given decisions against draws without them, of which those that agree are kept.

Whatever is decided, the draws that happen to be as decided are draws of the posterior given the
decisions. So every kind of item under every prior needs no other reference than the sampler without
decisions, which has been tested against enumeration. Two-sample chi-square tests over partitions,
divided by the largest autocorrelation time of either; false-alarm rate 1e-5 each, 3e-4 in all.
"""

from __future__ import annotations

import warnings
from itertools import combinations

import numpy as np
import pytest
from scipy import stats

from dfcrp.errors import DfcrpWarning
from dfcrp.fitting.api import complete_config, resolve_for
from dfcrp.items.decisions import with_decisions
from dfcrp.items.items import Items
from dfcrp.sampling.chain import Chain
from dfcrp.sampling.problem import problem_of
from dfcrp.settings.config import read_settings
from exact.test_posterior_enumeration import autocorrelation_time

FALSE_ALARM_RATE = 1e-5
DRAWS, BURN_IN, THIN = 3_000, 200, 4
EXPERTS = ["A", "A", "B", "B", "C", "D"]
#: Two objects or so; of the second some may be a third.
X = np.array([0.0, 3.0, 0.3, 3.5, 0.9, 2.6])
Y = np.array([0.1, 0.5, -0.2, 0.3, 0.5, -0.1])
SIDE = np.array([1.0, 1.3, 0.95, 1.2, 1.1, 1.25])
COLUMNS = {
    "circles": {"x": X, "y": Y, "diameter": 2.0 * SIDE},
    "points": {"x": X, "y": Y},
    "boxes": {"x": X, "y": Y, "width": SIDE, "height": SIDE[::-1]},
    "ellipses": {"x": X, "y": Y, "major": SIDE + 1.0, "minor": SIDE, "angle": 60.0 * SIDE},
    "diagonal": {"u": X, "v": Y, "w": SIDE},
    "normal": {"u": X, "v": Y},
    "records": {
        "name": ["anna may", "bob fox", "anna mai", "bob fox", "ann may", "rob fox"],
        "year": ["1980", "1971", "1980", "1972", "1981", "1971"],
        "town": ["wien", "graz", "wien", "graz", "graz", "graz"],
    },
}
PRIORS = ("dfcrp", "constrained", "crp", "attraction", "detection")
#: One object, two objects, and both.
TABLES = {
    "together": [("together", "1 3")],
    "apart": [("apart", "2 5"), ("apart", "1 6")],
    "both": [("together", "1 3"), ("together", "2 6"), ("apart", "3 5")],
}


def problem(kind, prior, table=(), **settings):
    pairs = list(combinations(range(6), 2)) if kind == "records" else None
    items = Items.from_columns(COLUMNS[kind], EXPERTS, kind=kind, candidates=pairs)
    items = with_decisions(items, [{"decision": d, "items": ids} for d, ids in table])
    persons = {"persons": [["A", "B"]]} if prior == "attraction" else {}
    given = {"prior": prior, "likelihood": kind, "radius": "none", **persons, **settings}
    # Few would agree if α were as large as it may be.
    few = {} if prior == "detection" else {"prior": {"alpha_shape": 2.0, "alpha_rate": 2.0}}
    asked = read_settings({**few, **given.pop("config", {})}, given)
    with warnings.catch_warnings():
        # Of so few records it cannot be said how their fields go wrong.
        warnings.simplefilter("ignore", DfcrpWarning)
        return problem_of(items, complete_config(items, resolve_for(items, asked)))


def drawn(made, seed, draws=DRAWS, thin=THIN):
    chain = Chain(made, np.random.SeedSequence([seed, 95]), "exact")
    chain.run(1, BURN_IN)
    blocks = [chain.run(min(500, draws - done), thin) for done in range(0, draws, 500)]
    return np.concatenate([block.labels for block in blocks])


def agree(labels, table):
    """Which draws are as decided."""
    kept = np.ones(len(labels), bool)
    for decision, ids in table:
        first, *others = (int(one) - 1 for one in ids.split())
        for other in others:
            same = labels[:, first] == labels[:, other]
            kept &= same if decision == "together" else ~same
    return kept


def same_partitions(one, two):
    """p value of the corrected two-sample chi-square; rare partitions share a cell."""
    rows, code = np.unique(np.vstack([one, two]), axis=0, return_inverse=True)
    code = code.ravel()
    counts = np.stack(
        [np.bincount(part, minlength=len(rows)) for part in (code[: len(one)], code[len(one) :])]
    )
    rare = counts.sum(axis=0) < 10
    counts = np.column_stack([counts[:, ~rare], counts[:, rare].sum(axis=1)])
    counts = counts[:, counts.sum(axis=0) > 0]
    if counts.shape[1] < 2:
        return 1.0
    statistic = stats.chi2_contingency(counts, correction=False).statistic
    worst = max(autocorrelation_time(one), autocorrelation_time(two))
    return float(stats.chi2.sf(statistic / worst, counts.shape[1] - 1))


@pytest.fixture(scope="module")
def free():
    """Draws without decisions, made when first asked for."""
    kept: dict = {}

    def get(kind, prior, **settings):
        key = kind, prior, str(settings)
        if key not in kept:
            kept[key] = drawn(problem(kind, prior, **settings), 1, 3 * DRAWS)
        return kept[key]

    return get


def case(kind, what, prior):
    """Every prior with circles, every kind with the DFCRP; the rest is long."""
    usual = what == "both" and (kind == "circles" or prior == "dfcrp")
    return pytest.param(kind, what, prior, marks=[] if usual else [pytest.mark.long])


CASES = [
    *(case(kind, "both", prior) for kind in COLUMNS for prior in PRIORS),
    *(case("circles", what, prior) for what in ("together", "apart") for prior in PRIORS),
]


@pytest.mark.parametrize(("kind", "what", "prior"), CASES)
def test_draws_are_those_that_agree(free, kind, what, prior):
    table = TABLES[what]
    without = free(kind, prior)
    without = without[agree(without, table)]
    given = drawn(problem(kind, prior, table), 2)
    assert agree(given, table).all()
    assert len(without) > 50
    assert same_partitions(without, given) > FALSE_ALARM_RATE


def test_careless_items_and_experts_who_differ(free):
    """What an item has of its own stays while its group moves, and is drawn anew afterwards."""
    for kind in ("circles", "diagonal"):
        config = {"likelihood": {"tails": "learned", "expert_bias": "both"}}
        made = problem(kind, "constrained", TABLES["both"], config=config)
        without = free(kind, "constrained", config=config)
        without = without[agree(without, TABLES["both"])]
        assert same_partitions(without, drawn(made, 3)) > FALSE_ALARM_RATE

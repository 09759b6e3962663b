"""Lists that have their objects in several rows: the first look says so, and the CRP links them."""

from __future__ import annotations

import numpy as np
import pytest

import dfcrp
from dfcrp.errors import SettingsError
from dfcrp.first_look import first_look
from dfcrp.first_look.lists import _agreeing, _alike_in, _distinct
from dfcrp.items.items import Items
from studies.made_up_records import MadeUp, credits, films, households, places
from studies.records import pair_scores


def items_of(made: MadeUp) -> Items:
    return Items.from_columns(made.columns, made.source, kind="records", truth=made.truth)


@pytest.mark.filterwarnings("ignore:.*of another by the same expert")
def test_the_first_look_tells_lists_that_repeat_objects():
    items = items_of(films(np.random.default_rng(1)))
    found = first_look(items)
    assert [finding.check for finding in found] == ["repeats", "repeats"]
    assert [finding.experts for finding in found] == [("first",), ("second",)]
    assert all("--prior crp" in finding.text for finding in found)
    # Under the prior that allows it there is nothing to say.
    assert first_look(items, one_per_expert=False) == ()


@pytest.mark.filterwarnings("ignore:.*of another by the same expert")
@pytest.mark.parametrize("make", [credits, households, places])
def test_it_is_silent_where_records_of_a_list_differ(make):
    """Parts of one person, persons of one household, and records with missing values."""
    assert first_look(items_of(make(np.random.default_rng(1)))) == ()


def test_records_that_agree_in_all_that_both_have():
    # Names, towns and years; the last two records differ in the year, and 4 has only a town.
    rows = [(0, 0, 0), (0, 0, -1), (1, 0, 2), (2, 1, 3), (-1, 1, -1), (3, 2, 4), (3, 2, 5)]
    codes = np.array(rows)
    everyone = np.arange(len(rows))
    assert _agreeing(codes, everyone, 3.0).tolist() == [[0, 1], [1, 0], [3, 4], [4, 3]]
    assert _agreeing(codes, np.array([1]), 3.0).tolist() == [[1, 0]]
    # Among many records a town is met by chance.
    assert _agreeing(codes, everyone, 15.0).tolist() == [[0, 1], [1, 0]]
    assert _alike_in(codes[:, 1], np.array([0, 4])).tolist() == [[0, 1], [0, 2], [4, 3]]
    assert _alike_in(np.zeros(40, np.int64), np.arange(40)).tolist() == []
    assert _distinct(np.array([0, 1, 1, 0, -1])) == pytest.approx(2.0)
    assert _distinct(np.array([-1, -1])) == 1.0


@pytest.mark.filterwarnings("ignore::dfcrp.errors.DfcrpWarning")
def test_under_the_crp_records_of_one_list_are_linked():
    """Compared as of different lists: else all likeness within lists counts against links."""
    made = films(np.random.default_rng(2), persons=120)
    length = {"chains": 2, "scans": 60, "burn_in": 30, "max_scans": 60, "workers": 1}
    for prior, least, most in (("crp", 0.9, 1.0), ("dfcrp", 0.0, 0.3)):
        posterior = dfcrp.fit(items_of(made), seed=1, prior=prior, **length)
        assert posterior.config.likelihood.repeats == (prior == "crp")
        found = pair_scores(np.asarray(posterior.point_partition()), np.array(made.truth))
        assert least <= found["F1"] <= most
        if prior == "crp":
            new = {name: [values[0]] for name, values in made.columns.items()}
            answer = posterior.predict(new, experts=["first"])
            assert answer["cluster"][0] == posterior.point_partition()[0]


@pytest.mark.filterwarnings("ignore::dfcrp.errors.DfcrpWarning")
def test_repeats_without_a_prior_that_allows_it_are_refused():
    made = films(np.random.default_rng(2), persons=20)
    with pytest.raises(SettingsError, match="--prior crp"):
        dfcrp.fit(items_of(made), scans=5, config={"likelihood": {"repeats": True}})

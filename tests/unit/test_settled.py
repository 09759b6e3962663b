"""No item of the catalogue is listed where it is less often than in another place."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dfcrp.summaries.membership import ALONE, NOWHERE
from dfcrp.summaries.point_partition import point_partition, settled
from dfcrp.summaries.streaming import as_draws


def worse_off(found, places, families):
    """Items that are more often elsewhere, where nobody of their family has more right."""
    rows = []
    for i in np.flatnonzero((places.p_second > places.p_member) & (places.second != NOWHERE)):
        members = np.flatnonzero(found.labels == places.second[i])
        own = [] if families is None else [j for j in members if families[j] == families[i]]
        if not own or places.p_member[own].max() < places.p_second[i]:
            rows.append(int(i))
    return rows


def between_two(draws=200):
    """Item 4 is with {0, 1} in 48 % of the draws, with {2, 3} in 49 %, and else alone."""
    labels = np.zeros((draws, 5), int)
    labels[:, 2:4] = 2
    labels[:, 4] = np.repeat([0, 2, 4], [96, 98, 6])
    return labels


def test_an_item_between_two_objects():
    """It was listed alone, with a probability of 0.03."""
    draws = as_draws(between_two())
    best = point_partition(draws, "binder")
    assert best.labels.tolist() == [0, 0, 2, 2, 4]
    found, places = settled(best, draws, None)
    assert found.labels.tolist() == [0, 0, 2, 2, 2]
    assert places.p_member[4] == 0.49
    assert found.n_moved == 1
    assert not found.exact
    assert found.expected_loss >= best.expected_loss


def test_a_list_has_one_item_there():
    """Items 0 and 1 of one family are each at times with item 2: the more frequent one is."""
    labels = np.tile([0, 1, 2], (100, 1))
    labels[:40, 2] = 0
    labels[40:, 2] = 1
    families = np.array([0, 0, 1])
    draws = as_draws(labels)
    best = point_partition(draws, families=families)
    found, places = settled(best, draws, families)
    assert found.labels.tolist() == [0, 1, 1]
    assert not worse_off(found, places, families)


def test_what_is_settled_stays():
    labels = np.tile([0, 0, 2, 2, 4], (50, 1))
    draws = as_draws(labels)
    best = point_partition(draws)
    found, places = settled(best, draws, None)
    assert found is best
    assert (places.p_member == 1.0).all()


@given(st.integers(0, 10_000), st.booleans())
def test_few_are_worse_off_than_they_were(seed, by_family):
    rng = np.random.default_rng(seed)
    n, families = 7, np.array([0, 0, 1, 1, 2, 2, 3])
    base = rng.integers(0, 3, (4, n))
    labels = base[rng.integers(0, 4, 60)]
    swap = rng.random(labels.shape) < 0.15
    labels = np.where(swap, rng.integers(0, 5, labels.shape), labels)
    if by_family:
        for row in labels:
            for k in range(n):
                if any(row[j] == row[k] and families[j] == families[k] for j in range(k)):
                    row[k] = 100 + k
    used = families if by_family else None
    draws = as_draws(labels)
    best = point_partition(draws, families=used)
    from dfcrp.summaries.membership import membership

    before = membership(best.labels, draws)
    found, places = settled(best, draws, used)

    def lack(one, where):
        gap = [where.p_second[i] - where.p_member[i] for i in worse_off(one, where, used)]
        return max(gap, default=0.0)

    assert lack(found, places) <= lack(best, before) + 1e-12
    names = [found.labels[found.labels == k].size for k in np.unique(found.labels)]
    assert sum(names) == n
    assert all(found.labels[k] == k for k in np.unique(found.labels))
    if by_family:
        pairs = list(zip(found.labels.tolist(), families.tolist(), strict=True))
        assert len(set(pairs)) == n


@pytest.mark.parametrize("place", [ALONE, NOWHERE])
def test_places_have_the_names_of_membership(place):
    assert place < 0

"""Possible duplicates are found where they were planted, and nowhere else."""

from __future__ import annotations

import numpy as np
import pytest

import dfcrp
from dfcrp.items.items import Items
from dfcrp.summaries.membership import suspected_doubles


@pytest.fixture
def marked():
    """Forty objects by five experts; expert 2 marks objects 3 and 7 twice, 11 far off."""
    rng = np.random.default_rng(91)
    objects = np.column_stack([rng.uniform(0, 1000, (40, 2)), rng.normal(3.0, 0.4, 40)])
    labels = np.tile(np.arange(40), 5)
    families = np.repeat(np.arange(5), 40)
    scale = np.exp(objects[labels, 2])[:, None] * [0.05, 0.05, 0.0] + [0.0, 0.0, 0.1]
    features = objects[labels] + scale * rng.standard_normal((200, 3))
    near = objects[[3, 7]] + [0.5, -0.5, 0.05]
    far = objects[[11]] + [60.0, 0.0, 0.0]
    return (
        np.vstack([features, near, far]),
        np.append(families, [2, 2, 2]),
        np.append(labels, [200, 201, 202]).astype(np.int32),
    )


def test_planted_doubles(marked):
    features, families, labels = marked
    found = suspected_doubles(features, families, labels, size=2)
    assert sorted(found["marking"].tolist()) == [200, 201]
    pairs = dict(zip(found["marking"].tolist(), found["cluster"].tolist(), strict=True))
    assert pairs == {200: 3, 201: 7}
    assert (labels[found["other"]] == found["cluster"]).all()
    assert (families[found["other"]] == 2).all()


def test_another_expert_is_no_double(marked):
    features, families, labels = marked
    families = families.copy()
    families[200:] = 5
    assert not suspected_doubles(features, families, labels, size=2)["marking"].size


def test_nobody_alone(marked):
    features, families, labels = (part[:200] for part in marked)
    assert not suspected_doubles(features, families, labels, size=2)["marking"].size


@pytest.mark.filterwarnings("ignore:.*of another by the same expert", "ignore:the fields tell")
def test_records_of_few_fields_are_no_doubles_by_chance():
    """Two lists of categories on which nobody stands twice: many agree in most fields."""
    rng = np.random.default_rng(2)
    sizes = (2, 12, 6, 15, 30)
    true = [rng.integers(size, size=500) for size in sizes]
    listed = [rng.permutation(500)[:350] for _ in range(2)]
    columns = {
        f"f{at}": [f"v{value}" for one in listed for value in values[one].tolist()]
        for at, values in enumerate(true)
    }
    items = Items.from_columns(columns, np.repeat(["first", "second"], 350), kind="records")
    posterior = dfcrp.fit(items, chains=1, scans=20, burn_in=10, max_scans=20, seed=1)
    pairs = posterior.suspected_doubles()
    assert posterior.n_doubles == pairs["marking"].nunique() <= 60

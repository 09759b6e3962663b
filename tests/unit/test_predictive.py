"""Posterior predictive draws: items made again about their objects, as the model scatters them."""

from __future__ import annotations

import sys
import types

import numpy as np
import pytest
import xarray

import dfcrp
from dfcrp.errors import InputError
from dfcrp.likelihoods.registry import likelihood_named
from dfcrp.posterior import for_arviz

N_OBJECTS, EXPERTS = 40, ("ann", "bob", "cyd", "dan", "eve")
#: Columns of objects far apart; the scatter of items is one in x and y, and 0.05 in log sizes.
KINDS = {
    "points": (),
    "circles": ("diameter",),
    "boxes": ("width", "height"),
    "ellipses": ("major", "minor"),
}


def made_up(kind: str, *, shift: float = 0.0) -> dfcrp.Items:
    rng = np.random.default_rng(3)
    n = N_OBJECTS * len(EXPERTS)
    at = np.tile(np.arange(N_OBJECTS), len(EXPERTS))
    expert = np.repeat(np.arange(len(EXPERTS)), N_OBJECTS)
    columns = {
        "x": 100.0 * (at % 8) + rng.standard_normal(n) + shift * (expert == 0),
        "y": 100.0 * (at // 8) + rng.standard_normal(n),
    }
    for number, name in enumerate(KINDS[kind]):
        columns[name] = (20.0 / (1 + number)) * np.exp(0.05 * rng.standard_normal(n))
    if kind == "ellipses":
        columns["angle"] = 30.0 + rng.standard_normal(n)
    return dfcrp.Items.from_columns(columns, np.array(EXPERTS)[expert], kind=kind)


def fitted(items: dfcrp.Items, **settings: object) -> dfcrp.Posterior:
    return dfcrp.fit(items, likelihood=items.kind, chains=2, scans=200, seed=1, **settings)


def spread(values: np.ndarray) -> np.ndarray:
    """Standard deviations within objects, which every expert lists in the same order."""
    return values.reshape(*values.shape[:-1], len(EXPERTS), N_OBJECTS).std(axis=-2).mean(axis=-1)


@pytest.mark.parametrize("kind", KINDS)
def test_new_items_scatter_as_the_data_do(kind: str) -> None:
    """Within 35 % of the data's own spread; angles go with elongations, which differ less here."""
    items = made_up(kind)
    made = fitted(items).predictive(60, seed=2)
    assert len(made) == 60
    assert made["x"].shape == (60, len(items))
    assert tuple(made.columns) == likelihood_named(kind).columns
    for name in made.columns:
        observed = spread(made.observed[name])
        if name == "angle":
            continue
        np.testing.assert_allclose(spread(made[name]).mean(), observed, rtol=0.35, err_msg=name)
        middle = made[name].mean(axis=0)
        assert np.abs(middle - made.observed[name]).max() < 8.0 * observed
    for name in {*likelihood_named(kind).positive} & {*made.columns}:
        assert (made[name] > 0).all()
    # Items of one object are about the same object in every draw.
    frame = made.frame(0)
    assert frame["cluster"].nunique() == N_OBJECTS
    assert frame["id"].tolist() == items.id.tolist()


def test_offsets_of_experts_are_in_them() -> None:
    made = fitted(made_up("points", shift=2.0), expert_bias="offset").predictive(60)
    away = made["x"].mean(axis=0).reshape(len(EXPERTS), N_OBJECTS).mean(axis=1)
    # The offsets' prior pulls them towards none.
    assert 1.2 < away[0] - away[1:].mean() < 2.2


def test_same_seed_same_items() -> None:
    posterior = fitted(made_up("points"))
    first, again, other = (posterior.predictive(5, seed=seed)["x"] for seed in (1, 1, 2))
    assert (first == again).all()
    assert not (first == other).any()
    assert len(posterior.predictive(100_000)) == posterior.labels[:, :, 0].size


def test_independent_images() -> None:
    one = made_up("points")
    image = np.where(np.arange(len(one)) % 2, "a", "b")
    items = dfcrp.Items.from_columns(dict(one.columns), one.expert, kind="points", image=image)
    posterior = fitted(items)
    made = posterior.predictive(20)
    assert np.abs(made["x"].mean(axis=0) - one.x).max() < 6.0
    for draw in range(20):
        for cluster in np.unique(made.labels[draw]):
            assert len(set(image[made.labels[draw] == cluster])) == 1


def test_for_arviz() -> None:
    tree = fitted(made_up("points")).predictive(7).to_arviz()
    assert tree["posterior_predictive"]["x"].sizes == {"chain": 1, "draw": 7, "item": 200}
    assert tree["observed_data"]["x"].sizes == {"item": 200}


@pytest.mark.filterwarnings("ignore::dfcrp.errors.DfcrpWarning")
def test_what_does_not_scatter_says_so() -> None:
    records = dfcrp.Items.from_columns(
        {"name": ["ann", "ann", "bob"], "town": ["ulm", "ulm", "bonn"]},
        ["a", "b", "a"],
        kind="records",
    )
    posterior = dfcrp.fit(records, likelihood="records", chains=1, scans=20, burn_in=5)
    with pytest.raises(InputError, match="not for records"):
        posterior.predictive()
    with pytest.raises(InputError, match="1 or more"):
        fitted(made_up("points")).predictive(0)


def test_an_arviz_before_1_takes_what_it_gets(monkeypatch: pytest.MonkeyPatch) -> None:
    """Old versions take an InferenceData and refuse a tree; this one notes what it is given."""
    old = types.ModuleType("arviz")
    old.InferenceData = lambda **groups: groups  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "arviz", old)
    monkeypatch.setattr(for_arviz, "version", lambda name: "0.23.4")
    posterior = fitted(made_up("points"))
    found = posterior.to_arviz()
    assert list(found) == ["posterior"]
    assert isinstance(found["posterior"], xarray.Dataset)
    assert found["posterior"]["n_clusters"].dims == ("chain", "draw")
    assert set(posterior.predictive(3).to_arviz()) == {"posterior_predictive", "observed_data"}


def test_arviz_summary() -> None:
    """Whatever version is installed."""
    arviz = pytest.importorskip("arviz", reason="ArviZ is not installed")
    tree = fitted(made_up("points")).to_arviz()
    assert "n_clusters" in arviz.summary(tree).index

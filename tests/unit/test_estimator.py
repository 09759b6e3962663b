"""The scikit-learn estimator, and ``dfcrp.fit`` of a matrix, end to end."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.metrics import adjusted_rand_score
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

import dfcrp
from dfcrp import estimator
from dfcrp.errors import DfcrpWarning, InputError, SettingsError
from dfcrp.settings.config import make_config

OBJECTS, SOURCES = 25, 5


@pytest.fixture(scope="module")
def data() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows, groups and true labels; every source finds 85 % of the objects."""
    rng = np.random.default_rng(90)
    truth = np.tile(np.arange(OBJECTS), SOURCES)
    groups = np.repeat(np.arange(SOURCES), OBJECTS)
    objects = rng.uniform(0, 100, (OBJECTS, 3))
    values = objects[truth] + rng.standard_normal((len(truth), 3)) * [0.5, 0.8, 0.3]
    kept = rng.random(len(truth)) < 0.85
    return values[kept], groups[kept], truth[kept]


@pytest.fixture(scope="module")
def model(data):
    return dfcrp.DFCRP(scans=300, chains=1, random_state=1).fit(data[0], groups=data[1])


@pytest.mark.filterwarnings("ignore:y is ignored")
def test_check_estimator():
    """All checks apply but that of other array types, which scikit-learn skips; few scans each."""
    check_estimator(dfcrp.DFCRP(scans=60, chains=1, random_state=0), on_skip=None)


def test_objects_are_found(data, model):
    assert adjusted_rand_score(data[2], model.labels_) > 0.98
    assert model.labels_.max() + 1 == model.n_clusters_ == len(model.cluster_centers_)
    for k in range(model.n_clusters_):
        assert len(set(data[1][model.labels_ == k])) == (model.labels_ == k).sum()


def test_new_rows(data, model):
    chance = model.predict_proba(model.cluster_centers_)
    assert chance.shape == (model.n_clusters_, model.n_clusters_ + 1)
    assert chance.sum(axis=1) == pytest.approx(1.0)
    large = np.bincount(model.labels_) >= 3
    assert (model.predict(model.cluster_centers_)[large] == np.flatnonzero(large)).all()
    assert model.predict([[1e5, 1e5, 1e5]]).tolist() == [-1]
    # A source that has marked the object already marks no second one.
    at, source = data[0][:1], data[1][:1]
    barred = model.predict_proba(at, groups=source)
    assert barred[0, model.labels_[0]] == 0.0
    assert model.predict_proba(at, groups=["new"])[0] == pytest.approx(model.predict_proba(at)[0])


def test_units_do_not_matter(data, model):
    """The draws are the same up to rounding, so labels agree exactly."""
    scaled = clone(model).fit(data[0] * [1e-3, 7.0, 1e6] + 5.0, groups=data[1])
    assert adjusted_rand_score(scaled.labels_, model.labels_) == 1.0


def test_frames_and_pipelines(data, model):
    import pandas

    polars = pytest.importorskip("polars")
    names = ["a", "b", "c"]
    frame = pandas.DataFrame(data[0], columns=names)
    for table in (frame, polars.DataFrame(data[0], schema=names)):
        again = clone(model).fit(table, groups=data[1])
        assert (again.labels_ == model.labels_).all()
        assert again.feature_names_in_.tolist() == names
    pipe = make_pipeline(StandardScaler(), clone(model))
    assert adjusted_rand_score(pipe.fit_predict(frame, dfcrp__groups=data[1]), data[2]) > 0.98


@pytest.mark.parametrize("as_type", [list, np.asarray, lambda y: np.asarray(y).astype(str)])
def test_groups_that_come_as_y_are_not_taken_for_it_in_silence(data, as_type, monkeypatch):
    """``fit(X, y)`` ignores y, as other clusterers do, and says so if it looks like groups."""

    class Reached(Exception):
        pass

    def reached(*_, **__):
        raise Reached

    monkeypatch.setattr(estimator, "fit", reached)
    model, groups = dfcrp.DFCRP(), as_type(data[1])
    for fit in (model.fit, model.fit_predict):
        with (
            pytest.warns(DfcrpWarning, match=r"y is ignored.*give it as groups="),
            pytest.raises(Reached),
        ):
            fit(data[0], groups)
    # Without repeats, or with groups as well, y is no mistake.
    for given in ((np.arange(len(groups)),), (None,), (groups, groups)):
        with pytest.raises(Reached):
            model.fit(data[0], *given)


def test_groups_of_another_length_are_refused(data):
    with pytest.raises(InputError, match="groups must be"):
        dfcrp.DFCRP(scans=20).fit(data[0], groups=data[1][:-1])


def test_a_run_is_saved_and_loaded(data, tmp_path):
    posterior = dfcrp.fit(
        data[0], families=data[1], scans=120, chains=2, out=tmp_path / "run", min_experts=3
    )
    again = dfcrp.load(tmp_path / "run")
    assert (again.labels == posterior.labels).all()
    table = again.catalogue()
    assert {"x1", "x2_sd", "x3_lo", "n_experts", "p_consensus"} <= set(table)
    assert table.equals(posterior.catalogue())
    assert again.tolerances["x1"]["mean"] == pytest.approx(0.5, rel=0.6)
    assert posterior.consensus(3)["mean"].iloc[0] == pytest.approx(OBJECTS, abs=3)
    longer = dfcrp.resume(tmp_path / "run", scans=160)
    assert longer.record.scans == 160
    assert "x1" in longer.explain(0).text()


def test_boxes_by_candidates_of_ones_own(data):
    """Only the pairs that are named share a cluster."""
    values = np.column_stack([data[0][:, :2], np.exp(data[0][:, 1:] / 100.0)])
    pairs = [(i, i + 1) for i in range(0, len(values) - 1, 2)]
    posterior = dfcrp.fit(
        values, families=data[1], likelihood="boxes", candidates=pairs, scans=40, chains=1
    )
    together = posterior.coclustering().tocoo()
    off = together.row < together.col
    found = zip(together.row[off].tolist(), together.col[off].tolist(), strict=True)
    assert set(found) <= set(pairs)
    assert list(posterior.catalogue())[1] == "x"


def test_settings_that_do_not_fit_are_refused(data):
    markings = dfcrp.Items.circles([1.0], [1.0], [1.0], ["a"])
    boxes = {"run": {"likelihood": "boxes"}}
    for given in ({"likelihood": "boxes"}, {"config": boxes}, {"config": make_config(boxes)}):
        with pytest.raises(SettingsError, match='"boxes", but these items are circles'):
            dfcrp.fit(markings, **given)
    with pytest.raises(SettingsError, match="presets are for circles"):
        dfcrp.fit(data[0], preset="highlands", scans=10)
    with pytest.raises(SettingsError, match='use sampler "exact"'):
        dfcrp.fit(data[0], families=data[1], prior="detection", sampler="paper", scans=10)
    with pytest.raises(InputError, match="have their own"):
        dfcrp.fit(markings, families=[1])


def test_score_is_a_log_density(data, model):
    """It integrates to one, and prefers rows like those of the run to others."""
    near = model.score(data[0])
    assert near > model.score(data[0] + 3.0) > model.score(data[0] + 1e4)
    one = dfcrp.DFCRP(scans=100, chains=1, random_state=1).fit(data[0][:, :1], groups=data[1])
    grid = np.linspace(-400.0, 500.0, 90_001)
    from dfcrp.posterior.explain import log_density_of_new

    density = np.exp(log_density_of_new(one.posterior_, grid[:, np.newaxis]))
    assert np.trapezoid(density, grid) == pytest.approx(1.0, abs=0.01)


def test_settings_are_searched(data):
    """``GridSearchCV`` finds that variances differ by feature, and a pipeline may stand before."""
    search = GridSearchCV(
        dfcrp.DFCRP(scans=60, chains=1, random_state=1),
        {"likelihood": ["diagonal", "normal"]},
        cv=3,
    )
    search.fit(data[0])
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert search.best_score_ == search.cv_results_["mean_test_score"].max()
    assert search.predict(data[0][:3]).shape == (3,)
    pipeline = make_pipeline(StandardScaler(), dfcrp.DFCRP(scans=60, chains=1, random_state=1))
    assert np.isfinite(cross_val_score(pipeline, data[0], cv=2)).all()


def test_no_score_without_a_density():
    rows = np.array([["ann", "ulm"], ["bob", "bonn"], ["ann", "ulm"]], dtype=object)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DfcrpWarning)
        records = dfcrp.DFCRP(likelihood="records", scans=20, chains=1, random_state=1).fit(rows)
    with pytest.raises(SettingsError, match="not for records"):
        records.score(rows)
    circles = dfcrp.DFCRP(likelihood="circles", scans=20, chains=1, random_state=1)
    values = np.array([[1.0, 1.0, 5.0], [1.1, 1.0, 5.1], [90.0, 90.0, 5.0]])
    with pytest.raises(SettingsError, match="score is not for circles"):
        circles.fit(values, groups=["a", "b", "a"]).score(values)

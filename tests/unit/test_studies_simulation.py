"""The simulation study: tallies, stopping and resuming, tables, verdicts."""

from __future__ import annotations

import json
import math
import threading

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from dfcrp.errors import RunFolderError, SettingsError
from dfcrp.simulate import paper_design
from studies import paper_figures as paper
from studies import simulation
from studies.simulation import MODELS, Plan, run_dataset, run_study
from studies.simulation_report import reproduce_simulation
from studies.simulation_tables import (
    FEWEST_JUDGED,
    judged_figures,
    overview_row,
    wins,
    write_tables,
)
from studies.store import RESULTS, ResultStore
from studies.tallies import Tally
from studies.verdicts import JudgedFigure

TINY = Plan(datasets=3, scans=30, burn_in=10)


def without_times(results):
    """Results as they must be whatever the circumstances."""
    for result in results:
        for model in result["models"].values():
            model.pop("core_seconds")
    return results


def test_tally_agrees_with_plain_loops():
    markings = paper_design(2, n_objects=6)
    rng = np.random.default_rng(3)
    n = len(markings)
    labels = np.empty((40, n), np.int32)
    for row in labels:
        drawn = rng.integers(0, 9, n)
        row[:] = [int(np.flatnonzero(drawn == label)[0]) for label in drawn]
    tally = Tally(markings)
    tally.add(labels[:15], np.full(15, 2.0))
    tally.add(labels[15:], np.full(25, 4.0))
    counts, breaking, clusters, ari = np.zeros(6), 0, 0, 0.0
    for row in labels:
        ari += adjusted_rand_score(markings.truth, row)
        for label in set(row.tolist()):
            members = np.flatnonzero(row == label)
            clusters += 1
            breaking += len(set(markings.families[members].tolist())) < len(members)
            counts += len(members) >= np.arange(1, 7)
    found = tally.result()
    assert found["ari"] == pytest.approx(ari / 40)
    assert found["counts"] == pytest.approx((counts / 40).tolist())
    assert found["breaking_share"] == pytest.approx(breaking / clusters)
    assert found["alpha"] == pytest.approx((15 * 2 + 25 * 4) / 40)
    assert found["draws"] == 40


def test_a_data_set_under_all_models():
    result = run_dataset(TINY, 0)
    assert result["n"] == len(TINY.data(0))
    assert list(result["models"]) == list(MODELS)
    for name, found in result["models"].items():
        assert found["draws"] == 20
        assert found["counts"] == sorted(found["counts"], reverse=True)
        if name != "crp":
            assert found["breaking_share"] == 0


def test_data_sets_differ_and_come_again():
    assert not np.array_equal(TINY.data(0).x[:9], TINY.data(1).x[:9])
    np.testing.assert_array_equal(TINY.data(1).x, Plan(datasets=9, scans=99, burn_in=0).data(1).x)
    assert not np.array_equal(TINY.data(0).x[:9], Plan(seed=2).data(0).x[:9])


def test_a_stopped_study_goes_on_and_comes_to_the_same(tmp_path, monkeypatch):
    whole = run_study(TINY, tmp_path / "whole", workers=1)

    class Stop(Exception):
        pass

    def stop_after_one(step):
        raise Stop

    with pytest.raises(Stop):
        run_study(TINY, tmp_path / "parts", workers=1, observer=stop_after_one)
    kept = sorted(path.name for path in (tmp_path / "parts" / RESULTS).iterdir())
    assert kept == ["00000.json"]
    first = (tmp_path / "parts" / RESULTS / "00000.json").read_bytes()
    seen = []
    parts = run_study(TINY, tmp_path / "parts", workers=2, observer=seen.append)
    assert [step.done for step in seen] == [2, 3]
    assert (tmp_path / "parts" / RESULTS / "00000.json").read_bytes() == first
    assert without_times(parts) == without_times(whole)
    monkeypatch.setattr(simulation, "run_dataset", None)  # nothing is left to do
    run_study(TINY, tmp_path / "parts")


def test_a_worker_that_is_asked_to_stop_leaves_no_result():
    stop = threading.Event()
    stop.set()
    with pytest.raises(simulation.Interrupted):
        run_dataset(TINY, 0, stop)


def test_damaged_and_foreign_results_are_done_again(tmp_path):
    run_study(TINY, tmp_path, workers=2)
    store = ResultStore(tmp_path, TINY.identity())
    good = store.path(1).read_text()
    store.path(1).write_text(good[: len(good) // 2])
    foreign = json.loads(store.path(2).read_text())
    store.path(2).write_text(json.dumps({**foreign, "settings": "of another study"}))
    assert store.load(0) is not None
    assert store.load(1) is None
    assert store.load(2) is None
    run_study(TINY, tmp_path, workers=2)
    assert without_times([store.load(1)]) == without_times([json.loads(good)])


def test_other_settings_are_refused(tmp_path):
    run_study(TINY, tmp_path, workers=2)
    with pytest.raises(RunFolderError, match="burn_in, scans differ"):
        run_study(Plan(datasets=3, scans=40, burn_in=5), tmp_path)
    with pytest.raises(RunFolderError, match="design"):
        run_study(Plan(design="dense", datasets=3, scans=30, burn_in=10), tmp_path)
    # More data sets of the same kind are welcome.
    assert len(run_study(Plan(datasets=4, scans=30, burn_in=10), tmp_path, workers=2)) == 4


def made_up(n: int, shift: float = 0.0) -> list[dict]:
    """Results that scatter around the paper's means."""
    rng = np.random.default_rng(5)
    found = []
    for index in range(n):
        models = {
            name: {
                "ari": paper.ARI[name][2] + shift + 0.01 * rng.standard_normal(),
                "counts": [c + shift + rng.standard_normal() for c in paper.CLUSTER_COUNTS[name]],
                "breaking_share": 0.054 + 0.01 * rng.standard_normal() if name == "crp" else 0.0,
                "core_seconds": 1.0,
            }
            for name in MODELS
        }
        found.append({"index": index, "n": 180, "models": models})
    return found


def test_means_near_the_paper_s_agree_and_others_do_not():
    def verdicts(shift):
        return {
            figure.name: figure.agrees
            for figure in judged_figures(made_up(200, shift))
            if "mean" in figure.name or "clusters" in figure.name
        }

    assert all(verdicts(0.0).values())
    shifted = verdicts(0.5)
    assert not shifted["DFCRP, ARI mean"]
    assert not shifted["CRP, clusters of size ≥ 4"]
    assert shifted["CRP, clusters breaking the rule (%)"]


def test_extremes_are_not_judged():
    figures = {figure.name: figure for figure in judged_figures(made_up(30))}
    assert figures["CRP, ARI min"].agrees is None
    assert "of ours below" in figures["CRP, ARI min"].verdict


def test_tables_are_complete(tmp_path):
    results = made_up(FEWEST_JUDGED)
    plan = Plan(datasets=FEWEST_JUDGED)
    judged = write_tables(plan, results, tmp_path)
    page = (tmp_path / "tables.md").read_text()
    assert f"in {wins(results)} of {FEWEST_JUDGED} data sets (paper: 493 of 500)" in page
    assert page.count("| paper ") >= 7
    stored = json.loads((tmp_path / "results.json").read_text())
    assert len(stored["figures"]) == len(judged) == 4 * 5 + 1 + 3 * 6 + 1
    assert stored["settings"]["scans"] == 10_000
    for name in ("ari.csv", "counts.csv", "datasets.csv"):
        assert (tmp_path / name).stat().st_size > 100
    assert overview_row(plan, results)["data sets"] == FEWEST_JUDGED


def test_few_data_sets_and_other_designs_get_no_verdicts(tmp_path):
    assert write_tables(Plan(datasets=3), made_up(3), tmp_path) == []
    plan = Plan(design="dense", datasets=FEWEST_JUDGED)
    assert write_tables(plan, made_up(FEWEST_JUDGED), tmp_path) == []
    assert "paper" not in (tmp_path / "tables.md").read_text()


def test_several_designs_get_an_overview(tmp_path):
    plans = [Plan(name, 2, 12, 4) for name in ("few-experts", "poor-detection")]
    lines = []
    page = reproduce_simulation(
        tmp_path, plans, workers=2, progress=lambda text, final=False: lines.append(text)
    )
    text = page.read_text()
    assert "few-experts" in text
    assert "poor-detection" in text
    assert (tmp_path / "simulation.png").exists()
    assert lines[-1] == "poor-detection: 2 data sets done"
    run = json.loads((tmp_path / "few-experts" / "run.json").read_text())
    assert run["core_seconds_total"] > 0


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"design": "papr"}, "did you mean 'paper'"),
        ({"datasets": 1}, "at least 2"),
        ({"scans": 5, "burn_in": 5}, "leaves nothing"),
    ],
)
def test_wrong_plans_are_refused(wrong, message):
    with pytest.raises(SettingsError, match=message):
        Plan(**wrong)


def test_verdicts():
    close = JudgedFigure("x", 1.002, 0.001, 1.0, 0.0, 0.0)
    assert close.agrees
    far = JudgedFigure("x", 1.004, 0.001, 1.0, 0.0, 0.0)
    assert far.verdict == "differs by +0.004 (4.0 s.e.)"
    assert JudgedFigure("x", 1.0005, 0.0, 1.0, 0.0, 0.0005).agrees
    assert JudgedFigure("x", 1.0, math.nan, 2.0, math.nan, 0.0).verdict == "not judged"

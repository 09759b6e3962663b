"""The detection prior from a file to the tables and the page; on known data it is right."""

from __future__ import annotations

import json
import tomllib
from dataclasses import replace

import numpy as np
import pandas
import pytest
from click.testing import CliRunner

import dfcrp
from dfcrp.cli.main import dfcrp as command
from dfcrp.errors import InputError, SettingsError
from dfcrp.persons import check_groups, groups_by_person, persons_of
from dfcrp.priors.detection.settings import DetectionSettings
from dfcrp.runs.folder import write_markings
from dfcrp.sampling.chain import Chain
from dfcrp.sampling.problem import problem_of
from dfcrp.settings.config import make_config, resolve, to_toml
from studies import detection as study
from studies.detection_designs import DETECTION_DESIGNS
from studies.numbers import describe, shortest

N_OBJECTS = 30


@pytest.fixture(scope="module")
def markings():
    return DETECTION_DESIGNS["paper"].draw(np.random.default_rng(7))


@pytest.fixture(scope="module")
def run_folder(markings, tmp_path_factory):
    folder = tmp_path_factory.mktemp("detection")
    person = np.where(np.isin(markings.expert, ["E", "F"]), "somebody", "")
    write_markings(folder / "markings.csv", replace(markings, person=person))
    arguments = ["fit", str(folder / "markings.csv"), "--out", str(folder / "run")]
    arguments += ["--prior", "detection", "--chains", "2"]
    result = CliRunner().invoke(command, [*arguments, "--scans", "400", "--seed", "3"])
    assert result.exit_code == 0, result.output
    assert "missed by everyone (estimate)" in result.output
    assert "nan" not in result.output
    return folder / "run"


def test_summary_is_right_on_known_data(run_folder):
    summary = json.loads((run_folder / "summary.json").read_text(encoding="utf-8"))
    assert summary["n_objects"]["lo"] <= N_OBJECTS <= summary["n_objects"]["hi"]
    assert abs(summary["n_objects"]["mean"] - N_OBJECTS) < 1.0
    assert summary["n_missed"]["mean"] < 1.0
    assert "alpha" not in summary
    for row in summary["experts"]:
        assert row["sensitivity"]["mean"] > 0.75
        assert ("shared_noticing" in row) == (row["expert"] in "EF")
    settings = tomllib.loads((run_folder / "config.toml").read_text(encoding="utf-8"))
    assert settings["run"]["persons"] == [["E", "F"]]


def test_markings_are_called_real_rightly(run_folder, markings):
    members = pandas.read_csv(run_folder / "members.csv")
    real = markings.truth < N_OBJECTS
    assert np.mean((members["p_real"] - real) ** 2) < 0.01
    catalogue = pandas.read_csv(run_folder / "catalogue.csv")
    assert abs(catalogue["p_real"].sum() - N_OBJECTS) < 1.0


@pytest.mark.figures
def test_the_page_says_what_is_real_and_on_request_who_agrees(run_folder):
    page = (run_folder / "report.html").read_text(encoding="utf-8")
    assert "What is real, and how many were missed?" in page
    assert "How many objects?" not in page
    result = CliRunner().invoke(command, ["report", str(run_folder), "--side-by-side", "--quiet"])
    assert result.exit_code == 0, result.output
    page = (run_folder / "report.html").read_text(encoding="utf-8")
    assert "How many objects?" in page
    assert "anybody, and real" in page
    for name in ("sensitivity", "corrected_sizes", "cluster_sizes"):
        assert (run_folder / "figures" / f"{name}.svg").exists()


def test_a_saved_run_answers_as_before(run_folder):
    summary = json.loads((run_folder / "summary.json").read_text(encoding="utf-8"))
    assert dfcrp.load(run_folder).summary()["n_objects"] == summary["n_objects"]


def test_settings_survive_toml(tmp_path):
    run = {"prior": "detection", "persons": [["A", "B"]]}
    config = make_config({"run": run, "prior": {"by_size": False, "classes": 2}})
    file = tmp_path / "config.toml"
    file.write_text(to_toml(config), encoding="utf-8")
    assert resolve(str(file), {}) == config


@pytest.mark.parametrize(
    ("tables", "message"),
    [
        ({"run": {"prior": "detection"}, "prior": {"classes": 5}}, "1 to 4"),
        ({"run": {"persons": [["A", "B"], ["B"]]}}, "more than once"),
        ({"run": {"persons": ["A", "B"]}}, "lists of names|a list"),
        ({"run": {"prior": "detection", "sampler": "paper"}}, "use sampler"),
        ({"run": {"prior": "detection"}, "prior": {"false_share": 0.0}}, "above 0"),
        ({"run": {"prior": "detection"}, "prior": {"size_weight": 0.0}}, "above 0"),
        ({"run": {"prior": "detection"}, "prior": {"size_weight": "large"}}, "held"),
        ({"run": {"prior": "detection"}, "prior": {"false_shape_sd": -1.0}}, "above 0"),
        ({"run": {"prior": "attraction"}, "prior": {"strength": "strong"}}, "learned"),
    ],
)
def test_wrong_settings_are_refused(tables, message):
    with pytest.raises(SettingsError, match=message):
        make_config(tables)


def test_unknown_experts_are_named():
    with pytest.raises(SettingsError, match="did you mean 'Anna'"):
        check_groups(["Anna", "Bob"], [["Ana", "Bob"]])
    found = persons_of(["Anna", "Bob", "Cy"], [["Cy", "Anna"]])
    assert found.codes.tolist() == [0, 1, 0]
    assert found.names == ("Cy/Anna", "Bob")


def groups_in(items):
    return groups_by_person(items.id.tolist(), items.expert.tolist(), items.person.tolist())


def test_a_list_is_by_one_person(markings):
    """Found in a column; blank means a person of their own."""
    person = np.where(markings.expert == "A", "", "x").astype("<U1")
    frame = {name: getattr(markings, name) for name in ("x", "y", "diameter", "expert")}
    told = dfcrp.Items.from_frame({**frame, "person": person})
    assert groups_in(told) == (("B", "C", "D", "E", "F"),)
    assert groups_in(told.select(told.expert < "C")) == ()
    person[np.flatnonzero(markings.expert == "B")[1]] = "y"
    with pytest.raises(InputError, match="a list is by one person"):
        groups_in(dfcrp.Items.from_frame({**frame, "person": person}))


def test_attraction_is_a_prior_of_its_own(markings):
    """Between lists of one person; its settings belong to no other prior."""
    settings = {"run": {"prior": "attraction", "persons": [["A", "B"]]}, "prior": {"strength": 1.5}}
    with pytest.raises(SettingsError, match=r"no setting of the prior detection 'prior\.strength'"):
        dfcrp.fit(markings, config=settings, prior="detection")
    with pytest.raises(SettingsError, match=r"run\.persons"):
        dfcrp.fit(markings, config={"prior": {"strength": 1.5}}, prior="attraction")
    fixed = problem_of(markings, make_config(settings))
    assert "attraction" not in fixed.columns.names
    assert fixed.prior.strong[0] == np.exp(1.5)
    settings["prior"] = {"strength": "learned"}
    chain = Chain(problem_of(markings, make_config(settings)), np.random.SeedSequence(1), "exact")
    assert chain.problem.columns.names[-1] == "attraction"
    assert chain.prior.strong[0] == 1.0


def test_every_default_is_a_setting_of_its_own():
    assert DetectionSettings() == make_config({"run": {"prior": "detection"}}).prior


def test_study_goes_on_where_it_stopped(tmp_path, monkeypatch):
    """Two short data sets; the second call finds them done and comes to the same table."""
    # Attraction takes long to compile, and is tested elsewhere.
    monkeypatch.delitem(study.MODELS, "dfcrp, attraction")
    plan = study.DetectionPlan("one-person", datasets=2, scans=60, burn_in=30)
    first = study.report(plan, study.run_study(plan, tmp_path, workers=1), tmp_path)
    assert study.report(plan, study.run_study(plan, tmp_path, workers=1), tmp_path) == first
    rows = study.table_of(study.run_study(plan, tmp_path, workers=1), "total")
    assert [row["prior"] for row in rows] == list(study.MODELS)
    assert all(0.0 <= row["ARI"] <= 1.0 for row in rows)


def test_what_intervals_of_whole_numbers_hold():
    """An interval holds at least what it should; one that ends in between holds just that."""
    numbers, share = np.array([3, 4, 6, 9]), np.array([0.01, 0.6, 0.36, 0.03])
    assert shortest(numbers, share) == (4.0, 6.0)
    rng = np.random.default_rng(8)
    draws = rng.choice(numbers, (2, 4000), p=share)
    found = [describe(draws, truth) for truth in rng.choice(numbers, 3000, p=share)]
    covered = np.mean([row["exact"] for row in found])
    # The false-alarm rate of four standard errors is 6e-5.
    assert covered == pytest.approx(0.95, abs=4 * np.sqrt(0.95 * 0.05 / 3000))
    assert np.mean([row["shortest"]["covers"] for row in found]) == pytest.approx(0.96, abs=0.015)
    assert found[0]["shortest"]["mass"] == pytest.approx(0.96, abs=0.01)

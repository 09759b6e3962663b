"""Settings: defaults, presets, TOML there and back, and what is refused."""

from __future__ import annotations

import dataclasses
import tomllib
from pathlib import Path
from typing import Any

import pytest

from dfcrp.errors import SettingsError
from dfcrp.likelihoods.circle.hyper import PRESETS, CircleSettings
from dfcrp.likelihoods.normal.hyper import NormalSettings
from dfcrp.likelihoods.record.hyper import RecordSettings
from dfcrp.likelihoods.registry import HOMES as LIKELIHOODS
from dfcrp.likelihoods.registry import likelihood_named
from dfcrp.priors.arrivals.prior import ArrivalSettings
from dfcrp.priors.attraction.prior import AttractionSettings
from dfcrp.priors.detection.settings import DetectionSettings
from dfcrp.priors.registry import HOMES as PRIORS
from dfcrp.priors.registry import prior_named
from dfcrp.settings.config import (
    Config,
    ImageSettings,
    RunSettings,
    SummarySettings,
    load_config,
    make_config,
    resolve,
    to_toml,
)


def test_nothing_given_is_the_default() -> None:
    assert make_config() == make_config({}) == Config()


@pytest.mark.parametrize(
    "tables",
    [
        {},
        {"run": {"radius": "none", "scans": 100, "burn_in": 10, "max_minutes": 1.5}},
        {"run": {"radius": 75, "preset": "highlands", "sampler": "paper"}},
        {"likelihood": {"mu0": [1, 2.5, 3], "sigma0": [10, 20, 0.5], "eta_d": -0.1}},
        {"run": {"likelihood": "boxes", "nearest": 7}, "likelihood": {"growth": 0.5}},
        {"run": {"likelihood": "records"}, "likelihood": {"keys": ["name", "name+born"]}},
        {"run": {"prior": "attraction"}, "prior": {"strength": 1.5, "alpha_rate": 0.1}},
        {"run": {"prior": "detection", "persons": [["a", "b"]]}, "prior": {"classes": 2}},
        {"summary": {"class_edges": [], "class_names": [], "thresholds": [2]}},
        {"summary": {"class_edges": [30], "class_names": ['"fine"', "back\\slash"]}},
    ],
)
def test_toml_there_and_back(tables: dict[str, Any], tmp_path: Path) -> None:
    config = make_config(tables)
    path = tmp_path / "settings.toml"
    path.write_text(to_toml(config), encoding="utf-8")
    assert make_config(load_config(path)) == config


def test_toml_holds_every_setting_that_is_set() -> None:
    config = make_config({"run": {"scans": 5}})
    tables = tomllib.loads(to_toml(config))
    for part in ("run", "likelihood", "prior", "summary", "image"):
        values = dataclasses.asdict(getattr(config, part))
        assert set(tables[part]) == {name for name, value in values.items() if value is not None}


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_sets_the_model_and_can_be_changed(name: str) -> None:
    plain = make_config({"run": {"preset": name}})
    for section, values in PRESETS[name].items():
        for key, value in values.items():
            assert getattr(getattr(plain, section), key) == value
    changed = make_config({"run": {"preset": name}, "prior": {"alpha_rate": 7}})
    assert changed.prior == dataclasses.replace(plain.prior, alpha_rate=7.0)
    assert changed.likelihood == plain.likelihood


def test_the_paper_s_values() -> None:
    """Section 5.1 and supplement D of the paper."""
    config = make_config({"run": {"preset": "highlands"}})
    model, prior = config.likelihood, config.prior
    assert (model.kappa_x, model.eta_x, model.tau_x) == (0.08, 4.5, 1)
    assert (model.kappa_d, model.eta_d, model.tau_d) == (0.124, -0.8, 100)
    assert (model.lambda_a, model.lambda_b) == (100, 100)
    assert model.mu0 == (2068.2, -1105.5, 3.8)
    assert (prior.alpha_shape, prior.alpha_rate) == (3, 0.04)


def test_overrides_win() -> None:
    config = make_config({"run": {"chains": 2, "seed": 9}}, {"run": {"chains": 3}})
    assert (config.run.chains, config.run.seed) == (3, 9)


@pytest.mark.parametrize(
    ("tables", "said"),
    [
        ({"runs": {}}, "did you mean 'run'?"),
        ({"run": {"chain": 1}}, "there is no setting 'run.chain'; did you mean 'chains'?"),
        ({"likelihood": {"kapa_x": 1}}, "did you mean 'kappa_x'?"),
        ({"summary": {"zzz": 1}}, "there is no setting 'summary.zzz'. Known: min_experts"),
        ({"run": 5}, "run must be a table"),
        ({"run": {"preset": "highland"}}, 'Did you mean "highlands"?'),
        ({"run": {"sampler": "exat"}}, 'Did you mean "exact"?'),
        ({"run": {"prior": "cpr"}}, 'Did you mean "crp"?'),
    ],
)
def test_an_unknown_name_is_an_error_with_the_nearest(tables: dict[str, Any], said: str) -> None:
    with pytest.raises(SettingsError) as error:
        make_config(tables)
    assert said in str(error.value)


@pytest.mark.parametrize(
    ("part", "name", "value"),
    [
        ("run", "chains", 0),
        ("run", "chains", 1.5),
        ("run", "chains", True),
        ("run", "chains", "four"),
        ("run", "scans", 0),
        ("run", "scans", float("nan")),
        ("run", "thin", 0),
        ("run", "max_scans", 0),
        ("run", "max_minutes", 0),
        ("run", "burn_in", -1),
        ("run", "burn_in", 20_000),
        ("run", "thin", 20_001),
        ("run", "radius", 0),
        ("run", "radius", "near"),
        ("run", "radius", float("inf")),
        ("run", "seed", -1),
        ("run", "workers", 0),
        ("likelihood", "kappa_x", 0),
        ("likelihood", "tau_d", -1),
        ("prior", "alpha_shape", 0),
        ("likelihood", "mu0", [1, 2]),
        ("likelihood", "sigma0", [1, 2, 0]),
        ("likelihood", "sigma0", "wide"),
        ("summary", "min_experts", 0),
        ("summary", "thresholds", []),
        ("summary", "thresholds", [0]),
        ("summary", "class_edges", [100, 50]),
        ("summary", "class_edges", [50, 50]),
        ("summary", "class_edges", [50]),
        ("summary", "class_names", ["all", "medium", "large"]),
        ("summary", "diameter", "median"),
    ],
)
def test_out_of_range(part: str, name: str, value: Any) -> None:
    with pytest.raises(SettingsError, match=rf"{part}\.(class_names|{name})"):
        make_config({part: {name: value}})


@pytest.mark.parametrize(
    ("run", "section", "kind"),
    [
        ({}, "likelihood", CircleSettings),
        ({"likelihood": "boxes"}, "likelihood", NormalSettings),
        ({"likelihood": "normal"}, "likelihood", NormalSettings),
        ({"likelihood": "records"}, "likelihood", RecordSettings),
        ({"prior": "crp"}, "prior", ArrivalSettings),
        ({"prior": "attraction"}, "prior", AttractionSettings),
        ({"prior": "detection"}, "prior", DetectionSettings),
    ],
)
def test_the_chosen_parts_have_their_own_settings(
    run: dict[str, Any], section: str, kind: type
) -> None:
    assert type(getattr(make_config({"run": run}), section)) is kind
    assert getattr(Config(run=RunSettings(**run)), section) == kind()


@pytest.mark.parametrize(
    ("tables", "said"),
    [
        (
            {"run": {"likelihood": "boxes"}, "likelihood": {"kappa_x": 1}},
            "there is no setting of boxes 'likelihood.kappa_x'",
        ),
        (
            {"run": {"prior": "detection"}, "prior": {"alpha_rate": 1}},
            "there is no setting of the prior detection 'prior.alpha_rate'",
        ),
        ({"prior": {"strength": 1}}, "there is no setting of the prior dfcrp 'prior.strength'"),
        ({"run": {"likelihood": "boxs"}}, "did you mean 'boxes'?"),
        ({"run": {"likelihood": "boxes", "preset": "highlands"}}, "presets are for circles"),
        ({"run": {"prior": "attraction", "sampler": "paper"}}, 'use sampler "exact"'),
        ({"run": {"persons": [["a", "b"], ["b", "c"]]}}, "run.persons has b more than once"),
    ],
)
def test_settings_of_a_part_that_was_not_chosen(tables: dict[str, Any], said: str) -> None:
    with pytest.raises(SettingsError) as error:
        make_config(tables)
    assert said in str(error.value)


def test_every_likelihood_and_prior_answers_to_its_name() -> None:
    assert [likelihood_named(name).name for name in LIKELIHOODS] == list(LIKELIHOODS)
    assert [prior_named(name).name for name in PRIORS] == list(PRIORS)


@pytest.mark.parametrize("name", ["no_module:X", "dfcrp.errors:X", "dfcrp.errors:DfcrpError"])
def test_a_likelihood_of_ones_own_that_is_none(name: str) -> None:
    with pytest.raises(SettingsError, match=f"run.likelihood is '{name}', which"):
        make_config({"run": {"likelihood": name}})


def test_whole_numbers_may_be_written_as_floats_and_the_other_way() -> None:
    config = make_config({"run": {"chains": 2.0, "radius": 75}})
    assert isinstance(config.run.chains, int)
    assert isinstance(config.run.radius, float)


def test_burn_in_must_leave_something() -> None:
    with pytest.raises(SettingsError, match="leaves nothing of 100 scans"):
        RunSettings(scans=100, burn_in=100)


def test_the_unmodified_sampler_needs_an_order() -> None:
    with pytest.raises(SettingsError, match="order of arrival"):
        RunSettings(sampler="unmodified", prior="crp")


@pytest.mark.parametrize("content", [b"[run\n", b"\xff\xfe", b"[run]\nseed = 1\nseed = 2\n"])
def test_a_file_that_is_no_toml(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "settings.toml"
    path.write_bytes(content)
    with pytest.raises(SettingsError, match=r"settings\.toml: is not valid TOML"):
        load_config(path)


def test_settings_are_frozen() -> None:
    parts = (CircleSettings(), NormalSettings(), RecordSettings(), ArrivalSettings())
    priors = (AttractionSettings(), DetectionSettings())
    rest = (RunSettings(), SummarySettings(), ImageSettings(), Config())
    for settings in (*parts, *priors, *rest):
        with pytest.raises(dataclasses.FrozenInstanceError):
            settings.anything = 1  # type: ignore[union-attr]


# The keyword settings of dfcrp.fit


def test_keywords_find_their_table() -> None:
    config = resolve(None, {"chains": 3, "min_experts": 2, "radius": None})
    assert (config.run.chains, config.summary.min_experts, config.run.radius) == (3, 2, None)


def test_keywords_win_over_a_config_of_any_kind(tmp_path: Path) -> None:
    path = tmp_path / "settings.toml"
    path.write_text("[run]\nchains = 7\nseed = 3\n")
    config = make_config({"run": {"chains": 7, "seed": 3, "radius": "none"}})
    for given in (path, str(path), {"run": {"chains": 7, "seed": 3}}, config):
        settled = resolve(given, {"chains": 2})
        assert (settled.run.chains, settled.run.seed) == (2, 3)
    assert resolve(config, {}) == config


@pytest.mark.parametrize(
    ("experts", "fewest", "counted"),
    [
        (1, 1, (1,)),
        (2, 2, (2,)),
        (3, 2, (2, 3)),
        (4, 3, (2, 3, 4)),
        (5, 5, (4, 5, 6)),
        (11, 5, (4, 5, 6)),
    ],
)
def test_what_makes_a_consensus_of_few(experts: int, fewest: int, counted: tuple[int, ...]) -> None:
    found = resolve(None, {}, [experts]).summary
    assert (found.min_experts, found.thresholds) == (fewest, counted)
    told = resolve({"summary": {"min_experts": 7, "thresholds": [9]}}, {}, [experts]).summary
    assert (told.min_experts, told.thresholds) == (7, (9,))
    assert resolve(None, {"min_experts": 6}, [experts]).summary.min_experts == 6


def test_an_unknown_keyword_is_an_error() -> None:
    with pytest.raises(SettingsError, match=r"'run\.chian'; did you mean 'chains'\?"):
        resolve(None, {"chian": 1})


def test_a_preset_over_a_finished_config_is_refused() -> None:
    with pytest.raises(SettingsError, match="preset"):
        resolve(Config(), {"preset": "highlands"})


def test_a_message_on_what_a_file_says_names_the_file(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text('[run]\nscans = "many"\nchains = 2\n')
    with pytest.raises(SettingsError, match=r"mine\.toml: run\.scans is 'many'"):
        resolve(file, {})
    with pytest.raises(SettingsError, match=r"^run\.scans is 0"):
        resolve(file, {"scans": 0})
    assert resolve(file, {"scans": 5}).run.chains == 2

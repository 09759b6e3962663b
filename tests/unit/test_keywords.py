"""The keywords of ``dfcrp.fit``: one default each, resolved once, and shown to whoever asks."""

from __future__ import annotations

import dataclasses
import inspect
import re
from pathlib import Path
from typing import Any, get_type_hints

import pytest

import dfcrp
import dfcrp.errors
from dfcrp.cli.fit import command
from dfcrp.cli.main import main
from dfcrp.likelihoods.circle.hyper import CircleSettings
from dfcrp.settings import config as settings_module
from dfcrp.settings.config import (
    ELSEWHERE,
    FROM_ITEMS,
    ImageSettings,
    RunSettings,
    SummarySettings,
    read_settings,
)
from dfcrp.settings.keywords import FitSettings, default_of

SECTIONS: dict[str, Any] = {
    "run": RunSettings,
    "likelihood": CircleSettings,
    "summary": SummarySettings,
    "image": ImageSettings,
}
#: Lists are welcome where a setting holds tuples.
WIDER = {"persons"}
HINTS = get_type_hints(FitSettings)


def test_every_setting_of_the_run_is_a_keyword() -> None:
    assert {one.name for one in dataclasses.fields(RunSettings)} == set(HINTS) - set(ELSEWHERE)
    assert set(ELSEWHERE) <= set(HINTS)


@pytest.mark.parametrize("keyword", HINTS)
def test_a_keyword_has_the_type_of_its_setting(keyword: str) -> None:
    section, name = ELSEWHERE.get(keyword, ("run", keyword))
    wanted = get_type_hints(SECTIONS[section])[name]
    if keyword in FROM_ITEMS:
        wanted = wanted | None
    if keyword not in WIDER:
        assert HINTS[keyword] == wanted


def test_the_signature_has_every_keyword_with_the_default_of_its_section() -> None:
    parameters = inspect.signature(dfcrp.fit).parameters
    assert all(one.kind is not one.VAR_KEYWORD for one in parameters.values())
    for keyword in HINTS:
        section, name = ELSEWHERE.get(keyword, ("run", keyword))
        expected = None if keyword in FROM_ITEMS else getattr(SECTIONS[section], name)
        assert parameters[keyword].default == expected == default_of(keyword)
    assert str(parameters["chains"]) == "chains: int = 4"


def test_the_help_of_the_command_has_the_same_defaults() -> None:
    compared = 0
    for option in command.params:
        said = re.search(r"\[default: ([^\s,;\]]+)\]", getattr(option, "help", None) or "")
        if option.name in HINTS and option.name not in FROM_ITEMS and said:
            compared += 1
            default = default_of(option.name)
            text = "0,0" if option.name == "image_offset" else f"{default}"
            assert said[1] in (text, f"{default:g}" if isinstance(default, float) else text)
    assert compared >= 10


def test_the_command_reads_its_file_once_and_resolves_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As Python does: the items only add what follows from them."""
    rows = [f"{10 * k},{k},5,{who}" for k in range(4) for who in "abc"]
    table = tmp_path / "m.csv"
    table.write_text("\n".join(["x,y,diameter,expert", *rows]), encoding="utf-8")
    file = tmp_path / "s.toml"
    file.write_text("[run]\nscans = 5\nchains = 1\n[summary]\nthresholds = [3]\n", encoding="utf-8")
    calls: list[str] = []
    for name in ("load_config", "make_config"):
        real = getattr(settings_module, name)

        def counted(*given: Any, _name: str = name, _real: Any = real) -> Any:
            calls.append(_name)
            return _real(*given)

        monkeypatch.setattr(settings_module, name, counted)
    out = str(tmp_path / "run")
    given = [str(table), "--out", out, "--config", str(file), "--no-report", "--quiet"]
    assert main(["fit", *given]) == 0
    assert calls == ["load_config", "make_config"]
    of_command = dfcrp.load(out).config
    calls.clear()
    posterior = dfcrp.fit(dfcrp.read_markings(table), config=file)
    assert calls == ["load_config", "make_config"]
    assert posterior.config == of_command
    assert (of_command.summary.min_experts, of_command.summary.thresholds) == (2, (3,))


def test_a_keyword_wins_although_it_is_the_default(tmp_path: Path) -> None:
    asked = read_settings({"run": {"chains": 7, "seed": 3}}, {"chains": RunSettings.chains})
    assert (asked.resolve().run.chains, asked.resolve().run.seed) == (4, 3)


def test_the_kind_of_the_items_counts_where_nobody_names_one() -> None:
    assert read_settings(None, {}).resolve("boxes").run.likelihood == "boxes"
    assert (
        read_settings({"run": {"likelihood": "points"}}, {}).resolve("boxes").run.likelihood
        == "points"
    )
    assert read_settings(None, {"likelihood": None}).kind("diagonal") == "diagonal"
    with pytest.raises(dfcrp.errors.SettingsError, match=r"run\.likelihood is 5; it must be a"):
        read_settings({"run": {"likelihood": 5}}, {}).kind("diagonal")


def test_code_that_a_file_names_is_not_loaded_to_learn_the_kind(tmp_path: Path) -> None:
    file = tmp_path / "s.toml"
    file.write_text('[run]\nlikelihood = "os:path"\n', encoding="utf-8")
    with pytest.raises(dfcrp.errors.SettingsError, match="runs no code because a file names it"):
        dfcrp.fit([[0.0, 1.0], [2.0, 3.0]], config=file)
    with pytest.raises(dfcrp.errors.SettingsError, match="not a dfcrp Likelihood"):
        dfcrp.fit([[0.0, 1.0], [2.0, 3.0]], config=file, likelihood="os:path")

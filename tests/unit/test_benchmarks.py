"""The benchmarks' own arithmetic: ratios, the check against a baseline, and what rivals answer."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import numpy as np
import pytest

from benchmarks import command as bench
from benchmarks import rivals
from benchmarks.check import compare
from benchmarks.growth import split_experts
from benchmarks.measuring import ratio_of
from dfcrp.baselines.scores import adjusted_rand
from dfcrp.baselines.wrapping import noise_alone
from dfcrp.simulate import highlands_like


def result(value: float, spread: tuple[float, float], better: str) -> dict:
    entry = {"value": value, "spread": list(spread), "better": better}
    return {"scan": {"bench": "scan", "ratios": {"a over b": entry}}}


def run(*arguments: object) -> int:
    return bench.main([str(a) for a in arguments])


def test_a_ratio_has_the_spread_of_both_times() -> None:
    found = ratio_of((4.0, (3.0, 5.0)), (2.0, (1.0, 2.5)), "lower")
    assert found == {"value": 2.0, "spread": [1.2, 5.0], "better": "lower"}


@pytest.mark.parametrize(
    ("better", "value", "spread", "regressed"),
    [
        ("higher", 10.0, (9.0, 11.0), False),
        ("higher", 5.0, (4.5, 5.5), True),
        ("higher", 5.0, (4.5, 9.5), False),  # slower, but the spreads meet
        ("higher", 8.5, (8.4, 8.6), False),  # within the tolerance
        ("higher", 30.0, (29.0, 31.0), False),
        ("lower", 20.0, (19.0, 21.0), True),
        ("lower", 5.0, (4.0, 6.0), False),
    ],
)
def test_what_counts_as_a_regression(better, value, spread, regressed) -> None:
    baseline = result(10.0, (9.0, 11.0), better)
    [verdict] = compare(result(value, spread, better), baseline)
    assert verdict.regressed is regressed


def test_the_check_decides_the_exit_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now = result(10.0, (9.0, 11.0), "higher")["scan"]
    monkeypatch.setattr(bench, "_measure", lambda name, **_: now)
    saved, figure = tmp_path / "bench.json", tmp_path / "bench.png"
    assert run("scan", "--json", saved, "--figure", figure) == 0
    assert figure.read_bytes().startswith(b"\x89PNG")
    assert run("scan", "--check", saved) == 0
    now["ratios"]["a over b"] = {"value": 2.0, "spread": [1.9, 2.1], "better": "higher"}
    assert run("scan", "--check", saved) == 1
    assert "REGRESSED scan: a over b: 2, was 10" in capsys.readouterr().err
    saved.write_text(json.dumps({"bench": "scan"}), encoding="utf-8")
    assert run("scan", "--check", saved) == 1
    saved.write_text("[]", encoding="utf-8")
    assert run("scan", "--check", saved) == 2
    assert "./run bench: error: " in capsys.readouterr().err
    assert run("skan") == 2


def test_more_experts_keep_the_true_partition_valid() -> None:
    markings = highlands_like(1, scale=0.05)
    split = split_experts(markings, 200)
    assert 100 < len(split.experts) <= 200
    pairs = np.column_stack([markings.truth, split.families])
    assert len(np.unique(pairs, axis=0)) == len(pairs)
    assert np.array_equal(split.x, markings.x)


QUICK = [rival for rival in rivals.RIVALS if rival.name != "dfcrp, first answer"]


@pytest.mark.filterwarnings("ignore")  # the mixture is stopped before it converges
@pytest.mark.parametrize("rival", QUICK, ids=lambda rival: rival.package + rival.name[-8:])
def test_rivals_answer_in_the_order_of_the_markings(rival: rivals.Rival) -> None:
    if rival.package == "fast_hdbscan" or not importlib.util.find_spec(rival.package):
        pytest.skip(f"{rival.package} is not installed, or takes a minute to compile")
    markings = highlands_like(3, scale=0.03)
    order = np.random.default_rng(1).permutation(len(markings))
    labels = noise_alone(rival.answer(markings))
    assert labels.shape == (len(markings),)
    assert adjusted_rand(labels, markings.truth) > 0.5
    assert adjusted_rand(labels[order], markings.truth) < 0.1


def test_a_missing_rival_is_named() -> None:
    ours = rivals.Rival("ours", "dfcrp", lambda markings: np.arange(len(markings)))
    gone = rivals.Rival("gone", "no_such_package", ours.answer)
    found = rivals.bench_rivals(highlands_like(1, scale=0.02), repeats=2, rivals=(ours, gone))
    assert found["missing"] == ["gone"]
    assert [row["method"] for row in found["methods"]] == ["ours"]

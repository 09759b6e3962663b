"""No stage of a run of a crowd grows faster than the crowd: ten times the markings, at most twelve
times the processor seconds, each with as many images and volunteers.

Anything else the machine does only adds to the seconds, so the least of several is taken where one
is too many.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.large_crowd import LargeCrowd
from benchmarks.stages import RUN, STAGES, measure

MOST, TRIES, SCANS = 12.0, 3, 9
#: A small crowd fits into the processor's cache, and a scan does little else than read and write.
SCANNING, MOST_SCANNING = ("scan", "chain"), 16.0
#: What takes less is lost among what does not depend on the crowd.
LEAST_SECONDS = 0.03


def least(folder: Path, stage: str, known: dict[str, float]) -> dict[str, float]:
    """Processor seconds by name, the least so far."""
    found = measure(folder, stage, "detection", SCANS)
    seconds = {name: one["seconds"] for name, one in found.items() if "seconds" in one}
    return {name: min(value, known.get(name, value)) for name, value in seconds.items()}


def grown(few: dict[str, float], many: dict[str, float]) -> dict[str, float]:
    """By how much too many stages have grown."""
    each = {name: many[name] / max(few[name], LEAST_SECONDS) for name in many}
    return {
        name: ratio
        for name, ratio in each.items()
        if ratio > (MOST_SCANNING if any(word in name for word in SCANNING) else MOST)
    }


@pytest.mark.parametrize("marks", [2_000, pytest.param(10_000, marks=pytest.mark.long)])
def test_no_stage_grows_faster_than_the_crowd(marks, tmp_path: Path, capsys) -> None:
    folders = [tmp_path / "few", tmp_path / "many"]
    for folder, size in zip(folders, (marks, 10 * marks), strict=True):
        LargeCrowd.of_size(size, categories=3).write(folder)
    for stage in STAGES:
        # The first time things are imported and compiled.
        few = least(folders[0], stage, least(folders[0], stage, {}))
        many: dict[str, float] = {}
        for _ in range(TRIES):
            many = least(folders[1], stage, many)
            if not grown(few, many):
                break
        assert not grown(few, many), (few, many)
    assert (folders[1] / RUN / "report.html").stat().st_size < 5_000_000
    assert "suspected_doubles" in capsys.readouterr().out

"""The fuzzer's own accounting: inputs, coverage, and what counts as going wrong."""

from __future__ import annotations

import random
import subprocess
from pathlib import Path
from typing import Any

import pytest

from dfcrp.io import images
from dfcrp.io.drawings import Drawings, Mark, Origin
from dfcrp.items.image_names import Named
from fuzz import exchange, fuzz


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


def exchanged(folder: Path, count: int) -> int:
    """How many of so many cases go wrong."""
    wrong = 0
    for seed in range(1, count + 1):
        own = folder / str(seed)
        own.mkdir()
        try:
            exchange.check_case(exchange.make_case(random.Random(seed)), own)
        except AssertionError:
            wrong += 1
    return wrong


def test_exchanged_lists_are_read_as_they_were_written(tmp_path: Path) -> None:
    assert exchanged(tmp_path, 150) == 0


def silent(self: Drawings, origin: Origin, why: str) -> None:
    """Marks are left out, and nobody is told."""


def flipped(self: Drawings, origin: Origin, *box: Any, angle: Any = 0.0) -> None:
    """A negative width is taken for its absolute value."""
    left, top, width, height = (self.number(origin, one, "a number") for one in box)
    sides = abs(width) / 2, abs(height) / 2
    self._marks.append(Mark(origin, "box", left + sides[0], top + sides[1], *sides))


def by_name(seen: Any, mode: str = "auto") -> Named:
    """Folders of images are dropped."""
    pairs = set(seen)
    return Named({(who, one): one.parts[-1] for who, one in pairs}, [], [])


def as_written(seen: Any, mode: str = "auto") -> Named:
    """Names that are spelled in two ways are two images."""
    return Named({(who, one): one.path for who, one in set(seen)}, [], [])


@pytest.mark.parametrize(
    ("where", "name", "bug"),
    [
        (Drawings, "leave", silent),
        (Drawings, "box", flipped),
        (images, "name_images", by_name),
        (images, "name_images", as_written),
    ],
)
def test_exchanged_lists_show_planted_bugs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: Any, name: str, bug: Any
) -> None:
    monkeypatch.setattr(where, name, bug)
    assert exchanged(tmp_path, 150) > 0

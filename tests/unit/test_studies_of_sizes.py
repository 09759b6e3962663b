"""The study of what is assumed of sizes, in short."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from studies import detection_sizes
from studies.detection_sizes import DESIGNS, SizeDesign


def test_designs_differ_in_what_they_say():
    rng = np.random.default_rng(1)
    usual = SizeDesign(n_objects=400, false_marks=(60.0,) * 8)

    def median_size(design, real):
        drawn = design.draw(rng)
        chosen = (drawn.truth < design.n_objects) == real
        return np.median(drawn.features[chosen, 2])

    # The median of an exponential with the mean 0.5, or 0.12, above the smallest.
    assert median_size(usual, False) == pytest.approx(3.0 + 0.5 * np.log(2.0), abs=0.08)
    small = replace(usual, false_spread=0.12)
    assert median_size(small, False) == pytest.approx(3.0 + 0.12 * np.log(2.0), abs=0.03)
    # Found objects are larger, the more so the more size counts.
    assert median_size(replace(usual, by_size=3.0), True) > median_size(usual, False)


def test_a_short_study_goes_on_where_it_stopped(tmp_path, monkeypatch, capsys):
    name = "small false marks"
    few = replace(DESIGNS[name], n_objects=15, side=500.0, false_marks=(2.0,) * 8)
    monkeypatch.setattr(detection_sizes, "DESIGNS", {name: few})
    asked = ["--out", str(tmp_path), "--datasets", "2", "--scans", "30", "--burn-in", "10"]
    detection_sizes.main(asked)
    first = capsys.readouterr().out
    assert all(f"| {model} " in first for model in detection_sizes.MODELS)
    monkeypatch.setattr(detection_sizes, "run_dataset", None)
    detection_sizes.main(asked)
    assert capsys.readouterr().out == first

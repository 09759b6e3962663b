"""Where data that is not ours to pass on lies, for the tests that can use it."""

from __future__ import annotations

from pathlib import Path

import pytest

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"


def highlands_path() -> Path:
    """Give the R14 highlands markings, or skip the test."""
    path = SHARED / "r14_highlands" / "Crater_Meas_data_NAC.txt"
    if not path.is_file():
        pytest.skip("the R14 highlands markings are not in ../shared/data; they have no licence")
    return path

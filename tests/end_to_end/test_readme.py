"""The README's example, on one image and on several, as plain Python: nothing is compiled."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

ROOT = Path(__file__).resolve().parents[2]


def example() -> str:
    """The example with fewer scans than it takes until the chains agree."""
    [code] = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text("utf-8"), re.S)
    assert "chains=4, seed=1" in code
    return code.replace("chains=4, seed=1", "chains=2, seed=1, scans=20, workers=1")


def markings(images: list[str]) -> pd.DataFrame:
    """Five experts, three objects on each image; what is small is to be left out."""
    rng = np.random.default_rng(1)
    rows = [
        (image, expert, 100.0 * k + rng.normal(), rng.normal(), 30.0 * k + rng.normal())
        for image in images
        for expert in "abcde"
        for k in range(4)
    ]
    table = pd.DataFrame(rows, columns=["image", "expert", "x", "y", "diameter"])
    return table.assign(diameter=table["diameter"].abs() + 1.0)


@pytest.mark.parametrize("images", [["NAC"], ["NAC", "WAC"]], ids=len)
def test_the_example_runs(tmp_path, images):
    markings(images).to_csv(tmp_path / "markings.csv", index=False)
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1", "PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(
        [sys.executable, "-c", example()],
        cwd=tmp_path, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    for image in images:
        assert f"{image} " in done.stdout
    assert (tmp_path / "run" / "catalogue.csv").exists()

"""The lines of ``docs/draws.md`` read what dfcrp reads, without it."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dfcrp
from dfcrp.simulate import paper_design

pytest.importorskip("zarr")
PAGE = Path(__file__).resolve().parents[2] / "docs" / "draws.md"


def run_page(folder: Path) -> dict[str, Any]:
    """The names that the page's lines in Python make, in a folder with a run."""
    code = "\n".join(re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.S))
    names: dict[str, Any] = {}
    before = Path.cwd()
    os.chdir(folder)
    try:
        exec(code, names)
    finally:
        os.chdir(before)
    assert not any(name.partition(".")[0] == "dfcrp" for name in re.findall(r"import (\S+)", code))
    return names


def test_one_image(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    settings: dict[str, Any] = {"chains": 2, "seed": 1, "workers": 1, "progress": False}
    items = paper_design(5, n_objects=6)
    dfcrp.fit(items, out=tmp_path / "run", scans=30, burn_in=0, **settings)
    dfcrp.resume(tmp_path / "run", scans=50, progress=False)
    found = run_page(tmp_path)
    posterior = dfcrp.load(tmp_path / "run")
    for chain in range(2):
        labels, alpha = found["chain_of"](tmp_path / "run", chain)
        np.testing.assert_array_equal(labels, posterior.labels[chain])
        np.testing.assert_array_equal(alpha, posterior.alpha[chain])
    assert set(found["draws"].dims) >= {"chain", "draw", "item", "cluster"}
    assert f"({50}, {len(items)})" in capsys.readouterr().out


def test_images_that_share_a_file(tmp_path: Path) -> None:
    one = paper_design(5, n_objects=3)
    several = dfcrp.Items.circles(
        *(np.tile(getattr(one, name), 3) for name in ("x", "y", "diameter", "expert")),
        image=np.repeat(["a", "b", "c"], len(one)),
    )
    run = tmp_path / "run"
    dfcrp.fit(several, out=run, scans=12, burn_in=0, chains=2, workers=1, progress=False)
    found, posterior = run_page(tmp_path), dfcrp.load(run)
    assert len(list((run / "draws.zarr").glob("*.zip"))) == 1
    for part, name in enumerate("abc"):
        for chain in range(2):
            labels, alpha = found["chain_of"](run, chain, part)
            np.testing.assert_array_equal(labels, posterior[name].labels[chain])
            np.testing.assert_array_equal(alpha, posterior[name].alpha[chain])

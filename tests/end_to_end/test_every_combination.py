"""Every kind of item with every prior, sampler and number of images, as the documentation says."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from combinations import CELLS, KINDS

WALK = Path(__file__).parents[1] / "walk_combinations.py"
#: Tried elsewhere: readers of formats, Dask, the explorer in a browser, other methods.
ELSEWHERE = {"drawing_tools", "geojson", "crater_files", "dask", "explorer", "compare"}


@pytest.mark.parametrize("kind", [kind.name for kind in KINDS])
def test_every_cell(kind: str, tmp_path: Path) -> None:
    """Fit, stop, resume, read back, ask."""
    done = subprocess.run(
        [sys.executable, str(WALK), kind, str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout.splitlines()[-1])
    cells = {cell.feature: cell for cell in CELLS if cell.kind == kind}
    assert found.keys() == cells.keys() - ELSEWHERE
    wrong = {
        name: said
        for name, said in found.items()
        if said != "ok" and (cells[name].supported or not said.startswith("refused: "))
    }
    assert not wrong
    passed = {name for name, said in found.items() if said == "ok" and not cells[name].supported}
    assert not passed, "works, though the documentation says that it is refused"

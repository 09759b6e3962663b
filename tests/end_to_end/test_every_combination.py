"""Every kind of item with every prior, sampler and number of images, as the documentation says."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest

from combinations import CELLS, KINDS
from walk_combinations import Walk, outcome

OWN = Path(__file__).parents[1] / "own"
#: Tried elsewhere: readers of formats, Dask, the explorer in a browser, other methods.
ELSEWHERE = {"drawing_tools", "geojson", "crater_files", "dask", "explorer", "compare"}
#: Kinds whose maps, or lack of one, differ; the figures of the others are drawn and not saved.
SAVED = {"circles", "sphere", "ellipses", "records"}


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param(name, marks=pytest.mark.figures if name in SAVED else pytest.mark.drawn)
        for name in (kind.name for kind in KINDS)
    ],
)
def test_every_cell(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fit, stop, resume, read back, ask."""
    monkeypatch.syspath_prepend(OWN)
    with warnings.catch_warnings():
        # A few scans of a handful of items are warned about in many ways.
        warnings.simplefilter("ignore")
        walk = Walk(kind, tmp_path)
        found = {name: outcome(try_it) for name, try_it in walk.features().items()}
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

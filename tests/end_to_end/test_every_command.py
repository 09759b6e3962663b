"""The table of combinations as users walk it: through the command, with its report.

The test of the same table in Python asks a run for its answers one by one; a user has the report of
whatever was asked for by default, of one image or of several.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

from combinations import CELLS, KINDS
from walk_commands import IMAGES, PRIORS, SHORT, USUAL, Cell, CommandWalk

OWN = Path(__file__).parents[1] / "own"
NAMES = tuple(kind.name for kind in KINDS)
#: Priors whose answers differ most: their runs are as long as by default.
MOST_USED = ("dfcrp", "detection")
#: One list alone, in which nothing can be merged.
ALONE = tuple(Cell(prior, images, (), ("A",)) for prior in MOST_USED for images in IMAGES)
#: Experts who differ, with what images have in common and without.
UNLIKE = tuple(Cell("dfcrp", images, ("--expert-bias", "both")) for images in IMAGES[1:])


@pytest.fixture
def walk(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[CommandWalk]:
    """The walk of one kind."""
    monkeypatch.syspath_prepend(OWN)
    with warnings.catch_warnings():
        # A few scans of a handful of items are warned about in many ways.
        warnings.simplefilter("ignore")
        yield CommandWalk(request.param, tmp_path)


@pytest.mark.parametrize("walk", NAMES, indirect=True)
def test_every_prior_on_one_image_and_on_several(walk: CommandWalk) -> None:
    """Fit, report, and the page of one image of several."""
    cells = [Cell(prior, images) for prior in PRIORS for images in IMAGES]
    lengths = {cell: USUAL if cell.prior in MOST_USED else SHORT for cell in cells}
    found = {cell.name: walk.fit(cell, lengths[cell]) for cell in cells}
    found |= {cell.name: walk.fit(cell) for cell in ALONE}
    assert not {name: wrong for name, wrong in found.items() if wrong}


@pytest.mark.parametrize("walk", NAMES, indirect=True)
def test_every_option(walk: CommandWalk) -> None:
    """What the table says is refused is refused, the rest works with its report."""
    supported = {cell.feature: cell.supported for cell in CELLS if cell.kind == walk.kind}
    found = {name: ask() for name, ask in walk.features().items()}
    if supported["expert_bias"]:
        found |= {cell.name: walk.fit(cell) for cell in UNLIKE}
    wrong = {name: said for name, said in found.items() if bool(said) == supported.get(name, True)}
    assert not wrong
    assert not {name: said for name, said in found.items() if "unexpected" in said}


@pytest.mark.long
@pytest.mark.figures
@pytest.mark.parametrize("walk", NAMES, indirect=True)
def test_every_prior_with_all_its_figures(walk: CommandWalk) -> None:
    """Also experts who differ, under every prior, and with figures drawn and saved."""
    known = next(c for c in CELLS if (c.kind, c.feature) == (walk.kind, "expert_bias"))
    ways = [(), ("--expert-bias", "both")] if known.supported else [()]
    cells = [Cell(prior, images, way) for prior in PRIORS for images in IMAGES for way in ways]
    found = {cell.name: walk.fit(cell, USUAL) for cell in cells}
    assert not {name: wrong for name, wrong in found.items() if wrong}

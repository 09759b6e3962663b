"""What a crowd of many images costs: nothing is done again for every image, or for all experts."""

from __future__ import annotations

import numpy as np
import pytest

import dfcrp
from benchmarks.large_crowd import LOOKS, MARKINGS, LargeCrowd
from dfcrp.draws import Columns, Variable
from dfcrp.summaries.convergence import check_convergence


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("crowd")
    count = LargeCrowd(images=12, volunteers=20).write(folder)
    return folder, count


@pytest.fixture(scope="module")
def posterior(files):
    folder, _ = files
    items = dfcrp.read_items(folder / MARKINGS, "circles", looked=folder / LOOKS)
    settings = {"prior": "detection", "images": "shared", "chains": 2, "scans": 40, "burn_in": 20}
    return dfcrp.fit(items, seed=3, **settings)


def test_a_crowd_of_any_size_is_written_and_read(files) -> None:
    folder, count = files
    items = dfcrp.read_items(folder / MARKINGS, "circles", looked=folder / LOOKS)
    assert len(items) == count > 1_000
    assert len(items.images) == 12
    assert len(items.looked) == 120
    # Whoever lists something looked.
    own = set(zip(items.image.tolist(), items.expert.tolist(), strict=True))
    assert own <= set(map(tuple, items.looked.tolist()))


def test_names_of_some_numbers_are_those_of_all() -> None:
    columns = Columns(
        shared=(
            Variable("scale_x", behind=True),
            Variable("skill", ("level", "expert"), judged=False),
            Variable("offset", ("expert", "axis")),
        ),
        coords={"level": ("1", "2"), "expert": ("Ann", "Bob"), "axis": ("x", "log_d")},
    )
    names = [
        *("scale_x", "skill[1, Ann]", "skill[1, Bob]", "skill[2, Ann]", "skill[2, Bob]"),
        *("offset[Ann, x]", "offset[Ann, log_d]", "offset[Bob, x]", "offset[Bob, log_d]"),
    ]
    assert list(columns.names) == names
    chosen = [8, 0, 3]
    assert columns.names_at(chosen) == [names[at] for at in chosen]
    words = {"scale_x": "scatter", "offset": "offset of {} in {}"}
    assert columns.in_words(words, chosen) == {
        "offset[Bob, log_d]": "offset of Bob in d",
        "scale_x": "scatter",
        "skill[2, Ann]": "skill, 2, Ann",
    }
    assert columns.named("scale_", "skill") == {0: "scale_x"}


def test_what_images_share_is_judged_once(posterior, monkeypatch) -> None:
    """The verdict on an image is as if nothing had been judged before, at a fraction of the cost."""
    image = posterior[posterior.images[0]]
    alone = check_convergence(
        image.draws, image.table_counts, image.pairs, known=image.known_of_run
    )
    assert image.convergence.as_dict() == alone.as_dict()
    assert image.convergence.advice == alone.advice
    assert image.convergence.diagnostics == alone.diagnostics
    asked = []
    monkeypatch.setattr(
        Columns, "names_at", lambda self, chosen: asked.append(chosen) or [""] * len(chosen)
    )
    for name in posterior.images[1:]:
        _ = posterior[name].convergence
    assert not asked

"""Columns that are the same for all items act as if they were not there."""

from __future__ import annotations

import numpy as np
import pytest

import dfcrp
from dfcrp.items.items import Items

IMAGES, OBJECTS, EXPERTS = 3, 20, 4


def marks():
    """Places of objects that most experts mark, and the objects' numbers."""
    rng = np.random.default_rng(12)
    centre = rng.uniform(0.0, 3000.0, (IMAGES * OBJECTS, 2))
    truth, expert = np.nonzero(rng.random((len(centre), EXPERTS)) < 0.9)
    x, y = (centre[truth] + rng.normal(0.0, 12.0, (len(truth), 2))).T
    return truth, [f"e{f}" for f in expert], [f"m{k // OBJECTS}" for k in truth], x, y


COLUMNS = {
    "boxes": {"width": 180.0, "height": 180.0},
    "ellipses": {"major": 180.0, "minor": 120.0, "angle": 30.0},
    "circles": {"diameter": 180.0},
    "diagonal": {"mass": 7.0},
    "normal": {"mass": 7.0},
}


def fit(kind: str, **more):
    truth, expert, image, x, y = marks()
    constant = {name: np.full(len(x), value) for name, value in COLUMNS[kind].items()}
    items = Items.from_columns({"x": x, "y": y, **constant}, expert, kind=kind, image=image)
    settings = {"prior": "constrained", "images": "shared", "chains": 2, "scans": 250, **more}
    return truth, dfcrp.fit(items, progress=False, **settings)


@pytest.mark.parametrize("kind", list(COLUMNS))
def test_every_object_is_found(kind):
    """On the code before, the scatter of the constant column fell to nothing."""
    truth, posterior = fit(kind)
    labels = posterior.point_partition().labels
    assert len(set(labels.tolist())) == len(set(truth.tolist()))
    assert len(set(zip(labels.tolist(), truth.tolist(), strict=True))) == len(set(truth.tolist()))
    assert posterior.verdict.pairs_disagreeing == 0
    table = posterior.catalogue()
    for name, value in COLUMNS[kind].items():
        np.testing.assert_allclose(table[name], value, rtol=1e-6)
    position = posterior.tolerances[
        "position"
        if kind == "circles"
        else next(name for name in ("x_y", "x") if name in posterior.tolerances)
    ]
    assert 8.0 < position["mean"] < 18.0


def test_boxes_of_one_size_are_points():
    """The same partition, and the same scatter but for what is believed of points."""
    _, boxes = fit("boxes")
    _, expert, image, x, y = marks()
    points = dfcrp.fit(
        Items.from_columns({"x": x, "y": y}, expert, kind="points", image=image),
        prior="constrained", images="shared", chains=2, scans=250, progress=False,
    )  # fmt: skip
    one, two = (found.tolerances["x_y"]["mean"] for found in (boxes, points))
    assert one == pytest.approx(two, rel=0.03)
    assert "log_width" not in " ".join(boxes.draws.columns.names)

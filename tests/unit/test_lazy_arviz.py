"""``to_arviz`` of a run folder reads what clusters share when it is used, and no more of it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import dfcrp
from dfcrp.draws import shared_variable
from dfcrp.runs.shards import Shard
from dfcrp.simulate import paper_design


def test_what_clusters_share_is_read_when_it_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    items = paper_design(5, n_objects=4)
    dfcrp.fit(items, out=tmp_path / "run", scans=12, chains=2, workers=1, progress=False)
    read = []
    whole = Shard.read
    monkeypatch.setattr(Shard, "read", lambda *said: read.append(said[2]) or whole(*said))
    posterior = dfcrp.load(tmp_path / "run")
    assert not read
    draws = posterior.to_arviz()["posterior"]
    assert {"scale_x", "growth_x"} <= set(draws.data_vars)
    assert "scale_x" not in read
    assert draws["scale_x"].dims == ("chain", "draw")
    assert "scale_x" not in read
    read.clear()
    found = draws["scale_x"].isel(draw=slice(1, 4)).values
    assert set(read) == {"scale_x"}
    np.testing.assert_array_equal(found, shared_variable(posterior.draws, "scale_x")[:, 1:4])
    np.testing.assert_array_equal(draws["scale_x"].mean("draw"), draws["scale_x"].values.mean(1))

"""The study of a real crowd, on a made-up one; without data it says why it does nothing."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

import dfcrp
from reference.kind_posteriors import kind_posterior
from studies import real_crowds


@pytest.fixture
def folder(tmp_path):
    """Boxes of five experts on three images, at which all of them looked."""
    posterior = kind_posterior("boxes", images=("a", "b", "c"))
    items = posterior.items
    corners = real_crowds.corners_of(items.values)
    names = ["x_min", "y_min", "x_max", "y_max"]
    table = pd.DataFrame(corners, columns=names).assign(image=items.image, expert=items.expert)
    table.to_csv(tmp_path / "boxes.csv", index=False)
    looked = [(image, expert) for image in items.images for expert in items.experts]
    pd.DataFrame(looked, columns=["image", "expert"]).to_csv(tmp_path / "looked.csv", index=False)
    found = posterior.catalogue()
    true = real_crowds.corners_of(found[["x", "y", "width", "height"]].to_numpy())
    rows = pd.DataFrame(true, columns=names).assign(image=found["image"])
    rows.to_csv(tmp_path / "truth.csv", index=False)
    rows.iloc[::2].to_csv(tmp_path / "rival.csv", index=False)
    posterior.save(tmp_path / "run")
    return tmp_path


def test_every_answer_is_compared(folder, monkeypatch, capsys):
    monkeypatch.setattr(real_crowds, "why_not", lambda program: f"{program} is not here")
    arguments = ["--data", str(folder), "--out", str(folder / "out"), "--run", str(folder / "run")]
    assert real_crowds.main(arguments) == 0
    found = json.loads((folder / "out" / "real_crowds.json").read_text())
    rows = {row["answer"]: row for row in found["rows"]}
    table = dfcrp.load(folder / "run").catalogue()
    two = rows["the same clusters, two experts or more"]
    assert two["boxes"] == int((table["n_experts"] >= 2).sum())
    assert two["precision"] == 1.0
    votes = rows["the same clusters, a majority of those who looked"]
    assert votes["boxes"] == int((table["n_experts"] >= 3).sum())
    assert rows["rival.csv"]["recall"] == pytest.approx(np.ceil(len(table) / 2) / len(table))
    assert len(found["left_out"]) == 2
    assert "weighted boxes fusion: ensemble_boxes is not here" in capsys.readouterr().out


def test_the_best_setting_is_the_one_with_the_highest_f1(folder):
    truth = pd.read_csv(folder / "truth.csv")
    tables = [("all", truth), ("few", truth.iloc[:3]), ("none", truth.iloc[:0])]
    found = real_crowds.best(tables, folder / "truth.csv")
    assert found.name == "best of 3 settings (all)"


def test_without_data_it_says_so(tmp_path, capsys):
    assert real_crowds.main(["--data", str(tmp_path), "--out", str(tmp_path / "out")]) == 0
    assert "has no boxes.csv, looked.csv, truth.csv" in capsys.readouterr().out
    assert not (tmp_path / "out").exists()

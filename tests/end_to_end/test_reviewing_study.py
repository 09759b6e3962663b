"""The study of what a reviewer's decisions are worth."""

from __future__ import annotations

import numpy as np
import pytest
from click.testing import CliRunner

import dfcrp
from dfcrp.items.decisions import with_decisions
from dfcrp.simulate import SimulationDesign
from studies import reviewing as study

FIT = {**study.FIT, "scans": 120, "burn_in": 40}
SMALL = SimulationDesign(n_objects=12, position_variance=300.0, width=120.0, height=120.0)


@pytest.fixture(scope="module")
def posterior():
    return dfcrp.fit(SMALL.draw(3), seed=1, **FIT)


@pytest.mark.parametrize("way", study.WAYS)
def test_pairs_are_in_doubt_and_asked_once(posterior, way):
    rng = np.random.default_rng(1)
    doubts = study.doubts(posterior, set())
    first = study.WAYS[way](posterior, set(), rng)
    assert 0 < len(first) <= study.AT_ONCE
    assert way == "queue" or set(first) <= set(doubts)
    again = study.WAYS[way](posterior, set(first), rng)
    assert not set(again) & set(first)
    if way == "least certain marking":
        assert doubts[first[0]] == max(doubts.values())
        assert len({item for pair in first for item in pair}) == 2 * len(first)


def test_a_reviewer_tells_the_truth_or_the_opposite(posterior):
    items, rng = posterior.items, np.random.default_rng(1)
    pairs = study.at_random(posterior, set(), rng)[:1]
    [(a, b)] = pairs
    same = items.truth[a] == items.truth[b]
    for wrong in (0.0, 1.0):
        [said] = study.answers(items, pairs, wrong, rng)
        assert (said["decision"] == "together") == (same != bool(wrong))
        assert said["items"] == f"{items.id[a]} {items.id[b]}"


def test_what_contradicts_is_left_out(posterior):
    items, rng = posterior.items, np.random.default_rng(1)
    a, b, c = (int(np.flatnonzero(items.families == expert)[0]) for expert in (0, 1, 2))
    said = [{"decision": "together", "items": f"{items.id[b]} {items.id[i]}"} for i in (a, c)]
    decided = with_decisions(items, said)
    # Whatever is true, the reviewer says that the two are apart.
    wrong = float(items.truth[a] == items.truth[c])
    assert len(study.answers(items, [(a, c)], wrong, rng)) == 1
    assert study.answers(decided, [(a, c)], wrong, rng) == []


def test_decisions_bring_it_nearer_to_the_truth():
    found = study.run(2, {"small": SMALL}, looks=(0, 30), fit=FIT)["small"]
    assert set(found) == {f"{way}, right" for way in study.WAYS} | {"queue, wrong in 10 %"}
    queue = found["queue, right"]
    assert queue[30]["vi"][0] < queue[0]["vi"][0]


def test_the_command(tmp_path, monkeypatch):
    monkeypatch.setattr(study, "CHOSEN", ("paper",))
    monkeypatch.setitem(study.FIT, "scans", 40)
    monkeypatch.setitem(study.FIT, "burn_in", 10)
    real = study.run
    monkeypatch.setattr(study, "run", lambda datasets: real(datasets, looks=(0, 10)))
    done = CliRunner().invoke(study.command, ["--out", str(tmp_path), "--datasets", "1"])
    assert done.exit_code == 0, done.output
    text = (tmp_path / "reviewing.md").read_text()
    assert "| paper | queue, right |" in text
    assert (tmp_path / "reviewing.json").exists()

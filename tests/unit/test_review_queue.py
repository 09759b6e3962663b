"""What to decide next, and which images are done."""

from __future__ import annotations

import json

import numpy as np
import pytest

import dfcrp
from dfcrp.cli.main import main
from dfcrp.items.decisions import with_decisions
from dfcrp.posterior.posterior import Posterior
from reference.draws_table import SETTINGS, items_of
from reference.small_posteriors import posterior_of, random_markings, random_posterior


def three_doubts(decisions=()):
    """Items 0, 1: together in half of the draws; 2, 3 in a tenth; 4, 5, 6: 4 is with 5 or 6."""
    rng = np.random.default_rng(3)
    draws = []
    for k in range(20):
        draw = [0, 0 if k % 2 else 1, 2, 2 if k % 10 == 0 else 3, 4, 4, 6]
        if k % 4 < 2:
            draw[4:] = [4, 5, 4]
        draws.append(draw)
    items = random_markings(rng, [0, 1, 0, 1, 0, 1, 2])
    posterior = posterior_of([draws], items)
    decided = with_decisions(items, decisions)
    return Posterior(posterior.draws, decided, posterior.config, posterior.record)


def test_the_most_doubtful_comes_first_and_the_gain_is_the_fall_of_variance():
    queue = three_doubts().review_queue()
    assert queue["items"].tolist()[:2] == ["m0 m1", "m2 m3"]
    assert queue["question"].tolist()[0] == "together"
    assert queue["p"].tolist()[:2] == [0.5, 0.1]
    labels = three_doubts().labels[0]
    counts = np.array([len(set(row)) for row in labels.tolist()], float)
    same = labels[:, 0] == labels[:, 1]
    within = sum(counts[same == answer].var() * (same == answer).mean() for answer in (True, False))
    assert queue["gain"][0] == pytest.approx(counts.var() - within)
    assert (np.diff(queue["gain"]) <= 1e-12).all()
    assert (np.diff(queue["left"]) <= 1e-12).all()
    # Whether 4 is with 5 or with 6 changes no count.
    assert max(queue["gain"].tolist()[2:], default=0.0) < 1e-2
    clusters = [set(ids.split()) for ids in queue["items"]]
    assert all(not one & other for k, one in enumerate(clusters) for other in clusters[:k])
    assert len(three_doubts().review_queue(1)) == 1


def test_what_was_decided_is_not_asked_again():
    said = [{"decision": "apart", "items": "m1 m0"}]
    assert "m0 m1" not in three_doubts(said).review_queue()["items"].tolist()


def test_a_posterior_of_any_kind_has_a_queue():
    assert len(random_posterior(n=10).review_queue(3)) <= 3


def test_status_of_images(tmp_path, capsys):
    settings = {**SETTINGS, "prior": "detection", "images": "shared"}
    dfcrp.fit(items_of("circles", 3), **settings, out=tmp_path / "run")
    run = str(tmp_path / "run")
    assert main(["status", run, "--json", "--queue", "5"]) == 0
    found = json.loads(capsys.readouterr().out)
    named = [*found["done"], *found["contested"], *found["next"]]
    assert sorted(named) == ["i0", "i1", "i2"]
    assert [row["image"] for row in found["images"]] == ["i0", "i1", "i2"]
    assert (tmp_path / "run" / "queue.csv").read_text().startswith("question,items,image,p,gain")
    assert main(["status", run]) == 0
    assert "are to be shown next" in capsys.readouterr().out
    dfcrp.fit(items_of("circles"), **SETTINGS, out=tmp_path / "one")
    assert main(["status", str(tmp_path / "one")]) == 2
    assert "--prior detection" in capsys.readouterr().err

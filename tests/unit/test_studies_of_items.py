"""The studies of records, boxes and points: scores, simulated lists, the table of methods."""

from __future__ import annotations

import numpy as np
import pytest

from studies import annotations, crowd_rivals, linkage, records, rounding
from studies.annotations import AnnotationMethod, simulated_boxes, simulated_points
from studies.linkers import Linker
from studies.made_up_crowds import CrowdDesign, make_crowd


def test_scores_of_links():
    truth = {("a1", "b1"), ("a2", "b2"), ("a3", "b3"), ("a4", "b4")}
    found = {("b1", "a1"), ("a2", "b2"), ("a3", "b4")}
    row = linkage.scores(found, truth)
    assert row == pytest.approx({"links": 3, "precision": 2 / 3, "recall": 0.5, "F1": 4 / 7})


def test_links_are_the_pairs_of_a_cluster(tmp_path):
    table = tmp_path / "members.csv"
    table.write_text("marking,expert,cluster\nb,x,0\na,y,0\nc,z,0\nd,x,3\n")
    assert linkage.linked(table) == {("a", "b"), ("a", "c"), ("b", "c")}


@pytest.mark.parametrize("make", [simulated_boxes, simulated_points])
def test_simulated_lists_keep_the_rule(make):
    lists = make(3)
    held = list(zip(lists.families.tolist(), lists.truth.tolist(), strict=True))
    assert len(set(held)) == len(held) == len(lists.values)
    assert np.array_equal(make(3).values, lists.values)
    assert not np.array_equal(make(4).values[:5], lists.values[:5])


def test_overlap_of_boxes():
    boxes = np.array([[0.0, 0.0, 2.0, 2.0], [1.0, 1.0, 3.0, 3.0], [5.0, 5.0, 6.0, 6.0]])
    expected = [[1.0, 1 / 7, 0.0], [1 / 7, 1.0, 0.0], [0.0, 0.0, 1.0]]
    assert annotations._overlaps(boxes, boxes) == pytest.approx(np.array(expected))


def test_the_best_setting_counts_and_noise_is_alone():
    def answer(lists, setting):
        return {"truth": lists.truth, "noise": np.full(len(lists.truth), -1)}[setting]

    method = AnnotationMethod("two answers", "numpy", ("points",), ("noise", "truth"), answer)
    other = AnnotationMethod("for boxes", "numpy", ("boxes",), ("truth",), answer)
    absent = AnnotationMethod("not there", "no_such_package", ("points",), ("truth",), answer)
    (row,) = annotations.compare(simulated_points, 2, [method, other, absent])
    assert row["ARI"] == row["lowest ARI"] == 1.0
    assert row["clusters breaking the rule"] == 0.0


def test_a_made_up_crowd():
    design = CrowdDesign(images=30, volunteers=9, looks=4, spammers=2, objects=3.0)
    crowd = make_crowd(design, 2)
    items = crowd.items
    assert crowd.looks.sum() == 30 * 4 == len(items.looked)
    assert len(crowd.objects) == 30
    assert min(crowd.objects.values()) == 0
    assert sorted(crowd.skill[~crowd.spammer]) == pytest.approx(np.linspace(0.1, 0.95, 7))
    held = list(zip(items.expert.tolist(), items.truth.tolist(), strict=True))
    assert len(set(held)) == len(held)
    assert len(set(items.truth[~crowd.real].tolist())) == (~crowd.real).sum()
    best = crowd_rivals.scores(crowd, items.truth, crowd.real.astype(float))
    seen = len(set(items.truth[crowd.real].tolist()))
    objects = sum(crowd.objects.values())
    assert best == pytest.approx({"brier": 0.0, "f1": 2 * seen / (seen + objects)})
    worst = crowd_rivals.scores(crowd, items.truth, np.ones(len(items)))
    assert worst["brier"] == pytest.approx(np.mean(~crowd.real))
    assert worst["f1"] < best["f1"]


def test_crowds_of_other_kinds():
    design = CrowdDesign(
        images=40, volunteers=9, looks=4, spammers=2, newcomers=5, spread=0.5, clumped=0.5,
        by_size=2.0, kind="boxes", scores=True,
    )  # fmt: skip
    crowd = make_crowd(design, 3)
    assert set(crowd.looks[9:]) <= {2, 3}
    assert crowd.looks[:9].sum() == 40 * 4
    # Whoever finds large objects more easily finds as many as they say, over all sizes.
    assert crowd.skill[~crowd.spammer].max() < 0.95
    score = crowd.items.score
    assert score[crowd.real].mean() > score[~crowd.real].mean() + 0.2
    said = crowd.items.category_codes[crowd.real]
    right = crowd.category[crowd.items.truth[crowd.real]] == said
    assert 0.5 < right.mean() < 0.95


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
def test_what_an_object_is_called_by_others():
    pytest.importorskip("crowdkit")
    crowd = make_crowd(CrowdDesign(images=30, volunteers=9, looks=5, spammers=1), 4)
    each = crowd_rivals.clusters(crowd.items.truth)
    kept = np.flatnonzero([crowd_rivals.mostly(crowd, rows) >= 0 for rows in each])
    found = crowd_rivals._dawid_skene(crowd, each, kept)
    truth = crowd.category[[crowd_rivals.mostly(crowd, each[k]) for k in kept]]
    assert found.sum(axis=1) == pytest.approx(1.0)
    assert crowd_rivals._right(found, truth)["right"] > 0.7


@pytest.mark.parametrize("kind", ["points", "circles", "boxes"])
def test_other_ways_to_cluster_an_image(kind):
    for program in ("panoptes_aggregation", "ensemble_boxes"):
        if why := crowd_rivals.why_not(program):
            pytest.skip(why)
    design = CrowdDesign(images=15, volunteers=9, spammers=1, kind=kind, log_size=4.5, scores=True)
    crowd = make_crowd(design, 5)
    none = np.mean(crowd.real)
    every = [(crowd_rivals._reduced, 3.0, 2)]
    if kind == "boxes":
        every.append((crowd_rivals._fused, 0.4, 0.2))
        # Scores by themselves are low, as those who drew nothing count: they only rank.
        assert crowd_rivals._best_of(crowd, [(crowd_rivals._fused, 0.4, 0.0)])["brier"] < none
    for one in every:
        found = crowd_rivals._best_of(crowd, [one])
        assert found["f1"] > 0.7
        assert found["brier"] < 0.5 * none


def test_rounded_items():
    columns, who, truth = rounding.simulated("boxes", 3, 1)
    assert len(who) == len(truth) == len(set(zip(who.tolist(), truth.tolist(), strict=True)))
    pixels = rounding.to_pixels(columns)
    for centre, side in (("x", "width"), ("y", "height")):
        corner = pixels[centre] - pixels[side] / 2.0
        assert np.array_equal(corner, np.round(corner))
        assert np.abs(pixels[centre] - columns[centre]).max() <= 0.5 + 1e-9
    assert set(rounding.to_fives(columns)["x"] % 5.0) == {0.0}
    ellipses = rounding.to_smallest(rounding.simulated("ellipses", 3, 1)[0])
    assert np.mean(ellipses["major"] == 10.0) == pytest.approx(0.25, abs=0.02)


def test_other_programs_that_are_absent_are_left_out(monkeypatch, capsys):
    absent = [Linker("not there", "no_such_package", lambda *_: set())]
    monkeypatch.setattr(records, "LINKERS", absent)
    assert records.rivals(None) == []
    assert "not there is left out: the package no_such_package" in capsys.readouterr().out


def test_right_links_of_another_program_are_counted(monkeypatch):
    made = records.MadeUp({"by": ["1", "2", "1", "3"]}, ["a", "a", "b", "b"], [1, 2, 1, 2], {})
    program = Linker("made up", "numpy", lambda *_: {("r0", "r2"), ("r1", "r2")})
    monkeypatch.setattr(records, "LINKERS", [program])
    (row,) = records.rivals(made)
    assert (row["precision"], row["recall"], row["F1"]) == (0.5, 0.5, 0.5)


def test_links_are_read_without_the_names_of_files(tmp_path):
    members = tmp_path / "members.csv"
    members.write_text("marking,cluster\nfirst.csv:a1,0\nsecond.csv:b1,0\na2,1\nb:2,1\nx,2\n")
    assert linkage.linked(members) == {("a1", "b1"), ("a2", "b:2")}

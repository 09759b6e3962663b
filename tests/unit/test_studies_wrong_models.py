"""The study of wrong models: each world is wrong in its way, and a tiny study runs through."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from studies import wrong_models
from studies.wrong_worlds import WORLDS, Design, design_of, make_world

BASE = Design(images=60, workers=30)


def world_of(name, **more):
    design = replace(design_of(name, BASE), **more)
    return make_world(design, [7, 1])


def errors(world, rows):
    """Distances of marks from their objects, in sizes; marks of false things are left out."""
    x = np.column_stack([world.truth["x"], world.truth["y"], world.truth["width"]])
    true = x[world.source[rows]]
    seen = np.column_stack([world.items.x, world.items.y])[rows]
    return np.abs(seen - true[:, :2]).max(axis=1) / true[:, 2]


def of_objects(world):
    return np.flatnonzero(world.source >= 0)


def false_by_look(world):
    looks = dict.fromkeys(map(tuple, world.items.looked.tolist()), 0)
    wrong = world.source < 0
    for image, expert in zip(world.items.image[wrong], world.items.expert[wrong], strict=True):
        looks[str(image), str(expert)] += 1
    return np.array(list(looks.values()))


def test_our_own_model_is_as_it_says():
    world = world_of("our own model")
    per_image = np.unique(world.items.looked[:, 0], return_counts=True)[1]
    assert (per_image == BASE.looks).all()
    assert len(world.items.images) <= BASE.images
    assert errors(world, of_objects(world)).max() < 6 * BASE.error
    assert len(world.truth["image"]) == pytest.approx(60 * 5 * 0.85, abs=3.5 * np.sqrt(60 * 9))


def test_careless_marks_are_far_off():
    world = world_of("careless boxes")
    far = errors(world, of_objects(world)) > 5 * BASE.error
    assert 0.02 < far.mean() < 0.1


def test_scaled_browsers_scale_everything_of_theirs():
    world = world_of("scaled browsers")
    rows = of_objects(world)
    workers = np.isin(world.items.expert[rows], ["w001", "w002", "w003"])
    off = errors(world, rows)
    assert np.median(off[workers]) > 1.0
    assert off[~workers].max() < 6 * BASE.error


def test_parts_and_groups():
    world = world_of("parts and groups")
    rows = of_objects(world)
    width = world.items.columns["width"][rows] / world.truth["width"][world.source[rows]]
    assert 0.02 < np.mean(width < 0.65) < 0.06  # half of the parts are halves of the width
    plain = world_of("our own model")
    wide = [np.mean(one.items.columns["width"][one.source < 0]) for one in (world, plain)]
    assert wide[0] > 1.25 * wide[1]


def test_false_marks_clump():
    clumped, plain = (false_by_look(world_of(n)) for n in ("clumped false marks", "our own model"))
    assert clumped.var() / clumped.mean() > 2.5 > 2.0 > plain.var() / plain.mean()


def test_copies_are_copies():
    world = world_of("copied work")
    images = world.items.looked
    both = copied = 0
    for p in range(1, 11):
        one, other = f"w{p:03d}", f"w{p + 10:03d}"
        for image in np.unique(images[:, 0]):
            mine, theirs = (
                np.flatnonzero((world.items.image == image) & (world.items.expert == who))
                for who in (one, other)
            )
            looked = [[image, who] in images.tolist() for who in (one, other)]
            if all(looked) and len(mine):
                both += 1
                same = np.array_equal(world.source[mine], world.source[theirs])
                copied += same and bool(
                    np.allclose(world.items.x[mine], world.items.x[theirs], atol=4.0)
                )
    assert both > 20
    assert 0.3 < copied / both < 0.7


def found_in_thirds(world):
    """Share of its looks' objects that each worker found, in the first and the last third."""
    objects = dict(zip(*np.unique(world.truth["image"], return_counts=True), strict=True))
    marks = world.source >= 0
    shares = {}
    for image, expert in world.items.looked.tolist():
        third = int(image.removeprefix("image")) // 20
        here = marks & (world.items.image == image) & (world.items.expert == expert)
        found, there = shares.get((expert, third), (0, 0))
        shares[expert, third] = found + int(here.sum()), there + int(objects.get(image, 0))
    return shares


def test_skills_drift():
    """Of workers who are alike on average, half get better and half worse."""
    spread = []
    for name in ("drifting skills", "our own model"):
        shares = found_in_thirds(world_of(name, skill_sd=0.0))
        change = []
        for expert in {expert for expert, _ in shares}:
            thirds = [shares.get((expert, third), (0, 0)) for third in (0, 2)]
            if min(there for _, there in thirds) >= 10:
                change.append(thirds[1][0] / thirds[1][1] - thirds[0][0] / thirds[0][1])
        spread.append(np.std(change))
    assert spread[0] > 1.5 * spread[1]


def test_images_differ():
    spread = []
    for name in ("hard images", "our own model"):
        world = world_of(name, skill_sd=0.0)
        rate = []
        for image, there in zip(*np.unique(world.truth["image"], return_counts=True), strict=True):
            found = ((world.source >= 0) & (world.items.image == image)).sum()
            rate.append(found / (there * BASE.looks))
        spread.append(np.std(rate))
    assert spread[0] > 1.8 * spread[1]


def test_looks_are_withheld_and_decoys_are_shared():
    assert world_of("looks unknown").items.looked is None
    world = world_of("decoys")
    false = false_by_look(world)
    assert false.mean() > false_by_look(world_of("our own model")).mean() + 0.2


def test_points_have_no_size():
    world = world_of("our own model", kind="points")
    assert list(world.items.columns) == ["x", "y"]
    assert set(world.truth) == {"x", "y", "image"}


@pytest.mark.parametrize("kind", ["boxes", "points"])
def test_the_study_runs_and_resumes(kind, tmp_path, capsys):
    arguments = ["--quick", "--kind", kind, "--out", str(tmp_path), "--scans", "30"]
    arguments += ["--only", "decoys", "--only", "looks unknown"]
    assert wrong_models.main(arguments) == 0
    found = json.loads((tmp_path / "wrong_models.json").read_text())
    rows = {row["crowd"]: row for row in found["rows"]}
    assert set(rows) == {"decoys", "looks unknown"}
    for row in rows.values():
        assert 0.3 < row["F1"] <= 1.0
        assert 0.0 <= row["Brier"] < 0.5
    assert "Where the model is wrong" in (tmp_path / "wrong_models.md").read_text()
    capsys.readouterr()
    assert wrong_models.main(arguments) == 0
    assert "wrong models:" not in capsys.readouterr().err


def test_checks_that_fired_are_named():
    checks = [{"check": "tails", "level": "serious"}, {"check": "pairs", "level": "good"}]
    checks.append({"check": "counts", "level": "minor"})
    found = wrong_models.fired({"model_fit": {"ok": False, "checks": checks}})
    assert found == {"serious": ["tails"], "minor": ["counts"]}
    assert wrong_models.fired({}) is None
    assert wrong_models._checks([{"checks": found}]) == "tails, [counts]"
    assert wrong_models._checks([{"checks": found}] * 2) == "tails (2 of 2), [counts (2 of 2)]"
    assert wrong_models._checks([{"checks": None}]) == ""


def test_every_world_has_a_design_and_words():
    for name, (differs, words) in WORLDS.items():
        assert words
        assert design_of(name, BASE) == replace(BASE, **differs)

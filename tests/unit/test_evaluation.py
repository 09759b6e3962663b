"""Evaluations against small cases done by hand, slow twins, and mistakes planted in the input."""

from __future__ import annotations

import itertools
import json

import numpy as np
import pytest

import dfcrp
from dfcrp.errors import DfcrpWarning, InputError, SettingsError
from dfcrp.evaluation import detected
from dfcrp.evaluation.matching import (
    PossiblePairs,
    Rule,
    best_assignment,
    box_overlap,
    disc_overlap,
    ellipse_overlap,
    possible_pairs,
    right_by_score,
)
from dfcrp.evaluation.objects import objects_of
from dfcrp.evaluation.scores import agreement, average_precision, calibration, with_intervals
from dfcrp.items.items import Items
from dfcrp.likelihoods.base import Outlines
from reference.kind_posteriors import kind_posterior
from reference.small_posteriors import posterior_of, random_posterior, under_detection


def boxes(corners, **more):
    left, top, right, bottom = np.array(corners, float).reshape(-1, 4).T
    return {"x_min": left, "y_min": top, "x_max": right, "y_max": bottom, **more}


def outlines(rows, shape="ellipse"):
    """From (x, y, width, height, angle)."""
    return Outlines(*np.array(rows, float).T, shape)


# --- overlaps ------------------------------------------------------------------------------------


def on_a_grid(one, other, fine=1500):
    """The area that two outlines share, by counting points."""

    def inside(rows, x, y):
        cx, cy, width, height, angle = rows
        turn = np.radians(angle)
        u = ((x - cx) * np.cos(turn) + (y - cy) * np.sin(turn)) / (width / 2)
        v = (-(x - cx) * np.sin(turn) + (y - cy) * np.cos(turn)) / (height / 2)
        return u**2 + v**2 <= 1

    side = np.linspace(-6, 6, fine)
    x, y = np.meshgrid(side, side)
    return (inside(one, x, y) & inside(other, x, y)).mean() * (12 * fine / (fine - 1)) ** 2


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ((0, 0, 4, 4, 0), (1, 0, 4, 4, 0)),
        ((0, 0, 4, 2, 30), (0.5, 0.4, 3, 2.5, 100)),
        ((0, 0, 6, 1, 45), (0, 0, 6, 1, 135)),
        ((0, 0, 6, 4, 10), (0.2, 0, 1, 1, 0)),
        ((0, 0, 2, 2, 0), (4, 0, 2, 2, 0)),
    ],
)
def test_ellipses_share_what_a_grid_says(one, other):
    found = ellipse_overlap(outlines([one]), outlines([other]))[0]
    assert found == pytest.approx(on_a_grid(one, other), abs=0.02)


def test_discs_and_ellipses_and_boxes_agree_where_they_are_the_same():
    rng = np.random.default_rng(1)
    away, r, s = rng.uniform(0, 5, 200), rng.uniform(0.2, 3, 200), rng.uniform(0.2, 3, 200)
    nothing = np.zeros(200)
    as_ellipses = ellipse_overlap(
        outlines(np.column_stack([nothing, nothing, 2 * r, 2 * r, rng.uniform(0, 180, 200)])),
        outlines(np.column_stack([nothing, away, 2 * s, 2 * s, nothing])),
    )
    assert np.allclose(disc_overlap(away, r, s), as_ellipses, atol=2e-3)
    # two boxes, 2 × 3 and 2 × 2, that share 1 × 2
    one, other = outlines([(0, 0, 2, 3, 0)], "box"), outlines([(1, 0, 2, 2, 0)], "box")
    assert box_overlap(one, other) == pytest.approx([2.0])
    assert box_overlap(one, outlines([(5, 0, 2, 2, 0)], "box")) == pytest.approx([0.0])


@pytest.mark.parametrize("kind", ["boxes", "circles", "ellipses", "points"])
def test_pairs_are_those_of_a_double_loop(kind):
    """On several images; also where pairs are compared in portions."""
    rng = np.random.default_rng(3)
    made = []
    for count in (60, 50):
        x, y = rng.uniform(0, 30, (2, count))
        sizes = rng.lognormal(1.5, 0.4, (2, count))
        angle = rng.uniform(0, 180, count)
        columns = {
            "points": {"x": x, "y": y},
            "circles": {"x": x, "y": y, "diameter": sizes[0]},
            "boxes": {"x": x, "y": y, "width": sizes[0], "height": sizes[1]},
            "ellipses": {
                "x": x, "y": y, "major": sizes.max(0), "minor": sizes.min(0), "angle": angle,
            },
        }[kind]  # fmt: skip
        columns["image"] = rng.choice(["a", "b", "c"], count)
        made.append(objects_of(columns, kind, "it"))
    one, other = made
    rule = Rule(distance=3.0) if kind == "points" else Rule(iou=0.2)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("dfcrp.evaluation.matching.AT_ONCE", 1000)
        found = possible_pairs(one, other, rule)
    expected = set()
    for i, j in itertools.product(range(60), range(50)):
        if one.image[i] != other.image[j]:
            continue
        if kind == "points":
            near = np.hypot(*(one.centres[i] - other.centres[j])) <= 3.0
        else:
            near = slow_iou(one, other, i, j) >= 0.2
        if near:
            expected.add((i, j))
    assert set(zip(found.answer.tolist(), found.truth.tolist(), strict=True)) == expected
    assert len(expected) > 10


def slow_iou(one, other, i, j):
    a, b = (o.likelihood.outlines(o.columns) for o in (one, other))
    pick = [
        Outlines(*(v[[k]] for v in (o.x, o.y, o.width, o.height, o.angle)), o.shape)
        for o, k in ((a, i), (b, j))
    ]
    measure = box_overlap if a.shape == "box" else ellipse_overlap
    shared = measure(*pick)[0]
    share = 1.0 if a.shape == "box" else np.pi / 4
    return shared / (share * (a.width[i] * a.height[i] + b.width[j] * b.height[j]) - shared)


# --- one to one ----------------------------------------------------------------------------------


def random_pairs(rng, n, m, density=0.35):
    quality = rng.random((n, m)) * (rng.random((n, m)) < density)
    answer, truth = np.nonzero(quality)
    return PossiblePairs(answer, truth, quality[answer, truth])


def every_matching(pairs, n, m):
    """(pairs, quality) of the best one, by going through all."""
    edges = list(
        zip(pairs.answer.tolist(), pairs.truth.tolist(), pairs.quality.tolist(), strict=True)
    )

    def best(k, rows, columns):
        if k == len(edges):
            return (0, 0.0)
        i, j, q = edges[k]
        without = best(k + 1, rows, columns)
        if i in rows or j in columns:
            return without
        count, total = best(k + 1, rows | {i}, columns | {j})
        return max(without, (count + 1, total + q))

    return best(0, frozenset(), frozenset())


@pytest.mark.parametrize("seed", range(25))
def test_the_assignment_is_the_best_of_all(seed):
    rng = np.random.default_rng(seed)
    n, m = rng.integers(1, 6, 2)
    pairs = random_pairs(rng, n, m)
    match = best_assignment(pairs, n, m)
    rows = np.flatnonzero(match >= 0)
    quality = {
        (i, j): q
        for i, j, q in zip(pairs.answer.tolist(), pairs.truth.tolist(), pairs.quality, strict=True)
    }
    assert len(set(match[rows].tolist())) == len(rows)
    total = sum(quality[int(i), int(match[i])] for i in rows)
    assert (len(rows), total) == pytest.approx(every_matching(pairs, n, m))


def test_more_matches_go_before_better_ones():
    """One pair of 0.99 would leave the others alone."""
    pairs = PossiblePairs(np.array([0, 0, 1]), np.array([0, 1, 0]), np.array([0.99, 0.5, 0.5]))
    assert best_assignment(pairs, 2, 2).tolist() == [1, 0]


@pytest.mark.parametrize("seed", range(15))
def test_of_the_first_k_as_many_are_right_as_can_be_matched(seed):
    rng = np.random.default_rng(100 + seed)
    n, m = 8, 6
    pairs = random_pairs(rng, n, m)
    order = rng.permutation(n)
    right = right_by_score(pairs, order, m)
    for k in range(n + 1):
        first = order[:k]
        some = pairs.select(np.isin(pairs.answer, first))
        assert right[first].sum() == np.count_nonzero(best_assignment(some, n, m) >= 0)


# --- numbers -------------------------------------------------------------------------------------


def slow_average_precision(right, score, n_true):
    """Threshold by threshold, with the best precision at that recall or beyond."""
    points = []
    for threshold in sorted(set(score.tolist()), reverse=True):
        chosen = score >= threshold
        points.append((right[chosen].sum() / n_true, right[chosen].mean()))
    area, before = 0.0, 0.0
    for recall, _ in points:
        best = max(p for r, p in points if r >= recall)
        area += (recall - before) * best
        before = recall
    return area


@pytest.mark.parametrize("seed", range(10))
def test_average_precision_against_every_threshold(seed):
    rng = np.random.default_rng(seed)
    right, score = rng.random(40) < 0.6, np.round(rng.random(40), 1)
    found = average_precision(right, score, 35)
    assert found == pytest.approx(slow_average_precision(right, score, 35))
    shuffled = rng.permutation(40)
    assert average_precision(right[shuffled], score[shuffled], 35) == pytest.approx(found)


def test_average_precision_by_hand():
    """Right, wrong, right of two true ones: 1 up to recall ½, then ⅔."""
    right = np.array([True, False, True])
    assert average_precision(right, np.array([0.9, 0.8, 0.7]), 2) == pytest.approx(
        0.5 + 0.5 * 2 / 3
    )
    assert average_precision(right, np.array([0.9, 0.8, 0.7]), 0) is None
    assert average_precision(right[:0], np.zeros(0), 3) == 0.0


def test_calibration_by_hand():
    p = np.array([0.05, 0.05, 0.95, 0.95, 1.0])
    found = calibration(np.array([False, True, True, True, False]), p)
    assert found["brier"] == pytest.approx((0.0025 + 0.9025 + 0.0025 + 0.0025 + 1.0) / 5)
    low, high = found["calibration"]
    assert (low["lo"], low["hi"], low["n"], low["right"]) == (0.0, 0.1, 2, 0.5)
    assert (high["n"], high["mean_p"], high["right"]) == (3, pytest.approx(2.9 / 3), 2 / 3)
    assert found["calibration_error"] == pytest.approx(0.4 * 0.45 + 0.6 * (2.9 / 3 - 2 / 3))
    assert found["sure"] == {"least": 0.9, "n": 3, "right": 2 / 3}


def test_intervals_cover_what_they_should():
    """Of 300 answers of 40 images each, about 95 % of the intervals hold the expected recall."""
    rng = np.random.default_rng(5)
    held = 0
    for _ in range(300):
        true = rng.poisson(5, 40)
        right = rng.binomial(true, 0.7)
        found = with_intervals(right, right + rng.poisson(1, 40), true)["intervals"]["recall"]
        held += found["lo"] <= 0.7 <= found["hi"]
    # Three standard errors of a share of 94 %.
    assert held / 300 == pytest.approx(0.94, abs=0.042)


def test_intervals_of_one_image_and_of_nothing():
    found = with_intervals(np.array([30]), np.array([40]), np.array([50]))
    assert found["precision"] == 0.75
    assert found["intervals"]["precision"]["lo"] < 0.75 < found["intervals"]["precision"]["hi"]
    nothing = with_intervals(np.array([0]), np.array([0]), np.array([0]))
    assert nothing["intervals"]["precision"] is None
    assert np.isnan(agreement(0, 0, 0)["f1"])


# --- whole evaluations ---------------------------------------------------------------------------

TRUTH = boxes([(0, 0, 10, 10), (20, 0, 30, 10), (40, 0, 50, 10), (0, 0, 4, 4)],
              image=["a", "a", "a", "b"])  # fmt: skip
ANSWER = boxes(
    [(0, 0, 10, 9), (20, 0, 30, 6), (40, 0, 50, 4), (1, 0, 11, 10), (0, 0, 4, 4)],
    image=["a", "a", "a", "a", "c"],
)


def test_boxes_by_hand():
    """IoU .9, .6 and .4; a second box of the first object; a box on an image of no truth."""
    found = dfcrp.evaluate(ANSWER, TRUTH, "boxes")
    assert (found.n_true, found.n_listed, found.n_right) == (4, 4, 2)
    assert found.precision == pytest.approx(0.5)
    assert found.recall == pytest.approx(0.5)
    assert found.f1 == pytest.approx(0.5)
    assert found.matched["mean_iou"] == pytest.approx((0.9 + 0.6) / 2)
    assert found.n_images == 2
    assert found.n_images_left_out == 1
    assert found.average_precision is None
    assert [row["n_right"] for row in found.by_image] == [2, 0]
    assert found.counts["mean_absolute_error"] == pytest.approx(1.0)
    everywhere = dfcrp.evaluate(ANSWER, TRUTH, "boxes", on="all")
    assert (everywhere.n_listed, everywhere.n_images) == (5, 3)
    both = dfcrp.evaluate(ANSWER, TRUTH, "boxes", on="both")
    assert (both.n_true, both.n_images, both.n_images_left_out_of_truth) == (3, 1, 1)
    assert dfcrp.evaluate(ANSWER, TRUTH, "boxes", on=["b", "c"]).n_listed == 1
    assert dfcrp.evaluate(ANSWER, TRUTH, "boxes", iou=0.4).n_right == 3


def test_what_is_listed_and_how_it_is_ranked():
    scored = {**ANSWER, "p_real": [0.9, 0.6, 0.2, 0.7, 0.9]}
    found = dfcrp.evaluate(scored, TRUTH, "boxes")
    assert (found.n_listed, found.n_right) == (3, 2)
    # In order .9 right, .7 wrong, .6 right, .2 wrong, of four true ones.
    assert found.average_precision == pytest.approx(1 / 4 + 1 / 4 * 2 / 3)
    assert found.brier == pytest.approx((0.01 + 0.49 + 0.16 + 0.04) / 4)
    assert dfcrp.evaluate(scored, TRUTH, "boxes", p_real=0.65).n_listed == 2
    named = {**ANSWER, "score": [9.0, 6.0, 2.0, 7.0, 9.0]}
    found = dfcrp.evaluate(named, TRUTH, "boxes", min_score=6.0)
    assert (found.n_listed, found.score, found.brier) == (3, "score", None)
    assert found.average_precision == pytest.approx(1 / 4 + 1 / 4 * 2 / 3)
    agreed = {**ANSWER, "p_consensus": [0.9, 0.6, 0.2, 0.7, 0.9], "n_experts": [1, 3, 4, 1, 1]}
    found = dfcrp.evaluate(agreed, TRUTH, "boxes")
    assert (found.listed, found.n_listed, found.brier) == ("p_consensus > 0.5", 3, None)
    assert dfcrp.evaluate(agreed, TRUTH, "boxes", min_experts=3).n_listed == 2


def test_circles_and_points_by_hand():
    truth = {"x": [0.0, 100.0], "y": [0.0, 0.0], "diameter": [10.0, 10.0]}
    # 0.26 diameters apart is an IoU of .505, 0.27 of .491; 1.41 times as wide of .503
    for away, wide, right in ((2.6, 10.0, 1), (2.7, 10.0, 0), (0.0, 14.1, 1), (0.0, 14.2, 0)):
        answer = {"x": [away], "y": [0.0], "diameter": [wide]}
        assert dfcrp.evaluate(answer, truth).n_right == right
    far = {"x": [3.0, 100.0], "y": [0.0, 4.0], "diameter": [50.0, 1.0]}
    assert dfcrp.evaluate(far, truth, distance=3.5).n_right == 1
    assert dfcrp.evaluate(far, truth, distance=4.0).n_right == 2
    points = [{"x": one["x"], "y": one["y"]} for one in (far, truth)]
    assert dfcrp.evaluate(*points, "points", distance=3.0).n_right == 1
    with pytest.raises(SettingsError, match="only a run has a usual one"):
        dfcrp.evaluate(*points, "points")


def test_rows_of_numbers_by_column():
    answer, truth = (
        {"mass": [1.0, 2.0], "flux": [10.0, 20.0]},
        {"mass": [1.1, 2.0], "flux": [13, 26]},
    )
    reach = {"mass": 0.2, "flux": 5.0}
    # (½)² + (3/5)² < 1, (6/5)² > 1
    assert dfcrp.evaluate(answer, truth, "diagonal", distance=reach).n_right == 1
    assert dfcrp.evaluate(answer, truth, "diagonal", distance=6.1).n_right == 2
    with pytest.raises(SettingsError, match="names the column 'weight'"):
        dfcrp.evaluate(answer, truth, "diagonal", distance={"weight": 1.0})


def test_ellipses_by_hand():
    """Turned by 90°, two ellipses of axes 4 and 1 share (4 / π) arctan ¼ of their area."""
    truth = {"x": [0.0], "y": [0.0], "major": [4.0], "minor": [1.0], "angle": [0.0]}
    turned = {**truth, "angle": [90.0]}
    share = 4.0 / np.pi * np.arctan(0.25)
    iou = share / (2.0 - share)
    assert dfcrp.evaluate(turned, truth, "ellipses", iou=iou - 0.003).n_right == 1
    assert dfcrp.evaluate(turned, truth, "ellipses", iou=iou + 0.003).n_right == 0
    assert dfcrp.evaluate({**truth, "angle": [180.0]}, truth, "ellipses", iou=0.99).n_right == 1


def test_categories_and_sizes():
    truth = boxes([(0, 0, 9, 9), (20, 0, 40, 20), (60, 0, 100, 40)], category=["cat", "dog", "cat"])
    answer = boxes([(0, 0, 9, 9), (20, 0, 40, 20)], category=["cat", "cat"])
    found = dfcrp.evaluate(answer, truth, "boxes")
    assert found.n_right == 2
    assert found.by_category["right_category"] == 0.5
    rows = {row["category"]: row for row in found.by_category["categories"]}
    assert (rows["cat"]["precision"], rows["cat"]["recall"]) == (0.5, 0.5)
    assert (rows["dog"]["precision"], rows["dog"]["recall"]) == (None, 0.0)
    assert dfcrp.evaluate(answer, truth, "boxes", same_category=True).n_right == 1
    assert [row["recall"] for row in found.by_size] == [1.0, 1.0, 0.0]
    bare = {name: values for name, values in answer.items() if name != "category"}
    with pytest.raises(InputError, match="no column category"):
        dfcrp.evaluate(bare, truth, "boxes", same_category=True)


@pytest.mark.parametrize("kind", ["points", "boxes", "ellipses", "diagonal", "normal", "line"])
@pytest.mark.parametrize("images", [(), ("a", "b", "c")])
def test_a_perfect_answer_gives_one_whatever_the_order(kind, images):
    """The catalogue of a run as its own truth, from first to last and the other way round."""
    posterior = kind_posterior(kind, images=images)
    table = posterior.catalogue()
    truth = table[[name for name in (*posterior.items.columns, "image") if name in table]]
    options = {"min_experts": 1}
    found = posterior.evaluate(truth, **options)
    assert (found.precision, found.recall, found.f1) == (1.0, 1.0, 1.0)
    assert found.n_true == len(table)
    again = posterior.evaluate(truth.iloc[::-1].reset_index(drop=True), **options)
    assert json.dumps(again) == json.dumps(found)
    assert "precision" in repr(found)
    text = json.dumps(found, allow_nan=False)
    assert json.loads(text) == found


def test_shuffling_an_answer_changes_nothing():
    rng = np.random.default_rng(8)
    columns = boxes(np.sort(rng.uniform(0, 60, (40, 2, 2)), axis=1).reshape(40, 4))
    columns["p_real"] = np.round(rng.random(40), 1)
    truth = boxes(np.sort(rng.uniform(0, 60, (30, 2, 2)), axis=1).reshape(30, 4))
    order = rng.permutation(40)
    shuffled = {name: values[order] for name, values in columns.items()}
    found, again = (dfcrp.evaluate(one, truth, "boxes", iou=0.1) for one in (columns, shuffled))
    assert json.dumps(found) == json.dumps(again)
    assert 0 < found.n_right < found.n_listed


def test_a_run_with_the_detection_prior():
    posterior = under_detection(random_posterior(4))
    table = posterior.catalogue()
    truth = table[["x", "y", "diameter"]]
    found = posterior.evaluate(truth)
    assert found.listed == "p_real > 0.5"
    assert found.n_listed == int((table["p_real"] > 0.5).sum())
    assert found.brier == pytest.approx(np.mean((table["p_real"] - 1.0) ** 2))
    detection = posterior.detection
    total = (detection.seen + detection.missed)[:, 0]
    assert found.n_total["mean"] == pytest.approx(total.mean())
    assert found.n_total["true"] == len(table)
    # The true centre is that of the catalogue, in the middle of its intervals.
    assert found.matched["coverage"] == {"x": 1.0, "y": 1.0, "diameter": 1.0}
    assert found.average_precision == pytest.approx(1.0)


def test_a_run_of_points_has_a_distance():
    posterior = kind_posterior("points")
    found = posterior.evaluate(posterior.catalogue()[["x", "y"]])
    scatter = posterior.tolerances["x_y"]["mean"]
    # The 99.7 % point of χ² with two degrees of freedom is -2 log 0.003.
    assert found.rule["most"] == pytest.approx(scatter * np.sqrt(-2 * np.log(0.003)))
    assert "scatter" in found.rule["source"]


def test_images_that_are_nearly_named_alike_are_named():
    box = {"x": [9.0] * 3, "y": [9.0] * 3, "diameter": [4.0] * 3}
    ours = {**box, "image": ["a.jpg", "b.jpg", "c.jpg"]}
    with pytest.warns(DfcrpWarning, match=r"'B\.JPG' \('b\.jpg' in the catalogue\) and 'c\.png'"):
        found = dfcrp.evaluate(ours, {**box, "image": ["a.jpg", "B.JPG", "c.png"]})
    assert (found["n_true"], found["n_listed"]) == (3, 1)


def test_a_truth_of_some_images():
    posterior = kind_posterior("boxes", images=("a", "b", "c"))
    table = posterior.catalogue()
    names = ["image", *posterior.items.columns]
    truth = table.loc[table["image"] == "a", names]
    found = posterior.evaluate(truth, min_experts=1)
    assert (found.precision, found.n_images, found.n_images_left_out) == (1.0, 1, 2)
    wide = posterior.evaluate(truth, min_experts=1, on="all")
    assert wide.precision == pytest.approx(len(truth) / len(table))
    unknown = truth.assign(image="d")
    with pytest.raises(InputError, match="no image in common"):
        posterior.evaluate(unknown)
    import pandas

    mixed = pandas.concat([truth, unknown.iloc[:1]])
    with pytest.raises(InputError, match=r"the image 'd' is not in the run.*--on both"):
        posterior.evaluate(mixed)
    assert posterior.evaluate(mixed, on="both", min_experts=1).precision == 1.0
    assert posterior.evaluate(mixed, on="answer").n_images == 3
    assert dfcrp.evaluate(ANSWER, TRUTH, "boxes", on="answer").n_listed == 5


def test_on_a_sphere_distances_are_along_the_ground():
    site = dfcrp.items.site.Site("deg", body_radius_km=1737.4)
    degree = 2 * np.pi * 1737.4 / 360
    truth = Items.circles([10.0], [60.0], [10.0], ["a"], site=site)
    answer = Items.circles([10.2], [60.0], [10.0], ["a"], site=site)
    away = 0.2 * degree * np.cos(np.radians(60.0))
    assert dfcrp.evaluate(answer, truth, distance=away * 1.01).n_right == 1
    assert dfcrp.evaluate(answer, truth, distance=away * 0.99).n_right == 0
    columns = {"lon": [10.2], "lat": [60.0], "diameter_km": [10.0]}
    assert dfcrp.evaluate(columns, truth, distance=away * 1.01).n_right == 1
    with pytest.raises(InputError, match="--body moon"):
        dfcrp.evaluate(columns, columns)
    assert dfcrp.evaluate(columns, columns, body="moon").n_right == 1
    in_km = Items.circles([10.0], [60.0], [10.0], ["a"], site=dfcrp.items.site.Site("km"))
    with pytest.raises(InputError, match="in deg, the truth in km; convert"):
        dfcrp.evaluate(answer, in_km)
    near = Items.circles([10.0 + 2.5 / (degree * 0.5)], [60.0], [10.0], ["a"], site=site)
    assert dfcrp.evaluate(near, truth).n_right == 1
    assert dfcrp.evaluate(answer, truth).n_right == 0


# --- mistakes in the input -----------------------------------------------------------------------

NO_IMAGE = {name: values for name, values in TRUTH.items() if name != "image"}


@pytest.mark.parametrize(
    ("answer", "truth", "options", "message"),
    [
        (ANSWER, {"x": [1.0], "y": [2.0]}, {}, "no column for width"),
        (ANSWER, TRUTH, {"iou": 0.5, "distance": 3.0}, "either iou or distance"),
        (ANSWER, TRUTH, {"iou": 1.5}, "above 0 and at most 1"),
        (ANSWER, TRUTH, {"distance": -1.0}, "above zero"),
        (ANSWER, TRUTH, {"p_real": 0.5}, "has no column p_real"),
        (ANSWER, TRUTH, {"min_experts": 2}, "has no column n_experts"),
        (ANSWER, TRUTH, {"min_score": 2}, "has no column score"),
        (ANSWER, TRUTH, {"p_real": 0.5, "min_experts": 2}, "give one of"),
        ({**ANSWER, "p_real": [2.0] * 5}, TRUTH, {}, "p_real is 2; a probability is from 0 to 1"),
        ({**ANSWER, "p_real": [np.nan] * 5}, TRUTH, {}, "no number in the column p_real"),
        (ANSWER, TRUTH, {"on": "some"}, "must be one of truth, answer, all, both"),
        (ANSWER, TRUTH, {"on": ["a", "x"]}, "neither .* has an image 'x'"),
        (ANSWER, NO_IMAGE, {}, "has 2 images, but the truth has no column"),
        (ANSWER, {**TRUTH, "image": ["q"] * 4}, {}, "no image in common"),
        (ANSWER, {**TRUTH, "expert": ["a", "b", "a", "a"]}, {}, "2 experts"),
    ],
)  # fmt: skip
def test_mistakes_are_named(answer, truth, options, message):
    with pytest.raises(InputError, match=message):
        dfcrp.evaluate(answer, truth, "boxes", **options)


def test_a_planted_mistake_in_the_matching_shows(monkeypatch):
    """A matching that gives one true object to several would call the second box right."""

    def careless(pairs, n_answer, n_truth):
        found = np.full(n_answer, -1)
        found[pairs.answer] = pairs.truth
        return found

    monkeypatch.setattr(detected, "best_assignment", careless)
    assert dfcrp.evaluate(ANSWER, TRUTH, "boxes").n_right == 3


def test_a_posterior_by_hand():
    """Two experts agree on one circle; a third has one of his own, which is no object."""
    x, y = [10.0, 10.4, 50.0], [10.0, 10.2, 50.0]
    markings = Items.circles(x, y, [8.0, 8.2, 6.0], ["a", "b", "c"])
    posterior = posterior_of([[[0, 0, 2]] * 4], markings)
    truth = {"x": [10.2], "y": [10.1], "diameter": [8.0]}
    found = posterior.evaluate(truth)
    assert (found.listed, found.n_listed, found.precision, found.recall) == (
        "p_consensus > 0.5", 1, 1.0, 1.0,
    )  # fmt: skip
    assert posterior.evaluate(truth, min_experts=1).precision == 0.5
    assert found.average_precision == 1.0

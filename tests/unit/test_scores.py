"""Scores: from columns and exports to items, levels, answers and the figure."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

import dfcrp
from dfcrp import plots
from dfcrp.draws import shared_variable
from dfcrp.errors import InputError
from dfcrp.priors.detection.scores import LEVELS, score_levels
from dfcrp.runs.folder import read_markings_back, write_markings
from dfcrp.settings.config import make_config


def test_items_carry_them(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("x,y,diameter,user,Confidence\n1,2,3,a,0.5\n4,5,6,b,\n7,8,9,b,-3e2\n")
    items = dfcrp.read_markings(path)
    assert items.score is not None
    assert np.array_equal(items.score, [0.5, math.nan, -300.0], equal_nan=True)
    assert dfcrp.read_markings(path, columns="score=").score is None
    some = items.select(np.array([True, False, True]))
    assert some.score.tolist() == [0.5, -300.0]
    other = tmp_path / "b.csv"
    other.write_text("x,y,diameter,user\n1,2,3,c\n")
    assert np.isnan(dfcrp.read_markings([path, other]).score[-1])
    write_markings(tmp_path / "markings.csv", items)
    (tmp_path / "provenance.json").write_text("{}")
    assert read_markings_back(tmp_path, make_config({})).digest == items.digest


@pytest.mark.parametrize("bad", ["high", "inf", "1e99"])
def test_bad_ones_are_refused(tmp_path: Path, bad: str) -> None:
    path = tmp_path / "a.csv"
    path.write_text(f"x,y,diameter,user,score\n1,2,3,a,0.5\n4,5,6,b,{bad}\n")
    with pytest.raises(InputError, match=rf"row 3, column 'score'.*{bad}.*--columns score="):
        dfcrp.read_markings(path)


def test_coco_has_them(tmp_path: Path) -> None:
    box = {"id": 1, "image_id": 1, "bbox": [1, 2, 3, 4], "score": 0.25}
    content = {"images": [{"id": 1, "file_name": "a.png"}], "annotations": [box]}
    for name in ("ann", "bob"):
        (tmp_path / f"{name}.json").write_text(json.dumps(content))
    items = dfcrp.read_items([tmp_path / "ann.json", tmp_path / "bob.json"], "boxes")
    assert items.score.tolist() == [0.25, 0.25]


def test_levels_are_ranks_within_a_source() -> None:
    rng = np.random.default_rng(0)
    scores = np.concatenate([rng.normal(size=300), [math.nan, 7.0, 7.0, 7.0]])
    families = np.array([0] * 300 + [1] * 4)
    found = score_levels(scores, families, 3)
    warped = score_levels(np.where(families == 0, np.exp(3 * scores), scores), families, 3)
    assert np.array_equal(found.level, warped.level)
    assert found.level[:300].max() == LEVELS - 1
    assert found.level[300:].tolist() == [-1, 0, 0, 0]
    assert found.share.sum(axis=1) == pytest.approx([1.0, 1.0, 0.0])
    assert (np.diff(found.rank[0]) > 0).all()
    assert found.rank[1, 0] == 0.0
    order = np.argsort(scores[:300])
    assert (np.diff(found.level[order]) >= 0).all()


def detectors(seed: int = 4) -> tuple[dfcrp.Items, np.ndarray]:
    """Three detectors; the scores of the first say much, of the second nothing, the third's none.

    The first two have as many false marks as real ones. Also which items are real.
    """
    rng, rows = np.random.default_rng(seed), []
    for _ in range(60):
        x, y, d = *rng.uniform(0, 4000, 2), rng.uniform(20, 60)
        for f in range(3):
            if rng.random() < 0.5:
                score = (rng.normal(2.0), rng.normal(), math.nan)[f]
                rows.append((x + rng.normal(), y + rng.normal(), d * 1.01, "abc"[f], score, True))
    for f in range(2):
        for _ in range(30):
            score = (rng.normal(-2.0), rng.normal())[f]
            place = (*rng.uniform(0, 4000, 2), rng.uniform(20, 60))
            rows.append((*place, "abc"[f], score, False))
    x, y, d, expert, score, real = zip(*rows, strict=True)
    return dfcrp.Items.circles(x, y, d, expert, score=score), np.array(real)


def test_what_scores_are_worth_is_learned() -> None:
    items, real = detectors()
    posterior = dfcrp.fit(items, prior="detection", scans=400, chains=1, seed=1)
    slope = shared_variable(posterior.draws, "score_slope")
    assert slope is not None
    typical = np.median(slope.reshape(-1, 3), axis=0)
    assert typical[0] > 2.0 * typical[1]
    p = posterior.detection.p_real_marking
    alone = posterior.pairs.alone > 0.9
    first = alone & (items.expert == "a")
    high = first & (items.score > 0.5)
    low = first & (items.score < -0.5)
    assert p[high].mean() > p[low].mean() + 0.3
    bare = dfcrp.Items.circles(items.x, items.y, items.diameter, items.expert)
    without = dfcrp.fit(bare, prior="detection", scans=400, chains=1, seed=1)
    of_a = items.expert == "a"
    worse = np.mean((without.detection.p_real_marking[of_a] - real[of_a]) ** 2)
    assert np.mean((p[of_a] - real[of_a]) ** 2) < worse
    table = plots.prepare_scores(posterior)
    assert {one.source for one in table.sources} == {"a", "b"}
    for one in table.sources:
        assert (np.diff(one.score) > 0).all()
        assert (np.diff(one.by_score.mean) >= 0).all()
        assert one.count.sum() == ((items.expert == one.source) & ~np.isnan(items.score)).sum()


def test_other_priors_do_not_use_them() -> None:
    items, _ = detectors()
    bare = dfcrp.Items.circles(items.x, items.y, items.diameter, items.expert)
    with_them, without = (dfcrp.fit(x, scans=20, chains=1, seed=5) for x in (items, bare))
    assert np.array_equal(with_them.labels, without.labels)
    with pytest.raises(InputError, match='the prior "detection"; the run had the prior "dfcrp"'):
        plots.prepare_scores(with_them)


def test_draws_are_the_same_however_they_are_made(
    tmp_path: Path,
) -> None:
    from studies.made_up_crowds import CrowdDesign, make_crowd

    design = CrowdDesign(images=8, volunteers=6, looks=4, spammers=1, kind="boxes", scores=True)
    items = make_crowd(design, 6).items
    settings = {"prior": "detection", "chains": 2, "burn_in": 5, "seed": 3, "progress": False}
    whole = dfcrp.fit(items, scans=20, workers=2, **settings)
    dfcrp.fit(items, scans=12, workers=1, out=tmp_path / "run", **settings)
    resumed = dfcrp.resume(tmp_path / "run", scans=20, workers=2, progress=False)
    for name in ("confusion", "score_slope", "skill", "false_marks"):
        first, second = (shared_variable(one.draws, name) for one in (whole, resumed))
        assert first.shape[1] == 15
        assert np.array_equal(first, second)
    for chain in range(2):
        assert np.array_equal(whole.draws.labels(chain, 0, 15), resumed.draws.labels(chain, 0, 15))

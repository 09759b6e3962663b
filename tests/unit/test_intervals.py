"""Intervals on a line: features and floor, ties, images, lanes, what a match is, simulations."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dfcrp
from dfcrp.errors import InputError
from dfcrp.first_look import first_look
from dfcrp.items.items import Items
from dfcrp.likelihoods.interval.shape import find_floor, interval_shape
from dfcrp.likelihoods.registry import likelihood_named
from dfcrp.plots.flat import flat_map
from dfcrp.simulate import RecordingDesign
from studies import intervals as study

INTERVALS: Any = likelihood_named("intervals")
SHORT: dict[str, Any] = {"chains": 1, "scans": 40, "burn_in": 10, "seed": 2, "progress": False}


@pytest.mark.parametrize("floor", [0.001, 1.0, 300.0])
def test_features_lead_back_to_the_interval(floor: float) -> None:
    rng = np.random.default_rng(0)
    start = rng.uniform(-50.0, 50.0, 60)
    ends = np.column_stack([start, start + rng.lognormal(0.0, 2.0, 60)])
    shape = interval_shape(floor)
    assert shape.to_columns(shape.to_features(ends)) == pytest.approx(ends)
    # What lies below any length is an interval of none.
    assert np.ptp(shape.to_columns(np.array([3.0, -99.0]))) == 0.0


def marks(floor: float, share: float, seed: int = 3, step: float = 0.0) -> Any:
    """Lengths off by a share of themselves and of a floor, at both ends."""
    rng = np.random.default_rng(seed)
    length = rng.lognormal(0.0, 1.5, 150)
    start = np.sort(rng.uniform(0.0, 4000.0, 150))
    truth = np.column_stack([start, start + length])
    scatter = (share * (length + floor))[:, np.newaxis]
    lists = [truth + scatter * rng.standard_normal(truth.shape) for _ in range(4)]
    ends = np.concatenate(lists)
    experts = np.repeat(np.arange(4), 150)
    fine = ends[:, 1] > ends[:, 0]
    ends, experts = ends[fine], experts[fine]
    if step:
        ends = step * np.round(ends / step)
        ends[:, 1] = np.maximum(ends[:, 1], ends[:, 0] + step)
    return ends, experts


@pytest.mark.parametrize("floor", [0.05, 0.5, 5.0])
def test_the_floor_is_found(floor: float) -> None:
    found = find_floor(*marks(floor, 0.05), None)
    assert floor / 2.5 < found < 2.5 * floor


def test_the_floor_goes_with_the_unit() -> None:
    ends, experts = marks(0.5, 0.05)
    assert find_floor(1024.0 * ends, experts, None) == pytest.approx(
        1024.0 * find_floor(ends, experts, None)
    )


def test_the_floor_is_at_least_the_step() -> None:
    ends, experts = marks(0.01, 0.02, step=2.0)
    assert find_floor(ends, experts, None) >= 2.0


def test_few_pairs_tell_nothing() -> None:
    ends = np.array([[0.0, 1.0], [0.1, 1.2], [9.0, 13.37]])
    assert find_floor(ends, np.array([0, 1, 2]), None) == pytest.approx(0.11)


def text_spans(alike: bool = False) -> Items:
    """Tokens, on which most annotators agree exactly."""
    rng = np.random.default_rng(5)
    first = np.sort(rng.choice(400, 40, replace=False))
    last = first + (1 if alike else rng.integers(1, 4, 40))
    start, end, who = [], [], []
    for name in "abcd":
        for a, b in zip(first.tolist(), last.tolist(), strict=True):
            if rng.random() < 0.85:
                start.append(a)
                end.append(b + (0 if alike else int(rng.random() < 0.05)))
                who.append(name)
    return Items.intervals(start, end, who)


@pytest.mark.parametrize("alike", [False, True], ids=["tokens", "one length"])
@pytest.mark.parametrize("prior", ["dfcrp", "detection"])
def test_spans_that_agree_exactly(alike: bool, prior: str) -> None:
    items = text_spans(alike)
    posterior = dfcrp.fit(items, prior=prior, **{**SHORT, "scans": 120, "burn_in": 60})
    table = posterior.catalogue()
    objects = len({pair[0] for pair in zip(*items.columns.values(), strict=True)})
    assert objects <= len(table) <= 1.1 * objects
    assert np.isfinite(table[["start", "end", "start_sd", "end_sd"]].to_numpy()).all()
    assert (table["end"] > table["start"]).all()
    assert (np.abs(table["start"] - table["start"].round()) < 0.5).all()


def recordings(**changes: Any) -> tuple[Items, dict[str, Any]]:
    return RecordingDesign(recordings=3, seconds=120.0, events=8.0, **changes).draw(4)


def test_images_of_one_run_share_the_floor() -> None:
    items, _ = recordings()
    shared = dfcrp.fit(items, images="shared", prior="detection", **SHORT)
    one = shared["recording-01"]
    assert INTERVALS.floor(one.items) == INTERVALS.floor(items)
    assert one.items.features == pytest.approx(items.features[items.image == "recording-01"])
    whole = shared.catalogue()
    mine = whole[whole["image"] == "recording-01"]
    assert one.catalogue()["start"].to_numpy() == pytest.approx(mine["start"].to_numpy())
    apart = dfcrp.fit(items, images="independent", **SHORT)
    assert INTERVALS.floor(apart["recording-01"].items) != INTERVALS.floor(items)


def test_a_run_on_disk_is_continued(tmp_path: Any) -> None:
    items, _ = recordings()
    dfcrp.fit(items, out=tmp_path / "run", **{**SHORT, "images": "shared"})
    longer = dfcrp.resume(tmp_path / "run", scans=60)
    found = dfcrp.load(tmp_path / "run")
    assert np.array_equal(found.labels, longer.labels)
    assert found.tolerances["floor"] == INTERVALS.floor(items)


def test_detection_may_depend_on_the_length() -> None:
    items, _ = recordings()
    assert INTERVALS.log_sizes(items) == pytest.approx(
        np.log(items.columns["end"] - items.columns["start"])
    )
    posterior = dfcrp.fit(
        items, prior="detection", config={"prior": {"by_size": True}}, images="shared", **SHORT
    )
    assert posterior.has_sizes


def test_what_is_new_is_weighed() -> None:
    items = text_spans()
    model = dfcrp.DFCRP(likelihood="intervals", scans=60, burn_in=20, chains=1, random_state=1)
    model.fit(items.values, groups=items.expert)
    new = items.values[:5]
    assert model.predict(new).tolist() == model.labels_[:5].tolist()
    assert model.predict(new + 5000.0).tolist() == [-1] * 5


def test_every_list_has_a_lane() -> None:
    items, _ = recordings()
    placed = flat_map(items)
    assert placed.lanes == ("objects", *items.experts)
    assert (placed.y == -1.0 - items.families).all()
    assert not placed.equal
    assert placed.size == pytest.approx(items.columns["end"] - items.columns["start"])


def test_bands_go_from_the_last_start_to_the_first_end() -> None:
    low = {"start": np.array([1.0]), "end": np.array([4.0])}
    high = {"start": np.array([2.0]), "end": np.array([6.0])}
    least, most = INTERVALS.band(low, high)
    assert (least.width.item(), most.width.item()) == (2.0, 5.0)


@pytest.mark.parametrize(
    ("start", "end", "iou", "right"),
    [(0.0, 10.0, 0.5, 1), (5.0, 10.0, 0.5, 1), (5.1, 10.0, 0.5, 0), (5.1, 10.0, 0.4, 1),
     (2.0, 13.0, 0.6, 1), (2.0, 14.0, 0.6, 0)],
)  # fmt: skip
def test_a_match_overlaps_by_half(start: float, end: float, iou: float, right: int) -> None:
    truth = {"start": [0.0, 50.0], "end": [10.0, 60.0]}
    answer = {"start": [start], "end": [end]}
    found = dfcrp.evaluate(answer, truth, "intervals", iou=iou)
    assert (found.n_right, found.n_true) == (right, 2)


def test_a_usual_match_has_an_iou_of_one_half() -> None:
    truth = {"onset": [0.0], "duration": [10.0]}
    assert dfcrp.evaluate({"start": [4.9], "stop": [10.0]}, truth, "intervals").n_right == 1
    assert dfcrp.evaluate({"start": [5.1], "stop": [10.0]}, truth, "intervals").n_right == 0


def test_a_first_look_at_lists_in_other_units() -> None:
    rng = np.random.default_rng(8)
    start = np.sort(rng.uniform(0.0, 500.0, 60))
    end = start + rng.lognormal(0.5, 0.3, 60)
    off = rng.normal(0.0, 0.05, (3, 2, 60))
    found = [np.stack([start, end]) + one for one in off]
    ends = np.concatenate(found, axis=1)
    who = np.repeat(["a", "b", "c"], 60)
    assert not first_look(Items.intervals(*ends, who))
    same = np.concatenate([found[0], found[0], found[2]], axis=1)
    assert "same list" in {finding.check for finding in first_look(Items.intervals(*same, who))}


def test_events_without_a_length_are_numbers() -> None:
    with pytest.raises(InputError, match=r"index 1, end: .* no length; .*--likelihood diagonal"):
        Items.intervals([1.0, 2.0], [3.0, 2.0], ["a", "b"])
    times = Items.from_columns({"time": [1.0, 2.0]}, ["a", "b"], kind="diagonal")
    assert len(times) == 2


def test_recordings_promise_what_they_are() -> None:
    design = RecordingDesign(recordings=30)
    items, events = design.draw(1)
    again, _ = design.draw(1)
    assert items.digest == again.digest
    assert items.truth is not None
    real = items.truth < len(events["start"])
    assert len(events["start"]) == pytest.approx(30 * design.events, rel=0.2)
    for code, name in enumerate(items.experts):
        own = items.families == code
        assert (own & real).sum() / len(events["start"]) == pytest.approx(
            design.detection[code], abs=0.07
        ), name
    assert items.looked is not None
    assert len(items.looked) == 30 * 5
    places = set(zip(items.truth.tolist(), items.families.tolist(), strict=True))
    assert len(places) == len(items)


def test_the_study_of_recordings() -> None:
    items = Items.intervals(
        [0.0, 0.2, 0.1, 2.0, 2.1, 9.0], [1.0, 1.1, 2.2, 3.0, 3.1, 9.5], list("abcabc"),
        image=["u"] * 6,
    )  # fmt: skip
    assert study.by_frames(items, 2)["u"].tolist() == [[0.1, 1.1], [2.0, 3.0]]
    assert study.merged(items, 2)["u"].shape == (1, 2)
    assert study.merged(items, 2, 0.5)["u"] == pytest.approx(np.array([[0.1, 1.05], [2.05, 3.05]]))
    truth = {"start": np.array([0.1]), "end": np.array([1.1]), "image": np.array(["u"])}
    found = study.scores({"u": np.array([[0.1, 1.0], [2.0, 3.0]])}, truth)
    assert found == pytest.approx({"f1": 2 / 3, "iou": 0.9, "error": 0.05})
    small = RecordingDesign(recordings=2, seconds=60.0, events=4.0)
    table = study.table(study.run(1, {"small": small}))
    assert table.count("\n") == 8

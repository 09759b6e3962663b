"""What a crowd of many images costs: nothing is done again for every image, or for all experts."""

from __future__ import annotations

import base64
import heapq
import itertools
import time
import zlib
from collections.abc import Callable
from heapq import heappop

import numpy as np
import pandas
import pytest

import dfcrp
from benchmarks.large_crowd import LOOKS, MARKINGS, LargeCrowd
from dfcrp.draws import Columns, MemoryDraws, Variable
from dfcrp.fitting.api import complete_config, resolve_for
from dfcrp.fitting.progress import Lines
from dfcrp.items.items import Items
from dfcrp.posterior.answers import ManyImages
from dfcrp.priors.detection.kernel import Detection
from dfcrp.priors.detection.layout import OneImage, image_of
from dfcrp.report import overview
from dfcrp.report.explorer.data import Packer
from dfcrp.runs.parts import MANY_ITEMS, Watch
from dfcrp.sampling.chain import START_SCANS, Chain
from dfcrp.sampling.problem import problem_of
from dfcrp.sampling.runner import Beginning, Runner
from dfcrp.settings.config import read_settings
from dfcrp.summaries.convergence import (
    Limits,
    check_convergence,
    diagnose,
    diagnose_all,
    explain_pairs,
)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("crowd")
    count = LargeCrowd(images=14, volunteers=20).write(folder)
    return folder, count


@pytest.fixture(scope="module")
def posterior(files):
    folder, _ = files
    items = dfcrp.read_items(folder / MARKINGS, "circles", looked=folder / LOOKS)
    settings = {"prior": "detection", "images": "shared", "chains": 2, "scans": 40, "burn_in": 20}
    return dfcrp.fit(items, seed=3, **settings)


def test_a_crowd_of_any_size_is_written_and_read(files) -> None:
    folder, count = files
    items = dfcrp.read_items(folder / MARKINGS, "circles", looked=folder / LOOKS)
    assert len(items) == count > 1_000
    assert len(items.images) == 14
    assert len(items.looked) == 140
    # Whoever lists something looked.
    own = set(zip(items.image.tolist(), items.expert.tolist(), strict=True))
    assert own <= set(map(tuple, items.looked.tolist()))


def test_names_of_some_numbers_are_those_of_all() -> None:
    columns = Columns(
        shared=(
            Variable("scale_x", behind=True),
            Variable("skill", ("level", "expert"), judged=False),
            Variable("offset", ("expert", "axis")),
        ),
        coords={"level": ("1", "2"), "expert": ("Ann", "Bob"), "axis": ("x", "log_d")},
    )
    names = [
        *("scale_x", "skill[1, Ann]", "skill[1, Bob]", "skill[2, Ann]", "skill[2, Bob]"),
        *("offset[Ann, x]", "offset[Ann, log_d]", "offset[Bob, x]", "offset[Bob, log_d]"),
    ]
    assert list(columns.names) == names
    chosen = [8, 0, 3]
    assert columns.names_at(chosen) == [names[at] for at in chosen]
    words = {"scale_x": "scatter", "offset": "offset of {} in {}"}
    assert columns.in_words(words, chosen) == {
        "offset[Bob, log_d]": "offset of Bob in d",
        "scale_x": "scatter",
        "skill[2, Ann]": "skill, 2, Ann",
    }
    assert columns.named("scale_", "skill") == {0: "scale_x"}


def test_what_images_share_is_judged_once(posterior, monkeypatch) -> None:
    """The verdict on an image is as if nothing had been judged before."""
    image = posterior[posterior.images[0]]
    alone = check_convergence(
        image.draws, image.table_counts, image.pairs, known=image.known_of_run
    )
    assert image.convergence.as_dict() == alone.as_dict()
    assert image.convergence.advice == alone.advice
    assert image.convergence.diagnostics == alone.diagnostics
    asked = []
    monkeypatch.setattr(
        Columns, "names_at", lambda self, chosen: asked.append(chosen) or [""] * len(chosen)
    )
    for name in posterior.images[1:]:
        _ = posterior[name].convergence
    assert not asked


@pytest.fixture(scope="module")
def problem(posterior):
    return problem_of(posterior.items, posterior.config)


def test_where_a_chain_begins_is_found_bit_by_bit(problem) -> None:
    """In one go or scan by scan, with one thread or two: the same draws."""
    found = []
    for pieces, threads in (((START_SCANS,), 1), ((1, 7, START_SCANS - 8), 2)):
        chain = Chain(problem, np.random.SeedSequence(4), "exact", threads)
        for scans in pieces:
            assert chain.to_begin >= scans
            chain.begin(scans)
        assert chain.to_begin == 0
        found.append(chain.run(3, 1))
    alone = Chain(problem, np.random.SeedSequence(4), "exact").run(3, 1)
    for block in found:
        assert np.array_equal(block.labels, alone.labels)
        assert np.array_equal(block.shared, alone.shared)


class Held:
    """A writer that keeps nothing, and takes its time."""

    def __init__(self, seconds: float = 0.0) -> None:
        self.seconds, self.saves = seconds, 0

    def append(self, block) -> None:
        pass

    def save(self, chain, seconds) -> None:
        self.saves += 1
        time.sleep(self.seconds)

    def restore(self, chain, thin) -> float:
        return 0.0


def test_it_is_told_how_far_the_beginning_is_and_it_can_be_stopped(problem) -> None:
    told = []

    def begun(seen) -> None:
        told.append((seen.scans, seen.of))
        if len(told) == 2:
            runner.stop()

    runner = Runner(problem, [Held()], seed=1, workers=1, on_begin=begun)
    monotonic = itertools.count(step=10)  # every scan takes long
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("dfcrp.sampling.runner.time.monotonic", lambda: float(next(monotonic)))
        runner.advance(5)
    assert told == [(1, START_SCANS), (2, START_SCANS)]
    assert runner.scans == 0


@pytest.mark.parametrize(("asked", "fewest", "most"), [(1e-9, 1, 4), (0.0, 20, 1000)])
def test_saving_takes_a_small_part_of_the_time(problem, monkeypatch, asked, fewest, most) -> None:
    """Unless it is asked for after every block."""
    monkeypatch.setattr("dfcrp.sampling.runner.SECONDS_PER_BLOCK", 0.0)
    writer = Held(0.02)
    Runner(problem, [writer], seed=1, workers=1, seconds_per_save=asked).advance(20)
    assert fewest <= writer.saves <= most


def test_stages_of_large_runs_are_told(monkeypatch, capsys) -> None:
    told: list[str] = []
    Watch(on_stage=told.append).stage("setting up", MANY_ITEMS)
    Watch(on_stage=told.append).stage("setting up", MANY_ITEMS - 1)
    assert told == ["setting up"]
    clock = itertools.count(step=100)
    monkeypatch.setattr("dfcrp.fitting.progress.time.monotonic", lambda: float(next(clock)))
    lines = Lines(tracker=None)
    lines.stage("Setting up")
    lines.begin(Beginning(chain=0, scans=7, of=60))
    assert capsys.readouterr().err.splitlines() == [
        "Setting up ...",
        "chain 1: a first partition, scan 7 of 60",
    ]


def cost(work: Callable[[], object]) -> float:
    """Processor seconds, at best: whatever else the machine does only adds to them."""
    found = []
    for _ in range(5):
        begun = time.thread_time()
        work()
        found.append(time.thread_time() - begun)
    return min(found)


def wide_crowd(images: int) -> tuple[Items, Detection]:
    """Two markings on every image, and half as many volunteers as images."""
    rng = np.random.default_rng(3)
    image = np.repeat(np.arange(images), 2)
    expert = (image // 4 + np.tile([0, 1], images)) % (images // 2)
    about = [f"image{v:06}" for v in image.tolist()], [f"user{f:06}" for f in expert.tolist()]
    x, y = rng.uniform(0, 100, (2, len(image)))
    looked = list(zip(*about, strict=True))
    looked += [(f"image{v:06}", f"user{(v // 4 + 2) % (images // 2):06}") for v in range(images)]
    items = Items.circles(x, y, rng.uniform(5, 9, len(x)), about[1], about[0], looked=looked)
    config = resolve_for(items, read_settings(None, {"prior": "detection", "images": "shared"}))
    problem = problem_of(items, complete_config(items, config))
    return items, problem.prior


def test_an_image_costs_what_it_holds_however_many_others_there_are() -> None:
    """Its items, its experts and its parameters are found without a look at all of them."""
    found = []
    for images in (200, 4_000):
        items, prior = wide_crowd(images)
        rows = items.rows_by_image()
        first = [(at, name, rows[name]) for at, name in enumerate(items.images[:40])]
        looks = items.looks

        def cut(items=items, first=first) -> list[Items]:
            return [items.of_image(name, own) for _, name, own in first]

        def lay_out(prior=prior, first=first, looks=looks) -> list[OneImage]:
            return [image_of(prior, at, own, looks.experts_of(at)) for at, _, own in first]

        assert all(len(one.experts) == 3 for one in cut())
        for one, (at, _, own) in zip(lay_out(), first, strict=True):
            assert len(one.columns) == len(one.prior.own) == len(np.unique(one.columns))
            assert np.array_equal(one.prior.own, prior.own[one.columns])
            assert one.prior.looks.covered.tolist() == [1.0] * 3, (at, own)
        found.append((cost(cut), cost(lay_out)))
    for few, many in zip(*found, strict=True):
        assert many < 2.5 * few, found


def test_series_are_diagnosed_together_as_one_by_one() -> None:
    rng = np.random.default_rng(7)
    for chains, draws in ((1, 31), (2, 50), (3, 8), (2, 7)):
        series = {str(at): rng.integers(0, 2 + at, (chains, draws)) for at in range(70)}
        series |= {
            "same": np.ones((chains, draws)),
            "stuck": np.tile(np.arange(chains)[:, np.newaxis], draws),
            "unknown": np.full((chains, draws), np.nan),
        }
        together = diagnose_all(series)
        alone = [diagnose(name, values) for name, values in series.items()]
        assert list(map(repr, together)) == list(map(repr, alone))


def test_doubles_are_found_with_the_rest_of_an_image(posterior, monkeypatch) -> None:
    """The table is that of the images one by one, none of which is looked at again for it."""
    each = [posterior[name].suspected_doubles() for name in posterior.images]
    _ = posterior.findings
    monkeypatch.setattr(ManyImages, "number", None)
    found = posterior.suspected_doubles()
    assert found.to_dict("list") == pandas.concat(each, ignore_index=True).to_dict("list")
    assert posterior.n_doubles == len(set(found["marking"]))


def one_by_one(pairs: np.ndarray) -> tuple[int, ...]:
    """The marking in most pairs, then that in most of those that are left, and so on."""
    found: list[int] = []
    while len(pairs):
        markings, times = np.unique(pairs, return_counts=True)
        if times.max() == 1:
            return tuple(sorted([*found, *markings.tolist()]))
        found.append(int(markings[np.argmax(times)]))
        pairs = pairs[(pairs != found[-1]).all(axis=1)]
    return tuple(sorted(found))


def test_few_markings_explain_many_pairs_soon(monkeypatch) -> None:
    rng = np.random.default_rng(2)
    for n in (0, 1, 5, 40, 300):
        for items in (10, 60, 1000):
            drawn = np.sort(rng.integers(0, items, (n, 2)), axis=1)
            pairs = np.unique(drawn[drawn[:, 0] < drawn[:, 1]], axis=0)
            assert explain_pairs(pairs) == one_by_one(pairs)
    looks = []
    monkeypatch.setattr(heapq, "heappop", lambda queue: looks.append(0) or heappop(queue))
    centres = np.repeat(np.arange(8_000), 2)
    pairs = np.column_stack([centres * 3, centres * 3 + np.tile([1, 2], 8_000)])
    assert len(explain_pairs(pairs)) == 8_000
    assert len(looks) < 3 * len(pairs)


def test_of_many_items_a_few_pairs_may_disagree() -> None:
    """One for every so many items; of fewer items none, as ever."""
    labels = np.tile(np.arange(40, dtype=np.int32), (2, 800, 1))
    labels[0, :, 1] = 0
    draws = MemoryDraws(labels, np.full((2, 800), np.nan))
    strict, lenient = (
        check_convergence(draws, limits=Limits(rhat=np.inf, ess=0.0, items_per_pair=each))
        for each in (41, 40)
    )
    assert strict.pairs_disagreeing == lenient.pairs_disagreeing == 1
    assert (strict.pairs_allowed, lenient.pairs_allowed) == (0, 1)
    assert not strict.ok
    assert lenient.ok
    assert "Of so many items 1 may." in " ".join(lenient.advice)
    assert "may." not in " ".join(strict.advice)


def unpacked(about, content: str) -> dict[str, np.ndarray]:
    data = base64.b64decode(content)
    kinds = {"Uint8": "u1", "Uint16": "<u2", "Uint32": "<u4", "Float32": "<f4", "Float64": "<f8"}
    return {
        name: np.frombuffer(data, kinds[kind], length, start)
        for name, (kind, start, length) in about["arrays"].items()
    }


def test_pictures_of_many_images_have_no_digits_that_nobody_sees(posterior, monkeypatch) -> None:
    exact = unpacked(*overview.make_payload(posterior, {}))
    monkeypatch.setattr(overview, "ROUGH_OUTLINES", 0)
    rough = unpacked(*overview.make_payload(posterior, {}))
    assert exact.keys() == rough.keys()
    left, right, low, high = exact["frames"].reshape(-1, 4).T
    step = np.maximum(right - left, high - low).min() / 800
    for name in ("outlineX", "outlineY", "frames"):
        assert 0 < np.abs(rough[name] - exact[name]).max() < step
    np.testing.assert_allclose(rough["outlineW"], exact["outlineW"], rtol=1 / 256)
    np.testing.assert_allclose(rough["outlineP"], exact["outlineP"], atol=1 / 128)
    sizes = [len(zlib.compress(found["outlineX"].tobytes())) for found in (exact, rough)]
    assert sizes[1] < 0.75 * sizes[0]


def test_a_page_of_a_hundred_thousand_images_is_small() -> None:
    """What one picture may hold then, and what all of them take, in bytes."""
    rng, images = np.random.default_rng(5), 100_000
    outlines = overview.MAX_ALL_OUTLINES // images
    packer = Packer(rough=outlines * images > overview.ROUGH_OUTLINES)
    for name in ("objects", "agreed", "lookValue"):
        packer.floats(name, rng.gamma(9.0, 1.0, images), "float64", bits=overview.ROUGH_BITS)
    for name in ("place", "byName"):
        packer.counts(name, rng.permutation(images))
    packer.counts("outlineStart", np.arange(images + 1) * outlines)
    step = 1000.0 * overview.PLACE_STEP
    packer.floats("frames", rng.normal(500.0, 20.0, 4 * images), step=step)
    for name in "XY":
        packer.floats(name, rng.uniform(-500.0, 500.0, outlines * images), step=step)
    for name in "WHA":
        sizes = np.exp(rng.normal(3.6, 0.4, outlines * images))
        packer.floats(name, sizes, bits=overview.ROUGH_BITS)
    packer.floats("P", rng.beta(0.3, 0.3, outlines * images), step=overview.P_STEP)
    assert len(packer.base64()) < 8_500_000

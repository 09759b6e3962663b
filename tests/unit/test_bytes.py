"""What large runs take, in bytes of memory: counted on small ones, as time and systems differ."""

from __future__ import annotations

import dataclasses
import json
import tracemalloc
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dfcrp
from dfcrp.draws import ClusterBlock, Columns, MemoryDraws, Variable, shared_variable
from dfcrp.errors import DfcrpWarning, InputError
from dfcrp.plots.flat import read_image
from dfcrp.posterior import images
from dfcrp.posterior.images import SharedDraws
from dfcrp.priors.detection.laid_out import MORE_BLOCKS
from dfcrp.runs.blocks import no_draws
from dfcrp.runs.store import DrawStore
from dfcrp.runs.stored_draws import StoredDraws
from dfcrp.sampling.chain import BLOCK_BYTES, Chain
from dfcrp.sampling.problem import new_record, new_scratch, new_state, problem_of
from dfcrp.settings.config import resolve


def peak(work: Callable[[], Any]) -> int:
    """Bytes that are held while it works, beyond those before."""
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        work()
        return tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()


def test_draws_of_all_images_are_cut_a_bounded_number_of_bytes_at_a_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Half of the items are clusters of eleven parameters, as boxes are: 28 bytes for each item."""
    n, draws, n_images = 1000, 600, 50
    labels = np.repeat(np.arange(0, n, 2, dtype=np.int32), 2)
    rows = np.split(np.arange(n), n_images)
    offsets = np.arange(draws + 1) * (n // 2)
    names = np.tile(labels[::2], draws)
    clusters = ClusterBlock(offsets, names, np.zeros((len(names), 11), np.float32))
    whole = MemoryDraws(
        np.tile(labels, (1, draws, 1)), np.ones(draws), [clusters], Columns(("x",) * 11)
    )
    monkeypatch.setattr(images, "MAX_CUT", 2_000_000)
    cut = SharedDraws(whole, rows)

    def all_of_them() -> None:
        for image in range(n_images):
            part = cut.draws(image)
            assert part.labels(0, 3, 4)[0].tolist() == (labels[rows[0]]).tolist()
            held = sum(
                one._labels.nbytes + sum(array.nbytes for array in vars(one._clusters[0]).values())
                for one in cut._cut.values()
            )
            assert held <= 2_000_000 + 400_000  # the last image of a group may reach beyond

    # All draws are 17 MB; while some are cut, 256 draws of all images and their owners are there.
    assert peak(all_of_them) < 2_000_000 * 1.5 + 256 * (n // 2) * (11 * 4 + 5 * 8)
    assert len(set(cut._group.tolist())) == 9


@pytest.fixture(scope="module")
def wide(tmp_path_factory: pytest.TempPathFactory) -> DrawStore:
    """Draws that have 5,000 numbers each in common, 40 MB in all."""
    columns = Columns(
        ("x",), (Variable("skill", ("expert",)), Variable("usual")), {"expert": ("a",) * 4999}
    )
    store = DrawStore.create(tmp_path_factory.mktemp("wide") / "run", resumable=False)
    rng = np.random.default_rng(1)
    for chain in range(2):
        writer = store.writer(0, chain, 3, columns)
        nothing = no_draws(3, columns)
        for _ in range(5):
            writer.append(
                nothing._replace(
                    labels=np.zeros((100, 3), np.int32),
                    alpha=np.ones(100),
                    offsets=np.zeros(101, np.int64),
                    shared=rng.normal(size=(100, 5000)),
                )
            )
        writer.finish()
    return store


def test_a_few_of_many_numbers_take_few_bytes(wide: DrawStore) -> None:
    draws = wide.draws()
    every = draws.shared().copy()
    for chosen in (slice(3, 9), [4, 2, 4999], []):
        assert np.array_equal(draws.shared(chosen), every[:, :, chosen])
    usual = shared_variable(draws, "usual")
    assert usual is not None
    assert np.array_equal(usual, every[:, :, -1])
    wide._unpacked.most_bytes = 1
    # A block at a time is unpacked, 20 MB here; all of them together are 40 MB.
    assert peak(lambda: draws.shared([7])) < peak(lambda: draws.shared([*range(5000)])) - 30e6


def test_numbers_that_do_not_fit_are_refused_before(wide: DrawStore, monkeypatch: Any) -> None:
    monkeypatch.setenv("DFCRP_MEMORY", "20000000")
    draws = wide.draws()
    assert draws.shared([7]).shape == (2, 500, 1)
    with pytest.raises(InputError, match=r"5,000 numbers of 1,000 draws, takes about 40 MB"):
        draws.shared()


def test_all_numbers_are_in_memory_once(wide: DrawStore) -> None:
    draws = wide.draws()
    first = draws.shared()
    assert draws.shared() is first
    assert peak(draws.shared) < 1e6


def test_a_block_of_draws_is_bounded_however_much_draws_have_in_common() -> None:
    items = dfcrp.Items.circles([1.0, 1.1], [2.0, 2.0], [3.0, 3.1], ["a", "b"])
    problem = problem_of(items, resolve(None, {}))
    columns = Columns(("x",), (Variable("skill", ("expert",)),), {"expert": ("a",) * 100_000})
    chain = Chain(problem, np.random.SeedSequence(1), "exact")
    assert chain.largest_block() == 512
    chain.problem = dataclasses.replace(problem, columns=columns)
    record = new_record(chain.problem, chain.largest_block())
    assert sum(array.nbytes for array in record) <= BLOCK_BYTES + 1000
    assert record.shared.shape[0] >= 50


@pytest.mark.parametrize("prior", ["detection", "crp", "dfcrp"])
def test_no_table_of_items_by_a_thousand_experts(prior: str) -> None:
    """4,000 items: a number for each of both would be 32 MB for every chain and thread."""
    rng = np.random.default_rng(1)
    x, y = rng.uniform(0.0, 1e5, (2, 4000))
    experts = [f"e{k % 1000}" for k in range(4000)]
    places = [f"i{k // 20}" for k in range(4000)]
    items = dfcrp.Items.from_columns({"x": x, "y": y}, experts, kind="points", image=places)
    config = resolve(None, {"likelihood": "points", "prior": prior, "images": "shared"})
    problem = problem_of(items, config)
    assert peak(lambda: new_scratch(problem)) < 2e6
    assert peak(lambda: new_state(problem)) < 2e6


@pytest.fixture(scope="module")
def crowd(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of thirty experts who looked at sixteen images, and marked something on most."""
    rng, rows = np.random.default_rng(1), []
    for image in range(16):
        places = rng.uniform(0.0, 500.0, (3, 2))
        for expert in range(30):
            marked = places[rng.random(3) < 0.5]
            rows += [(*at, expert, image) for at in marked + rng.normal(0.0, 3.0, marked.shape)]
    x, y, expert, image = map(np.array, zip(*rows, strict=True))
    names = [f"e{k:.0f}" for k in expert], [f"i{k:.0f}" for k in image]
    items = dfcrp.Items.from_columns({"x": x, "y": y}, names[0], kind="points", image=names[1])
    run = tmp_path_factory.mktemp("crowd") / "run"
    length = {"chains": 2, "scans": 40, "burn_in": 8, "seed": 1, "workers": 1}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DfcrpWarning)
        dfcrp.fit(items, out=run, prior="detection", progress=False, **length)
    return run


def test_of_an_image_little_is_kept(crowd: Path) -> None:
    """Not what each of its experts did in each draw: 52 bytes for a look and draw."""
    posterior = dfcrp.load(crowd)
    kept = [value for one in posterior.findings for value in one.detection]
    held = sum(value.nbytes for value in kept if isinstance(value, np.ndarray))
    images, draws = len(posterior.images), posterior.draws.n_chains * posterior.draws.n_draws
    assert len(posterior.items.looks.pairs) > 15 * images
    assert held == 8 * images * draws + sum(
        one.detection.p_real_marking.nbytes + one.detection.p_real_cluster.nbytes
        for one in posterior.findings
    )
    # Sums over images are those of the images, asked one by one.
    found, each = posterior.detection, [posterior[name].detection for name in posterior.images]
    for at, name in enumerate(("seen", "missed", "classes", "decoys")):
        total = (np.max if name == "classes" else np.sum)([getattr(i, name) for i in each], axis=0)
        assert (getattr(found, name) == total).all(), at
    codes = [posterior.items.looks.experts_of(image) for image in range(images)]
    for name in ("listed", "false"):
        total = np.zeros_like(getattr(found, name))
        for own, one in zip(codes, each, strict=True):
            total[:, :, own] += getattr(one, name)
        assert (getattr(found, name) == total).all()


def test_parameters_are_read_some_at_a_time(crowd: Path, monkeypatch: Any) -> None:
    """Blocks of 40 columns, of which what all images have in common is kept, and little more."""
    whole = dfcrp.load(crowd)
    expected, width = json.dumps(whole.summary()), whole.draws.columns.width
    assert '"model_fit"' in expected
    draws = whole.draws.n_chains * whole.draws.n_draws
    assert width > 600

    read = StoredDraws.shared

    def some(self: StoredDraws, chosen: Any = None) -> Any:
        found = read(self, chosen)
        assert found.shape[2] <= 40
        return found

    monkeypatch.setattr("dfcrp.draws.SHARED_BYTES", 8 * draws * 40)
    monkeypatch.setattr(StoredDraws, "shared", some)
    again = dfcrp.load(crowd)
    assert json.dumps(again.summary()) == expected
    blocks = again.prior_laid_out._blocks
    local = len(again.prior_laid_out.prior.looks.look_list)
    assert len(blocks) <= -(-(width - local) // 40) + MORE_BLOCKS < width // 40


def copies(n: int, kind: str) -> dfcrp.Items:
    """The same item by as many experts."""
    columns = {"x": np.full(n, 5.0), "y": np.full(n, 6.0), "diameter": np.full(n, 20.0)}
    if kind == "points":
        del columns["diameter"]
    return dfcrp.Items.from_columns(columns, [f"e{k}" for k in range(n)], kind=kind)


def test_a_pair_takes_few_bytes() -> None:
    """Of 1,200 experts who all marked one crater, each two are a pair."""
    items, config = copies(1200, "circles"), resolve(None, {})
    problem_of(copies(20, "circles"), config)  # what is imported and loaded once
    pairs = 1200 * 1199 // 2
    assert peak(lambda: problem_of(items, config)) < 65 * pairs + 8e6


@pytest.mark.parametrize("kind", ["circles", "points"])
def test_pairs_that_do_not_fit_are_refused_before(kind: str, monkeypatch: Any) -> None:
    monkeypatch.setenv("DFCRP_MEMORY", "20000000")
    config = resolve(None, {"likelihood": kind, "radius": "auto" if kind == "circles" else 5.0})
    with pytest.raises(InputError, match=r"719,400 pairs .* takes about .* and 20 MB are avail"):
        problem_of(copies(1200, kind), config)


def test_an_image_that_does_not_fit_is_refused_before(tmp_path: Path, monkeypatch: Any) -> None:
    """A small file that stands for 25 million pixels."""
    from PIL import Image

    Image.new("RGB", (5000, 5000)).save(tmp_path / "large.png")
    assert read_image(tmp_path / "large.png")[1] == (5000, 5000)
    monkeypatch.setenv("DFCRP_MEMORY", "100000000")
    with pytest.raises(InputError, match=r"5,000 by 5,000 pixels takes about 200 MB"):
        read_image(tmp_path / "large.png")

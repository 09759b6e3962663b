"""What the explorer is given: draws without loss, numbers in small types, text that stays text."""

import base64
import json
import shutil
import subprocess
import zlib
from importlib import resources

import numpy as np
import pytest

from dfcrp.plots.underlay import Underlay
from dfcrp.report import overview
from dfcrp.report.contents import Contents
from dfcrp.report.explorer import data, embed
from dfcrp.report.explorer.data import SIZE_BITS, Packer, distinct_clusters, script_json, unseen
from dfcrp.report.explorer.embed import make_payload
from dfcrp.summaries.catalogue import consensus_draws
from reference.small_posteriors import random_posterior


def partitions_of(groups, n):
    """The draws put together again from groups and runs, as sets of sets of markings."""
    draws = [set() for _ in range(groups.n_draws)]
    for g in range(len(groups.offsets) - 1):
        members = frozenset(groups.members[groups.offsets[g] : groups.offsets[g + 1]].tolist())
        for r in range(groups.run_offsets[g], groups.run_offsets[g + 1]):
            for draw in range(groups.start[r], groups.stop[r]):
                draws[draw].add(members)
    assert all(sum(map(len, draw)) == n for draw in draws)
    return draws


def expected(posterior, step=1):
    labels = posterior.labels[:, ::step].reshape(-1, len(posterior.items))
    return [
        {frozenset(np.flatnonzero(draw == name).tolist()) for name in np.unique(draw)}
        for draw in labels
    ]


@pytest.mark.parametrize("seed", range(4))
def test_groups_hold_every_draw(seed):
    posterior = random_posterior(seed, n=15)
    groups = distinct_clusters(posterior.draws)
    assert partitions_of(groups, 15) == expected(posterior)


def test_draws_are_thinned_when_there_are_too_many_runs():
    posterior = random_posterior(1, n=15, n_draws=16)
    whole = distinct_clusters(posterior.draws)
    fewer = distinct_clusters(posterior.draws, max_runs=len(whole.start) // 2)
    step = whole.n_draws // fewer.n_draws
    assert step > 1
    assert partitions_of(fewer, 15) == expected(posterior, step)


def test_values_belong_to_their_groups():
    posterior = random_posterior(2)
    groups = distinct_clusters(posterior.draws, posterior.likelihood.centre(posterior.items))
    features = posterior.items.features
    assert list(groups.values) == ["x", "y", "diameter"]
    rows = np.column_stack([*groups.values.values()])
    rows[:, 2] = np.log(rows[:, 2])
    for draw, g, values in zip(groups.value_draw, groups.value_group, rows, strict=True):
        members = groups.members[groups.offsets[g] : groups.offsets[g + 1]]
        # a made-up cluster lies at its members' mean
        assert values == pytest.approx(features[members].mean(axis=0), rel=1e-5)
        runs = slice(groups.run_offsets[g], groups.run_offsets[g + 1])
        assert ((groups.start[runs] <= draw) & (draw < groups.stop[runs])).any()


def test_consensus_of_every_threshold_is_that_of_the_catalogue():
    posterior = random_posterior(3)
    found = consensus_draws(
        posterior.draws, posterior.point_partition().labels, posterior.items.families, (1, 2, 3)
    )
    p = posterior.catalogue()["p_consensus"].to_numpy()
    assert found[1] / posterior.labels[..., 0].size == pytest.approx(p)
    assert (np.diff(found, axis=0) <= 0).all()


def test_packed_arrays_are_read_back():
    packer = Packer()
    packer.counts("a", [0, 255])
    packer.counts("b", [[1, 256], [3, 4]])
    packer.floats("c", [0.5, -1.0])
    packer.floats("d", [np.pi], "float64")
    packer.counts("e", [])
    content = base64.b64decode(packer.base64())
    kinds = {"Uint8": "u1", "Uint16": "<u2", "Float32": "<f4", "Float64": "<f8"}
    read = {
        name: np.frombuffer(content, kinds[kind], length, start).tolist()
        for name, (kind, start, length) in packer.table.items()
    }
    assert read == {"a": [0, 255], "b": [1, 256, 3, 4], "c": [0.5, -1.0], "d": [np.pi], "e": []}
    assert all(start % 8 == 0 for _, start, _ in packer.table.values())


def test_nothing_in_the_data_ends_its_element():
    evil = "</script><!--<script>&"
    text = script_json({evil: [evil]})
    assert not set("<>&") & set(text)
    assert json.loads(text) == {evil: [evil]}


def test_an_image_is_embedded_at_its_place():
    pixels = np.linspace(0.0, 1.0, 5000 * 30).reshape(30, 5000)
    contents = Contents(random_posterior(2), Underlay(pixels, (0.0, 5000.0, 30.0, 0.0)))
    image = make_payload(contents)[0]["image"]
    assert image["extent"] == [0.0, 5000.0, 30.0, 0.0]
    assert image["uri"].startswith("data:image/jpeg;base64,")


NODE = shutil.which("node")
READ = """
const text = require("fs").readFileSync(0, "utf8");
const { table, packed, compressed } = JSON.parse(text);
arraysOf(packed, table, compressed).then((arrays) => {
  const listed = ([name, values]) => [name, values.constructor.name, Array.from(values)];
  process.stdout.write(JSON.stringify(Object.entries(arrays).map(listed)));
});
"""


@pytest.mark.skipif(NODE is None, reason="node is not there to run the page's own reading")
@pytest.mark.parametrize("large", [False, True])
def test_the_page_reads_what_was_packed(large, monkeypatch):
    monkeypatch.setattr(data, "LARGE", 0 if large else 10**9)
    rng = np.random.default_rng(2)
    given = {
        "small": rng.integers(0, 200, 33),
        "middle": rng.integers(0, 60_000, 1_001),
        "whole": rng.integers(0, 4_000_000_000, 17),
        "none": np.zeros(0, np.int64),
        "again": np.zeros(0, np.int64),
    }
    packer = Packer()
    for name, values in given.items():
        packer.counts(name, values)
    given["real"], given["exact"] = rng.normal(size=501).astype("f4"), rng.normal(size=9)
    packer.floats("real", given["real"])
    packer.floats("exact", given["exact"], "float64")
    packer.floats("same", given["real"])
    given["same"] = given["real"]
    assert packer.compressed == large
    order = {"table": packer.table, "packed": packer.base64(), "compressed": packer.compressed}
    script = resources.files("dfcrp.report.explorer").joinpath("page", "base64.js").read_text()
    answer = subprocess.run(
        [NODE, "-e", script + READ], input=json.dumps(order), capture_output=True, text=True
    )
    assert answer.returncode == 0, answer.stderr
    found = {name: (kind, values) for name, kind, values in json.loads(answer.stdout)}
    assert set(found) == set(given)
    for name, (kind, values) in found.items():
        assert kind == f"{packer.table[name][0]}Array"
        assert values == given[name].tolist()


def test_rough_numbers_keep_what_is_seen():
    rng = np.random.default_rng(5)
    places, sizes = rng.uniform(-9e3, 9e3, 4_000), rng.lognormal(3.0, 1.0, 4_000)
    packer = Packer(rough=True)
    packer.floats("place", places, step=unseen(2))
    packer.floats("size", sizes, bits=SIZE_BITS)
    for name, given, most in (("place", places, 0.0005 + 0.0005), ("size", sizes, None)):
        _, start, length = packer.table[name]
        found = np.frombuffer(bytes(packer.content[start : start + 4 * length]), "<f4")
        limit = most if most is not None else given / 2**SIZE_BITS
        assert (np.abs(found - given) <= limit).all()
        assert len(np.unique(found.view("u4") & 0x7F)) < 128
    plain = Packer()
    plain.floats("place", places, step=unseen(2))
    assert np.array_equal(np.frombuffer(bytes(plain.content), "<f4"), places.astype("f4"))
    plain.floats("size", sizes, bits=SIZE_BITS)
    small, large = (len(zlib.compress(one._shuffled())) for one in (packer, plain))
    assert small < 0.85 * large


def test_very_many_objects_have_no_ghosts(monkeypatch):
    contents = Contents(random_posterior(2, n=15))
    assert "ghostX" in make_payload(contents)[0]["arrays"]
    monkeypatch.setattr(embed, "MAX_GHOST_VALUES", 20)
    assert not [name for name in make_payload(contents)[0]["arrays"] if name.startswith("ghost")]


def test_pages_carry_no_types():
    """They are for the checker alone, and would make every page longer."""
    page = resources.files("dfcrp.report.explorer").joinpath("page", "filters_panel.js")
    assert "/** @param {State} state */" in page.read_text("utf-8")
    for script in (embed.SCRIPT, overview.SCRIPT):
        assert "@param" not in script
        assert "/** @returns" not in script
        # What the code does is still said.
        assert "/** Rounded as Python rounds" in script

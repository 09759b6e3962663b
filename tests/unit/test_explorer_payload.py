"""What the explorer is given: draws without loss, numbers in small types, text that stays text."""

import base64
import json

import numpy as np
import pytest

from dfcrp.plots.underlay import Underlay
from dfcrp.report.contents import Contents
from dfcrp.report.explorer.groups import distinct_clusters
from dfcrp.report.explorer.packing import Packer, script_json
from dfcrp.report.explorer.payload import make_payload
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

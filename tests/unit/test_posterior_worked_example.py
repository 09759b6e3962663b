"""The worked example of docs/summaries.md, number by number."""

import math

import numpy as np
import pytest

from dfcrp.draws import ClusterBlock, Columns, MemoryDraws
from dfcrp.summaries.catalogue import catalogue
from dfcrp.summaries.coclustering import coclustering
from dfcrp.summaries.consensus import SizeClasses, consensus_counts
from dfcrp.summaries.experts import expert_summary
from dfcrp.summaries.membership import ALONE, membership, partial_partition
from dfcrp.summaries.point_partition import credible_ball, point_partition
from reference.summary_reference import CENTRE

FAMILIES = np.array([0, 1, 2, 0, 1])
LABELS = np.array(
    [
        [[0, 0, 0, 3, 3], [0, 0, 0, 3, 3]],
        [[0, 0, 0, 3, 4], [0, 0, 2, 2, 2]],
    ]
)


@pytest.fixture
def draws():
    blocks = []
    for names, x in (
        ([0, 3, 0, 3], [10, 40, 10, 40]),
        ([0, 3, 4, 0, 2], [12, 40, 42, 12, 36]),
    ):
        offsets = np.array([0, 2, 4] if len(names) == 4 else [0, 3, 5])
        parameters = np.zeros((len(names), 3), np.float32)
        parameters[:, 0] = x
        parameters[:, 2] = math.log(20.0)
        blocks.append(ClusterBlock(offsets, np.array(names, np.int32), parameters))
    return MemoryDraws(LABELS, np.ones((2, 2)), blocks, Columns.plain(("x", "y", "log_diameter")))


def test_pairs(draws):
    pairs = coclustering(draws)
    keys = zip(pairs.first.tolist(), pairs.second.tolist(), strict=True)
    found = dict(zip(keys, pairs.probability.tolist(), strict=True))
    assert found == {
        (0, 1): 1,
        (0, 2): 0.75,
        (1, 2): 0.75,
        (2, 3): 0.25,
        (2, 4): 0.25,
        (3, 4): 0.75,
    }
    assert pairs.alone.tolist() == [0, 0, 0, 0.25, 0.25]
    assert pairs.disagreement().tolist() == [0, 0.5, 0.5, 0.5, 0.5, 0.5]


def test_partition_and_ball(draws):
    point = point_partition(draws, "vi", FAMILIES)
    assert point.labels.tolist() == [0, 0, 0, 3, 3]
    assert point.expected_loss == pytest.approx((0.4 + (6 * math.log2(3) - 4) / 5) / 4)
    assert point_partition(draws, "binder", FAMILIES).expected_loss == 1.25
    ball = credible_ball(draws, point, 0.75)
    assert ball.radius == pytest.approx(0.4)
    assert ball.horizontal.tolist() == [[0, 0, 0, 3, 4]]
    assert ball.lower.tolist() == [[0, 0, 0, 3, 4]]
    assert ball.upper.tolist() == [[0, 0, 0, 3, 3]]


def test_members(draws):
    labels = np.array([0, 0, 0, 3, 3], np.int32)
    result = membership(labels, draws)
    assert result.p_member.tolist() == [1, 1, 0.75, 0.75, 0.75]
    assert result.second[2:].tolist() == [3, ALONE, ALONE]
    assert result.p_second[2:].tolist() == [0.25, 0.25, 0.25]
    assert result.stability == pytest.approx([2.75 / 3, 0.75])
    partial = partial_partition(labels, result.p_member, 0.8)
    assert partial.labels.tolist() == [0, 0, -1, -1, -1]


def test_tables(draws):
    counts = consensus_counts(draws, (2, 3), SizeClasses.none(), families=FAMILIES)
    assert counts.counts[..., 0].tolist() == [[[2, 1], [2, 1]], [[1, 1], [2, 1]]]
    experts = expert_summary(draws, FAMILIES)
    assert experts.count.tolist() == [2, 2, 1]
    assert experts.jaccard_matrix.mean[0, 1] == pytest.approx(10 / 12)
    assert experts.jaccard_matrix.mean[2].tolist() == [0.5, 0.5, 1.0]
    assert experts.jaccard.mean == pytest.approx([2 / 3, 2 / 3, 0.5])
    assert experts.size_1.mean.tolist() == [50, 50, 0]
    assert experts.all_but_one.mean.tolist() == [0, 0, 100]


def test_rows(draws):
    labels = np.array([0, 0, 0, 3, 3], np.int32)
    members = membership(labels, draws)
    table = catalogue(
        draws,
        labels,
        members,
        families=FAMILIES,
        expert_names=["A", "B", "C"],
        min_experts=3,
        centre=CENTRE,
    )
    assert table["x"].tolist() == [11, 39]
    assert table["x_sd"] == pytest.approx([math.sqrt(4 / 3), 2])
    assert table["p_consensus"].tolist() == [0.75, 0.25]
    assert table["experts"].tolist() == ["A;B;C", "A;B"]

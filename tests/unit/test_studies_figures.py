"""The paper's figures as data, and the smaller studies on small input."""

from __future__ import annotations

import json

import numpy as np
import pytest

from dfcrp import prior
from dfcrp.baselines import Length, compare
from dfcrp.posterior.posterior import Posterior
from dfcrp.report.comparison import criteria_rows, write_comparison
from dfcrp.report.tables import cell_text, markdown_table
from dfcrp.simulate import paper_design
from dfcrp.values import as_json
from shared_data import highlands_path
from studies import paper_figures as paper
from studies.highlands import HighlandsLength, reproduce_highlands, run_dbscan
from studies.highlands_data import Highlands, load_highlands
from studies.mixing import (
    ChainRecord,
    MixingLength,
    doubtful_pairs,
    measures,
    reproduce_mixing,
    speedups,
    summary_rows,
)
from studies.prior_table import (
    FAMILIES,
    listed_partitions,
    reproduce_prior_table,
    run_sampler,
    theoretical,
)
from studies.radius import RadiusLength, reproduce_radius, round_up


def test_the_paper_s_figures_are_consistent():
    assert sum(row.count for row in paper.EXPERTS) == paper.HIGHLANDS_MARKINGS
    assert {row.letter for row in paper.EXPERTS} == set(paper.EXPERT_NAMES)
    at_five = [row.dbscan for row in paper.CONSENSUS if row.min_experts == 5]
    assert sum(at_five) == 889
    assert all(row.lo <= row.mean <= row.hi for row in paper.CONSENSUS)
    assert sum(row.size_1[0] for row in paper.EXPERTS) == pytest.approx(100, abs=0.01)
    assert sum(row.size_10[0] for row in paper.EXPERTS) == pytest.approx(100, abs=0.01)
    for minimum, quarter, mean, three_quarters, maximum in paper.ARI.values():
        assert minimum <= quarter <= three_quarters <= maximum
        assert minimum <= mean <= maximum
    assert paper.ARI["dfcrp"][2] - paper.ARI["crp"][2] == pytest.approx(paper.ARI["difference"][2])
    ratio = paper.MIXING_MINUTES["unmodified"] / paper.MIXING_MINUTES["paper"]
    assert ratio == pytest.approx(paper.MIXING_SPEEDUP, abs=0.05)
    assert sum(paper.PRIOR_EMPIRICAL) == pytest.approx(1, abs=0.0021)


def test_partitions_stand_in_the_paper_s_order():
    listed = listed_partitions()
    assert len(listed) == len(set(listed)) == len(list(prior.partitions(FAMILIES))) == 21
    np.testing.assert_allclose(theoretical(), paper.PRIOR_THEORETICAL, atol=0.0005)
    assert theoretical().sum() == pytest.approx(1)


@pytest.mark.parametrize("sampler", ["exact", "paper", "unmodified"])
def test_samplers_fit_the_enumerated_prior(sampler):
    # χ² at the level 1e-4, fixed seed. Every fifth scan of six items is as good as independent.
    result = run_sampler(sampler, scans=20_000, thin=5, seed=4)
    assert result.p_value > 1e-4
    assert result.proportions.sum() == pytest.approx(1)
    assert result.ess > 0.5 * result.draws


def test_the_prior_table_is_written(tmp_path):
    reproduce_prior_table(tmp_path, scans=500, thin=1)
    page = (tmp_path / "prior-table.md").read_text()
    assert "agrees with the paper's theoretical column in every printed digit" in page
    stored = json.loads((tmp_path / "prior-table.json").read_text())
    assert len(stored["partitions"]) == 21
    assert stored["provenance"]["settings"]["scans"] == 500


@pytest.fixture(scope="module")
def stand_in() -> Highlands:
    return load_highlands(None, seed=2, scale=1.0)


@pytest.fixture(scope="module")
def small_stand_in() -> Highlands:
    return load_highlands(None, seed=2, scale=0.03)


def test_a_stand_in_says_so(stand_in, small_stand_in):
    assert not stand_in.real
    assert "GENERATED STAND-IN" in stand_in.note
    assert len(stand_in.markings) == paper.HIGHLANDS_MARKINGS
    assert len(small_stand_in.markings) < 400


def test_dbscan_gives_the_published_counts():
    data = load_highlands(highlands_path())
    assert data.real
    assert len(data.markings) == paper.HIGHLANDS_MARKINGS
    five, six = run_dbscan(data, 5), run_dbscan(data, 6)
    assert five.before_cut == 1170
    assert five.after_cut == 889
    assert five.by_class == (755, 94, 40)
    assert six.by_class == (714, 87, 35)
    assert data.letter("Chapman") == "D"
    counts = {data.letter(name): n for name, n in zip(
        data.markings.experts, np.bincount(data.markings.families), strict=True)}  # fmt: skip
    assert counts == {row.letter: row.count for row in paper.EXPERTS}


def test_highlands_on_a_stand_in(tmp_path, small_stand_in):
    length = HighlandsLength(chains=2, scans=30, burn_in=10, thin=1)
    found = reproduce_highlands(tmp_path, small_stand_in, length)
    assert len(found["consensus"]) == 9
    assert len(found["experts"]) == 11
    assert "our mean is" not in found["consensus"][0]  # nothing to compare a stand-in with
    page = (tmp_path / "highlands.md").read_text()
    assert "GENERATED STAND-IN" in page
    for name in ("counts-by-size.png", "jaccard.png", "singletons.png", "consensus.csv"):
        assert (tmp_path / name).exists()


def test_highlands_beside_the_paper(tmp_path, small_stand_in):
    # Items that pass for the real ones: every row then has the paper's columns.
    as_real = Highlands(small_stand_in.markings, small_stand_in.everything, real=True)
    found = reproduce_highlands(tmp_path, as_real, HighlandsLength(1, 20, 10, 1))
    assert {row["our mean is"] for row in found["consensus"]} <= {"inside", "outside"}
    assert all("size 1 is" in row for row in found["experts"])


def test_radius_on_a_stand_in(tmp_path, stand_in):
    length = RadiusLength(chains=1, scans=40, burn_in=20, timed_scans=2, whole_scans=0)
    choice = reproduce_radius(tmp_path, stand_in, length)
    assert choice.suggested_px == choice.clean_px >= choice.table.widest
    assert (np.diff(choice.table.violating) <= 0).all()
    assert (tmp_path / "radius.png").exists()
    stored = json.loads((tmp_path / "radius.json").read_text())
    assert stored["suggested_px"] == choice.suggested_px
    assert not stored["real_data"]


def test_radii_are_rounded_up():
    assert [round_up(width) for width in (28.7, 30.0, 70.5)] == [30.0, 30.0, 75.0]


def test_mixing_on_a_stand_in(tmp_path, stand_in):
    length = MixingLength(chains=1, seconds=0.1, warm_up_seconds=0.05, radii=(75.0,))
    rows = reproduce_mixing(tmp_path, stand_in, length, samplers=("exact", "paper"))
    assert {row["sampler"] for row in rows} == {"exact", "paper"}
    assert all(row["seconds"] >= 0.1 for row in rows)
    assert "How many times faster" in (tmp_path / "mixing.md").read_text()


def made_up_chain(sampler: str, stay: float, seconds: float, seed: int = 1) -> ChainRecord:
    """Two partitions of four items, each kept with probability ``stay`` from scan to scan."""
    rng = np.random.default_rng(seed)
    state = np.cumsum(rng.random(4000) > stay) % 2
    labels = np.where(state[:, np.newaxis] == 1, [0, 0, 2, 3], [0, 1, 2, 3]).astype(np.int32)
    noise = rng.standard_normal(4000)
    return ChainRecord(sampler, seconds, noise, noise, labels)


def test_a_slower_chain_is_called_slower():
    fast, slow = made_up_chain("exact", 0.5, 10.0), made_up_chain("paper", 0.95, 10.0)
    pairs = doubtful_pairs([fast, slow])
    assert pairs.tolist() == [[0, 1]]
    assert measures(fast, pairs)["pairs, slowest"] > 5 * measures(slow, pairs)["pairs, slowest"]
    rows = summary_rows([fast, slow])
    ratio = {row["measure"]: row["exact over paper"] for row in speedups(rows)}
    # With stay s the autocorrelation time is s / (1 - s): 1 against 19.
    assert 10 < ratio["number of clusters"] < 40
    assert ratio["time of a scan"] == pytest.approx(1)


def test_a_chain_that_never_moves_has_one_effective_draw():
    stuck = ChainRecord("exact", 1.0, np.zeros(50), np.ones(50), np.zeros((50, 4), np.int32))
    assert measures(stuck, np.zeros((0, 2), np.int64))["order"] == 1.0


def test_comparison_is_written(tmp_path):
    markings = paper_design(4, n_objects=8)
    result = compare(markings, ["kmeans", "dbscan", "dfcrp"], length=Length(2, 30, 10))
    tables = write_comparison(result, tmp_path, {"seed": 1})
    assert "Agreement with the truth" in tables
    assert isinstance(result.outcomes[0].posterior, Posterior)
    for name in ("compare.csv", "compare.json", "compare.md", "compare.png"):
        assert (tmp_path / name).exists()
    criteria = {row["criterion"]: row for row in criteria_rows(result)}
    # Here the silhouette chooses k, which the paper does not count.
    assert criteria["Unspecified k"]["k-means"] == "✓ (paper: –)"
    assert criteria["Incorporates expert structure"]["DFCRP"] == "✓"


def test_tables_as_text():
    rows = [{"a": 1, "b": 0.12345, "c": True}, {"a": 22, "c": False}]
    assert markdown_table(rows).splitlines() == [
        "| a  | b     | c |",
        "|----|-------|---|",
        "| 1  | 0.123 | ✓ |",
        "| 22 |       |   |",
    ]
    assert cell_text(float("nan")) == ""
    assert as_json({"a": np.float64(2.0), "b": np.array([1, 2]), "c": float("inf")}) == {
        "a": 2.0,
        "b": [1, 2],
        "c": None,
    }

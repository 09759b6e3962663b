"""Convergence numbers against their definitions, and the verdict's words."""

import numpy as np
import pytest

from dfcrp.draws import MemoryDraws
from dfcrp.summaries.coclustering import coclustering
from dfcrp.summaries.consensus import SizeClasses, consensus_counts
from dfcrp.summaries.convergence import (
    Limits,
    check_convergence,
    choose_burn_in,
    diagnose,
    explain_pairs,
    pair_ess,
    pair_rhat,
)
from reference import summary_reference as twin


def draws_of(labels, alpha=None):
    labels = np.asarray(labels)
    return MemoryDraws(labels, np.full(labels.shape[:2], np.nan) if alpha is None else alpha)


def two_by_two(together):
    """Draws of two markings that are together where the (chains, draws) array says so."""
    together = np.asarray(together, bool)
    return draws_of(np.stack((np.zeros(together.shape), ~together), axis=2).astype(np.int32))


def test_diagnose_good_and_bad_chains():
    # Independent normal draws, 8 half chains of 1000: R-hat² - 1 is chi²(7) / 7000 or so, and
    # exceeds 0.02 with probability < 1e-20.
    rng = np.random.default_rng(0)
    good = rng.normal(size=(4, 2000))
    found = diagnose("good", good)
    assert found.rhat < 1.01
    assert found.ess > 5000
    shifted = good + np.array([[0.0], [0.0], [0.0], [1.0]])
    assert diagnose("one chain apart", shifted).rhat > 1.1
    wider = good * np.array([[1.0], [1.0], [1.0], [5.0]])
    assert diagnose("one chain wider", wider).rhat > 1.1


def test_diagnose_constants():
    same = diagnose("same", np.full((3, 20), 7))
    assert (same.rhat, same.ess) == (1.0, 60.0)
    assert diagnose("apart", np.tile([[1.0], [2.0]], 20)).rhat == np.inf
    assert diagnose("one chain stuck", [[1, 2] * 10, [1] * 20]).rhat > 1.0
    assert np.isnan(diagnose("short", np.ones((2, 3))).rhat)


def test_diagnose_one_chain_compares_its_halves():
    # False alarm: chi²(3) / 3 / 250 above 1.02² - 1, 2e-6.
    rng = np.random.default_rng(1)
    assert diagnose("still", rng.normal(size=(1, 1000))).rhat < 1.02
    assert diagnose("drifting", rng.normal(size=(1, 1000)) + np.linspace(0, 4, 1000)).rhat > 1.1


@pytest.mark.parametrize("seed", range(3))
def test_pair_rhat_is_the_rank_rhat_of_the_indicator(seed):
    draws, labels, _, _ = twin.random_draws(seed, n_chains=3, n_draws=40)
    pairs = coclustering(draws)
    rhat = pair_rhat(pairs)
    for p, (i, j) in enumerate(zip(pairs.first, pairs.second, strict=True)):
        series = (labels[:, :, i] == labels[:, :, j]).astype(float)
        assert rhat[p] == pytest.approx(twin.split_rhat(series))
        if 0.0 < series.mean() < 1.0:
            assert rhat[p] == pytest.approx(diagnose("", series).rhat)


def test_pair_rhat_of_constant_halves():
    stuck = np.zeros((2, 20), bool)
    stuck[1] = True
    assert pair_rhat(coclustering(two_by_two(stuck))).tolist() == [np.inf]
    assert pair_rhat(coclustering(two_by_two(~stuck | stuck))).tolist() == [1.0]
    assert np.isnan(pair_rhat(coclustering(two_by_two([[True]])))).all()


def test_pair_ess_is_that_of_the_indicator():
    rng = np.random.default_rng(2)
    together = rng.random((2, 300)) < 0.5
    draws = two_by_two(together)
    found = pair_ess(draws, coclustering(draws), np.array([0]))
    assert found[0] == pytest.approx(diagnose("", together).ess_bulk)


def test_explain_pairs_names_the_culprit():
    star = [(0, 9), (1, 9), (2, 9), (3, 9)]
    assert explain_pairs(np.array([*star, (4, 5)])) == (4, 5, 9)
    assert explain_pairs(np.zeros((0, 2), np.int64)) == ()


def test_good_run():
    # 4 x 1000 independent draws. False alarm: chi²(7) / 7 / 500 above 1.02² - 1, < 1e-20.
    rng = np.random.default_rng(3)
    base = twin.random_draws(0)[1].reshape(-1, 9)
    labels = base[rng.integers(0, len(base), (4, 1000))]
    draws = draws_of(labels, rng.gamma(3.0, size=(4, 1000)))
    consensus = consensus_counts(draws, (2,), SizeClasses.none())
    verdict = check_convergence(draws, consensus, limits=Limits(rhat=1.02))
    assert verdict.ok
    assert [d.name for d in verdict.diagnostics] == [
        "α",
        "number of clusters",
        "clusters of at least 2, all",
    ]
    assert verdict.pairs_disagreeing == 0
    assert verdict.undecided == ()
    assert verdict.max_pair_disagreement < 0.2
    assert "long enough" in verdict.advice[0]
    assert set(verdict.as_dict()) >= {
        "max_rhat",
        "min_ess",
        "max_pair_disagreement",
        "pairs_disagreeing",
        "ok",
    }


def test_chains_that_disagree_on_one_marking():
    # marking 2 is with (0, 1) in one chain and with (3, 4) in the other: counts agree
    rng = np.random.default_rng(4)
    left, right = [0, 0, 0, 3, 3, 5], [0, 0, 2, 2, 2, 5]
    labels = np.array([[left] * 400, [right] * 400])
    flicker = rng.random((2, 400)) < 0.5
    labels[..., 5] = np.where(flicker, 5, 0)
    verdict = check_convergence(draws_of(labels), names="abcdef")
    assert not verdict.ok
    assert verdict.max_rhat < 1.05
    assert verdict.max_pair_disagreement == 1.0
    assert verdict.pairs_disagreeing == 5
    assert verdict.undecided[0] == 2
    assert "undecided between chains: c" in " ".join(verdict.advice)
    assert "stuck" in verdict.advice[-1]


def test_short_run_says_how_much_longer():
    # an autoregressive α whose effective sample size is about a third of what is asked for
    rng = np.random.default_rng(5)
    alpha = np.zeros((4, 1000))
    for t in range(1, 1000):
        alpha[:, t] = 0.95 * alpha[:, t - 1] + rng.normal(size=4)
    labels = np.zeros((4, 1000, 2), np.int32)
    verdict = check_convergence(draws_of(labels, alpha), limits=Limits(rhat=1.2, ess=400))
    assert not verdict.ok
    assert verdict.advice[0].startswith("The effective sample size of α is")
    factor = int(np.ceil(400 / verdict.min_ess))
    assert 2 <= factor <= 10
    assert verdict.advice[-1] == f"Run {factor} times longer."


def test_one_chain_and_too_few_draws():
    verdict = check_convergence(draws_of(np.zeros((1, 500, 3), np.int32)))
    assert verdict.ok
    assert np.isnan(verdict.max_pair_disagreement)
    assert verdict.as_dict()["max_pair_disagreement"] is None
    assert "cannot be checked" in verdict.advice[-1]
    short = check_convergence(draws_of(np.zeros((2, 3, 3), np.int32)))
    assert not short.ok
    assert "too few" in short.advice[0]


def test_burn_in_is_the_first_fraction_that_is_good():
    # False alarm: chi²(7) / 7 / 500 above 1.02² - 1 at any fraction, < 1e-20.
    rng = np.random.default_rng(6)
    series = rng.normal(size=(4, 2000))
    assert choose_burn_in({"still": series}, rhat=1.02) == 200
    late = series.copy()
    late[:, :450] += np.array([[20.0], [-20.0], [5.0], [-5.0]])
    assert choose_burn_in({"still": series, "late": late}, rhat=1.02) == 500
    never = series + np.array([[0.0], [0.0], [0.0], [9.0]])
    assert choose_burn_in({"never": never}, rhat=1.02) == 1000


def test_an_infinite_rhat_is_put_in_words():
    """Two chains that never move, in different places."""
    stuck = np.repeat([[True], [False]], 40, axis=1)
    verdict = check_convergence(two_by_two(stuck))
    assert verdict.max_rhat == np.inf
    said = " ".join(verdict.advice)
    assert "The chains contradict each other on number of clusters: each stays at one value" in said
    assert "never change within a chain (R-hat infinite)" in said
    assert "inf;" not in said
    assert "R-hat inf)" not in said

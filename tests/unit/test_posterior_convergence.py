"""Convergence numbers against their definitions, and the verdict's words."""

from dataclasses import replace

import numpy as np
import pytest

from dfcrp.cli.job import describe
from dfcrp.draws import Columns, MemoryDraws, Variable
from dfcrp.fitting import fit
from dfcrp.items.items import Items
from dfcrp.items.site import Site
from dfcrp.likelihoods.base import HELD
from dfcrp.likelihoods.circle.scatter import LAW
from dfcrp.posterior.images import judge_images
from dfcrp.posterior.posterior import Posterior
from dfcrp.report.sections.run import verdict_words
from dfcrp.summaries import convergence
from dfcrp.summaries.coclustering import coclustering
from dfcrp.summaries.consensus import SizeClasses, consensus_counts
from dfcrp.summaries.convergence import (
    KnownOfRun,
    Limits,
    check_convergence,
    choose_burn_in,
    diagnose,
    explain_pairs,
    pair_ess,
    pair_rhat,
)
from reference import summary_reference as twin
from reference.kind_posteriors import kind_posterior
from reference.small_posteriors import posterior_of, random_markings


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


def _chains(kind, rng, shape):
    x = rng.normal(size=shape)
    if kind in ("sticky", "alternating"):
        for t in range(1, shape[1]):
            x[:, t] += {"sticky": 0.95, "alternating": -0.9}[kind] * x[:, t - 1]
    if kind == "counts":
        return rng.poisson(1.5, shape).astype(float)
    if kind == "rare":
        return (rng.random(shape) < 0.1).astype(float)
    if kind == "repeated":
        return np.repeat(x[:, : -(-shape[1] // 7)], 7, axis=1)[:, : shape[1]]
    return x


@pytest.mark.parametrize(
    "kind", ["independent", "sticky", "alternating", "counts", "rare", "repeated"]
)
def test_diagnose_agrees_with_arviz(kind):
    array_stats = pytest.importorskip("arviz_stats.base").array_stats
    rng = np.random.default_rng(3)
    for _ in range(40):
        shape = (int(rng.integers(1, 6)), int(rng.integers(8, 200)))
        series = _chains(kind, rng, shape)
        if (series == series[:, :1]).all():
            continue
        found, half = diagnose("", series), shape[1] // 2
        compared = series if shape[0] > 1 else series[:, : 2 * half].reshape(2, half)
        with np.errstate(all="ignore"):
            rhat = array_stats.rhat(compared, method="rank")
            bulk = array_stats.ess(series, method="bulk")
            tail = array_stats.ess(series, method="tail", prob=0.05)
        expected = [rhat, bulk, tail]
        np.testing.assert_allclose([found.rhat, found.ess_bulk, found.ess_tail], expected, 1e-9)


def test_pair_ess_of_every_kind_of_history(monkeypatch):
    rng = np.random.default_rng(4)
    histories = np.array(
        [
            np.zeros((3, 60)),
            np.tile([[0.0], [1.0], [0.0]], 60),
            *(rng.random((5, 3, 60)) < 0.3),
            *(_chains("repeated", rng, (3, 60)) > 0.0 for _ in range(3)),
        ]
    ).astype(np.uint8)
    monkeypatch.setattr(convergence, "pair_histories", lambda *_: histories)
    monkeypatch.setattr(convergence, "PAIRS_AT_ONCE", 4)
    draws = draws_of(np.zeros((3, 60, 2), np.int32))
    some = np.zeros(len(histories), np.int64)
    pairs = coclustering(draws)
    expected = [diagnose("", history).ess_bulk for history in histories]
    np.testing.assert_allclose(pair_ess(draws, pairs, some), expected, 1e-9)


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
        "number of clusters",
        "clusters of at least 2 experts",
    ]
    assert [d.name for d in verdict.parameters] == ["α"]
    assert verdict.parameters_ok
    assert len(verdict.advice) == 1
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
    verdict = check_convergence(draws_of(labels), known=KnownOfRun(names="abcdef"))
    assert not verdict.ok
    assert verdict.max_rhat < 1.05
    assert verdict.max_pair_disagreement == 1.0
    assert verdict.pairs_disagreeing == 5
    assert verdict.undecided[0] == 2
    assert "undecided between chains: c" in " ".join(verdict.advice)
    assert "a longer run will not help" in verdict.advice[-1]


def sluggish(rng, chains=4, draws=1000, rho=0.95):
    """An autoregressive series: of 4,000 draws about 100 are effective."""
    values = np.zeros((chains, draws))
    for t in range(1, draws):
        values[:, t] = rho * values[:, t - 1] + rng.normal(size=chains)
    return values


def test_short_run_says_how_much_longer():
    """A number that is read, whose effective sample size is about a third of what is asked for."""
    rng = np.random.default_rng(5)
    together = sluggish(rng) > 0.0
    limits = Limits(rhat=1.2, ess=400, pair_difference=1.0)
    verdict = check_convergence(two_by_two(together), limits=limits)
    assert not verdict.ok
    assert verdict.advice[0].startswith("The effective sample size of number of clusters is")
    factor = int(np.ceil(400 / verdict.min_ess))
    assert 2 <= factor <= 10
    assert verdict.advice[-1] == f"Run {factor} times longer."


def stored(labels, shared, values):
    """Draws with numbers of their own: the variables and their values (chains, draws, width)."""
    alpha = np.full(labels.shape[:2], np.nan)
    return MemoryDraws(labels, alpha, None, Columns(shared=shared), values)


def test_parameters_behind_the_answers_do_not_hold_up_a_run():
    """Counts have converged; α is slow, and the verdict says so and how long it would take."""
    rng = np.random.default_rng(5)
    labels = np.zeros((4, 1000, 2), np.int32)
    known = KnownOfRun(
        words={"α": "concentration: larger means more clusters"}, scans=1200, seconds=200.0
    )
    limits = Limits(rhat=1.2, ess=400)
    verdict = check_convergence(draws_of(labels, sluggish(rng)), limits=limits, known=known)
    assert verdict.ok
    assert not verdict.parameters_ok
    assert verdict.max_rhat == 1.0
    (alpha,) = verdict.parameters
    factor = int(np.ceil(400 / alpha.ess))
    assert 2 <= factor <= 10
    long_enough, behind = verdict.advice
    assert "long enough" in long_enough
    assert "concentration: larger means more clusters (R-hat" in behind
    assert "are good all the same" in behind
    minutes = round(factor * 200 / 60)
    assert f"{1200 * factor:,} scans of each chain, about {minutes} min" in behind
    said = verdict.as_dict()
    assert (said["ok"], said["parameters"]["ok"]) == (True, False)
    assert said["parameters"]["min_ess"] == pytest.approx(alpha.ess)
    assert said["min_ess"] > 400


def test_an_answer_that_is_slow_does():
    """The same series as a number that is read, such as objects missed."""
    rng = np.random.default_rng(5)
    labels, values = np.zeros((4, 1000, 2), np.int32), sluggish(rng)[:, :, np.newaxis]
    for behind in (False, True):
        draws = stored(labels, (Variable("n_missed", behind=behind),), values)
        verdict = check_convergence(draws, limits=Limits(rhat=1.2, ess=400))
        assert verdict.ok == behind
        assert not (verdict.ok and verdict.parameters_ok)


def test_what_the_data_say_nothing_of_is_left_out():
    """Chains that differ on such a parameter (R-hat 3) are no reason to run longer."""
    rng = np.random.default_rng(5)
    values = rng.normal(size=(4, 1000, 2)) + np.array([0.0, 3.0]) * np.arange(4).reshape(4, 1, 1)
    labels = np.zeros((4, 1000, 2), np.int32)
    draws = stored(labels, Columns.plain((), ("scale_x", "growth_x")).shared, values)
    assert not check_convergence(draws, limits=Limits(rhat=1.02)).parameters_ok
    known = KnownOfRun(words={"growth_x": "how scatter grows"}, unheard=frozenset({"growth_x"}))
    verdict = check_convergence(draws, limits=Limits(rhat=1.02), known=known)
    assert verdict.ok
    assert verdict.parameters_ok
    assert [d.name for d in verdict.parameters] == ["scale_x"]
    assert verdict.left_out == ("how scatter grows",)
    assert verdict.as_dict()["parameters"]["left_out"] == ["how scatter grows"]
    assert "These data say nothing about how scatter grows" in verdict.advice[-1]


def test_one_expert_alone_gets_no_verdict_on_merging():
    rng = np.random.default_rng(5)
    labels = np.tile(np.arange(3, dtype=np.int32), (2, 50, 1))
    draws = draws_of(labels, sluggish(rng, 2, 50))
    known = KnownOfRun(noun="marking", mergeable=False)
    verdict = check_convergence(draws, known=known, limits=Limits(ess=50))
    (sentence,) = verdict.advice
    assert not verdict.merging
    assert verdict_words(verdict)[0] == "unknown"
    assert "nothing can be merged" in sentence
    assert "every marking is an object of its own" in sentence
    assert verdict.as_dict()["merging"] is False
    merged = replace(verdict, merging=True, advice=())
    alone = judge_images({"p": verdict, "q": verdict}, verdict.diagnostics, 0)
    assert not alone.merging
    assert verdict_words(alone)[0] == "unknown"
    assert "nothing can be merged" in " ".join(alone.advice)
    assert "long enough" not in " ".join(alone.advice)
    both = judge_images({"p": verdict, "q": merged}, verdict.diagnostics, 0)
    assert both.merging
    assert "long enough" in " ".join(both.advice)


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


@pytest.mark.parametrize("alike", [False, True])
def test_equal_sizes_say_nothing_of_growth(alike):
    rng = np.random.default_rng(2)
    families = np.repeat([0, 1, 2], 8)
    markings = random_markings(rng, families, base=np.tile(np.arange(8), 3))
    diameter = np.full(24, 30.0) if alike else markings.diameter
    markings = Items.circles(
        x=markings.x, y=markings.y, diameter=diameter, expert=markings.expert, id=markings.id
    )
    labels = np.tile(np.tile(np.arange(8), 3), (2, 40, 1))
    plain = posterior_of(labels, markings)
    columns = plain.draws.columns.joined(Columns.plain((), LAW))
    clusters = [plain.draws.clusters(chain, 0, 40) for chain in range(2)]
    shared = rng.normal(size=(2, 40, 4)) + 5.0 * np.arange(2).reshape(2, 1, 1)
    draws = MemoryDraws(plain.labels, plain.alpha, clusters, columns, shared)
    verdict = Posterior(draws, markings, plain.config, plain.record).verdict
    growths = {
        f"how the scatter of {what} grows with diameter" for what in ("positions", "diameters")
    }
    # Where all diameters are equal nothing is learned of their scatter, either.
    silent = growths | {"scatter of diameters"}
    assert set(verdict.left_out) == (silent if alike else set())
    judged = {d.name for d in verdict.parameters}
    assert "scatter of positions" in judged
    assert silent.isdisjoint(judged) == alike


@pytest.mark.parametrize("kind", ["boxes", "ellipses", "points"])
def test_equal_sizes_of_other_kinds(kind):
    posterior = kind_posterior(kind)
    assert posterior.likelihood.unheard(posterior.items) == frozenset()
    growing = {name for name in posterior.draws.columns.names if name.startswith("growth_")}
    assert bool(growing) == (kind != "points")
    columns = {
        name: np.full(len(values), 7.0) if name in posterior.likelihood.positive else values
        for name, values in posterior.items.columns.items()
    }
    alike = Items.from_columns(columns, posterior.items.expert, kind=kind)
    assert posterior.likelihood.unheard(alike) == growing
    for items, free in ((posterior.items, 0.7), (alike, HELD)):
        layout = posterior.likelihood.lay_out(items, items.families, posterior.config)
        sd = dict(zip(layout.columns.names, layout.hyper.law_sd, strict=True))
        # What grows with a size that all items share is held, or no part of the model.
        assert all(sd.get(name, HELD) == free for name in growing)


def test_boxes_of_one_size_stay_as_they_are():
    """Nothing is known of a scatter by which to set them apart."""
    rng = np.random.default_rng(3)
    x, y = (np.tile(rng.uniform(0.0, 400.0, 9), 3) + rng.normal(0.0, 0.5, 27) for _ in range(2))
    columns = {"x": x, "y": y, "width": np.full(27, 7.0), "height": np.full(27, 5.0)}
    items = Items.from_columns(columns, np.repeat(["a", "b", "c"], 9), kind="boxes")
    found = fit(items, chains=2, scans=60, seed=1, progress=False)
    table = found.catalogue()
    assert found.n_clusters[:, -1].tolist() == [9, 9]
    assert table["width"].to_numpy() == pytest.approx(np.full(9, 7.0), rel=0.05)
    assert table["height"].to_numpy() == pytest.approx(np.full(9, 5.0), rel=0.05)


@pytest.mark.parametrize("degrees", [False, True])
def test_growth_is_no_part_of_the_model_of_equal_circles(degrees):
    """Else the chains wander: R-hat of the scatter of diameters was 1.5 after 1,000 scans."""
    rng = np.random.default_rng(3)
    spread = 2.0 if degrees else 400.0
    x, y = (np.tile(rng.uniform(0.0, spread, 9), 3) for _ in range(2))
    there = Site("deg", body_radius_km=1737.4) if degrees else Site()
    for diameter, free in ((np.full(27, 3.0), False), (rng.uniform(3.0, 30.0, 27), True)):
        items = Items.circles(
            x=x + rng.normal(0.0, 1e-3 * spread, 27),
            y=y + rng.normal(0.0, 1e-3 * spread, 27),
            diameter=diameter,
            expert=np.repeat(["a", "b", "c"], 9),
            site=there,
        )
        found = fit(items, chains=2, scans=60, seed=1, progress=False)
        names = found.draws.columns.names
        shared = dict(zip(names, np.moveaxis(found.draws.shared(), 2, 0), strict=True))
        for name, believed in (("growth_x", 1.0), ("growth_d", 0.0)):
            assert (np.abs(shared[name] - believed).max() > 10 * HELD) == free
        assert bool(found.verdict.left_out) != free


def test_an_image_with_one_expert_says_that_nothing_can_be_merged():
    markings = random_markings(np.random.default_rng(1), np.zeros(5, int))
    posterior = posterior_of(np.tile(np.arange(5), (2, 220, 1)), markings)
    assert "nothing can be merged" in posterior.verdict.advice[0]
    assert "nothing can be merged" in " ".join(describe(posterior).split())
    assert "Verdict: none." in describe(posterior)
    assert "Learned from the data" not in describe(posterior)
    assert posterior.tolerances is None
    assert posterior.verdict.parameters == ()

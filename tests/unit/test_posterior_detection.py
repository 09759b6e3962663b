"""Summaries under the detection prior, against the slow twin."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest

import dfcrp
from dfcrp.draws import Columns, MemoryDraws, shared_variable
from dfcrp.errors import DfcrpWarning, InputError, SettingsError
from dfcrp.items.items import Items
from dfcrp.posterior.posterior import Posterior
from dfcrp.priors.detection import one_more_look
from dfcrp.priors.detection import update as detection_update
from dfcrp.priors.detection.curves import sensitivity_curves
from dfcrp.priors.detection.kernel import with_own
from dfcrp.settings.config import Config, RunSettings, SummarySettings
from reference import detection_reference as twin
from reference import kernel_reference as reference
from reference import small_problems as small
from reference.small_posteriors import (
    detection_layout,
    posterior_of,
    random_posterior,
    under_detection,
)

PERSONS = (("expert A", "expert C"),)


@pytest.fixture(scope="module")
def posterior():
    return under_detection(random_posterior(3, n=14, n_families=5, n_draws=30), persons=PERSONS)


def priors(posterior):
    """(chain, draw, prior) with each draw's parameters."""
    prior = detection_layout(posterior).prior
    shared = posterior.draws.shared()
    for chain in range(shared.shape[0]):
        for draw in range(shared.shape[1]):
            own = shared[chain, draw, -len(prior.own) :].copy()
            yield chain, draw, with_own(prior, own)


def clusters_of(posterior, chain, draw):
    """(members, log size) of a draw's clusters."""
    block = posterior.draws.clusters(chain, draw, draw + 1)
    size = dict(zip(block.labels.tolist(), block.parameters[:, 2].tolist(), strict=True))
    labels = posterior.labels[chain, draw]
    return [(members, size[members[0]]) for members in reference.clusters(labels.tolist())]


def test_probability_to_be_real(posterior):
    families = posterior.items.families
    expected = np.zeros(len(families))
    for chain, draw, prior in priors(posterior):
        for members, size in clusters_of(posterior, chain, draw):
            lists = [int(families[i]) for i in members]
            expected[members] += twin.chance_of_object(prior, lists, size)
    expected /= posterior.draws.n_chains * posterior.draws.n_draws
    assert posterior.detection.p_real_marking == pytest.approx(expected, abs=1e-6)
    assert posterior.members()["p_real"].to_numpy() == pytest.approx(expected, abs=1e-6)
    catalogue = posterior.catalogue()
    assert catalogue["p_real"].between(0.0, 1.0).all()


def test_every_marking_is_real_or_false(posterior):
    found = posterior.detection
    count = np.bincount(posterior.items.families)
    assert (found.listed[:, 0] + found.false[:, 0] == count).all()
    for counts in (found.seen, found.missed, found.listed, found.false):
        assert (counts[:, 0] == counts[:, 1:].sum(axis=1)).all()
    assert (found.seen_at.sum(axis=1) == found.seen[:, 0]).all()
    assert (found.missed_at.sum(axis=1) == found.missed[:, 0]).all()
    alone = np.array(
        [
            sum(len(members) == 1 for members, _ in clusters_of(posterior, chain, draw))
            for chain, draw, _ in priors(posterior)
        ]
    )
    assert (found.sizes[:, 1] == alone).all()
    assert (found.false[:, 0].sum(axis=1) <= alone).all()
    assert (found.sensitivity[:, 0] <= 1.0).all()


def test_missed_objects_have_their_expected_number():
    """Poisson numbers by their mean and variance; the false-alarm rate is 1e-6 each."""
    rng = np.random.default_rng(5)
    for expected in (0.02, 0.9, 7.0):
        drawn = np.array([detection_update.draw_poisson(rng, expected) for _ in range(20_000)])
        assert abs(drawn.mean() - expected) < 4.9 * math.sqrt(expected / 20_000)
        spread = math.sqrt((expected + 2.0 * expected**2) / 20_000)
        assert abs(drawn.var() - expected) < 4.9 * spread


def test_a_mean_that_is_not_finite_gives_a_number():
    """The counting ends, at a bound that is out of reach of any data."""
    rng = np.random.default_rng(5)
    assert detection_update.MOST_OBJECTS >= 1e7
    bounded = small.with_callees(detection_update.draw_poisson, MOST_OBJECTS=50.0)
    assert bounded(rng, math.inf) == 50.0
    assert bounded(rng, math.nan) == 0.0


def expected_missed(prior, image=0) -> float:
    """Λ_v Σ π_vg ω_l P_gv(∅; l)."""
    parameters = prior.parameters
    return parameters.expected_objects[image] * sum(
        weight * share * twin.history(prior, g, level, (), image)
        for g, weight in enumerate(twin.class_shares(prior, image)[: prior.real])
        for level, share in enumerate(parameters.size_share)
    )


def test_missed_objects_of_a_posterior():
    """Summed over draws; the false-alarm rate is 1e-6."""
    plain = random_posterior(6, n=14, n_families=5, n_draws=30)
    found = under_detection(plain, classes=2, objects_mean_sd=0.1, objects_shape=5.0)
    expected = sum(expected_missed(prior) for _, _, prior in priors(found))
    total = found.detection.missed[:, 0].sum()
    assert abs(total - expected) < 4.9 * math.sqrt(expected)
    assert found.detection.p_complete == pytest.approx([np.mean(found.detection.missed[:, 0] == 0)])


def test_curves(posterior):
    """The share of all objects of a size, seen or missed, that an expert lists."""
    found = sensitivity_curves(posterior)
    experts = range(len(posterior.items.experts))
    level = 7
    draws = list(priors(posterior))
    expected = np.zeros(len(experts))
    for _, _, prior in draws:
        weight = prior.parameters.class_weight / prior.parameters.class_weight.sum()
        for size in experts:
            for members in combinations(experts, size + 1):
                for g, w in enumerate(weight):
                    expected[list(members)] += w * twin.history(prior, g, level, members)
    assert found.sensitivity.mean[:, level] == pytest.approx(expected / len(draws), abs=1e-9)
    low = posterior.items.features[:, 2].min()
    high = posterior.items.features[:, 2].max()
    assert np.log(found.diameter[level]) == pytest.approx(low + (high - low) / 32 * 7.5)


def test_what_two_lists_of_a_person_share():
    """If all objects are alike, looking again for the other list finds the share s of them."""
    plain = random_posterior(4, n=14, n_families=5, n_draws=30)
    found = under_detection(plain, persons=PERSONS, classes=1, by_size=False)
    rows = found.detection.shared_noticing
    for f, person in enumerate(found.detection.persons.codes):
        expected = np.zeros(len(rows))
        if np.count_nonzero(found.detection.persons.codes == person) > 1:
            skill = [prior.parameters.notice[0, person] for _, _, prior in priors(found)]
            expected = 1.0 / (1.0 + np.exp(skill))
        assert rows[:, f] == pytest.approx(expected, abs=1e-9)


def test_summary_and_tables(posterior):
    summary = posterior.summary()
    assert "alpha" not in summary
    total = summary["n_objects"]["mean"] + summary["n_missed"]["mean"]
    assert summary["n_total"]["mean"] == pytest.approx(total)
    rows = {row["expert"]: row for row in summary["experts"]}
    assert rows["expert A"]["person"] == "expert A/expert C"
    assert 0.0 <= rows["expert A"]["shared_noticing"]["mean"] <= 1.0
    assert "person" not in rows["expert B"]
    for name in ("sensitivity", "false_marks"):
        assert {"mean", "lo", "hi"} == set(rows["expert B"][name])
        assert name in posterior.experts().columns
    assert [row["size_class"] for row in rows["expert B"]["by_size"]] == [
        "small",
        "medium",
        "large",
    ]


def test_a_run_is_judged_by_what_has_a_meaning(posterior):
    tally = ["n_objects", "n_missed", "n_false_marks"]
    columns = Columns.plain((), ["scale_x"]).joined(posterior.draws.columns)
    assert [columns.names[at] for at in columns.judged] == [*tally, "scale_x"]
    assert [columns.names[at] for at in columns.judged_of(behind=True)] == ["scale_x"]
    assert Columns.plain((), ("scale_x", "growth_x")).judged == [0, 1]
    judged = {d.name for d in posterior.verdict.diagnostics}
    assert judged >= {"real objects seen", "real objects missed by everyone", "false marks"}
    assert not {d.name for d in posterior.verdict.parameters} & judged


def test_parameters_have_their_axes(posterior):
    columns, experts = posterior.draws.columns, posterior.items.experts
    persons = columns.coords["person"]
    assert columns.coords["expert"] == experts
    assert persons == ("expert A/expert C", "expert B", "expert D", "expert E")
    skill = shared_variable(posterior.draws, "skill")
    assert skill.shape == (*posterior.alpha.shape, len(persons))
    for chain, draw, prior in priors(posterior):
        assert (skill[chain, draw] == prior.parameters.skill).all()
        notice = shared_variable(posterior.draws, "notice")[chain, draw]
        assert (notice == prior.parameters.notice).all()
        listing = shared_variable(posterior.draws, "listing")[chain, draw]
        assert (listing == prior.parameters.listing).all()
    found = posterior.to_arviz().posterior
    assert found["skill"].dims == ("chain", "draw", "person")
    assert found["notice"].dims == ("chain", "draw", "class", "person")
    assert found["false_marks_on"].dims == ("chain", "draw", "look")
    assert found["image_ease"].dims == ("chain", "draw", "image_of_objects")
    assert found["image_ease_sd"].dims == ("chain", "draw")
    assert found["listing"].dims == ("chain", "draw", "class", "expert")
    assert found["false_marks"].sel(expert="expert B").shape == posterior.alpha.shape


# Several images -------------------------------------------------------------------------------

IMAGES = ["a", "a", "a", "b", "b", "b", "b"]
EXPERTS = ["ann", "bob", "cho", "ann", "ann", "dee", "cho"]
#: Bob looked at b and found nothing, Eve at a; nobody found anything on c.
LOOKED = [("b", "bob"), ("a", "eve"), ("c", "ann"), ("c", "eve")]


@pytest.fixture(scope="module")
def crowd():
    rng = np.random.default_rng(8)
    with pytest.warns(DfcrpWarning, match="without being listed"):
        items = Items.circles(
            rng.uniform(0, 50, 7), rng.uniform(0, 50, 7), rng.uniform(5, 60, 7), EXPERTS,
            image=IMAGES, looked=LOOKED,
        )  # fmt: skip
    parts = [([0, 0, 0], [3, 4, 3, 3]), ([0, 1, 0], [3, 4, 3, 6]), ([0, 1, 2], [3, 4, 5, 6])]
    draws = [[*a, *b] for a, b in parts]
    labels = [[draws[k] for k in rng.integers(0, 3, 40)] for _ in range(2)]
    settings = {"classes": 2, "objects_shape": 4.0, "objects_mean_sd": 0.3, "decoys": True}
    config = Config(run=RunSettings(scans=80, burn_in=40), summary=SummarySettings(min_experts=2))
    plain = posterior_of(labels, items, config=config)
    return under_detection(plain, persons=(("ann", "bob"),), **settings)


def test_every_image_is_judged_with_the_parameters_of_all(crowd):
    families, images = crowd.items.families, crowd.items.looks.image
    expected = np.zeros(len(families))
    for chain, draw, prior in priors(crowd):
        for members, size in clusters_of(crowd, chain, draw):
            assert len(prior.parameters.class_weight) > prior.real  # there are decoys
            lists, image = [int(families[i]) for i in members], int(images[members[0]])
            expected[members] += twin.chance_of_object(prior, lists, size, image) / 80
    assert crowd.detection.p_real_marking == pytest.approx(expected, abs=1e-6)
    assert crowd["b"].detection.p_real_marking == pytest.approx(expected[3:], abs=1e-6)


def test_missed_objects_of_every_image_empty_ones_included(crowd):
    found = crowd.detection
    assert found.image_names == ("a", "b", "c")
    for image in range(3):
        expected = sum(expected_missed(prior, image) for _, _, prior in priors(crowd))
        assert abs(found.missed_on[:, image].sum() - expected) < 4.9 * math.sqrt(expected)
    assert (found.seen_on[:, 2] == 0).all()
    assert (found.missed_on.sum(axis=1) == found.missed[:, 0]).all()
    assert (found.seen_on.sum(axis=1) == found.seen[:, 0]).all()
    assert found.p_complete == pytest.approx((found.missed_on == 0).mean(axis=0))


def test_experts_count_where_they_looked(crowd):
    found, experts = crowd.detection, crowd.items.experts
    assert experts == ("ann", "bob", "cho", "dee", "eve")
    looks = dict(zip(experts, found.looks.tolist(), strict=True))
    assert looks == {"ann": 3, "bob": 2, "cho": 2, "dee": 1, "eve": 2}
    assert (found.listed[:, 0, experts.index("eve")] == 0).all()
    rows = {row["expert"]: row for row in crowd.summary()["experts"]}
    assert rows["eve"]["looks"] == 2
    assert rows["eve"]["count"] == 0
    assert crowd.experts()["looks"].tolist() == [rows[e]["looks"] for e in crowd.experts().expert]


def test_an_image_is_settled_if_every_cluster_is_as_listed(crowd):
    """On c nothing is listed; elsewhere the probability is at most that of the least sure."""
    found, table = crowd.detection, crowd.catalogue()
    for at, image in enumerate(("a", "b")):
        p = table.loc[table["image"] == image, "p_real"]
        assert 0.0 < found.p_settled[at] <= np.maximum(p, 1.0 - p).min() + 1e-9
    assert found.p_settled[2] == 1.0
    images = crowd.image_table()
    assert images["image"].tolist() == ["a", "b", "c"]
    assert images["p_complete"].to_numpy() == pytest.approx(found.p_complete)
    assert images["n_looks"].tolist() == [4, 4, 2]


def marked_by(prior, f, level, experts):
    """Probability that list f has an object of a level: over all sets of lists with f."""
    others = [one for one in range(experts) if one != f]
    return sum(
        weight * twin.history(prior, g, level, tuple(sorted((f, *rest))))
        for g, weight in enumerate(prior.parameters.class_weight)
        for size in range(experts)
        for rest in combinations(others, size)
    )


def test_sensitivity_is_the_probability_to_mark_an_object(posterior):
    """Of all sizes and of the size class that a level is in, by enumeration, in the first draw."""
    found, experts = posterior.detection, len(posterior.items.experts)
    _, _, prior = next(priors(posterior))
    edges = posterior.size_classes.edges
    middle = np.exp(prior.low + prior.step * (np.arange(len(prior.away)) + 0.5))
    number = np.searchsorted(edges, middle, side="right")
    share = prior.parameters.size_share
    for f in range(experts):
        at = np.array([marked_by(prior, f, level, experts) for level in range(len(share))])
        expected = [(share * at).sum() / share.sum()]
        for c in range(len(edges) + 1):
            held = number == c
            expected.append((share * at)[held].sum() / share[held].sum())
        assert found.sensitivity[0, :, f] == pytest.approx(expected, abs=1e-5)
    assert found.rates.false[0] == pytest.approx(prior.parameters.false_marks)
    rows = {row["expert"]: row for row in posterior.summary()["experts"]}
    for f, name in enumerate(posterior.items.experts):
        mean = found.rates.false[:, f].mean()
        assert rows[name]["false_marks_per_image"]["mean"] == pytest.approx(mean)


def test_experts_are_ranked_by_sensitivity(crowd):
    finds = crowd.experts()["sensitivity"].to_numpy()
    assert (np.diff(finds) <= 0.0).all()
    assert [row["expert"] for row in crowd.summary()["experts"]] == crowd.experts().expert.tolist()


def test_images_share_what_experts_are_like(crowd):
    """Also that of those who looked at an empty image only."""
    whole, experts = crowd.detection.rates, crowd.items.experts
    here = crowd["b"].detection
    codes = [experts.index(name) for name in crowd["b"].items.experts]
    assert here.sensitivity == pytest.approx(whole.sensitivity[:, :, codes], nan_ok=True)
    assert here.rates.false == pytest.approx(whole.false[:, codes])


def test_value_of_one_more_look_by_enumeration():
    """A cluster and, with Poisson numbers cut off far out, what was missed by all."""
    for p, s in ((0.3, 0.7), (0.9, 0.2), (0.5, 1.0)):
        a = p * s
        after = (p - a) / (1.0 - a)
        left = (1.0 - a) * after * (1.0 - after)
        assert one_more_look.of_clusters(p, a) == pytest.approx(p * (1.0 - p) - left)
    numbers = np.arange(60)

    def poisson(mean):
        return np.exp(
            numbers * np.log(mean) - mean - np.array([math.lgamma(k + 1) for k in numbers])
        )

    for m, s, false in ((1.5, 0.6, 0.4), (0.2, 0.3, 2.0)):
        found, missed, wrong = poisson(m * s), poisson(m * (1.0 - s)), poisson(false)
        left = m * (1.0 - s)  # what the newcomer does not find stays unknown
        for marks in range(40):
            joint = found[: marks + 1] * wrong[marks::-1][: marks + 1]
            k, total = numbers[: marks + 1], joint.sum()
            left += (joint * k**2).sum() - (joint * k).sum() ** 2 / total
        draws = np.full(5, 1.0)
        value = one_more_look.of_missed(m * draws, m * s * draws, false * draws)
        assert value == pytest.approx(m - left, rel=1e-6)
        assert missed.sum() == pytest.approx(1.0)


def test_value_of_a_look_at_every_image(crowd):
    """None is worth more than all that is not known, and images that need none are told."""
    found, table = crowd.detection, crowd.image_table()
    variance = (found.seen_on + found.missed_on).var(axis=0)
    assert (found.look_value > 0.0).all()
    assert (found.look_value < 1.5 * variance + 0.05).all()
    assert table["look_value"].to_numpy() == pytest.approx(found.look_value)
    asked = crowd.config.summary
    assert (asked.retire_complete, asked.retire_settled) == (0.9, 0.9)
    expected = (found.p_complete >= 0.9) & (found.p_settled >= 0.9)
    assert table["retire"].tolist() == expected.tolist()


def test_thresholds_of_images_that_need_no_more_looks():
    with pytest.raises(SettingsError, match=r"retire_settled is 1.5"):
        SummarySettings(retire_settled=1.5)


def test_who_marks_nothing_is_named_as_such():
    """Of whoever marked nothing it is not known whether their marks would be false."""
    rng, rows = np.random.default_rng(2), []
    for k in range(80):
        x, y = 100.0 * (k % 10), 100.0 * (k // 10)
        rows += [
            (f"e{e}", x + rng.normal(), y + rng.normal()) for e in range(4) if rng.random() < 0.8
        ]
    experts, x, y = zip(*rows, strict=True)
    items = dfcrp.Items.from_columns(
        {"x": x, "y": y}, experts, kind="points", looked=[*sorted(set(experts)), "idle"]
    )
    found = dfcrp.fit(items, prior="detection", chains=2, scans=200, burn_in=50, seed=1)
    summary = found.summary()
    assert summary["finds_nothing"] == ["idle"]
    assert summary["mostly_false"] == []
    (idle,) = (row for row in summary["experts"] if row["expert"] == "idle")
    assert idle["p_mostly_false"] is None
    words = found.prior.last_words(summary)
    assert words == ["Experts who find fewer than 1 in 10 objects where they look: idle."]


@pytest.mark.parametrize("missing", ["look_shape", "image_ease", "image_ease_sd", "ease"])
def test_runs_of_earlier_models_are_refused(posterior, missing):
    """Their parameters were others: nothing is read into them."""
    columns, shared = posterior.draws.columns, posterior.draws.shared()
    place = columns.slices[missing]
    fewer = tuple(one for one in columns.shared if one.name != missing)
    kept = np.delete(shared, np.arange(place.start, place.stop), axis=2)
    draws = posterior.draws
    old = MemoryDraws(
        posterior.labels,
        draws.alpha(),
        [draws.clusters(chain, 0, draws.n_draws) for chain in range(draws.n_chains)],
        columns._replace(shared=fewer),
        kept.reshape(-1, kept.shape[2]),
    )
    again = Posterior(old, posterior.items, posterior.config, posterior.record)
    with pytest.raises(InputError, match="made by an earlier version"):
        assert again.detection

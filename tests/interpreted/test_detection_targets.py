"""What the detection prior's updates draw from is the joint density: the same up to a constant.

The joint density of all parameters and completed counts is written down once, in plain loops
(``log_joint`` in the reference). Of every slice the target, and of every number drawn from a known
law that law, must differ between two values by as much as the joint density does when everything
that the update moves is moved. Planted bugs must not.
"""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from scipy import stats

from dfcrp.compiled.slice import log_target
from dfcrp.compiled.state import NONE
from dfcrp.priors.detection import false_marks, noticing, update
from dfcrp.priors.detection.kernel import rebuild_tables
from dfcrp.priors.detection.layout import image_of
from reference import detection_reference as twin
from reference.known_numbers import KnownNumbers

TOLERANCE = 1e-9
LOOKS_OUT = twin.Integrated(looks=True)
LISTS_OUT = twin.Integrated(looks=True, lists=True)
IMAGES = {"images": [0, 0, 0, 1, 1, 1], "looks": [(2, 0), (2, 2)]}
#: Families, persons and settings.
CASES = {
    "one image": ([0, 1, 2, 0, 1], [0, 0, 1], {"classes": 2}),
    "images": ([0, 1, 2, 1, 2, 0], [0, 1, 2], {"classes": 3, "look_shape": 0.7, **IMAGES}),
    "decoys": ([0, 1, 2, 1, 2, 0], [0, 0, 1], {"classes": 2, "decoys": True, **IMAGES}),
    "decoys, one rate": (
        [0, 1, 2, 0, 1], [0, 1, 2], {"classes": 1, "decoys": True, "by_size": False},
    ),
    "silent": (
        [0, 1, 2, 0, 1, 2],
        [0, 0, 1],
        {
            "classes": 3, "decoys": True, "images": [0, 0, 0, 0, 1, 1], "looks_known": False,
            "assumed_looks": 3.5,
            "zones": ([0, 1, 1, 1, 2, 2],
                      [(0, 0.3, (0, 1)), (0, 0.7, (0, 1, 2)), (1, 1.0, (1, 2))]),
        },
    ),
    "one person": ([0, 0, 0], [0], {"classes": 1, "images": [0, 0, 1], "decoys": True}),
    "no marks of a list": (
        [0, 1, 0, 1], [0, 1, 2], {"classes": 1, "images": [0, 0, 1, 1], "looks": [(0, 2), (1, 2)]},
    ),
}  # fmt: skip


def make_prior(name):
    """With random parameters, and counts."""
    families, persons, settings = CASES[name]
    return with_counts(twin.make_prior(families, persons, seed=4, **settings))


def with_counts(prior):
    """The prior with random counts that go together."""
    rng, counts, looks = np.random.default_rng(5), prior.counts, prior.looks
    used = np.arange(counts.seen.shape[2]) < len(prior.parameters.class_weight)
    counts.seen[:] = rng.integers(0, 3, counts.seen.shape) * used
    counts.objects[:] = counts.seen + rng.integers(0, 3, counts.seen.shape) * used
    counts.total[:] = 0.0
    for zone in range(len(looks.share)):
        for viewer in looks.viewer[looks.start[zone] : looks.start[zone + 1]]:
            counts.total[viewer] += counts.objects[zone]
    counts.noticed[:] = rng.binomial(counts.total.astype(int), 0.6)
    counts.silent[:] = looks.silent @ counts.objects.sum(axis=1)
    counts.look_false[:] = rng.integers(0, 4, counts.look_false.shape)
    counts.false[:] = np.bincount(looks.look_list, counts.look_false, len(prior.person))
    about(prior)
    return prior


def about(prior):
    """Sums that the updates keep, for the parameters as they are."""
    for g in range(len(prior.parameters.class_weight)):
        prior.counts.usual[g] = prior.parameters.notice[g].mean()
    if len(prior.parameters.class_weight) > prior.real:
        odds = prior.parameters.notice[prior.real]
        prior.counts.readily[0] = (1.0 / (1.0 + np.exp(-odds))).sum()


def difference(prior, moved, without=twin.NOTHING) -> float:
    """By how much the joint density differs once ``moved`` has changed the parameters."""
    before, old = twin.log_joint(prior, without), prior.own.copy()
    moved(prior.parameters)
    after = twin.log_joint(prior, without)
    prior.own[:] = old
    return after - before


def same(found: float, expected: float) -> bool:
    """Both no density, or equal."""
    if expected == -math.inf:
        return found == -math.inf
    return found == pytest.approx(expected, abs=TOLERANCE * (1.0 + abs(expected)), rel=0.0)


@pytest.fixture(params=CASES)
def prior(request):
    return make_prior(request.param)


STEPS = (-2.5, -0.3, 0.7, 4.0)


def worst_of_notice(prior, log_notice=log_target) -> list[bool]:
    found = []
    for g, p, step in product(*map(range, prior.parameters.notice.shape), STEPS):
        start = prior.parameters.notice[g, p]

        def move(own, g=g, p=p, step=step):
            own.notice[g, p] += step

        target = noticing.Curve(prior, g, p)
        change = log_notice(target, start + step) - log_notice(target, start)
        found.append(same(change, difference(prior, move)))
    return found


def test_one_person_in_one_class(prior):
    assert all(worst_of_notice(prior))


def test_slopes(prior):
    if len(prior.away) == 1:
        return
    slopes = prior.parameters.slope
    for p, step in product(range(len(slopes)), STEPS):

        def move(own, p=p, step=step):
            own.slope[p] += step

        others = slopes.sum() - slopes[p], len(slopes) - 1.0
        given = noticing.slope_given_others(prior.beliefs, *others)
        target = noticing.Curve(prior, NONE, p, *given)
        change = log_target(target, slopes[p] + step) - log_target(target, slopes[p])
        assert same(change, difference(prior, move))


def shifts_of_person(prior) -> list[bool]:
    found = []
    for p, step in product(range(len(prior.lists)), STEPS):

        def move(own, p=p, step=step):
            own.skill[p] += step
            own.notice[: prior.real, p] += step

        target = noticing.ShiftOfPerson(prior, p)
        change = noticing.log_shift_of_person(target, step)
        change -= noticing.log_shift_of_person(target, 0.0)
        found.append(same(change, difference(prior, move)))
    return found


def shifts_of_class(prior) -> list[bool]:
    found = []
    for g, step in product(range(len(prior.parameters.class_weight)), STEPS):

        def move(own, g=g, step=step):
            own.ease[g] += step
            own.notice[g] += step

        target = noticing.ShiftOfClass(prior, g)
        change = noticing.log_shift_of_class(target, step)
        change -= noticing.log_shift_of_class(target, 0.0)
        found.append(same(change, difference(prior, move)))
    return found


def test_a_person_in_all_classes(prior):
    assert all(shifts_of_person(prior))


def test_a_class_for_all_persons(prior):
    assert all(shifts_of_class(prior))


class NoMove:
    """Slices that stay where they are; normals of which the first is as told."""

    def __init__(self, monkeypatch, normals=0.0):
        self.numbers = KnownNumbers(normals=[normals] * 100)
        for module in (noticing, false_marks):
            monkeypatch.setattr(module, "slice_update", lambda rng, t, start, *_: start)


def test_skills_and_their_spread_given_all_else(prior, monkeypatch):
    """Normal, and Gamma, of the joint density's ratios."""
    drawn = {}
    for normal in (0.0, 1.0):
        mine = prior._replace(parameters=prior.parameters)
        old = prior.own.copy()
        noticing.update_persons(NoMove(monkeypatch, normal).numbers, mine)
        drawn[normal] = prior.parameters.skill.copy()
        prior.own[:] = old
        about(prior)
    means, sds = drawn[0.0], drawn[1.0] - drawn[0.0]
    for p, value in product(range(len(means)), (-1.4, 0.8)):

        def move(own, p=p, value=value):
            own.skill[p] = value

        laws = stats.norm.logpdf([value, prior.parameters.skill[p]], means[p], sds[p])
        assert same(laws[0] - laws[1], difference(prior, move))
    numbers = NoMove(monkeypatch).numbers
    noticing.update_persons(numbers, prior)
    [shape] = numbers.gammas
    rate = shape * prior.parameters.skill_sd[0] ** 2
    start = prior.parameters.skill_sd[0]
    for sd in (0.3, 2.0):

        def spread(own, sd=sd):
            own.skill_sd[0] = sd

        laws = stats.gamma.logpdf([sd**-2, start**-2], shape, scale=1.0 / rate)
        assert same(laws[0] - laws[1], difference(prior, spread))


def law_of_ease(prior, monkeypatch, g) -> tuple[float, float, float, float]:
    """Mean, standard deviation and bounds of the normal law that an ease is drawn from."""
    asked = []

    def normal_between(rng, *given):
        asked.append(given)
        return given[-1]

    monkeypatch.setattr(noticing, "normal_between", normal_between)
    start = prior.parameters.ease[g]
    if g < prior.real:
        noticing.update_class(NoMove(monkeypatch).numbers, prior, g)
        [(*law, at)] = asked
        assert at == start
        return tuple(law)
    drawn = []
    for normal in (0.0, 1.0):
        noticing.update_class(NoMove(monkeypatch, normal).numbers, prior, g)
        drawn.append(prior.parameters.ease[g])
        prior.parameters.ease[g] = start
    return drawn[0], drawn[1] - drawn[0], -math.inf, math.inf


def test_eases_given_all_else(prior, monkeypatch):
    """Normal, those of objects in falling order and above their bound."""
    for g, start in enumerate(prior.parameters.ease.tolist()):
        mean, sd, low, high = law_of_ease(prior, monkeypatch, g)
        for value in (-3.0, -1.0, start - 0.01, start + 0.01, 2.5, 9.0):

            def move(own, g=g, value=value):
                own.ease[g] = value

            laws = stats.norm.logpdf([value, start], mean, sd)
            change = laws[0] - laws[1] if low <= value <= high else -math.inf
            assert same(change, difference(prior, move))


# Shares of classes --------------------------------------------------------------------------------


def eases_of_images(prior, log_ease=update.log_ease_of_image) -> list[bool]:
    """θ of every image; π, as tables have it, is not looked at."""
    found = []
    update.count_classes(prior)
    for v, step in product(range(len(prior.parameters.image_ease)), STEPS):

        def move(own, v=v, step=step):
            own.image_ease[v] += step

        start = prior.parameters.image_ease[v]
        target = update.EaseOfImage(prior, v)
        change = log_ease(target, start + step) - log_ease(target, start)
        found.append(same(change, difference(prior, move)))
    return found


def differ(prior) -> bool:
    """Whether images may differ in their shares of easy objects."""
    several = len(prior.parameters.image_ease) > 1 and prior.real > 1
    assert (prior.beliefs.image_ease_sd > 0.0) == several
    return several


def test_how_easy_images_are(prior):
    if differ(prior):
        assert all(eases_of_images(prior))


def test_how_much_images_differ(prior, monkeypatch):
    """1 / σ_θ² is Gamma of the joint density's ratios."""
    if not differ(prior):
        return
    monkeypatch.setattr(update, "slice_update", lambda rng, t, start, *_: start)
    numbers, start = KnownNumbers(), prior.parameters.image_ease_sd[0]
    update.update_image_eases(numbers, prior)
    [shape] = numbers.gammas
    rate = shape * prior.parameters.image_ease_sd[0] ** 2
    prior.parameters.image_ease_sd[0] = start
    for sd in (0.2, 1.7):

        def spread(own, sd=sd):
            own.image_ease_sd[0] = sd

        laws = stats.gamma.logpdf([sd**-2, start**-2], shape, scale=1.0 / rate)
        assert same(laws[0] - laws[1], difference(prior, spread))


#: Images that differ much, with two classes of objects.
TWO_CLASSES = ([0, 1, 2, 1, 2, 0], [0, 1, 2], {"classes": 2, "class_weight": 0.7, **IMAGES})


def law_of_weight(prior) -> tuple[np.ndarray, np.ndarray]:
    """The law of log π_1 / π_2 given all else, by the joint density: a grid, its distribution."""
    grid, logs = np.linspace(-9.0, 9.0, 1801), []

    for odds in grid:
        share = 1.0 / (1.0 + math.exp(-odds))

        def move(own, share=share):
            own.class_weight[:] = share, 1.0 - share

        logs.append(difference(prior, move) + math.log(share * (1.0 - share)))
    law = np.cumsum(np.exp(np.array(logs) - max(logs)))
    assert law[0] < 1e-6 * law[-1]
    return grid, law / law[-1]


def weights_keep_their_law(update_weights=update.update_weights) -> bool:
    """Exact draws of π given all else are as before after an update; false alarms 1e-6."""
    families, persons, settings = TWO_CLASSES
    prior = with_counts(twin.make_prior(families, persons, seed=4, **settings))
    prior.parameters.image_ease[:] = 1.3, -0.4, 0.2
    update.count_classes(prior)
    grid, law = law_of_weight(prior)
    rng, drawn = np.random.default_rng(8), []
    for start in np.interp(rng.random(4000), law, grid):
        share = 1.0 / (1.0 + math.exp(-start))
        prior.parameters.class_weight[:] = share, 1.0 - share
        update_weights(rng, prior)
        first, second = prior.parameters.class_weight
        assert first + second == pytest.approx(1.0)
        drawn.append(math.log(first / second))
    places = np.interp(drawn, grid, law)
    return stats.kstest(places, "uniform").pvalue > 1e-6


def test_weights_given_all_else():
    """π by way of Gamma variables."""
    assert weights_keep_their_law()


def rates_of_lists(prior, log_rate=false_marks.log_rate_of_list) -> list[bool]:
    """log φ_f, a_dp moved along, what it is on each image integrated out."""
    found = []
    for f, step in product(range(len(prior.person)), (-3.0, -0.4, 0.5, 1.5)):
        start = math.log(prior.parameters.false_marks[f])

        def move(own, f=f, step=step):
            with_decoys = len(own.class_weight) > prior.real
            before = with_decoys and twin.readiness(prior, own.false_marks[np.newaxis])[0]
            own.false_marks[f] *= math.exp(step)
            if with_decoys:
                after = twin.readiness(prior, own.false_marks[np.newaxis])[0]
                own.notice[prior.real] += after - before

        target = false_marks.RateOfList(prior, f)
        change = log_rate(target, start + step) - log_rate(target, start)
        # Of φ itself the density is that of its logarithm over φ.
        found.append(same(change, difference(prior, move, LOOKS_OUT) + step))
    return found


def test_rates_of_lists(prior):
    assert all(rates_of_lists(prior))


def test_rates_and_decoys_move_as_the_target_says(prior, monkeypatch):
    """What ``update_list`` writes down, and the rates of looks and lists that are drawn."""
    parameters, known = prior.parameters, KnownNumbers()
    monkeypatch.setattr(false_marks, "slice_update", lambda rng, t, start, *_: start + 0.2)
    gamma = false_marks.are_known(prior)
    for f in range(len(prior.person)):
        old, shape = prior.own.copy(), parameters.false_shape[0] + prior.counts.false[f]
        before = twin.readiness(prior, parameters.false_marks[np.newaxis])[0]
        start = parameters.false_marks[f]
        false_marks.update_list(known, prior, f)
        drawn = parameters.false_marks[f]
        if len(parameters.class_weight) > prior.real:
            after = twin.readiness(prior, parameters.false_marks[np.newaxis])[0]
            moved = parameters.notice[prior.real].copy()
            prior.own[:] = old
            np.testing.assert_allclose(moved, parameters.notice[prior.real] + after - before)
            kept = (1.0 / (1.0 + np.exp(-moved))).sum()
            assert prior.counts.readily[0] == pytest.approx(kept)
            assert prior.counts.usual[prior.real] == pytest.approx(moved.mean())
        prior.own[:] = old
        about(prior)
        if not gamma:
            assert drawn == pytest.approx(start * math.exp(0.2))
            continue
        for value in (0.3, 2.0):

            def move(own, f=f, value=value):
                own.false_marks[f] = own.false_marks_on[prior.looks.look_list == f] = value

            laws = stats.gamma.logpdf([value, start], shape, scale=drawn / shape)
            assert same(laws[0] - laws[1], difference(prior, move))


def looks_of_lists(prior, update_looks=false_marks.update_looks) -> list[bool]:
    """φ_fv given the counts and φ_f."""
    found, looks, parameters = [], prior.looks, prior.parameters
    for f in range(len(prior.person)):
        known, old = KnownNumbers(), prior.own.copy()
        update_looks(known, prior, f)
        mine = range(looks.list_look[f], looks.list_look[f + 1])
        drawn = parameters.false_marks_on.copy()
        prior.own[:] = old
        if math.isinf(parameters.look_shape[0]):
            found += [drawn[look] == parameters.false_marks[f] for look in mine]
            continue
        for look, shape in zip(mine, known.gammas, strict=True):
            start = parameters.false_marks_on[look]
            for value in (0.1, 1.5):

                def move(own, look=look, value=value):
                    own.false_marks_on[look] = value

                laws = stats.gamma.logpdf([value, start], shape, scale=drawn[look] / shape)
                found.append(same(laws[0] - laws[1], difference(prior, move)))
    return found


def test_rates_of_looks(prior):
    assert all(looks_of_lists(prior))


def test_how_false_marks_come_in_clumps(prior):
    """log κ, the rates of looks integrated out; where it is learned."""
    start = prior.parameters.look_shape[0]
    if math.isinf(start):
        assert prior.beliefs.look_shape_sd == 0.0
        return
    target = false_marks.ShapeOfLooks(prior)
    for step in STEPS:

        def move(own, step=step):
            own.look_shape[0] *= math.exp(step)

        value = math.log(start)
        change = false_marks.log_shape_of_looks(target, value + step)
        change -= false_marks.log_shape_of_looks(target, value)
        assert same(change, difference(prior, move, LOOKS_OUT))
    for value, allowed in ((15.0, True), (-15.0, True), (15.1, False), (-15.1, False)):
        assert (false_marks.log_shape_of_looks(target, value) > -math.inf) == allowed


def shapes_of_lists(prior, log_shape=false_marks.log_shape_of_lists) -> list[bool]:
    """log c; where φ is Gamma given the counts, it is integrated out."""
    without = LISTS_OUT if false_marks.are_known(prior) else LOOKS_OUT
    target, found = false_marks.ShapeOfLists(prior), []
    start = math.log(prior.parameters.false_shape[0])
    for step in STEPS:

        def move(own, step=step):
            own.false_shape[0] *= math.exp(step)

        change = log_shape(target, start + step) - log_shape(target, start)
        found.append(same(change, difference(prior, move, without)))
    return found


def test_how_alike_lists_are(prior):
    assert all(shapes_of_lists(prior))
    target = false_marks.ShapeOfLists(prior)
    for value, allowed in ((15.0, True), (-15.0, True), (15.1, False), (-15.1, False)):
        assert (false_marks.log_shape_of_lists(target, value) > -math.inf) == allowed


@pytest.mark.parametrize("many", [0.3, 2.0, 50.0])
@pytest.mark.parametrize("far", [1.0, 30.0, 2000.0])
def test_products_of_odds_are_sums_of_logarithms(many, far):
    """Few and many objects, odds that nearly overflow and that would."""
    rng = np.random.default_rng(6)
    prior = make_prior("one image")
    counts = prior.counts
    for _ in range(20):
        counts.total[:] = rng.poisson(many, counts.total.shape)
        counts.noticed[:] = np.floor(rng.random(counts.total.shape) * (counts.total + 1))
        for g, p in product(range(prior.real), range(len(prior.lists))):
            notice, slope = rng.normal(0.0, far), rng.normal(0.0, 0.1 * far)
            logits = notice + slope * prior.away
            expected = 0.0
            viewers = slice(*prior.looks.person_viewer[p : p + 2])
            for total, noticed in zip(
                counts.total[viewers, :, g], counts.noticed[viewers, :, g], strict=True
            ):
                expected += (noticed * logits - total * np.logaddexp(0.0, logits)).sum()
            found = noticing.log_logistic(prior, g, p, notice, slope)
            assert found == pytest.approx(expected, rel=1e-10, abs=1e-9)


def test_the_share_of_false_marks(prior):
    known, start = KnownNumbers(), prior.parameters.false_share[0]
    false_marks.update_false_share(known, prior)
    [shape] = known.gammas
    rate = shape * prior.parameters.false_share[0]
    prior.parameters.false_share[0] = start
    for share in (0.05, 0.6):

        def move(own, share=share):
            own.false_share[0] = share

        laws = stats.gamma.logpdf([1.0 / share, 1.0 / start], shape, scale=1.0 / rate)
        assert same(laws[0] - laws[1], difference(prior, move, LOOKS_OUT))


def test_rates_integrated_out_are_integrals():
    """The joint density without the rates of looks is the integral of the one with them."""
    prior = make_prior("images")
    parameters, looks, counts = prior.parameters, prior.looks, prior.counts
    without, total = twin.log_joint(prior, LOOKS_OUT), twin.log_joint(prior)
    shape, logs = parameters.look_shape[0], np.linspace(-600.0, 6.0, 100_001)
    for look, f in enumerate(looks.look_list):

        def density(rate, look=look, usual=parameters.false_marks[f]):
            value = stats.gamma.logpdf(rate, shape, scale=usual / shape)
            expected = rate * looks.look_share[look]
            return value + stats.poisson.logpmf(counts.look_false[look], expected)

        total -= density(parameters.false_marks_on[look])
        total += math.log(np.trapezoid(np.exp(density(np.exp(logs)) + logs), logs))
    assert total == pytest.approx(without, abs=1e-4)


# Planted bugs -------------------------------------------------------------------------------------


def test_planted_bugs_in_what_persons_notice(monkeypatch):
    """A constraint, silent looks, the interaction or how ready a person is are forgotten."""
    decoys, silent = make_prior("decoys"), make_prior("silent")
    with monkeypatch.context() as planted:
        planted.setattr(noticing, "is_decoy", lambda *_: True)
        assert not all(worst_of_notice(decoys))
        assert not all(shifts_of_class(decoys))
    for bug, value in (
        ("log_silent", lambda *_: 0.0),
        ("spread_of_notice", lambda *_: 1.0),
        ("readiness", lambda *_: 0.0),
    ):
        with monkeypatch.context() as planted:
            planted.setattr(noticing, bug, value)
            assert not all(worst_of_notice(silent)), bug
    with monkeypatch.context() as planted:
        planted.setattr(noticing, "log_silent", lambda *_: 0.0)
        assert not all(shifts_of_class(silent))
        assert not all(shifts_of_person(silent))


def test_planted_bugs_in_shares_of_classes(monkeypatch):
    """Images are taken to be alike for π; what θ makes of the mean, or decoys, is forgotten."""
    images, decoys = make_prior("images"), make_prior("silent")

    def all_classes(prior, ease, tilt, g):
        return math.exp(ease * prior.node[min(g, prior.real - 1)]) / tilt

    for bug, value in (("usual_tilt", lambda *_: 1.0), ("more_of", all_classes)):
        with monkeypatch.context() as planted:
            planted.setattr(update, bug, value)
            assert not all(eases_of_images(decoys)), bug
    with monkeypatch.context() as planted:
        planted.setattr(update, "more_of", lambda *_: 1.0)
        assert not all(eases_of_images(images))
        assert not weights_keep_their_law()


def test_planted_bugs_in_rates_of_false_marks(monkeypatch):
    """Decoys stay where they are; their constraint is forgotten; a look is a whole image."""
    decoys, silent = make_prior("decoys"), make_prior("silent")

    def stays(prior, f, rate):
        p = prior.person[f]
        return prior.parameters.notice[prior.real, p], p

    for bug, value in (
        ("decoys_noticed", stays),
        ("is_decoy", lambda *_: True),
        ("log_silent", lambda *_: 0.0),
    ):
        with monkeypatch.context() as planted:
            planted.setattr(false_marks, bug, value)
            assert not (all(rates_of_lists(decoys)) and all(rates_of_lists(silent))), bug

    def whole(rng, prior, f):
        share = prior.looks.look_share.copy()
        prior.looks.look_share[:] = 1.0
        false_marks.update_looks(rng, prior, f)
        prior.looks.look_share[:] = share

    assert not all(looks_of_lists(make_prior("silent"), whole))


def test_no_person_leaves_what_decoys_are():
    """Over many updates the share of persons who mark a decoy stays between its bounds."""
    for name in ("decoys", "decoys, one rate", "silent", "one person"):
        prior, rng = make_prior(name), np.random.default_rng(6)
        noticed = prior.parameters.notice[prior.real]
        for _ in range(10):
            noticing.update_curves(rng, prior)
            assert _is_allowed(prior, noticed)
            false_marks.update_false_marks(rng, prior)
            assert _is_allowed(prior, noticed)


def _is_allowed(prior, noticed) -> bool:
    share = (1.0 / (1.0 + np.exp(-noticed))).mean()
    return prior.beliefs.decoy_least <= share <= prior.beliefs.decoy_most


def test_updates_of_rates_end_at_the_edges():
    """With rates and shapes as small and as large as numbers are."""
    for name, rate, shape in product(
        ("images", "decoys", "silent", "no marks of a list"), (1e-300, 1e-20, 1e20), (-15.0, 15.0)
    ):
        prior, rng = make_prior(name), np.random.default_rng(7)
        prior.parameters.false_marks[:] = rate
        prior.parameters.look_shape[0] = prior.parameters.false_shape[0] = math.exp(shape)
        for _ in range(3):
            false_marks.update_false_marks(rng, prior)
        for values in (prior.parameters.false_marks, prior.parameters.false_marks_on):
            assert np.isfinite(values).all()
        state = prior.parameters.look_shape[0], prior.parameters.false_shape[0]
        assert all(math.exp(-15.1) < value < math.exp(15.1) for value in state)


def test_an_image_by_itself_has_the_same_silent_looks():
    """What typical persons see does not depend on who of them marked something there."""
    families, persons, settings = CASES["silent"]
    prior = twin.make_prior(families, persons, seed=4, **settings)
    for image, items, lists in ((0, [0, 1, 2, 3], [0, 1, 2]), (1, [4, 5], [1, 2])):
        one = image_of(prior, image, np.array(items), np.array(lists)).prior
        rebuild_tables(one)
        first, last = prior.looks.zones[image], prior.looks.zones[image + 1]
        np.testing.assert_allclose(one.tables.missed, prior.tables.missed[first:last])
        # And the same share of easy objects.
        np.testing.assert_allclose(one.tables.share, prior.tables.share[image : image + 1])
        np.testing.assert_allclose(one.tables.empty, prior.tables.empty[first:last])


def test_an_image_by_itself_that_few_looked_at():
    """The same, where most persons did not look."""
    looks = {"images": [0, 0, 0, 1, 1], "looks_known": False, "assumed_looks": 3.0}
    prior = twin.make_prior([0, 1, 2, 3, 3], [0, 1, 2, 3], seed=4, **looks)
    assert prior.looks.silent[1] == 2.0
    one = image_of(prior, 1, np.array([3, 4]), np.array([3])).prior
    rebuild_tables(one)
    np.testing.assert_allclose(one.tables.missed, prior.tables.missed[1:])

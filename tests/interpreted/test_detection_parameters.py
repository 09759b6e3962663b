"""The detection prior's updates of its parameters, one by one, against the formulas in words.

Random numbers are known (a Gamma is its shape, slices are noted and moved by a little), so that
each update is a function of the counts, which is compared with plain loops. That targets and laws
are those of the joint density is shown in test_detection_targets.py.
"""

from __future__ import annotations

import math
from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

from dfcrp.compiled.state import NONE
from dfcrp.priors.detection import categories, false_marks, kernel, noticing, scores, skills, update
from reference import detection_reference as twin
from reference import kernel_reference as reference
from reference import small_problems as small
from reference.known_numbers import KnownNumbers, just_inside
from studies.detection_story import shares_of_classes

#: Families, persons and settings: lists of one person, images, zones, categories, scores.
CASES = [
    ([0, 1, 2, 0, 1], [0, 0, 1], {"classes": 2}),
    (
        [0, 1, 2, 1, 2, 3],
        [0, 0, 1, 1],
        {
            "classes": 3, "by_size": False, "images": [0, 0, 0, 1, 1, 2],
            "looks": [(1, 0), (2, 2)], "said": [2, 0, 2, 1, 1, 0],
            "scores": [1.0, 2.0, -7.0, 1.0, 9.0, 0.0],
        },
    ),
    (
        [0, 1, 2, 0, 1, 2],
        [0, 0, 1],
        {
            "classes": 4, "images": [0, 0, 0, 1, 1, 1], "sizes_drawn": False,
            "zones": ([0, 0, 1, 2, 3, 3],
                      [(0, 0.5, (0, 1)), (0, 0.5, (2,)), (1, 0.2, (0, 1, 2)), (1, 0.8, (1, 0, 2))]),
            "said": [0, 1, -1, 1, 1, 0], "scores": [0.1, np.nan, 0.7, 0.5, 3.0, 1.0],
        },
    ),
    (
        [0, 1, 2, 1, 2, 0],
        [0, 1, 1],
        {
            "classes": 2, "decoys": True, "images": [0, 0, 0, 1, 1, 1], "looks_known": False,
            "assumed_looks": 3.5,
        },
    ),
]  # fmt: skip
NAMES = ["one image", "three images", "zones", "decoys and silent looks"]


class Setting:
    """A prior with random parameters and counts, and a partition."""

    def __init__(self, families, persons, settings):
        self.families, self.seed = families, len(families) + len(settings)
        prior = twin.make_prior(families, persons, seed=self.seed, **settings)
        # No belief is one or a half, which would hide a factor, and none like another.
        beliefs = {
            name: value * (1.07 + 0.03 * at)
            for at, (name, value) in enumerate(prior.beliefs._asdict().items())
        }
        beliefs |= {"accuracy": 0.83, "decoy_least": 0.01, "decoy_most": 0.99}
        self.prior = prior._replace(beliefs=prior.beliefs._replace(**beliefs))
        # Every class is likely enough to show.
        weight = self.prior.parameters.class_weight
        weight[:] = np.linspace(1.0, 2.0, len(weight)) / (1.5 * len(weight))
        self.prior.parameters.notice[:] *= 0.2
        update.rebuild_tables(self.prior)
        self.images = settings.get("images") or [0] * len(families)
        allowed = [[a == b for b in self.images] for a in self.images]
        self.problem = twin.with_prior(small.make_problem(families, allowed=allowed), self.prior)
        self.rng = np.random.default_rng(self.seed)
        self.problem.data.features[:] = self.rng.normal([0, 0, 3], 0.6, size=(len(families), 3))
        counts = self.prior.counts
        shape = counts.total.shape
        used = np.arange(shape[2]) < self.classes
        counts.total[:] = self.rng.integers(0, 6, shape) * used
        counts.noticed[:] = np.floor(self.rng.random(shape) * (counts.total + 1)) * used
        counts.seen[:] = self.rng.integers(0, 4, counts.seen.shape) * used
        counts.objects[:] = counts.seen + self.rng.integers(0, 3, counts.seen.shape) * used
        counts.on_image[:] = self.rng.integers(0, 5, counts.on_image.shape)
        counts.listed[:] = self.rng.integers(0, 3, counts.listed.shape)
        counts.look_false[:] = self.rng.integers(0, 4, counts.look_false.shape)
        lists = self.prior.looks.look_list
        counts.false[:] = np.bincount(lists, counts.look_false, len(counts.false))
        counts.false_at[:] = self.rng.integers(0, 4, counts.false_at.shape)
        update.expose(self.prior)

    @property
    def classes(self) -> int:
        return len(self.prior.parameters.class_weight)

    @property
    def data(self):
        return self.problem.data

    def state(self, labels):
        state = small.fill_state(self.problem, labels)
        state.theta[:, 2] = 2.0 + 2.0 * self.rng.random(len(state.theta))
        return state

    def cells(self, image):
        looks = self.prior.looks
        for zone in range(looks.zones[image], looks.zones[image + 1]):
            for level in range(len(self.prior.away)):
                for g, weight in enumerate(twin.class_shares(self.prior, image)):
                    share = twin.share_of(self.prior, g, level)
                    missed = twin.history(self.prior, g, level, (), zone)
                    yield (zone, level, g), looks.share[zone] * share * weight, missed


@pytest.fixture(params=CASES, ids=NAMES)
def setting(request) -> Setting:
    return Setting(*request.param)


def noted(monkeypatch, module, name="slice_update"):
    """Replace slice updates: what is asked for is noted, and the start moves by 0.25."""
    asked = []

    def known(rng, target, start, width, least):
        asked.append((target, start, width, least))
        return start + 0.25

    monkeypatch.setattr(module, name, known)
    return asked


# Tables -------------------------------------------------------------------------------------------


def test_tables_do_not_depend_on_what_was_there(setting):
    """Classes that are not in use gain nothing, nor do lists that are their person's only one."""
    prior, tables, used = setting.prior, setting.prior.tables, setting.classes
    for values in tables:
        values[:] = 700.0
    update.rebuild_tables(prior)
    assert not tables.again[:, used:].any()
    assert not tables.again[prior.lists[prior.person] == 1].any()
    assert not tables.absent[..., used:].any()
    assert not tables.found[..., used:].any()
    np.testing.assert_allclose(tables.gain, np.exp(tables.found))
    again = tables.again[prior.looks.row_list, :used].max(axis=1)
    most = np.maximum(tables.found[..., :used].max(axis=2), again[:, np.newaxis])
    np.testing.assert_allclose(tables.most, most)
    assert (tables.empty[..., used:] == -math.inf).all()
    assert (tables.empty[..., :used] < 100.0).all()


def test_shares_of_classes_on_images(setting):
    """As the updates have them, and as answers about draws do."""
    prior, parameters = setting.prior, setting.prior.parameters
    images = range(len(parameters.expected_objects))
    expected = np.array([twin.class_shares(prior, v) for v in images])
    np.testing.assert_allclose(prior.tables.share[:, : setting.classes], expected)
    assert len(images) == 1 or not np.allclose(expected[0], expected[1])
    for v, g in product(images, range(setting.classes)):
        on = kernel.expected_on(prior, v, g)
        assert on == pytest.approx(parameters.expected_objects[v] * expected[v, g])
    found = skills.shares_on_images(prior, parameters.class_weight, parameters.image_ease)
    np.testing.assert_allclose(found, expected)
    by_name = skills.parameters_by_name(prior, np.array([prior.own, prior.own]))
    whole = (parameters.expected_objects[:, np.newaxis] * expected).sum(axis=0)
    np.testing.assert_allclose(skills.expected_by_class(prior, by_name), [whole, whole])
    weights = np.tile(parameters.class_weight, (len(images), 1))
    told = shares_of_classes(prior, weights, parameters.image_ease)
    np.testing.assert_allclose(told, expected)


def test_joining_is_a_ratio_of_two_factors():
    """With as many classes as there may be, all of them likely."""
    families = [0, 1, 2, 0, 1]
    setting = Setting(families, [0, 0, 1], {"classes": kernel.CLASSES})
    tried = 0
    for labels in ([0, 1, 2, 3, 4], [0, 0, 2, 3, 3], [0, 1, 1, 3, 3]):
        state = setting.state(labels)
        for members in reference.clusters(labels):
            k = int(state.label[members[0]])
            experts = [families[j] for j in members]
            for i in range(5):
                if families[i] in experts:
                    continue
                for size in (2.2, 3.7):
                    found = kernel.log_join(setting.prior, setting.data, state, None, i, k, size)
                    both = [*experts, families[i]], size, 0, [*members, i]
                    after = twin.log_factor(setting.prior, *both)
                    before = twin.log_factor(setting.prior, experts, size, 0, members)
                    assert found == pytest.approx(after - before)
                    tried += 1
    assert tried > 20


# Classes of clusters ------------------------------------------------------------------------------


def partitions(setting):
    """Everyone alone; and all of an image together as far as the rule allows."""
    yield list(range(len(setting.families)))
    labels, taken = [], {}
    for i, (family, image) in enumerate(zip(setting.families, setting.images, strict=True)):
        k = next(
            k for k in range(i + 1) if (k, family) not in taken and taken.get(k, image) == image
        )
        taken[k], taken[k, family] = image, i
        labels.append(k)
    first = {k: labels.index(k) for k in labels}
    yield [first[k] for k in labels]


def test_classes_are_drawn_by_their_weights(setting):
    prior, parameters = setting.prior, setting.prior.parameters
    for labels in partitions(setting):
        state = setting.state(labels)
        for members in reference.clusters(labels):
            k, size = state.label[members[0]], 2.7
            image = setting.images[members[0]]
            zone, level = twin.cell(prior, size, image, members)
            experts = [setting.families[i] for i in members]
            also, shares = twin.beside(prior, members), twin.class_shares(prior, image)
            weights = []
            for g in range(4):
                if g < setting.classes:
                    share = shares[g] * twin.share_of(prior, g, level)
                    share /= prior.usual[level]
                    listed = twin.history(prior, g, level, experts, zone, also)
                    weights.append(parameters.expected_objects[image] * share * listed)
                else:
                    weights.append(0.0)
            whole = math.exp(twin.log_factor(prior, experts, size, image, members))
            said = 1.0
            if len(prior.categories.said):
                said *= twin.real_words(prior, experts, prior.categories.said[members])
            if len(prior.scores.level):
                said *= math.prod(twin.score_ratio(prior, setting.families[i], i) for i in members)
            false = whole / said - sum(weights) if len(members) == 1 else 0.0
            for u, expected in just_inside([*weights, max(false, 0.0)]):
                found = update.draw_class(
                    KnownNumbers([u]), prior, setting.data, state, k, zone, level
                )
                assert found == expected


def test_a_class_of_rounding_is_no_false_mark(setting):
    labels = list(partitions(setting))[1]
    members = next(one for one in reference.clusters(labels) if len(one) > 1)
    state = setting.state(labels)
    zone, level = twin.cell(setting.prior, 2.7, setting.images[members[0]], members)
    rng = KnownNumbers([1.0])
    k = state.label[members[0]]
    assert update.draw_class(rng, setting.prior, setting.data, state, k, zone, level) == 0


def test_a_mark_that_is_false_or_real_beyond_what_numbers_hold(setting):
    state = setting.state(range(len(setting.families)))
    zone, level = twin.cell(setting.prior, 2.7, setting.images[0], [0])
    for log_false, is_false in ((-900.0, False), (900.0, True)):
        setting.prior.tables.false[:] = log_false
        for u in (0.1, 0.9):
            found = update.draw_class(
                KnownNumbers([u]), setting.prior, setting.data, state, state.label[0], zone, level
            )
            assert (found == update.FALSE) == is_false


def test_counts_of_who_found_what(setting, monkeypatch):
    prior, looks = setting.prior, setting.prior.looks
    said = []
    monkeypatch.setattr(update, "count_category", lambda rng, p, d, s, k: said.append(("real", k)))
    monkeypatch.setattr(update, "count_false_category", lambda p, d, i: said.append(("false", i)))
    for labels in partitions(setting):
        state = setting.state(labels)
        clusters = reference.clusters(labels)
        chosen = {}
        for number, members in enumerate(clusters):
            false = len(members) == 1 and number % 3 == 0
            chosen[int(state.label[members[0]])] = (
                update.FALSE if false else number % setting.classes
            )
        asked = []

        def draw(rng, p, data, s, k, zone, level, asked=asked, chosen=chosen):
            asked.append((k, zone, level))
            return chosen[k]

        monkeypatch.setattr(update, "draw_class", draw)
        said.clear()
        counts = prior.counts
        expected = {name: np.zeros_like(getattr(counts, name)) for name in counts._fields}
        words, rates = [], [np.zeros_like(prior.scores.real), np.zeros_like(prior.scores.false)]
        cells = []
        for members in clusters:
            k = int(state.label[members[0]])
            image, g = setting.images[members[0]], chosen[k]
            zone, level = twin.cell(prior, state.theta[k, 2], image, members)
            cells.append((k, zone, level))
            for i in members:
                b = prior.scores.level[i] if len(prior.scores.level) else NONE
                if b != NONE:
                    rates[int(g == update.FALSE)][setting.families[i], b] += 1.0
            if g == update.FALSE:
                expected["false"][setting.families[members[0]]] += 1.0
                look = twin.look_at(prior, setting.families[members[0]], image)
                expected["look_false"][look] += 1.0
                expected["false_at"][level] += 1.0
                words.append(("false", members[0]))
                continue
            words.append(("real", k))
            expected["seen"][zone, level, g] += 1.0
            expected["on_image"][image] += 1.0
            viewers = set()
            for i in members:
                expected["listed"][g, setting.families[i]] += 1.0
                viewers.add(int(looks.row_viewer[looks.row[i]]))
            covering = set(looks.viewer[looks.start[zone] : looks.start[zone + 1]].tolist())
            for viewer in viewers:
                expected["noticed"][viewer, level, g] += 1.0
                if viewer not in covering:
                    expected["total"][viewer, level, g] += 1.0
        words_seen = prior.categories.seen, prior.categories.false_seen, prior.categories.counts
        for values in (*prior.counts, prior.scores.real, prior.scores.false, *words_seen):
            values[:] = 7.0
        update.count_clusters_by_class(None, setting.problem.hyper, prior, setting.data, state)
        assert sorted(asked) == sorted(cells)
        # Those who would count what is said are not asked here: all is forgotten.
        assert not any(values.any() for values in words_seen if len(prior.categories.said))
        for name in (
            *("seen", "on_image", "total", "noticed", "listed", "false", "look_false"),
            "false_at",
        ):
            np.testing.assert_array_equal(getattr(counts, name), expected[name], err_msg=name)
        assert sorted(said) == (sorted(words) if len(prior.categories.said) else [])
        if len(prior.scores.level):
            np.testing.assert_array_equal(prior.scores.real, rates[0])
            np.testing.assert_array_equal(prior.scores.false, rates[1])


# Numbers ------------------------------------------------------------------------------------------


def test_poisson_and_binomial_numbers():
    for expected, times, count in (
        (1.0, [1.0], 0.0),
        (1.0, [0.4, 0.4, 0.3], 2.0),
        (2.5, [0.5, 0.5, 0.5, 0.9, 0.2], 4.0),
        (0.0, [0.1], 0.0),
    ):
        rng = KnownNumbers(exponentials=times)
        assert update.draw_poisson(rng, expected) == count
        assert rng.used_up()
    rng = KnownNumbers([0.2, 0.3, 0.31, 0.1])
    assert update.draw_binomial(rng, 4.0, 0.3) == 2.0
    assert rng.used_up()


def test_a_normal_between_bounds(monkeypatch):
    """One slice update as wide as the normal, of the density of a normal between its bounds."""
    asked = noted(monkeypatch, noticing)
    assert noticing.normal_between(None, 1.0, 2.0, 0.5, 4.0, 0.75) == 1.0
    [(target, start, width, least)] = asked
    assert (start, width) == (0.75, 2.0)
    assert 0.0 < least < 1e-10
    law = stats.truncnorm(-0.25, 1.5, loc=1.0, scale=2.0)
    for value in (0.5, 0.9, 3.1, 4.0):
        change = law.logpdf(value) - law.logpdf(start)
        found = noticing.log_normal_between(target, value)
        assert found - noticing.log_normal_between(target, start) == pytest.approx(change)
    for value in (0.49, 4.01, math.nan):
        assert noticing.log_normal_between(target, value) == -math.inf


# Objects ------------------------------------------------------------------------------------------


def test_exposure(setting):
    prior = setting.prior
    for image in range(len(prior.parameters.expected_objects)):
        seen = sum(share * (1.0 - missed) for _, share, missed in setting.cells(image))
        assert prior.counts.exposure[image] == pytest.approx(seen, rel=1e-12)
    prior.looks.share[:] = 0.0
    update.expose(prior)
    assert (prior.counts.exposure == update.TINY).all()


def test_law_of_the_number_of_objects(setting):
    prior, beliefs = setting.prior, setting.prior.beliefs
    seen, exposure = prior.counts.on_image, prior.counts.exposure

    def reference_at(shape, mean):
        # K is negative binomial: Poisson(Λ E) with Λ ~ Gamma(shape, shape / mean).
        chance = (shape / mean) / (shape / mean + exposure)
        total = stats.nbinom.logpmf(seen, shape, chance).sum()
        total += stats.norm.logpdf(
            math.log(shape), math.log(beliefs.objects_shape), beliefs.objects_shape_sd
        )
        return total + stats.norm.logpdf(
            math.log(mean), math.log(beliefs.objects_mean), beliefs.objects_mean_sd
        )

    for which in (update.SHAPE, update.MEAN):
        law = prior.parameters.objects_law.copy()
        values = [math.log(law[which]) + more for more in (0.0, 0.4, -0.9)]
        found = [update.log_law_of_objects(update.LawOfObjects(prior, which), v) for v in values]
        expected = []
        for value in values:
            changed = law.copy()
            changed[which] = math.exp(value)
            expected.append(reference_at(*changed))
        np.testing.assert_allclose(np.diff(found), np.diff(expected), rtol=1e-9)
        target = update.LawOfObjects(prior, which)
        assert update.log_law_of_objects(target, 50.0) > -math.inf
        assert update.log_law_of_objects(target, -50.0) > -math.inf
        assert update.log_law_of_objects(target, 50.1) == -math.inf
        assert update.log_law_of_objects(target, -50.1) == -math.inf


def test_update_of_objects(setting, monkeypatch):
    prior = setting.prior
    asked = noted(monkeypatch, update)
    law = prior.parameters.objects_law.copy()
    prior.counts.exposure[:] = 0.0
    rng = KnownNumbers()
    update.update_objects(rng, prior)
    assert [(target.which, start) for target, start, *_ in asked] == [
        (update.SHAPE, pytest.approx(math.log(law[0]))),
        (update.MEAN, pytest.approx(math.log(law[1]))),
    ]
    assert all(width > 0.5 and 0.0 < least < 1e-10 for *_, width, least in asked)
    moved = law * math.exp(0.25)
    np.testing.assert_allclose(prior.parameters.objects_law, moved)
    seen, exposure = prior.counts.on_image, prior.counts.exposure
    assert (exposure > 0.0).all()
    expected = (moved[0] + seen) / (moved[0] / moved[1] + exposure)
    np.testing.assert_allclose(prior.parameters.expected_objects, expected)
    rng.standard_gamma = lambda shape: 0.0
    update.update_objects(rng, prior)
    assert (prior.parameters.expected_objects == update.LEAST).all()


def test_cells_of_missed_objects(setting):
    prior = setting.prior
    for image in range(len(prior.parameters.expected_objects)):
        cells = list(setting.cells(image))
        for u, at in just_inside([share * missed for _, share, missed in cells]):
            assert update.draw_cell(KnownNumbers([u]), prior, image) == cells[at][0]
        # What rounding leaves over goes to the likeliest.
        best = max(cells, key=lambda one: one[1] * one[2])
        assert update.draw_cell(KnownNumbers([1.0 + 1e-6]), prior, image) == best[0]


def test_missed_objects_are_added(setting, monkeypatch):
    prior, looks, counts = setting.prior, setting.prior.looks, setting.prior.counts
    images = len(prior.parameters.expected_objects)
    rates, given = [], iter([1.0, 2.0, 0.0, 3.0])
    monkeypatch.setattr(update, "draw_poisson", lambda _, rate: rates.append(rate) or next(given))
    drawn = []

    def draw_cell(_, p, v):
        drawn.append((int(looks.zones[v + 1]) - 1, 0, len(drawn) % setting.classes))
        return drawn[-1]

    monkeypatch.setattr(update, "draw_cell", draw_cell)
    total = counts.total.copy()
    counts.objects[:] = 9.0
    update.fill_in_missed(None, prior)
    np.testing.assert_allclose(rates, prior.parameters.expected_objects * (1.0 - counts.exposure))
    assert len(drawn) == sum([1, 2, 0, 3][:images])
    objects = counts.seen.copy()
    for cell in drawn:
        objects[cell] += 1.0
    used = slice(0, setting.classes)
    np.testing.assert_array_equal(counts.objects[..., used], objects[..., used])
    for zone in range(len(looks.share)):
        for viewer in looks.viewer[looks.start[zone] : looks.start[zone + 1]]:
            total[viewer, :, used] += objects[zone, :, used]
    np.testing.assert_array_equal(counts.total, total)
    silent = (objects.sum(axis=1) * looks.silent[:, np.newaxis]).sum(axis=0)
    np.testing.assert_allclose(counts.silent[used], silent[used])


def test_who_noticed_and_did_not_list(setting, monkeypatch):
    prior, looks, counts = setting.prior, setting.prior.looks, setting.prior.counts
    asked = []
    monkeypatch.setattr(
        update, "draw_binomial", lambda _, tries, chance: asked.append((tries, chance)) or 0.5
    )
    noticed = counts.noticed.copy()
    update.fill_in_unlisted(None, prior)
    expected = []
    for viewer, p in enumerate(looks.viewer_person):
        if prior.lists[p] == 1:
            continue
        mine = looks.row_list[looks.row_viewer == viewer]
        for g, level in product(range(setting.classes), range(len(prior.away))):
            absent = counts.total[viewer, level, g] - noticed[viewer, level, g]
            if absent > 0.0:
                away = prior.parameters.slope[p] * prior.away[level]
                logit = prior.parameters.notice[g, p] + away
                s = 1.0 / (1.0 + math.exp(-logit))
                silent = s * np.prod(1.0 - prior.parameters.listing[g, mine])
                expected.append((absent, silent / (silent + 1.0 - s)))
                noticed[viewer, level, g] += 0.5
    assert expected
    np.testing.assert_allclose(asked, expected)
    np.testing.assert_array_equal(counts.noticed, noticed)


# Curves -------------------------------------------------------------------------------------------


def test_a_slope_given_the_others(setting):
    """Against the joint normal law of all slopes, their common mean integrated out."""
    beliefs = setting.prior.beliefs
    slopes = np.array([0.7, -0.4, 2.0, 1.1])
    covariance = beliefs.slope_sd**2 * np.eye(4) + beliefs.size_slope_sd**2
    for p in range(4):
        others = np.delete(np.arange(4), p)
        gain = np.linalg.solve(covariance[np.ix_(others, others)], covariance[others, p])
        mean, sd = noticing.slope_given_others(beliefs, slopes[others].sum(), 3.0)
        assert mean == pytest.approx(gain @ slopes[others])
        assert sd**2 == pytest.approx(covariance[p, p] - gain @ covariance[others, p])
    mean, sd = noticing.slope_given_others(beliefs, 0.0, 0.0)
    assert mean == 0.0
    assert sd == pytest.approx(math.hypot(beliefs.slope_sd, beliefs.size_slope_sd))


def test_update_of_curves(setting, monkeypatch):
    """Class by class, then person by person, then slopes; what moves together is kept together."""
    prior, parameters = setting.prior, setting.prior.parameters
    old = {name: getattr(parameters, name).copy() for name in ("notice", "slope")}
    asked, bounded = noted(monkeypatch, noticing), []
    ease = parameters.ease.copy()

    def normal_between(rng, mean, sd, low, high, start):
        bounded.append((low, high, start))
        return start + 0.001

    monkeypatch.setattr(noticing, "normal_between", normal_between)
    prior.counts.usual[:] = prior.counts.readily[:] = 99.0
    decoys = setting.classes - prior.real
    rng = KnownNumbers(normals=[0.0] * (decoys + len(prior.lists)))
    noticing.update_curves(rng, prior)
    assert rng.used_up()
    classes, persons, by_size = setting.classes, len(prior.lists), len(prior.away) > 1
    moved = old["notice"] + 0.5
    moved[: prior.real] += 0.25
    np.testing.assert_allclose(parameters.notice, moved)
    np.testing.assert_allclose(parameters.slope, old["slope"] + 0.25 * by_size)
    objects = slice(prior.real)
    # A class's ease is moved along with its persons, then drawn.
    np.testing.assert_allclose(parameters.ease[objects], ease[objects] + 0.251)
    # The easier neighbour is new already, the harder one is not.
    highest = [math.inf, *(ease[objects] + 0.251)[:-1]]
    lowest = [*ease[1 : prior.real], prior.beliefs.ease_least]
    bounds = list(zip(lowest, highest, ease[objects] + 0.25, strict=True))
    np.testing.assert_allclose(bounded, bounds)
    np.testing.assert_allclose(prior.counts.usual[:classes], moved.mean(axis=1))
    if classes > prior.real:
        readily = (1.0 / (1.0 + np.exp(-moved[-1]))).sum()
        assert prior.counts.readily[0] == pytest.approx(readily)
    expected = []
    for g in range(classes):
        expected += [("Curve", g, p) for p in range(persons)] + [("ShiftOfClass", g)]
    expected += [("ShiftOfPerson", p) for p in range(persons)]
    expected += [("Curve", NONE, p) for p in range(persons if by_size else 0)]
    assert [(type(one[0]).__name__, *one[0][1:3]) for one in asked] == expected
    for target, start, width, least in asked:
        assert width > 0.5
        if not isinstance(target, noticing.Curve):
            assert start == 0.0
            assert 0.0 < least < 1e-10
            continue
        at = old["slope"][target.p] if target.g == NONE else old["notice"][target.g, target.p]
        if target.g == NONE:
            # Those before it are new, those after it old.
            others = old["slope"].sum() - at + 0.25 * target.p
            given = noticing.slope_given_others(prior.beliefs, others, persons - 1.0)
            assert (target.mean, target.sd) == pytest.approx(given)
        assert start == at
        assert least == pytest.approx(1e-13 * (1.0 + abs(start)))


# Shares and rates ---------------------------------------------------------------------------------


def objects_by_image(setting):
    """Objects of every class on every image, seen and missed."""
    looks, objects = setting.prior.looks, setting.prior.counts.objects[..., : setting.classes]
    images = range(len(looks.zones) - 1)
    return np.array([objects[looks.zones[v] : looks.zones[v + 1]].sum(axis=(0, 1)) for v in images])


def expected_weights(setting, objects):
    """Every Gamma at its mean; ``objects`` are those of each image and class."""
    prior, parameters = setting.prior, setting.prior.parameters
    shape = prior.beliefs.class_weight + objects.sum(axis=0)
    if not prior.beliefs.image_ease_sd:
        return shape
    weight, rate = setting.classes * prior.beliefs.class_weight * parameters.class_weight, 1.0
    for v, here in enumerate(objects):
        # π_v over π is by how much the image has more of a class, but for a factor.
        more = np.array(twin.class_shares(prior, v)) / parameters.class_weight
        # Of objects that is 1 in the mean, of decoys 1.
        more *= 1.0 / more[: prior.real].mean()
        if here.sum():
            rate = rate + here.sum() / (weight * more).sum() * more
    return shape / rate


def test_update_of_shares(setting, monkeypatch):
    """Dirichlet, but for π where images differ: it is updated first, then how they do."""
    prior, parameters, beliefs = setting.prior, setting.prior.parameters, setting.prior.beliefs
    objects, differ = prior.counts.objects[..., : setting.classes], beliefs.image_ease_sd > 0.0
    prior.counts.of_class[:] = 99.0
    by_image, start = objects_by_image(setting), parameters.image_ease.copy()
    assert differ == (len(start) > 1)
    weights = expected_weights(setting, by_image)
    asked, numbers = noted(monkeypatch, update), KnownNumbers()
    update.update_shares(numbers, prior)
    np.testing.assert_array_equal(prior.counts.of_class[:, : setting.classes], by_image)
    usual = beliefs.size_weight * prior.usual
    decoys = objects[..., prior.real :].sum(axis=(0, 2))
    for found, expected in (
        (parameters.class_weight, weights),
        (parameters.size_share, usual + objects[..., : prior.real].sum(axis=(0, 2))),
        (parameters.false_size, usual + prior.counts.false_at + decoys),
    ):
        np.testing.assert_allclose(found, expected / expected.sum())
    assert [(target.v, at) for target, at, *_ in asked] == list(enumerate(start))[: 99 * differ]
    assert all(width > 0.5 and 0.0 < least < 1e-10 for *_, width, least in asked)
    np.testing.assert_allclose(parameters.image_ease, start + 0.25 * differ)
    if differ:
        c, spread = beliefs.image_ease_sd_shape, (parameters.image_ease**2).sum()
        shape = c + 0.5 * len(start)
        assert shape in numbers.gammas
        sd = math.sqrt((c * beliefs.image_ease_sd**2 + 0.5 * spread) / shape)
        assert parameters.image_ease_sd[0] == pytest.approx(sd)
    else:
        assert parameters.image_ease_sd[0] == 0.0


def test_an_image_without_objects_says_nothing_of_weights(setting):
    setting.prior.counts.objects[: setting.prior.looks.zones[1]] = 0.0
    weights = expected_weights(setting, objects_by_image(setting))
    update.count_classes(setting.prior)
    if setting.prior.beliefs.image_ease_sd:
        update.update_weights(KnownNumbers(), setting.prior)
        np.testing.assert_allclose(setting.prior.parameters.class_weight, weights / weights.sum())


def test_laws_of_sizes_may_be_held(setting):
    held = setting.prior._replace(beliefs=setting.prior.beliefs._replace(size_weight=math.inf))
    held.parameters.image_ease_sd[0] = 0.0
    parameters = held.parameters
    old = parameters.size_share.copy(), parameters.false_size.copy()
    rng = KnownNumbers()
    update.update_shares(rng, held)
    np.testing.assert_array_equal((parameters.size_share, parameters.false_size), old)
    objects = held.counts.objects[..., : setting.classes]
    expected = held.beliefs.class_weight + objects.sum(axis=(0, 1))
    np.testing.assert_allclose(parameters.class_weight, expected / expected.sum())


@pytest.mark.parametrize("lists_sd", [0.0, 0.01])
@pytest.mark.parametrize("looks_sd", [0.0, 0.01])
def test_update_of_false_marks(setting, monkeypatch, lists_sd, looks_sd):
    """Shapes first, unless they are held; then every list with its looks; then their share."""
    known = math.isinf(setting.prior.parameters.look_shape[0])
    looks_sd = 0.0 if known else looks_sd
    beliefs = {"false_shape_sd": lists_sd, "look_shape_sd": looks_sd}
    prior = setting.prior._replace(beliefs=setting.prior.beliefs._replace(**beliefs))
    parameters, counts, looks = prior.parameters, prior.counts, prior.looks
    asked = noted(monkeypatch, false_marks)
    names = ("false_shape", "look_shape", "false_marks", "false_share")
    old = {name: getattr(parameters, name).copy() for name in names}
    rng = KnownNumbers()
    false_marks.update_false_marks(rng, prior)
    lists, decoys = range(len(prior.person)), setting.classes > prior.real
    expected = [("ShapeOfLists",)] * (lists_sd > 0.0) + [("ShapeOfLooks",)] * (looks_sd > 0.0)
    if not known or decoys:
        expected += [("RateOfList", f) for f in lists]
    assert [(type(one[0]).__name__, *one[0][1:]) for one in asked] == expected
    assert all(width > 0.5 and 0.0 < least < 1e-10 for *_, width, least in asked)
    starts = [old[name][0] for name, sd in zip(names, (lists_sd, looks_sd), strict=False) if sd]
    starts += old["false_marks"].tolist() if len(expected) > len(starts) else []
    np.testing.assert_allclose([start for _, start, *_ in asked], np.log(starts))
    shape = old["false_shape"][0] * math.exp(0.25 * (lists_sd > 0.0))
    clumps = old["look_shape"][0] * math.exp(0.25 * (looks_sd > 0.0))
    assert parameters.false_shape[0] == pytest.approx(shape)
    assert parameters.look_shape[0] == pytest.approx(clumps)
    false = old["false_marks"] * math.exp(0.25)
    if known and not decoys:
        share = old["false_share"][0] * prior.beliefs.markings / looks.covered
        false = (shape + counts.false) / (shape / share + looks.covered)
    np.testing.assert_allclose(parameters.false_marks, false)
    usual = false[looks.look_list]
    if not known:
        usual = (clumps + counts.look_false) / (clumps / usual + looks.look_share)
    np.testing.assert_allclose(parameters.false_marks_on, usual)
    # 1 / q is Gamma.
    rate = prior.beliefs.share_rate
    rate += (shape * false * looks.covered / prior.beliefs.markings).sum()
    of_share = prior.beliefs.share_shape + len(lists) * shape
    assert rng.gammas[-1] == pytest.approx(of_share)
    assert parameters.false_share[0] == pytest.approx(rate / of_share)


def test_update_of_rates(setting, monkeypatch):
    """Decoys are no objects, and what is marked of them counts as false."""
    prior, counts = setting.prior, setting.prior.counts
    updated, listed = [], []
    monkeypatch.setattr(update, "update_false_marks", lambda *_: updated.append(1))
    monkeypatch.setattr(update, "update_listing", lambda rng, p, f: listed.append(f))
    update.update_rates(None, prior)
    real, decoys = slice(prior.real), slice(prior.real, setting.classes)
    seen, total = counts.seen[..., real].sum(), counts.objects[..., real].sum()
    false = counts.false.sum() + counts.listed[decoys].sum()
    np.testing.assert_allclose(prior.parameters.tally, [seen, total - seen, false])
    assert updated == [1]
    assert listed == [f for f, p in enumerate(prior.person) if prior.lists[p] > 1]


def test_update_of_listing(setting):
    prior, parameters, beliefs = setting.prior, setting.prior.parameters, setting.prior.beliefs
    looks, counts = prior.looks, prior.counts
    counts.noticed[:] += 5.0
    for f in range(len(prior.person)):
        viewers = looks.row_viewer[looks.row_list == f]
        rng = KnownNumbers()
        update.update_listing(rng, prior, f)
        for g in range(setting.classes):
            noticed, listed = counts.noticed[viewers, :, g].sum(), counts.listed[g, f]
            a, b = beliefs.listing_a + listed, beliefs.listing_b + noticed - listed
            assert rng.betas[g] == pytest.approx((a, b))
            assert parameters.listing[g, f] == pytest.approx(a / (a + b))
    for drawn, kept in ((1.0, update.ALMOST_ONE), (0.0, update.TINY)):
        rng = KnownNumbers()
        rng.beta = lambda a, b, drawn=drawn: drawn
        update.update_listing(rng, prior, 0)
        assert (parameters.listing[:, 0] == kept).all()
    assert 0.0 < update.TINY < 1.0 - update.ALMOST_ONE + update.TINY < 1e-11


def test_easy_classes_come_first(setting):
    """Over many updates; decoys stay the last, however readily they are marked."""
    rng, parameters, real = np.random.default_rng(3), setting.prior.parameters, setting.prior.real
    started = parameters.ease.copy()
    for _ in range(10):
        noticing.update_curves(rng, setting.prior)
        assert (np.diff(parameters.ease[:real]) <= 0.0).all()
        assert parameters.ease[real - 1] >= setting.prior.beliefs.ease_least
    assert (parameters.ease != started).all()


def test_a_round_updates_everything(setting, monkeypatch):
    steps = [
        "count_clusters_by_class", "update_objects", "fill_in_missed", "fill_in_unlisted",
        "update_curves", "update_shares", "update_rates", "update_categories", "update_scores",
        "rebuild_tables",
    ]  # fmt: skip
    done = []
    for name in steps:
        monkeypatch.setattr(update, name, lambda *_, name=name: done.append(name))
    update.update_detection(setting.prior, None, setting.data, None, None, None)
    marked = len(setting.prior.categories.said) > 0
    expected = [one for one in steps if marked or one not in ("update_categories", "update_scores")]
    assert done == expected * update.ROUNDS


# Categories ---------------------------------------------------------------------------------------


@pytest.fixture(params=CASES[1:3], ids=NAMES[1:3])
def worded(request) -> Setting:
    setting = Setting(*request.param)
    table = setting.prior.categories
    table.seen[:] = setting.rng.integers(0, 5, table.seen.shape)
    table.false_seen[:] = setting.rng.integers(0, 5, table.false_seen.shape)
    table.counts[:] = setting.rng.integers(0, 4, table.counts.shape)
    return setting


def test_categories_of_clusters(worded):
    prior, parameters = worded.prior, worded.prior.parameters
    table = prior.categories
    for labels in partitions(worded):
        state = worded.state(labels)
        for members in reference.clusters(labels):
            k = int(state.label[members[0]])
            words = table.said[members].tolist()
            experts = [worded.families[i] for i in members]
            together = twin.real_words(prior, experts, words)
            assert categories.log_together(prior, worded.data, state, k) == pytest.approx(
                math.log(together)
            )
            each = []
            for c in range(len(table.share)):
                value = parameters.category_share[c]
                for f, word in zip(experts, words, strict=True):
                    if word != NONE:
                        value *= parameters.confusion[c, word, prior.person[f]]
                each.append(math.log(value))
            for i in range(len(worded.families)):
                if i not in members:
                    more = [*experts, worded.families[i]], [*words, int(table.said[i])]
                    gain = math.log(twin.real_words(prior, *more) / together)
                    found = categories.log_category_gain(prior, worded.data, state, i, k)
                    assert found == pytest.approx(gain, abs=1e-12)
            silent = all(word == NONE for word in words)
            # The noise of c lifts its log weight above all others, or leaves it just below.
            for c in range(len(each)):
                for above in (1e-9, -1e-9):
                    noise = [0.0] * len(each)
                    rival = max(v for at, v in enumerate(each) if at != c)
                    noise[c] = rival - each[c] + above
                    rng = KnownNumbers(exponentials=[math.exp(-one) for one in noise])
                    found = categories.draw_category(rng, prior, worded.data, state, k)
                    if silent:
                        assert found == NONE
                    else:
                        assert (found == c) == (above > 0.0)
                        assert rng.used_up()


def test_counts_of_categories(worded, monkeypatch):
    prior, table = worded.prior, worded.prior.categories
    categories.forget_categories(prior)
    assert not table.seen.any()
    assert not table.false_seen.any()
    assert not table.counts.any()
    monkeypatch.setattr(categories, "draw_category", lambda *given: [1, NONE][given[-1] % 2])
    labels = list(partitions(worded))[1]
    state = worded.state(labels)
    seen, said = np.zeros_like(table.seen), np.zeros_like(table.counts)
    for members in reference.clusters(labels):
        k = int(state.label[members[0]])
        categories.count_category(None, prior, worded.data, state, k)
        if k % 2 == 0:
            seen[1] += 1.0
            for i in members:
                if table.said[i] != NONE:
                    said[prior.person[worded.families[i]], 1, table.said[i]] += 1.0
    np.testing.assert_array_equal(table.seen, seen)
    np.testing.assert_array_equal(table.counts, said)
    for i in range(len(worded.families)):
        categories.count_false_category(prior, worded.data, i)
    words = table.said[table.said != NONE]
    np.testing.assert_array_equal(
        table.false_seen, np.bincount(words, minlength=len(table.false_seen))
    )


def test_one_marking_may_say_something():
    for has, name in ((categories.has_categories, "said"), (scores.has_scores, "level")):
        table = "categories" if name == "said" else "scores"
        for markings in range(3):
            about = SimpleNamespace(**{name: np.zeros(markings)})
            assert has(SimpleNamespace(**{table: about})) == (markings > 0)


def test_numbers_for_categories():
    values = np.array([2.0, 0.0, 6.0])
    rng = KnownNumbers()
    categories.draw_dirichlet(rng, values)
    np.testing.assert_allclose(values, [0.25, 0.0, 0.75], atol=1e-300)
    assert rng.gammas == [2.0, categories.LEAST, 6.0]
    assert values[1] > 0.0
    values = np.array([0.3])
    categories.draw_dirichlet(None, values)
    assert values[0] == 1.0
    rng = KnownNumbers()
    rng.standard_gamma = lambda shape: 0.0
    values = np.array([1.0, 1.0])
    categories.draw_dirichlet(rng, values)
    np.testing.assert_allclose(values, 0.5)
    # The first customer opens a table, the next with probability weight / (weight + seated).
    rng = KnownNumbers([0.999, 0.59, 0.44, 0.33])
    assert categories.draw_tables(rng, 4.0, 1.5) == 2.0 + (0.33 < 1.5 / 4.5)
    rng = KnownNumbers([0.999, 0.61, 0.42])
    assert categories.draw_tables(rng, 3.0, 1.5) == 2.0


def test_update_of_the_usual_matrix(worded, monkeypatch):
    prior, table = worded.prior, worded.prior.categories
    parameters, beliefs = prior.parameters, prior.beliefs
    asked = []

    def draw_tables(rng, customers, weight):
        asked.append((customers, weight))
        return 0.5 * customers

    monkeypatch.setattr(categories, "draw_tables", draw_tables)
    # Somebody was heard once of a category, and never of another.
    table.counts[0, :2] = 0.0
    table.counts[0, 0, 1] = 1.0
    strength, usual = parameters.confusion_strength[0], parameters.usual_confusion.copy()
    counts, rng = table.counts.copy(), KnownNumbers()
    table.tables[:] = 99.0
    categories.update_usual(rng, prior)
    weights = np.broadcast_to(strength * usual, counts.shape)
    np.testing.assert_allclose(asked, np.column_stack([counts.ravel(), weights.ravel()]))
    shape = beliefs.confusion_shape + 0.5 * counts.sum()
    totals = counts.sum(axis=2).ravel()
    totals = totals[totals > 0.0]
    np.testing.assert_allclose(rng.betas, [(strength, total) for total in totals])
    rate = beliefs.confusion_shape / beliefs.confusion_strength
    rate -= np.log(strength / (strength + totals)).sum()
    assert rng.gammas[0] == pytest.approx(shape)
    assert parameters.confusion_strength[0] == pytest.approx(shape / rate)
    n = len(usual)
    expected = np.full((n, n), (1.0 - beliefs.accuracy) / (n - 1))
    np.fill_diagonal(expected, beliefs.accuracy)
    expected = beliefs.accuracy_weight * expected + 0.5 * counts.sum(axis=0)
    expected /= expected.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(parameters.usual_confusion, expected)


def test_update_of_categories(worded, monkeypatch):
    prior, table = worded.prior, worded.prior.categories
    parameters, beliefs = prior.parameters, prior.beliefs
    called = []
    monkeypatch.setattr(categories, "update_usual", lambda *_: called.append(1))
    counts = table.counts.copy()
    categories.update_categories(KnownNumbers(), prior)
    assert called == [1]
    for found, seen in (
        (parameters.category_share, table.seen),
        (parameters.false_category, table.false_seen),
    ):
        expected = beliefs.category_weight + seen
        np.testing.assert_allclose(found, expected / expected.sum())
    rows = counts + parameters.confusion_strength[0] * parameters.usual_confusion
    rows /= rows.sum(axis=2, keepdims=True)
    np.testing.assert_allclose(parameters.confusion, rows.transpose(1, 2, 0))


def test_tables_of_categories(worded):
    prior, table, parameters = worded.prior, worded.prior.categories, worded.prior.parameters
    parameters.confusion[0, 0, 0] = 0.0
    parameters.category_share[0] = 0.0
    parameters.false_category[0] = 0.0
    categories.rebuild_categories(prior)
    least = categories.LEAST
    np.testing.assert_allclose(table.share, np.log(np.maximum(parameters.category_share, least)))
    np.testing.assert_allclose(table.false, np.log(np.maximum(parameters.false_category, least)))
    likely = np.maximum(parameters.confusion, least).transpose(2, 1, 0)
    np.testing.assert_allclose(table.likely, likely)
    np.testing.assert_allclose(table.log_said, np.log(likely))
    np.testing.assert_allclose(table.most, np.log(likely.max(axis=2)))
    np.testing.assert_allclose(table.alone, np.log(likely @ parameters.category_share))


# Scores -------------------------------------------------------------------------------------------


def test_scores_of_clusters(worded):
    prior, table = worded.prior, worded.prior.scores
    for labels in partitions(worded):
        state = worded.state(labels)
        for members in reference.clusters(labels):
            k = int(state.label[members[0]])
            expected = sum(
                math.log(twin.score_ratio(prior, worded.families[i], i)) for i in members
            )
            assert scores.log_scores(prior, worded.data, state, k) == pytest.approx(expected)
    table.real[:], table.false[:] = 1.0, 2.0
    scores.forget_scores(prior)
    assert not table.real.any()
    assert not table.false.any()


def scored_counts(worded) -> None:
    """Some counts; the first source has all levels that there may be."""
    table = worded.prior.scores
    levels = table.rank.shape[1]
    table.rank[0], table.share[0] = np.linspace(-0.4, 0.5, levels), np.full(levels, 1.0 / levels)
    for values in (table.real, table.false):
        values[:] = worded.rng.integers(0, 4, values.shape) * (table.share > 0.0)


def test_conditionals_of_scores(worded):
    prior, table, beliefs = worded.prior, worded.prior.scores, worded.prior.beliefs
    scored_counts(worded)
    for f, offset in product(range(len(table.rank)), (False, True)):
        slope, shift = prior.parameters.score_slope[f], prior.parameters.score_offset[f]
        there = table.share[f] > 0.0
        for value in (-0.8, 0.3, 1.9):
            if offset:
                shift = value
                expected = -0.5 * ((value - beliefs.score_offset) / beliefs.score_offset_sd) ** 2
            else:
                slope = math.exp(value)
                usual = prior.parameters.usual_slope[0]
                expected = -0.5 * ((value - usual) / beliefs.score_slope_sd) ** 2
            likely = 1.0 / (1.0 + np.exp(-slope * table.rank[f, there] - shift))
            weight = table.share[f, there]
            real, false = likely * weight, (1.0 - likely) * weight
            # Up to the shares, which do not depend on the curve.
            real, false = likely / real.sum(), (1.0 - likely) / false.sum()
            expected += table.real[f, there] @ np.log(real)
            expected += table.false[f, there] @ np.log(false)
            target = scores.ScoreCurve(prior, f, offset)
            assert scores.log_score_curve(target, value) == pytest.approx(expected)
        target = scores.ScoreCurve(prior, f, offset)
        for value, open_ in ((50.0, True), (-50.0, True), (50.1, False), (-50.1, False)):
            assert (scores.log_score_curve(target, value) > -math.inf) == open_


def test_update_of_scores(worded, monkeypatch):
    prior, table = worded.prior, worded.prior.scores
    parameters, beliefs = prior.parameters, prior.beliefs
    asked = noted(monkeypatch, scores)
    slopes, offsets = parameters.score_slope.copy(), parameters.score_offset.copy()
    usual = parameters.usual_slope[0]
    rng = KnownNumbers(normals=[0.5, -0.25] * 10)
    scores.update_scores(rng, prior)
    expected, logs, used = [], 0.0, 0
    for f in range(len(table.rank)):
        if (table.share[f] > 0.0).sum() > 1:
            expected += [(f, False, math.log(slopes[f])), (f, True, offsets[f])]
            slope, offset = math.log(slopes[f]) + 0.25, offsets[f] + 0.25
        else:
            slope = usual + 0.5 * beliefs.score_slope_sd
            offset = beliefs.score_offset - 0.25 * beliefs.score_offset_sd
            used += 1
        assert parameters.score_slope[f] == pytest.approx(math.exp(slope))
        assert parameters.score_offset[f] == pytest.approx(offset)
        logs += slope
    assert [(t.f, t.offset, pytest.approx(start)) for t, start, *_ in asked] == expected
    assert expected
    own, each = beliefs.usual_slope_sd**-2, beliefs.score_slope_sd**-2
    precision = own + len(slopes) * each
    mean = (own * math.log(beliefs.score_slope) + each * logs) / precision
    assert parameters.usual_slope[0] == pytest.approx(mean + 0.5 * precision**-0.5)
    assert len(rng.normals) == 20 - 2 * used - 1


def test_odds_and_gains_of_scores(worded):
    prior, table = worded.prior, worded.prior.scores
    scored_counts(worded)
    for f in range(len(table.rank)):
        for slope, offset in ((1.5, 0.4), (3000.0, 0.0), (0.1, 900.0), (0.1, -900.0)):
            prior.parameters.score_slope[f], prior.parameters.score_offset[f] = slope, offset
            logits = np.clip(slope * table.rank[f] + offset, -scores.MOST, scores.MOST)
            real = (table.share[f] / (1.0 + np.exp(-logits))).sum()
            false = (table.share[f] / (1.0 + np.exp(logits))).sum()
            least = scores.LEAST
            expected = math.log(max(real, least)), math.log(max(false, least))
            found = scores.log_odds(prior, f, slope, offset)
            np.testing.assert_allclose(found, expected, rtol=1e-12)
            scores.rebuild_scores(prior)
            gain = slope * table.rank[f] + offset + found[1] - found[0]
            gain = np.clip(gain, -scores.MOST, scores.MOST) * (table.share[f] > 0.0)
            np.testing.assert_allclose(table.gain[f], gain)

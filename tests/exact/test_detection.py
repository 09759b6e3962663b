"""The detection prior against its definition: weights, tables, transition matrices.

The twin evaluates every cluster's factor from the probabilities of who lists what. The kernels'
source, followed along every branch over all partitions, must have the product of the factors as
its fixed point to 1e-10; planted bugs must not.
"""

from __future__ import annotations

import math
from itertools import combinations, permutations, product

import numpy as np
import pytest

from dfcrp import prior as prior_module
from dfcrp.likelihoods.circle import plane
from dfcrp.moves import assignment, pair, regroup
from dfcrp.priors.contract import log_cluster, log_join, log_join_bound, log_open, log_tilt
from dfcrp.priors.detection import kernel as detection
from dfcrp.sampling.problem import new_scratch
from reference import detection_reference as twin
from reference import kernel_reference as reference
from reference import small_problems as small
from reference.branches import BranchingGenerator, ScriptedGenerator, every_branch

TOLERANCE = 1e-10
#: Families, whose lists they are, and settings; images and who looked besides.
CASES = [
    ([0, 1, 0, 1, 2], [0, 1, 2], {"classes": 1}),
    ([0, 1, 2, 0, 1], [0, 0, 1], {"classes": 2}),
    ([0, 1, 2, 3], [0, 1, 0, 1], {"classes": 4, "by_size": False}),
    # Two images: list 2 looks at the second only, list 1 finds nothing there.
    (
        [0, 1, 0, 0, 2, 2],
        [0, 1, 2],
        {"classes": 2, "images": [0, 0, 0, 1, 1, 1], "looks": [(1, 1)]},
    ),
    # Three: two lists of one person, together, one alone; an image on which nobody marked.
    (
        [0, 1, 2, 1, 2, 0],
        [0, 0, 1],
        {"classes": 2, "images": [0, 0, 0, 1, 1, 1], "looks": [(2, 0), (2, 2)]},
    ),
    (
        [0, 1, 2, 1, 2, 3],
        [0, 0, 1, 1],
        {"classes": 3, "by_size": False, "images": [0, 0, 0, 1, 1, 2], "looks": [(1, 0), (2, 2)]},
    ),
    # Categories, on one image, two and three; some markings say nothing.
    (
        [0, 1, 2, 0, 1],
        [0, 0, 1],
        {"classes": 2, "said": [0, 1, 0, 2, -1]},
    ),
    (
        [0, 1, 0, 0, 2, 2],
        [0, 1, 2],
        {
            "classes": 2, "images": [0, 0, 0, 1, 1, 1], "looks": [(1, 1)],
            "said": [0, 1, -1, 1, 1, 0],
        },
    ),
    (
        [0, 1, 2, 1, 2, 3],
        [0, 0, 1, 1],
        {
            "classes": 3, "by_size": False, "images": [0, 0, 0, 1, 1, 2],
            "looks": [(1, 0), (2, 2)], "said": [2, 0, 2, 1, 1, 0],
        },
    ),
    # Scores, on one image; with categories on two and three.
    (
        [0, 1, 2, 0, 1],
        [0, 0, 1],
        {"classes": 2, "scores": [0.3, 5.0, np.nan, 0.9, -2.0]},
    ),
    (
        [0, 1, 0, 0, 2, 2],
        [0, 1, 2],
        {
            "classes": 2, "images": [0, 0, 0, 1, 1, 1], "looks": [(1, 1)],
            "said": [0, 1, -1, 1, 1, 0], "scores": [0.1, np.nan, 0.7, 0.5, 3.0, 1.0],
        },
    ),
    (
        [0, 1, 2, 1, 2, 3],
        [0, 0, 1, 1],
        {
            "classes": 3, "by_size": False, "images": [0, 0, 0, 1, 1, 2],
            "looks": [(1, 0), (2, 2)], "said": [2, 0, 2, 1, 1, 0],
            "scores": [1.0, 2.0, -7.0, 1.0, 9.0, 0.0],
        },
    ),
    # Footprints: two zones of an image, of which list 2 covers the second only; on another image
    # a third zone that everybody covers. Marks of one object may lie in two zones.
    (
        [0, 1, 2, 0, 1, 2],
        [0, 1, 2],
        {
            "classes": 2, "images": [0, 0, 0, 0, 1, 1],
            "zones": ([0, 1, 1, 1, 2, 2],
                      [(0, 0.3, (0, 1)), (0, 0.7, (0, 1, 2)), (1, 1.0, (1, 2))]),
        },
    ),
    # Lists that lie side by side and overlap nowhere, two of them one person's; sizes are those of
    # the members, with categories and scores.
    (
        [0, 1, 2, 0, 1, 2],
        [0, 0, 1],
        {
            "classes": 2, "images": [0, 0, 0, 1, 1, 1], "sizes_drawn": False,
            "zones": ([0, 0, 1, 2, 3, 3],
                      [(0, 0.5, (0, 1)), (0, 0.5, (2,)), (1, 0.2, (0, 1, 2)), (1, 0.8, (1, 0, 2))]),
            "said": [0, 1, -1, 1, 1, 0], "scores": [0.1, np.nan, 0.7, 0.5, 3.0, 1.0],
        },
    ),
    # Three images, sizes of the members, list 0 sees a half of the last.
    (
        [0, 1, 2, 1, 2, 0],
        [0, 1, 2],
        {
            "classes": 3, "images": [0, 0, 0, 1, 2, 2], "looks": [(1, 0), (2, 1)],
            "sizes_drawn": False,
            "zones": ([0, 0, 0, 1, 2, 3],
                      [(0, 1.0, (0, 1, 2)), (1, 1.0, (0, 1)), (2, 0.5, (1, 2)),
                       (2, 0.5, (0, 1, 2))]),
        },
    ),
    # Sizes of the members without footprints.
    ([0, 1, 2, 0, 1], [0, 0, 1], {"classes": 2, "slope_sd": 2.0, "sizes_drawn": False}),
    # Decoys, on one image and on two, with lists of one person, categories and scores.
    ([0, 1, 2, 0, 1], [0, 1, 2], {"classes": 1, "decoys": True}),
    (
        [0, 1, 2, 1, 2, 0],
        [0, 0, 1],
        {
            "classes": 2, "decoys": True, "images": [0, 0, 0, 1, 1, 1], "looks": [(2, 0)],
            "said": [0, 1, -1, 1, 1, 0], "scores": [0.1, np.nan, 0.7, 0.5, 3.0, 1.0],
        },
    ),
    # Nobody says who looked: silent looks, on two images, and with decoys and parts of images.
    (
        [0, 1, 2, 0, 1, 0],
        [0, 1, 2],
        {
            "classes": 2, "images": [0, 0, 0, 1, 1, 2], "looks_known": False,
            "assumed_looks": 4.5,
        },
    ),
    (
        [0, 1, 2, 0, 1, 2],
        [0, 0, 1],
        {
            "classes": 3, "decoys": True, "images": [0, 0, 0, 0, 1, 1], "looks_known": False,
            "assumed_looks": 3.0,
            "zones": ([0, 1, 1, 1, 2, 2],
                      [(0, 0.3, (0, 1)), (0, 0.7, (0, 1, 2)), (1, 1.0, (1, 2))]),
        },
    ),
    # People said what is real: without decoys, with them, with categories, lists of one person,
    # sizes of the members, and parts of images.
    ([0, 1, 0, 1, 2], [0, 1, 2], {"classes": 2, "reality": [1, 0, 0, 0, -1]}),
    (
        [0, 1, 2, 0, 1], [0, 0, 1],
        {"classes": 1, "decoys": True, "reality": [1, 0, -1, -1, 0]},
    ),
    (
        [0, 1, 2, 1, 2, 0],
        [0, 0, 1],
        {
            "classes": 2, "decoys": True, "images": [0, 0, 0, 1, 1, 1], "looks": [(2, 0)],
            "said": [0, 1, -1, 1, 1, 0], "scores": [0.1, np.nan, 0.7, 0.5, 3.0, 1.0],
            "reality": [1, 0, -1, 1, 1, 0], "decided": [-1, -1, -1, 0, -1, -1],
        },
    ),
    (
        [0, 1, 2, 0, 1],
        [0, 0, 1],
        {
            "classes": 2, "said": [0, 1, 0, 2, -1], "sizes_drawn": False,
            "reality": [1, 0, 1, 0, 1], "decided": [1, -1, -1, -1, 2],
        },
    ),
    (
        [0, 1, 2, 0, 1, 2],
        [0, 1, 2],
        {
            "classes": 2, "decoys": True, "images": [0, 0, 0, 0, 1, 1],
            "reality": [0, 1, 0, -1, 0, 0],
            "zones": ([0, 1, 1, 1, 2, 2],
                      [(0, 0.3, (0, 1)), (0, 0.7, (0, 1, 2)), (1, 1.0, (1, 2))]),
        },
    ),
]  # fmt: skip


def who_may_meet(n, prior, settings):
    """Two on one image; what is not real stays alone, or away from what is; None: everybody."""
    images, word = settings.get("images"), settings.get("reality")
    decided = settings.get("decided") or [-1] * n
    if images is None and word is None:
        return None
    allowed = np.ones((n, n), bool)
    decoys = len(prior.parameters.class_weight) > prior.real
    for i, j in product(range(n), repeat=2):
        if i == j:
            continue
        allowed[i, j] = images is None or images[i] == images[j]
        if word is not None:
            unreal = word[i] < 0 or word[j] < 0
            allowed[i, j] &= not unreal if not decoys else word[i] * word[j] >= 0
        allowed[i, j] &= decided[i] == decided[j] or -1 in (decided[i], decided[j])
    return allowed


class Setting:
    """A problem about the partition alone, under a prior with random parameters."""

    def __init__(self, families, persons, settings, seed):
        self.families = families
        self.prior = twin.make_prior(families, persons, seed=seed, **settings)
        allowed = self.allowed = who_may_meet(len(families), self.prior, settings)
        bare = small.make_problem(families, allowed=allowed)
        self.problem = twin.with_prior(bare, self.prior)
        rng = self.rng = np.random.default_rng([seed, 92])
        self.problem.data.features[:] = rng.normal([0, 0, 3], 0.6, size=(len(families), 3))
        self.scratch = new_scratch(self.problem)
        self.partitions = [
            c
            for c in prior_module.partitions(families)
            if reference.keeps_the_rule(c, families, allowed)
        ]
        self.place = {c: k for k, c in enumerate(self.partitions)}

    def may_join(self, i, members) -> bool:
        return self.allowed is None or all(self.allowed[i][j] for j in members)

    def target(self) -> np.ndarray:
        logs = [twin.log_partition(self.prior, c, self.families) for c in self.partitions]
        weights = np.exp(np.array(logs) - max(logs))
        return weights / weights.sum()

    def worst_change(self, run) -> float:
        matrix = np.zeros((len(self.partitions),) * 2)
        for row, labels in enumerate(self.partitions):

            def once(pick, labels=labels):
                state = small.fill_state(self.problem, labels)
                run(pick, state)
                small.assert_consistent(self.problem.data, state)
                return self.place[small.partition_of(state)]

            for probability, column in every_branch(once):
                matrix[row, column] += probability
        assert matrix.sum(axis=1) == pytest.approx(1.0, abs=1e-12)
        return float(np.abs(self.target() @ matrix - self.target()).max())

    def given(self, state):
        problem = self.problem
        return problem.data, problem.hyper, self.prior, state, self.scratch

    def one(self, i, **callees):
        def run(pick, state):
            small.update_marking_by(pick, **callees)(self.rng, *self.given(state), i)

        return run

    def two(self, i, j):
        def run(pick, state):
            choose = small.with_callees(pair.choose_pair, pick=pick)
            update = small.with_callees(pair.update_pair, choose_pair=choose)
            update(self.rng, *self.given(state), i, j)

        return run

    def regroup(self, i, j):
        def run(pick, state):
            update = small.with_callees(
                regroup.regroup,
                shuffle_deal=shuffle_by(pick),
                deal_members=regroup.deal_members.py_func,
                propose_clusters=regroup.propose_clusters.py_func,
            )
            update(BranchingGenerator(pick), *self.given(state), i, j)

        return run


def shuffle_by(pick):
    """Every order of the members, with equal probability."""

    def shuffle_deal(rng, scratch, count):
        orders = list(permutations(range(count)))
        chosen = list(orders[pick(None, np.ones(len(orders)), len(orders), float(len(orders)))])
        for values in (scratch.deal.member, scratch.deal.side):
            values[:count] = values[chosen]

    return shuffle_deal


def setting_of(number: int) -> Setting:
    return Setting(*CASES[number], number)


every_case = pytest.mark.parametrize("setting", range(len(CASES)), indirect=True)


@pytest.fixture
def setting(request) -> Setting:
    return setting_of(request.param)


@every_case
def test_weights_are_ratios_of_factors(setting):
    """Of joining, of opening, of whole clusters and of a cluster at another size."""
    families, prior = setting.families, setting.prior
    data, _, _, _, scratch = setting.given(None)
    for labels in setting.partitions:
        state = small.fill_state(setting.problem, labels)
        for size in (1.0, 2.3, 3.1, 3.9, 7.0):
            for members in reference.clusters(labels):
                held, k = [families[i] for i in members], members[0]
                image = int(prior.looks.image[k])
                whole = twin.log_factor(prior, held, size, image, members)
                assert log_cluster(prior, data, state, k, size) == pytest.approx(whole)
                assert log_tilt(prior, data, state, k, size) == pytest.approx(whole)
                for i in range(len(families)):
                    if families[i] not in held and setting.may_join(i, members):
                        more = twin.log_factor(
                            prior, [*held, families[i]], size, image, [*members, i]
                        )
                        found = log_join(prior, data, state, scratch, i, k, size)
                        assert found == pytest.approx(more - whole, abs=1e-9)
                        assert found <= log_join_bound(prior, data, i, size) + 1e-12
            for i in range(len(families)):
                image = int(prior.looks.image[i])
                alone = twin.log_factor(prior, [families[i]], size, image, [i])
                assert log_open(prior, 0.0, data, state, i, size) == pytest.approx(alone)


def test_histories_sum_to_one():
    """Every set of experts, the empty one included, in every class and level of every zone."""
    for setting in map(setting_of, range(len(CASES))):
        experts = range(len(setting.prior.person))
        sets = [s for size in range(len(experts) + 1) for s in combinations(experts, size)]
        for g in range(len(setting.prior.parameters.class_weight)):
            for level in range(0, len(setting.prior.away), 5):
                for zone in range(len(setting.prior.looks.share)):
                    total = sum(twin.history(setting.prior, g, level, s, zone) for s in sets)
                    # Of silent looks only one history is possible, that they noticed nothing.
                    usual = setting.prior.parameters.notice[g].mean()
                    silent = setting.prior.looks.silent[zone]
                    unseen = (1.0 / (1.0 + math.exp(usual))) ** silent
                    assert total == pytest.approx(unseen, abs=1e-12)
                    missed = math.exp(setting.prior.tables.missed[zone, level, g])
                    nobody = twin.history(setting.prior, g, level, (), zone)
                    assert missed == pytest.approx(nobody)


def test_lists_of_what_is_seen_sum_to_one():
    """Over every multiset of clusters of one size the prior is a Poisson process: it sums to 1.

    Markings of a list on an image are told apart by chance, as by their features, so that a
    partition of n_vf markings of each counts once for Π n_vf! orders of theirs.
    """
    prior = twin.make_prior(
        [0, 1, 0, 1], [0, 1], sizes=None, classes=2, decoys=True, seed=8, images=[0, 0, 1, 1]
    )
    parameters = prior.parameters
    parameters.expected_objects[:] = 0.6, 0.3
    parameters.false_marks_on[:] = 0.2, 0.1, 0.15, 0.05
    total, most = 0.0, 5
    for counts in product(range(most), repeat=4):
        images = np.repeat([0, 0, 1, 1], counts)
        families = np.repeat([0, 1, 0, 1], counts)
        weight = math.exp(twin.log_nothing_more(prior)) / math.prod(map(math.factorial, counts))
        total += weight * sum_of_partitions(prior, images, families)
    assert total == pytest.approx(1.0, abs=2e-3)


def sum_of_partitions(prior, images, families) -> float:
    """Σ over the partitions of Π factor(S)."""
    value = 1.0
    for image in (0, 1):
        here = families[images == image]
        a, b = (int((here == f).sum()) for f in (0, 1))
        single = [math.exp(twin.log_factor(prior, [f], 0.0, image)) for f in (0, 1)]
        both = math.exp(twin.log_factor(prior, [0, 1], 0.0, image))
        value *= sum(
            math.comb(a, m) * math.comb(b, m) * math.factorial(m)
            * both**m * single[0] ** (a - m) * single[1] ** (b - m)
            for m in range(min(a, b) + 1)
        )  # fmt: skip
    return value


@every_case
def test_updates_of_the_partition(setting):
    families = setting.families
    for i in range(len(families)):
        assert setting.worst_change(setting.one(i)) < TOLERANCE
    for i, j in combinations(range(len(families)), 2):
        if families[i] == families[j]:
            assert setting.worst_change(setting.two(i, j)) < TOLERANCE
        elif setting.prior.looks.image[i] == setting.prior.looks.image[j]:
            assert setting.worst_change(setting.regroup(i, j)) < TOLERANCE


def test_planted_bugs_move_the_target():
    """A single that is never false; two lists of a person that notice apart."""
    setting = Setting([0, 1, 2, 0, 1], [0, 0, 1], {"classes": 2}, 5)
    setting.prior.parameters.false_marks_on[:] = 0.5 * setting.prior.parameters.expected_objects
    detection.rebuild_tables(setting.prior)
    assert setting.worst_change(setting.one(0)) < TOLERANCE
    setting.prior.tables.false[:] -= 0.4
    assert setting.worst_change(setting.one(0)) > 1e-3
    detection.rebuild_tables(setting.prior)
    setting.prior.tables.again[:] += 0.5
    assert setting.worst_change(setting.one(0)) > 1e-3


def test_bugs_about_what_people_said_move_the_target():
    """The word on one marking, and the category that one is of, are forgotten."""
    said = {"classes": 1, "decoys": True, "reality": [1, 0, -1, -1, 0]}
    setting = Setting([0, 1, 2, 0, 1], [0, 0, 1], said, 21)
    assert setting.worst_change(setting.one(1)) < TOLERANCE
    setting.prior.word[0] = 0
    target = setting.target()
    setting.prior.word[0] = 1
    setting.target = lambda: target
    assert setting.worst_change(setting.one(1)) > 1e-3
    said = {"classes": 2, "said": [0, 1, 0, 2, -1], "decided": [1, -1, -1, -1, -1]}
    setting = Setting([0, 1, 2, 0, 1], [0, 0, 1], {**said, "reality": [1, 0, 0, 0, 0]}, 22)
    assert setting.worst_change(setting.one(1)) < TOLERANCE
    target = setting.target()
    setting.prior.categories.decided[0] = -1
    setting.target = lambda: target
    assert setting.worst_change(setting.one(1)) > 1e-4


def test_bugs_about_who_looked_move_the_target():
    """Who looked and found nothing is forgotten; a list counts where it does not cover."""
    families, persons, chosen = CASES[3]
    for looks in ([], [(1, 1), (0, 2)]):
        chosen = {**chosen, "ease_mean": -0.5, "decoys": True}
        setting = Setting(families, persons, chosen, 3)
        assert max(setting.worst_change(setting.one(i)) for i in range(6)) < TOLERANCE
        wrong = twin.make_prior(families, persons, **{**chosen, "looks": [(1, 2), *looks]})
        wrong.own[:] = setting.prior.own
        detection.rebuild_tables(wrong)
        setting.prior.tables.empty[:] = wrong.tables.empty
        assert max(setting.worst_change(setting.one(i)) for i in range(6)) > 1e-5


def test_bugs_about_false_marks_and_silent_looks_move_the_target():
    """A list's false marks are as many on every image; silent looks are forgotten."""

    def worst(case, plant) -> float:
        setting = Setting(*case, 18)
        plant(setting.prior)
        return max(setting.worst_change(setting.one(i)) for i in range(len(setting.families)))

    def one_rate(prior):
        rates = prior.parameters.false_marks[prior.looks.look_list]
        prior.tables.look_false[:] = np.log(rates)

    def forgotten(prior):
        silent = prior.looks.silent.copy()
        prior.looks.silent[:] = 0.0
        detection.rebuild_tables(prior)
        prior.looks.silent[:] = silent

    assert worst(CASES[18], lambda _: None) < TOLERANCE
    assert worst(CASES[18], one_rate) > 1e-4
    assert worst(CASES[18], forgotten) > 1e-4


def test_bugs_about_zones_and_sizes_of_members_move_the_target():
    """Footprints are forgotten; who marks from outside did not look; a size is the largest's."""
    zoned, sized = CASES[12], CASES[15]

    def worst(case, plant) -> float:
        setting = Setting(*case, 12)
        true = setting.target()
        setting.target = lambda: true
        plant(setting.prior)
        return max(setting.worst_change(setting.one(i)) for i in range(len(setting.families)))

    def everywhere(prior):
        families, persons, chosen = zoned
        places, each = chosen["zones"]
        all_over = [(image, share, lists if image else (0, 1, 2)) for image, share, lists in each]
        wrong = twin.make_prior(families, persons, **{**chosen, "zones": (places, all_over)})
        wrong.own[:] = prior.own
        detection.rebuild_tables(wrong)
        prior.tables.empty[:] = wrong.tables.empty

    def nobody_outside(prior):
        prior.tables.absent[:] = 0.0

    def one_larger(prior):
        prior.sizes[0] += 9.0

    assert worst(zoned, lambda _: None) < TOLERANCE
    assert worst(zoned, everywhere) > 1e-4
    assert worst(zoned, nobody_outside) > 1e-4
    assert worst(sized, lambda _: None) < TOLERANCE
    assert worst(sized, one_larger) > 1e-4


def test_bugs_about_categories_move_the_target():
    """A false mark says what objects are; everyone is as good; a silent marking says something."""
    families, persons, chosen = CASES[7]

    def worst(plant) -> float:
        setting = Setting(families, persons, chosen, 7)
        plant(setting.prior.categories)
        return max(setting.worst_change(setting.one(i)) for i in range(6))

    def false_as_real(categories):
        categories.false[:] = categories.share

    def all_alike(categories):
        for table in (categories.likely, categories.log_said):
            table[:] = table[0]

    def gain_forgotten(categories):
        categories.likely[:] = 1.0

    assert worst(lambda _: None) < TOLERANCE
    for plant in (false_as_real, all_alike, gain_forgotten):
        assert worst(plant) > 1e-4


def test_bugs_about_scores_move_the_target():
    """A ratio that is not one of distributions; a score that counts where a marking joins only."""
    families, persons, chosen = CASES[9]
    setting = Setting(families, persons, chosen, 9)
    assert max(setting.worst_change(setting.one(i)) for i in range(5)) < TOLERANCE
    setting.prior.scores.gain[:] += 0.3
    assert max(setting.worst_change(setting.one(i)) for i in range(5)) > 1e-4


def gain_of_mean(setting, state, k, proposed, **callees) -> float:
    """log of the acceptance ratio of a proposed mean, as the kernel's source computes it."""
    rng = ScriptedGenerator([], accept=False)
    update = small.with_callees(
        plane.update_mean_of_cluster, draw_mean=lambda *_: proposed, **callees
    )
    update(setting.problem.hyper, rng, setting.prior, setting.problem.data, state, k)
    return rng.threshold.gain


def test_means_know_what_the_prior_says_of_sizes():
    """A cluster's mean is accepted with the ratio of its factors at the two sizes."""
    rng = np.random.default_rng(94)
    families, hyper = [0, 1, 2, 0], small.HYPER
    setting = Setting(families, [0, 0, 1], {"classes": 2, "slope_sd": 2.0}, 5)
    rows = small.random_rows(rng, hyper, (4,), log_size=2.3)
    for labels in ([0, 0, 0, 1], [0, 1, 2, 3]):
        state = small.fill_state(setting.problem, labels, theta=rows, spare=rows)
        for members in reference.clusters(labels):
            k, held = members[0], [families[i] for i in members]
            old, new = 2.3, 3.6
            expected = (
                twin.log_factor(setting.prior, held, new)
                - twin.log_factor(setting.prior, held, old)
                + reference.log_covariance_prior(hyper, rows[k], new)
                - reference.log_covariance_prior(hyper, rows[k], old)
            )
            proposed = (float(rows[k, 0]), float(rows[k, 1]), new)
            found = gain_of_mean(setting, state, k, proposed)
            assert found == pytest.approx(expected, abs=1e-9)
            forgotten = gain_of_mean(setting, state, k, proposed, log_tilt=lambda *_: 0.0)
            assert abs(forgotten - expected) > 1e-3


def test_no_favourite_is_wrong():
    """The shortcut past exact weights is sound where the order has no share."""
    weight = np.log(np.array([0.2, 0.5, 0.3]))
    candidate = np.array([4, 7, -1])
    setting = Setting(*CASES[0], 3)
    data, _, prior, _, _ = setting.given(None)
    state = small.fill_state(setting.problem, [0, 1, 2, 3, 4])
    for threshold, expected in ((0.49, 1), (0.51, -1)):
        found = assignment.favourite(data, prior, state, 0, 3, candidate, weight, threshold)
        assert found == expected

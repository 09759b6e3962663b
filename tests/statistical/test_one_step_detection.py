"""Each update leaves the joint distribution under the detection prior unchanged.

(parameters, c, θ, y) are drawn by the story that the model tells, given the number of markings of
each expert on each image; one update is applied (a few times over), and the outcome is compared
with as many independent draws by two-sample tests: partitions, every parameter, sizes of clusters
of one and of more, and what was filled in. Each update is one test with the false-alarm rate 1e-5
(Bonferroni over its p values); seeds are fixed. Planted bugs must be caught. That clusters' means
know of the prior's say on sizes is shown exactly, in tests/exact/test_detection.py.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from dfcrp.compiled import slice as slicing
from dfcrp.likelihoods.circle import kernel as circle
from dfcrp.moves import assignment, pair, regroup, revisit, scan
from dfcrp.priors.contract import of_chain
from dfcrp.priors.detection import kernel as detection
from dfcrp.priors.detection import scores
from dfcrp.priors.detection import update as detection_update
from dfcrp.sampling.problem import new_record, new_scratch, new_state
from reference import detection_reference as twin
from reference import small_problems as small
from reference.prior_reference import canonical
from reference.two_samples import same_law
from studies.detection_story import parts, with_base

FALSE_ALARM_RATE = 1e-5
DRAWS = 4_000
#: Of several images, as it takes longer until the numbers of markings come up.
FEWER = 2_000
#: Of whole scans alone, which are always tested; the draws for all else take minutes.
FEW = 800
FEW_OF_DECOYS = 500
FAMILIES = [0, 0, 1, 1, 2]
#: The first two lists are one person's; sizes of the base measure span the levels.
PERSONS = [0, 0, 1]
#: Two images: the last list looks at both and marks one, the second looks at one; and a third on
#: which nobody marked anything.
IMAGES = [0, 0, 0, 1, 1]
LOOKS = [(0, 2), (1, 1), (2, 0), (2, 2)]
#: Where markings say what they take their object for, and how many categories there are.
SAID = [0, 1, 2, -1, 0]
#: The same of scores; the third list has none.
SCORES = [0.1, 0.9, 3.0, 5.0, math.nan]
SETTINGS = {
    "classes": 2, "class_weight": 0.7, "ease_mean": 0.3, "ease_sd": 1.0, "skill_sd": 0.7,
    "interaction_sd": 0.4, "look_shape": 1.5, "slope_sd": 1.2, "size_slope_sd": 1.0,
    "listing_a": 1.5, "listing_b": 2.5, "objects_shape": 2.0,
    "objects_shape_sd": 0.5, "objects_mean_sd": 0.5, "size_weight": 12.0,
    "false_shape": 1.2, "false_shape_sd": 0.5, "false_share": 0.3, "share_shape": 6.0,
    "ease_least": -0.8, "image_ease_sd_shape": 4.0,
    "accuracy": 0.6, "accuracy_weight": 4.0, "confusion_strength": 5.0,
}  # fmt: skip


#: Where markings may be of decoys, and more looked than marked something.
DECOYS = {
    "classes": 2, "image_ease_sd": 1.0, "decoys": True, "looks_known": False,
    "assumed_looks": 2.5, "decoy_least": 0.2, "decoy_most": 0.6, "decoy_ease_sd": 0.7,
}  # fmt: skip


def make_joint(images, looks, draws, **others):
    """Two independent sets of draws."""
    # Items say little of their object's size, so that the prior's word on it counts.
    hyper = small.HYPER._replace(kappa_d=0.15)
    prior = twin.make_prior(
        FAMILIES,
        PERSONS,
        images=images,
        looks=looks,
        sizes=(1.8, 4.2),
        **{**SETTINGS, "look_shape_sd": 0.5 if images else "auto", **others},
    )
    # So many objects are expected that the asked-for numbers come up often.
    prior = prior._replace(beliefs=prior.beliefs._replace(objects_mean=1.5))
    prior = with_base(prior, hyper.mu0_l, math.sqrt(hyper.var0_l))
    allowed = images and [[a == b for b in images] for a in images]
    features = np.zeros((len(FAMILIES), 3))
    bare = small.make_problem(FAMILIES, features, hyper=hyper, allowed=allowed)
    problem = twin.with_prior(bare, prior)
    return [twin.draw_joint(problem, FAMILIES, draws, seed) for seed in (1, 2)]


@pytest.fixture(scope="module")
def joint():
    """One image on which all looked."""
    return make_joint(None, None, DRAWS)


@pytest.fixture(scope="module")
def joint_of_images():
    """Images with different viewers."""
    return make_joint(IMAGES, LOOKS, FEWER)


@pytest.fixture(scope="module")
def joint_of_categories():
    """Markings with categories, on images with different viewers."""
    return make_joint(IMAGES, LOOKS, FEWER, said=SAID)


@pytest.fixture(scope="module")
def joint_of_scores():
    """Markings with scores, on images with different viewers."""
    return make_joint(IMAGES, LOOKS, FEWER, scores=SCORES)


@pytest.fixture(scope="module")
def joint_of_decoys():
    """Decoys, and silent looks."""
    return make_joint(IMAGES, None, FEWER, **DECOYS)


class Step:
    """What an update may use; its methods are the updates under test."""

    def __init__(self, draws, seed):
        problem = draws.problem
        self.rng = np.random.default_rng([seed, 93])
        self.data, self.hyper = problem.data, problem.hyper
        self.state, self.scratch = new_state(problem), new_scratch(problem)
        self.prior = of_chain(problem.prior, self.state.own)
        self.record = new_record(problem, 1)
        self.state.visit[[0, 3]], self.state.visit[2] = 2, 1
        self.state.contact_visit[:] = 1

    @property
    def given(self):
        return self.rng, self.data, self.hyper, self.prior, self.state, self.scratch

    def markings(self):
        assignment.sweep_markings(*self.given, 0, len(FAMILIES))

    def pairs(self):
        pair.sweep_pairs(*self.given, 0, len(FAMILIES))

    def regroup(self):
        for i, j in self.data.contact:
            regroup.regroup(*self.given, i, j)

    def parameters(self):
        scan.update_clusters(*self.given, 0, len(FAMILIES))

    def detection(self):
        detection_update.update_detection(
            self.prior, self.rng, self.data, self.hyper, self.state, self.scratch
        )

    def exact_scan(self):
        small.run_exact(*self.given, 1, self.record)


def apply(draws, step, update, times, count):
    """Labels, parameters and log sizes by marking after the update; the markings' own."""
    labels, own, sizes = [], [], []
    words = [None if each is None else each[:count] for each in (draws.said, draws.scored)]
    for draw in range(count):
        draws.load(draw, step.state)
        detection.rebuild_tables(step.prior)
        step.state.scans[0] = revisit.NOTE_UNTIL + draw
        assignment.refresh_spares(step.rng, step.data, step.hyper, step.state, 0, len(FAMILIES), 1)
        for _ in range(times):
            update(step)
        labels.append(canonical(step.state.label.tolist()))
        own.append(step.state.own.copy())
        sizes.append(step.state.theta[step.state.label, circle.MU_L].copy())
    return labels, np.array(own), np.array(sizes), draws.features[:count, :, 2], *words


def fresh(draws):
    """The same of draws to which nothing was done."""
    labels = [canonical(row.tolist()) for row in draws.arrays["label"]]
    theta = draws.arrays["theta"][np.arange(len(draws))[:, None], draws.arrays["label"]]
    marked = draws.features[:, :, 2]
    sizes = theta[:, :, circle.MU_L]
    return labels, draws.arrays["own"], sizes, marked, draws.said, draws.scored


#: Parameters that are compared one by one.
SHOWN = (
    *(
        "class_weight",
        "ease",
        "notice",
        "skill",
        "skill_sd",
        "slope",
        "false_marks",
        "false_marks_on",
        "false_share",
        "false_shape",
        "expected_objects",
    ),
    "objects_law",
)


def statistics(labels, own, sizes, marked, said, scored, prior) -> dict[str, np.ndarray]:
    """Numbers by draw; NaN where there is none."""
    table = np.array(labels)
    same = (table[:, :, None] == table[:, None, :]).sum(axis=2)
    where = parts(prior)
    found = {
        f"{name} {column}": own[:, where[name]][:, column]
        for name in SHOWN
        for column in range(own[:, where[name]].shape[1])
    }
    found |= of_images(own, where, same)
    clumps = own[:, where["look_shape"]][:, 0]
    if np.isfinite(clumps).all():
        found["look_shape"] = clumps
        more = own[:, where["false_marks_on"]][:, 0] / own[:, where["false_marks"]][:, 0]
        found["clumps"] = np.log(clumps) * more**0.25
    for name in ("size_share", "false_size"):
        found |= {f"{name} {column}": own[:, where[name]][:, column] for column in (4, 15, 28)}
    # Of the person with two lists, in both classes; the third list has no such parameter.
    found |= {f"listing {c}": own[:, where["listing"]][:, c] for c in (0, 1, 3, 4)}
    notice = own[:, where["notice"]].reshape(len(own), -1, 2)
    apart = notice[:, 0] - own[:, where["ease"]][:, :1] - own[:, where["skill"]]
    found |= {f"interaction {p}": apart[:, p] for p in range(2)}
    found["interactions"] = (apart**2).sum(axis=1)
    if prior.real < notice.shape[1]:
        found["share who mark a decoy"] = (1.0 / (1.0 + np.exp(-notice[:, -1]))).mean(axis=1)
        found["decoys and false"] = notice[:, -1, 1] * np.log(own[:, where["false_marks"]][:, 2])
    for i in (0, 2, 4):
        found[f"size of {i} alone"] = np.where(same[:, i] == 1, sizes[:, i], np.nan)
        found[f"size of {i} together"] = np.where(same[:, i] > 1, sizes[:, i], np.nan)
        # What is found depends on size by the slope; a marking's error does not.
        slope = own[:, where["slope"]][:, PERSONS[FAMILIES[i]]]
        found[f"slope and size of {i}"] = slope * (sizes[:, i] - 3.0)
        found[f"slope and error of {i}"] = slope * (marked[:, i] - sizes[:, i])
    found["slopes together"] = own[:, where["slope"]][:, 0] * own[:, where["slope"]][:, 1]
    clusters = table.max(axis=1) + 1
    found["objects by cluster"] = own[:, where["expected_objects"]][:, 0] / clusters
    alone = (same == 1).sum(axis=1)
    found["false where alone"] = np.where(
        alone > 2, own[:, where["false_marks"]].sum(axis=1), np.nan
    )
    together = np.where(same[:, 0] > 1, 1.0, np.nan)
    found["notice where together"] = own[:, where["notice"]][:, 0] * together
    found |= {} if said is None else of_categories(table, own, said, where)
    return found if scored is None else found | of_scores(table, own, scored, where)


def of_images(own, where, same) -> dict[str, np.ndarray]:
    """How images differ in their shares of easy objects, and how that goes with other things."""
    theta, spread = own[:, where["image_ease"]], own[:, where["image_ease_sd"]][:, 0]
    if not spread.any():
        assert not theta.any()
        return {}
    found = {f"ease of image {v}": theta[:, v] for v in range(theta.shape[1])}
    found["how images differ"] = spread
    found["eases over how images differ"] = (theta**2).sum(axis=1) / spread**2
    found["ease of the image where together"] = np.where(same[:, 0] > 1, theta[:, 0], np.nan)
    found["ease of the image by objects"] = theta[:, 0] * np.log(
        own[:, where["expected_objects"]][:, 0]
    )
    more = np.log(own[:, where["class_weight"]][:, 0] / own[:, where["class_weight"]][:, -1])
    found["ease of the image by weights"] = theta[:, 0] + more
    return found


def of_scores(table, own, scored, where) -> dict[str, np.ndarray]:
    """Parameters of the scores, and how they go with levels and the partition."""
    slope, offset = own[:, where["score_slope"]], own[:, where["score_offset"]]
    found = {"usual slope": own[:, where["usual_slope"]][:, 0]}
    for f in range(3):
        found |= {f"slope {f}": slope[:, f], f"offset {f}": offset[:, f]}
    for i in (0, 1, 2):
        alone = (table == table[:, i : i + 1]).sum(axis=1) == 1
        high = scored[:, i] > 0
        for name, chosen in (("alone", alone), ("together", ~alone)):
            found[f"level of {i} {name}"] = np.where(chosen, scored[:, i], np.nan)
            found[f"slope where {i} is high and {name}"] = np.where(
                chosen & high, slope[:, FAMILIES[i]], np.nan
            )
            found[f"offset where {i} is low and {name}"] = np.where(
                chosen & ~high, offset[:, FAMILIES[i]], np.nan
            )
    false = own[:, where["false_marks"]][:, 0]
    found["false where 0 is high"] = np.where(scored[:, 0] > 0, false, np.nan)
    found["false where 0 is low"] = np.where(scored[:, 0] == 0, false, np.nan)
    return found


def of_categories(table, own, said, where) -> dict[str, np.ndarray]:
    """Parameters of the categories, and how they go with what is said and the partition."""
    theta = own[:, where["confusion"]].reshape(len(own), 3, 3, 2)
    found = {
        f"{name} {column}": own[:, where[name]][:, column]
        for name in ("category_share", "false_category", "usual_confusion", "confusion_strength")
        for column in range(own[:, where[name]].shape[1])
    }
    found |= {f"confusion {c} {w} {p}": theta[:, c, w, p] for c, w, p in np.ndindex(3, 3, 2)}
    same = said[:, 0] == said[:, 2]
    both = table[:, 0] == table[:, 2]
    for name, chosen in (("agree", same & both), ("differ", ~same & both), ("apart", ~both)):
        found[f"right if they {name}"] = np.where(chosen, theta[:, 0, 0, 0], np.nan)
        found[f"alike if they {name}"] = np.where(
            chosen, own[:, where["confusion_strength"]][:, 0], np.nan
        )
    found["agree and together"] = (same & both).astype(float)
    first = np.take_along_axis(own[:, where["category_share"]], said[:, :1], axis=1)[:, 0]
    false = np.take_along_axis(own[:, where["false_category"]], said[:, :1], axis=1)[:, 0]
    alone = (table == table[:, :1]).sum(axis=1) == 1
    found["share of what is said"] = np.where(~alone, first, np.nan)
    found["share of what is said alone"] = np.where(alone, first, np.nan)
    found["false share of what is said alone"] = np.where(alone, false, np.nan)
    return found


def p_values(one, two, prior) -> dict[str, float]:
    a, b = statistics(*one, prior), statistics(*two, prior)
    found = {name: same_law(a[name], b[name]) for name in a}
    kinds = sorted({*one[0], *two[0]})
    counts = np.array([[rows.count(kind) for kind in kinds] for rows in (one[0], two[0])])
    # Rare partitions are counted together.
    rare = counts.sum(axis=0) < 20
    pooled = np.column_stack([counts[:, ~rare], counts[:, rare].sum(axis=1)])
    pooled = pooled[:, pooled.sum(axis=0) > 0]
    found["partition"] = float(stats.chi2_contingency(pooled).pvalue)
    return found


def alarm(found) -> bool:
    return min(found.values()) < FALSE_ALARM_RATE / len(found)


UPDATES = [
    (Step.exact_scan, 3), (Step.detection, 2), (Step.parameters, 2), (Step.markings, 2),
    (Step.pairs, 2), (Step.regroup, 1),
]  # fmt: skip


# Always run: whole scans, on fewer draws ------------------------------------------------------


@pytest.fixture(scope="module")
def joint_of_few():
    return make_joint(None, None, FEW)


@pytest.fixture(scope="module")
def joint_of_few_decoys():
    return make_joint(IMAGES, None, FEW_OF_DECOYS, **DECOYS)


def scan_under(draws, **beliefs):
    """What three scans make of the draws, with other beliefs than they were drawn from."""
    step, prior = Step(draws, 1), draws.problem.prior
    step.prior = of_chain(prior._replace(beliefs=prior.beliefs._replace(**beliefs)), step.state.own)
    return apply(draws, step, Step.exact_scan, 3, len(draws))


def test_scans_leave_few_draws_unchanged(joint_of_few):
    one, two = joint_of_few
    found = p_values(scan_under(one), fresh(two), one.problem.prior)
    assert not alarm(found), found


def test_scans_leave_few_draws_with_decoys_unchanged(joint_of_few_decoys):
    one, two = joint_of_few_decoys
    found = p_values(scan_under(one), fresh(two), one.problem.prior)
    assert not alarm(found), found


@pytest.mark.parametrize(
    "belief",
    [
        {"decoy_least": 0.0, "decoy_most": 1.0}, {"interaction_sd": 1.5}, {"look_shape": 8.0},
        {"decoy_sd": 0.1}, {"image_ease_sd": 0.2},
    ],
    ids=lambda belief: next(iter(belief)),
)  # fmt: skip
def test_a_wrong_belief_about_decoys_shows_in_few_draws(joint_of_few_decoys, belief):
    one, two = joint_of_few_decoys
    found = p_values(scan_under(one, **belief), fresh(two), one.problem.prior)
    assert alarm(found), min(found.items(), key=lambda item: item[1])


@pytest.mark.parametrize(
    "belief",
    [
        {"false_shape": 3.6}, {"listing_a": 4.5}, {"skill_sd": 1.4}, {"objects_mean_sd": 1.5},
        {"slope_sd": 3.0}, {"size_slope_sd": 4.0}, {"ease_mean": -0.9},
    ],
    ids=lambda belief: next(iter(belief)),
)  # fmt: skip
def test_a_wrong_belief_shows_in_few_draws(joint_of_few, belief):
    one, two = joint_of_few
    found = p_values(scan_under(one, **belief), fresh(two), one.problem.prior)
    assert alarm(found), min(found.items(), key=lambda item: item[1])


# Each update on its own, for ``./run test --all`` ------------------------------------------------


@pytest.mark.long
@pytest.mark.parametrize("images", ["one image", "several"])
@pytest.mark.parametrize(
    ("update", "times"), UPDATES, ids=[update.__name__ for update, _ in UPDATES]
)
def test_update_leaves_the_joint_unchanged(joint, joint_of_images, update, times, images):
    one, two = joint if images == "one image" else joint_of_images
    after = apply(one, Step(one, 1), update, times, len(one))
    found = p_values(after, fresh(two), one.problem.prior)
    assert not alarm(found), found


@pytest.mark.long
@pytest.mark.parametrize(("update", "times"), [(Step.exact_scan, 2), (Step.detection, 2)])
def test_update_leaves_the_joint_with_categories_unchanged(joint_of_categories, update, times):
    one, two = joint_of_categories
    after = apply(one, Step(one, 1), update, times, len(one))
    found = p_values(after, fresh(two), one.problem.prior)
    assert not alarm(found), found


@pytest.mark.long
@pytest.mark.parametrize(("update", "times"), [(Step.exact_scan, 2), (Step.detection, 2)])
def test_update_leaves_the_joint_with_scores_unchanged(joint_of_scores, update, times):
    one, two = joint_of_scores
    after = apply(one, Step(one, 1), update, times, len(one))
    found = p_values(after, fresh(two), one.problem.prior)
    assert not alarm(found), found


@pytest.mark.long
@pytest.mark.parametrize(
    ("update", "times"), UPDATES, ids=[update.__name__ for update, _ in UPDATES]
)
def test_update_leaves_the_joint_with_decoys_unchanged(joint_of_decoys, update, times):
    one, two = joint_of_decoys
    after = apply(one, Step(one, 1), update, times, len(one))
    found = p_values(after, fresh(two), one.problem.prior)
    assert not alarm(found), found


@pytest.mark.long
def test_fresh_draws_pass(joint, joint_of_images, joint_of_decoys):
    for one, two in (joint, joint_of_images, joint_of_decoys):
        found = p_values(fresh(one), fresh(two), one.problem.prior)
        assert not alarm(found), found


# Planted bugs --------------------------------------------------------------------------------


def never_false(step: Step):
    """A cluster of one is weighed as if it were real."""
    step.prior.tables.false[:] = -600.0
    step.markings()


def update_once(step: Step, **callees):
    """One round of the parameters' update, with some of its parts replaced."""
    update = small.with_callees(detection_update.update_detection, ROUNDS=1, **callees)
    update(step.prior, step.rng, step.data, step.hyper, step.state, step.scratch)


def nothing_missed(step: Step):
    """The parameters are updated as if every object had been seen."""
    fill = small.with_callees(detection_update.fill_in_missed, draw_poisson=lambda *_: 0.0)
    update_once(step, fill_in_missed=fill)


def all_seen(step: Step):
    """Λ is drawn as if every object were seen by somebody."""

    def expose(prior):
        prior.counts.exposure[:] = 1.0

    update = small.with_callees(detection_update.update_objects, expose=expose)
    update_once(step, update_objects=update)


def everybody_looked(step: Step):
    """Objects count for all viewers, also on images that they did not look at."""

    def fill(rng, prior):
        detection_update.fill_in_missed(rng, prior)
        prior.counts.total[:] = prior.counts.objects.sum(axis=0)

    update_once(step, fill_in_missed=fill)


def noticing_assumed(step: Step):
    """Whoever lists an object nowhere is taken to have noticed it all the same."""
    fill = small.with_callees(
        detection_update.fill_in_unlisted, draw_binomial=lambda _, tries, __: tries
    )
    update_once(step, fill_in_unlisted=fill)


def real_categories_only(step: Step):
    """False marks are not counted where categories are."""
    count = small.with_callees(
        detection_update.count_clusters_by_class, count_false_category=lambda *_: None
    )
    update_once(step, count_clusters_by_class=count)


def odds_forgotten(step: Step):
    """Scores are updated as if σ were the probability of a level."""
    curve = small.with_callees(scores.log_score_curve, log_odds=lambda *_: (0.0, 0.0))

    plain = small.with_callees(
        slicing.slice_update, log_target=curve,
        shrink=small.with_callees(slicing.shrink, log_target=curve),
    )  # fmt: skip
    update = small.with_callees(scores.update_scores, slice_update=plain)
    update_once(step, update_scores=update)


# With five markings nobody says one thing of two objects: that M is not each person's own matrix is
# shown in test_one_step_words.py.
BUGS = [
    (never_false, 2, 3000), (all_seen, 4, DRAWS),
    (everybody_looked, 4, FEWER), (noticing_assumed, 2, DRAWS),
    (nothing_missed, 12, DRAWS),
    (real_categories_only, 4, FEWER), (odds_forgotten, 4, FEWER),
]  # fmt: skip
#: What a bug is shown with, if not by markings on one image.
SHOWN_BY = {
    everybody_looked: "joint_of_images",
    real_categories_only: "joint_of_categories",
    odds_forgotten: "joint_of_scores",
}


@pytest.mark.long
@pytest.mark.parametrize(("bug", "times", "count"), BUGS)
def test_planted_bug_is_caught(request, bug, times, count):
    one, two = request.getfixturevalue(SHOWN_BY.get(bug, "joint"))
    after = apply(one, Step(one, 3), bug, times, count)
    found = p_values(after, fresh(two), one.problem.prior)
    assert alarm(found), min(found.items(), key=lambda item: item[1])

"""What draws under the detection prior say, and opinions under others, with known numbers."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dfcrp.compiled.state import NONE
from dfcrp.priors import opinions
from dfcrp.priors.detection import summaries
from dfcrp.priors.detection.update import FALSE
from reference import detection_reference as twin
from reference import kernel_reference as reference
from reference.known_numbers import KnownNumbers

CASES = [
    ([0, 1, 2, 0, 1], [0, 0, 1], {"classes": 2}),
    ([0, 1, 2, 3], [0, 1, 0, 0], {"classes": 3, "by_size": False}),
    (
        [0, 1, 2, 0, 1, 2],
        [0, 0, 1],
        {
            "classes": 2, "sizes_drawn": False,
            "zones": ([0, 0, 1, 2, 2, 2],
                      [(0, 0.4, (0, 1)), (0, 0.5, (2,)), (0, 0.1, (0, 1, 2))]),
        },
    ),
    ([0, 1, 2, 0, 1], [0, 0, 1], {"classes": 2, "decoys": True, "look_shape_sd": 0.5}),
]  # fmt: skip
EDGES = np.array([math.exp(2.4), math.exp(3.1)])


class Setting:
    """A prior with random parameters, and a draw's partition."""

    def __init__(self, families, persons, settings):
        self.families, n = families, len(families)
        self.prior = twin.make_prior(families, persons, seed=n, **settings)
        self.lists = summaries.Lists(np.array(families, np.int32), np.arange(n, dtype=np.int32))
        self.seats = summaries.SummarySeats(*(np.full(n, 5, np.int32) for _ in range(3)))
        self.levels, self.experts = len(self.prior.away), len(persons)
        # Somebody has looked besides who marked nothing.
        self.prior.looks.silent[:] = 0.7 if "decoys" in settings else 0.0
        twin.rebuild_tables(self.prior)

    @property
    def classes(self) -> int:
        return len(self.prior.parameters.class_weight)

    def found(self, draws=2) -> summaries.Found:
        n, count = len(self.families), len(EDGES) + 1
        shapes = {
            "seen": count, "missed": count, "seen_at": self.levels, "missed_at": self.levels,
            "listed": (count, self.experts), "false": (count, self.experts), "classes": (),
            "decoys": (),
            "common": self.experts, "common_again": self.experts, "sizes": self.experts + 1,
            "new_sizes": self.experts + 1, "real": n, "marked": n, "hidden": 2,
        }  # fmt: skip
        real = ("common", "common_again", "real", "marked", "hidden")
        return summaries.Found(
            **{
                name: np.zeros(
                    (draws, *np.atleast_1d(np.array(shape, int))), float if name in real else int
                )
                if shape != ()
                else np.zeros(draws, int)
                for name, shape in shapes.items()
            }
        )

    def noticed(self, g, p, level) -> float:
        parameters = self.prior.parameters
        logit = parameters.notice[g, p] + parameters.slope[p] * self.prior.away[level]
        return 1.0 / (1.0 + math.exp(-logit))

    def common(self, g, level) -> tuple[np.ndarray, np.ndarray]:
        """Expected pairs of a list's object with others of its person; and on looking again."""
        prior, pairs = self.prior, np.zeros((2, self.experts))
        for f, p in enumerate(prior.person):
            if prior.lists[p] > 1:
                s, r = self.noticed(g, p, level), prior.parameters.listing[g]
                others = sum(r[h] for h in range(self.experts) if prior.person[h] == p and h != f)
                pairs[:, f] = s * r[f] * others * np.array([1.0, s])
        return pairs[0], pairs[1]

    def typical(self, g) -> float:
        return 1.0 / (1.0 + math.exp(-self.prior.parameters.ease[g]))


@pytest.fixture(params=CASES, ids=["sizes", "persons", "zones", "decoys"])
def setting(request) -> Setting:
    return Setting(*request.param)


PARTITIONS = {4: [0, 0, 2, 3], 5: [0, 0, 0, 3, 3], 6: [0, 1, 0, 3, 0, 5]}


def test_a_draw_is_seated(setting):
    labels = np.array(PARTITIONS[len(setting.families)], np.int32)
    summaries.seat(labels, setting.seats)
    for k in range(len(labels)):
        members, i = [], int(setting.seats.head[k])
        while i != NONE:
            members.append(i)
            i = int(setting.seats.after[i])
        assert members == np.flatnonzero(labels == k).tolist()
        assert setting.seats.size[k] == len(members)


def test_classes_of_size():
    found = [summaries.size_class(EDGES, size) for size in (2.0, 2.39, 2.41, 3.09, 3.11, 9.0)]
    assert found == [0, 0, 1, 1, 2, 2]
    assert summaries.size_class(np.array([math.exp(2.4)]), 2.4) == 1


def test_who_marks_a_new_object(setting):
    prior, looks = setting.prior, setting.prior.looks
    for g in range(setting.classes):
        for zone in range(len(looks.share)):
            for level in {0, setting.levels - 1}:
                for lift, seen in ((-1e-9, True), (1e-9, False)):
                    numbers, expected = [], 0
                    for look in range(looks.start[zone], looks.start[zone + 1]):
                        viewer = looks.viewer[look]
                        p = looks.viewer_person[viewer]
                        # Noticed if 1 - u < s.
                        numbers.append(1.0 - setting.noticed(g, p, level) - lift)
                        if not seen:
                            continue
                        for f in looks.row_list[looks.row_viewer == viewer]:
                            if prior.lists[p] > 1:
                                r = prior.parameters.listing[g, f]
                                numbers.append(r + (1e-9 if f % 2 else -1e-9))
                                expected += f % 2 == 0
                            else:
                                expected += 1
                    rng = KnownNumbers(numbers)
                    assert summaries.new_markings(rng, prior, g, zone, level) == expected
                    assert rng.used_up()


def test_what_lists_of_a_person_have_in_common(setting):
    found = setting.found()
    expected = np.zeros((2, setting.experts))
    for g in range(setting.classes):
        level = g % setting.levels
        summaries.add_common(setting.prior, found, 1, g, level, 2.0)
        expected += 2.0 * np.array(setting.common(g, level))
        assert summaries.typical(setting.prior, g) == pytest.approx(setting.typical(g))
    np.testing.assert_allclose(found.common[1], expected[0])
    np.testing.assert_allclose(found.common_again[1], expected[1])
    assert not found.common[0].any()


def weights_of(setting, members, size) -> tuple[list[float], int, int]:
    prior, parameters = setting.prior, setting.prior.parameters
    zone, level = twin.cell(prior, size, 0, members)
    experts = [setting.families[i] for i in members]
    also = twin.beside(prior, members)
    weights = []
    for g, share in enumerate(twin.class_shares(prior, 0)):
        share *= twin.share_of(prior, g, level) / prior.usual[level]
        listed = twin.history(prior, g, level, experts, zone, also)
        weights.append(parameters.expected_objects[0] * share * listed)
    return weights, zone, level


def test_a_cluster_is_summed_up(setting, monkeypatch):
    prior = setting.prior
    labels = PARTITIONS[len(setting.families)]
    summaries.seat(np.array(labels, np.int32), setting.seats)
    for members in reference.clusters(labels):
        for g in (0, 1, 2, FALSE):
            if g == 2 and setting.classes == 2:
                continue
            if g == FALSE and len(members) > 1:
                continue
            asked = []

            def draw(rng, p, lists, seats, k, zone, level, asked=asked, g=g):
                asked.append((k, zone, level))
                return g

            monkeypatch.setattr(summaries, "draw_class", draw)
            found, k = setting.found(), labels[members[0]]
            size = 2.9
            said = summaries.summarise_cluster(
                None, prior, setting.lists, setting.seats, k, size, 2, found, 1
            )
            decoy = setting.prior.real <= g < FALSE
            assert said == (FALSE if decoy else g)
            weights, zone, level = weights_of(setting, members, size)
            assert asked == [(k, zone, level)]
            assert found.sizes[1, len(members)] == 1
            assert found.sizes.sum() == 1
            objects, real = weights[: prior.real], sum(weights[: prior.real]) / sum(weights)
            if len(members) == 1:
                false = twin.false_factor(prior, setting.families[members[0]], level, 0)
                real = sum(objects) / (sum(weights) + false)
            once_more = sum(w * setting.typical(h) for h, w in enumerate(objects)) / sum(objects)
            assert found.real[1, k] == pytest.approx(real)
            assert found.marked[1, k] == pytest.approx(real * once_more)
            listed, false_marks = np.zeros((3, setting.experts)), np.zeros((3, setting.experts))
            if g == FALSE or decoy:
                false_marks[2, [setting.families[i] for i in members]] = 1
            else:
                listed[2, [setting.families[i] for i in members]] = 1
                np.testing.assert_allclose(found.common[1], setting.common(g, level)[0])
            np.testing.assert_array_equal(found.false[1], false_marks)
            np.testing.assert_array_equal(found.listed[1], listed)
            assert found.decoys.tolist() == [0, int(decoy)]
            assert found.seen[1].tolist() == [0, 0, int(said != FALSE)]
            assert found.seen_at[1].sum() == found.seen_at[1, level] == int(said != FALSE)


def numbers_of(monkeypatch):
    """Poisson numbers by turns, and the rates that were asked for."""
    rates = []

    def draw_poisson(rng, rate):
        rates.append(rate)
        return float(len(rates) % 3)

    monkeypatch.setattr(summaries, "draw_poisson", draw_poisson)
    return rates


def test_missed_and_new_objects(setting, monkeypatch):
    prior, parameters, looks = setting.prior, setting.prior.parameters, setting.prior.looks
    rates = numbers_of(monkeypatch)
    monkeypatch.setattr(
        summaries, "new_markings", lambda rng, p, g, zone, level: (g + zone + level) % 3
    )
    found = setting.found()
    numbers = np.arange(setting.levels) % 3
    # The rate of a new look is κ's Gamma, which is its mean here.
    summaries.summarise_missed(KnownNumbers(), prior, numbers, found, 1)
    expected, asked = setting.found(), []

    def draw(rate):
        asked.append(rate)
        return len(asked) % 3

    for zone in range(len(looks.share)):
        for level in range(setting.levels):
            for g in range(setting.classes):
                rate = parameters.expected_objects[0] * twin.class_shares(prior, 0)[g]
                rate *= twin.share_of(prior, g, level)
                rate *= looks.share[zone]
                usual = parameters.notice[g].mean()
                unseen = (1.0 / (1.0 + math.exp(usual))) ** looks.silent[zone]
                expected.new_sizes[1, (g + zone + level) % 3] += draw(rate * unseen)
                if g >= prior.real:
                    continue
                hidden = rate * twin.history(prior, g, level, (), zone)
                expected.hidden[1] += [hidden, hidden * setting.typical(g)]
                missed = draw(hidden)
                expected.missed[1, numbers[level]] += missed
                expected.missed_at[1, level] += missed
                expected.common[1] += missed * setting.common(g, level)[0]
    for f in range(setting.experts):
        expected.new_sizes[1, 1] += draw(parameters.false_marks[f] * looks.covered[f])
    np.testing.assert_allclose(rates, asked)
    for name in ("hidden", "missed", "missed_at", "common", "new_sizes"):
        np.testing.assert_allclose(getattr(found, name), getattr(expected, name), err_msg=name)


def test_all_tables_but_gains_are_rebuilt_for_summaries(setting):
    prior, rng = setting.prior, np.random.default_rng(5)
    own = prior.parameters
    for values in (own.ease, own.notice, own.false_marks_on):
        values *= rng.uniform(0.5, 1.5, values.shape)
    wanted = {name: table.copy() for name, table in prior.tables._asdict().items()}
    summaries.rebuild_weights(prior)
    found = {name: table.copy() for name, table in prior.tables._asdict().items()}
    for name in ("gain", "most"):
        np.testing.assert_array_equal(found.pop(name), wanted[name])
    assert (found["found"] != wanted["found"]).any()
    twin.rebuild_tables(prior)
    for name, values in found.items():
        np.testing.assert_array_equal(values, getattr(prior.tables, name), err_msg=name)


def test_draws_are_summed_up(setting, monkeypatch):
    prior, n = setting.prior, len(setting.families)
    done, rebuilt = [], []
    monkeypatch.setattr(summaries, "rebuild_weights", lambda p: rebuilt.append(p.own.copy()))
    monkeypatch.setattr(
        summaries, "summarise_missed", lambda *given: done.append(("missed", given[-1]))
    )
    drawn = [0, 0, FALSE, prior.real - 1, prior.real - 1]
    classes = iter(drawn)

    def cluster(rng, p, lists, seats, k, size, number, found, draw):
        done.append((k, size, number, draw, int(seats.size[k])))
        return next(classes)

    monkeypatch.setattr(summaries, "summarise_cluster", cluster)
    labels = np.array([PARTITIONS[n], [0] * n], np.int32)
    names = np.array([*sorted(set(PARTITIONS[n])), 0], np.int32)
    first = len(names) - 1
    sizes = np.linspace(2.0, 4.0, len(names))
    own = np.arange(2.0 * len(prior.own)).reshape(2, -1)
    found = setting.found()
    summaries.summarise_draws(
        None, prior, own, setting.lists, setting.seats, labels, np.array([0, first, first + 1]),
        names, sizes, EDGES, np.zeros(setting.levels, int), found,
    )  # fmt: skip
    np.testing.assert_array_equal(rebuilt, own)
    expected = []
    for at, k in enumerate(names[:-1]):
        number = int(sizes[at] >= 2.4) + int(sizes[at] >= 3.1)
        expected.append((k, sizes[at], number, 0, PARTITIONS[n].count(k)))
    assert done == [*expected, ("missed", 0), (0, 4.0, 2, 1, n), ("missed", 1)]
    assert found.classes.tolist() == [
        len(set(drawn[:first]) - {FALSE}),
        len({drawn[first]} - {FALSE}),
    ]


def test_missed_objects_of_some_images(monkeypatch):
    prior = twin.make_prior(
        [0, 1, 2, 0, 1, 2], [0, 0, 1], seed=3, classes=2, images=[0, 0, 0, 1, 1, 2],
        zones=([0, 0, 1, 2, 2, 3],
               [(0, 0.4, (0, 1)), (0, 0.6, (2,)), (1, 1.0, (0, 1)), (2, 1.0, (2,))]),
    )  # fmt: skip
    rates = numbers_of(monkeypatch)
    own = np.array([prior.own, prior.own])
    own[1] *= 1.1
    levels = len(prior.away)
    numbers = np.arange(levels) % 2
    missed, hidden = np.zeros((2, 2, 2), int), np.zeros((2, 2, 2))
    summaries.draw_missed_on(None, prior, own, np.array([2, 0]), numbers, missed, hidden)
    expected, counted, asked = np.zeros((2, 2, 2)), np.zeros((2, 2, 2), int), []
    for draw in range(2):
        prior.own[:] = own[draw]
        assert draw == 0 or hidden[0, 0, 0] != hidden[1, 0, 0]
        parameters, looks = prior.parameters, prior.looks
        for at, v in enumerate((2, 0)):
            for zone in range(looks.zones[v], looks.zones[v + 1]):
                for level in range(levels):
                    for g in range(2):
                        rate = parameters.expected_objects[v] * looks.share[zone]
                        rate *= twin.class_shares(prior, v)[g]
                        rate *= parameters.size_share[level]
                        rate *= twin.history(prior, g, level, (), zone)
                        asked.append(rate)
                        typical = 1.0 / (1.0 + math.exp(-parameters.ease[g]))
                        expected[draw, at] += [rate, rate * typical]
                        counted[draw, at, numbers[level]] += len(asked) % 3
    np.testing.assert_allclose(rates, asked)
    np.testing.assert_allclose(hidden, expected)
    np.testing.assert_array_equal(missed, counted)


def test_opinions_are_updated_along_the_draws(monkeypatch):
    done = []
    for name in ("rebuild_categories", "forget_categories", "update_categories"):
        monkeypatch.setattr(opinions, name, lambda *_, name=name: done.append(name))
    monkeypatch.setattr(opinions, "count_category", lambda *given: done.append(int(given[-1])))
    share, confusion = np.array([0.2, 0.8]), np.arange(12.0).reshape(2, 2, 3)
    parameters = opinions.OpinionParameters(share, share, confusion, confusion[0], share)
    prior = opinions.Opinions(np.zeros(3, np.int32), None, parameters, None)
    labels = np.array([[0, 0, 2], [0, 1, 2]], np.int32)
    seats = summaries.SummarySeats(*(np.zeros(3, np.int32) for _ in range(3)))
    shares, confusions = np.zeros((2, 2)), np.zeros((2, 12))
    opinions.opine(None, prior, None, seats, labels, np.array([2, 1]), shares, confusions)
    before, after = ["rebuild_categories", "forget_categories"], ["update_categories"]
    assert done == [*before, 0, 2, *after] * 2 + [*before, 0, 1, 2, *after]
    assert shares.tolist() == [[0.2, 0.8]] * 2
    assert confusions.tolist() == [list(range(12))] * 2

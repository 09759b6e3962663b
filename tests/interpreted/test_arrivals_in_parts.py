"""Updates of the order of arrival, α and u with known random numbers, against plain loops.

A Metropolis step is met with an exponential just below and just above what the reference says its
log ratio is: it must then be taken, and not be taken.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from dfcrp.compiled.state import (
    ALPHA_ACCEPTED,
    ALPHA_PROPOSED,
    EXCHANGE_ACCEPTED,
    EXCHANGE_PROPOSED,
    NONE,
    ORDER_ACCEPTED,
    ORDER_PROPOSED,
    Block,
)
from dfcrp.priors import tail
from dfcrp.priors.arrivals import exchange, kernel, order, procession
from dfcrp.priors.exact import seating
from dfcrp.sampling.problem import new_scratch
from reference import kernel_reference as reference
from reference import small_problems as small
from reference.known_numbers import KnownNumbers

FAMILIES = [0, 1, 0, 2, 1, 2, 2, 0]
PARTITIONS = [(0, 0, 1, 1, 1, 2, 3, 3), (0, 1, 2, 0, 2, 1, 2, 1), (0, 1, 2, 3, 4, 5, 6, 7)]


class Setting:
    """Customers in a random order."""

    def __init__(self, labels, seed, alpha=0.8):
        rng = self.rng = np.random.default_rng([seed, 61])
        self.problem = small.make_problem(FAMILIES, shape=2.3, rate=0.7)
        self.data, self.scratch = self.problem.data, new_scratch(self.problem)
        self.labels = tuple(labels.index(k) for k in labels)
        self.state = small.fill_state(
            self.problem, labels, order=rng.permutation(8), u=rng.random(8), alpha=alpha
        )
        tail.rebuild_tail(self.data, self.state)
        self.state.seated[:] = self.companions(self.state.order)

    def companions(self, order_) -> list[int]:
        found = reference.companions(self.labels, FAMILIES, order_)
        return [found[i] for i in order_]

    def log_order(self, order_, alpha) -> float:
        return reference.log_order(self.labels, FAMILIES, order_, alpha)

    def assert_order_is(self, order_) -> None:
        np.testing.assert_array_equal(self.state.order, order_)
        np.testing.assert_array_equal(self.state.rank[order_], np.arange(8))
        np.testing.assert_array_equal(self.state.seated, self.companions(order_))


def settings():
    for labels in PARTITIONS:
        for seed in range(3):
            yield labels, seed


def around(gain):
    """Exponentials with which a step of this log ratio is taken, or not; and whether it is."""
    if gain > -1e-8:
        return [(1e-7, True)]
    return [(-gain + 1e-9, True), (-gain - 1e-9, False)]


# A new order and α --------------------------------------------------------------------------------


def test_few_families_make_processions():
    counts = [procession.processions(families) for families in (1, 2, 3, 4, 9)]
    assert counts == [procession.PROPOSALS] * 3 + [0, 0]


def test_odds():
    assert procession.odds(True, 2, 3, 5, 0.7) == pytest.approx(3 / 5)
    assert procession.odds(True, 0, 3, 5, 0.7) == pytest.approx(3 / 5.7)
    assert procession.odds(False, 2, 3, 5, 0.7) == pytest.approx(2.0)
    assert procession.odds(False, 2, 0, 5, 0.7) == pytest.approx(2 * 0.7 / 5.7)
    assert procession.odds(True, 1, 1, 5, 0.7) == pytest.approx(1 / 5)
    assert procession.odds(False, 1, 1, 5, 0.7) == pytest.approx(1.0)


def waiting(labels, order_, slot):
    """Of the family of a slot: those to come whose table is open, and those whose is not."""
    came = order_[:slot]
    tables = {labels[i] for i in came}
    family = FAMILIES[order_[slot]]
    left = [i for i in range(8) if FAMILIES[i] == family and i not in came]
    return [i for i in left if labels[i] in tables], [i for i in left if labels[i] not in tables]


def log_w(labels, order_, alpha):
    """As the module's docstring has it."""
    total = 0.0
    seated = reference.companions(labels, FAMILIES, order_)
    for slot, i in enumerate(order_):
        joiners, openers = waiting(labels, list(order_), slot)
        free = seated[i]
        certain = not joiners or not openers
        if i in joiners:
            total += math.log(len(joiners)) - math.log(free + alpha if certain else free)
        elif certain:
            total += math.log(len(openers) * alpha / (free + alpha))
        else:
            total += math.log(len(openers))
    return total


@pytest.mark.parametrize("large", [procession.LARGE, 3.0, 1.0 + 1e-9])
def test_weights_of_an_order(large, monkeypatch):
    monkeypatch.setattr(procession, "LARGE", large)
    for labels, seed in settings():
        setting = Setting(labels, seed)
        state, found = setting.state, np.zeros(8, np.int64)
        setting.scratch.to_join[:] = 5
        value = procession.walk_line(
            None, setting.data, state, setting.scratch, 0.8, state.order, found, True
        )
        assert value == pytest.approx(log_w(setting.labels, state.order, 0.8))
        np.testing.assert_array_equal(found, state.seated)


def test_orders_are_drawn_by_their_rule():
    for labels, seed in settings():
        setting = Setting(labels, seed)
        uniforms = setting.rng.random(16)
        first = setting.state.order.copy()

        def walk(numbers, setting=setting, first=first):
            rng, drawn, found = KnownNumbers(numbers), first.copy(), np.zeros(8, np.int64)
            value = procession.walk_line(
                rng, setting.data, setting.state, setting.scratch, 0.8, drawn, found, False
            )
            return drawn.tolist(), value, found

        whole, value, found = walk(uniforms)
        assert [FAMILIES[i] for i in whole] == [FAMILIES[i] for i in first]
        assert sorted(whole) == list(range(8))
        assert value == pytest.approx(log_w(setting.labels, whole, 0.8))
        assert found.tolist() == setting.companions(whole)
        at = 0
        for slot in range(8):
            joiners, openers = waiting(setting.labels, whole, slot)
            free = setting.companions(whole)[slot]
            both = [joiners]
            if joiners and openers:
                limit = free / (free + 0.8)
                assert (whole[slot] in joiners) == (uniforms[at] < limit)
                both = [joiners, openers]
                sides = [limit - 1e-9, limit + 1e-9]
            elif openers:
                both = [openers]
            for number, group in enumerate(both):
                # Every one of the group is drawn for one of as many uniforms.
                chosen = set()
                for one in range(len(group)):
                    numbers = uniforms.copy()
                    if len(both) == 2:
                        numbers[at] = sides[number]
                    numbers[at + len(both) - 1] = (one + 0.5) / len(group)
                    chosen.add(walk([*numbers, *uniforms])[0][slot])
                assert chosen == set(group)
            at += len(both)


def test_orders_are_shuffled():
    out = np.full(4, -1, np.int32)
    procession.shuffle_into(KnownNumbers([0.9, 0.1, 0.5, 0.74]), np.array([7, 5, 3, 1]), out)
    # The second takes the first's place, the third the second's, the fourth the third's.
    assert out.tolist() == [5, 3, 1, 7]


def test_update_of_alpha_and_order():
    for labels, seed in settings():
        setting = Setting(labels, seed)
        uniforms = setting.rng.random(60).tolist()
        before, leap, normal = setting.state.order.copy(), 0.9, [0.8, -0.6][seed % 2]
        new_alpha = 0.8 * math.exp(leap * normal)
        proposal = np.zeros(8, np.int32)
        rng = KnownNumbers(uniforms)
        procession.shuffle_into(rng, before, proposal)
        procession.walk_line(
            rng, setting.data, setting.state, setting.scratch, new_alpha, proposal,
            np.zeros(8, np.int64), False,
        )  # fmt: skip
        gain = log_w(setting.labels, proposal, new_alpha) - log_w(setting.labels, before, 0.8)
        gain += 2.3 * math.log(new_alpha / 0.8) - 0.7 * (new_alpha - 0.8)
        for exponential, taken in around(gain):
            fresh = Setting(labels, seed)
            rng = KnownNumbers(uniforms, [exponential], [normal])
            weight = log_w(setting.labels, before, 0.8)
            found = procession.update_alpha_and_order(
                rng, fresh.data, fresh.state, fresh.scratch, 2.3, 0.7, leap, weight
            )
            after = log_w(setting.labels, proposal, new_alpha)
            assert found == pytest.approx(after if taken else weight)
            fresh.assert_order_is(proposal if taken else before)
            assert fresh.state.alpha[0] == pytest.approx(new_alpha if taken else 0.8)
            assert fresh.state.tally[ALPHA_PROPOSED] == 1
            assert fresh.state.tally[ALPHA_ACCEPTED] == int(taken)


def test_processions_follow_one_another(monkeypatch):
    setting, done = Setting(PARTITIONS[0], 0), []

    def update(*given):
        done.append(given[4:])
        return given[-1] + 1.0

    monkeypatch.setattr(procession, "update_alpha_and_order", update)
    given = None, setting.data, setting.state, setting.scratch, 2.3, 0.7
    setting.state.seated[:] = 99
    procession.lead_processions(*given, True, 0)
    assert (setting.state.seated == 99).all()
    weight = log_w(setting.labels, setting.state.order, 0.8)
    for learn in (True, False):
        done.clear()
        procession.lead_processions(*given, learn, 3)
        leaps = [procession.LEAPS[at % len(procession.LEAPS)] if learn else 0.0 for at in range(3)]
        expected = [(2.3, 0.7, leap, pytest.approx(weight + at)) for at, leap in enumerate(leaps)]
        assert done == expected
        setting.assert_order_is(setting.state.order)


# Lists that arrive sooner or later ----------------------------------------------------------------


def test_which_lists_move():
    data = Setting(PARTITIONS[0], 0).data
    for first in range(3):
        for count in range(1, 4):
            families = {(first + more) % 3 for more in range(count)}
            members = [i for i in range(8) if FAMILIES[i] in families]
            assert [i for i in range(8) if order.moves_along(data, i, first, count)] == members
            assert order.count_moved(data, first, count) == len(members)


def test_times():
    times = np.zeros(3)
    total = order.draw_times(KnownNumbers(exponentials=[0.5, 1.0, 2.0, 4.0]), 3, times)
    assert times.tolist() == [0.5, 1.5, 3.5]
    assert total == 7.5


def test_times_at_an_end_are_none():
    setting = Setting(PARTITIONS[0], 0)
    for late in (False, True):
        for ends, fine in (((0.0, 0.5), False), ((0.5, 1.0), False), ((1e-9, 1.0 - 1e-9), True)):
            setting.scratch.value[:] = np.linspace(*ends, 8)
            gain = order.move_times(
                setting.data, setting.state, setting.scratch, 0, 3, 1.0, 0.3, late
            )
            assert math.isnan(gain) != fine


def proposed_order(setting, first, count, exponentials, step, late):
    """The order of the new times, and the log Jacobian."""
    ends = np.cumsum(exponentials)
    times, power = ends[:-1] / ends[-1], math.exp(step)
    jacobian = 0.0
    for slot, i in enumerate(setting.state.order):
        if FAMILIES[i] in {(first + more) % 3 for more in range(count)}:
            time = 1.0 - times[slot] if late else times[slot]
            jacobian += math.log(power * time ** (power - 1.0))
            times[slot] = 1.0 - time**power if late else time**power
    return setting.state.order[np.argsort(times)], jacobian


@pytest.mark.parametrize(("groups", "count"), [(16, 1), (3, 1), (2, 2)])
def test_lists_are_shifted(groups, count, monkeypatch):
    monkeypatch.setattr(order, "GROUPS", groups)
    taken_ones = 0
    for labels, seed in settings():
        for late in (False, True):
            setting = Setting(labels, seed)
            exponentials = setting.rng.exponential(size=9).tolist()
            first, normal = seed % 3, [1.1, -0.7][seed % 2]
            uniforms = [(first + 0.5) / 3, 0.49 if late else 0.51]
            moved = sum(
                FAMILIES[i] in {(first + more) % 3 for more in range(count)} for i in range(8)
            )
            step = order.STEP * normal / math.sqrt(min(moved, 8 - moved))
            before = setting.state.order.copy()
            after, gain = proposed_order(setting, first, count, exponentials, step, late)
            gain += setting.log_order(after, 0.8) - setting.log_order(before, 0.8)
            for exponential, taken in around(gain):
                fresh = Setting(labels, seed)
                rng = KnownNumbers(uniforms, [*exponentials, exponential], [normal])
                order.shift_lists(rng, fresh.data, fresh.state, fresh.scratch)
                fresh.assert_order_is(after if taken else before)
                assert rng.used_up()
                assert fresh.state.tally[ORDER_PROPOSED] == 1
                assert fresh.state.tally[ORDER_ACCEPTED] == int(taken)
                taken_ones += taken and after.tolist() != before.tolist()
    assert taken_ones > 3


def test_lists_that_are_all_or_nothing_stay(monkeypatch):
    setting = Setting(PARTITIONS[0], 0)
    monkeypatch.setattr(order, "GROUPS", 1)
    order.shift_lists(KnownNumbers([0.1]), setting.data, setting.state, setting.scratch)
    monkeypatch.setattr(order, "count_moved", lambda *_: 0)
    order.shift_lists(KnownNumbers([0.1]), setting.data, setting.state, setting.scratch)
    monkeypatch.setattr(order, "count_moved", lambda *_: 1)
    monkeypatch.setattr(order, "move_times", lambda *_: math.nan)
    rng = KnownNumbers([0.1, 0.2], [1.0] * 9, [0.5])
    order.shift_lists(rng, setting.data, setting.state, setting.scratch)
    assert rng.used_up()
    assert setting.state.tally[ORDER_PROPOSED] == 0


# A few customers ----------------------------------------------------------------------------------


def test_customers_are_chosen():
    setting = Setting(PARTITIONS[1], 1)
    state, scratch = setting.state, setting.scratch
    tables = [k for k in range(9) if state.size[k] > 0]
    last = {k: [int(i) for i in np.flatnonzero(state.label == k)] for k in tables}
    for at in (0.0, 0.5, 0.99):
        numbers = [value for _ in tables for value in (0.29, at)]
        count = order.choose_customers(KnownNumbers(numbers), state, scratch, 0.3)
        assert count == len(tables)
        chosen = [int(state.order[scratch.slots[position]]) for position in range(count)]
        for k, i in zip(tables, chosen, strict=True):
            walk, mate = [], state.head[k]
            while mate != NONE:
                walk.append(int(mate))
                mate = state.after[mate]
            assert sorted(walk) == last[k]
            assert i == walk[int(at * len(walk))]
        for position in range(count):
            assert scratch.chosen[scratch.slots[position]] == position
        assert (scratch.chosen[:8] != NONE).sum() == count
    count = order.choose_customers(KnownNumbers([0.31] * len(tables)), state, scratch, 0.3)
    assert count == 0
    assert (scratch.chosen[:8] == NONE).all()


def test_update_of_the_order(monkeypatch):
    for labels, seed in settings():
        for change in (0.4, -0.9):
            setting = Setting(labels, seed)
            before = setting.state.order.copy()
            two = [1 + seed, 6]
            after = before.copy()
            after[two] = after[two[::-1]]
            gain = setting.log_order(after, 0.8) - setting.log_order(before, 0.8) - change
            for exponential, taken in around(gain):
                fresh = Setting(labels, seed)
                called = []

                def choose(rng, state, scratch, share, called=called):
                    called.append(share)
                    return 2

                def swap(rng, data, state, scratch, count, called=called, two=two, change=change):
                    assert called[1:] == ["tabulated"]
                    assert count == 2
                    np.testing.assert_array_equal(scratch.proposal[:8], state.order)
                    scratch.proposal[two] = scratch.proposal[two[::-1]]
                    return change

                monkeypatch.setattr(order, "choose_customers", choose)
                monkeypatch.setattr(
                    order,
                    "tabulate_surrogate",
                    lambda *_, called=called: called.append("tabulated"),
                )
                monkeypatch.setattr(order, "swap_chosen", swap)
                rng = KnownNumbers([(seed + 0.5) / 3], [exponential])
                order.update_order(rng, fresh.data, fresh.state, fresh.scratch)
                assert called[0] == order.SHARES[seed]
                fresh.assert_order_is(after if taken else before)
                assert fresh.state.tally[ORDER_PROPOSED] == 1
                assert fresh.state.tally[ORDER_ACCEPTED] == int(taken)
    monkeypatch.setattr(order, "choose_customers", lambda *_: 1)
    fresh = Setting(PARTITIONS[0], 0)
    order.update_order(KnownNumbers([0.5]), fresh.data, fresh.state, fresh.scratch)
    assert fresh.state.tally[ORDER_PROPOSED] == 0


def test_swaps_among_the_chosen():
    for labels, seed in settings():
        if len(set(labels)) < 3:
            continue
        setting = Setting(labels, seed)
        state, scratch, data = setting.state, setting.scratch, setting.data
        tables = [k for k in range(9) if state.size[k] > 0]
        numbers = [value for _ in tables for value in (0.0, 0.0)]
        count = order.choose_customers(KnownNumbers(numbers), state, scratch, 0.5)
        order.tabulate_surrogate(data, state, scratch, count)
        slots = scratch.slots[:count].tolist()
        chosen = {int(state.order[slot]) for slot in slots}
        before = state.order.copy()

        def value(i, slot, setting=setting, before=before, chosen=chosen):
            return reference.surrogate(setting.labels, FAMILIES, before, 0.8, chosen, i, slot)

        p, q = slots[0], slots[1]
        i, j = int(before[p]), int(before[q])
        gain = value(i, q) + value(j, p) - value(i, p) - value(j, q)
        same = [0.5 / count] * 2
        for exponential, taken in around(gain):
            scratch.proposal[:8] = before
            swaps = [*same, 0.5 / count, 1.5 / count] + same * (order.SWAPS * count - 2)
            rng = KnownNumbers(swaps, [exponential])
            change = order.swap_chosen(rng, data, state, scratch, count)
            assert rng.used_up()
            after = before.copy()
            if taken:
                after[[p, q]] = after[[q, p]]
            assert change == pytest.approx(gain if taken else 0.0)
            np.testing.assert_array_equal(scratch.proposal[:8], after)
        # The values follow: the same swap again undoes it.
        twice = swaps[2:4] * 2 + same * (order.SWAPS * count - 2)
        first = max(-gain, 0.0) + 1e-9
        for second, left in ((gain + 1e-9, 0.0), (gain - 1e-9, gain)):
            scratch.proposal[:8] = before
            rng = KnownNumbers(twice, [first, second])
            if gain > 0.0:
                change = order.swap_chosen(rng, data, state, scratch, count)
                assert change == pytest.approx(left, abs=1e-12)


@pytest.mark.parametrize("every", [1, 2])
def test_surrogates_of_all_places(every):
    """Of each chosen customer at each chosen slot, with one of ``every`` so many tables chosen."""
    for labels, seed in settings():
        setting = Setting(labels, seed)
        state, scratch, data = setting.state, setting.scratch, setting.data
        scratch.barred[:], scratch.free_seats[:] = 99.0, 99.0
        tables = [k for k in range(9) if state.size[k] > 0]
        numbers = []
        for at in range(len(tables)):
            numbers += [0.0, 0.9] if at % every == 0 else [0.6]
        count = order.choose_customers(KnownNumbers(numbers), state, scratch, 0.5)
        order.tabulate_surrogate(data, state, scratch, count)
        slots = scratch.slots[:count].tolist()
        chosen = {int(state.order[slot]) for slot in slots}
        for i in chosen:
            for position, slot in enumerate(slots):
                found = order.surrogate(data, state, scratch, i, position)
                expected = reference.surrogate(
                    setting.labels, FAMILIES, state.order, 0.8, chosen, i, slot
                )
                assert found == pytest.approx(expected)


def test_products_of_many_factors():
    rng = np.random.default_rng(4)
    for n in (1, order.PRODUCT - 1, order.PRODUCT, order.PRODUCT + 1, 3 * order.PRODUCT + 2):
        seated = rng.integers(0, 5, n)
        assert order.log_product(seated, 0.3) == pytest.approx(np.log(seated + 0.3).sum())
        large = np.full(n, 10**9)
        assert order.log_product(large, 1e9) == pytest.approx(n * math.log(2e9))
    assert order.log_product(np.array([2, 3]), 0.0) == pytest.approx(math.log(6.0))
    long = rng.integers(1, 10**9, 500)
    assert order.log_product(long, 0.5) == pytest.approx(np.log(long + 0.5).sum())


# Exchanges ----------------------------------------------------------------------------------------


def test_first_from():
    values = [1, 3, 3, 6, 8, 9]
    for low in range(6):
        for high in range(low, 7):
            for bound in range(11):
                fit = [at for at in range(low, high) if values[at] >= bound]
                expected = fit[0] if fit else high
                assert exchange.first_from(values, low, high, bound) == expected


def test_relatives_within_a_block():
    data = Setting(PARTITIONS[0], 0).data
    for first, last in ((0, 8), (0, 5), (2, 8), (3, 7)):
        block = Block(first, last, 0, 0)
        for a in range(first, last):
            there = [i for i in range(first, last) if FAMILIES[i] == FAMILIES[a]]
            found = [
                exchange.random_relative(KnownNumbers([(at + 0.5) / len(there)]), data, a, block)
                for at in range(len(there))
            ]
            assert sorted(found) == there


def test_those_to_be_visited_are_listed():
    setting = Setting(PARTITIONS[0], 0)
    setting.state.visit[:8] = [1, 0, 2, 0, 0, 1, 0, 1]
    out = np.full(8, -1)
    assert exchange.list_visited(setting.state, out, Block(0, 8, 0, 0)) == 4
    assert out[:4].tolist() == [0, 2, 5, 7]
    assert exchange.list_visited(setting.state, out, Block(1, 7, 0, 0)) == 2
    assert out[:2].tolist() == [2, 5]


def log_slots(setting, order_) -> float:
    """log p(c, u | order, α) with u by slot."""
    u = np.empty(8)
    u[order_] = setting.by_slot
    return reference.log_partition(setting.labels, FAMILIES, order_, u, 0.8)


def test_exchanges_are_taken_by_their_ratio():
    for labels, seed in settings():
        for a in range(8):
            relatives = [i for i in range(8) if FAMILIES[i] == FAMILIES[a]]
            for at, b in enumerate(relatives):
                if a == b:
                    continue
                setting = Setting(labels, seed)
                before = setting.state.order.copy()
                setting.by_slot = setting.state.u[before]
                after = before.copy()
                p, q = setting.state.rank[a], setting.state.rank[b]
                after[[p, q]] = after[[q, p]]
                gain = log_slots(setting, after) - log_slots(setting, before)
                for exponential, taken in around(gain):
                    fresh = Setting(labels, seed)
                    fresh.state.visit[a] = 1
                    rng = KnownNumbers([(at + 0.5) / len(relatives)], [exponential])
                    exchange.exchange_slots(
                        rng, fresh.data, fresh.state, fresh.scratch, Block(0, 8, 0, 0), 0, 1
                    )
                    now = after if taken else before
                    np.testing.assert_array_equal(fresh.state.order, now)
                    np.testing.assert_array_equal(fresh.state.rank[now], np.arange(8))
                    np.testing.assert_allclose(fresh.state.u[now], setting.by_slot)
                    # The tables stay in order of arrival.
                    listed = fresh.scratch.seat_rank, fresh.scratch.seat_family
                    kept = [values.copy() for values in listed]
                    block = Block(0, 8, 0, 0)
                    exchange.lay_out_tables(fresh.data, fresh.state, fresh.scratch, block)
                    np.testing.assert_array_equal(listed, kept)
                    assert fresh.state.tally[EXCHANGE_PROPOSED] == 1
                    assert fresh.state.tally[EXCHANGE_ACCEPTED] == int(taken)


def test_whose_slots_are_exchanged(monkeypatch):
    setting = Setting(PARTITIONS[0], 0)
    setting.state.visit[[3, 5]] = 1
    asked = []

    def relative(rng, data, a, block):
        asked.append(a)
        return a

    monkeypatch.setattr(exchange, "random_relative", relative)
    given = None, setting.data, setting.state, setting.scratch
    exchange.exchange_slots(*given, Block(2, 7, 0, 0), 7, 2)
    assert asked == [2, 3, 4, 5, 6, 2, 3, 3, 5, 3, 5]
    assert setting.state.tally[EXCHANGE_PROPOSED] == 0


def test_an_exchange_that_changes_nothing_is_taken(monkeypatch):
    setting = Setting(PARTITIONS[2], 0)
    monkeypatch.setattr(exchange, "gain_of_move", lambda *_: 0.0)
    monkeypatch.setattr(exchange, "random_relative", lambda rng, data, a, block: 2)
    exchange.exchange_slots(
        None, setting.data, setting.state, setting.scratch, Block(0, 8, 0, 0), 1, 0
    )
    assert setting.state.tally[EXCHANGE_ACCEPTED] == 1


# α, u and the sums --------------------------------------------------------------------------------


def test_target_of_alpha():
    for labels, seed in settings():
        setting = Setting(labels, seed)
        clusters = len(set(labels))

        def target(alpha, setting=setting, clusters=clusters):
            seated = setting.state.seated
            known = order.LogAlpha(seated, clusters, 2.3, 0.7)
            return order.log_of_alpha(known, math.log(alpha))

        expected = [
            reference.log_alpha(setting.labels, FAMILIES, setting.state.order, alpha, 2.3, 0.7)
            for alpha in (0.2, 0.8, 5.0)
        ]
        found = [target(alpha) for alpha in (0.2, 0.8, 5.0)]
        np.testing.assert_allclose(np.diff(found), np.diff(expected))
    farthest, seated = order.FARTHEST, np.array([0, 1])
    for value, open_ in ((1.0, True), (-1.0, True), (1.01, False), (-1.01, False)):
        found = order.log_alpha_target(seated, 1, 2.0, 1.0, value * farthest)
        assert (found > -math.inf) == open_
        assert found < 0.0


def test_width_of_steps_of_alpha():
    young, few = order.YOUNG, order.FEW
    assert order.step_width(young - 1, few + 1, 7, 2.0) == 1.0
    assert order.step_width(young, few, 7, 2.0) == 1.0
    assert order.step_width(young, few + 1, 7, 2.0) == pytest.approx(2.0 / 3.0)


def test_update_of_alpha(monkeypatch):
    asked = []

    def known(rng, target, start, width, least):
        asked.append((target, start, width, least))
        return start + moved

    monkeypatch.setattr(order, "slice_update", known)
    seated = np.array([0, 1, 1])
    for moved in (0.0, 0.25):
        found = order.update_alpha(None, seated, 2, 2.3, 0.7, 0.3, 1.5)
        assert found == (0.3 if moved == 0.0 else pytest.approx(0.3 * math.exp(0.25)))
        target, start, width, least = asked.pop()
        assert target == (seated, 2, 2.3, 0.7)
        assert (start, width) == (math.log(0.3), 1.5)
        assert least == pytest.approx(1e-14 * (1.0 - math.log(0.3)))


def test_auxiliary_variables():
    setting = Setting(PARTITIONS[1], 2)
    state = setting.state
    exponentials = [0.5 + slot for slot in range(8)]
    tail.draw_auxiliary(KnownNumbers(exponentials=exponentials), state)
    for slot, i in enumerate(state.order):
        assert state.u[i] == pytest.approx(exponentials[slot] / (state.seated[slot] + 0.8))


@pytest.mark.parametrize("dense", [True, False])
def test_sums_over_late_arrivals(dense):
    for labels, seed in settings():
        setting = Setting(labels, seed)
        state = setting.state
        known = state.tail
        if dense:
            known = known._replace(dense=np.full((8, 3), 9.0))
        else:
            known = known._replace(
                dense=np.empty((0, 0)), start=np.array([0, 3, 5, 8]), rank=np.zeros(8, np.int64),
                suffix=np.full(8, 9.0),
            )  # fmt: skip
        known.total[:] = 9.0
        state = state._replace(tail=known)
        for _ in range(2):
            tail.rebuild_tail(setting.data, state)
            for slot in range(8):
                each = [reference.tail(FAMILIES, state.order, state.u, f, slot) for f in range(3)]
                assert known.total[slot] == pytest.approx(sum(each))
                found = [tail.tail_sum(known, f, slot) for f in range(3)]
                np.testing.assert_allclose(found, each, atol=1e-15)


def test_nobody_arrives_after_the_only_one():
    problem = small.make_problem([0])
    state = small.fill_state(problem, (0,), u=[0.7])
    state.tail.dense[:], state.tail.total[:] = 9.0, 9.0
    tail.rebuild_tail(problem.data, state)
    assert state.tail.total[0] == 0.0
    assert tail.tail_sum(state.tail, 0, 0) == 0.0


# A scan's share -----------------------------------------------------------------------------------


@pytest.mark.parametrize("use_order", [True, False])
@pytest.mark.parametrize("update_alpha", [True, False])
def test_what_a_scan_updates(use_order, update_alpha, monkeypatch):
    setting = Setting(PARTITIONS[0], 0)
    prior = setting.problem.prior._replace(use_order=use_order, update_alpha=update_alpha)
    done = []

    def note(name, result=None):
        monkeypatch.setattr(kernel, name, lambda *given: done.append((name, given)) or result)

    for name in ("walk_arrivals", "update_order", "shift_lists", "lead_processions",
                 "draw_auxiliary", "rebuild_tail", "exchange_slots"):  # fmt: skip
        note(name)
    note("update_alpha", 1.75)
    note("step_width", 0.6)
    state = setting.state
    period = kernel.ORDER_PERIOD * kernel.LIST_PERIOD
    for scan in range(2 * period):
        state.scans[0], state.alpha[0] = scan, 0.8
        done.clear()
        kernel.update_arrivals(prior, None, setting.data, None, state, setting.scratch)
        names = [name for name, _ in done]
        expected = []
        if use_order:
            expected.append("walk_arrivals")
            expected += ["update_order"] * (scan % kernel.ORDER_PERIOD == 0)
            expected += ["shift_lists"] * (scan % kernel.LIST_PERIOD == 1)
            expected.append("lead_processions")
        if update_alpha:
            expected += ["step_width", "update_alpha"]
        if use_order:
            expected += ["draw_auxiliary", "rebuild_tail"]
        assert names == expected
        given = dict(done)
        if use_order:
            count = procession.processions(3)
            assert given["lead_processions"][-4:] == (2.3, 0.7, update_alpha, count)
        if update_alpha:
            clusters = len(set(PARTITIONS[0]))
            assert given["step_width"] == (scan, 3, clusters, 2.3)
            assert given["update_alpha"][2:] == (clusters, 2.3, 0.7, 0.8, 0.6)
        assert state.alpha[0] == (1.75 if update_alpha else 0.8)
    done.clear()
    kernel.update_slots(prior, None, setting.data, state, setting.scratch, Block(2, 7, 0, 0))
    assert len(done) == int(use_order)
    if use_order:
        assert done[0][1][-2:] == (5, kernel.EXCHANGE_VISITS)
    assert kernel.log_tilt(prior, setting.data, state, 0, 1.0) == 0.0


# The prior by itself ------------------------------------------------------------------------------


def test_draws_of_partitions_by_their_rule():
    families = np.array(FAMILIES)
    for seed in range(20):
        numbers = np.random.default_rng(seed).random(200).tolist()
        rng = KnownNumbers(numbers)
        tables = seating.empty_tables(8, 3)
        for values in tables:
            values[:] = 7
        draws = np.zeros((2, 8), np.int32)
        seating.sample_partitions(families, 0.8, draws, tables, rng)
        # The same in plain words.
        rng = KnownNumbers(numbers)
        for row in range(2):
            arrived: list[int] = []
            for last in range(8):
                chosen = int(rng.random() * (last + 1))
                arrived.append(last)
                arrived[last], arrived[chosen] = arrived[chosen], last
            labels: dict[int, int] = {}
            for seated, i in enumerate(arrived):
                there = arrived[:seated]
                barred = {labels[j] for j in there if FAMILIES[j] == FAMILIES[i]}
                free = [j for j in there if labels[j] not in barred]
                if rng.random() * (len(free) + 0.8) < len(free):
                    while labels[mate := there[int(rng.random() * seated)]] in barred:
                        pass
                    labels[i] = labels[mate]
                else:
                    labels[i] = len(set(labels.values()))
            number: dict[int, int] = {}
            expected = [number.setdefault(labels[i], len(number)) for i in range(8)]
            assert draws[row].tolist() == expected


def test_probability_given_the_order_of_many_arrivals(monkeypatch):
    monkeypatch.setattr(seating, "_SMALLEST_PRODUCT", 0.05)
    for labels, seed in settings():
        setting = Setting(labels, seed)
        codes = {k: at for at, k in enumerate(dict.fromkeys(labels))}
        given = np.array([codes[k] for k in labels]), np.array(FAMILIES)
        found = seating.log_prior_given_order(
            *given, setting.state.order.astype(np.int64), 0.8, seating.empty_seats(len(codes), 8, 3)
        )
        assert found == pytest.approx(setting.log_order(setting.state.order, 0.8))

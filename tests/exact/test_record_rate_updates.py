"""Rates of records: the tables they are updated from against the sum over all ways, and draws.

Seven records in clusters of two and three, with text, a category, a number and a place, of one kind
of source or of three. False-alarm rate 1e-5 for draws; the rest is exact.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy import special, stats

from dfcrp.items.items import Items
from dfcrp.likelihoods.law import rebuild_rows
from dfcrp.likelihoods.record import kernel, rates
from dfcrp.likelihoods.record.hyper import RecordSettings
from dfcrp.likelihoods.record.likelihood import RECORDS
from dfcrp.sampling.problem import new_state
from reference import record_reference
from reference import small_problems as small

FALSE_ALARM_RATE = 1e-5
COLUMNS = {
    "name": ["anna", "ann", "bob", "rob", "zoe", "bob", "zoe"],
    "year": ["1980", "1981", "1980", "1980", "1890", "1980", "1890"],
    "weight": ["1.5", "1.6", "80.25", "80.3", "79", "", "79"],
    "lat": ["48.1", "48.11", "50.0", "50.0", "48.12", "50.01", "48.12"],
    "lon": ["11.5", "11.5", "8.0", "8.0", "11.51", "8.0", "11.51"],
}
LABELS = (0, 0, 1, 1, 2, 1, 2)
FIELDS, RATES = 4, [(kernel.MISS, f) for f in range(4)] + [(kernel.ALTER, f) for f in (0, 2, 3)]
APART = [False, True]


def _ratio_of_row(hyper, theta, k, members, field) -> float:
    """The sum over all ways, of the members that a row lists."""
    listed = theta[k, kernel.FIRST : kernel.FIRST + members].astype(int).tolist()
    known = [i for i in listed if hyper.values[i, field] >= 0]
    return record_reference.log_ratio_of_field(hyper, field, known)


#: The kernel itself but for larger clusters, which other tests weigh: they take long to compile.
log_rate = small.with_callees(rates.log_rate, log_ratio_of_field=_ratio_of_row)


class Clusters:
    """A law, and the clusters that speak of it."""

    def __init__(self, apart: bool) -> None:
        everyone = [(i, j) for i in range(7) for j in range(i)]
        items = Items.from_columns(COLUMNS, None, kind="records", candidates=everyone)
        hyper = RECORDS.prepared(items, RecordSettings(categories=("year",))).hyper(4)
        hyper.law[:] = np.random.default_rng(8).normal(-1.0, 0.7, len(hyper.law))
        if apart:
            hyper = _with_own(hyper)
        self.labels = np.array(LABELS)
        features = np.column_stack([hyper.values, np.arange(7)]).astype(np.float64)
        problem = small.make_problem(list(range(7)), features)
        problem = problem.__class__(
            problem.data, hyper, problem.prior, 1.0, kernel.row_width(4, True), problem.columns
        )
        self.data, self.state = problem.data, new_state(problem)
        for name, values in small.seat_partition(LABELS, problem.data.component).items():
            getattr(self.state, name)[...] = values
        self.hyper = kernel.of_chain(hyper, self.state.law)
        self.rng = np.random.default_rng(5)
        rebuild_rows(self.hyper, self.data, self.state)

    def log_posterior(self, which: int, value: float, field: int) -> float:
        """Of an entry, up to a constant, by the sum over all ways."""
        law = self.state.law.copy()
        law[which] = value
        hyper = self.hyper._replace(law=law)
        found = float(stats.norm.logpdf(value, hyper.law_mean[which], hyper.law_sd[which]))
        for k in np.unique(self.labels):
            known = [
                i for i in np.flatnonzero(self.labels == k).tolist() if hyper.values[i, field] >= 0
            ]
            found += record_reference.log_ratio_of_field(hyper, field, known)
        return found

    def rows(self) -> np.ndarray:
        """The rows of the clusters."""
        return self.state.theta[[self.state.label[LABELS.index(k)] for k in range(3)]]

    def log_ratios(self) -> np.ndarray:
        """log R of the clusters at the law as it is, by the sum over all ways."""
        members = [np.flatnonzero(self.labels == k).tolist() for k in range(3)]
        return np.array([record_reference.log_ratio(self.hyper, rows) for rows in members])

    def entries(self, what: int, field: int) -> list[int]:
        """What all sources share, and what each adds."""
        found = [self.hyper.entry[what, field], *self.hyper.own[what, field]]
        return [int(entry) for entry in found if entry >= 0]

    def differences(self, what: int, field: int, log_rate=log_rate) -> float:
        """How far the table's log posterior is off in its changes."""
        pairs, larger = rates.gather_facts(self.hyper, self.state, field)
        worst, start = 0.0, self.state.law.copy()
        for which in self.entries(what, field):
            values = start[which] + np.array([-2.5, -0.7, 0.0, 0.4, 1.9])
            target = rates.Rate(self.hyper, self.state, field, which, pairs, larger)
            found = np.array([log_rate(target, value) for value in values.tolist()])
            self.state.law[:] = start
            exact = np.array([self.log_posterior(which, value, field) for value in values])
            worst = max(worst, float(np.ptp(found - exact)))
        return worst


def _with_own(hyper: kernel.RecordHyper) -> kernel.RecordHyper:
    """Three sources, each with its own rates and scales."""
    entries = np.argwhere(hyper.entry >= 0)
    own = np.full((3, FIELDS, 3), -1)
    for number, (what, field) in enumerate(entries):
        own[what, field] = len(hyper.law) + 3 * number + np.arange(3)
    more = 3 * len(entries)
    return hyper._replace(
        own=own,
        source=np.array([0, 1, 2, 1, 2, 0, 0], np.int32),
        about=np.append(hyper.about, np.repeat(entries[:, 1], 3)),
        law=np.append(hyper.law, np.random.default_rng(9).normal(0.0, 0.8, more)),
        law_mean=np.append(hyper.law_mean, np.zeros(more)),
        law_sd=np.append(hyper.law_sd, np.full(more, 0.8)),
    )


@pytest.mark.parametrize("apart", APART)
@pytest.mark.parametrize(("what", "field"), RATES)
def test_tables_give_the_sum_over_all_ways(what, field, apart):
    assert Clusters(apart).differences(what, field) < 1e-9


@pytest.mark.parametrize("apart", APART)
def test_what_is_altered_twice_must_not_count_twice(apart):
    """Planted: J in place of J - 1."""
    made = Clusters(apart)

    def note_two(hyper, field, one, other, row):
        rates.note_two(hyper, field, one, other, row)
        hyper.facts[row, kernel.BOTH] += 1.0

    gather = small.with_callees(rates.gather_facts, note_two=note_two)
    pairs, larger = gather(made.hyper, made.state, 0)
    which = made.entries(kernel.ALTER, 0)[0]
    target = rates.Rate(made.hyper, made.state, 0, which, pairs, larger)
    start = made.state.law[which]
    found = log_rate(target, start + 1.0) - log_rate(target, start)
    exact = made.log_posterior(which, start + 1.0, 0) - made.log_posterior(which, start, 0)
    assert abs(found - exact) > 1e-3


def test_a_larger_cluster_is_not_left_out():
    """Planted: clusters of three are forgotten."""
    made = Clusters(False)

    def forgetful(target, value):
        return log_rate(target._replace(larger=0), value)

    assert made.differences(kernel.MISS, 0, forgetful) > 1e-3


def p_of_draws(made: Clusters, which: int, field: int, shift: float = 0.0) -> float:
    """Of draws of one entry against its posterior on a grid; a prior holds all others fast."""
    centre, sd = made.hyper.law_mean[which], made.hyper.law_sd[which]
    grid = centre + sd * np.linspace(-5.5, 5.5, 221)
    logs = np.array([made.log_posterior(which, value, field) for value in grid])
    weight = np.exp(logs - special.logsumexp(logs))
    mean, spread = made.state.law.copy(), np.full(len(made.state.law), 1e-9)
    mean[which], spread[which] = centre + shift * sd, sd
    hyper = made.hyper._replace(law_mean=mean, law_sd=spread)
    drawn = []
    for _ in range(1000):
        for _ in range(5):
            rates.update_shared(hyper, made.rng, made.data, made.state)
        drawn.append(made.state.law[which])
    cumulated = np.interp(drawn, grid, np.cumsum(weight) - 0.5 * weight)
    return float(stats.kstest(cumulated, "uniform").pvalue)


@pytest.mark.parametrize(
    ("apart", "what", "field", "entry"),
    [(False, kernel.MISS, 0, 0), (False, kernel.ALTER, 2, 0), (True, kernel.ALTER, 0, 2)],
)
def test_rates_are_drawn_from_their_posterior(apart, what, field, entry):
    made = Clusters(apart)
    which = made.entries(what, field)[entry]
    assert p_of_draws(made, which, field) > FALSE_ALARM_RATE


def test_a_wrong_prior_is_caught():
    made = Clusters(False)
    which = made.entries(kernel.MISS, 0)[0]
    assert p_of_draws(made, which, 0, shift=0.7) < FALSE_ALARM_RATE


@pytest.mark.parametrize("apart", APART)
def test_after_an_update_all_rows_are_those_of_the_new_law(apart):
    made = Clusters(apart)
    before = made.state.law.copy()
    made.state.theta[:, kernel.NOTED] = made.state.spare[:, kernel.NOTED] = 3.0
    assert not rates.update_shared(made.hyper, made.rng, made.data, made.state)
    assert (made.state.law != before).sum() > len(before) / 4
    assert made.rows()[:, kernel.LOG_MARGINAL] == pytest.approx(made.log_ratios(), abs=1e-9)
    assert (made.rows()[:, kernel.NOTED] == kernel.NOBODY).all()
    assert (made.state.spare[:, kernel.NOTED] == kernel.NOBODY).all()


@pytest.mark.parametrize("apart", APART)
def test_noted_rates_are_those_of_the_law_and_no_other(apart):
    """They change no digit, and a law that moved since is not taken for the one noted."""
    made = Clusters(apart)
    before = made.rows()
    for field in range(FIELDS):
        rates.note_rates(made.hyper, field)
    assert np.isfinite(made.hyper.noted[kernel.MISS]).all()
    rebuild_rows(made.hyper, made.data, made.state)
    assert np.array_equal(made.rows()[:, kernel.LOG_MARGINAL], before[:, kernel.LOG_MARGINAL])
    made.state.law[:] += 0.5
    rebuild_rows(made.hyper, made.data, made.state)
    assert made.rows()[:, kernel.LOG_MARGINAL] == pytest.approx(made.log_ratios(), abs=1e-9)


def test_large_clusters_are_weighed_less_often():
    """Rates of 1,200 records are updated in every scan if clusters have two, less often if six."""

    def due(size: int, less_often: float) -> int:
        state = new_state(small.make_problem([0, 1], np.zeros((2, 3))))
        sizes = np.zeros(1201, np.int32)
        sizes[: 1200 // size] = size
        state = state._replace(
            label=np.zeros(1200, np.int32), size=sizes, scans=np.zeros(1, np.int64)
        )
        found = 0
        for scan in range(1000, 1080):
            state.scans[0] = scan
            found += rates.rates_are_due(state, less_often)
        return found

    assert [due(2, rates.LESS_OFTEN), due(6, rates.LESS_OFTEN)] == [80, 20]
    assert [due(2, 8.0), due(6, rates.LESS_OFTEN_MEASURES)] == [80, 10]

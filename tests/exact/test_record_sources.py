"""What sources add to the law of records: their two updates against the exact conditionals.

Nine records of three sources in three clusters, with one number. False-alarm rate 1e-5 each; what
is wrong by a factor or a shift is caught.
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
LABELS = (0, 1, 2, 0, 1, 2, 0, 1, 2)
WEIGHTS = ["10.0", "25.1", "41.0", "10.4", "25.0", "40.2", "12.0", "25.0", "44.0"]
DRAWS = 2000


class Shared:
    """The clusters, and the law with what each source adds to it."""

    def __init__(self) -> None:
        who = np.repeat([0, 1, 2], 3)
        everyone = [(i, j) for i in range(9) for j in range(i)]
        items = Items.from_columns({"weight": WEIGHTS}, who, kind="records", candidates=everyone)
        plain = RECORDS.prepared(items, RecordSettings(numbers=("weight",))).hyper(3)
        entries, added = len(plain.law), 3 * len(plain.law)
        self.own = entries + np.arange(added).reshape(3, 1, 3)
        hyper = plain._replace(
            own=self.own,
            source=who.astype(np.int32),
            about=np.zeros(entries + added, np.int64),
            law=np.concatenate([[-3.0, 0.5, 0.1], np.tile([0.2, -0.3, 0.4], 3)]),
            law_mean=np.concatenate([[-3.5, 0.0, -0.4], np.zeros(added)]),
            law_sd=np.concatenate([[1.0, 2.0, 1.2], np.repeat([0.5, 0.5, 0.8], 3)]),
        )
        features = np.column_stack([hyper.values, np.arange(9)]).astype(np.float64)
        problem = small.make_problem(list(range(9)), features)
        problem = problem.__class__(
            problem.data, hyper, problem.prior, 1.0, kernel.row_width(3, True), problem.columns
        )
        self.data, self.state = problem.data, new_state(problem)
        for name, values in small.seat_partition(LABELS, problem.data.component).items():
            getattr(self.state, name)[...] = values
        self.hyper = kernel.of_chain(hyper, self.state.law)
        self.rng = np.random.default_rng(5)
        rebuild_rows(self.hyper, self.data, self.state)

    def log_posterior(self, law: np.ndarray) -> float:
        hyper = self.hyper._replace(law=law)
        found = stats.norm.logpdf(law, hyper.law_mean, hyper.law_sd).sum()
        for k in range(3):
            members = np.flatnonzero(np.array(LABELS) == k).tolist()
            found += record_reference.log_ratio(hyper, members)
        return float(found)

    def split(self, one: int, other: int, hyper) -> float:
        """p of draws of z = log(s_one² / s_other²), given the sum of the two variances."""
        shared, own = self.hyper.entry[kernel.SCALE, 0], self.own[kernel.SCALE, 0]
        a, b = own[one], own[other]
        start = self.state.law.copy()
        both = np.exp(2 * (start[shared] + start[[a, b]])).sum()
        grid, logs = np.linspace(-9, 9, 241), []
        for z in grid:
            law = start.copy()
            parts = both * special.expit([z, -z])
            law[[a, b]] = 0.5 * np.log(parts) - start[shared]
            logs.append(self.log_posterior(law))
        weight = np.exp(logs - special.logsumexp(logs))
        drawn = []
        for _ in range(DRAWS):
            for _ in range(2):
                rates.split_scales(hyper, self.rng, self.data, self.state, 0, one, other)
            drawn.append(2 * (self.state.law[a] - self.state.law[b]))
        now = np.exp(2 * (self.state.law[shared] + self.state.law[[a, b]])).sum()
        assert now == pytest.approx(both)
        cumulated = np.interp(drawn, grid, np.cumsum(weight) - 0.5 * weight)
        return float(stats.kstest(cumulated, "uniform").pvalue)

    def shared(self, what: int, hyper) -> float:
        """p of draws of what sources share, given what each has in all."""
        at, own = int(self.hyper.entry[what, 0]), self.own[what, 0]
        whole = self.state.law[at] + self.state.law[own]
        precision = self.hyper.law_sd[at] ** -2 + (self.hyper.law_sd[own] ** -2.0).sum()
        mean = self.hyper.law_mean[at] / self.hyper.law_sd[at] ** 2
        mean = (mean + (whole / self.hyper.law_sd[own] ** 2).sum()) / precision
        drawn = []
        for _ in range(DRAWS):
            rates.draw_shared(hyper, self.rng, what, 0)
            drawn.append(self.state.law[at])
        assert self.state.law[at] + self.state.law[own] == pytest.approx(whole)
        return float(stats.kstest(drawn, "norm", (mean, precision**-0.5)).pvalue)

    def wrong_prior(self):
        """The first source's part has half the spread, and the shared one another mean."""
        sd, mean = self.hyper.law_sd.copy(), self.hyper.law_mean.copy()
        sd[self.own[:, 0, 0]] *= 0.5
        mean[: len(mean) // 4] += 1.0
        return self.hyper._replace(law_sd=sd, law_mean=mean)


@pytest.mark.parametrize("two", [(0, 1), (2, 0)])
def test_scales_of_two_sources_are_drawn_from_their_posterior(two):
    made = Shared()
    assert made.split(*two, made.hyper) > FALSE_ALARM_RATE


@pytest.mark.parametrize("what", [kernel.MISS, kernel.ALTER, kernel.SCALE])
def test_what_sources_share_is_drawn_from_its_conditional(what):
    made = Shared()
    assert made.shared(what, made.hyper) > FALSE_ALARM_RATE


def test_a_wrong_prior_is_caught():
    made = Shared()
    assert made.split(0, 1, made.wrong_prior()) < FALSE_ALARM_RATE
    assert made.shared(kernel.SCALE, made.wrong_prior()) < FALSE_ALARM_RATE


def test_an_update_keeps_within_the_prior():
    """An entry at the prior's end stays, as no draw lies within it for all."""
    made = Shared()
    at, own = made.hyper.entry[kernel.SCALE, 0], made.own[kernel.SCALE, 0]
    made.state.law[own] = 5.99 * made.hyper.law_sd[own] * [1.0, -1.0, 1.0]
    made.state.law[at] = made.hyper.law_mean[at]
    for _ in range(50):
        rates.update_shared(made.hyper, made.rng, made.data, made.state)
        z = (made.state.law - made.hyper.law_mean) / made.hyper.law_sd
        assert np.abs(z).max() <= 6.0

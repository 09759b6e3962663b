"""Was the run long enough: R-hat, effective sample size, agreement of the chains, a verdict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dfcrp.draws import Draws
from dfcrp.markup import counted, listed
from dfcrp.summaries.coclustering import Coclustering, coclustering, pair_histories
from dfcrp.summaries.consensus import ConsensusCounts
from dfcrp.summaries.streaming import n_clusters, stride_for

#: Pairs whose probability lies strictly between are uncertain enough to be judged by R-hat.
UNCERTAIN = (0.02, 0.98)
#: Pairs, and draws of all chains together, whose effective sample size is computed.
MAX_PAIRS = 1_000
MAX_DRAWS = 8_000
#: R-hat of a pair above which its mixing is called slow.
SLOW_PAIR = 1.1
#: Fewest draws of a chain from which R-hat means anything.
MIN_DRAWS = 8


@dataclass(frozen=True)
class Limits:
    """What a good run must reach."""

    #: Largest R-hat of α, the number of clusters and the consensus counts.
    rhat: float = 1.01
    #: Smallest effective sample size of the same, bulk and tail.
    ess: float = 400.0
    #: Largest difference between chains in the frequency of a pair.
    pair_difference: float = 0.3


@dataclass(frozen=True)
class Diagnostic:
    """Convergence of one number that every draw has."""

    name: str
    rhat: float
    ess_bulk: float
    ess_tail: float

    @property
    def ess(self) -> float:
        """The smaller of bulk and tail."""
        return min(self.ess_bulk, self.ess_tail)


@dataclass(frozen=True)
class Verdict:
    """Whether the run was long enough, why, and what to do."""

    ok: bool
    max_rhat: float
    min_ess: float
    #: NaN with one chain.
    max_pair_disagreement: float
    pairs_disagreeing: int
    #: The markings behind the disagreement, as few as explain all of it.
    undecided: tuple[int, ...]
    #: Over the uncertain pairs.
    max_pair_rhat: float
    min_pair_ess: float
    advice: tuple[str, ...]
    diagnostics: tuple[Diagnostic, ...] = ()
    #: The pairs that the chains disagree on, worst first; (pairs, 2).
    pairs: NDArray[np.int64] = field(default_factory=lambda: np.zeros((0, 2), np.int64))

    def as_dict(self) -> dict[str, Any]:
        """As in summary.json; None where a number does not exist."""
        numbers = {
            "max_rhat": self.max_rhat,
            "min_ess": self.min_ess,
            "max_pair_disagreement": self.max_pair_disagreement,
            "max_pair_rhat": self.max_pair_rhat,
            "min_pair_ess": self.min_pair_ess,
        }
        out: dict[str, Any] = {k: v if np.isfinite(v) else None for k, v in numbers.items()}
        return out | {"pairs_disagreeing": self.pairs_disagreeing, "ok": self.ok}


def diagnose(name: str, series: NDArray[Any]) -> Diagnostic:
    """Rank-normalised split R-hat (the larger of bulk and folded), bulk and tail ESS.

    ``series`` is (chains, draws); a single chain is compared with itself, half with half.
    One constant in all chains has converged (R-hat 1); different constants have not (inf).
    """
    from arviz_stats.base import array_stats

    values = np.asarray(series, np.float64)
    n_chains, n_draws = values.shape
    if n_draws < MIN_DRAWS:
        return Diagnostic(name, np.nan, np.nan, np.nan)
    if (values == values[0, 0]).all():
        return Diagnostic(name, 1.0, float(values.size), float(values.size))
    if (values == values[:, :1]).all():
        return Diagnostic(name, np.inf, float(n_chains), float(n_chains))
    half = n_draws // 2
    compared = values if n_chains > 1 else values[:, : 2 * half].reshape(2, half)
    with np.errstate(divide="ignore", invalid="ignore"):
        rhat = float(array_stats.rhat(compared, method="rank"))
        bulk = float(array_stats.ess(values, method="bulk"))
        tail = float(array_stats.ess(values, method="tail", prob=0.05))
    return Diagnostic(name, rhat, bulk, bulk if np.isnan(tail) else tail)


def pair_rhat(pairs: Coclustering) -> NDArray[np.float64]:
    """Split R-hat of every pair's co-clustering indicator.

    An indicator has two values, so rank-normalising and folding change it only linearly, and
    R-hat follows from each half chain's frequency p_h over n_h draws:

        W = mean of p_h (1 - p_h) n_h / (n_h - 1),   R-hat² = (n - 1) / n + var(p_h) / W
    """
    sizes = np.tile(pairs.half_draws, pairs.n_chains).astype(np.float64)[:, np.newaxis]
    if sizes.min() < 2:
        return np.full(len(pairs.first), np.nan)
    share = pairs.counts.reshape(len(sizes), -1) / sizes
    within = (share * (1.0 - share) * sizes / (sizes - 1.0)).mean(axis=0)
    between = share.var(axis=0, ddof=1)
    n = float(sizes.mean())
    ratio = np.where(between > 0.0, np.inf, 0.0)
    np.divide(between, within, out=ratio, where=within > 0.0)
    out: NDArray[np.float64] = np.where(ratio == 0.0, 1.0, np.sqrt((n - 1.0) / n + ratio))
    return out


def pair_ess(draws: Draws, pairs: Coclustering, chosen: NDArray[np.int64]) -> NDArray[np.float64]:
    """Bulk ESS of the chosen pairs' indicators, from evenly spaced draws (so at least this)."""
    step = stride_for(draws, MAX_DRAWS)
    histories = pair_histories(draws, pairs.first[chosen], pairs.second[chosen], step)
    return np.array([diagnose("", history).ess_bulk for history in histories])


def explain_pairs(pairs: NDArray[np.int64]) -> tuple[int, ...]:
    """Few markings that together touch every pair: the one in most pairs first.

    A marking that changes sides disagrees with all its companions; naming it alone says more
    than naming all of them. Both ends of a pair that stands by itself are named.
    """
    found: list[int] = []
    left = pairs
    while len(left):
        markings, times = np.unique(left, return_counts=True)
        if times.max() == 1:
            found.extend(int(i) for i in markings)
            break
        worst = markings[np.argmax(times)]
        found.append(int(worst))
        left = left[(left != worst).all(axis=1)]
    return tuple(sorted(found))


def check_convergence(
    draws: Draws,
    consensus: ConsensusCounts | None = None,
    pairs: Coclustering | None = None,
    limits: Limits | None = None,
    *,
    names: Sequence[object] | None = None,
    noun: str = "item",
) -> Verdict:
    """Judge a run by α, the number of clusters, the consensus counts, and the pairs.

    The advice calls an item ``noun`` and gives its entry of ``names``, or else its row.
    """
    limits = Limits() if limits is None else limits
    pairs = coclustering(draws) if pairs is None else pairs
    diagnostics = tuple(diagnose(k, v) for k, v in scalar_series(draws, consensus).items())
    probability = pairs.probability
    uncertain = np.flatnonzero((probability > UNCERTAIN[0]) & (probability < UNCERTAIN[1]))
    difference = pairs.disagreement()
    worst_first = uncertain[np.argsort(-difference[uncertain], kind="stable")]
    rhat = pair_rhat(pairs)[uncertain]
    ess = pair_ess(draws, pairs, worst_first[:MAX_PAIRS])
    apart = np.flatnonzero(difference > limits.pair_difference)
    apart = apart[np.argsort(-difference[apart], kind="stable")]
    split = np.column_stack((pairs.first[apart], pairs.second[apart]))
    several = draws.n_chains > 1
    verdict = Verdict(
        ok=False,
        max_rhat=float(max(d.rhat for d in diagnostics)),
        min_ess=float(min(d.ess for d in diagnostics)),
        max_pair_disagreement=float(difference.max(initial=0.0)) if several else np.nan,
        pairs_disagreeing=len(apart),
        undecided=explain_pairs(split),
        max_pair_rhat=float(rhat.max(initial=1.0)),
        min_pair_ess=float(ess.min(initial=np.inf)),
        advice=(),
        diagnostics=diagnostics,
        pairs=split,
    )
    name = str if names is None else lambda row: str(names[row])
    undecided = Undecided(noun, [name(row) for row in verdict.undecided])
    return _judged(verdict, limits, several, undecided)


def scalar_series(
    draws: Draws, consensus: ConsensusCounts | None = None
) -> dict[str, NDArray[Any]]:
    """The numbers that a run is judged by, each (chains, draws), under readable names."""
    series: dict[str, NDArray[Any]] = {}
    alpha = draws.alpha()
    if np.isfinite(alpha).all():
        series["α"] = alpha
    shared, names = draws.shared(), draws.columns.names
    for column in draws.columns.judged:
        series[names[column]] = shared[:, :, column]
    series["number of clusters"] = n_clusters(draws)
    if consensus is not None:
        series.update(consensus.series())
    return series


def choose_burn_in(
    series: Mapping[str, NDArray[Any]],
    rhat: float = Limits.rhat,
    fractions: Sequence[float] = (0.1, 0.25, 0.5),
) -> int:
    """Draws to drop from the front: the first of these fractions that leaves a good R-hat.

    The last fraction if none does.
    """
    n_draws = next(iter(series.values())).shape[1]
    drop = 0
    for fraction in fractions:
        drop = int(np.ceil(fraction * n_draws))
        if all(diagnose(name, values[:, drop:]).rhat <= rhat for name, values in series.items()):
            break
    return drop


class Undecided(NamedTuple):
    """The items that chains disagree on: what one is called, and their names."""

    noun: str
    names: list[str]


def _judged(verdict: Verdict, limits: Limits, several: bool, undecided: Undecided) -> Verdict:
    """The verdict with ``ok`` and the advice filled in."""
    if np.isnan(verdict.max_rhat):
        few = (
            f"There are fewer than {MIN_DRAWS} draws for each chain: too few to judge. Run longer."
        )
        return replace(verdict, advice=(few,))
    rhat_good = verdict.max_rhat <= limits.rhat
    ess_good = verdict.min_ess >= limits.ess
    ok = rhat_good and ess_good and verdict.pairs_disagreeing == 0
    advice = []
    if ok:
        advice.append(
            f"The run was long enough: R-hat is at most {verdict.max_rhat:.3f} and the smallest "
            f"effective sample size is {verdict.min_ess:.0f}."
        )
    if not rhat_good:
        worst = max(verdict.diagnostics, key=lambda d: d.rhat)
        advice.append(_rhat_sentence(worst, limits))
    if not ess_good:
        worst = min(verdict.diagnostics, key=lambda d: d.ess)
        advice.append(
            f"The effective sample size of {worst.name} is {worst.ess:.0f}; "
            f"it should be at least {limits.ess:.0f}."
        )
    if verdict.pairs_disagreeing:
        advice.append(_undecided_sentence(verdict, limits, undecided))
    if verdict.max_pair_rhat > SLOW_PAIR:
        stuck = np.isinf(verdict.max_pair_rhat)
        how = "never change within a chain" if stuck else "change slowly"
        rhat = "infinite" if stuck else f"up to {verdict.max_pair_rhat:.2f}"
        advice.append(
            f"Some pairs {how} (R-hat {rhat}): counts can be trusted before the place of every "
            f"single {undecided.noun} can."
        )
    if not several:
        advice.append(
            "With one chain the agreement between chains cannot be checked; run at least two."
        )
    if not ok:
        advice.append(_longer(verdict, limits))
    return replace(verdict, ok=ok, advice=tuple(advice))


def _rhat_sentence(worst: Diagnostic, limits: Limits) -> str:
    if np.isinf(worst.rhat):
        return (
            f"The chains contradict each other on {worst.name}: each stays at one value, and not "
            "all at the same, so R-hat, which compares them, is infinite."
        )
    return f"R-hat of {worst.name} is {worst.rhat:.2f}; it should be at most {limits.rhat}."


def _undecided_sentence(
    verdict: Verdict, limits: Limits, undecided: Undecided, shown: int = 20
) -> str:
    noun, names = undecided
    text = listed(names, shown)
    these = f"This {noun} is" if len(names) == 1 else f"These {counted(len(names), noun)} are"
    return (
        f"{these} undecided between chains: {text} "
        f"(pairs that differ by more than {limits.pair_difference}: {verdict.pairs_disagreeing}; "
        f"largest difference {verdict.max_pair_disagreement:.2f})."
    )


def longer(verdict: Verdict, limits: Limits) -> float:
    """How many times longer to run, from the rates at which each shortfall shrinks.

    With the length L, R-hat² - 1 falls as 1 / L, ESS grows as L, and a difference between
    chains falls as 1 / sqrt(L).
    """
    needs = [
        2.0,
        (verdict.max_rhat**2 - 1.0) / (limits.rhat**2 - 1.0),
        limits.ess / verdict.min_ess,
    ]
    if verdict.pairs_disagreeing:
        needs.append((verdict.max_pair_disagreement / limits.pair_difference) ** 2)
    return max(needs)


def _longer(verdict: Verdict, limits: Limits, most: int = 10) -> str:
    factor = longer(verdict, limits)
    if factor > most:
        return (
            f"Run at least {most} times longer, and look at the trace plots: "
            "chains that stay apart are stuck, not short."
        )
    return f"Run {int(np.ceil(factor))} times longer."

"""Was the run long enough: R-hat, effective sample size, agreement of the chains, a verdict.

The verdict has three parts. The first is on the *answers*, what a user reads: counts, pairs of
items (so the catalogue and memberships), experts who differ, and what a prior says of reality. It
decides when a run ends. The second is on the *parameters* behind them, such as α and the
tolerances, which may mix slowly though no answer depends on their last digit. The third is on the
*model*, whether it fits the data (``summaries.fit``): draws that converged are of no use if it does
not.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from dfcrp.draws import Draws
from dfcrp.markup import counted, listed
from dfcrp.summaries.coclustering import Coclustering, coclustering, pair_histories
from dfcrp.summaries.consensus import ConsensusCounts
from dfcrp.summaries.fit import ModelFit
from dfcrp.summaries.streaming import n_clusters, stride_for
from dfcrp.values import Array, Json

#: Pairs whose probability lies strictly between are uncertain enough to be judged by R-hat.
UNCERTAIN = (0.02, 0.98)
#: Pairs, and draws of all chains together, whose effective sample size is computed.
MAX_PAIRS = 1_000
MAX_DRAWS = 8_000
#: Pairs whose autocorrelations are in memory at a time.
PAIRS_AT_ONCE = 64
#: Series of numbers that are diagnosed at a time.
SERIES_AT_ONCE = 64
#: Quantiles that stand for the tails.
TAILS = (0.05, 0.95)
#: R-hat of a pair above which its mixing is called slow.
SLOW_PAIR = 1.1
#: Fewest draws of a chain from which R-hat means anything.
MIN_DRAWS = 8
#: More than this many times longer is not estimated.
MOST = 10


@dataclass(frozen=True)
class Limits:
    """What a good run must reach."""

    #: Largest R-hat of the number of clusters, the consensus counts and other numbers.
    rhat: float = 1.01
    #: Smallest effective sample size of the same, bulk and tail.
    ess: float = 400.0
    #: Largest difference between chains in the frequency of a pair.
    pair_difference: float = 0.3
    #: One pair may differ by more for so many items: among millions some do by chance alone.
    items_per_pair: int = 10_000


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
    """Whether the run was long enough, why, and what to do.

    ``ok`` and the numbers are on the answers; ``parameters_ok`` and ``parameters`` on what is
    behind them.
    """

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
    parameters_ok: bool = True
    parameters: tuple[Diagnostic, ...] = ()
    #: Parameters of which the data say nothing, in plain words; they are not judged.
    left_out: tuple[str, ...] = ()
    #: The pairs that the chains disagree on, worst first; (pairs, 2).
    pairs: NDArray[np.int64] = field(default_factory=lambda: np.zeros((0, 2), np.int64))
    #: How many may disagree, of so many items.
    pairs_allowed: int = 0
    #: Whether anything can be merged at all; if not, ``ok`` is on the counts of sizes alone.
    merging: bool = True
    #: Whether the model fits; None if that was not asked, as while a run goes on.
    fit: ModelFit | None = None

    @property
    def fits(self) -> bool:
        """Whether no check of the fit found a difference that matters."""
        return self.fit is None or self.fit.ok

    @property
    def chains_agree(self) -> bool:
        """Whether chains disagree on no more pairs than so many items allow."""
        return self.pairs_disagreeing <= self.pairs_allowed

    @property
    def opening(self) -> str:
        """The verdict in a few words, all of its parts together."""
        if self.ok and not self.merging:
            return "none"
        if self.fits:
            return "good" if self.ok else "NOT GOOD YET"
        assert self.fit is not None
        length = "long enough, but" if self.ok else "NOT GOOD YET, and"
        return f"{length} the model does not fit: do not trust {self.fit.distrust}"

    def as_dict(self) -> Json:
        """As in summary.json; None where a number does not exist."""
        numbers = {
            "max_rhat": self.max_rhat,
            "min_ess": self.min_ess,
            "max_pair_disagreement": self.max_pair_disagreement,
            "max_pair_rhat": self.max_pair_rhat,
            "min_pair_ess": self.min_pair_ess,
        }
        return {
            **_finite(numbers),
            "pairs_disagreeing": self.pairs_disagreeing,
            "pairs_allowed": self.pairs_allowed,
            "ok": self.ok,
            "merging": self.merging,
            "parameters": {
                "ok": self.parameters_ok,
                **_finite(
                    {
                        "max_rhat": max((d.rhat for d in self.parameters), default=np.nan),
                        "min_ess": min((d.ess for d in self.parameters), default=np.nan),
                    }
                ),
                "left_out": list(self.left_out),
            },
        }


def _finite(numbers: Mapping[str, float]) -> dict[str, float | None]:
    return {name: value if np.isfinite(value) else None for name, value in numbers.items()}


def diagnose(name: str, series: Array) -> Diagnostic:
    """Rank-normalised split R-hat (the larger of bulk and folded), bulk and tail ESS.

    ``series`` is (chains, draws); a single chain is compared with itself, half with half.
    One constant in all chains has converged (R-hat 1); different constants have not (inf).
    """
    [found] = diagnose_all({name: series})
    return found


def diagnose_all(series: Mapping[str, Array]) -> tuple[Diagnostic, ...]:
    """The same of several series, some of one shape at a time: most of the time is in calls."""
    of_shape: dict[tuple[int, ...], list[str]] = {}
    for name, values in series.items():
        of_shape.setdefault(np.shape(values), []).append(name)
    found = {}
    for names in of_shape.values():
        for start in range(0, len(names), SERIES_AT_ONCE):
            some = names[start : start + SERIES_AT_ONCE]
            stacked = np.stack([np.asarray(series[name], np.float64) for name in some])
            rows = zip(some, _diagnosed_at_once(stacked).tolist(), strict=True)
            found.update({name: Diagnostic(name, *numbers) for name, numbers in rows})
    return tuple(found[name] for name in series)


def _diagnosed_at_once(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """R-hat, bulk and tail ESS of each of (series, chains, draws)."""
    n_series, n_chains, n_draws = values.shape
    found = np.full((n_series, 3), np.nan)
    known = ~np.isnan(values).any(axis=(1, 2)) & (n_draws >= MIN_DRAWS)
    same = known & (values == values[:, :1, :1]).all(axis=(1, 2))
    stuck = known & ~same & (values == values[:, :, :1]).all(axis=(1, 2))
    found[same] = 1.0, n_chains * n_draws, n_chains * n_draws
    found[stuck] = np.inf, n_chains, n_chains
    moving = np.flatnonzero(known & ~same & ~stuck)
    if moving.size:
        values = values[moving]
        half = n_draws // 2
        compared = values
        if n_chains == 1:
            compared = values[:, :, : 2 * half].reshape(-1, 2, half)
        halves = split(values)
        cuts = np.quantile(values.reshape(len(values), -1), TAILS, axis=1)
        tails = (effective_size(halves <= cut[:, np.newaxis, np.newaxis]) for cut in cuts)
        bulk = effective_size(normal_scores(halves))
        found[moving] = np.column_stack([rank_rhat(compared), bulk, np.minimum(*tails)])
    return found


# Vehtari, Gelman, Simpson, Carpenter and Bürkner (2021), Rank-normalization, folding, and
# localization: an improved R-hat. Bayesian Analysis 16, 667-718.


def split(series: Array) -> Array:
    """Half chains, (series, 2 chains, draws / 2); of odd numbers the middle draw is dropped."""
    half = series.shape[2] // 2
    return np.concatenate((series[:, :, :half], series[:, :, -half:]), axis=1)


def normal_scores(values: Array) -> NDArray[np.float64]:
    """Ranks among all values of a series, equal ones averaged, as quantiles of the normal."""
    from scipy.special import ndtri

    flat = values.reshape(len(values), -1)
    order = np.argsort(flat, axis=1, kind="stable")
    ascending = np.take_along_axis(flat, order, axis=1)
    place = np.arange(flat.shape[1])
    ends = np.ones(flat.shape, bool)
    ends[:, :-1] = ascending[:, 1:] != ascending[:, :-1]
    begins = np.roll(ends, 1, axis=1)
    # Where the run of equal values around each place begins and ends.
    first = np.maximum.accumulate(np.where(begins, place, 0), axis=1)
    last = np.minimum.accumulate(np.where(ends, place, place[-1])[:, ::-1], axis=1)[:, ::-1]
    # Blom's offset of 3/8.
    scores = ndtri(((first + last) / 2.0 + 1.0 - 0.375) / (flat.shape[1] + 0.25))
    found = np.empty(flat.shape)
    np.put_along_axis(found, order, scores, axis=1)
    return found.reshape(values.shape)


def rank_rhat(series: NDArray[np.float64]) -> NDArray[np.float64]:
    """R-hat of the half chains: the larger of that of their ranks and that of the folded ones."""
    halves = split(series)
    folded = np.abs(halves - np.median(halves, axis=(1, 2), keepdims=True))
    ranks, spread = _rhat(normal_scores(halves)), _rhat(normal_scores(folded))
    # Where folded draws are the same in all chains their R-hat is no number.
    return np.where(spread > ranks, spread, ranks)


def _rhat(chains: NDArray[np.float64]) -> NDArray[np.float64]:
    """sqrt((n - 1) / n + B / W), with B the variance of the chains' means and W that within."""
    n = chains.shape[2]
    between = chains.mean(axis=2).var(axis=1, ddof=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        within = chains.var(axis=2, ddof=1).mean(axis=1)
        return np.asarray(np.sqrt((n - 1.0) / n + between / within))


def effective_size(series: Array) -> NDArray[np.float64]:
    """Effective sample size of each of (series, chains, draws): S = all draws / τ.

    τ = -1 + 2 Σ P_k with P_k = ρ_2k + ρ_2k+1, the autocorrelations of two neighbouring lags over
    all chains, made monotone and cut off before they are negative (Geyer 1992); to which the one
    lag after them is added, if that is positive. A constant has all its draws.
    """
    x = np.asarray(series, np.float64)
    _, n_chains, n = x.shape
    deviation = x - x.mean(axis=2, keepdims=True)
    length = 1 << (2 * n - 1).bit_length()
    power = np.abs(np.fft.rfft(deviation, length, axis=2)) ** 2
    covariance = np.fft.irfft(power.mean(axis=1), length, axis=1)[:, :n] / n
    within = covariance[:, 0] * n / (n - 1.0)
    total = covariance[:, 0].copy()
    if n_chains > 1:
        total += x.mean(axis=2).var(axis=1, ddof=1)
    varies = np.ptp(x, axis=(1, 2)) > 0.0
    with np.errstate(divide="ignore", invalid="ignore"):
        rho = 1.0 - (within[:, np.newaxis] - covariance) / total[:, np.newaxis]
    rho[:, 0] = 1.0
    # The last pair that is looked at: lags 2k and 2k + 1 with 2k + 1 >= n - 3.
    last = max((n - 3) // 2, 0)
    pairs = rho[:, 0 : 2 * last + 2 : 2] + rho[:, 1 : 2 * last + 2 : 2]
    ends = pairs <= 0.0
    ends[:, last] = True
    end = ends.argmax(axis=1)
    row = np.arange(len(x))
    monotone = np.minimum.accumulate(pairs, axis=1)
    summed = np.concatenate((np.zeros((len(x), 1)), np.cumsum(monotone, axis=1)), axis=1)
    after = rho[row, 2 * end]
    after = np.where((after > 0.0) | (pairs[row, end] >= 0.0), after, 0.0)
    tau = np.maximum(-1.0 + 2.0 * summed[row, end] + after, 1.0 / np.log10(n_chains * n))
    found: NDArray[np.float64] = np.where(varies, n_chains * n / tau, n_chains * n)
    return found


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
    """Bulk ESS of the chosen pairs' indicators, from evenly spaced draws (so at least this).

    An indicator has two values, so its ranks are the indicator again, scaled.
    """
    step = stride_for(draws, MAX_DRAWS)
    histories = pair_histories(draws, pairs.first[chosen], pairs.second[chosen], step)
    n_chains, n_draws = histories.shape[1:]
    if n_draws < MIN_DRAWS:
        return np.full(len(histories), np.nan)
    half = n_draws // 2
    halves = np.concatenate((histories[:, :, :half], histories[:, :, -half:]), axis=1)
    blocks = [halves[at : at + PAIRS_AT_ONCE] for at in range(0, len(halves), PAIRS_AT_ONCE)]
    found = np.concatenate([np.zeros(0), *map(effective_size, blocks)])
    # As in ``diagnose``: a constant has all its draws, different constants have one each.
    stuck = (histories == histories[:, :, :1]).all(axis=(1, 2))
    same = stuck & (histories[:, :, 0] == histories[:, :1, 0]).all(axis=1)
    return np.select([same, stuck], [float(n_chains * n_draws), float(n_chains)], found)


def explain_pairs(pairs: NDArray[np.int64]) -> tuple[int, ...]:
    """Few markings that together touch every pair: the one in most pairs first.

    A marking that changes sides disagrees with all its companions; naming it alone says more
    than naming all of them. Both ends of a pair that stands by itself are named.
    """
    others: dict[int, list[int]] = {}
    for first, second in pairs.tolist():
        others.setdefault(first, []).append(second)
        others.setdefault(second, []).append(first)
    left = {marking: len(them) for marking, them in others.items()}
    # What has changed since is put in again; the old entries are passed over.
    queue = [(-count, marking) for marking, count in left.items()]
    heapq.heapify(queue)
    found: set[int] = set()
    while queue:
        count, worst = heapq.heappop(queue)
        if -count != left[worst] or not count:
            continue
        if count == -1:
            found |= {marking for marking, pairs_left in left.items() if pairs_left}
            break
        found.add(worst)
        left[worst] = 0
        for other in others[worst]:
            if other not in found:
                left[other] -= 1
                heapq.heappush(queue, (-left[other], other))
    return tuple(sorted(found))


@dataclass(frozen=True)
class KnownOfRun:
    """What the verdict must know of a run besides its draws; all of it may be unknown."""

    #: What an item is called, and the items' names; else they are called by their rows.
    noun: str = "item"
    names: Sequence[object] | Array | None = None
    #: Plain words for the numbers that are stored with the draws.
    words: Mapping[str, str] = field(default_factory=dict)
    #: Those of which the data say nothing.
    unheard: frozenset[str] = frozenset()
    #: Whether any two items may share a cluster: not if one expert alone lists nothing twice.
    mergeable: bool = True
    #: Scans of each chain so far, and seconds.
    scans: int | None = None
    seconds: float | None = None

    def called(self, row: int) -> str:
        """The name of an item."""
        return str(row if self.names is None else self.names[row])


def check_convergence(
    draws: Draws,
    consensus: ConsensusCounts | None = None,
    pairs: Coclustering | None = None,
    limits: Limits | None = None,
    known: KnownOfRun | None = None,
    *,
    stored: StoredDiagnostics | None = None,
) -> Verdict:
    """Judge a run by its counts and pairs, and beside it α and what else is behind them.

    ``stored`` is of what the draws have in common with those of other images, if that is known.
    """
    limits = Limits() if limits is None else limits
    known = KnownOfRun() if known is None else known
    pairs = coclustering(draws) if pairs is None else pairs
    stored = diagnose_stored(draws, known.words) if stored is None else stored
    parameters = stored.parameters
    unheard = known.unheard & set(parameters)
    if not known.mergeable:
        unheard = frozenset(parameters)
    diagnostics = (*_diagnosed(_counts(draws, consensus), known.words), *stored.answers)
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
        pairs_allowed=draws.n_markings // limits.items_per_pair,
        undecided=explain_pairs(split),
        max_pair_rhat=float(rhat.max(initial=1.0)),
        min_pair_ess=float(ess.min(initial=np.inf)),
        advice=(),
        diagnostics=diagnostics,
        parameters=tuple(one for name, one in parameters.items() if name not in unheard),
        left_out=tuple(known.words.get(name, name) for name in parameters if name in unheard),
        pairs=split,
        merging=known.mergeable,
    )
    return _judged(verdict, limits, several, known)


def _diagnosed(series: Mapping[str, Array], words: Mapping[str, str]) -> tuple[Diagnostic, ...]:
    found = diagnose_all(series)
    return tuple(replace(one, name=words.get(one.name, one.name)) for one in found)


@dataclass(frozen=True)
class StoredDiagnostics:
    """Convergence of what is stored with every draw: the same of all images drawn together."""

    answers: tuple[Diagnostic, ...]
    #: By the names under which they are stored.
    parameters: Mapping[str, Diagnostic]


def diagnose_stored(draws: Draws, words: Mapping[str, str]) -> StoredDiagnostics:
    """Of what is judged; ``words`` are plain ones by name."""
    parameters = parameter_series(draws)
    return StoredDiagnostics(
        _diagnosed(_stored(draws, behind=False), words),
        dict(zip(parameters, _diagnosed(parameters, words), strict=True)),
    )


def good(found: Diagnostic, limits: Limits) -> bool:
    """Whether chains agree on a number, and there are draws enough of it."""
    return found.rhat <= limits.rhat and found.ess >= limits.ess


def answer_series(draws: Draws, consensus: ConsensusCounts | None = None) -> dict[str, Array]:
    """The numbers that the first part of the verdict is on, by name, each (chains, draws)."""
    return {**_counts(draws, consensus), **_stored(draws, behind=False)}


def _counts(draws: Draws, consensus: ConsensusCounts | None) -> dict[str, Array]:
    counts: dict[str, Array] = {"number of clusters": n_clusters(draws)}
    return counts if consensus is None else counts | consensus.series()


def parameter_series(draws: Draws) -> dict[str, Array]:
    """The same of the second part; α is not there if the prior has none."""
    alpha = draws.alpha()
    known = np.isfinite(alpha).all()
    return {**({"α": alpha} if known else {}), **_stored(draws, behind=True)}


def _stored(draws: Draws, *, behind: bool) -> dict[str, Array]:
    chosen = draws.columns.judged_of(behind=behind)
    shared = draws.shared(chosen)
    return {name: shared[:, :, k] for k, name in enumerate(draws.columns.names_at(chosen))}


def choose_burn_in(
    series: Mapping[str, Array],
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


def _judged(verdict: Verdict, limits: Limits, several: bool, known: KnownOfRun) -> Verdict:
    """The verdict with both parts decided and the advice filled in."""
    if np.isnan(verdict.max_rhat):
        few = (
            f"There are fewer than {MIN_DRAWS} draws for each chain: too few to judge. Run longer."
        )
        return replace(verdict, advice=(few,), parameters_ok=False)
    verdict = replace(
        verdict,
        ok=all(good(d, limits) for d in verdict.diagnostics) and verdict.chains_agree,
        parameters_ok=all(good(d, limits) for d in verdict.parameters),
    )
    advice = [
        *_answer_advice(verdict, limits, known),
        *_pair_advice(verdict, limits, several, known),
        *_parameter_advice(verdict, limits, known),
    ]
    if not verdict.ok:
        advice.append(_longer(verdict, limits))
    return replace(verdict, advice=tuple(advice))


def _answer_advice(verdict: Verdict, limits: Limits, known: KnownOfRun) -> list[str]:
    """On the counts and other numbers."""
    advice = []
    if not known.mergeable:
        advice.append(
            f"One expert alone, who lists nothing twice: nothing can be merged, and every "
            f"{known.noun} is an object of its own. There is no verdict on merging."
        )
    elif verdict.ok:
        advice.append(
            f"The run was long enough: R-hat is at most {verdict.max_rhat:.3f} and the smallest "
            f"effective sample size is {verdict.min_ess:.0f}."
        )
    if verdict.max_rhat > limits.rhat:
        worst = max(verdict.diagnostics, key=lambda d: d.rhat)
        advice.append(_rhat_sentence(worst, limits))
    if verdict.min_ess < limits.ess:
        worst = min(verdict.diagnostics, key=lambda d: d.ess)
        advice.append(
            f"The effective sample size of {worst.name} is {math.floor(worst.ess):,}; "
            f"it should be at least {limits.ess:.0f}."
        )
    return advice


def _pair_advice(verdict: Verdict, limits: Limits, several: bool, known: KnownOfRun) -> list[str]:
    """On the places of single items."""
    if not known.mergeable:
        return []
    advice = []
    if verdict.pairs_disagreeing:
        advice.append(_undecided_sentence(verdict, limits, known))
    if verdict.max_pair_rhat > SLOW_PAIR:
        stuck = np.isinf(verdict.max_pair_rhat)
        how = "never change within a chain" if stuck else "change slowly"
        rhat = "infinite" if stuck else f"up to {verdict.max_pair_rhat:.2f}"
        advice.append(
            f"Some pairs {how} (R-hat {rhat}): counts can be trusted before the place of every "
            f"single {known.noun} can."
        )
    if not several:
        advice.append(
            "With one chain the agreement between chains cannot be checked; run at least two."
        )
    return advice


def _parameter_advice(verdict: Verdict, limits: Limits, known: KnownOfRun) -> list[str]:
    """On what is behind the answers: nothing if all is well."""
    advice = []
    bad = [d for d in verdict.parameters if not good(d, limits)]
    if bad:
        worst = max(bad, key=lambda d: needed(d.rhat, d.ess, limits))
        rhat = "infinite" if np.isinf(worst.rhat) else f"{worst.rhat:.3f}"
        fine = " Counts, catalogue and memberships are good all the same." if verdict.ok else ""
        advice.append(
            f"{len(bad)} of {counted(len(verdict.parameters), 'parameter')} behind these answers "
            f"{'has' if len(bad) == 1 else 'have'} not converged; worst: {worst.name} (R-hat "
            f"{rhat}, effective sample size {worst.ess:.0f}).{fine} If you need the parameters, "
            f"{_how_long(needed(worst.rhat, worst.ess, limits), known)}."
        )
    if verdict.left_out and known.mergeable:
        advice.append(
            f"These data say nothing about {listed(verdict.left_out)}: left out of the verdict."
        )
    return advice


def _how_long(factor: float, known: KnownOfRun) -> str:
    if factor > MOST:
        return f"run more than {MOST} times longer"
    times = int(np.ceil(factor))
    if known.scans is None:
        return f"run {times} times longer"
    seconds = known.seconds or 0.0
    took = f"{seconds * times / 60.0:.0f} min" if seconds * times >= 120 else ""
    took = took or f"{max(seconds * times, 1.0):.0f} s"
    return f"run {times} times longer: {known.scans * times:,} scans of each chain, about {took}"


def _rhat_sentence(worst: Diagnostic, limits: Limits) -> str:
    if np.isinf(worst.rhat):
        return (
            f"The chains contradict each other on {worst.name}: each stays at one value, and not "
            "all at the same, so R-hat, which compares them, is infinite."
        )
    # Rounded up, since 1.01 that should be at most 1.01 would puzzle; so is what is too few below.
    rhat = math.ceil(1000.0 * worst.rhat) / 1000.0
    return f"R-hat of {worst.name} is {rhat:.3f}; it should be at most {limits.rhat}."


def _undecided_sentence(
    verdict: Verdict, limits: Limits, known: KnownOfRun, shown: int = 20
) -> str:
    names, noun = [known.called(row) for row in verdict.undecided], known.noun
    text = listed(names, shown)
    few = f" Of so many items {verdict.pairs_allowed:,} may." * verdict.chains_agree
    these = f"This {noun} is" if len(names) == 1 else f"These {counted(len(names), noun)} are"
    return (
        f"{these} undecided between chains: {text} "
        f"(pairs that differ by more than {limits.pair_difference}: {verdict.pairs_disagreeing}; "
        f"largest difference {verdict.max_pair_disagreement:.2f}).{few}"
    )


def longer(verdict: Verdict, limits: Limits) -> float:
    """How many times longer to run, from the rates at which each shortfall shrinks.

    With the length L, R-hat² - 1 falls as 1 / L, ESS grows as L, and a difference between
    chains falls as 1 / sqrt(L).
    """
    factor = needed(verdict.max_rhat, verdict.min_ess, limits)
    if not verdict.chains_agree:
        factor = max(factor, (verdict.max_pair_disagreement / limits.pair_difference) ** 2)
    return factor


def needed(rhat: float, ess: float, limits: Limits) -> float:
    """The same for one number; twice as long at least."""
    return max(2.0, (rhat**2 - 1.0) / (limits.rhat**2 - 1.0), limits.ess / ess)


def _longer(verdict: Verdict, limits: Limits) -> str:
    factor = longer(verdict, limits)
    if factor > MOST:
        return (
            f"Run at least {MOST} times longer, and look at the trace plots: "
            "where chains stay apart, a longer run will not help."
        )
    return f"Run {int(np.ceil(factor))} times longer."

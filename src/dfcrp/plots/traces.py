"""Figure: trace and rank plots of the numbers that a run is judged by."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dfcrp.plots.style import (
    GREY,
    VERMILION,
    WIDE,
    given_axes,
    line_styles,
    new_axes,
    plain,
    styled,
)
from dfcrp.posterior.posterior import Posterior
from dfcrp.settings.consensus import Least, in_words
from dfcrp.summaries.consensus import ConsensusCounts
from dfcrp.summaries.convergence import (
    Diagnostic,
    Limits,
    answer_series,
    diagnose,
    good,
    parameter_series,
)

#: Points of each chain that are drawn.
MAX_POINTS = 500
#: Of what else was learned, so many numbers are shown: those on which chains agree least.
MAX_LEARNED = 4
#: Of what failed and is not among these, so many numbers are shown beside them.
MAX_FAILED = 4
#: Seed that breaks ties between equal draws; a fixed one, so that figures can be made again.
TIES_SEED = 0


@dataclass(frozen=True)
class TraceTable:
    """Every draw of a few numbers, and where each chain's draws rank among all."""

    names: tuple[str, ...]
    #: (numbers, chains, draws)
    series: NDArray[np.float64]
    #: Share of a chain's draws in each bin of ranks, over what is expected: 1 if all is well.
    #: (numbers, chains, bins)
    ranks: NDArray[np.float64]
    #: R-hat and the smaller effective sample size of each.
    diagnostics: tuple[Diagnostic, ...] = ()


def rank_shares(series: NDArray[np.float64], bins: int) -> NDArray[np.float64]:
    """Histogram of each chain's ranks among all draws, relative to a flat one.

    Equal draws are ranked in random order: counts have few values, and any fixed rule would
    show as spikes.
    """
    flat = series.ravel()
    shuffled = np.random.default_rng(TIES_SEED).permutation(flat.size)
    ranks = np.empty(flat.size, np.int64)
    ranks[shuffled[np.argsort(flat[shuffled], kind="stable")]] = np.arange(flat.size)
    bin_of = (ranks * bins // flat.size).reshape(series.shape)
    expected = np.bincount(bin_of.ravel(), minlength=bins) / len(series)
    counts = np.array([np.bincount(row, minlength=bins) for row in bin_of])
    shares: NDArray[np.float64] = counts / expected
    return shares


def prepare_traces(
    posterior: Posterior,
    *,
    min_experts: Least | None = None,
    bins: int = 20,
    counts: ConsensusCounts | None = None,
    failed: bool = False,
) -> TraceTable:
    """The number of clusters, the number that at least ``min_experts`` share, and what else.

    Answers come first, then α and the other model parameters. ``counts`` saves counting the
    clusters a second time. With ``failed`` there is also what else the verdict finds too short.
    """
    wanted = posterior.config.summary.min_experts if min_experts is None else min_experts
    counts = posterior.consensus_counts((wanted,)) if counts is None else counts
    consensus = counts.counts[:, :, counts.min_experts.index(wanted), 0]
    numbers = {
        "number of clusters": posterior.n_clusters,
        f"clusters of {in_words(wanted)}": consensus,
        **learned(posterior, behind=False),
        posterior.quantity_words_at(())["α"]: posterior.alpha,
        **learned(posterior, behind=True),
    }
    if failed:
        numbers |= what_failed(posterior, set(numbers))
    # Some priors have no α, and draws of other programs come without.
    kept = {name: v for name, v in numbers.items() if np.isfinite(v).all()}
    series = np.array(list(kept.values()), np.float64)
    # Five draws of a chain to a bin, lest the figure show nothing but noise.
    bins = max(min(bins, series.shape[2] // 5), 1)
    ranks = np.array([rank_shares(values, bins) for values in series])
    judged = tuple(diagnose(name, values) for name, values in kept.items())
    return TraceTable(tuple(kept), series, ranks, judged)


def what_failed(posterior: Posterior, shown: set[str]) -> dict[str, NDArray[np.float64]]:
    """Of what the verdict is on and is not shown yet, what failed, worst first."""
    limits = Limits()
    words = posterior.quantity_words_at(posterior.draws.columns.judged)
    series = {
        words.get(name, name): values
        for name, values in (
            answer_series(posterior.draws, posterior.table_counts)
            | parameter_series(posterior.draws)
        ).items()
    }
    verdict = posterior.convergence
    bad = [d for d in (*verdict.diagnostics, *verdict.parameters) if not good(d, limits)]
    bad.sort(key=lambda found: (-np.nan_to_num(found.rhat, posinf=1e9), found.ess))
    # Totals are shown under another name.
    names = [found.name for found in bad if found.name in series and found.name not in shown]
    names = [name for name in names if not name.endswith(", all")]
    return {name: series[name] for name in names[:MAX_FAILED]}


def learned(posterior: Posterior, *, behind: bool) -> dict[str, NDArray[np.float64]]:
    """Of the other answers, or of the model parameters, those with the largest R-hat."""
    columns = posterior.draws.columns
    judged = columns.judged_of(behind=behind)
    words = posterior.quantity_words_at(judged)
    shared = posterior.draws.shared(judged)
    names = columns.names_at(judged)
    found = {words[name]: shared[:, :, k] for k, name in enumerate(names)}
    if len(found) > MAX_LEARNED:
        verdict = posterior.convergence
        known_of = verdict.parameters if behind else verdict.diagnostics
        rhat = {known.name: known.rhat for known in known_of}
        worst = sorted(found, key=lambda name: -np.nan_to_num(rhat.get(name, 0.0)))[:MAX_LEARNED]
        found = {name: values for name, values in found.items() if name in worst}
    return found


def draw_traces(table: TraceTable, axes: Any = None) -> list[Any]:
    """A row for each number: its course on the left, its ranks on the right."""
    count = len(table.names)
    with styled():
        if axes is None:
            axes = new_axes(WIDE, 1.45 * count + 0.3, count, 2, width_ratios=(2.2, 1.0))
        panels = given_axes(axes, 2 * count)
        for k in range(count):
            _draw_trace(panels[2 * k], table, k)
            _draw_ranks(panels[2 * k + 1], table, k)
        panels[2 * count - 2].set_xlabel("draw after burn-in")
        panels[2 * count - 1].set_xlabel("rank among all draws (share)")
    return panels[: 2 * count]


def _draw_trace(ax: Any, table: TraceTable, k: int) -> None:
    n_chains, n_draws = table.series.shape[1:]
    step = -(-n_draws // MAX_POINTS)
    places = np.arange(0, n_draws, step)
    for chain, style in enumerate(line_styles(n_chains)):
        ax.plot(
            places,
            table.series[k, chain, ::step],
            linewidth=0.5,
            alpha=0.8,
            marker="." if len(places) == 1 else None,
            **style,
        )
    ax.set_title(plain(table.names[k], 60))
    if table.diagnostics:
        _say_whether_good(ax, table.diagnostics[k])
    ax.margins(x=0.01)
    ax.xaxis.get_major_locator().set_params(integer=True)
    if (table.series[k] == np.rint(table.series[k])).all():
        ax.yaxis.get_major_locator().set_params(integer=True)


def _say_whether_good(ax: Any, found: Diagnostic) -> None:
    """R-hat and effective sample size at the right, in colour and in words where they fail."""
    reached = good(found, Limits())
    words = f"R-hat {found.rhat:.3f}, ESS {found.ess:,.0f}" + ("" if reached else ": not yet good")
    colour = GREY if reached else VERMILION
    ax.set_title(words, loc="right", fontsize=7.0, color=colour)


def _draw_ranks(ax: Any, table: TraceTable, k: int) -> None:
    bins = table.ranks.shape[2]
    edges = np.linspace(0.0, 1.0, bins + 1)
    ax.axhline(1.0, color=GREY, linewidth=0.8, zorder=0)
    for shares, style in zip(table.ranks[k], line_styles(table.ranks.shape[1]), strict=True):
        ax.stairs(shares, edges, baseline=None, linewidth=0.9, **style)
    ax.set_ylim(0.0, max(2.0, 1.05 * float(table.ranks[k].max())))
    ax.set_xlim(0.0, 1.0)
    if k == 0:
        ax.set_title("ranks: flat at 1 is good")


def plot_traces(
    posterior: Posterior, axes: Any = None, **options: Any
) -> tuple[TraceTable, list[Any]]:
    """Prepare with ``options`` and draw."""
    table = prepare_traces(posterior, **options)
    return table, draw_traces(table, axes)

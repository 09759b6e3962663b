"""Is the sampler calibrated? Geweke's joint test and simulation-based calibration.

Both rest on the joint distribution of (α, c, θ, y), from which independent draws are easy.

*Geweke*: a chain that alternates scans of the sampler with fresh data y | c, θ has this joint
as its stationary distribution. Means and second moments of (α, c, θ) along the chain must equal
those of independent draws from the prior.

*Calibration*: for data simulated from a prior draw, that draw is exchangeable with the posterior
draws; its rank among them is uniform, for any function of it and the data.

Run it by ``./run python -m studies.calibration --out FILE.json`` (several minutes).
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from dfcrp import prior
from dfcrp.likelihoods.bias import with_bias
from dfcrp.likelihoods.circle.kernel import BETA, VAR_POSITION, WIDTH, with_law, without_law
from dfcrp.likelihoods.circle.neighbours import find_neighbours
from dfcrp.likelihoods.circle.plane import CircleHyper
from dfcrp.likelihoods.circle.scatter import AXES, circle_columns
from dfcrp.likelihoods.differences import bias_columns
from dfcrp.moves.assignment import refresh_spares
from dfcrp.neighbours.neighbourhood import Neighbourhood
from dfcrp.priors.arrivals.kernel import Arrivals
from dfcrp.sampling.chain import Chain
from dfcrp.sampling.problem import Problem, build_data
from studies.calibration_experts import (
    as_if_alike,
    as_marked,
    draw_experts,
    expert_quantities,
)

Floats = NDArray[np.float64]
#: Changes the problem that the sampler sees: a planted bug, to show that a test can fail.
Mistake = Callable[[Problem], Problem]

#: Base measure and clusters of comparable width, so that the partition stays in doubt; variances
#: that depend steeply on the log diameter, so that the coupling of Σ and μ matters.
HYPER = CircleHyper(
    kappa_x=0.12,
    eta_x=2.0,
    tau_x=8.0,
    kappa_d=0.02,
    eta_d=1.5,
    tau_d=25.0,
    lambda_a=3.0,
    lambda_b=2.0,
    mu0_x=0.5,
    mu0_y=-0.5,
    mu0_l=3.0,
    var0_x=12.0,
    var0_y=8.0,
    var0_l=0.6,
    floor=1.0,
    **without_law(),
)
#: The same with a law that is learned.
LEARNED = HYPER._replace(
    **with_law(
        (2.5, 4.0), 3.0, np.array((0.3, 0.8, -2.5, -0.4)), np.array((0.7, 0.6, 0.5, 0.6)), n=10
    )
)
#: The same with experts who differ, by a known spread.
FAMILIES = (0, 0, 0, 1, 1, 1, 2, 2, 3, 3)
_PLACE = 0.05 * float(np.exp(LEARNED.level))
UNLIKE = with_bias(LEARNED, "both", np.array(FAMILIES), np.array([_PLACE, _PLACE, 0.3]), 0.5)
LAW_NAMES = ("scale_x", "growth_x", "scale_d", "growth_d")
#: Probability of a false alarm, in each of the two tests as a whole.
FALSE_ALARM_RATE = 1e-4


class Effort(NamedTuple):
    """How long a sampler must run to give nearly independent draws, and its share of the steps."""

    scans: int
    thin: int
    burn_in: int
    share: int


#: Ranks are uniform only if the posterior draws are nearly independent. The paper's small steps
#: in log α leave an autocorrelation of 0.5 after 40 scans and of 0.00 after 300.
EFFORT = {
    "exact": Effort(2, 12, 200, 1),
    "paper": Effort(4, 300, 1000, 6),
    "exact, learned tolerances": Effort(8, 96, 400, 4),
    "exact, experts who differ": Effort(8, 96, 400, 4),
}
HYPERS = {"exact, learned tolerances": LEARNED, "exact, experts who differ": UNLIKE}


@dataclass(frozen=True)
class Design:
    """A small problem to be calibrated on."""

    families: tuple[int, ...] = FAMILIES
    hyper: CircleHyper = HYPER
    alpha_shape: float = 3.0
    alpha_rate: float = 1.5

    @property
    def prior(self) -> Arrivals:
        """The DFCRP with this design's prior of α."""
        return Arrivals(True, True, self.alpha_shape, self.alpha_rate, np.empty(0))


class Draw(NamedTuple):
    """One draw of everything; parameters (μx, μy, μl, a, d, cov) by marking."""

    alpha: float
    labels: NDArray[Any]
    parameters: Floats
    law: Floats


def variance_means(hyper: CircleHyper, law: Floats, log_diameter: Any) -> tuple[Any, Any]:
    """Prior means of a and d."""
    if hyper.learned:
        away = log_diameter - hyper.level
        return np.exp(law[0] + law[1] * away), np.exp(law[2] + law[3] * away)
    held = np.maximum(log_diameter, hyper.floor)
    return hyper.kappa_x * held**hyper.eta_x, hyper.kappa_d * held**hyper.eta_d


def draw_prior(rng: np.random.Generator, design: Design) -> Draw:
    """An independent draw of (α, c, θ)."""
    hyper, n = design.hyper, len(design.families)
    alpha = float(rng.gamma(design.alpha_shape) / design.alpha_rate)
    labels = prior.sample(design.families, alpha, 1, rng)[0]
    mean = np.array([hyper.mu0_x, hyper.mu0_y, hyper.mu0_l])
    mu = mean + np.sqrt([hyper.var0_x, hyper.var0_y, hyper.var0_l]) * rng.standard_normal((n, 3))
    law = np.array(hyper.law_mean) + hyper.law_sd * rng.standard_normal(4)
    mean_a, mean_d = variance_means(hyper, law, mu[:, 2])
    shape_a = hyper.nu_x if hyper.learned else hyper.tau_x * mean_a
    shape_d = hyper.nu_d if hyper.learned else hyper.tau_d * mean_d
    a = rng.standard_gamma(shape_a, n) * mean_a / shape_a
    d = rng.standard_gamma(shape_d, n) * mean_d / shape_d
    lam = 2.0 * rng.beta(hyper.lambda_a, hyper.lambda_b, n) - 1.0
    by_cluster = np.column_stack([mu, a, d, lam * np.sqrt(a * d / 2.0)])
    if hyper.bias.on:
        law = np.concatenate([law, draw_experts(rng, hyper.bias)])
    return Draw(alpha, labels, by_cluster[labels], law)


def draw_features(rng: np.random.Generator, draw: Draw, hyper: CircleHyper) -> Floats:
    """y | θ, one for each row."""
    parameters = draw.parameters
    a, d, covariance = parameters[:, 3], parameters[:, 4], parameters[:, 5]
    across = np.sqrt(a)[:, None] * rng.standard_normal((len(a), 2))
    rest = np.sqrt(d - 2.0 * covariance**2 / a) * rng.standard_normal(len(a))
    along = covariance / a * across.sum(axis=1) + rest
    alike = np.asarray(parameters[:, :3] + np.column_stack([across, along]))
    return as_marked(hyper.bias, draw.law, parameters[:, :3], alike)


def log_likelihood(draw: Draw, features: Floats, hyper: CircleHyper) -> float:
    """log p(y | c, θ)."""
    parameters = draw.parameters
    a, d, covariance = parameters[:, 3], parameters[:, 4], parameters[:, 5]
    alike, shrunk = as_if_alike(hyper.bias, draw.law, parameters[:, :3], features)
    v = alike - parameters[:, :3]
    s = d - 2.0 * covariance**2 / a
    z = v[:, 2] - covariance / a * (v[:, 0] + v[:, 1])
    squares = (v[:, 0] ** 2 + v[:, 1] ** 2) / a + z**2 / s
    terms = squares + 2.0 * np.log(a) + np.log(s) + 3 * math.log(2 * math.pi)
    return float(-0.5 * np.sum(terms)) + shrunk


def quantities(draw: Draw, hyper: CircleHyper) -> dict[str, float]:
    """Functions of a draw; the cluster in question is that of the first marking."""
    labels, first, last = draw.labels, draw.parameters[0], len(draw.labels) - 1
    mean_a, mean_d = variance_means(hyper, draw.law, first[2])
    sizes = np.unique(labels, return_counts=True)[1]
    learned = dict(zip(LAW_NAMES, draw.law[:4].tolist(), strict=True)) if hyper.learned else {}
    return {
        **learned,
        **expert_quantities(hyper.bias, draw.law),
        "log_alpha": math.log(draw.alpha),
        "clusters": float(len(sizes)),
        "pairs_together": float((sizes * (sizes - 1) / 2).sum()),
        "first_with_last": float(labels[0] == labels[last]),
        "first_with_middle": float(labels[0] == labels[last // 2]),
        "mu_x": float(first[0]),
        "mu_log_diameter": float(first[2]),
        "log_var_position": math.log(first[3]),
        "log_var_size": math.log(first[4]),
        # Relative to their prior means at the cluster's size: the coupling of Σ and μ.
        "var_position_ratio": math.log(first[3] / mean_a),
        "var_size_ratio": math.log(first[4] / mean_d),
        "correlation": float(first[5] / math.sqrt(first[3] * first[4] / 2.0)),
    }


def everyone_in_touch(families: tuple[int, ...]) -> Neighbourhood:
    """Rivals and contacts that do not depend on the data, which Geweke's test changes."""
    n = len(families)
    listed = list(combinations(range(n), 2))
    rivals = [(i, j) for i, j in listed if families[i] == families[j]]
    contacts = [(i, j) for i, j in listed if families[i] != families[j]]
    return Neighbourhood(
        bounded=False,
        pairs=np.empty((0, 2), dtype=np.int64),
        rivals=np.array(rivals, dtype=np.int64).reshape(-1, 2),
        contacts=np.array(contacts, dtype=np.int64).reshape(-1, 2),
        component=np.zeros(n, dtype=np.int64),
        numbering=np.arange(n),
    )


def _problem(design: Design, features: Floats, neighbourhood: Neighbourhood) -> Problem:
    data = build_data(features, np.array(design.families, dtype=np.int64), neighbourhood)
    columns = circle_columns(design.hyper)
    if design.hyper.bias.on:
        names = [str(f) for f in sorted(set(design.families))]
        columns = columns.joined(bias_columns(design.hyper.bias, names, AXES))
    start = design.alpha_shape / design.alpha_rate
    return Problem(data, design.hyper, design.prior, start, WIDTH, columns)


def _current(chain: Chain) -> Draw:
    """The chain's state; internal and input numbers agree where this is used."""
    state = chain.state
    rows = state.theta[state.label]
    covariance = rows[:, BETA] * rows[:, VAR_POSITION]
    return Draw(
        float(state.alpha[0]),
        state.label,
        np.column_stack([rows[:, :5], covariance]),
        state.law.copy(),
    )


def geweke(
    design: Design,
    steps: int,
    seed: int,
    *,
    sampler: str = "exact",
    scans: int = 2,
    mistake: Mistake | None = None,
) -> dict[str, Any]:
    """Compare ``steps`` of the chain over (α, c, θ, y) with as many independent prior draws."""
    rng = np.random.default_rng([seed, 1])
    independent = [quantities(draw_prior(rng, design), design.hyper) for _ in range(steps)]
    start = draw_prior(rng, design)
    features = draw_features(rng, start, design.hyper)
    problem = _problem(design, features, everyone_in_touch(design.families))
    problem = mistake(problem) if mistake else problem
    chain = Chain(problem, np.random.SeedSequence([seed, 2]), sampler)
    data = chain.problem.data
    burn_in = max(200, steps // 50)
    successive = []
    for step in range(burn_in + steps):
        chain.run(1, scans)
        now = _current(chain)
        data.features[:] = draw_features(rng, now, design.hyper)
        # Spares are drawn given y, so new data need new ones.
        refresh_spares(chain.rng, data, chain.hyper, chain.state, 0, len(data.family), 1)
        if step >= burn_in:
            successive.append(quantities(now, design.hyper))
    return compare_moments(independent, successive)


def compare_moments(
    independent: list[dict[str, float]], successive: list[dict[str, float]]
) -> dict[str, Any]:
    """z scores of first and second moments; standard errors of the chain by 100 batch means."""
    batches = 100
    found: dict[str, Any] = {}
    for name in independent[0]:
        one = np.array([row[name] for row in independent])
        two = np.array([row[name] for row in successive])
        if np.array_equal(np.unique(one), np.unique(two)) and np.ptp(one) == 0.0:
            # It is held, and has no moments to compare.
            continue
        centre = one.mean()
        for power in (1, 2):
            # An indicator is its own square.
            if power == 2 and set(np.unique(one)) <= {0.0, 1.0}:
                continue
            a, b = (one - centre * (power - 1)) ** power, (two - centre * (power - 1)) ** power
            means = b[: len(b) // batches * batches].reshape(batches, -1).mean(axis=1)
            error = math.sqrt(a.var() / len(a) + means.var(ddof=1) / batches)
            z = float((b.mean() - a.mean()) / error)
            found[name if power == 1 else f"{name}, squared"] = {
                "independent": float(a.mean()),
                "successive": float(b.mean()),
                "z": z,
                "p": float(2.0 * stats.t.sf(abs(z), batches - 1)),
            }
    return verdict(found)


def calibrate(
    design: Design,
    replicates: int,
    seed: int,
    *,
    sampler: str = "exact",
    draws: int = 31,
    thin: int = 12,
    burn_in: int = 200,
    mistake: Mistake | None = None,
) -> dict[str, Any]:
    """Ranks of the truth among posterior draws, over simulated data sets."""
    ranks: dict[str, list[int]] = {}
    for replicate in range(replicates):
        rng = np.random.default_rng([seed, 3, replicate])
        truth = draw_prior(rng, design)
        features = draw_features(rng, truth, design.hyper)
        families = np.array(design.families, dtype=np.int64)
        problem = _problem(
            design, features, find_neighbours(features, families, None, design.hyper)
        )
        problem = mistake(problem) if mistake else problem
        chain = Chain(problem, np.random.SeedSequence([seed, 4, replicate]), sampler)
        chain.run(1, burn_in)
        posterior = [
            _with_fit(draw, features, design.hyper) for draw in _posterior_draws(chain, draws, thin)
        ]
        for name, value in _with_fit(truth, features, design.hyper).items():
            others = np.array([row[name] for row in posterior])
            ranks.setdefault(name, []).append(rank_among(rng, others, value))
    return verdict({name: uniformity(np.array(r), draws) for name, r in ranks.items()})


def _with_fit(draw: Draw, features: Floats, hyper: CircleHyper) -> dict[str, float]:
    return {
        **quantities(draw, hyper),
        "log_likelihood": log_likelihood(draw, features, hyper),
    }


def _posterior_draws(chain: Chain, draws: int, thin: int) -> list[Draw]:
    """Draws as they would be stored, back in rows by marking."""
    block = chain.run(draws, thin)
    found = []
    for row in range(draws):
        part = slice(block.offsets[row], block.offsets[row + 1])
        place = np.searchsorted(block.cluster_labels[part], block.labels[row])
        parameters = block.parameters[part].astype(np.float64)[place]
        alpha = float(block.alpha[row])
        found.append(Draw(alpha, block.labels[row], parameters, block.shared[row]))
    return found


def rank_among(rng: np.random.Generator, others: Floats, value: float) -> int:
    """How many are smaller; ties are broken at random."""
    below, equal = int((others < value).sum()), int((others == value).sum())
    return below + int(rng.integers(equal + 1))


def uniformity(ranks: NDArray[np.int64], draws: int) -> dict[str, Any]:
    """Chi-square of the ranks 0..draws in bins of four."""
    counts = np.bincount(ranks // 4, minlength=(draws + 1) // 4)
    mean = ranks.mean() / draws
    return {
        "counts": counts.tolist(),
        "mean_rank": float(mean),
        "p": float(stats.chisquare(counts).pvalue),
    }


def verdict(found: dict[str, Any]) -> dict[str, Any]:
    """Whether the smallest p value is one that chance brings about, given how many there are."""
    smallest = min(entry["p"] for entry in found.values())
    return {
        "tests": len(found),
        "smallest_p": smallest,
        "false_alarm_rate": FALSE_ALARM_RATE,
        "ok": bool(smallest > FALSE_ALARM_RATE / len(found)),
        "results": found,
    }


def _listed(hyper: CircleHyper) -> dict[str, Any]:
    numbers = {**hyper._asdict(), "law": hyper.law.tolist()}
    del numbers["bias"]
    return numbers


def main(arguments: list[str] | None = None) -> None:
    """Run both tests for each sampler and write the outcome."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--out", type=Path, required=True, help="where to write the JSON file")
    parser.add_argument("--steps", type=int, default=120_000, help="steps of Geweke's test")
    parser.add_argument("--replicates", type=int, default=6_000, help="simulated data sets")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    design = Design()
    outcome: dict[str, Any] = {
        "families": list(design.families),
        "hyperparameters": _listed(HYPER),
        "learned_tolerances": _listed(LEARNED),
        "experts_who_differ": {
            "offset_sd": UNLIKE.bias.offset_sd,
            "noise_sd": UNLIKE.bias.noise_sd,
        },
        "alpha_prior": [design.alpha_shape, design.alpha_rate],
        "seed": options.seed,
        "steps": options.steps,
        "replicates": options.replicates,
    }
    for case, effort in EFFORT.items():
        begun = time.perf_counter()
        sampler = case.split(",")[0]
        design = Design(hyper=HYPERS.get(case, HYPER))
        outcome[case] = {
            "geweke": geweke(
                design,
                options.steps // effort.share,
                options.seed,
                sampler=sampler,
                scans=effort.scans,
            ),
            "calibration": calibrate(
                design,
                options.replicates // effort.share,
                options.seed,
                sampler=sampler,
                thin=effort.thin,
                burn_in=effort.burn_in,
            ),
        }
        outcome[case]["seconds"] = round(time.perf_counter() - begun, 1)
        for test in ("geweke", "calibration"):
            part = outcome[case][test]
            print(f"{case} {test}: smallest p {part['smallest_p']:.2g} of {part['tests']}")
    text = json.dumps(outcome, indent=1, default=np.ndarray.tolist)
    options.out.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

"""A small problem for every likelihood with every prior, made for the kernels by hand.

    NUMBA_DISABLE_JIT=1 python every_kernel.py [--all]

runs chains as plain Python and prints JSON: what went wrong in which, and the draws of one of them,
to be compared with those of the compiled code. Without ``--all`` every likelihood and every prior
with each of its samplers is run, but not each with each.
"""

from __future__ import annotations

import json
import sys
import traceback
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from dfcrp.draws import Columns
from dfcrp.likelihoods.bias import with_bias
from dfcrp.likelihoods.circle import kernel as circle
from dfcrp.likelihoods.circle import sphere
from dfcrp.likelihoods.normal import covariance
from dfcrp.likelihoods.normal import kernel as normal
from dfcrp.likelihoods.record import kernel as record
from dfcrp.priors.arrivals.kernel import Arrivals
from dfcrp.priors.attraction.kernel import Attraction, room_for_walks
from dfcrp.sampling.chain import Chain
from dfcrp.sampling.problem import Problem
from reference import small_problems as small
from reference.detection_reference import make_prior

FAMILIES = [0, 0, 1, 1, 2, 2]
#: The first two lists are one person's.
PERSONS = np.array([0, 0, 1])
#: Markings of two objects; those of the last list are so close to the others', and so far from each
#: other, that proposals are all but certain.
PLACES = np.array([[0.0, 0.1], [40.0, 0.5], [0.3, -0.2], [40.3, 0.3], [0.2, 0.1], [40.1, 0.2]])
SIZES = np.array([1.0, 1.3, 0.9, 1.2, 1.1, 1.3])
#: Until well after the scan in which extra visits begin.
DRAWS, THIN, PAPER_SCANS = 2, 55, 3
SPHERE = sphere.SphereHyper(
    kappa_x=1.0, eta_x=1.0, tau_x=1.0, kappa_d=1.0, eta_d=1.0, tau_d=1.0, lambda_a=1.0,
    lambda_b=1.0, mu0_l=1.0, var0_l=0.3, floor=0.3, radius=60.0, unit=1.0,
    **circle.with_law(
        (3.0, 4.0), 1.0, np.array([-1.0, 0.5, -2.5, -0.4]), np.array([0.4, 0.4, 0.5, 0.5]), n=64
    ),
)  # fmt: skip


def normal_hyper(groups: list[int], size: list[int]) -> normal.NormalHyper:
    """Features in groups of so many, errors of some growing with others."""
    start = np.cumsum([0, *groups])
    growing = [g for g in range(len(groups)) if size[start[g]] >= 0]
    growth = np.full(len(groups), -1)
    growth[growing] = len(groups) + np.arange(len(growing))
    law = np.array([-1.0] * len(groups) + [1.0] * len(growing))
    features = len(size)
    return normal.NormalHyper(
        centre=np.zeros(features),
        spread=np.full(features, 15.0),
        start=start,
        size=np.array(size),
        level=np.zeros(features),
        growth=growth,
        shape=2.5,
        law=law,
        law_mean=law.copy(),
        law_sd=np.full(len(law), 0.7),
    )


def covariance_hyper(features: int) -> covariance.CovarianceHyper:
    law = np.full(covariance.law_width(features), -0.5)
    return covariance.CovarianceHyper(
        features=features,
        shape=2.5,
        log_volume=8.0,
        law=law,
        law_mean=law.copy(),
        law_sd=np.full(len(law), 0.5),
    )


def record_hyper() -> record.RecordHyper:
    """Text of three values, two of them similar; a category of two; a number."""
    law = np.array([-3.0, -3.0, -3.0, -2.0, -1.0, -0.5])
    found = record.RecordHyper(
        kind=np.array([record.SIMILAR, record.SAME_OR_NOT, record.MEASURE]),
        first=np.array([0, 3, 5, 7]),
        share=np.array([0.3, 0.3, 0.4, 0.5, 0.5, 0.3, 0.3]),
        similar_start=np.array([0, 1, 2, 2, 2, 2, 2, 2]),
        similar=np.array([1, 0], np.int32),
        altered=np.array([1.4, 1.4]),
        both_altered=np.array([0.4, 0.4]),
        place=np.column_stack([np.arange(7.0), np.zeros((7, 2))]),
        log_density=np.full(7, -2.0),
        dimensions=np.array([0.0, 0.0, 1.0]),
        rounding=np.array([0.0, 0.0, 0.1]),
        alike_start=np.array([0, 1, 2, 3, 4, 4, 4]),
        alike=np.array([2, 3, 0, 1], np.int32),
        excess=np.array([0.7, 0.2, 0.7, 0.2]),
        values=np.array(
            [[0, 0, 0], [2, 1, 1], [1, 0, 0], [2, 1, -1], [0, -1, 1], [2, 1, 0]], np.int32
        ),
        source=np.zeros(6, np.int32),
        most=np.array([3]),
        entry=np.array([[0, 1, 2], [3, -1, 4], [-1, -1, 5]]),
        own=np.full((3, 3, 1), -1),
        about=np.array([0, 1, 2, 0, 2, 2]),
        law=law,
        law_mean=law.copy(),
        law_sd=np.full(6, 1.0),
        noted=np.empty((0, 0, 0)),
        rates=np.empty((0, 0, 0)),
        facts=np.empty((0, 0)),
    )
    return record.with_room(found)


def _on_sphere() -> np.ndarray:
    """(X, Y, log size, Z) of the places as angles."""
    turn, rise = PLACES.T / SPHERE.radius
    x, y, z = np.cos(rise) * np.cos(turn), np.cos(rise) * np.sin(turn), np.sin(rise)
    return np.column_stack([SPHERE.radius * x, SPHERE.radius * y, SIZES, SPHERE.radius * z])


def _unlike(hyper: Any, axes: int) -> Any:
    """The same of experts who differ."""
    return with_bias(hyper, "both", np.array(FAMILIES), np.full(axes, 0.5), 0.5)


def _named(what: str, count: int) -> tuple[str, ...]:
    return tuple(f"{what}{number}" for number in range(count))


def columns_for(stored: int, law: int, own: int = 0) -> Columns:
    """Columns with names that mean nothing."""
    return Columns.plain(_named("p", stored), (*_named("law", law), *_named("own", own)))


def likelihoods() -> dict[str, tuple[Any, np.ndarray, int, int]]:
    """Hyperparameters, features, width of a row, and numbers that are stored for a cluster."""
    boxes = np.column_stack([PLACES, SIZES, 0.8 * SIZES])
    codes = record_hyper().values
    return {
        "circles": (small.LEARNED, np.column_stack([PLACES, SIZES]), circle.WIDTH, 6),
        "circles, experts": (
            small.biased(FAMILIES),
            np.column_stack([PLACES, SIZES]),
            circle.WIDTH,
            6,
        ),
        "sphere": (SPHERE, _on_sphere(), sphere.WIDTH, 8),
        "sphere, experts": (_unlike(SPHERE, 3), _on_sphere(), sphere.WIDTH, 8),
        "points": (normal_hyper([2], [-1, -1]), PLACES, normal.row_width(2, 1), 5),
        "boxes": (normal_hyper([2, 2], [2, 3, -1, -1]), boxes, normal.row_width(4, 2), 10),
        "boxes, experts": (
            _unlike(normal_hyper([2, 2], [2, 3, -1, -1]), 4),
            boxes,
            normal.row_width(4, 2),
            10,
        ),
        "normal": (covariance_hyper(3), boxes[:, :3], covariance.row_width(3), 9),
        "normal, experts": (
            _unlike(covariance_hyper(3), 3),
            boxes[:, :3],
            covariance.row_width(3),
            9,
        ),
        "records": (
            record_hyper(),
            np.column_stack([codes, np.arange(len(codes))]),
            record.row_width(3, True),
            1,
        ),
    }


def priors() -> dict[str, Any]:
    """Every prior, by name; ``crp`` has every item as a family of its own."""
    return {
        "dfcrp": Arrivals(True, True, 2.0, 1.0, np.empty(0)),
        "constrained": Arrivals(False, True, 2.0, 1.0, np.empty(0)),
        "crp": Arrivals(False, True, 2.0, 1.0, np.empty(0)),
        "attraction": Attraction(
            person=PERSONS.astype(np.int32),
            learned=True,
            strength_sd=1.0,
            alpha_shape=2.0,
            alpha_rate=1.0,
            own=np.zeros(1),
            strong=np.ones(1),
            arrived=room_for_walks(len(FAMILIES), PERSONS),
        ),
        "detection": make_prior(FAMILIES, PERSONS),
    }


def problem_of(kind: str, prior: str, *, neighbours: bool) -> Problem:
    """``neighbours``: with lists of those who may share a cluster, who are all."""
    hyper, features, width, stored = likelihoods()[kind]
    families = list(range(len(FAMILIES))) if prior == "crp" else FAMILIES
    everyone = [[True] * len(families)] * len(families) if neighbours else None
    made = small.make_problem(families, features, allowed=everyone)
    chosen = priors()[prior]
    return replace(
        made,
        hyper=hyper,
        prior=chosen,
        row_width=width,
        columns=columns_for(stored, len(hyper.law), len(chosen.own)),
    )


def combinations() -> list[tuple[str, str, str]]:
    """Likelihood, prior and sampler; the paper's samplers are about arrivals."""
    found = []
    for kind in likelihoods():
        for prior, made in priors().items():
            samplers = ["exact"]
            if isinstance(made, Arrivals):
                samplers.append("paper")
            if prior == "dfcrp":
                samplers.append("unmodified")
            found += [(kind, prior, sampler) for sampler in samplers]
    return found


def some_combinations() -> list[tuple[str, str, str]]:
    """So many that no likelihood is left out, and no prior with any of its samplers."""
    kinds = list(likelihoods())
    ways = list(dict.fromkeys((prior, sampler) for _, prior, sampler in combinations()))
    count = max(len(kinds), len(ways))
    return [(kinds[at % len(kinds)], *ways[at % len(ways)]) for at in range(count)]


def draws_of(kind: str, prior: str, sampler: str) -> dict[str, list[Any]]:
    """A few draws of one chain."""
    problem = problem_of(kind, prior, neighbours=sampler == "exact")
    chain = Chain(problem, np.random.SeedSequence(7), sampler)
    block = chain.run(DRAWS, THIN) if sampler == "exact" else chain.run(1, PAPER_SCANS)
    small.assert_consistent(problem.data, chain.state)
    assert np.isfinite(block.parameters).all()
    # A shape of false marks that is held is infinite.
    assert not np.isnan(block.shared).any()
    return {name: np.asarray(values).tolist() for name, values in block._asdict().items()}


def main() -> None:
    """Errors by combination, and the draws of one."""
    warnings.simplefilter("error")
    errors = {}
    chosen = combinations() if "--all" in sys.argv else some_combinations()
    for combination in chosen:
        try:
            draws_of(*combination)
        except Exception:
            errors[" × ".join(combination)] = traceback.format_exc()
    print(json.dumps({"errors": errors, "draws": draws_of("circles", "dfcrp", "exact")}))


if __name__ == "__main__":
    main()

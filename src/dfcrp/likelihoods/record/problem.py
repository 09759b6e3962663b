"""A problem of records: candidates come from keys, not from distances."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dfcrp.draws import Columns
from dfcrp.items.records import Records
from dfcrp.likelihoods.record import kernel
from dfcrp.likelihoods.record.hyper import log_bayes_factors, records_hyper
from dfcrp.neighbours.plane import Neighbourhood, components_of
from dfcrp.priors.arrivals.kernel import Arrivals
from dfcrp.sampling.problem import Problem, build_data
from dfcrp.settings.config import Config

#: Candidates that are this much less likely (log scale) to be one object than two are left out.
HOPELESS = -10.0
#: Two records of one source compete if they are more likely one object than two; two of different
#: sources are in contact if it is not quite sure either way.
CONTACT = 15.0
#: Members of a cluster where no rule bounds them.
MOST_MEMBERS = 64


def make_record_problem(
    records: Records, families: NDArray[np.int64], config: Config, prior: Arrivals
) -> Problem:
    """Lay out records for the kernels.

    Most records are of objects that few sources list, so α goes with the number of records: its
    prior's rate counts for a hundred of them.
    """
    prior = prior._replace(alpha_rate=100.0 * prior.alpha_rate / len(records))
    hyper = records_hyper(config.model, records)
    factors = log_bayes_factors(hyper, records, records.candidates)
    kept = factors > HOPELESS
    pairs, factors = records.candidates[kept], factors[kept]
    relatives = families[pairs[:, 0]] == families[pairs[:, 1]]
    component = components_of(pairs, len(records), True)
    neighbourhood = Neighbourhood(
        bounded=True,
        pairs=pairs,
        rivals=pairs[relatives & (factors > 0.0)],
        contacts=pairs[~relatives & (np.abs(factors) < CONTACT)],
        component=component,
        numbering=_number_by_component(component),
    )
    most = min(len(np.unique(families)), MOST_MEMBERS, len(records))
    return Problem(
        data=build_data(records.features, families, neighbourhood),
        hyper=hyper,
        prior=prior,
        alpha_start=prior.alpha_shape / prior.alpha_rate,
        row_width=kernel.FIRST + most,
        likelihood_columns=Columns(
            ("members",),
            (
                *(f"miss_{name}" for name in records.fields),
                *(f"slip_{name}" for name in records.fields),
            ),
        ),
    )


def _number_by_component(component: NDArray[np.int64]) -> NDArray[np.int64]:
    """Internal numbers: components one after the other."""
    order = np.argsort(component, kind="stable")
    numbering = np.empty(len(order), dtype=np.int64)
    numbering[order] = np.arange(len(order))
    return numbering

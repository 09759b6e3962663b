"""The clock of the candidate search starts again without a trace."""

import numpy as np
import pytest

from dfcrp.moves.assignment import LAST_TICK, TICK
from dfcrp.sampling.chain import Chain
from dfcrp.settings.config import make_config
from dfcrp.simulate import paper_design
from studies.problems import make_problem


@pytest.mark.parametrize("calls_left", [0, 1, 1000])
def test_draws_do_not_depend_on_the_clock(calls_left):
    markings = paper_design(3)
    config = make_config({"run": {"preset": "simulation", "radius": 60.0}})
    problem = make_problem(markings.features, markings.families, config)

    def labels(clock):
        chain = Chain(problem, np.random.SeedSequence(5), "exact")
        scratch = chain._scratch[0]
        getattr(scratch, "value", scratch).clock[0] = clock
        return chain.run(12, 1).labels

    np.testing.assert_array_equal(labels(LAST_TICK - calls_left * TICK), labels(0))

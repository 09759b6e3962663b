"""Random problems in random states, for the comparison of kernels with their twins."""

from __future__ import annotations

import numpy as np

from dfcrp.likelihoods.circle import kernel as circle
from dfcrp.likelihoods.circle.neighbours import find_neighbours
from dfcrp.likelihoods.circle.scatter import circle_columns
from dfcrp.priors import tail
from dfcrp.priors.arrivals import order
from dfcrp.priors.arrivals.kernel import Arrivals
from dfcrp.sampling.problem import Problem, build_data, new_scratch
from reference import kernel_reference as reference
from reference import small_problems as small


class Case:
    """A random problem in a random state; everything is in the kernels' own numbering."""

    def __init__(self, seed: int, radius: float | None):
        rng = self.rng = np.random.default_rng([seed, 71])
        n = int(rng.integers(2, 13))
        # Every second case has tolerances to be learned.
        law = small.LEARNED if seed % 2 else small.HYPER
        hyper = self.hyper = law._replace(
            kappa_x=1.0,
            eta_x=rng.uniform(-0.5, 1.0),
            lambda_a=rng.uniform(1, 4),
            floor=rng.choice([0.5, 3.0]),
        )
        given = rng.integers(0, rng.integers(1, n + 1), size=n)
        given[rng.integers(n)] = given.max() + 1
        features = rng.normal([0.5, -0.5, 3.0], [1.5, 1.5, 0.8], size=(n, 3))
        neighbourhood = find_neighbours(features, given, radius, hyper)
        data = build_data(features, given, neighbourhood)
        self.prior = Arrivals(True, True, 2.0, 0.5, np.empty(0))
        columns = circle_columns(hyper)
        self.problem = Problem(data, hyper, self.prior, 1.0, circle.WIDTH, columns)
        self.data, self.scratch = data, new_scratch(self.problem)
        self.families, self.features = data.family.tolist(), data.features
        self.allowed = None if radius is None else self._allowed(neighbourhood)
        self.labels = self._random_labels()
        self.order, self.alpha = rng.permutation(n), rng.uniform(0.3, 5.0)
        self.u = rng.standard_exponential(n) * rng.choice([0.1, 1.0])
        self.theta = small.random_rows(rng, hyper, (n,))
        self.spare = small.random_rows(rng, hyper, (n,))
        self.state = self.fresh_state()
        order.walk_arrivals(data, self.state, self.scratch, self.state.order, self.state.seated)

    @property
    def n(self) -> int:
        return len(self.families)

    def fresh_state(self):
        state = small.fill_state(
            self.problem, self.labels, order=self.order, u=self.u, alpha=self.alpha,
            theta=self.theta, spare=self.spare,
        )  # fmt: skip
        tail.rebuild_tail(self.data, state)
        return state

    def _allowed(self, neighbourhood) -> np.ndarray:
        allowed = np.eye(self.n, dtype=bool)
        ends = neighbourhood.numbering[neighbourhood.pairs]
        allowed[ends[:, 0], ends[:, 1]] = allowed[ends[:, 1], ends[:, 0]] = True
        return allowed

    def _random_labels(self) -> list[int]:
        """Each marking in a random admissible cluster, named after its first member."""
        labels: list[int] = []
        for i in range(self.n):
            options = [
                k
                for k in {*labels, i}
                if reference.keeps_the_rule([*labels, k], self.families, self.allowed)
            ]
            labels.append(int(self.rng.choice(options)))
        return labels

    def moved(self, i: int, k: int) -> list[int]:
        """The labels with marking i in cluster k, clusters renamed after their first members."""
        labels = list(self.labels)
        labels[i] = k
        return labels

    def log_joint(self, labels, theta) -> float:
        partition = reference.log_partition(
            labels, self.families, self.order, self.u, self.alpha, self.allowed
        )
        return partition + reference.log_features(self.hyper, labels, theta, self.features)

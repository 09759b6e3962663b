"""One chain: its state, its random generator, and blocks of draws."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dfcrp.kernels.paper import run_modified, run_unmodified
from dfcrp.kernels.scan import run_exact, start_alone
from dfcrp.kernels.state import TALLY
from dfcrp.kernels.tail import rebuild_tail
from dfcrp.sampling.draws import DrawBlock
from dfcrp.sampling.problem import Problem, new_record, new_scratch, new_state

SAMPLERS: dict[str, Callable[..., None]] = {
    "exact": run_exact,
    "paper": run_modified,
    "unmodified": run_unmodified,
}
#: Rows of cluster parameters that a block may need at most (48 MB).
BLOCK_ROWS = 2_000_000
#: State that follows from the rest.
_DERIVED = ("tail",)


class Chain:
    """A Markov chain over (partition, parameters, order, α) for one problem.

    The draws depend on the problem and the seed alone, not on how they are cut into blocks.
    """

    def __init__(self, problem: Problem, seed: np.random.SeedSequence, sampler: str) -> None:
        self.problem = problem
        self.rng = np.random.default_rng(seed)
        self.state = new_state(problem)
        #: What is learned is learned by each chain for itself.
        self.hyper = problem.hyper._replace(law=self.state.law)
        self.prior = problem.prior._replace(own=self.state.own)
        self._scratch = new_scratch(problem)
        self._run = SAMPLERS[sampler]
        start_alone(self.rng, problem.data, self.hyper, self.state)

    @property
    def scans(self) -> int:
        """Scans done since the start."""
        return int(self.state.scans[0])

    @property
    def tally(self) -> dict[str, int]:
        """Proposals and acceptances since the start, by kind of move."""
        return dict(zip(TALLY, self.state.tally.tolist(), strict=True))

    def largest_block(self) -> int:
        """Draws that fit into one block."""
        return int(max(1, min(512, BLOCK_ROWS // self.problem.n)))

    def run(self, draws: int, thin: int) -> DrawBlock:
        """Go on for draws × thin scans and return a draw after every thin-th."""
        record = new_record(self.problem, draws)
        problem = self.problem
        self._run(
            self.rng,
            problem.data,
            self.hyper,
            self.prior,
            self.state,
            self._scratch,
            thin,
            record,
        )
        rows = record.offsets[-1]
        return DrawBlock(
            record.labels,
            record.alpha,
            record.offsets,
            record.cluster_labels[:rows],
            record.parameters[:rows],
            record.shared,
        )

    def snapshot(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """State arrays and the generator's state: all that ``restore`` needs."""
        arrays = {
            name: value.copy()
            for name, value in self.state._asdict().items()
            if name not in _DERIVED
        }
        return arrays, dict(self.rng.bit_generator.state)

    def restore(self, arrays: dict[str, NDArray[Any]], generator: dict[str, Any]) -> None:
        """Continue exactly where ``snapshot`` was taken."""
        for name, value in self.state._asdict().items():
            if name not in _DERIVED:
                value[...] = arrays[name]
        self.rng.bit_generator.state = generator
        if self.state.tail.total.size > 0:
            rebuild_tail(self.problem.data, self.state)

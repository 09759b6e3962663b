"""Follow a kernel's random choices along every branch, to get its transition probabilities."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator


def every_branch(run: Callable) -> Iterator[tuple[float, object]]:
    """Yield (probability, result) for each way that ``run(pick)`` can go.

    ``run`` must start afresh each time and draw only by ``pick(threshold, weight, count, total)``,
    which has the signature of the kernels' own; the threshold is not used.
    """
    pending: list[tuple[int, ...]] = [()]
    while pending:
        script = pending.pop()
        taken: list[int] = []
        probability = 1.0

        def pick(threshold, weight, count, total, script=script, taken=taken):
            nonlocal probability
            if len(taken) < len(script):
                position = script[len(taken)]
            else:
                position, *others = (o for o in range(count) if weight[o] > 0.0)
                pending.extend((*taken, other) for other in others)
            taken.append(position)
            probability *= weight[position] / total
            return position

        result = run(pick)
        yield probability, result


class Threshold:
    """Stands for the exponential of a Metropolis step, ``-e < gain``, and notes the gain."""

    def __init__(self, accept: bool):
        self.accept = accept
        self.gain = 0.0

    def __neg__(self):
        return self

    def __lt__(self, gain):
        self.gain = gain
        return self.accept


class ScriptedGenerator:
    """Gives the uniforms it was told to, and one Metropolis decision."""

    def __init__(self, uniforms, accept: bool):
        self.uniforms = list(uniforms)
        self.threshold = Threshold(accept)

    def random(self) -> float:
        return self.uniforms.pop(0)

    def standard_exponential(self) -> Threshold:
        return self.threshold


class BranchingGenerator:
    """Follows both ways of every comparison with a uniform or of a Metropolis step."""

    def __init__(self, pick: Callable):
        self.pick = pick

    def random(self) -> _Chance:
        return _Chance(self.pick, lambda p: p)

    def standard_exponential(self) -> _Chance:
        return _Chance(self.pick, lambda gain: math.exp(min(gain, 0.0)))


class _Chance:
    """A random number of which only the comparison ``number < limit`` (or ``-number``) is used."""

    def __init__(self, pick: Callable, probability: Callable[[float], float]):
        self.pick = pick
        self.probability = probability

    def __neg__(self):
        return self

    def __lt__(self, limit: float) -> bool:
        p = self.probability(limit)
        return self.pick(None, [p, 1.0 - p], 2, 1.0) == 0

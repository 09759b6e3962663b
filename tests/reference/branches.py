"""Follow a kernel's random choices along every branch, to get its transition probabilities."""

from __future__ import annotations

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

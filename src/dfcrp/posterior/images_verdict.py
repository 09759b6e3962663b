"""Was a run over many images long enough: for each of them, and for their totals."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from dfcrp.summaries.convergence import Diagnostic, Limits, Verdict, longer

#: Images that are named as the worst.
NAMED = 10


@dataclass(frozen=True)
class ImagesVerdict(Verdict):
    """The verdict on a run over many images: good if it is good for every one of them.

    The numbers are those of the worst image; ``diagnostics`` are of the totals.
    """

    #: Images whose own verdict is not good, worst first.
    not_good: tuple[str, ...] = ()
    #: Images that the run did not come to.
    missing: int = 0
    totals_good: bool = True

    def as_dict(self) -> dict[str, Any]:
        """As in summary.json."""
        extra = {"images_not_good": len(self.not_good), "worst_images": list(self.not_good[:NAMED])}
        return super().as_dict() | extra


def judge_images(
    verdicts: Mapping[str, Verdict], totals: tuple[Diagnostic, ...], missing: int
) -> ImagesVerdict:
    """Put the verdicts on single images together; ``missing`` images were not begun."""
    limits = Limits()
    bad = [name for name, verdict in verdicts.items() if not verdict.ok]
    bad.sort(key=lambda name: -_badness(verdicts[name], limits))
    every = list(verdicts.values())
    totals_good = all(d.rhat <= limits.rhat and d.ess >= limits.ess for d in totals)
    found = ImagesVerdict(
        ok=not bad and not missing,
        max_rhat=_worst([v.max_rhat for v in every], max),
        min_ess=_worst([v.min_ess for v in every], min),
        max_pair_disagreement=_worst([v.max_pair_disagreement for v in every], max),
        pairs_disagreeing=sum(v.pairs_disagreeing for v in every),
        undecided=(),
        max_pair_rhat=_worst([v.max_pair_rhat for v in every], max),
        min_pair_ess=_worst([v.min_pair_ess for v in every], min),
        advice=(),
        diagnostics=totals,
        not_good=tuple(bad),
        missing=missing,
        totals_good=totals_good,
    )
    advice = tuple(_advice(found, verdicts, limits))
    return ImagesVerdict(**{**vars(found), "advice": advice})


def _worst(values: list[float], pick: Any) -> float:
    """NaN only if nothing else is there."""
    known = [value for value in values if not np.isnan(value)]
    return float(pick(known)) if known else np.nan


def _badness(verdict: Verdict, limits: Limits) -> float:
    """How many times longer a run of this image should be, about; infinite if it cannot be told."""
    if np.isnan(verdict.max_rhat):
        return np.inf
    return longer(verdict, limits)


def _advice(found: ImagesVerdict, verdicts: Mapping[str, Verdict], limits: Limits) -> list[str]:
    count = len(verdicts)
    advice = []
    if found.missing:
        advice.append(
            f"The run did not come to {found.missing:,} of {found.missing + count:,} images."
        )
    if not found.not_good:
        advice.append(
            f"The run was long enough for each of the {count:,} images: R-hat is at most "
            f"{found.max_rhat:.3f} and the smallest effective sample size is {found.min_ess:.0f}."
        )
        return advice
    named = [_describe(name, verdicts[name]) for name in found.not_good[:NAMED]]
    more = len(found.not_good) - NAMED
    if more > 0:
        named.append(f"and {more:,} more")
    advice.append(
        f"It was not long enough for {len(found.not_good):,} of {count:,} images. "
        f"Worst: {', '.join(named)}."
    )
    rhat, ess = max(d.rhat for d in found.diagnostics), min(d.ess for d in found.diagnostics)
    how = "are good" if found.totals_good else "are not good either"
    advice.append(
        f"The totals over all images {how}: R-hat is at most {rhat:.3f}, the effective sample "
        f"size at least {ess:.0f}."
    )
    needed = _badness(verdicts[found.not_good[0]], limits)
    times = f"{int(np.ceil(needed))}" if needed <= 10 else "at least 10"
    advice.append(f"Run {times} times longer for the worst image; images.csv lists them all.")
    return advice


def _describe(name: str, verdict: Verdict) -> str:
    if np.isnan(verdict.max_rhat):
        return f"{name} (too few draws)"
    rhat = "infinite" if np.isinf(verdict.max_rhat) else f"{verdict.max_rhat:.2f}"
    text = f"{name} (R-hat {rhat}, ESS {verdict.min_ess:.0f}"
    if verdict.pairs_disagreeing:
        text += f", pairs the chains disagree on: {verdict.pairs_disagreeing}"
    return text + ")"

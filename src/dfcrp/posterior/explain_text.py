"""An explanation of one item's place, in plain words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dfcrp.markup import counted, plural
from dfcrp.summaries.membership import ALONE

if TYPE_CHECKING:
    from dfcrp.likelihoods.base import Evidence
    from dfcrp.posterior.explain import Candidate, Explanation, Offset

#: Candidates and companions that are listed one by one.
MAX_LISTED = 12
#: Difference between chains above which it is mentioned.
CHAINS_DIFFER = 0.1


def percent(share: float) -> str:
    """A share in percent; never "0 %" or "100 %" for what is not quite that."""
    if 0.0 < share < 0.01:
        return "less than 1 %"
    if 0.99 < share < 1.0:
        return "more than 99 %"
    return f"{100.0 * share:.0f} %"


def explanation_text(found: Explanation) -> str:
    """Several paragraphs: what, where it sat, what the rule barred, with whom."""
    parts = [_opening(found), _places(found)]
    barred = _barred(found)
    if barred:
        parts.append(barred)
    parts.append(_companions(found))
    return "\n\n".join(parts) + "\n"


def _opening(found: Explanation) -> str:
    described = ", ".join(f"{name} {_shown(value)}" for name, value in found.described.items())
    what = f"{found.noun.capitalize()} {found.id} by {found.expert}: {described}."
    own = next((c for c in found.candidates if c.cluster == found.cluster), None)
    others = len(own.members) if own is not None else 0
    if others == 0:
        place = "In the published partition it is a cluster of its own"
    else:
        place = (
            f"In the published partition it belongs to cluster {found.cluster}, "
            f"with {counted(others, f'other {found.noun}')}"
        )
    return f"{what}\n{place} (membership probability {found.p_member:.2f})."


def _shown(value: Any) -> str:
    return (value or "(missing)") if isinstance(value, str) else f"{value:g}"


def _places(found: Explanation) -> str:
    chains = "1 chain" if found.n_chains == 1 else f"{found.n_chains} chains"
    lines = [f"Where it sat, over {found.n_draws:,} draws of {chains}:"]
    for candidate in found.candidates[:MAX_LISTED]:
        lines += ["  " + line for line in _place_lines(candidate, found)]
    hidden = len(found.candidates) - MAX_LISTED
    if hidden > 0:
        lines.append(f"  and {hidden} more")
    if any(np.isfinite(c.distance) for c in found.candidates):
        lines.append(
            "Distances are in units of the cluster's fitted spread (standard deviations);\n"
            f"of a cluster's own {plural(found.noun)} 95 % lie within "
            f"{_usual_reach(found.features):.1f}. A member widens the spread."
        )
    if any(c.evidence for c in found.candidates):
        lines.append(
            f"Log odds say by how much a column speaks for one object rather than two, on average\n"
            f"over the {plural(found.noun)} of the cluster."
        )
    return "\n".join(lines)


def _usual_reach(features: int) -> float:
    """The distance within which 95 % lie: the root of a quantile of χ²."""
    from scipy.special import gammaincinv

    return float(np.sqrt(2.0 * gammaincinv(features / 2.0, 0.95)))


def _place_lines(candidate: Candidate, found: Explanation) -> list[str]:
    if candidate.cluster == ALONE:
        name = "alone"
    elif candidate.probability == 0.0:
        name = f"cluster {candidate.cluster}, nearby"
    else:
        name = f"cluster {candidate.cluster}"
    text = f"{name}: {percent(candidate.probability) if candidate.probability else 'never'}"
    if found.n_chains > 1:
        low, high = min(candidate.by_chain), max(candidate.by_chain)
        if high - low > CHAINS_DIFFER:
            text += f" (chains disagree: {percent(low)} to {percent(high)})"
    lines = [text]
    both = candidate.inside is not None and candidate.outside is not None
    for offset, when in ((candidate.outside, " when outside"), (candidate.inside, " when in it")):
        if offset is not None:
            lines.append(f"  distance {_offset(found, offset, when if both else '')}")
    if candidate.evidence:
        lines.append(f"  log odds {', '.join(map(_evidence, candidate.evidence))}")
    return lines


def _offset(found: Explanation, offset: Offset, when: str) -> str:
    parts = []
    for part in found.parts:
        value = offset.parts[part.name]
        sign = "" if not part.more else f" {part.more if value > 0 else part.less}"
        parts.append(f"{part.name} {abs(value):.1f}{sign}")
    return f"{offset.distance:.1f}{when} ({', '.join(parts)})"


def _evidence(found: Evidence) -> str:
    if not (found.own and found.theirs):
        return f"{found.name} 0 (missing)"
    there = "" if found.own == found.theirs else f" (there: {found.theirs})"
    return f"{found.name} {found.log_odds:+.1f}{there}"


def _barred(found: Explanation) -> str:
    nouns = plural(found.noun)
    if not found.one_per_expert:
        return f"No rule kept {nouns} of one expert apart in this run: they could share a cluster."
    lines = []
    for candidate in found.candidates[:MAX_LISTED]:
        if candidate.barred == 0.0:
            continue
        names = ", ".join(
            f"{other.id} ({percent(other.probability)})" for other in candidate.barred_by[:3]
        )
        more = ", ..." if len(candidate.barred_by) > 3 else ""
        lines.append(
            f"  cluster {candidate.cluster} was closed to it in {percent(candidate.barred)} of "
            f"draws: {names}{more} sat there"
        )
    if not lines:
        return (
            f"The rule that two {nouns} by one expert never share a cluster barred nothing:\n"
            f"no other {found.noun} by {found.expert} sat in any of these clusters."
        )
    head = f"By the rule that two {nouns} by {found.expert} never share a cluster,"
    return "\n".join([head, *lines])


def _companions(found: Explanation) -> str:
    if not found.companions:
        return f"It never shared a cluster with any other {found.noun}."
    lines = ["It sat with:"]
    for other in found.companions[:MAX_LISTED]:
        lines.append(f"  {other.id} by {other.expert}: {percent(other.probability)}")
    hidden = len(found.companions) - MAX_LISTED
    if hidden > 0:
        lines.append(f"  and {hidden} more, each less often")
    return "\n".join(lines)

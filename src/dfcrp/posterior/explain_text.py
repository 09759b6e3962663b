"""An explanation of one marking's place, in plain words."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dfcrp.summaries.membership import ALONE

if TYPE_CHECKING:
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
    """Several paragraphs: what, where it sat, what the family rule barred, with whom."""
    parts = [_opening(found), _places(found)]
    barred = _barred(found)
    if barred:
        parts.append(barred)
    parts.append(_companions(found))
    return "\n\n".join(parts) + "\n"


def _opening(found: Explanation) -> str:
    what = (
        f"Marking {found.id} by {found.expert}: x {found.x:g}, y {found.y:g}, "
        f"diameter {found.diameter:g}."
    )
    own = next((c for c in found.candidates if c.cluster == found.cluster), None)
    others = len(own.members) if own is not None else 0
    if others == 0:
        place = "In the published partition it is a cluster of its own"
    else:
        noun = "marking" if others == 1 else "markings"
        place = (
            f"In the published partition it belongs to cluster {found.cluster}, "
            f"with {others} other {noun}"
        )
    return f"{what}\n{place} (membership probability {found.p_member:.2f})."


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
            "of a cluster's own markings 95 % lie within 2.8. A member widens the spread."
        )
    return "\n".join(lines)


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
            lines.append(f"  distance {_offset(offset, when if both else '')}")
    return lines


def _offset(found: Offset, when: str) -> str:
    than = "larger" if found.size > 0 else "smaller"
    return (
        f"{found.distance:.1f}{when} (position {found.position:.1f}, "
        f"diameter {abs(found.size):.1f} {than})"
    )


def _barred(found: Explanation) -> str:
    if not found.family_rule:
        return "This run had no family rule: one expert's markings could share a cluster."
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
            "The family rule barred nothing:\n"
            f"no other marking by {found.expert} sat in any of these clusters."
        )
    head = f"Family rule (two markings by {found.expert} never share a cluster):"
    return "\n".join([head, *lines])


def _companions(found: Explanation) -> str:
    if not found.companions:
        return "It never shared a cluster with any other marking."
    lines = ["It sat with:"]
    for other in found.companions[:MAX_LISTED]:
        lines.append(f"  {other.id} by {other.expert}: {percent(other.probability)}")
    hidden = len(found.companions) - MAX_LISTED
    if hidden > 0:
        lines.append(f"  and {hidden} more, each less often")
    return "\n".join(lines)

"""An evaluation of records as text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dfcrp.evaluation.words import between, calibration_lines, share


def describe_partition(found: Mapping[str, Any]) -> str:
    """What matters, in lines."""
    partial = f"; the truth is known of {found['partial']}" if found["partial"] else ""
    lines = [f"{found['answer']} beside {found['truth']}{partial}", f"  {found['rule_words']}"]
    lines += [f"  listed: {found['listed']}", ""]
    lines.append(
        f"{found['n_true']:,} true pairs, {found['n_listed']:,} listed, {found['n_right']:,} right"
    )
    for title, part in (("pairwise", found["pairwise"]), ("B-cubed", found["bcubed"])):
        if part is not None:
            lines += [
                f"  {title + ' ' + name:<20}{share(part[name])}{between(part['intervals'][name])}"
                for name in ("precision", "recall", "f1")
            ]
    if found["average_precision"] is not None:
        lines.append(f"  {'average precision':<20}{share(found['average_precision'])}")
    lines += calibration_lines(found)
    for name, word in (("n_total", "Links"), ("n_entities", "Entities")):
        one = found.get(name)
        if one is not None and "mean" in one:
            held = "holds" if one["covers"] else "does not hold"
            lines.append(
                f"{word} in all: {one['mean']:,.0f} ({one['lo']:,.0f} to {one['hi']:,.0f}) "
                f"estimated, {one['true']:,} true; the interval {held} the truth"
            )
    return "\n".join(lines)

"""What the report says of the scatter of items described by numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dfcrp.likelihoods.report import estimates, learned_section
from dfcrp.likelihoods.tail_summary import CARELESS, careless_words
from dfcrp.markup import Section, plural

GROWTH = "growth_"
#: What groups of features are called, and the factor that makes a percentage of a log size.
GROUPS = {
    "x_y": ("x and y", 1.0),
    "log_width_log_height": ("width and height", 100.0),
    "log_size": ("size", 100.0),
    "elongation_0_elongation_45": ("shape (half the log ratio of the axes)", 1.0),
}


def learned_words(found: Mapping[str, Any], noun: str) -> list[str]:
    """How far items of one object scatter, in a sentence."""
    parts = []
    for name, row in found.items():
        if name in CARELESS:
            continue
        if not name.startswith(GROWTH):
            words, factor = GROUPS.get(name, (name, 1.0))
            percent = " %" if factor != 1.0 else ""
            parts.append(f"{factor * row['mean']:.3g}{percent} in {words}")
    items = plural(noun)
    return [
        f"Learned from the data: {items} of one object scatter by {', '.join(parts)} (1 sd).",
        *careless_words(found, noun),
    ]


def scatter(contents: Any) -> Section | None:
    """The learned standard deviations."""
    posterior = contents.posterior
    found, nouns = posterior.tolerances, plural(posterior.likelihood.noun)
    if not found:
        return None
    shown, names, grows = {}, {}, False
    for name, row in found.items():
        if name in CARELESS:
            shown[name], names[name] = row, f"careless {nouns}, {CARELESS[name]}"
            continue
        group = name.removeprefix(GROWTH)
        words, factor = GROUPS.get(group, (group, 1.0))
        if group != name:
            shown[name], names[name], grows = row, f"{words}: growth of the variance", True
        else:
            shown[name] = {key: factor * value for key, value in row.items()}
            names[name] = words if factor == 1.0 else f"{words}, %"
    caption = f"Standard deviation of the {nouns} of one object, by column."
    if grows:
        caption += (
            " Where it grows with size, it is that at the median size; a growth of 2 means that it "
            "goes in proportion to the size."
        )
    words = posterior.likelihood.learned_words(found)
    return learned_section(f"How far do {nouns} scatter?", words, estimates(shown, names), caption)

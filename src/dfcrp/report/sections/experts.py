"""Section on the experts: how they compare."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

import numpy as np

from dfcrp.markup import (
    Column,
    Markup,
    Section,
    counted,
    estimate,
    join,
    number,
    paragraph,
    plural,
    table,
    with_interval,
)
from dfcrp.plots.experts import MAX_SHOWN, loneliest_experts, prepare_jaccard
from dfcrp.report.contents import Contents, digits_for
from dfcrp.rounding import Estimate
from dfcrp.summaries.streaming import Interval

if TYPE_CHECKING:
    from dfcrp.likelihoods.differences import ExpertBias

#: Experts in the table; the file holds them all.
MAX_ROWS = 100


def experts(contents: Contents) -> Section:
    """The paper's table, the pairwise agreement, and where experts were alone."""
    parts = [expert_tables(contents), *_agreement(contents), *_alone(contents)]
    return Section("experts", "How do the experts compare?", join(parts))


def _alone(contents: Contents) -> list[Markup]:
    """What experts list alone."""
    count, noun, nouns = contents.n_singletons, contents.noun, contents.nouns
    if not count:
        return [paragraph(f"No {noun} is more likely alone than not.")]
    names = " and ".join(loneliest_experts(contents.posterior))
    return [
        paragraph(
            f"{counted(count, noun)} {'is' if count == 1 else 'are'} more likely alone than not."
        ),
        contents.figure(
            "singletons",
            "Map of singletons",
            f"{nouns.capitalize()} that are more likely alone than not, of {names}: the experts "
            f"with most {nouns} that nobody shares.",
        ),
    ]


def expert_tables(contents: Contents) -> Markup:
    """The paper's table of experts, and how they differ if that was learned."""
    bias = contents.posterior.expert_bias
    return join([expert_table(contents), *([bias_table(contents, bias)] if bias else [])])


def _agreement(contents: Contents) -> list[Markup]:
    """The pairwise agreement of experts, if there are several."""
    n_experts = len(contents.posterior.items.experts)
    if n_experts < 2:
        return []
    return [
        _similarity_words(contents),
        contents.figure(
            "jaccard",
            "Heatmap of pairwise Jaccard coefficients",
            f"Share of objects that both experts {contents.verb}, of those that either did "
            f"(Jaccard coefficient, posterior mean). Experts by number of {contents.nouns}, given "
            f"in brackets.{_only(contents, MAX_SHOWN)}",
        ),
    ]


def expert_table(contents: Contents) -> Markup:
    """The paper's table of experts."""
    found = contents.posterior.expert_summary
    names, verb = contents.posterior.items.experts, contents.verb
    several = len(contents.posterior.items.looks.images) > 1
    but_one, there = f"{counted(len(names) - 1, 'expert')} of {len(names)}", ""
    if contents.posterior.items.coverage.in_parts:
        but_one = "all but one of those who looked at the place"
        there = " where this expert looked"
    elif several:
        but_one = f"all but one of those who looked at the {contents.image_word}"
        there = f" on the {plural(contents.image_word)} at which they looked"
    rows = []
    for f in np.argsort(found.count, kind="stable")[-MAX_ROWS:]:
        rows.append(
            [
                names[f],
                number(int(found.count[f])),
                *_estimate(found.jaccard[f], 3).cells,
                *_estimate(found.size_1[f], 2).cells,
                *_estimate(found.all_but_one[f], 2).cells,
            ]
        )
    columns = [
        Column("expert", number=False),
        Column(contents.nouns),
        *map(with_interval, ("Jaccard", "alone, %", "missed, %")),
    ]
    return table(
        columns,
        rows,
        f"Jaccard: mean agreement with the other experts. Alone: of the objects that only one "
        f"expert {verb}{there}, the share that is this expert's. Missed: of the objects that "
        f"{but_one} {verb}{there}, the share that only this expert did not."
        f"{_only(contents, MAX_ROWS)}",
    )


def _estimate(found: Interval, digits: int) -> Estimate:
    return estimate(found.mean, found.lo, found.hi, digits)


#: How names of what may differ begin and end.
OFFSET, FACTOR, NOISE = "offset_", "_factor", "noise_factor"


def bias_table(contents: Contents, bias: ExpertBias) -> Markup:
    """How experts differ from the mean item."""
    count = contents.posterior.expert_summary.count
    names = contents.posterior.items.experts
    columns = [Column("expert", number=False), Column(contents.nouns)]
    for name in bias.found:
        columns.append(with_interval(_bias_head(name)))
    digits = {name: _bias_digits(name, found) for name, found in bias.found.items()}
    rows = []
    for f in np.argsort(count, kind="stable")[-MAX_ROWS:]:
        row: list[object] = [names[f], number(int(count[f]))]
        for name, found in bias.found.items():
            row += _estimate(found[f], digits[name]).cells
        rows.append(row)
    caption = f"How each expert differs from the mean {contents.noun}. {_bias_notes(bias.found)}"
    return table(columns, rows, caption + _only(contents, MAX_ROWS))


def _bias_head(name: str) -> str:
    if name.startswith(OFFSET):
        return f"{name.removeprefix(OFFSET)} offset"
    return name.removesuffix(FACTOR)


def _bias_digits(name: str, found: Any) -> int:
    """Of factors as many as differences need, of offsets two digits of a typical interval."""
    if not name.startswith(OFFSET):
        return 2 if name == NOISE else 3
    width = np.asarray(found.hi) - np.asarray(found.lo)
    return digits_for(float(np.median(width[width > 0.0])), 2) if (width > 0.0).any() else 3


def _bias_notes(names: Collection[str]) -> str:
    """What the columns mean."""
    notes = []
    if any(name.startswith(OFFSET) for name in names):
        notes.append("Offsets: how far to the side of the others, in the unit of the column.")
    factors = [_bias_head(name) for name in names if name.endswith(FACTOR) and name != NOISE]
    if factors:
        notes.append(f"{' and '.join(factors).capitalize()}: 1.05 is 5 % larger than the others.")
    if NOISE in names:
        notes.append("Noise: 2 is twice as far off.")
    return " ".join(notes)


def _only(contents: Contents, shown: int) -> str:
    count = len(contents.posterior.items.experts)
    if count <= shown:
        return ""
    return f" Shown are the {shown} with most {contents.nouns} of {count:,} experts."


def _similarity_words(contents: Contents) -> Markup:
    extremes = prepare_jaccard(contents.posterior).extreme_pairs()
    if extremes is None:
        return Markup("")
    (a, b), (c, d) = extremes
    many = len(contents.posterior.items.experts) > MAX_SHOWN
    among = f" of the {MAX_SHOWN} experts with most {contents.nouns}" if many else ""
    words = f"The most similar pair{among} is {a} and {b}"
    if {a, b} != {c, d}:
        words += f", the least similar {c} and {d}"
    return paragraph(words + ".")

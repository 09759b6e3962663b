"""Section on the experts: how they compare."""

from __future__ import annotations

import numpy as np

from dfcrp.likelihoods.circle.bias_summary import ExpertBias
from dfcrp.markup import (
    Column,
    Markup,
    counted,
    interval,
    join,
    number,
    paragraph,
    table,
)
from dfcrp.plots.jaccard import MAX_SHOWN, prepare_jaccard
from dfcrp.plots.singletons import loneliest_experts
from dfcrp.report.contents import Contents
from dfcrp.report.pictures import Picture
from dfcrp.report.section import Section

#: Experts in the table; the file holds them all.
MAX_ROWS = 100


def experts(contents: Contents, pictures: dict[str, Picture]) -> Section:
    """The paper's table, the pairwise agreement, and where experts were alone."""
    parts: list[object] = [expert_tables(contents), *agreement(contents, pictures)]
    if "singletons" in pictures:
        names = " and ".join(loneliest_experts(contents.posterior))
        parts.append(
            pictures["singletons"].html(
                "Map of singletons",
                f"Markings that are more likely alone than not, by {names}: the experts with the "
                "largest shares of the size-1 clusters.",
            )
        )
    else:
        parts.append(paragraph("No marking is more likely alone than not."))
    return Section("experts", "How do the experts compare?", join(parts))


def expert_tables(contents: Contents) -> Markup:
    """The paper's table of experts, and how they differ if that was learned."""
    bias = contents.posterior.expert_bias
    return join([expert_table(contents), *([bias_table(contents, bias)] if bias else [])])


def agreement(contents: Contents, pictures: dict[str, Picture]) -> list[Markup]:
    """The pairwise agreement of experts, if there are several."""
    if "jaccard" not in pictures:
        return []
    return [
        _similarity_words(contents),
        pictures["jaccard"].html(
            "Heatmap of pairwise Jaccard coefficients",
            "Share of objects that both experts marked, of those that either did (Jaccard "
            "coefficient, posterior mean). Experts by number of markings, given in brackets."
            + _only(len(contents.posterior.markings.experts), MAX_SHOWN),
        ),
    ]


def expert_table(contents: Contents) -> Markup:
    """The paper's table of experts."""
    found = contents.posterior.expert_summary
    names = contents.posterior.markings.experts
    but_one = len(names) - 1
    rows = []
    for f in np.argsort(found.count, kind="stable")[-MAX_ROWS:]:
        rows.append(
            [
                names[f],
                number(int(found.count[f])),
                number(found.jaccard.mean[f], 3),
                interval(found.jaccard.lo[f], found.jaccard.hi[f], 3),
                number(found.size_1.mean[f], 2),
                interval(found.size_1.lo[f], found.size_1.hi[f], 2),
                number(found.all_but_one.mean[f], 2),
                interval(found.all_but_one.lo[f], found.all_but_one.hi[f], 2),
            ]
        )
    columns = [
        Column("expert", number=False),
        Column("markings"),
        Column("Jaccard"),
        Column("95 %"),
        Column("alone, %"),
        Column("95 %"),
        Column("missed, %"),
        Column("95 %"),
    ]
    return table(
        columns,
        rows,
        "Jaccard: mean agreement with the other experts. Alone: of the objects that only one "
        f"expert marked, the share that is this expert's. Missed: of the objects that "
        f"{counted(but_one, 'expert')} of {len(names)} marked, the share that only this expert "
        f"did not.{_only(len(names), MAX_ROWS)}",
    )


#: How the table of differences names a quantity, and the digits it shows.
_BIAS_COLUMNS = {
    "offset_x": ("x offset", 2),
    "offset_y": ("y offset", 2),
    "size_factor": ("size", 3),
    "noise_factor": ("noise", 2),
}


def bias_table(contents: Contents, bias: ExpertBias) -> Markup:
    """How experts differ from the mean marking."""
    count = contents.posterior.expert_summary.count
    names = contents.posterior.markings.experts
    columns = [Column("expert", number=False), Column("markings")]
    for name in bias.found:
        columns += [Column(_BIAS_COLUMNS[name][0]), Column("95 %")]
    rows = []
    for f in np.argsort(count, kind="stable")[-MAX_ROWS:]:
        row: list[object] = [names[f], number(int(count[f]))]
        for name, found in bias.found.items():
            digits = _BIAS_COLUMNS[name][1]
            row += [number(found.mean[f], digits), interval(found.lo[f], found.hi[f], digits)]
        rows.append(row)
    return table(
        columns,
        rows,
        "How each expert differs from the mean marking. Offsets: how far to the side of the others "
        "the expert draws, in the unit of x and y. Size: 1.05 is 5 % larger than the others. "
        f"Noise: 2 is twice as far off.{_only(len(names), MAX_ROWS)}",
    )


def _only(count: int, shown: int) -> str:
    if count <= shown:
        return ""
    return f" Shown are the {shown} with most markings of {count:,} experts."


def _similarity_words(contents: Contents) -> Markup:
    extremes = prepare_jaccard(contents.posterior).extreme_pairs()
    if extremes is None:
        return Markup("")
    (a, b), (c, d) = extremes
    names = contents.posterior.markings.experts
    among = "" if len(names) <= MAX_SHOWN else f" of the {MAX_SHOWN} experts with most markings"
    words = f"The most similar pair{among} is {a} and {b}"
    if {a, b} != {c, d}:
        words += f", the least similar {c} and {d}"
    return paragraph(words + ".")

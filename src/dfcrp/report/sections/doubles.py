"""Suspected doubles: objects that one expert may have marked twice."""

from __future__ import annotations

from dfcrp.markup import Column, Markup, counted, join, number, paragraph, table, tag
from dfcrp.report.contents import Contents

#: Rows of the list in the page.
MAX_ROWS = 50


def doubles(contents: Contents) -> Markup:
    """Those that the posterior suspects, and why."""
    found = contents.doubles
    head = tag("h3", "Suspected doubles")
    if not len(found):
        return join([head, paragraph("None: no expert seems to have marked an object twice.")])
    *names, measure = found.columns
    more = "" if len(found) <= MAX_ROWS else f"; the clearest {MAX_ROWS} are listed"
    words = paragraph(
        f"{counted(len(found), 'marking')} may be a second one of an object that the same expert "
        f"has marked already (“other”, in the cluster given){more}. The rule keeps the two apart, "
        "so it counts as an object of its own; if it is a slip, delete it and fit again."
    )
    columns = [*(Column(name, number=False) for name in names), Column(measure.replace("_", " "))]
    rows = [
        [*(row[name] for name in names), number(row[measure], 2)]
        for row in found.head(MAX_ROWS).to_dict("records")
    ]
    return join([head, words, table(columns, rows)])

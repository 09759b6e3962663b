"""Sections on the objects: how many, where, and how sure."""

from __future__ import annotations

from typing import Any

import numpy as np

from dfcrp.markup import (
    Column,
    Markup,
    counted,
    details,
    interval,
    join,
    listed,
    number,
    paragraph,
    probability,
    table,
    tag,
)
from dfcrp.plots.catalogue_map import DOUBTFUL
from dfcrp.plots.counts_by_size import class_bounds, dbscan_counts, dbscan_labels
from dfcrp.report.contents import Contents
from dfcrp.report.pictures import Picture
from dfcrp.report.section import Section
from dfcrp.report.sections.doubles import doubles
from dfcrp.summaries.membership import ALONE, NOWHERE, UNDECIDED

#: Rows of a list in the page; the files hold them all.
MAX_ROWS = 50


def how_many(contents: Contents, pictures: dict[str, Picture]) -> Section | None:
    """Counts by threshold and size class, with intervals, and beside the experts' own."""
    if not contents.by_threshold:
        return None
    m = contents.min_experts
    with_dbscan = contents.dbscan is not None
    picture = pictures["counts_by_size"].html(
        "Counts by size class: experts, DBSCAN and posterior",
        f"Points: markings of each expert. {'Diamonds: clusters by DBSCAN. ' * with_dbscan}"
        f"Histograms: number of objects with at least {counted(m, 'expert')} in the posterior "
        "draws; shaded: the 95 % interval.",
    )
    return Section("how-many", "How many objects?", join([count_table(contents), picture]))


def count_table(contents: Contents) -> Markup:
    """Counts by threshold and size class, with intervals."""
    columns = [
        Column("size class", number=False),
        Column("marked by at least"),
        Column("mean"),
        Column("95 % interval"),
    ]
    with_dbscan = contents.dbscan is not None
    if with_dbscan:
        columns.insert(2, Column("DBSCAN"))
    rows = list(_count_rows(contents, with_dbscan))
    caption = "Number of objects: posterior mean and 95 % credible interval."
    if contents.knows_reality:
        caption += " Real ones are those that somebody marked."
    if with_dbscan:
        caption += " DBSCAN gives one number, without an interval."
    return table(columns, rows, caption)


def _count_rows(contents: Contents, with_dbscan: bool) -> Any:
    classes = contents.posterior.size_classes
    words = {"all": "all"}
    if classes.edges:
        bounds = class_bounds(classes.edges)
        words |= {n: f"{n} ({b})" for n, b in zip(classes.names, bounds, strict=True)}
    rows = contents.summary["consensus"]
    # As in the paper's table: class by class, and the thresholds within each.
    for name, described in words.items():
        if contents.knows_reality:
            yield _real_row(contents, name, described, with_dbscan)
        for row in rows:
            if row["size_class"] != name:
                continue
            cells: list[object] = [
                described,
                counted(row["min_experts"], "expert"),
                number(row["mean"], 1),
                interval(row["lo"], row["hi"]),
            ]
            if with_dbscan:
                cells.insert(2, number(_dbscan_cell(contents, row["min_experts"], name)))
            yield cells


def _real_row(
    contents: Contents, size_class: str, described: str, with_dbscan: bool
) -> list[object]:
    """What is real, for comparison with the thresholds below it."""
    found = next(row for row in contents.summary["objects"] if row["size_class"] == size_class)
    seen = found["seen"]
    cells: list[object] = [described, "anybody, and real"]
    cells += [number(seen["mean"], 1), interval(seen["lo"], seen["hi"])]
    if with_dbscan:
        cells.insert(2, number(None))
    return cells


def _dbscan_cell(contents: Contents, min_experts: int, size_class: str) -> int | None:
    labels = dbscan_labels(contents.dbscan, min_experts, contents.min_experts)
    if labels is None:
        return None
    counts = dbscan_counts(contents.posterior, labels)
    if size_class == "all":
        return int(counts.sum())
    return int(counts[contents.posterior.size_classes.names.index(size_class)])


def where(contents: Contents, pictures: dict[str, Picture]) -> Section:
    """The catalogue as a map, and a close look at one place."""
    low, high = DOUBTFUL
    parts = [
        paragraph(
            "The published partition has "
            f"{counted(len(contents.catalogue), 'cluster')}. The whole catalogue, with the "
            "uncertainty of every position and diameter, is in ",
            tag("code", "catalogue.csv"),
            "; where every marking went is in ",
            tag("code", "members.csv"),
            ".",
        ),
        pictures["catalogue_map"].html(
            "Map of the catalogue",
            f"Every object of the catalogue, to scale. Blue: {_sure_words(contents)} with a "
            f"probability of {high:g} or more; "
            f"vermilion: between {low:g} and {high:g}; grey: {low:g} or less.",
        ),
        pictures["expert_panels"].html(
            "One panel for each expert over a small region",
            "A small region, expert by expert: black circles are this expert's markings, grey "
            "ones the others'; in brackets how many lie inside.",
        ),
    ]
    return Section("where", "Where are they?", join(parts))


def _sure_words(contents: Contents) -> str:
    """What an object may be: real, or found by enough experts."""
    if contents.knows_reality:
        return "real"
    return f"at least {counted(contents.min_experts, 'expert')}"


def _sure_clause(contents: Contents, what: str) -> str:
    """That it is so."""
    words = _sure_words(contents)
    return f"{what} is {words}" if contents.knows_reality else f"{words} share {what}"


def how_sure(contents: Contents, pictures: dict[str, Picture]) -> Section:
    """Undecided markings and doubtful objects, and the distributions they are the tail of."""
    parts = [
        pictures["certainty"].html(
            "Histograms of membership and consensus probabilities",
            "Left: how probable it is that a marking belongs to the cluster it is listed in. "
            f"Right: how probable it is that {_sure_clause(contents, 'an object')}. The scales are "
            "logarithmic.",
        ),
        tag("h3", "Markings that are undecided"),
        _undecided(contents),
        between_chains(contents),
        tag(
            "h3",
            f"Objects whose {'reality' if contents.knows_reality else 'consensus'} is doubtful",
        ),
        _doubtful(contents),
        doubles(contents),
    ]
    if contents.example is not None:
        parts += [
            tag("h3", "The least certain marking, explained"),
            tag("pre", contents.example.text(), class_="text"),
            pictures["neighbourhood"].html(
                "The least certain marking among its candidate clusters",
                "Thick black: the marking in question; in colour the clusters it might belong to.",
            ),
            details(
                "How often its neighbours share a cluster",
                pictures["coclustering"].html(
                    "Matrix of co-clustering probabilities",
                    "Lines part the clusters of the published partition.",
                ),
            ),
        ]
    return Section("how-sure", "How sure is it?", join(parts))


def _undecided(contents: Contents) -> Markup:
    found = contents.undecided
    total = len(contents.posterior.markings)
    if not found.size:
        return paragraph(
            f"None: every marking belongs to its cluster with a probability of {UNDECIDED:g} or "
            "more."
        )
    return join(
        [
            paragraph(
                f"{counted(found.size, 'marking')} of {total:,} "
                f"{'belongs' if found.size == 1 else 'belong'} to the cluster listed with a "
                f"probability below {UNDECIDED:g}{only(found.size)}."
            ),
            table(
                [
                    Column("marking", number=False),
                    Column("expert", number=False),
                    Column("x"),
                    Column("y"),
                    Column("diameter"),
                    Column("cluster"),
                    Column("probability"),
                    Column("second best"),
                    Column("probability"),
                ],
                [_undecided_row(contents, int(i)) for i in found[:MAX_ROWS]],
            ),
        ]
    )


def only(count: int) -> str:
    """What to say of a list that is cut short."""
    return "" if count <= MAX_ROWS else f"; the least certain {MAX_ROWS} are listed"


def _undecided_row(contents: Contents, i: int) -> list[object]:
    markings, member = contents.posterior.markings, contents.posterior.membership
    own, other = contents.posterior.names(
        np.array([contents.posterior.point_partition().labels[i], member.second[i]])
    ).tolist()
    second = {ALONE: "alone", NOWHERE: "–"}.get(other, str(other))
    return [
        markings.id[i],
        markings.expert[i],
        f"{markings.x[i]:.{contents.place_digits}f}",
        f"{markings.y[i]:.{contents.place_digits}f}",
        f"{markings.diameter[i]:.{contents.size_digits}f}",
        own,
        probability(float(member.p_member[i])),
        second,
        probability(float(member.p_second[i])),
    ]


def between_chains(contents: Contents) -> Markup:
    """Markings that the chains place differently."""
    found = contents.posterior.verdict.undecided
    if not found:
        return Markup("")
    names = [contents.posterior.markings.id[i] for i in found]
    return paragraph(
        f"Undecided between chains ({counted(len(names), 'marking')}): {listed(names, MAX_ROWS)}."
    )


def _doubtful(contents: Contents) -> Markup:
    table_ = contents.catalogue
    low, high = DOUBTFUL
    sure_of = "p_real" if contents.knows_reality else "p_consensus"
    p = table_[sure_of].to_numpy()
    found = np.flatnonzero((p > low) & (p < high))
    found = found[np.argsort(np.abs(p[found] - 0.5), kind="stable")]
    if not found.size:
        return paragraph(
            "None: for every object it is as good as certain whether "
            f"{_sure_clause(contents, 'it')}."
        )
    place, size = contents.place_digits, contents.size_digits
    rows = []
    for row in table_.iloc[found[:MAX_ROWS]].to_dict("records"):
        rows.append(
            [
                int(row["cluster"]),
                f"{row['x']:.{place}f} ± {row['x_sd']:.{place}f}",
                f"{row['y']:.{place}f} ± {row['y_sd']:.{place}f}",
                f"{row['diameter']:.{size}f} "
                f"({row['diameter_lo']:.{size}f} to {row['diameter_hi']:.{size}f})",
                int(row["n_experts"]),
                probability(row[sure_of]),
            ]
        )
    columns = [
        Column("cluster"),
        Column("x ± sd"),
        Column("y ± sd"),
        Column("diameter (95 %)"),
        Column("experts", note="in the published partition"),
        Column(sure_of),
    ]
    sentence = paragraph(
        f"{counted(found.size, 'object')} of {len(table_):,} {'has' if found.size == 1 else 'have'}"
        f" a probability between {low:g} and {high:g} that {_sure_clause(contents, 'it')}"
        f"{only(found.size)}."
    )
    return join([sentence, table(columns, rows)])

"""Sections on the objects: how many, what and where, how sure, and how large."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Hashable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from dfcrp.markup import (
    Column,
    Markup,
    Section,
    counted,
    details,
    estimate,
    estimate_of,
    join,
    listed,
    number,
    one,
    paragraph,
    probability,
    significant,
    table,
    tag,
)
from dfcrp.plots.maps import DOUBTFUL
from dfcrp.plots.sizes import dbscan_counts, dbscan_labels, prepare_sizes
from dfcrp.posterior.sizes import BINNINGS, KINDS, UNBINNED
from dfcrp.posterior.tables import possible_counts
from dfcrp.report.contents import Contents
from dfcrp.summaries.membership import ALONE, NOWHERE, UNDECIDED

if TYPE_CHECKING:
    import pandas

#: Rows of a list in the page; the files hold them all.
MAX_ROWS = 50


def how_many(contents: Contents) -> Section | None:
    """Counts by threshold and size class, with intervals, and beside the experts' own."""
    if not contents.by_threshold:
        return None
    dbscan = "" if contents.dbscan is None else "Diamonds: clusters by DBSCAN. "
    figure = contents.figure(
        "counts_by_size",
        "Counts of the experts and of the posterior",
        f"Points: {contents.nouns} of each expert. {dbscan}Histograms: number of objects with "
        f"{contents.consensus_words} in the posterior draws; shaded: the 95 % interval.",
    )
    return Section("how-many", "How many objects?", join([count_table(contents), figure]))


def count_table(contents: Contents) -> Markup:
    """Counts by threshold and size class, with intervals."""
    with_dbscan = contents.dbscan is not None
    by_class = len(contents.posterior.size_classes.described) > 1
    columns = [
        *[Column("size class", number=False)] * by_class,
        Column(f"{contents.verb} by at least"),
        *[Column("DBSCAN")] * with_dbscan,
        Column("mean"),
        Column("95 % interval"),
    ]
    caption = "Number of objects: posterior mean and 95 % credible interval."
    if contents.knows_reality:
        caption += f" Real ones are those that somebody {contents.verb}."
    if with_dbscan:
        caption += " DBSCAN gives one number, without an interval."
    rows = [
        [*[words] * by_class, who, *[number(dbscan)] * with_dbscan, *counts]
        for words, who, dbscan, *counts in _count_rows(contents)
    ]
    return table(columns, rows, caption)


def _count_rows(contents: Contents) -> Iterator[list[Any]]:
    """Class, who, DBSCAN's number, mean and interval.

    As in the paper's table: class by class, and the thresholds within each.
    """
    for name, words in contents.posterior.size_classes.described.items():
        if contents.knows_reality:
            yield _real_row(contents, name, words)
        for row in possible_counts(contents.posterior):
            if row["size_class"] == name:
                yield [
                    words,
                    _who(row["min_experts"]),
                    _dbscan_cell(contents, row["min_experts"], name),
                    *estimate_of(row).cells,
                ]


def _who(least: int | str) -> str:
    if isinstance(least, str):
        return f"{least.replace('%', ' %')} of those who looked"
    return counted(least, "expert")


def _real_row(contents: Contents, size_class: str, words: str) -> list[Any]:
    """What is real, for comparison with the thresholds below it."""
    found = next(row for row in contents.summary["objects"] if row["size_class"] == size_class)
    seen = found["seen"]
    return [
        words,
        "anybody, and real",
        None,
        *estimate_of(seen).cells,
    ]


def _dbscan_cell(contents: Contents, min_experts: int | str, size_class: str) -> int | None:
    needed = contents.posterior.needed_experts(min_experts)
    labels = dbscan_labels(contents.dbscan, needed, contents.min_experts)
    if labels is None:
        return None
    counts = dbscan_counts(contents.posterior, labels)
    if size_class == "all":
        return int(counts.sum())
    return int(counts[contents.posterior.size_classes.names.index(size_class)])


def objects(contents: Contents) -> Section:
    """The catalogue: as maps where there are places, and its first rows."""
    catalogue, nouns = contents.catalogue, contents.nouns
    uncertainty = ", with the uncertainty of every number," if contents.digits else ""
    low, high = DOUBTFUL
    first = catalogue.sort_values("n_experts", ascending=False, kind="stable").head(MAX_ROWS)
    rows = object_table(contents, first)
    shown = "all" if len(first) == len(catalogue) else f"the first {len(first)}, most experts first"
    parts: list[Any] = [
        paragraph(
            f"The catalogue has {counted(len(catalogue), 'cluster')}. All of it{uncertainty} is "
            "in ",
            tag("code", "catalogue.csv"),
            f"; the cluster of every {contents.noun} is in ",
            tag("code", "members.csv"),
            ".",
        ),
        contents.figure(
            "catalogue_map",
            "Map of the catalogue",
            f"Every object of the catalogue. Blue: {_sure_words(contents)} with a probability of "
            f"{high:g} or more; vermilion: between {low:g} and {high:g}; grey: {low:g} or less.",
        ),
        contents.figure(
            "expert_panels",
            "One panel for each expert over a small region",
            f"A small region with one panel per expert: their own {nouns} in black, those of the "
            "others in grey. The number in the region is in brackets.",
        ),
        details(f"The objects ({shown})", rows) if contents.placed else rows,
    ]
    title = "Where are they?" if contents.placed else "What are they?"
    return Section("objects", title, join(parts))


def object_table(contents: Contents, rows: pandas.DataFrame) -> Markup:
    """Rows of the catalogue in its own columns."""
    sure_of = _sure_of(contents)
    columns = [
        Column("cluster"),
        *(_object_column(contents, name) for name in contents.described),
        Column("experts", note="in the catalogue"),
        Column(sure_of),
    ]
    body = [
        [
            int(row["cluster"]),
            *(_object_cell(contents, row, name) for name in contents.described),
            int(row["n_experts"]),
            probability(row[sure_of]),
        ]
        for row in rows.to_dict("records")
    ]
    return table(columns, body)


def _object_column(contents: Contents, name: str) -> Column:
    if name not in contents.digits:
        return Column(name, number=False)
    sized = name in contents.posterior.likelihood.positive
    return Column(f"{name} (95 %)" if sized else f"{name} ± sd")


def _object_cell(contents: Contents, row: Mapping[Hashable, Any], name: str) -> str:
    if name not in contents.digits:
        return str(row[name])
    digits = contents.digits[name]
    if name in contents.posterior.likelihood.positive:
        return str(estimate(row[name], row[f"{name}_lo"], row[f"{name}_hi"], digits))
    return f"{row[name]:.{digits}f} ± {row[f'{name}_sd']:.{digits}f}"


def _sure_of(contents: Contents) -> str:
    return "p_real" if contents.knows_reality else "p_consensus"


def _sure_words(contents: Contents) -> str:
    """What an object may be: real, or found by enough experts."""
    if contents.knows_reality:
        return "real"
    return contents.consensus_words


def _sure_clause(contents: Contents, what: str) -> str:
    """That it is so."""
    words = _sure_words(contents)
    return f"{what} is {words}" if contents.knows_reality else f"{words} share {what}"


def how_sure(contents: Contents) -> Section:
    """Undecided items and doubtful objects, and the distributions they are the tail of."""
    reality = "reality" if contents.knows_reality else "consensus"
    parts = [
        contents.figure(
            "certainty",
            "Histograms of membership and consensus probabilities",
            f"Left: how probable it is that {one(contents.noun)} belongs to the cluster it is "
            f"listed in. Right: how probable it is that {_sure_clause(contents, 'an object')}. The "
            "scales are logarithmic.",
        ),
        tag("h3", f"{contents.nouns.capitalize()} that are undecided"),
        _undecided(contents),
        _between_chains(contents),
        tag("h3", f"Objects whose {reality} is doubtful"),
        _doubtful(contents),
        *_doubles(contents),
        *_example(contents),
    ]
    return Section("how-sure", "How sure is it?", join(parts))


def _undecided(contents: Contents) -> Markup:
    found, total = contents.undecided, len(contents.posterior.items)
    if not found.size:
        return paragraph(
            f"None: every {contents.noun} belongs to its cluster with a probability of "
            f"{UNDECIDED:g} or more."
        )
    heads = ("cluster", "probability", "second best", "probability", "elsewhere")
    columns = [
        Column(contents.noun, number=False),
        Column("expert", number=False),
        *(
            Column(name, number=not contents.posterior.likelihood.text)
            for name in contents.posterior.items.columns
        ),
        *(Column(head) for head in heads),
    ]
    words = (
        f"{counted(found.size, contents.noun)} of {total:,} "
        f"{'belongs' if found.size == 1 else 'belong'} to the cluster listed with a probability "
        f"below {UNDECIDED:g}{_only(found.size)}."
    )
    rows = [_undecided_row(contents, int(i)) for i in found[:MAX_ROWS]]
    return join([paragraph(words), table(columns, rows)])


def _undecided_row(contents: Contents, i: int) -> list[Any]:
    items, member = contents.posterior.items, contents.posterior.membership
    own, other = contents.posterior.names(
        np.array([contents.posterior.point_partition().labels[i], member.second[i]])
    ).tolist()
    return [
        items.id[i],
        items.expert[i],
        *(_item_cell(contents, name, values[i]) for name, values in items.columns.items()),
        own,
        probability(float(member.p_member[i])),
        {ALONE: "alone", NOWHERE: "–"}.get(other, str(other)),
        probability(float(member.p_second[i])),
        probability(float(member.p_elsewhere[i])),
    ]


def _item_cell(contents: Contents, name: str, value: object) -> str:
    if name in contents.digits:
        return f"{value:.{contents.digits[name]}f}"
    return str(value) if contents.posterior.likelihood.text else f"{value:g}"


def _only(count: int) -> str:
    """What to say of a list that is cut short."""
    return "" if count <= MAX_ROWS else f"; the least certain {MAX_ROWS} are listed"


def _between_chains(contents: Contents) -> Markup:
    """Items that the chains place differently."""
    found = contents.posterior.verdict.undecided
    if not found:
        return Markup("")
    names = [contents.posterior.items.id[i] for i in found]
    many = counted(len(names), contents.noun)
    return paragraph(f"Undecided between chains ({many}): {listed(names, MAX_ROWS)}.")


def _doubtful(contents: Contents) -> Markup:
    catalogue = contents.catalogue
    low, high = DOUBTFUL
    p = catalogue[_sure_of(contents)].to_numpy()
    found = np.flatnonzero((p > low) & (p < high))
    found = found[np.argsort(np.abs(p[found] - 0.5), kind="stable")]
    if not found.size:
        return paragraph(
            "None: for every object it is practically certain whether "
            f"{_sure_clause(contents, 'it')}."
        )
    have = "has" if found.size == 1 else "have"
    words = (
        f"{counted(found.size, 'object')} of {len(catalogue):,} {have} a probability between "
        f"{low:g} and {high:g} that {_sure_clause(contents, 'it')}{_only(found.size)}."
    )
    return join([paragraph(words), object_table(contents, catalogue.iloc[found[:MAX_ROWS]])])


def _doubles(contents: Contents) -> list[Markup]:
    """Objects that one expert may have listed twice, where a rule keeps the two apart."""
    if not contents.posterior.prior.one_per_expert:
        return []
    found, noun, verb = contents.doubles, contents.noun, contents.verb
    head = tag("h3", "Possible duplicates")
    if not len(found):
        return [head, paragraph(f"None: no expert seems to have {verb} an object twice.")]
    *names, measure = found.columns
    more = "" if len(found) <= MAX_ROWS else f"; the clearest {MAX_ROWS} are listed"
    words = paragraph(
        f"{counted(len(found), noun)} may repeat an object that the same expert has {verb} already "
        f"(“other”, in the cluster given){more}. The rule that an expert has one {noun} per object "
        "keeps the two apart, so it counts as a separate object. If it is a mistake, delete it and "
        "fit again."
    )
    heads = [noun if name == "marking" else name for name in names]
    columns = [*(Column(name, number=False) for name in heads), Column(measure.replace("_", " "))]
    rows = [
        [*(row[name] for name in names), number(row[measure], 2)]
        for row in found.head(MAX_ROWS).to_dict("records")
    ]
    return [head, words, table(columns, rows)]


def _example(contents: Contents) -> list[Markup]:
    """The least certain item, explained."""
    if contents.example is None:
        return []
    noun = contents.noun
    figure = contents.figure(
        "coclustering",
        "Matrix of co-clustering probabilities",
        "Lines separate the clusters of the catalogue.",
    )
    return [
        tag("h3", f"The least certain {noun}, explained"),
        tag("pre", contents.example.text(), class_="text"),
        contents.figure(
            "neighbourhood",
            f"The least certain {noun} among its candidate clusters",
            f"Thick black: this {noun}. In colour: the clusters it may belong to.",
        ),
        contents.figure(
            "match_weights",
            f"What each field says on the clusters of the least certain {noun}",
            "Blue: the field speaks for one object, vermilion: for two; a weight of 1 doubles or "
            "halves the odds. The two values are parted by a slash where they differ.",
        ),
        details("How often its neighbours share a cluster", figure),
    ]


FILE = "size_frequency.csv"


def sizes(contents: Contents) -> Section | None:
    """The three customary size-frequency distributions, of objects with enough experts."""
    if "size_frequency" not in contents.pictures:
        return None
    who = "real objects" if contents.knows_reality else f"objects with {contents.consensus_words}"
    beside = f"thin lines: each expert's own {contents.nouns}"
    if contents.dbscan is not None:
        beside += "; dotted: DBSCAN's clusters"
    bins = "in bins a factor of √2 wide, from the first that was counted in full"
    whiskers = "vertical lines: counting error √n, which the band does not include"
    figures = [
        contents.figure(
            "size_frequency",
            "Cumulative size-frequency distribution",
            f"Cumulative. Blue: posterior mean and 95 % band of {who}; {beside}.",
        ),
        contents.figure(
            "size_differential",
            "Differential size-frequency distribution",
            f"Differential, {bins}. Blue: posterior mean and 95 % band of {who}; {whiskers}; "
            f"{beside}.",
        ),
        contents.figure(
            "size_relative",
            "R-plot of the size-frequency distribution",
            f"R-plot, {bins}; a flat line means that density falls with the cube of the diameter. "
            f"Blue: posterior mean and 95 % band of {who}; {whiskers}; {beside}.",
        ),
    ]
    words = paragraph(
        "Objects are counted in every draw, each with its diameter in that draw. The bands show "
        "the uncertainty in which objects exist and in how large they are. ",
        _units(contents),
        " The numbers, in other bins too, are in ",
        tag("code", FILE),
        ".",
    )
    return Section("sizes", "How large are they?", join([words, *figures]))


def _units(contents: Contents) -> str:
    site = contents.posterior.items.site
    scale = {
        "px": "Diameters are in the unit of the data, usually pixels.",
        "m": "Diameters are converted from m to km.",
        "km": "Diameters are in km.",
        "deg": "Diameters are in km.",
    }[site.units]
    if site.units == "px" and site.metres_per_pixel is not None:
        scale = f"Diameters are converted to km with {site.metres_per_pixel:g} m per pixel."
    if site.area_km2 is None:
        return f"{scale} The area is not known, so these are numbers, not densities."
    return f"{scale} Densities refer to an area of {significant(site.area_km2)} km²."


def size_table(contents: Contents) -> str:
    """Every kind of distribution in every binning as CSV."""
    out = io.StringIO()
    writer: csv.DictWriter[str] | None = None
    for kind in KINDS:
        for binning in (UNBINNED, *BINNINGS) if kind == "cumulative" else BINNINGS:
            table = prepare_sizes(
                contents.posterior,
                kind,
                binning=binning,
                dbscan=contents.dbscan,
                diameters=(0.0, math.inf),
            )
            for row in table.rows():
                if writer is None:
                    writer = csv.DictWriter(out, list(row), lineterminator="\n")
                    writer.writeheader()
                writer.writerow(
                    {k: f"{v:.6g}" if isinstance(v, float) else v for k, v in row.items()}
                )
    return out.getvalue()

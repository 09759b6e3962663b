"""Sections on items that are no circles, in the words of their own columns."""

from __future__ import annotations

from typing import Any

from dfcrp.markup import (
    Column,
    Markup,
    bullets,
    counted,
    details,
    join,
    listed,
    paragraph,
    probability,
    significant,
    table,
    tag,
)
from dfcrp.plots.catalogue_map import DOUBTFUL
from dfcrp.report.contents import Contents
from dfcrp.report.pictures import Picture
from dfcrp.report.section import Section
from dfcrp.report.sections.doubles import doubles
from dfcrp.report.sections.experts import agreement, expert_table
from dfcrp.report.sections.objects import MAX_ROWS, between_chains, count_table, only
from dfcrp.report.sections.run import model_head, run_words, source_words
from dfcrp.summaries.membership import ALONE, NOWHERE, UNDECIDED

#: Columns of a catalogue that say how sure a number is, or who listed the object.
_ENDINGS = ("_sd", "_lo", "_hi")
_ABOUT = ("cluster", "n_experts", "p_consensus", "experts", "stability")


def items_asked(contents: Contents, pictures: dict[str, Picture]) -> Section:
    """Data and settings in plain words."""
    posterior = contents.posterior
    items, least = posterior.markings, contents.min_experts
    words = [
        f"{counted(len(items), 'item')} ({posterior.config.run.likelihood}) by "
        f"{counted(len(items.experts), 'expert')}, each with {listed(described(contents))}.",
        *source_words(contents),
        model_head(contents),
        "An object counts as agreed on (consensus) if at least "
        f"{counted(least, 'expert')} listed it.",
        *run_words(contents),
    ]
    experts = details(
        f"The {counted(len(items.experts), 'expert')}", paragraph(listed(items.experts, 200))
    )
    parts: list[object] = [bullets(words), experts]
    if "items_map" in pictures:
        parts.append(
            pictures["items_map"].html(
                "Map of all items",
                f"All {counted(len(items), 'item')}. Lines darken where experts agree.",
            )
        )
    return Section("asked", "What was asked", join(parts))


def described(contents: Contents) -> list[str]:
    """The columns that describe an item."""
    names = list(contents.catalogue.columns)
    return [name for name in names if name not in _ABOUT and not name.endswith(_ENDINGS)]


def items_learned(contents: Contents, pictures: dict[str, Picture]) -> Section | None:
    """What was learned of the scatter of numbers, or the faults of fields."""
    found = contents.posterior.tolerances
    if not found:
        return None
    if contents.posterior.config.run.likelihood == "records":
        caption = (
            "Faults by field, in percent of the values: a miss is any other value, a slip a "
            "typing error or a number nearby."
        )
    else:
        caption = (
            "Standard deviation of items of one object, by column; a growth of 2 means that it "
            "goes in proportion to the size, and then it is that at the median size."
        )
    rows = [
        [name.replace("_", " "), *(significant(row[key], 3) for key in ("mean", "lo", "hi"))]
        for name, row in found.items()
    ]
    columns = [Column("", number=False), Column("mean"), Column("95 %: from"), Column("to")]
    return Section("learned", "How far do items scatter?", table(columns, rows, caption))


def items_counted(contents: Contents, pictures: dict[str, Picture]) -> Section:
    """Counts by threshold."""
    return Section("how-many", "How many objects?", count_table(contents))


def items_listed(contents: Contents, pictures: dict[str, Picture]) -> Section:
    """The catalogue: a map where there are places, and its first rows."""
    catalogue = contents.catalogue
    by_size = catalogue.sort_values("n_experts", ascending=False, kind="stable")
    parts: list[object] = [
        paragraph(
            f"The published partition has {counted(len(catalogue), 'cluster')}. All of them, with "
            "the uncertainty of every number, are in ",
            tag("code", "catalogue.csv"),
            "; where every item went is in ",
            tag("code", "members.csv"),
            ".",
        )
    ]
    if "catalogue_map" in pictures:
        low, high = DOUBTFUL
        parts += [
            pictures["catalogue_map"].html(
                "Map of the catalogue",
                "Every object of the catalogue. Blue: at least "
                f"{counted(contents.min_experts, 'expert')} with a probability of {high:g} or "
                f"more; vermilion: between {low:g} and {high:g}; grey: {low:g} or less.",
            ),
            pictures["expert_panels"].html(
                "One panel for each expert over a small region",
                "A small region, expert by expert: black is this expert's, grey the others'; in "
                "brackets how many lie inside.",
            ),
        ]
    parts.append(_objects(contents, by_size.head(MAX_ROWS)))
    return Section("objects", "What are they?", join(parts))


def _objects(contents: Contents, rows: Any) -> Markup:
    """Rows of the catalogue."""
    names = described(contents)
    columns = [
        Column("cluster"),
        *(Column(f"{n} ± sd" if f"{n}_sd" in rows else n) for n in names),
        Column("experts"),
        Column("p_consensus"),
    ]
    body = [
        [
            row["cluster"],
            *(_cell(row, name) for name in names),
            row["n_experts"],
            probability(row["p_consensus"]),
        ]
        for row in rows.to_dict("records")
    ]
    whole = len(contents.catalogue)
    caption = "" if len(body) >= whole else f"{len(body)} of {whole:,}, most experts first."
    return table(columns, body, caption)


def _cell(row: dict[str, Any], name: str) -> str:
    if f"{name}_sd" not in row:
        return str(row[name])
    return f"{significant(row[name], 5)} ± {significant(row[f'{name}_sd'], 2)}"


def items_sure(contents: Contents, pictures: dict[str, Picture]) -> Section:
    """Undecided items, doubtful objects, suspected doubles."""
    p = contents.catalogue["p_consensus"].to_numpy()
    low, high = DOUBTFUL
    doubtful = contents.catalogue[(p > low) & (p < high)]
    parts = [
        pictures["certainty"].html(
            "Histograms of membership and consensus probabilities",
            "Left: how probable it is that an item belongs to the cluster it is listed in. Right: "
            f"how probable it is that at least {counted(contents.min_experts, 'expert')} share an "
            "object. The scales are logarithmic.",
        ),
        tag("h3", "Items that are undecided"),
        _undecided(contents),
        between_chains(contents),
        tag("h3", "Objects whose consensus is doubtful"),
        paragraph(
            f"{counted(len(doubtful), 'object')} of {len(p):,} with a probability between {low:g} "
            f"and {high:g} of at least {counted(contents.min_experts, 'expert')}"
            f"{only(len(doubtful))}."
        ),
        _objects(contents, doubtful.head(MAX_ROWS)) if len(doubtful) else "",
        doubles(contents),
    ]
    return Section("how-sure", "How sure is it?", join(parts))


def _undecided(contents: Contents) -> Markup:
    """Items that are not sure of their cluster, least sure first."""
    found, member = contents.undecided, contents.posterior.membership
    if not found.size:
        return paragraph(
            f"None: every item belongs to its cluster with a probability of {UNDECIDED:g} or more."
        )
    items, labels = contents.posterior.markings, contents.posterior.point_partition().labels
    rows = []
    for i in found[:MAX_ROWS]:
        second = {ALONE: "alone", NOWHERE: "–"}.get(int(member.second[i]), str(member.second[i]))
        chances = [probability(float(p[i])) for p in (member.p_member, member.p_second)]
        rows.append([items.id[i], items.expert[i], labels[i], chances[0], second, chances[1]])
    columns = [Column(name, number=False) for name in ("item", "expert")]
    columns += [Column(n) for n in ("cluster", "probability", "second best", "probability")]
    words = (
        f"{counted(found.size, 'item')} of {len(items):,} with a probability below "
        f"{UNDECIDED:g}{only(int(found.size))}."
    )
    return join([paragraph(words), table(columns, rows)])


def items_experts(contents: Contents, pictures: dict[str, Picture]) -> Section:
    """The table of experts and their agreement, pair by pair."""
    parts = [expert_table(contents), *agreement(contents, pictures)]
    return Section("experts", "How do the experts compare?", join(parts))

"""Section on categories: how many objects are of each, and who takes what for what."""

from __future__ import annotations

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
    table,
    with_interval,
)
from dfcrp.posterior.categories import CategorySummary
from dfcrp.report.contents import Contents
from dfcrp.summaries.streaming import summarise

#: Experts and categories in the tables; the files hold them all.
MAX_ROWS = 100
MAX_SHOWN = 8
#: Below this the category of an object is in doubt.
SURE = 0.9


def categories(contents: Contents) -> Section | None:
    """Nothing if the items have no categories, or images were drawn each by itself."""
    found = contents.posterior.categories
    if found is None:
        return None
    parts = [_words(contents, found), _shares(contents, found), _experts(found)]
    return Section("categories", "What are the objects?", join(parts))


def _words(contents: Contents, found: CategorySummary) -> Markup:
    p = contents.catalogue["p_category"].to_numpy()
    doubtful = int((p < SURE).sum())
    how = (
        "Categories and clusters were found together: experts who say the same are more readily "
        "taken to mean one object."
        if found.in_clusters
        else "Clusters were found without the categories, which were then found from what the "
        "experts in a cluster say: this prior knows nothing of categories."
    )
    return paragraph(
        f"The items name {len(found.names):,} categories. {how} An expert's "
        f"word is weighted by their accuracy, which is learned. Of "
        f"{counted(len(p), 'object')} in the catalogue {doubtful:,} are of their most probable "
        f"category with a probability below {SURE} (p_category)."
    )


def _shares(contents: Contents, found: CategorySummary) -> Markup:
    """Objects of each category, weighed by their probability; real ones where that is known."""
    table_of = contents.posterior.category_probabilities()
    real = contents.catalogue.get("p_real")
    weight = np.ones(len(table_of)) if real is None else real.to_numpy()
    expected = np.array([(table_of[name].to_numpy() * weight).sum() for name in found.names])
    said = found.said.sum(axis=0)
    order = np.argsort(-expected, kind="stable")[:MAX_ROWS]
    rows = [[found.names[c], number(float(expected[c]), 1), number(int(said[c]))] for c in order]
    what = "Expected number of real objects" if real is not None else "Expected number of clusters"
    return table(
        [Column("category", number=False), Column("objects"), Column(contents.nouns)],
        rows,
        f"{what} in the catalogue that are of each category, and how many {contents.nouns} say so.",
    )


def _experts(found: CategorySummary) -> Markup:
    """The most reliable first: how often right, in each category, and the commonest mistake."""
    right = summarise(found.accuracy)
    order = np.argsort(-right.mean, kind="stable")
    if len(order) > MAX_ROWS:
        order = np.concatenate([order[: MAX_ROWS // 2], order[-MAX_ROWS // 2 :]])
    usual = found.confusion.mean(axis=0)
    most = np.argsort(-found.said.sum(axis=0), kind="stable")[:MAX_SHOWN]
    rows = []
    for f in order:
        wrong = np.where(np.eye(len(found.names), dtype=bool), 0.0, usual[f])
        c, said = np.unravel_index(wrong.argmax(), wrong.shape)
        rows.append(
            [
                found.experts[f],
                number(int(found.said[f].sum())),
                *estimate(right.mean[f], right.lo[f], right.hi[f], 2).cells,
                *(number(float(usual[f, at, at]), 2) for at in most),
                f"{found.names[c]} taken for {found.names[said]}: {100 * wrong[c, said]:.0f} %",
            ]
        )
    caption = (
        "How often an expert names the right category of an object that they list: over all "
        "categories, each counting alike, and of objects of each; and the commonest mistake. "
        "confusions.csv has every matrix, with intervals."
    )
    if len(found.experts) > MAX_ROWS:
        caption += f" The {MAX_ROWS // 2} best and worst."
    columns = [
        Column("expert", number=False),
        Column("categories named"),
        with_interval("right"),
        *(Column(found.names[at]) for at in most),
    ]
    return table([*columns, Column("mistake", number=False)], rows, caption)

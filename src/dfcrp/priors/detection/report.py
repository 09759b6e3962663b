"""Section of the report on what is real and what was missed."""

from __future__ import annotations

from typing import Any

import numpy as np

from dfcrp.markup import (
    Column,
    Markup,
    Section,
    counted,
    interval,
    join,
    number,
    paragraph,
    plural,
    table,
)
from dfcrp.priors.detection.answers import DetectionSummary

#: Experts in the table; the file holds them all.
MAX_ROWS = 100
#: Above and below these a cluster is called real or false.
SURELY, HARDLY = 0.9, 0.1


def detection(contents: Any) -> Section:
    """Objects seen and missed, false marks, the experts' sensitivities, and how well it fits."""
    found: DetectionSummary = contents.posterior.detection
    verb = contents.posterior.likelihood.verb
    parts: list[object] = [
        _words(contents),
        _objects(contents, found),
        _experts(contents, found),
        contents.figure(
            "sensitivity",
            f"Probability to be {verb}, by diameter, for each expert",
            f"How likely an object of a given diameter is to be {verb} by each expert (posterior "
            "mean and 95 % interval); the other experts in grey.",
        ),
        contents.figure(
            "corrected_sizes",
            "Cumulative size-frequency distribution, seen and corrected",
            f"Real objects of at least a given diameter: those that somebody {verb}, and with "
            "those that nobody did (posterior mean and 95 % interval).",
        ),
        _fit_words(found),
        contents.figure(
            "cluster_sizes",
            "Number of clusters by number of experts, observed and predicted",
            "Clusters by the number of experts who share them: observed, and what new data from "
            "the fitted model would show in 95 % of the cases.",
        ),
    ]
    return Section("real", "What is real, and how many were missed?", join(parts))


def _words(contents: Any) -> Markup:
    p = contents.catalogue["p_real"].to_numpy()
    surely, hardly = int((p > SURELY).sum()), int((p < HARDLY).sum())
    between = len(p) - surely - hardly
    return paragraph(
        f"Of {counted(len(p), 'cluster')} in the catalogue {surely:,} are real with a probability "
        f"above {SURELY}, {hardly:,} with one below {HARDLY}, and {between:,} are in between "
        "(p_real). This takes the place of a threshold on the number of experts."
    )


def _objects(contents: Any, found: DetectionSummary) -> Markup:
    words = contents.posterior.size_classes.described
    by_class = len(words) > 1
    rows = []
    for row in found.numbers()["objects"]:
        cells: list[object] = [words[row["size_class"]]] if by_class else []
        for name in ("seen", "missed", "total"):
            cells += [number(row[name]["mean"], 1), interval(row[name]["lo"], row[name]["hi"])]
        rows.append(cells)
    heads = ("seen by somebody", "95 %", "missed by all", "95 %", "in all", "95 %")
    return table(
        [*[Column("size class", number=False)] * by_class, *(Column(head) for head in heads)],
        rows,
        "Number of real objects: posterior mean and 95 % credible interval.",
    )


def _experts(contents: Any, found: DetectionSummary) -> Markup:
    items, likelihood = contents.posterior.items, contents.posterior.likelihood
    nouns = plural(likelihood.noun)
    count = np.bincount(items.families)
    shared = len(found.persons.names) < len(items.experts)
    rows = []
    for f in np.argsort(count, kind="stable")[-MAX_ROWS:]:
        said = found.expert(int(f))
        cells: list[object] = [items.experts[f], number(int(count[f]))]
        for name, digits in (("sensitivity", 2), ("false_marks", 1)):
            cells += [
                number(said[name]["mean"], digits),
                interval(said[name]["lo"], said[name]["hi"], 2 if digits == 2 else None),
            ]
        if shared:
            by_person = said.get("shared_noticing", {})
            cells.append(number(by_person.get("mean"), 2))
        rows.append(cells)
    heads = [nouns, "sensitivity", "95 %", "false marks", "95 %"]
    caption = (
        f"Sensitivity: share of all real objects, seen or missed, that the expert "
        f"{likelihood.verb}. False marks: {nouns} of the expert that are no object's."
    )
    if shared:
        heads.append("shared noticing")
        caption += (
            " Shared noticing: of what two lists of one person have in common, the part that is "
            "there because the person noticed it once."
        )
    return table([Column("expert", number=False), *(Column(head) for head in heads)], rows, caption)


def _fit_words(found: DetectionSummary) -> Markup:
    rows = found.fit_of_sizes()
    outside = [str(row["size"]) for row in rows if not row["inside"]]
    words = (
        "All numbers of clusters lie within what the model predicts."
        if not outside
        else f"Outside what the model predicts: clusters of {', '.join(outside)} "
        f"({len(outside)} of {counted(len(rows), 'size')})."
    )
    more = (
        " If many do not, objects differ in ways that the model does not know, or experts did "
        "not look independently: allow for more classes, or say whose lists are one person's."
    )
    return paragraph(words + more)

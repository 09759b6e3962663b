"""Section on what is real and what was missed; only where the prior answers that."""

from __future__ import annotations

import numpy as np

from dfcrp.markup import Column, Markup, counted, interval, join, number, paragraph, table
from dfcrp.plots.counts_by_size import class_bounds
from dfcrp.priors.detection.answers import DetectionSummary
from dfcrp.report.contents import Contents
from dfcrp.report.pictures import Picture
from dfcrp.report.section import Section

#: Experts in the table; the file holds them all.
MAX_ROWS = 100
#: Above and below these a cluster is called real or false.
SURELY, HARDLY = 0.9, 0.1


def detection(contents: Contents, pictures: dict[str, Picture]) -> Section | None:
    """Objects seen and missed, false marks, the experts' sensitivities, and how well it fits."""
    found = contents.posterior.detection
    if found is None:
        return None
    parts: list[object] = [
        _words(contents, found),
        _objects(contents, found),
        _experts(contents, found),
        pictures["sensitivity"].html(
            "Probability to be marked, by diameter, for each expert",
            "How likely each expert is to mark an object of a given diameter (posterior mean and "
            "95 % interval); the other experts in grey.",
        ),
        pictures["corrected_sizes"].html(
            "Cumulative size-frequency distribution, seen and corrected",
            "Real objects of at least a given diameter: those that somebody marked, and with "
            "those that nobody did (posterior mean and 95 % interval).",
        ),
        _fit_words(found),
        pictures["cluster_sizes"].html(
            "Number of clusters by number of experts, observed and predicted",
            "Clusters by the number of experts who share them: observed, and what new data from "
            "the fitted model would show in 95 % of the cases.",
        ),
    ]
    return Section("real", "What is real, and how many were missed?", join(parts))


def _words(contents: Contents, found: DetectionSummary) -> Markup:
    p = contents.catalogue["p_real"].to_numpy()
    surely, hardly = int((p > SURELY).sum()), int((p < HARDLY).sum())
    between = len(p) - surely - hardly
    return paragraph(
        f"Of {counted(len(p), 'cluster')} in the catalogue {surely:,} are real with a probability "
        f"above {SURELY}, {hardly:,} with one below {HARDLY}, and {between:,} are in between "
        "(p_real). This takes the place of a threshold on the number of experts."
    )


def _objects(contents: Contents, found: DetectionSummary) -> Markup:
    classes = contents.posterior.size_classes
    words = {"all": "all"}
    if classes.edges:
        bounds = class_bounds(classes.edges)
        words |= {n: f"{n} ({b})" for n, b in zip(classes.names, bounds, strict=True)}
    rows = []
    for row in found.numbers()["objects"]:
        cells: list[object] = [words[row["size_class"]]]
        for name in ("seen", "missed", "total"):
            cells += [number(row[name]["mean"], 1), interval(row[name]["lo"], row[name]["hi"])]
        rows.append(cells)
    heads = ("seen by somebody", "95 %", "missed by all", "95 %", "in all", "95 %")
    return table(
        [Column("size class", number=False), *(Column(head) for head in heads)],
        rows,
        "Number of real objects: posterior mean and 95 % credible interval.",
    )


def _experts(contents: Contents, found: DetectionSummary) -> Markup:
    markings = contents.posterior.markings
    count = np.bincount(markings.families)
    shared = len(found.persons.names) < len(markings.experts)
    rows = []
    for f in np.argsort(count, kind="stable")[-MAX_ROWS:]:
        said = found.expert(int(f))
        cells: list[object] = [markings.experts[f], number(int(count[f]))]
        for name, digits in (("sensitivity", 2), ("false_marks", 1)):
            cells += [
                number(said[name]["mean"], digits),
                interval(said[name]["lo"], said[name]["hi"], 2 if digits == 2 else None),
            ]
        if shared:
            by_person = said.get("shared_noticing", {})
            cells.append(number(by_person.get("mean"), 2))
        rows.append(cells)
    heads = ["markings", "sensitivity", "95 %", "false marks", "95 %"]
    caption = (
        "Sensitivity: share of all real objects, seen or missed, that the expert marked. False "
        "marks: markings of the expert that are no object's."
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

"""Section of the report on what is real and what was missed."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dfcrp.markup import (
    Column,
    Markup,
    Section,
    counted,
    estimate,
    estimate_of,
    join,
    number,
    one,
    paragraph,
    plural,
    significant,
    table,
    with_interval,
)
from dfcrp.priors.detection.answers import (
    DetectionSummary,
    assumed_looks,
    careless_words,
    finds_nothing,
    looks_words,
    mostly_false,
    priors_laid_out,
)
from dfcrp.priors.detection.fit import FINDERS
from dfcrp.priors.detection.settings import LEARNED_SIZES
from dfcrp.summaries.streaming import summarise

if TYPE_CHECKING:
    from dfcrp.items.items import Items
    from dfcrp.report.contents import Contents

#: Experts in the table; the file holds them all.
MAX_ROWS = 100
#: Images in the table of those that need more looks.
MAX_IMAGES = 15
#: Above and below these a cluster is called real or false.
SURELY, HARDLY = 0.9, 0.1
#: Sizes of so many false marks, at least, are told. They differ from those of all items if the
#: medians lie further apart than this many standard deviations of log sizes.
LEAST_FALSE, FAR_APART = 10, 0.25


def detection(contents: Contents) -> Section:
    """Objects seen and missed, false marks, the experts' sensitivities, and how well it fits."""
    found = contents.posterior.detection
    assert found is not None  # as under this prior
    verb = contents.posterior.likelihood.verb
    size = contents.posterior.likelihood.size_label
    parts: list[object] = [
        _words(contents),
        _objects(contents, found),
        _decoys(contents, found),
        _looks(contents),
        _sizes(contents, found),
        _experts(contents, found),
        contents.figure(
            "skills",
            "Sensitivity and false marks of the experts",
            f"Probability that an expert {verb} an object where they looked, and false marks per "
            f"{contents.image_word} (posterior mean and 95 % interval). The expert who finds most "
            "comes first; looks are in brackets. Experts whose marks are mostly false are orange.",
        ),
        _images(contents, found),
        contents.figure(
            "sensitivity",
            f"Probability of being {verb}, by size, for each expert",
            f"How likely an object of a given {size} is to be {verb} by each expert (posterior "
            "mean and 95 % interval); the other experts in grey.",
        ),
        contents.figure(
            "corrected_sizes",
            "Cumulative size-frequency distribution, seen and corrected",
            f"Real objects of at least a given {size}: those that somebody {verb}, and with "
            "those that nobody did (posterior mean and 95 % interval).",
        ),
        _scores(contents),
        _fit_words(contents),
        contents.figure(
            "cluster_sizes",
            "Number of clusters by number of experts, observed and predicted",
            "Clusters by the number of experts who share them: observed, and what new data from "
            "the fitted model would show in 95 % of the cases.",
        ),
    ]
    return Section("real", "What is real, and how many were missed?", join(parts))


def _words(contents: Contents) -> Markup:
    p = contents.catalogue["p_real"].to_numpy()
    surely, hardly = int((p > SURELY).sum()), int((p < HARDLY).sum())
    between = len(p) - surely - hardly
    return paragraph(
        f"Of {counted(len(p), 'cluster')} in the catalogue {surely:,} are real with a probability "
        f"above {SURELY}, {hardly:,} with one below {HARDLY}, and {between:,} are in between "
        "(p_real). This takes the place of a threshold on the number of experts."
    )


def _objects(contents: Contents, found: DetectionSummary) -> Markup:
    words = contents.posterior.size_classes.described
    by_class = len(words) > 1
    rows = []
    for row in found.numbers()["objects"]:
        cells: list[object] = [words[row["size_class"]]] if by_class else []
        for name in ("seen", "missed", "total"):
            cells += estimate_of(row[name]).cells
        rows.append(cells)
    heads = map(with_interval, ("seen by somebody", "missed by everyone", "in all"))
    return table(
        [*[Column("size class", number=False)] * by_class, *heads],
        rows,
        "Number of real objects: posterior mean and 95 % credible interval.",
    )


def _decoys(contents: Contents, found: DetectionSummary) -> Markup:
    """What several experts mark by mistake."""
    said = summarise(found.decoys)
    if not found.decoys.any():
        return Markup("")
    each = estimate(said.mean, said.lo, said.hi).cells
    return paragraph(
        f"Besides, {each[0]} clusters (95 %: {each[1]}) are probably decoys: what experts mark by "
        "mistake, and more readily the more false marks they make elsewhere. They are not real, "
        "though several experts may share them."
    )


def _looks(contents: Contents) -> Markup:
    """Whether it is known who looked, and who marks mostly what is not there."""
    posterior = contents.posterior
    items, verb = posterior.items, posterior.likelihood.verb
    looks = items.looks
    word = contents.image_word
    images = counted(len(looks.images), word)
    if items.looked is None and len(looks.images) > 1:
        said = looks_words(assumed_looks(posterior), assumed=True)
        words = " ".join(said) or (
            f"Nothing says who looked at which of the {images}, so an expert counts as having "
            f"looked at {one(word)} if they {verb} something on it. Experts who looked and found "
            "nothing are not counted, so sensitivities are too high. Give `--looked` if you know "
            "who looked."
        )
    elif items.looked is None:
        words = f"It is assumed that every expert looked at the whole {word}."
    else:
        empty = len(looks.images) - len(set(looks.image.tolist()))
        words = f"{len(looks.pairs):,} looks at {images} by {counted(len(items.experts), 'expert')}"
        words += f"; on {empty:,} of the {plural(word)} nobody {verb} anything." if empty else "."
        words += _parts_words(items, word)
    careless = careless_words(mostly_false(posterior), finds_nothing(posterior))
    return paragraph(" ".join([words, *careless]))


def _sizes(contents: Contents, found: DetectionSummary) -> Markup:
    """What was assumed of sizes, and whether that seems to hold."""
    posterior = contents.posterior
    log_sizes = posterior.likelihood.log_sizes(posterior.items)
    priors = list(priors_laid_out(posterior))
    if log_sizes is None or all(len(prior.away) == 1 for prior in priors):
        return Markup("")
    nouns, word = plural(posterior.likelihood.noun), posterior.likelihood.size_word
    learned = any(math.isfinite(prior.beliefs.size_weight) for prior in priors)
    if learned:
        words = (
            f"The {word}s of objects and those of false marks have separate size distributions, "
            "which were learned (size_weight)."
        )
        other = f'both have the {word}s of all {nouns} (size_weight = "held" in the settings)'
    else:
        words = (
            f"Objects and false marks were taken to have {word}s like those of all {nouns} "
            '(size_weight = "held"): nothing was learned of this.'
        )
        other = f"the laws are learned (size_weight = {LEARNED_SIZES:g} in the settings)"
    middle, spread = float(np.median(log_sizes)), float(np.std(log_sizes))
    of_false = weighted_median(log_sizes, np.nan_to_num(1.0 - found.p_real_marking))
    if summarise(found.false[:, 0].sum(axis=1)).mean >= LEAST_FALSE:
        words += (
            f" The median {word} is {significant(math.exp(of_false), 3)} among false marks and "
            f"{significant(math.exp(middle), 3)} among all {nouns}."
        )
        if abs(of_false - middle) > FAR_APART * spread:
            words += f" As these differ, the numbers depend on it: compare a run in which {other}."
    return paragraph(words)


def weighted_median(values: NDArray[np.float64], weights: NDArray[np.float64]) -> float:
    """The value with half of the weight at or below it."""
    order = np.argsort(values, kind="stable")
    total = np.cumsum(weights[order])
    return float(values[order[np.searchsorted(total, 0.5 * total[-1])]])


def _parts_words(items: Items, word: str) -> str:
    """What looks at parts of images mean for the numbers."""
    if items.footprints is None:
        return ""
    part, whole = len(items.footprints), len(items.looks.pairs) - len(items.footprints)
    return (
        f" {part:,} of the looks are at a part of {one(word)}, {whole:,} at all of it. An expert "
        "missed only objects in the part that they looked at, and objects are counted where "
        "somebody looked."
    )


def _experts(contents: Contents, found: DetectionSummary) -> Markup:
    """The experts, the one who finds most first."""
    items, likelihood = contents.posterior.items, contents.posterior.likelihood
    nouns = plural(likelihood.noun)
    count = np.bincount(items.families, minlength=len(items.experts))
    several = len(items.looks.images) > 1
    shared = len(found.persons.names) < len(items.experts)
    finds = np.nan_to_num(summarise(found.sensitivity[:, 0]).mean, nan=-1.0)
    order = np.argsort(-finds, kind="stable")
    if len(order) > MAX_ROWS:  # the best and the worst
        order = np.concatenate([order[: MAX_ROWS // 2], order[-MAX_ROWS // 2 :]])
    shown = [("sensitivity", 2), ("false_marks_per_image" if several else "false_marks", 2)]
    rows, every = [], found.experts()
    for f in order:
        said = every[f]
        cells: list[object] = [items.experts[f], number(int(count[f]))]
        if several:
            cells.append(number(said["looks"]))
        for name, digits in shown:
            cells += estimate_of(said[name], digits).cells
        if shared:
            by_person = said.get("shared_noticing", {})
            cells.append(number(by_person.get("mean"), 2))
        rows.append(cells)
    word = contents.image_word
    false = f"false marks per {word}" if several else "false marks"
    columns = [Column("expert", number=False), *map(Column, [nouns, *["looks"] * several])]
    columns += map(with_interval, ("sensitivity", false))
    caption = (
        "Sensitivity: probability that the expert has a real object of these data on their list"
        f"{f', on {one(word)} that they look at' * several}; the one who finds most comes first. "
        f"False marks: {nouns} of the expert that belong to no object."
    )
    if len(items.experts) > MAX_ROWS:
        caption += f" The {MAX_ROWS // 2} best and worst; experts.csv has all."
    if shared:
        columns.append(Column("shared noticing"))
        caption += (
            " Shared noticing: the part of what two lists of one person have in common that comes "
            "from noticing it once."
        )
    return table(columns, rows, caption)


def _scores(contents: Contents) -> Markup:
    """What the sources' scores say, if they have any."""
    found: Markup = contents.figure(
        "scores",
        "Probability of being real by score, for each source",
        "How likely a source's marking is real, by its score alone (posterior mean and 95 % "
        "interval), and the mean p_real of its markings at each score (points), which also takes "
        "the other lists into account. A flat line means that the scores say nothing.",
    )
    return found


def _images(contents: Contents, found: DetectionSummary) -> Markup:
    """Which images need more looks."""
    posterior = contents.posterior
    if found.seen_on is None or found.missed_on is None:
        return Markup("")
    asked, looks = posterior.config.summary, posterior.items.looks
    done = found.retired(asked)
    viewers = np.bincount(looks.pairs[:, 0], minlength=len(looks.images))
    number_of = {name: at for at, name in enumerate(looks.images)}
    words = paragraph(
        f"{int(done.sum()):,} of {counted(len(done), contents.image_word)} need no more looks: "
        f"the probability that nothing was missed is at least {asked.retire_complete:g}, and "
        f"the probability that all is real or false as listed at least {asked.retire_settled:g} "
        "(retire in images.csv)."
    )
    order = [at for at in np.argsort(-found.look_value, kind="stable") if not done[at]]
    rows = []
    for at in order[:MAX_IMAGES]:
        total = summarise(found.seen_on[:, at] + found.missed_on[:, at])
        rows.append(
            [
                found.image_names[at],
                number(int(viewers[number_of[found.image_names[at]]])),
                *estimate(total.mean, total.lo, total.hi).cells,
                number(found.p_complete[at], 2),
                number(found.p_settled[at], 2),
                number(found.look_value[at], 2),
            ]
        )
    if not rows:
        return words
    columns = [
        Column(contents.image_word, number=False),
        Column("looks"),
        with_interval("objects"),
        *map(Column, ("P(none missed)", "P(as listed)", "gain of a look")),
    ]
    return join(
        [
            words,
            table(
                columns,
                rows,
                f"{plural(contents.image_word).capitalize()} where one more look helps most. The "
                "gain is how much the variance of the number of objects is expected to fall if one "
                "more typical expert looks (look_value in images.csv).",
            ),
        ]
    )


def _fit_words(contents: Contents) -> Markup:
    """Whether numbers of finders are as predicted; all checks have a section of their own."""
    said = [one.words for one in contents.posterior.model_fit.checks if one.check == FINDERS]
    return paragraph(*said) if said else Markup("")

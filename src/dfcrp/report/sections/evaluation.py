"""How right the answer is, where ``dfcrp evaluate`` has compared it with the truth."""

from __future__ import annotations

import json
from pathlib import Path

from dfcrp.evaluation.result import Evaluation
from dfcrp.files import write_text
from dfcrp.markup import (
    Column,
    Markup,
    Section,
    counted,
    details,
    interval,
    join,
    number,
    paragraph,
    significant,
    table,
)
from dfcrp.posterior.posterior import Posterior
from dfcrp.report.contents import Contents
from dfcrp.report.sections.ages import made_of
from dfcrp.values import Json

FILE, FIGURE = "evaluation.json", "evaluation"
#: Rows of a table in the page; the file holds all.
MAX_ROWS = 100
NAMES = {"precision": "precision", "recall": "recall", "f1": "F1"}


def write_evaluation(folder: Path, posterior: Posterior, found: Evaluation) -> None:
    """Keep what the report shows, with what it was made of."""
    content = {**found, "made_of": made_of(posterior)}
    write_text(folder, FILE, json.dumps(content, indent=1) + "\n")


def read_evaluation(folder: Path, posterior: Posterior) -> Evaluation | None:
    """What was kept; None if there is nothing, or if it is of other draws than these."""
    try:
        content: Json = json.loads((folder / FILE).read_text("utf-8"))
        kept = content.pop("made_of") == made_of(posterior)
        return Evaluation(content) if kept and "f1" in content else None
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def how_right(contents: Contents) -> Section | None:
    """Counts, calibration, and what is easy and what is hard."""
    found = contents.evaluation
    if found is None:
        return None
    parts = [_words(found), _rates(found), _figure(contents, found)]
    parts += [_totals(found), _classes(found), _images(found)]
    return Section("how-right", "How right is it?", join(parts))


def _words(found: Json) -> Markup:
    what = "links" if "pairwise" in found else "objects"
    left = found.get("n_images_left_out", 0)
    without = f" {counted(left, 'image')} that the truth does not name are left out." * bool(left)
    return paragraph(
        f"Compared with {found['truth']}: {found['rule_words']}. Listed: {found['listed']}. "
        f"{found['n_true']:,} true {what}, {found['n_listed']:,} listed, {found['n_right']:,} of "
        f"them right.{without}"
    )


def _rates(found: Json) -> Markup:
    rows: list[list[object]] = []
    parts = [("", found)] if "pairwise" not in found else [("pairs: ", found["pairwise"])]
    if found.get("bcubed"):
        parts.append(("B-cubed: ", found["bcubed"]))
    for before, part in parts:
        for key, name in NAMES.items():
            held = part["intervals"][key]
            between = interval(held["lo"], held["hi"], 3) if held else "–"
            rows.append([before + name, number(part[key], 3), between])
    for key, name in (
        ("average_precision", "average precision"),
        ("brier", "Brier score"),
        ("calibration_error", "expected calibration error"),
    ):
        if found.get(key) is not None:
            rows.append([name, number(found[key], 3), "–"])
    sure = found.get("sure")
    if sure and sure["n"]:
        words = f"right of the {sure['n']:,} with {found['score']} ≥ {sure['least']:g}"
        rows.append([words, f"{100 * sure['right']:.1f} %", "–"])
    columns = [
        Column("measure", number=False),
        Column("value"),
        Column("95 %", note=f"from resampling the {found['bootstrap']}"),
    ]
    return table(columns, rows)


def _figure(contents: Contents, found: Json) -> Markup:
    return contents.figure(
        FIGURE,
        "Calibration and precision against recall",
        "Left: share that is right against the probability that was given, with two standard "
        "errors and the number in each bin; on the line the probabilities hold. Right: precision "
        f"against recall, from the highest {found['score']} to the lowest; dot: what is listed.",
    )


def _totals(found: Json) -> Markup:
    total = found.get("n_total")
    if total is None:
        return Markup("")
    held = "holds" if total["covers"] else "does not hold"
    what = "Links" if "pairwise" in found else "Objects"
    between = interval(total["lo"], total["hi"])
    words = (
        f"{what} in all, as estimated: {number(total['mean'])} ({between}); "
        f"true: {total['true']:,}. The interval {held} the truth."
    )
    counts = found.get("counts", {})
    if found.get("n_images", 1) > 1 and "total" in counts:
        share = 100 * counts["total"]["coverage"]
        words += f" The 95 % intervals of images hold the true number on {share:.0f} % of them."
    return paragraph(words)


def _classes(found: Json) -> Markup:
    """By size and by category."""
    rows = [
        (f"{row['size_class']} ({significant(row['from'], 3)} to {significant(row['to'], 3)})", row)
        for row in found.get("by_size", ())
    ]
    categories = found.get("by_category")
    if categories is not None:
        rows += [(row["category"], row) for row in categories["categories"][:MAX_ROWS]]
    if not rows:
        return Markup("")
    columns = [
        Column("class", number=False),
        Column("true"),
        Column("listed"),
        Column("precision", note="of what is listed in this class"),
        Column("recall", note="of what is true in this class"),
    ]
    return table(columns, [
        [name, number(row["n_true"]), number(row["n_listed"]), number(row["precision"], 3),
         number(row["recall"], 3)]
        for name, row in rows
    ])  # fmt: skip


def _images(found: Json) -> Markup:
    """The images with the most errors."""
    rows = found.get("by_image", ())
    if len(rows) < 2:
        return Markup("")

    def errors(row: Json) -> int:
        return int(row["n_listed"] + row["n_true"] - 2 * row["n_right"])

    worst = sorted(rows, key=errors, reverse=True)[:MAX_ROWS]
    columns = [
        Column("image", number=False),
        *(Column(name) for name in ("true", "listed", "right", "estimated in all", "95 %")),
    ]
    body = []
    for row in worst:
        total = row.get("n_total")
        between = interval(total["lo"], total["hi"]) if total else "–"
        counts = [number(row[key]) for key in ("n_true", "n_listed", "n_right")]
        body.append([row["image"], *counts, number(total["mean"], 1) if total else "–", between])
    return details("The images with the most errors", table(columns, body))

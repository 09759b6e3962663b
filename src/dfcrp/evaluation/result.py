"""What an evaluation found: a dict whose keys are attributes too, and a text of it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dfcrp.files import replace_file
from dfcrp.markup import counted, significant
from dfcrp.rounding import estimate, estimate_of
from dfcrp.values import Json


class Evaluation(dict[str, Any]):
    """How right an answer is, as ``dfcrp evaluate --json`` writes it.

    Numbers that do not exist, such as the precision where nothing is listed, are None.

    Examples
    --------
    >>> found = dfcrp.load("run").evaluate("truth.csv")  # doctest: +SKIP
    >>> found["f1"], found.intervals["f1"]  # doctest: +SKIP
    """

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(
                f"an evaluation has no {name!r}; it has {', '.join(self)}"
            ) from None

    def __repr__(self) -> str:

        return describe(self)

    def _repr_html_(self) -> str:
        from dfcrp.markup import tag

        return tag("pre", repr(self))

    def save(self, path: str | Path) -> None:
        """Write it as JSON, the whole file or nothing."""
        replace_file(Path(path), (json.dumps(self, indent=1) + "\n").encode())


def describe(found: Json) -> str:
    """What matters, in lines."""
    if "pairwise" in found:
        return describe_partition(found)
    lines = [f"{found['answer']} beside {found['truth']}", f"  {found['rule_words']}; one to one"]
    lines += [f"  listed: {found['listed']}{_images(found)}", ""]
    lines.append(
        f"{found['n_true']:,} true, {found['n_listed']:,} listed, {found['n_right']:,} matched"
    )
    for name in ("precision", "recall", "f1"):
        lines.append(f"  {name:<20}{share(found[name])}{between(found['intervals'][name])}")
    if found["score"] is not None:
        words = f"by {found['score']}, of all {found['n_entries']:,}"
        lines.append(f"  {'average precision':<20}{share(found['average_precision'])}   {words}")
    lines += calibration_lines(found)
    lines += _numbers(found)
    lines += _classes(found)
    return "\n".join(lines)


def share(value: float | None) -> str:
    """Three digits."""
    return "  –  " if value is None else f"{value:.3f}"


def between(interval: Mapping[str, float] | None) -> str:
    """A 95 % interval behind a number."""
    if interval is None:
        return ""
    return f"   {estimate(interval['lo'], interval['lo'], interval['hi'], 3).interval}"


def _images(found: Json) -> str:
    left = found["n_images_left_out"], found["n_images_left_out_of_truth"]
    if found["n_images"] == 1 and not any(left):
        return ""
    words = f"; on {counted(found['n_images'], 'image')}"
    if left[0]:
        words += (
            f", without {left[0]:,} that the truth does not name (--on all: they have no object)"
        )
    if left[1]:
        words += f", without {left[1]:,} of the truth"
    return words


def calibration_lines(found: Json) -> list[str]:
    """Calibration."""
    if found["brier"] is None:
        return []
    lines = [
        f"  {'Brier score':<20}{share(found['brier'])}   mean of ({found['score']} - right)²",
        f"  {'calibration error':<20}{share(found['calibration_error'])}",
    ]
    sure = found["sure"]
    if sure["n"]:
        lines.append(
            f"  of {sure['n']:,} with {found['score']} of {sure['least']:g} or more "
            f"{100 * sure['right']:.1f} % are right"
        )
    lines += ["", f"{found['score'] + ' from':>14}{'to':>6}{'objects':>9}{'mean':>8}{'right':>8}"]
    lines += [
        f"{row['lo']:>14.1f}{row['hi']:>6.1f}{row['n']:>9,}{row['mean_p']:>8.3f}{row['right']:>8.3f}"
        for row in found["calibration"]
    ]
    return lines


def _numbers(found: Json) -> list[str]:
    """Totals, and counts by image."""
    lines = [""]
    total = found["n_total"]
    if total is not None:
        held = "holds" if total["covers"] else "does not hold"
        lines.append(
            f"Objects in all: {estimate_of(total)} "
            f"estimated, {total['true']:,} true; the interval {held} the truth"
        )
    counts = found["counts"]
    if found["n_images"] > 1:
        lines.append(
            f"Number on an image: off by {counts['mean_absolute_error']:.2f} on average "
            f"(mean error {counts['mean_error']:+.2f}), right on {100 * counts['exact']:.0f} %"
        )
        if "total" in counts:
            lines.append(
                f"  with missed ones: off by {counts['total']['mean_absolute_error']:.2f} (mean "
                f"error {counts['total']['mean_error']:+.2f}); 95 % intervals hold the true number "
                f"on {100 * counts['total']['coverage']:.0f} %"
            )
    matched = found["matched"]
    said = []
    if matched.get("mean_iou") is not None:
        said.append(f"mean IoU {matched['mean_iou']:.3f}")
    if matched.get("median_distance") is not None:
        said.append(f"median distance {significant(matched['median_distance'], 3)}")
    said += [
        f"95 % intervals of {name} hold the true value for {100 * value:.0f} %"
        for name, value in matched["coverage"].items()
    ]
    if said:
        lines.append(f"Matched: {', '.join(said)}")
    return lines if len(lines) > 1 else []


def _classes(found: Json) -> list[str]:
    """By size and by category."""
    rows = [
        (f"{row['size_class']}, {significant(row['from'], 3)} to {significant(row['to'], 3)}", row)
        for row in found["by_size"]
    ]
    of_categories = found["by_category"]
    if of_categories is not None:
        rows += [(row["category"], row) for row in of_categories["categories"][:40]]
    if not rows:
        return []
    lines = ["", f"{'':<30}{'true':>8}{'listed':>8}{'precision':>11}{'recall':>9}"]
    for name, row in rows:
        listed = "–" if row["n_listed"] is None else f"{row['n_listed']:,}"
        lines.append(
            f"{name[:29]:<30}{row['n_true']:>8,}{listed:>8}{share(row['precision']):>11}"
            f"{share(row['recall']):>9}"
        )
    if of_categories is not None and of_categories["right_category"] is not None:
        right = 100 * of_categories["right_category"]
        lines.append(f"{right:.1f} % of the matched ones have the right category")
    return lines


def describe_partition(found: Json) -> str:
    """What matters, in lines."""
    partial = f"; the truth is known of {found['partial']}" if found["partial"] else ""
    lines = [f"{found['answer']} beside {found['truth']}{partial}", f"  {found['rule_words']}"]
    lines += [f"  listed: {found['listed']}", ""]
    lines.append(
        f"{found['n_true']:,} true pairs, {found['n_listed']:,} listed, {found['n_right']:,} right"
    )
    for title, part in (("pairwise", found["pairwise"]), ("B-cubed", found["bcubed"])):
        if part is not None:
            lines += [
                f"  {title + ' ' + name:<20}{share(part[name])}{between(part['intervals'][name])}"
                for name in ("precision", "recall", "f1")
            ]
    if found["average_precision"] is not None:
        lines.append(f"  {'average precision':<20}{share(found['average_precision'])}")
    lines += calibration_lines(found)
    for name, word in (("n_total", "Links"), ("n_entities", "Entities")):
        one = found.get(name)
        if one is not None and "mean" in one:
            held = "holds" if one["covers"] else "does not hold"
            lines.append(
                f"{word} in all: {estimate_of(one)} "
                f"estimated, {one['true']:,} true; the interval {held} the truth"
            )
    return "\n".join(lines)

"""The plain-words summary at the end of a run."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dfcrp.fitting.progress import counted, duration

if TYPE_CHECKING:
    from dfcrp.posterior.posterior import Posterior

#: Sentences are folded to this width.
LINE = 88
#: What the files of a run folder are for, in the order in which one would open them.
FILES = {
    "report.html": "everything on one page, for a browser",
    "catalogue.csv": "one row per object, with uncertainty",
    "members.csv": "one row per marking: its object, and how sure that is",
    "experts.csv": "one row per expert",
    "images.csv": "one row per image: its counts, and whether its draws suffice",
    "size_frequency.csv": "size-frequency distributions, with each expert's own",
    "summary.json": "these numbers, for programs",
    "config.toml": "all settings, as used",
}


def describe(posterior: Posterior) -> str:
    """Counts with their intervals, and the verdict."""
    parts = [[_first_line(posterior)], _counts(posterior), _tolerances(posterior)]
    parts += [_experts(posterior), _doubles(posterior), _verdict(posterior)]
    return "\n\n".join("\n".join(lines) for lines in parts if lines)


def list_files(folder: Path) -> str:
    """Where the files are and what each is for."""
    found = [(name, use) for name, use in FILES.items() if (folder / name).exists()]
    return "\n".join([f"Files in {folder}/", *(f"  {name:<19} {use}" for name, use in found)])


def _first_line(posterior: Posterior) -> str:
    record, markings, run = posterior.record, posterior.markings, posterior.config.run
    thinned = f", every {run.thin}th kept" if run.thin > 1 else ""
    images = posterior.summary().get("n_images")
    where = "" if images is None else f" on {counted(images, 'image')}"
    most = "up to " if images is not None and run.scans is None else ""
    return (
        f"{counted(len(markings), 'marking')} by {counted(len(markings.experts), 'expert')}"
        f"{where}; "
        f"{counted(run.chains, 'chain')} of {most}{record.scans:,} scans "
        f"(the first {record.burn_in:,} left out{thinned}); {duration(record.seconds)}"
    )


def _tolerances(posterior: Posterior) -> list[str]:
    """What was learned about the spread of markings, in one sentence."""
    found = posterior.tolerances
    if found is None:
        return []
    if posterior.config.run.likelihood != "circles":
        return _learned(posterior.config.run.likelihood, found)
    sentence = (
        f"Learned from the data: around an object of the median diameter "
        f"({found['median_diameter']:.4g}) markings scatter by {found['position']['mean']:.3g} in "
        f"x and y and by {found['diameter_percent']['mean']:.2g} % in diameter (1 sd)."
    )
    return textwrap.wrap(sentence, LINE)


def _experts(posterior: Posterior) -> list[str]:
    """How experts differ, if that was learned."""
    bias = posterior.expert_bias
    return [] if bias is None else textwrap.wrap(bias.in_words(posterior.markings.experts), LINE)


def _learned(likelihood: str, found: dict[str, Any]) -> list[str]:
    """The same for items that are no circles."""
    if likelihood == "records":
        worst = sorted(found, key=lambda name: -found[name]["mean"])[:4]
        rates = ", ".join(f"{name} {found[name]['mean']:.2g} %" for name in worst)
        return textwrap.wrap(f"Learned from the data, the most frequent faults: {rates}.", LINE)
    scatter = ", ".join(
        f"{row['mean']:.3g} in {name}"
        for name, row in found.items()
        if not name.startswith("growth_")
    )
    return textwrap.wrap(f"Learned from the data: items of one object scatter by {scatter}.", LINE)


def _doubles(posterior: Posterior) -> list[str]:
    """Whether an expert may have marked an object twice."""
    count = posterior.summary().get("suspected_doubles", 0)
    if not count:
        return []
    noun = counted(count, "marking")
    sentence = (
        f"Suspected doubles: {noun} as close to an object as its own markings, by an expert who "
        "has marked it already. They count as objects of their own; the report lists them."
    )
    return textwrap.wrap(sentence, LINE)


def _counts(posterior: Posterior) -> list[str]:
    """A table: how many objects at least so many experts marked."""
    summary = posterior.summary()
    n_experts = summary["n_experts"]
    found = [row for row in summary["consensus"] if row["min_experts"] <= n_experts]
    if not found and n_experts > 1:
        # Fewer experts than any threshold of the tables.
        found = posterior.consensus_counts(tuple(range(2, n_experts + 1))).rows()
    rows = [("by any expert (all clusters)", summary["n_clusters"])]
    rows += [
        (f"by {row['min_experts']} or more experts", row)
        for row in found
        if row["size_class"] == "all"
    ]
    if "n_objects" in summary:
        rows += [
            ("real, seen by somebody", summary["n_objects"]),
            ("real, missed by all", summary["n_missed"]),
            ("false marks", summary["n_false_marks"]),
        ]
    lines = [f"{'Objects marked':<30}{'mean':>9}   95 % interval"]
    return lines + [f"  {name:<28}{row['mean']:>9,.1f}   {_interval(row)}" for name, row in rows]


def _interval(row: dict[str, Any]) -> str:
    return f"{row['lo']:,.0f} to {row['hi']:,.0f}"


def _verdict(posterior: Posterior) -> list[str]:
    verdict = posterior.verdict
    opening = "Verdict: good." if verdict.ok else "Verdict: NOT GOOD YET."
    if posterior.record.stopped_early:
        opening = f"Stopped early. {opening}"
    if len(verdict.advice) == 1:
        return [textwrap.fill(f"{opening} {verdict.advice[0]}", LINE)]
    return [opening, *(_bullet(sentence) for sentence in verdict.advice)]


def _bullet(sentence: str) -> str:
    return textwrap.fill(sentence, LINE, initial_indent="- ", subsequent_indent="  ")

"""The plain-words summary at the end of a run."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dfcrp.fitting.progress import duration
from dfcrp.markup import counted, plural

if TYPE_CHECKING:
    from dfcrp.posterior.posterior import Posterior

#: Sentences are folded to this width.
LINE = 88
#: What the files of a run folder are for, in the order in which one would open them.
FILES = {
    "report.html": "everything on one page, for a browser",
    "catalogue.csv": "one row per object, with uncertainty",
    "members.csv": "one row per item: its object, and how sure that is",
    "experts.csv": "one row per expert",
    "images.csv": "one row per image: its counts, and whether its draws suffice",
    "size_frequency.csv": "size-frequency distributions, with each expert's own",
    "summary.json": "these numbers, for programs",
    "config.toml": "all settings, as used",
}


def describe(posterior: Posterior) -> str:
    """Counts with their intervals, what was learned, and the verdict; of one image or many."""
    found = posterior.summary()
    parts = [
        [_first_line(posterior, found)],
        _counts(posterior, found),
        _learned(posterior, found),
        _doubles(posterior, found),
        _verdict(posterior),
    ]
    return "\n\n".join("\n".join(lines) for lines in parts if lines)


def list_files(folder: Path) -> str:
    """Where the files are and what each is for."""
    found = [(name, use) for name, use in FILES.items() if (folder / name).exists()]
    return "\n".join([f"Files in {folder}/", *(f"  {name:<19} {use}" for name, use in found)])


def _first_line(posterior: Posterior, found: dict[str, Any]) -> str:
    record, items, run = posterior.record, posterior.items, posterior.config.run
    thinned = f", every {run.thin}th kept" if run.thin > 1 else ""
    images = found.get("n_images")
    where = "" if images is None else f" on {counted(images, 'image')}"
    most = "up to " if images is not None and run.scans is None else ""
    return (
        f"{counted(len(items), posterior.likelihood.noun)} by "
        f"{counted(len(items.experts), 'expert')}{where}; "
        f"{counted(run.chains, 'chain')} of {most}{record.scans:,} scans "
        f"(the first {record.burn_in:,} left out{thinned}); {duration(record.seconds)}"
    )


def _learned(posterior: Posterior, found: dict[str, Any]) -> list[str]:
    """What was learned of the scatter of items, of experts, and by the prior, in sentences."""
    tolerances, bias = posterior.tolerances, posterior.expert_bias
    sentences = [] if tolerances is None else posterior.likelihood.learned_words(tolerances)
    if bias is not None:
        sentences = [*sentences, bias.in_words(posterior.items.experts)]
    nouns = plural(posterior.likelihood.noun)
    sentences = [*sentences, *posterior.prior.learned_words(found, nouns)]
    return [textwrap.fill(sentence, LINE) for sentence in sentences]


def _doubles(posterior: Posterior, found: dict[str, Any]) -> list[str]:
    """Whether an expert may have listed an object twice."""
    count, likelihood = found.get("suspected_doubles", 0), posterior.likelihood
    if not count:
        return []
    sentence = (
        f"Suspected doubles: {counted(count, likelihood.noun)} as close to an object as its own "
        f"{plural(likelihood.noun)}, by an expert who has {likelihood.verb} it already. They count "
        "as objects of their own; the report lists them."
    )
    return textwrap.wrap(sentence, LINE)


def _counts(posterior: Posterior, found: dict[str, Any]) -> list[str]:
    """A table: how many objects at least so many experts listed."""
    n_experts = found["n_experts"]
    counts = [row for row in found["consensus"] if row["min_experts"] <= n_experts]
    if not counts and n_experts > 1:
        # Fewer experts than any threshold of the tables.
        counts = posterior.consensus_counts(tuple(range(2, n_experts + 1))).rows()
    rows = [("by any expert (all clusters)", found["n_clusters"])]
    rows += [
        (f"by {row['min_experts']} or more experts", row)
        for row in counts
        if row["size_class"] == "all"
    ]
    if posterior.prior.knows_reality:
        rows += [
            ("real, seen by somebody", found["n_objects"]),
            ("real, missed by all", found["n_missed"]),
            ("false marks", found["n_false_marks"]),
        ]
    head = f"Objects {posterior.likelihood.verb}"
    lines = [f"{head:<30}{'mean':>9}   95 % interval"]
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

"""Events in recordings by several listeners: the DFCRP beside votes per frame and merged spans.

``./run python -m studies.intervals --out DIR`` draws recordings of each design, and compares

* the DFCRP with the detection prior: objects that are real with a probability above one half;
* votes per frame: an event is wherever enough of the listeners have one;
* merging: intervals that overlap, directly or through others, are one event if enough of the
  listeners have one of them, from the mean of the starts to that of the ends;
* the same of intervals with an IoU of at least 0.5.

"Enough" is more than half, or the number that the truth says is best for the design. Scores are F1
with the truth, one to one by an IoU of at least 0.5, the mean IoU of what was found, and the mean
error of its ends. Each number is the mean over the data sets, with its standard error.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

import dfcrp
from dfcrp.evaluation.matching import Rule, best_assignment, possible_pairs
from dfcrp.evaluation.objects import objects_of
from dfcrp.items.items import Items
from dfcrp.simulate import RecordingDesign

Floats = NDArray[np.float64]
#: Events by recording: (n, 2) starts and ends.
Events = Mapping[str, Floats]
DESIGNS = {
    "usual": RecordingDesign(),
    "close together": RecordingDesign(close=0.5, pause=0.3),
    "short and long": RecordingDesign(log_length=0.3, log_length_sd=1.6, seconds=900.0),
    "careless ends": RecordingDesign(precision=0.3, spread=0.12, close=0.3),
    "three listeners": RecordingDesign(detection=(0.9, 0.75, 0.6), false_rate=(0.5, 2.0, 4.0)),
    "poor listeners": RecordingDesign(
        detection=(0.7, 0.6, 0.5, 0.45, 0.4, 0.35, 0.3),
        false_rate=(1.0, 1.0, 2.0, 2.0, 3.0, 3.0, 5.0),
    ),
}  # fmt: skip


def by_frames(items: Items, need: int) -> dict[str, Floats]:
    """Wherever so many listeners have an interval; frames are as fine as the ends."""
    found = {}
    for name, rows in items.rows_by_image().items():
        ends = items.values[rows]
        times = np.unique(ends)
        middle = 0.5 * (times[1:] + times[:-1])
        inside = (ends[:, :1] < middle) & (ends[:, 1:] > middle)
        votes = [len(set(items.families[rows[column]].tolist())) for column in inside.T]
        on = np.concatenate([[False], np.array(votes) >= need, [False]])
        change = np.diff(on.astype(int))
        found[name] = np.column_stack([times[change == 1], times[change == -1]])
    return found


def merged(items: Items, need: int, least: float = 0.0) -> dict[str, Floats]:
    """Means of intervals that overlap with an IoU of ``least``, directly or through others."""
    found = {}
    for name, rows in items.rows_by_image().items():
        start, end = items.values[rows].T
        shared = np.minimum(end, end[:, None]) - np.maximum(start, start[:, None])
        union = np.maximum(end, end[:, None]) - np.minimum(start, start[:, None])
        graph = coo_array((shared > 0.0) & (shared >= least * union))
        count, label = connected_components(graph, directed=False)
        kept = [
            items.values[rows[label == k]].mean(axis=0)
            for k in range(count)
            if len(set(items.families[rows[label == k]].tolist())) >= need
        ]
        found[name] = np.array(kept).reshape(-1, 2)
    return found


def by_dfcrp(items: Items) -> dict[str, Floats]:
    """Objects that are more likely real than not."""
    settings: dict[str, Any] = {"prior": "detection", "chains": 2, "scans": 600, "burn_in": 200}
    posterior = dfcrp.fit(items, seed=1, progress=False, **settings)
    table = posterior.catalogue()
    table = table[table["p_real"] > 0.5]
    return {
        str(name): rows[["start", "end"]].to_numpy()
        for name, rows in table.groupby("image", sort=True)
    }


RIVALS: dict[str, Callable[[Items, int], Events]] = {
    "votes per frame": by_frames,
    "merged, any overlap": merged,
    "merged, IoU 0.5": lambda items, need: merged(items, need, 0.5),
}


def scores(found: Events, truth: Mapping[str, Any]) -> dict[str, float]:
    """F1, mean IoU and mean error of the ends of what is matched."""
    ends = np.concatenate([np.zeros((0, 2)), *found.values()])
    image = [name for name, rows in found.items() for _ in rows]
    columns = {"start": ends[:, 0], "end": ends[:, 1], "image": np.array(image, dtype=np.str_)}
    if not len(ends):
        return {"f1": 0.0, "iou": float("nan"), "error": float("nan")}
    both = [objects_of(one, "intervals", name) for one, name in ((columns, "a"), (truth, "b"))]
    pairs = possible_pairs(both[0], both[1], Rule(iou=0.5))
    match = best_assignment(pairs, len(both[0]), len(both[1]))
    rows = np.flatnonzero(match >= 0)
    there = np.column_stack([truth["start"], truth["end"]])
    away = np.abs(ends[rows] - there[match[rows]])
    quality = {(i, j): q for i, j, q in zip(pairs.answer, pairs.truth, pairs.quality, strict=True)}
    return {
        "f1": 2.0 * len(rows) / (len(ends) + len(there)),
        "iou": float(np.mean([quality[i, match[i]] for i in rows.tolist()])),
        "error": float(away.mean()),
    }


def run(datasets: int, designs: Mapping[str, RecordingDesign] = DESIGNS) -> dict[str, Any]:
    """Scores of every method on every design: mean and standard error."""
    result: dict[str, Any] = {}
    for design, given in designs.items():
        drawn = [given.draw(seed) for seed in range(datasets)]
        found = {"DFCRP": _summary([scores(by_dfcrp(items), truth) for items, truth in drawn])}
        experts = len(given.detection)
        for name, method in RIVALS.items():
            by_need = [
                _summary([scores(method(items, need), truth) for items, truth in drawn])
                for need in range(1, experts + 1)
            ]
            best = int(np.argmax([one["f1"][0] for one in by_need]))
            found[f"{name}, more than half"] = by_need[experts // 2]
            found[f"{name}, best: {best + 1} of {experts}"] = by_need[best]
        result[design] = found
    return result


def _summary(found: list[dict[str, float]]) -> dict[str, tuple[float, float]]:
    values = {key: np.array([one[key] for one in found]) for key in found[0]}
    return {
        key: (float(v.mean()), float(v.std(ddof=1) / np.sqrt(len(v))) if len(v) > 1 else 0.0)
        for key, v in values.items()
    }


def table(result: Mapping[str, Any]) -> str:
    """As Markdown: a line for each design and method."""
    lines = ["| design | method | F1 | mean IoU | error of the ends, s |", "|---|---|---|---|---|"]
    for design, methods in result.items():
        for at, (name, found) in enumerate(methods.items()):
            cells = [f"{mean:.3f} ± {error:.3f}" for mean, error in found.values()]
            lines.append(f"| {'' if at else design} | {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


@click.command()
@click.option("--out", required=True, type=click.Path(path_type=Path), help="Folder for results.")
@click.option("--datasets", default=10, show_default=True, help="Data sets of each design.")
def command(out: Path, datasets: int) -> None:
    """Compare the methods, and write the table."""
    result = run(datasets)
    out.mkdir(parents=True, exist_ok=True)
    (out / "intervals.json").write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    (out / "intervals.md").write_text(table(result) + "\n", encoding="utf-8")
    click.echo(table(result))


if __name__ == "__main__":
    command()

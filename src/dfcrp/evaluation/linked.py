"""Records: pairs of one entity beside the true pairs, and clusters beside entities.

Pairwise precision is the share of the pairs in one cluster that are of one entity, pairwise recall
the share of the pairs of one entity that are in one cluster. B-cubed precision is the mean over
records of the share of a record's cluster that is of its entity (the record itself included),
B-cubed recall the mean share of its entity that is in its cluster; F1 is their harmonic mean.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dfcrp.errors import InputError
from dfcrp.evaluation.identities import Identities, closure
from dfcrp.evaluation.result import Evaluation
from dfcrp.evaluation.scores import (
    agreement,
    average_precision,
    calibration,
    curve_of,
    interval,
    ratio,
    resampled,
)
from dfcrp.memory import refuse_more_than_memory
from dfcrp.summaries.streaming import summarise
from dfcrp.values import Json, as_json

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]
Flags = NDArray[np.bool_]
#: Memory that a pair takes while it is compared.
BYTES_PER_PAIR = 100


@dataclass(frozen=True)
class LinkAnswer:
    """An answer: clusters of records, and pairs with their probabilities."""

    name: str
    #: The cluster of each record; None if only pairs are known.
    labels: Whole | None
    #: Pairs i < j, each once, with a probability; a pair that is not there has probability 0.
    pairs: Whole
    p: Floats | None
    #: Whether a pair is listed.
    listed: Flags
    words: str
    #: Draws of the number of entities and of links among some records; None without a run.
    draws: Callable[[Whole], tuple[Whole, Whole]] | None = None


def answer_of_table(name: str, named: Identities, n: int, least: float | None) -> LinkAnswer:
    """Clusters, or pairs with or without probabilities, of another program."""
    if named.pairs is None:
        assert named.record is not None
        assert named.entity is not None
        # Records that it does not name are alone.
        labels = np.arange(n) + 1 + int(named.entity.max(initial=0))
        labels[named.record] = named.entity
        pairs = pairs_within(labels)
        return LinkAnswer(
            name, labels, pairs, None, np.ones(len(pairs), np.bool_), "all in one cluster"
        )
    pairs, first = np.unique(named.pairs, axis=0, return_index=True)
    p = None if named.p is None else named.p[first]
    if p is None:
        chosen, words = np.ones(len(pairs), np.bool_), "all pairs"
        if named.match is not None:
            chosen, words = named.match[first], "pairs that match"
    else:
        bound = 0.5 if least is None else least
        chosen, words = p > bound, f"p > {bound:g}"
    return LinkAnswer(name, closure(pairs[chosen], n), pairs, p, chosen, words)


def pairs_within(labels: Whole) -> Whole:
    """Every pair of one cluster, (m, 2), sorted."""
    order = np.argsort(labels, kind="stable")
    ends = np.flatnonzero(np.diff(labels[order])) + 1
    sizes = np.diff(np.concatenate([[0], ends, [len(labels)]])).astype(np.float64)
    count = float((sizes * (sizes - 1.0) / 2.0).sum())
    refuse_more_than_memory(
        BYTES_PER_PAIR * count,
        f"going through {count:,.0f} pairs of records in one cluster, of which the largest has "
        f"{sizes.max(initial=0.0):,.0f},",
        "is the column of clusters the right one?",
    )
    found = []
    for members in np.split(order, ends):
        if len(members) > 1:
            first, second = np.triu_indices(len(members), 1)
            found.append(np.column_stack([members[first], members[second]]))
    if not found:
        return np.zeros((0, 2), np.int64)
    pairs = np.sort(np.concatenate(found), axis=1)
    return pairs[np.lexsort(pairs.T[::-1])]


def evaluate_links(
    answer: LinkAnswer, truth: Identities, truth_name: str, n: int, kind: str
) -> Evaluation:
    """Everything about records."""
    head: Json = {
        "kind": kind,
        "answer": answer.name,
        "truth": truth_name,
        "rule": {"by": "entity"},
        "rule_words": "a pair of records is right if both are of one entity"
        + (f" ({truth.words})" if truth.words else ""),
        "listed": answer.words,
        "score": None if answer.p is None else "p",
    }
    if truth.match is not None:
        return Evaluation(as_json({**head, **_of_labelled_pairs(answer, truth)}))
    known, labels = _true_labels(truth, n)
    return Evaluation(as_json({**head, **_of_entities(answer, known, labels, truth)}))


def _true_labels(truth: Identities, n: int) -> tuple[Whole, Whole]:
    """The records whose entity is known, and their entities."""
    if truth.pairs is not None:
        return np.arange(n), closure(truth.pairs, n)
    assert truth.record is not None
    assert truth.entity is not None
    order = np.argsort(truth.record)
    return truth.record[order], truth.entity[order]


def _of_labelled_pairs(answer: LinkAnswer, truth: Identities) -> Json:
    """Some pairs are known to match or not, and nothing else is known."""
    assert truth.pairs is not None
    assert truth.match is not None
    pairs, first, inverse = np.unique(truth.pairs, axis=0, return_index=True, return_inverse=True)
    if (truth.match != truth.match[first][inverse.ravel()]).any():
        raise InputError("the truth says of one pair that it matches and that it does not")
    match, where = truth.match[first], _lookup(pairs, answer.pairs)
    there = where >= 0
    listed = np.zeros(len(pairs), np.bool_)
    listed[there] = answer.listed[where[there]]
    rows = np.column_stack([listed & match, listed, match]).astype(np.float64)
    found = _pairwise(rows)
    p = np.zeros(len(pairs))
    result = {
        "partial": f"{len(pairs):,} labelled pairs",
        "n_true": int(match.sum()),
        "n_listed": int(listed.sum()),
        "n_right": int((listed & match).sum()),
        **found,
        "pairwise": found,
        "bcubed": None,
        "bootstrap": "pairs",
        "n_total": None,
        "n_entities": None,
        "n_pairs": len(pairs),
    }
    if answer.p is None:
        return {**result, **_unranked()}
    p[there] = answer.p[where[there]]
    return {
        **result,
        "average_precision": average_precision(match, p, int(match.sum())),
        "curve": curve_of(match, p, int(match.sum())),
        **calibration(match, p),
    }


def _of_entities(answer: LinkAnswer, known: Whole, entity: Whole, truth: Identities) -> Json:
    """The entity of every known record is known, so every pair of them is."""
    n = len(known)
    at = np.full(1 + int(max(known.max(initial=-1), answer.pairs.max(initial=-1))), -1, np.int64)
    at[known] = np.arange(n)
    pairs = at[answer.pairs] if len(answer.pairs) else answer.pairs
    inside = (pairs >= 0).all(axis=1)
    pairs, chosen = np.sort(pairs[inside], axis=1), answer.listed[inside]
    right = entity[pairs[:, 0]] == entity[pairs[:, 1]]
    labels = None if answer.labels is None else answer.labels[known]
    # What can be drawn again by itself: records that the answer or the truth connects.
    together = np.vstack([pairs[chosen], _chain(entity)])
    block = closure(together, n)
    blocks = int(block.max(initial=-1)) + 1
    by_block = np.bincount(block[pairs[chosen][:, 0]], minlength=blocks)
    right_by_block = np.bincount(block[pairs[chosen & right][:, 0]], minlength=blocks)
    sizes = np.bincount(entity)
    first_of = np.zeros(len(sizes), np.int64)
    first_of[entity[::-1]] = np.arange(n)[::-1]
    true_by_block = np.bincount(
        block[first_of], weights=sizes * (sizes - 1) / 2.0, minlength=blocks
    )
    found = _pairwise(np.column_stack([right_by_block, by_block, true_by_block]).astype(np.float64))
    n_true = int(true_by_block.sum())
    result = {
        "partial": None if truth.pairs is not None else f"{n:,} records",
        "n_true": n_true,
        "n_listed": int(chosen.sum()),
        "n_right": int((chosen & right).sum()),
        **found,
        "pairwise": found,
        "bcubed": None if labels is None else _bcubed(labels, entity, block),
        "bootstrap": "entities",
        "n_records": n,
        **_estimates(answer, known, n_true, len(np.unique(entity))),
    }
    if answer.p is None:
        return {**result, **_unranked()}
    p = answer.p[inside]
    never = n_true - int(right.sum())  # true pairs that were never together
    sure = calibration(right, p)
    if sure["brier"] is not None or never:
        squares = float(np.sum((p - right) ** 2)) + never
        sure["brier"] = squares / (len(p) + never)
    return {
        **result,
        "average_precision": average_precision(right, p, n_true),
        "curve": curve_of(right, p, n_true),
        "n_pairs": len(p) + never,
        **sure,
    }


def _estimates(answer: LinkAnswer, known: Whole, n_true: int, n_entities: int) -> Json:
    """Numbers of links and entities over the draws, beside the truth."""
    if answer.draws is None:
        return {"n_total": None, "n_entities": {"true": n_entities}}
    entities, links = answer.draws(known)
    found = {}
    for name, draws, true in (("n_total", links, n_true), ("n_entities", entities, n_entities)):
        held = summarise(draws)
        covers = bool(held.lo <= true <= held.hi)
        found[name] = {**held.as_dict(), "true": true, "covers": covers}
    return found


def _chain(labels: Whole) -> Whole:
    """Pairs that connect every cluster, one fewer than it has members."""
    order = np.argsort(labels, kind="stable")
    same = np.flatnonzero(np.diff(labels[order]) == 0)
    return np.column_stack([order[same], order[same + 1]])


def _pairwise(rows: Floats) -> Json:
    """Precision, recall and F1 from counts (right, listed, true) of what is drawn again."""
    each = agreement(*resampled(rows).T)
    return {
        **agreement(*rows.sum(axis=0)),
        "intervals": {name: interval(each[name]) for name in each},
    }


def _bcubed(labels: Whole, entity: Whole, block: Whole) -> Json:
    """Means over records of what clusters and entities share."""
    cluster = np.unique(labels, return_inverse=True)[1].ravel()
    key = cluster * (int(entity.max(initial=0)) + 1) + entity
    _, both, count = np.unique(key, return_inverse=True, return_counts=True)
    shared = count[both.ravel()].astype(np.float64)
    precision, recall = shared / np.bincount(cluster)[cluster], shared / np.bincount(entity)[entity]
    # A cluster may reach beyond the block if only some pairs of it are listed; its records still
    # are drawn with the block that they are in.
    n_blocks = int(block.max(initial=-1)) + 1
    each_record = (precision, recall, np.ones(len(block)))
    sums = [np.bincount(block, values, n_blocks) for values in each_record]
    rows: Floats = np.column_stack(sums).astype(np.float64)
    each = _means(*resampled(rows).T)
    return {
        **_means(*rows.sum(axis=0)),
        "intervals": {name: interval(each[name]) for name in each},
    }


def _means(precision: object, recall: object, records: object) -> Json:
    p, r = ratio(precision, records), ratio(recall, records)
    return {"precision": p, "recall": r, "f1": ratio(2.0 * p * r, p + r)}


def _lookup(wanted: Whole, pairs: Whole) -> Whole:
    """Where each wanted pair is among sorted pairs; -1 where it is not."""
    base = 1 + int(max(wanted.max(initial=0), pairs.max(initial=0)))
    keys, ours = wanted[:, 0] * base + wanted[:, 1], pairs[:, 0] * base + pairs[:, 1]
    order = np.argsort(ours)
    at = np.searchsorted(ours[order], keys)
    at = np.minimum(at, max(len(ours) - 1, 0))
    if not len(ours):
        return np.full(len(keys), -1)
    return np.where(ours[order][at] == keys, order[at], -1)


def _unranked() -> Json:
    nothing = calibration(np.zeros(0, np.bool_), np.zeros(0))
    return {"average_precision": None, "curve": [], **nothing}

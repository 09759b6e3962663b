"""Slow twins of the partition prior: the paper's seating rule in plain loops."""

from __future__ import annotations

import math
from itertools import permutations, product


def seating_probability(item, seated, labels, families, alpha):
    """Probability that an arriving item takes the place it has in the partition.

    ``seated`` are the items already in the restaurant, at the tables their labels name.
    """
    table = [other for other in seated if labels[other] == labels[item]]
    if any(families[other] == families[item] for other in table):
        return 0.0
    companions = 0
    for other in seated:
        at_the_same_table = [one for one in seated if labels[one] == labels[other]]
        if all(families[one] != families[item] for one in at_the_same_table):
            companions += 1
    return (len(table) if table else alpha) / (companions + alpha)


def prob_given_order(labels, families, alpha, order) -> float:
    """p(c | alpha, x, order) by the chain rule over arrivals."""
    probability = 1.0
    for rank, item in enumerate(order):
        probability *= seating_probability(item, order[:rank], labels, families, alpha)
    return probability


def prob(labels, families, alpha) -> float:
    """p(c | alpha, x): the mean over all n! orders."""
    orders = list(permutations(range(len(labels))))
    return math.fsum(prob_given_order(labels, families, alpha, o) for o in orders) / len(orders)


def is_valid(labels, families) -> bool:
    """No cluster holds a family twice."""
    places = list(zip(labels, families, strict=True))
    return len(set(places)) == len(places)


def canonical(labels) -> tuple[int, ...]:
    """Labels renumbered 0, 1, ... in order of first appearance."""
    seen: list[int] = []
    for label in labels:
        if label not in seen:
            seen.append(label)
    return tuple(seen.index(label) for label in labels)


def partitions(families) -> list[tuple[int, ...]]:
    """Every valid partition, found among all n^n label vectors."""
    n = len(families)
    everything = {canonical(labels) for labels in product(range(n), repeat=n)}
    return sorted(labels for labels in everything if is_valid(labels, families))


def crp_prob(labels, alpha) -> float:
    """The Chinese restaurant process by its own chain rule."""
    probability = 1.0
    for i, label in enumerate(labels):
        there = sum(other == label for other in labels[:i])
        probability *= (there if there else alpha) / (i + alpha)
    return probability

"""The seating rule of the dysfunctional family Chinese restaurant, compiled.

Everything here walks customers in their order of arrival and keeps, for each family f, the
number E_f of seated customers whose table holds a member of f. The arriving customer of
family f then has D = (number seated) - E_f companions to choose from, sits with n_k / (D + alpha)
at a table k without its family, and at a new table with alpha / (D + alpha).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dfcrp.compiled.abi import F8, I8, I4x2, frame
from dfcrp.compiled.jit import entry_kernel, lean_kernel
from dfcrp.compiled.random import Stream

# A running product is folded into the running logarithm before it could underflow.
_SMALLEST_PRODUCT = 1e-250


@frame
class Seats(NamedTuple):
    """Scratch of a walk over a known partition: every table has its seats side by side."""

    first: I8  # by table: its first seat
    size: I8  # by table: n_k so far
    family: I8  # by seat: who sits there
    excluded: I8  # by family: E_f


def empty_seats(n_tables: int, n_customers: int, n_families: int) -> Seats:
    """Room for so many tables, customers and families; kernels clear it before use."""
    first, size = np.empty((2, n_tables), np.int64)
    return Seats(first, size, np.empty(n_customers, np.int64), np.empty(n_families, np.int64))


@entry_kernel
def log_prior_given_order(labels: I8, families: I8, order: I8, alpha: float, seats: Seats):
    """log p(c | alpha, x, order) = sum over arrivals of log(n_k or alpha) - log(D + alpha).

    Labels and families are codes from 0; ``seats`` is scratch. -inf if a cluster holds a family
    twice. Takes time O(sum of n_k^2) and memory O(n), however many families there are.
    """
    first, size = seats.first, seats.size
    seated_family, excluded = seats.family, seats.excluded
    lay_tables(labels, first, size)
    excluded[:] = 0
    total = 0.0
    product = 1.0
    for seated in range(order.size):
        table = labels[order[seated]]
        family = families[order[seated]]
        n_k = size[table]
        companions = seated - excluded[family]
        factor = (n_k if n_k > 0 else alpha) / (companions + alpha)
        # One logarithm for many factors: logarithms would be most of the time.
        if product * factor < _SMALLEST_PRODUCT:
            total += np.log(product)
            product = factor
        else:
            product *= factor
        # The table's members have one more customer at a table of theirs; to the newcomer's
        # own family the whole table is closed from now on.
        free = first[table] + n_k
        for place in range(first[table], free):
            if seated_family[place] == family:
                return -np.inf
            excluded[seated_family[place]] += 1
        seated_family[free] = family
        size[table] = n_k + 1
        excluded[family] += n_k + 1
    return total + np.log(product)


@lean_kernel
def lay_tables(labels, first, size):
    """Give every table as many consecutive seats as it has members, and leave them empty."""
    size[:] = 0
    for i in range(labels.size):
        size[labels[i]] += 1
    taken = 0
    for table in range(size.size):
        first[table] = taken
        taken += size[table]
        size[table] = 0


@entry_kernel
def mean_over_orders(labels: I8, families: I8, weights: F8, mean: F8, seats: Seats):
    """Mean over all n! orders of the product of weights[D_i], for a valid partition.

    D_i depends on the order only through the set S seated before i. So with M(S) the mean over
    the orders of S alone, M(empty) = 1 and

        M(S) = 1/|S| * sum over i in S of M(S without i) * weights[D_i(S without i)],

    2^n sets of n terms each. A set is the bits of an integer; ``mean`` holds M, 2^n places.
    """
    n = labels.size
    size, excluded = seats.size, seats.excluded
    mean[:] = 0.0
    mean[0] = 1.0
    # The subsets of S are numbers below S, so M(S) is complete when S comes up.
    for seated in range(mean.size - 1):
        size[:] = 0
        excluded[:] = 0
        n_seated = 0
        for i in range(n):
            here = (seated >> i) & 1
            size[labels[i]] += here
            n_seated += here
        for i in range(n):
            excluded[families[i]] += size[labels[i]] * ((seated >> i) & 1)
        share = mean[seated] / (n_seated + 1)
        for i in range(n):
            if not (seated >> i) & 1:
                mean[seated | (1 << i)] += share * weights[n_seated - excluded[families[i]]]
    return mean[mean.size - 1]


@frame
class Tables(NamedTuple):
    """Tables that fill up: each one's members are a linked list, the latest arrival first."""

    newest: I8  # by table: the latest to sit down there; -1 when empty
    size: I8  # by table: n_k
    previous: I8  # by customer: who sat down at the same table just before
    table: I8  # by customer: where they sit
    excluded: I8  # by family: E_f


def empty_tables(n_customers: int, n_families: int) -> Tables:
    """Room for so many customers and families; kernels clear it before use."""
    # There are never more tables than customers.
    newest, size, previous, table = np.empty((4, n_customers), np.int64)
    return Tables(newest, size, previous, table, np.empty(n_families, np.int64))


@lean_kernel
def seat(i, table, families, tables):
    """Seat customer i at a table without relatives, keeping every E_f."""
    newest, size, previous = tables.newest, tables.size, tables.previous
    table_of, excluded = tables.table, tables.excluded
    member = newest[table]
    while member >= 0:
        excluded[families[member]] += 1
        member = previous[member]
    previous[i] = newest[table]
    newest[table] = i
    table_of[i] = table
    size[table] += 1
    excluded[families[i]] += size[table]


@lean_kernel
def join_companion(i, arrived, families, tables, rng):
    """Table of a uniformly drawn companion of i: table k with probability n_k / D, given D > 0.

    One of all who have arrived is drawn, and drawn again if a relative sits with them.
    """
    newest, previous, table_of = tables.newest, tables.previous, tables.table
    while True:
        table = table_of[arrived[int(rng.random() * arrived.size)]]
        member = newest[table]
        while member >= 0 and families[member] != families[i]:
            member = previous[member]
        if member < 0:
            return table


@entry_kernel
def sample_partitions(families: I8, alpha: float, draws: I4x2, tables: Tables, rng: Stream):
    """Fill the rows of ``draws`` with partitions: a fresh uniform order each, then seating.

    Labels are numbered in order of first appearance along the row.
    """
    newest, size, table_of, excluded = tables.newest, tables.size, tables.table, tables.excluded
    for d in range(draws.shape[0]):
        # Until its labels are known, the row holds the order of arrival.
        order = draws[d]
        shuffle(order, rng)
        newest[:] = -1
        size[:] = 0
        excluded[:] = 0
        n_tables = 0
        for seated in range(order.size):
            i = order[seated]
            companions = seated - excluded[families[i]]
            if rng.random() * (companions + alpha) < companions:
                table = join_companion(i, order[:seated], families, tables, rng)
            else:
                table = n_tables
                n_tables += 1
            seat(i, table, families, tables)
        number_by_appearance(table_of, newest, order)


@lean_kernel
def shuffle(order, rng):
    """Fill ``order`` with 0, 1, ... in a uniformly drawn order (Fisher and Yates)."""
    for last in range(order.size):
        chosen = int(rng.random() * (last + 1))
        order[last] = order[chosen]
        order[chosen] = last


@lean_kernel
def number_by_appearance(labels, number, numbered):
    """Write the labels into ``numbered``, renumbered 0, 1, ... as they first appear.

    ``number`` is scratch, with a place for every label.
    """
    number[:] = -1
    used = 0
    for i in range(labels.size):
        if number[labels[i]] < 0:
            number[labels[i]] = used
            used += 1
        numbered[i] = number[labels[i]]

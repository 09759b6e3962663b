"""Slow twins of the posterior summaries, in plain loops over draws given as (chains, draws, n)."""

from __future__ import annotations

import math
from collections import Counter
from itertools import combinations

import numpy as np

from dfcrp.draws import ClusterBlock, Columns, MemoryDraws
from dfcrp.items.items import Items
from dfcrp.likelihoods.circle.likelihood import CIRCLES
from dfcrp.likelihoods.circle.scatter import PARAMETERS

COLUMNS = Columns.plain(PARAMETERS)
#: How circles in a plane describe their clusters in the catalogue.
CENTRE = CIRCLES.centre(Items.circles([0.0], [0.0], [1.0], ["A"]))


# --- partitions ---------------------------------------------------------------------------------


def clusters_of(labels):
    """Clusters as {label: members}, members ascending."""
    clusters = {}
    for i, label in enumerate(labels):
        clusters.setdefault(int(label), []).append(i)
    return clusters


def canonical(labels):
    """Each cluster named after its smallest member."""
    clusters = clusters_of(labels)
    return [clusters[int(label)][0] for label in labels]


def all_partitions(n):
    """Every partition of n items, as canonical labels."""

    def extend(labels, heads):
        if len(labels) == n:
            yield tuple(labels)
            return
        for head in [*heads, len(labels)]:
            new = [] if head in heads else [head]
            yield from extend([*labels, head], heads + new)

    return list(extend([], []))


def is_valid(labels, families):
    """Whether no cluster holds a family twice."""
    pairs = list(zip(labels, families, strict=True))
    return len(set(pairs)) == len(pairs)


def partition_loss(one, two, loss):
    """Variation of information in bits, or the number of pairs treated differently."""
    n = len(one)
    if loss == "binder":
        return sum((one[i] == one[j]) != (two[i] == two[j]) for i, j in combinations(range(n), 2))

    def entropy(counts):
        return -sum(c / n * math.log2(c / n) for c in counts.values())

    joint = entropy(Counter(zip(one, two, strict=True)))
    return 2 * joint - entropy(Counter(one)) - entropy(Counter(two))


def expected_losses(partitions, draws, loss):
    """Expected loss of many partitions at once, to try all of them: matrices of "same cluster".

    Σ_k n_k log n_k = Σ_i log n_k(i), and likewise for overlaps.
    """
    partitions, draws = np.asarray(partitions), np.asarray(draws)
    n = draws.shape[1]
    together = partitions[:, :, None] == partitions[:, None, :]
    total = np.zeros(len(partitions))
    for draw, count in zip(*np.unique(draws, axis=0, return_counts=True), strict=True):
        in_draw = draw[:, None] == draw[None, :]
        if loss == "binder":
            each = (together != in_draw).sum(axis=(1, 2)) / 2
        else:
            own = np.log2(together.sum(axis=2)).sum(axis=1)
            drawn = np.log2(in_draw.sum(axis=1)).sum()
            both = np.log2((together & in_draw).sum(axis=2)).sum(axis=1)
            each = (own + drawn - 2 * both) / n
        total += count * each
    return total / len(draws)


def cluster_cost(members, draws, loss):
    """What one cluster adds to the unscaled expected loss, apart from a constant."""

    def f(x):
        return x * math.log2(x) if loss == "vi" else x * (x - 1) / 2

    agreement = 0.0
    for draw in draws:
        agreement += sum(f(c) for c in Counter(int(draw[i]) for i in members).values())
    return f(len(members)) - 2 * agreement / len(draws)


# --- random draws -------------------------------------------------------------------------------


def random_valid_labels(rng, families, base=None, move=0.3):
    """A valid partition: each item joins a random cluster that its family allows.

    With a base partition an item stays with its base cluster unless it moves (probability
    ``move``), so that draws resemble each other.
    """
    n = len(families)
    labels = [-1] * n
    for i in rng.permutation(n):
        open_clusters = sorted(
            {
                label
                for label in labels
                if label >= 0
                and all(families[j] != families[i] for j in range(n) if labels[j] == label)
            }
        )
        home = None if base is None else int(base[i])
        if home is not None and rng.random() > move:
            taken = any(labels[j] == home and families[j] == families[i] for j in range(n))
            labels[i] = n + i if taken else home
        else:
            labels[i] = int(rng.choice([*open_clusters, n + i]))
    return canonical(labels)


def random_draws(seed, n=9, n_families=4, n_chains=2, n_draws=14):
    """Draws in memory with made-up cluster parameters, and the families and diameters."""
    rng = np.random.default_rng(seed)
    families = np.concatenate((np.arange(n_families), rng.integers(0, n_families, n - n_families)))
    base = random_valid_labels(rng, families)
    labels = np.array(
        [
            [random_valid_labels(rng, families, base) for _ in range(n_draws)]
            for _ in range(n_chains)
        ]
    )
    draws = with_parameters(labels, rng)
    return draws, labels, families, rng.uniform(20, 150, n)


def with_parameters(labels, rng):
    """MemoryDraws whose clusters have random parameters."""
    blocks = []
    for chain in labels:
        names = [sorted(set(draw.tolist())) for draw in chain]
        offsets = np.cumsum([0] + [len(row) for row in names])
        values = rng.normal(size=(offsets[-1], len(COLUMNS.parameters)))
        values[:, 2] = np.log(rng.uniform(20, 150, offsets[-1]))
        flat = np.array([name for row in names for name in row], np.int32)
        blocks.append(ClusterBlock(offsets, flat, values.astype(np.float32)))
    alpha = rng.gamma(2.0, size=labels.shape[:2])
    return MemoryDraws(labels, alpha, blocks, COLUMNS)


def parameters_of(draws, chain, draw):
    """{label: parameter row} of one draw."""
    block = draws.clusters(chain, draw, draw + 1)
    return {int(k): row for k, row in zip(block.labels, block.parameters, strict=True)}


# --- summaries ----------------------------------------------------------------------------------


def pair_probability(labels, i, j):
    """Share of all draws in which i and j are together."""
    draws = [draw for chain in labels for draw in chain]
    return sum(draw[i] == draw[j] for draw in draws) / len(draws)


def alone_probability(labels, i):
    """Share of all draws in which i is alone."""
    draws = [draw for chain in labels for draw in chain]
    return sum(list(draw).count(draw[i]) == 1 for draw in draws) / len(draws)


def split_rhat(series):
    """R-hat of half chains, from the definition; series is (chains, draws)."""
    halves = []
    for chain in series:
        half = len(chain) // 2
        halves += [list(chain[:half]), list(chain[half:])]
    n = len(halves[0])
    means = [sum(h) / n for h in halves]
    within = sum(
        sum((v - m) ** 2 for v in h) / (n - 1) for h, m in zip(halves, means, strict=True)
    ) / len(halves)
    grand = sum(means) / len(means)
    between = sum((m - grand) ** 2 for m in means) / (len(means) - 1)
    if within == 0:
        return 1.0 if between == 0 else math.inf
    return 1.0 if between == 0 else math.sqrt((n - 1) / n + between / within)


def place_of(point, labels, i):
    """Where item i sat in one draw: a cluster of the point partition, "alone" or "elsewhere"."""
    companions = [j for j in range(len(labels)) if j != i and labels[j] == labels[i]]
    if not companions:
        return "alone"
    stands_for = {}
    for name, members in clusters_of(point).items():
        others = [j for j in members if j != i]
        held = sum(j in companions for j in others)
        if held and held >= len(others) / 2:
            stands_for[name] = held
    own = int(point[i])
    best = max(stands_for, key=lambda name: (stands_for[name], name == own, -name), default=None)
    return "elsewhere" if best is None else best


def membership(point, labels):
    """[(p_member, {other place: probability})] for each item; "alone" and "elsewhere" included."""
    draws = [draw for chain in labels for draw in chain]
    out = []
    for i in range(len(point)):
        places = Counter(place_of(point, draw, i) for draw in draws)
        shares = {place: count / len(draws) for place, count in places.items()}
        single = len(clusters_of(point)[int(point[i])]) == 1
        out.append((shares.pop("alone" if single else int(point[i]), 0.0), shares))
    return out


def consensus_count(labels, diameter_of, families, m, low, high):
    """Clusters of one draw with at least m experts and a diameter in [low, high)."""
    total = 0
    for name, members in clusters_of(labels).items():
        experts = {int(families[i]) for i in members}
        if len(experts) >= m and low <= diameter_of[name] < high:
            total += 1
    return total


def jaccard(labels, families, f, g):
    """Clusters of one draw with both experts over clusters with either."""
    held = [{int(families[i]) for i in members} for members in clusters_of(labels).values()]
    both = sum(f in h and g in h for h in held)
    return both / sum(f in h or g in h for h in held)


def size_1_share(labels, families, f):
    """Percentage of one draw's size-1 clusters that are expert f's; NaN if there are none."""
    owners = [families[m[0]] for m in clusters_of(labels).values() if len(m) == 1]
    return 100 * sum(o == f for o in owners) / len(owners) if owners else math.nan


def all_but_one_share(labels, families, f):
    """Percentage of one draw's clusters with F - 1 experts that lack expert f."""
    n_families = len(set(families.tolist()))
    held = [{int(families[i]) for i in members} for members in clusters_of(labels).values()]
    lacking = [h for h in held if len(h) == n_families - 1]
    return 100 * sum(f not in h for h in lacking) / len(lacking) if lacking else math.nan


def representative(members, labels):
    """The cluster of a draw with most of these members; the smallest label among equals."""
    held = Counter(int(labels[i]) for i in members)
    return min(held, key=lambda label: (-held[label], label))


def owner(point, labels, chosen):
    """Of the point clusters that a draw's cluster represents, the one it holds most of."""
    clusters = sorted(clusters_of(point).items())
    claims = {
        name: sum(labels[i] == chosen for i in members)
        for name, members in clusters
        if representative(members, labels) == chosen
    }
    return max(claims, key=lambda name: (claims[name], -name))


def mean_and_interval(values):
    """Mean and 95 % equal-tailed interval of the numbers among the values; of counts, whole."""
    values = [v for v in values if not math.isnan(v)]
    if not values:
        return math.nan, math.nan, math.nan
    lo, hi = np.quantile(values, [0.025, 0.975])
    if all(isinstance(v, int | np.integer) for v in values):
        lo, hi = math.floor(lo), math.ceil(hi)
    return sum(values) / len(values), lo, hi

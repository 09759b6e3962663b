"""Methods without a model of experts: DBSCAN of Robbins et al. (2014), and k-means.

DBSCAN has a reach that grows with size: two markings of one image are neighbours if they lie closer
than ``distance`` times the mean of their diameters, and their diameters differ by less than
``diameter`` times the smaller one. There is no family rule: a cluster may hold two markings of one
expert.

k-means is Lloyd's algorithm, scikit-learn's, with k given or chosen by the silhouette. Features are
divided by the main model's prior standard deviations at the median size, so that a difference of
one means the same in position and in log diameter. k-means knows one scale for all clusters: large
objects, which are marked less exactly, suffer from it. Families play no part.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.spatial import cKDTree

from dfcrp.baselines.relatives import hyper_of
from dfcrp.errors import SettingsError
from dfcrp.items.items import Items
from dfcrp.likelihoods.circle.hyper import CircleSettings
from dfcrp.likelihoods.circle.neighbours import mean_variances

Labels = NDArray[np.int64]


def dbscan_r14(
    markings: Items,
    distance: float = 0.25,
    diameter: float = 0.5,
    min_points: int = 5,
    count: Literal["markings", "experts"] = "markings",
) -> Labels:
    """Cluster of each marking, numbered in order of first appearance; -1 is noise.

    A marking is a core if its neighbourhood, itself included, counts at least ``min_points``
    markings (or different experts). Cores connected through neighbouring cores are a cluster. A
    marking that is no core joins the cluster of its nearest neighbouring core (distance over
    mean diameter; on a tie the earlier core), so the answer does not depend on the order of rows.
    """
    return dbscan_r14_each(markings, (min_points,), distance, diameter, count)[min_points]


def dbscan_r14_each(
    markings: Items,
    min_points: Iterable[int],
    distance: float = 0.25,
    diameter: float = 0.5,
    count: Literal["markings", "experts"] = "markings",
) -> dict[int, Labels]:
    """``dbscan_r14`` for each of several ``min_points``, with the neighbours found once."""
    wanted = sorted(set(min_points))
    for name, value in (("distance", distance), ("diameter", diameter)):
        if not (value > 0 and np.isfinite(value)):
            raise SettingsError(f"{name} is {value}; it must be positive")
    for least in wanted:
        if least < 1:
            raise SettingsError(f"min_points is {least}; it must be at least 1")
    if count not in ("markings", "experts"):
        raise SettingsError(f"count is {count!r}; choose 'markings' or 'experts'")
    first, second, apart = _neighbour_pairs(markings, distance, diameter)
    counted = markings.families if count == "experts" else np.arange(len(markings))
    neighbours = _neighbourhood_counts(counted, first, second)
    # Each pair the other way round too: a border marking may be either end.
    ends = np.concatenate([first, second]), np.concatenate([second, first])
    both = np.concatenate([apart, apart])
    found = {}
    for least in wanted:
        core = neighbours >= least
        labels = _core_components(core, first, second)
        _join_nearest_core(labels, core, ends, both)
        found[least] = _number_by_appearance(labels)
    return found


def clusters_breaking_family_rule(labels: ArrayLike, families: ArrayLike) -> Labels:
    """Labels of the clusters that hold a family more than once, sorted; noise (-1) left out."""
    pairs = np.column_stack([np.asarray(labels), np.unique(families, return_inverse=True)[1]])
    held, times = np.unique(pairs[pairs[:, 0] >= 0], axis=0, return_counts=True)
    return np.unique(held[times > 1, 0]).astype(np.int64)


def _neighbour_pairs(
    markings: Items, distance: float, diameter: float
) -> tuple[Labels, Labels, NDArray[np.float64]]:
    """Every neighbouring pair once, with its distance in units of the mean diameter.

    Neighbours' diameters are within a factor of 1 + ``diameter``. So the markings are sorted
    into classes of that width, and only pairs within a class or between adjacent ones are
    looked at, within the reach of the larger class: small markings never look as far as
    large ones, and the time stays nearly linear.
    """
    place = markings.places
    size = markings.diameter
    image = np.zeros(len(size), int) if markings.image is None else markings.image
    # A hair wider than the factor, so that rounding cannot part neighbours by two classes.
    width = np.log1p(diameter) * (1 + 1e-9)
    size_class = np.floor((np.log(size) - np.log(size.min())) / width).astype(np.int64)
    found: list[tuple[Labels, Labels]] = []
    for name in np.unique(image):
        below: tuple[int, Labels, cKDTree] | None = None
        for level in np.unique(size_class[image == name]).tolist():
            members = np.flatnonzero((image == name) & (size_class == level))
            tree = cKDTree(place[members])
            reach = distance * size[members].max()
            within = tree.query_pairs(reach, output_type="ndarray")
            found.append((members[within[:, 0]], members[within[:, 1]]))
            if below is not None and below[0] == level - 1:
                across = below[2].sparse_distance_matrix(tree, reach, output_type="ndarray")
                found.append((below[1][across["i"]], members[across["j"]]))
            below = level, members, tree
    first, second = (np.concatenate(side) for side in zip(*found, strict=True))
    apart = np.linalg.norm(place[first] - place[second], axis=1) / (
        (size[first] + size[second]) / 2
    )
    alike = np.abs(size[first] - size[second]) < diameter * np.minimum(size[first], size[second])
    neighbours = (apart < distance) & alike
    return first[neighbours], second[neighbours], apart[neighbours]


def _neighbourhood_counts(counted: Labels, first: Labels, second: Labels) -> Labels:
    """How many different values of ``counted`` each marking has around it, its own included."""
    n = counted.size
    owner = np.concatenate([np.arange(n), first, second])
    value = np.concatenate([counted, counted[second], counted[first]])
    return np.bincount(np.unique(owner * n + value) // n, minlength=n)


def _core_components(core: NDArray[np.bool_], first: Labels, second: Labels) -> Labels:
    """Components of the graph of neighbouring cores; -1 for all others."""
    joined = core[first] & core[second]
    edges = coo_array(
        (np.ones(joined.sum(), np.int8), (first[joined], second[joined])),
        shape=(core.size, core.size),
    )
    components = connected_components(edges, directed=False)[1]
    return np.where(core, components, -1).astype(np.int64)


def _join_nearest_core(
    labels: Labels, core: NDArray[np.bool_], ends: tuple[Labels, Labels], apart: NDArray[np.float64]
) -> None:
    border, other = ends
    reached = ~core[border] & core[other]
    border, other, apart = border[reached], other[reached], apart[reached]
    # Sorted by marking, then distance, then row: the first of each marking's cores is its nearest.
    nearest_first = np.lexsort((other, apart, border))
    chosen, place = np.unique(border[nearest_first], return_index=True)
    labels[chosen] = labels[other[nearest_first][place]]


def _number_by_appearance(labels: Labels) -> Labels:
    clustered = labels >= 0
    _, where, code = np.unique(labels[clustered], return_index=True, return_inverse=True)
    numbered = np.full(labels.size, -1, np.int64)
    numbered[clustered] = np.argsort(np.argsort(where))[code]
    return numbered


#: Values of k that the first look at the silhouette tries, in geometric steps.
FIRST_LOOK = 9
#: The search ends when the best k is known to this share of itself.
PRECISION = 0.02
#: The silhouette takes time in the square of the markings; beyond so many, k must be given.
MOST_FOR_SILHOUETTE = 20_000


def kmeans(
    markings: Items,
    k: int | None = None,
    *,
    restarts: int = 1,
    model: CircleSettings | None = None,
    seed: int = 1,
) -> NDArray[np.int64]:
    """Cluster of each marking; without ``k`` the one with the best silhouette found.

    The search runs from the longest list, below which the family rule could not hold, to
    n - 1: geometric steps first, then ever finer ones around the best.
    """
    features = scaled_features(markings, model)
    distinct = len(np.unique(features, axis=0))
    if k is not None:
        if not 1 <= k <= distinct:
            raise SettingsError(f"k is {k}; it must be from 1 to the {distinct} distinct markings")
        return _kmeans_labels(features, k, restarts, seed)
    if len(features) > MOST_FOR_SILHOUETTE:
        raise SettingsError(
            f"{len(features)} markings are too many to choose k by the silhouette; give k"
        )
    longest = int(np.bincount(markings.families).max())
    low, high = max(2, longest), min(distinct, len(features) - 1)
    if low > high:
        return np.arange(len(features))
    search = _Silhouettes(features, restarts, seed)
    return search.labels(search.best(low, high))


def scaled_features(markings: Items, model: CircleSettings | None = None) -> NDArray[np.float64]:
    """x, y and log diameter in units of the prior standard deviations at the median size."""
    middle = np.array([np.median(np.log(markings.diameter))])
    position, size = mean_variances(middle, hyper_of(markings, model))
    unit = np.sqrt([position[0], position[0], size[0]])
    return np.asarray(markings.features / unit)


def _kmeans_labels(
    features: NDArray[np.float64], k: int, restarts: int, seed: int
) -> NDArray[np.int64]:
    fitted = (
        _scikit_learn()
        .cluster.KMeans(n_clusters=k, n_init=restarts, random_state=seed)
        .fit(features)
    )
    return np.asarray(fitted.labels_, np.int64)


class _Silhouettes:
    """Silhouettes by k, each computed once."""

    def __init__(self, features: NDArray[np.float64], restarts: int, seed: int) -> None:
        self._features = features
        self._restarts = restarts
        self._seed = seed
        self._scores: dict[int, float] = {}

    def labels(self, k: int) -> NDArray[np.int64]:
        """k-means with this k; the same seed gives the same answer every time."""
        return _kmeans_labels(self._features, k, self._restarts, self._seed)

    def best(self, low: int, high: int) -> int:
        """The best of ever finer grids around the best so far."""
        grid = np.unique(np.geomspace(low, high, FIRST_LOOK).round().astype(int))
        while True:
            for k in grid.tolist():
                if k not in self._scores:
                    self._scores[k] = self._silhouette(k)
            best = max(self._scores, key=lambda k: (self._scores[k], -k))
            tried = sorted(self._scores)
            place = tried.index(best)
            below, above = tried[max(place - 1, 0)], tried[min(place + 1, len(tried) - 1)]
            if above - below <= max(2.0, PRECISION * best):
                return best
            grid = np.unique(np.linspace(below, above, 5).round().astype(int))

    def _silhouette(self, k: int) -> float:
        score = _scikit_learn().metrics.silhouette_score
        return float(score(self._features, self.labels(k)))


def _scikit_learn() -> Any:
    try:
        import sklearn.cluster
        import sklearn.metrics
    except ImportError:
        raise SettingsError("k-means needs scikit-learn: pip install 'dfcrp[sklearn]'") from None
    return sklearn

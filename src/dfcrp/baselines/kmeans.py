"""k-means (Lloyd's algorithm, scikit-learn's), with k given or chosen by the silhouette.

Features are divided by the main model's prior standard deviations at the median size, so that
a difference of one means the same in position and in log diameter. k-means knows one scale for
all clusters: large objects, which are marked less exactly, suffer from it. Families play no part.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dfcrp.baselines.evidence import hyper_of
from dfcrp.errors import SettingsError
from dfcrp.items.items import Items
from dfcrp.likelihoods.circle.neighbours import mean_variances
from dfcrp.likelihoods.circle.settings import CircleSettings

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
        return _labels(features, k, restarts, seed)
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


def _labels(features: NDArray[np.float64], k: int, restarts: int, seed: int) -> NDArray[np.int64]:
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
        return _labels(self._features, k, self._restarts, self._seed)

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

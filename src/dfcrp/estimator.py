"""The DFCRP as an estimator with scikit-learn's conventions."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dfcrp.errors import InputError
from dfcrp.fitting import fit
from dfcrp.items.measurements import Measurements
from dfcrp.posterior.features import FeaturePosterior
from dfcrp.posterior.prediction import membership_of_new

try:
    from sklearn.base import BaseEstimator, ClusterMixin
    from sklearn.utils import check_random_state
    from sklearn.utils.validation import check_is_fitted, validate_data
except ImportError as error:
    message = "the estimator needs scikit-learn: pip install 'dfcrp[sklearn]'"
    raise ImportError(message) from error

#: Label of a new item that belongs to none of the clusters.
NONE = -1
#: Seeds go from 0 to this.
LARGEST_SEED = 2**31 - 1


class DFCRP(ClusterMixin, BaseEstimator):
    """Cluster rows of which those of one group never share a cluster.

    ``groups`` are the sources of the rows (experts, lists, detectors). Without them this is a
    Dirichlet process mixture (CRP). No number of clusters and no scale has to be chosen: scales are
    learned, relative to the data's own.

    Parameters are those of ``dfcrp.fit``: ``likelihood`` ("diagonal", "normal", "points", "boxes",
    "ellipses"), ``prior``, ``chains``, ``scans``, ``burn_in``, ``radius``, ``nearest``, ``workers``
    and ``config`` for all other settings; ``loss`` ("vi" or "binder") picks the partition that
    becomes ``labels_``.

    After ``fit``: ``labels_`` (0, 1, ...), ``probabilities_`` (how sure each row is of its label),
    ``n_clusters_``, ``cluster_centers_``, and ``posterior_`` with everything else.
    """

    def __init__(
        self,
        *,
        likelihood: str = "diagonal",
        prior: str | None = None,
        chains: int = 2,
        scans: int = 600,
        burn_in: int | None = None,
        radius: float | str | None = "auto",
        nearest: int | None = None,
        workers: int | None = None,
        loss: str = "vi",
        config: Any = None,
        random_state: Any = None,
    ) -> None:
        self.likelihood = likelihood
        self.prior = prior
        self.chains = chains
        self.scans = scans
        self.burn_in = burn_in
        self.radius = radius
        self.nearest = nearest
        self.workers = workers
        self.loss = loss
        self.config = config
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, groups: Any = None) -> DFCRP:
        """Cluster the rows of X; ``y`` is ignored."""
        values = validate_data(self, X, dtype=np.float64, ensure_min_samples=2)
        items = Measurements.from_arrays(
            values, _codes(groups, len(values)), likelihood=self.likelihood
        )
        settings = {
            name: value
            for name in ("burn_in", "nearest", "workers", "prior")
            if (value := getattr(self, name)) is not None
        }
        if groups is None:
            settings.setdefault("prior", "crp")
        seed = int(check_random_state(self.random_state).randint(LARGEST_SEED))
        posterior = fit(
            items,
            chains=self.chains,
            scans=self.scans,
            radius=self.radius,
            seed=seed,
            config=self.config,
            **settings,
        )
        assert isinstance(posterior, FeaturePosterior)
        self._keep(posterior)
        return self

    def _keep(self, posterior: FeaturePosterior) -> None:
        labels = np.unique(posterior.point_partition(self.loss).labels, return_inverse=True)[1]
        self.posterior_ = posterior
        self.labels_: NDArray[np.int64] = labels.astype(np.int64)
        self.probabilities_ = posterior.membership.p_member
        self.n_clusters_ = int(labels.max()) + 1
        sums = np.zeros((self.n_clusters_, posterior.items.values.shape[1]))
        np.add.at(sums, labels, posterior.items.values)
        self.cluster_centers_ = sums / np.bincount(labels)[:, np.newaxis]

    def fit_predict(self, X: Any, y: Any = None, groups: Any = None) -> NDArray[np.int64]:
        """Fit and return ``labels_``."""
        return self.fit(X, y, groups=groups).labels_

    def predict_proba(self, X: Any, groups: Any = None) -> NDArray[np.float64]:
        """(m, n_clusters_ + 1): probability that a new row belongs to each cluster, or to none.

        With ``groups`` a row is barred from clusters that hold its group already.
        """
        check_is_fitted(self)
        values = validate_data(self, X, dtype=np.float64, reset=False)
        codes = None if groups is None else self._known_codes(groups, len(values))
        return membership_of_new(self.posterior_, values, codes)

    def predict(self, X: Any, groups: Any = None) -> NDArray[np.int64]:
        """Most probable cluster of each new row, -1 if that is none of them."""
        chance = self.predict_proba(X, groups)
        best = chance.argmax(axis=1)
        return np.where(best == self.n_clusters_, NONE, best)

    def _known_codes(self, groups: Any, n: int) -> NDArray[np.int64]:
        """Codes of the fitted groups; -1 for new ones."""
        names = [str(name) for name in np.asarray(groups).tolist()]
        if len(names) != n:
            raise InputError(f"groups must be {n} names or numbers, one per row, not {len(names)}")
        known = {name: code for code, name in enumerate(self.posterior_.items.experts)}
        return np.array([known.get(name, -1) for name in names], dtype=np.int64)


def _codes(groups: Any, n: int) -> Any:
    """Groups as they are; none of them: every row is a group of its own."""
    if groups is None:
        return None
    if len(groups) != n:
        raise InputError(f"groups must be {n} names or numbers, one per row, not {len(groups)}")
    return np.asarray(groups)

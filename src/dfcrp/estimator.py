"""The DFCRP as an estimator with scikit-learn's conventions."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dfcrp.errors import InputError, SettingsError
from dfcrp.fitting import fit
from dfcrp.items.given import items_of
from dfcrp.likelihoods.registry import likelihood_named
from dfcrp.posterior.explain import membership_of_new
from dfcrp.posterior.posterior import Posterior
from dfcrp.values import Array, Json

try:
    from sklearn.base import BaseEstimator, ClusterMixin
    from sklearn.utils import check_random_state
    from sklearn.utils.validation import check_is_fitted, validate_data
except ImportError:
    raise SettingsError("dfcrp.DFCRP needs: pip install 'dfcrp[sklearn]'") from None

#: Label of a new item that belongs to none of the clusters.
NONE = -1
#: Seeds go from 0 to this.
LARGEST_SEED = 2**31 - 1


class DFCRP(ClusterMixin, BaseEstimator):
    """Cluster rows of which those of one group never share a cluster.

    ``groups`` are the experts (lists, detectors) that the rows come from. Without them this is a
    Dirichlet process mixture (CRP). No number of clusters and no scale has to be chosen: scales
    are learned, relative to the data's own.

    Parameters
    ----------
    likelihood : str
        What a row is: "diagonal" or "normal" for any features; "circles", "points", "boxes",
        "ellipses" with their columns in order; "records" for rows of text.
    prior : str, optional
        "dfcrp" with groups, "crp" without, unless something else is named.
    chains, scans, burn_in, radius, nearest, workers, config
        As in ``dfcrp.fit``.
    loss : str
        "vi" or "binder": the partition that becomes ``labels_``.
    random_state : int, RandomState or None
        The seed.

    Attributes
    ----------
    labels_ : array of int
        The cluster of each row, from 0.
    probabilities_ : array
        How sure each row is of its label.
    n_clusters_ : int
    cluster_centers_ : array
        Means of the rows of each cluster; not for text.
    posterior_ : Posterior
        Everything else.

    Examples
    --------
    >>> from dfcrp import DFCRP
    >>> X = [[0.0, 0.0], [0.1, 0.0], [9.0, 9.0], [9.1, 9.0]]
    >>> model = DFCRP(scans=200, random_state=1).fit(X, groups=["a", "b", "a", "b"])
    ... # doctest: +SKIP
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
        """Cluster the rows of X.

        Parameters
        ----------
        X : (n, features)
        y : ignored
            There for scikit-learn's conventions. If it holds several rows of one value while
            ``groups`` is not given, a warning says that groups are given by name.
        groups : (n,), optional
            The expert behind each row.
        """
        values = self._checked(X, reset=True)
        _warn_of_groups_as_target(y, groups)
        items = items_of(values, _codes(groups, len(values)), self.likelihood)
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
        self._keep(posterior)
        return self

    def _checked(self, X: object, *, reset: bool) -> Array:
        if likelihood_named(self.likelihood).text:
            options: Json = {"dtype": object, "ensure_all_finite": False}
        else:
            options = {"dtype": np.float64}
        if reset:
            options["ensure_min_samples"] = 2
        found: Array = validate_data(self, X, reset=reset, **options)
        return found

    def _keep(self, posterior: Posterior) -> None:
        labels = np.unique(posterior.point_partition(self.loss).labels, return_inverse=True)[1]
        self.posterior_ = posterior
        self.labels_: NDArray[np.int64] = labels.astype(np.int64)
        self.probabilities_ = posterior.membership.p_member
        self.n_clusters_ = int(labels.max()) + 1
        if not posterior.likelihood.text:
            values = posterior.items.values
            sums = np.zeros((self.n_clusters_, values.shape[1]))
            np.add.at(sums, labels, values)
            self.cluster_centers_ = sums / np.bincount(labels)[:, np.newaxis]

    def fit_predict(self, X: object, y: object = None, groups: object = None) -> NDArray[np.int64]:
        """Fit and return ``labels_``."""
        return self.fit(X, y, groups=groups).labels_

    def predict_proba(self, X: object, groups: object = None) -> NDArray[np.float64]:
        """(m, n_clusters_ + 1): probability that a new row belongs to each cluster, or to none.

        With ``groups`` a row is barred from clusters that hold its group already.
        """
        check_is_fitted(self)
        values = self._checked(X, reset=False)
        codes = None if groups is None else self._known_codes(groups, len(values))
        return membership_of_new(self.posterior_, values, codes)

    def predict(self, X: object, groups: object = None) -> NDArray[np.int64]:
        """Most probable cluster of each new row, -1 if that is none of them."""
        chance = self.predict_proba(X, groups)
        best = chance.argmax(axis=1)
        return np.where(best == self.n_clusters_, NONE, best)

    def _known_codes(self, groups: object, n: int) -> NDArray[np.int64]:
        """Codes of the fitted groups; -1 for new ones."""
        names = [str(name) for name in np.asarray(groups).tolist()]
        if len(names) != n:
            raise InputError(f"groups must be {n} names or numbers, one per row, not {len(names)}")
        known = {name: code for code, name in enumerate(self.posterior_.items.experts)}
        return np.array([known.get(name, -1) for name in names], dtype=np.int64)


def _codes(groups: Any, n: int) -> Array | None:
    """Groups as they are; none of them: every row is a group of its own."""
    if groups is None:
        return None
    if len(groups) != n:
        raise InputError(f"groups must be {n} names or numbers, one per row, not {len(groups)}")
    return np.asarray(groups)


def _warn_of_groups_as_target(y: Any, groups: Any) -> None:
    """``fit(X, y)`` ignores y, as scikit-learn's clusterers do; say so if y looks like groups."""
    if y is None or groups is not None or np.ndim(y) != 1:
        return
    names = np.asarray(y)
    if names.dtype.kind in "OUSiub" and 1 < len(np.unique(names)) < len(names):
        import warnings

        from dfcrp.errors import DfcrpWarning

        warnings.warn(
            "y is ignored, so any two rows may share a cluster; if y says which expert or list "
            "each row comes from, give it as groups=",
            DfcrpWarning,
            stacklevel=3,
        )

"""How well new items fit clusters whose members are known, parameters integrated out."""

from __future__ import annotations

from dfcrp.compiled.jit import entry_kernel
from dfcrp.likelihoods import contract as likelihood
from dfcrp.likelihoods.integrated import empty_row


@entry_kernel
def weigh_new(hyper, y, cluster, new, theta, out):
    """``out[m, k]``: log density of new item m given the members of cluster k; last, of none.

    ``cluster`` numbers the clusters of the items y from 0; ``theta`` has a row for each and one
    more to work in.
    """
    count = theta.shape[0] - 1
    for k in range(count + 1):
        empty_row(hyper, theta, k)
    for i in range(y.shape[0]):
        likelihood.add_member(hyper, theta, cluster[i], y, i)
    for m in range(new.shape[0]):
        for k in range(count + 1):
            out[m, k] = likelihood.log_density(hyper, theta, k, new, m)

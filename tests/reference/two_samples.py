"""Whether two samples are of one distribution."""

from __future__ import annotations

import numpy as np
from scipy import stats

#: Of larger samples the exact probability does not always come out.
MOST_EXACT = 300


def same_law(one, two) -> float:
    """p value of Kolmogorov and Smirnov's test; what is no number is left out."""
    a, b = (
        values[~np.isnan(values)] for values in (np.asarray(one, float), np.asarray(two, float))
    )
    method = "exact" if max(len(a), len(b)) <= MOST_EXACT else "asymp"
    return float(stats.ks_2samp(a, b, method=method).pvalue)

"""Any features, normal about the mean of their object."""

from dfcrp.likelihoods.normal import (  # noqa: F401 - registered by their import
    bias,
    covariance,
    kernel,
    law,
    tails,
)

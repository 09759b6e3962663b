"""Any features, normal about the mean of their object."""

from dfcrp.likelihoods.normal import bias, covariance, kernel  # noqa: F401 - for what they register

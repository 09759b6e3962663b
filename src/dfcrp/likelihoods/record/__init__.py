"""Records of several fields."""

from dfcrp.likelihoods.record import kernel, rates  # noqa: F401 - registered by their import

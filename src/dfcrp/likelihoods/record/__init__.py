"""Records of several fields."""

from dfcrp.likelihoods.record import kernel  # noqa: F401 - registered by its import

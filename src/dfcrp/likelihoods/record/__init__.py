"""Records of several fields."""

from dfcrp.likelihoods.record import kernel, sources  # noqa: F401 - registered by their import

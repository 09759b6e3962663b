"""The DFCRP with attraction between lists of one person."""

from dfcrp.priors.attraction import kernel  # noqa: F401 - registered by its import

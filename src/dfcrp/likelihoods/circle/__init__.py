"""Circles, in a plane and on a sphere."""

from dfcrp.likelihoods.circle import plane, sphere  # noqa: F401 - registered by their import

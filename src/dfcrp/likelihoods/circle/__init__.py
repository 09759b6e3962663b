"""Circles, in a plane and on a sphere."""

from dfcrp.likelihoods.circle import (  # noqa: F401 - registered by their import
    bias,
    kernel,
    proposal,
    sphere,
    sphere_proposal,
    tolerance,
)

"""Every likelihood and every prior of this package: importing a module registers what it has."""

from __future__ import annotations

from dfcrp.kernels import (
    arrivals,
    circle,
    circle_proposal,
    detection,
    detection_update,
    tolerance,
)

LIKELIHOODS = (circle, circle_proposal, tolerance)
PRIORS = (arrivals, detection, detection_update)

"""Every likelihood and every prior of this package: importing a module registers what it has."""

from __future__ import annotations

from dfcrp.kernels import (
    arrivals,
    attraction,
    bias_update,
    circle,
    circle_proposal,
    covariance,
    detection,
    detection_update,
    normal,
    normal_law,
    records,
    sphere,
    sphere_proposal,
)

LIKELIHOODS = (
    circle,
    circle_proposal,
    bias_update,
    normal,
    normal_law,
    covariance,
    records,
    sphere,
    sphere_proposal,
)
PRIORS = (arrivals, attraction, detection, detection_update)

"""The DFCRP, the constrained CRP and the CRP: customers arrive one after the other."""

from dfcrp.priors.arrivals import kernel  # noqa: F401 - registered by its import

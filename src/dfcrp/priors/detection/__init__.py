"""The detection prior: what is real, and how many objects everyone missed."""

from dfcrp.priors.detection import (  # noqa: F401 - registered by their import
    kernel,
    update,
)

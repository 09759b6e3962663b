"""Other ways to merge the lists, behind one interface: markings in, labels or draws out."""

from dfcrp.baselines.comparison import Comparison, compare
from dfcrp.baselines.methods import METHODS, Length, Method, make_methods
from dfcrp.baselines.relatives import constrained_crp, distance_dependent_crp
from dfcrp.baselines.scores import (
    adjusted_rand,
    adjusted_rand_of_draws,
    variation_of_information,
)
from dfcrp.baselines.without_model import clusters_breaking_family_rule, dbscan_r14, kmeans
from dfcrp.baselines.wrapping import posterior_of_labels

__all__ = [
    "METHODS",
    "Comparison",
    "Length",
    "Method",
    "adjusted_rand",
    "adjusted_rand_of_draws",
    "clusters_breaking_family_rule",
    "compare",
    "constrained_crp",
    "dbscan_r14",
    "distance_dependent_crp",
    "kmeans",
    "make_methods",
    "posterior_of_labels",
    "variation_of_information",
]

"""Other ways to merge the lists, with the same input as the main model."""

from dfcrp.baselines.dbscan import clusters_breaking_family_rule, dbscan_r14

__all__ = ["clusters_breaking_family_rule", "dbscan_r14"]

"""Priors over partitions. One folder for each."""

"""Likelihoods: what is known of the items of one object. One folder for each."""

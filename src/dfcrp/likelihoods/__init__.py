"""Likelihoods: what is known of the items of one object. One folder for each."""

#: What settings of several likelihoods may be; the command line loads nothing heavier for them.
EXPERT_BIAS = ("auto", "none", "offset", "precision", "both")
TAILS = ("auto", "learned", "none")

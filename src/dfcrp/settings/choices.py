"""What some settings may be; loads nothing, for the command line."""

from __future__ import annotations

SAMPLERS = ("exact", "paper", "unmodified")
IMAGES = ("independent", "shared")
IMAGE_Y = ("auto", "up", "down")
EXPERT_BIAS = ("none", "offset", "precision", "both")
#: The paper's data sets, whose hyperparameters are in ``dfcrp.likelihoods.circle.settings``.
PRESETS = ("highlands", "reduced", "simulation")

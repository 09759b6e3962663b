"""The run folder: draws, checkpoints, provenance."""

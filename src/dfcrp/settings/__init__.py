"""Every setting of a run."""

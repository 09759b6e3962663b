"""Which items may share a cluster."""

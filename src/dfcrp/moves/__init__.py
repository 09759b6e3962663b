"""The updates of a chain, for any likelihood and any prior."""

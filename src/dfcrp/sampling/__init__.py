"""Chains: from a problem laid out for the kernels to draws in memory or on disk."""

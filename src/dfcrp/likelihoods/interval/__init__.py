"""Intervals on a line: events in recordings, spans of text."""

from dfcrp.likelihoods import normal  # noqa: F401 - for what it registers: the kernels are the same

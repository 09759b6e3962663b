"""Summaries of draws, on plain arrays: they know neither items nor settings."""

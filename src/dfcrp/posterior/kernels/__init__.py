"""Compiled summaries of draws."""

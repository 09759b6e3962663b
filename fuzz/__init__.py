"""Hostile inputs and kills at random moments."""

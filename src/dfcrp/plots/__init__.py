"""Figures: for each, one function that prepares its table and one that draws it."""

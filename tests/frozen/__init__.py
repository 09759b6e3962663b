"""Run folders as versions of dfcrp left them, and what made them."""

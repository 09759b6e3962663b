"""Compiled code, and nothing else: state, updates, scans. It stands on no other part of dfcrp."""

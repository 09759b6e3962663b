"""Run folders as versions of dfcrp left them, and what made them.

``next`` is of what is not released yet: made again, under the new version's name, before a release.
"""

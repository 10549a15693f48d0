"""Branches, tags, merges, and who changed what."""

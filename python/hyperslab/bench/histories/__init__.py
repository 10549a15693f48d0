"""Histories are files that get one version after another. Each history is a trial."""

"""Histories are files that get one version after another. They answer seed 4's question; each history is a trial."""

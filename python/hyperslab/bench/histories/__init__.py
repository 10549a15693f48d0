"""Histories: files that get one version after another. Each is a trial: seed 4's question."""

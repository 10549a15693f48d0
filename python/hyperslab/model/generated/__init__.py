"""Evaluations on workloads that are drawn from a seed, so that nobody can have chosen them."""

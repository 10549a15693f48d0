"""Traces: which selections of which arrays a program reads and writes, in order, and how long each access takes."""

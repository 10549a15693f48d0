"""A version while you make it: groups and arrays in memory, on top of those of the version before."""

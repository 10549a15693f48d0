"""A version while it is being made: groups and arrays in memory over those of the version before."""

"""Changes to committed versions: deleting them, storing arrays in another way, repairing damaged files."""

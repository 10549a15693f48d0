"""Changing versions that were committed: deleting them, storing arrays otherwise, repairing damaged files."""

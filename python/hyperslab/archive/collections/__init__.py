"""Several files as one archive."""

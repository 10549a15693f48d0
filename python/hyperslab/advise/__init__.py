"""Which layout an array should have for the accesses that are made to it: searched, priced, and proved by running."""

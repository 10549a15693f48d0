"""How a staged version is written: chunks and their hashes, virtual arrays, marks, and last the version's link."""

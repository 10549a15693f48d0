"""How a staged version is written: chunks and hashes, virtual arrays, marks, and last the link to the version."""

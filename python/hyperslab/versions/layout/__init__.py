"""What is on disk: names, the table of versions, a version as a group, and its fingerprint. The engine reads it."""

"""The tree of an archive: open files, groups, arrays, and how these are indexed and read."""

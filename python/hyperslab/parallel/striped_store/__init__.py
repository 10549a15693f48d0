"""A small parallel file system of real processes: data servers behind rate limits, a metadata server, and clients."""

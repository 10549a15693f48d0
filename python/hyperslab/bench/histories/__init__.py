"""Histories: files that get one version after another, as in versioned-hdf5's article. Each of them is a trial."""

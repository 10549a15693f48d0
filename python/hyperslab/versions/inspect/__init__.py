"""Questions about versions that change nothing: log, differences, sizes, verification, export. They need no h5py."""

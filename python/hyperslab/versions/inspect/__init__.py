"""What is said of versions without changing them: log, differences, sizes, proof, copies. Works without h5py."""

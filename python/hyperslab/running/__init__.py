"""`hyperslab run`: start a program whose HDF5 reads our engine serves, and say at the end what it did."""

//! The names and numbers of codecs, for the table in Python.

use hyperslab_core::KnownCodec;
use pyo3::prelude::*;

/// Of each codec that files name: its name, the number of HDF5's filter (0 for none), and its names in numcodecs and in
/// Zarr 3 (empty for none).
#[pyfunction]
pub(crate) fn codec_names() -> Vec<(&'static str, u32, &'static str, &'static str)> {
    KnownCodec::all().map(|codec| (codec.name, codec.hdf5, codec.numcodecs, codec.zarr3)).collect()
}

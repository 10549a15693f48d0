//! Hashes and gathers the chunks of arrays in memory, and compares those of files.

use std::path::PathBuf;

use hyperslab_archive::{CallerError, ChunkSource, HashError, StoredPairs};
use hyperslab_core::ChunkGrid;
use hyperslab_engine::codecs;
use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::errors;
use crate::panics::detached;

/// SHA-256 of the valid part of chunks of an array, and of its shape, as versioned-hdf5 computes it.
#[pyfunction]
#[pyo3(signature = (data, shapes, numbers, width, taken=None))]
#[allow(clippy::needless_pass_by_value)] // PyO3 hands arguments over by value
pub(crate) fn hash_chunks<'py>(
    py: Python<'py>,
    data: PyReadonlyArray1<'py, u8>,
    shapes: (Vec<u64>, Vec<u64>),
    numbers: PyReadonlyArray1<'py, i64>,
    width: usize,
    taken: Option<Taken>,
) -> PyResult<Bound<'py, PyBytes>> {
    let grid = ChunkGrid::new(shapes.0, shapes.1).map_err(errors::to_python)?;
    let source = ChunkSource::Array(whole(&data, &grid, width)?);
    hashed(py, source, &grid, numbers.as_slice()?, width, taken)
}

/// The same for whole chunks that lie in the slots of a slab.
#[pyfunction]
#[pyo3(signature = (slab, slots, numbers, shapes, width, taken=None))]
#[allow(clippy::needless_pass_by_value)] // PyO3 hands arguments over by value
pub(crate) fn hash_staged<'py>(
    py: Python<'py>,
    slab: PyReadonlyArray1<'py, u8>,
    slots: PyReadonlyArray1<'py, i64>,
    numbers: PyReadonlyArray1<'py, i64>,
    shapes: (Vec<u64>, Vec<u64>),
    width: usize,
    taken: Option<Taken>,
) -> PyResult<Bound<'py, PyBytes>> {
    let grid = ChunkGrid::new(shapes.0, shapes.1).map_err(errors::to_python)?;
    let source = ChunkSource::Slab(slab.as_slice()?, slots.as_slice()?);
    hashed(py, source, &grid, numbers.as_slice()?, width, taken)
}

/// How many hashes to take at a time, and the function that takes them.
type Taken = (usize, Py<PyAny>);

fn hashed<'py>(
    py: Python<'py>,
    source: ChunkSource<'_>,
    grid: &ChunkGrid,
    numbers: &[i64],
    width: usize,
    taken: Option<Taken>,
) -> PyResult<Bound<'py, PyBytes>> {
    let digests = detached(py, || match taken {
        None => hyperslab_archive::hash_chunks(source, grid, numbers, width, None),
        Some((step, function)) => {
            let mut take = |first: usize, digests: &[u8]| {
                let taken =
                    Python::attach(|py| function.call1(py, (first, PyBytes::new(py, digests))).map(drop));
                taken.map_err(CallerError::from)
            };
            hyperslab_archive::hash_chunks(source, grid, numbers, width, Some((step, &mut take)))
        }
    })?;
    digests.map(|digests| PyBytes::new(py, &digests)).map_err(|error| match error {
        HashError::Misfit => PyValueError::new_err(error.to_string()),
        HashError::Caller(error) => errors::of_caller(error),
    })
}

/// Whole chunks of an array, padded with the fill value outside the array.
#[pyfunction]
#[allow(clippy::needless_pass_by_value)] // PyO3 hands arguments over by value
pub(crate) fn gather_chunks<'py>(
    py: Python<'py>,
    data: PyReadonlyArray1<'py, u8>,
    shapes: (Vec<u64>, Vec<u64>),
    numbers: PyReadonlyArray1<'py, i64>,
    fill: &[u8],
) -> PyResult<Bound<'py, PyArray1<u8>>> {
    let grid = ChunkGrid::new(shapes.0, shapes.1).map_err(errors::to_python)?;
    let (bytes, numbers) = (whole(&data, &grid, fill.len())?, numbers.as_slice()?);
    let gathered = detached(py, || hyperslab_archive::gather_chunks(bytes, &grid, numbers, fill))?;
    let too_many = || PyValueError::new_err("the chunks do not fit in memory");
    gathered.map(|out| out.into_pyarray(py)).ok_or_else(too_many)
}

/// Whether chunks are stored with the same bytes in two files.
#[pyfunction]
#[allow(clippy::needless_pass_by_value)] // PyO3 hands arguments over by value
pub(crate) fn same_stored<'py>(
    py: Python<'py>,
    paths: (PathBuf, PathBuf),
    lengths: PyReadonlyArray1<'py, u64>,
    starts: (PyReadonlyArray1<'py, u64>, PyReadonlyArray1<'py, u64>),
    piece_nbytes: usize,
) -> PyResult<Bound<'py, PyArray1<bool>>> {
    let (lengths, first, second) = (lengths.as_slice()?, starts.0.as_slice()?, starts.1.as_slice()?);
    if first.len() != lengths.len() || second.len() != lengths.len() {
        return Err(PyValueError::new_err("lengths and starts have different lengths"));
    }
    let pairs = StoredPairs { lengths, first, second };
    let same = detached(py, || hyperslab_archive::same_stored((&paths.0, &paths.1), pairs, piece_nbytes))?;
    Ok(same?.into_pyarray(py))
}

/// Bytes encoded by LZF.
#[pyfunction]
pub(crate) fn lzf<'py>(py: Python<'py>, data: &[u8]) -> Bound<'py, PyBytes> {
    PyBytes::new(py, &codecs::lzf(data))
}

/// Checks that the bytes are those of the grid's array.
fn whole<'a>(data: &'a PyReadonlyArray1<'_, u8>, grid: &ChunkGrid, width: usize) -> PyResult<&'a [u8]> {
    let bytes = data.as_slice()?;
    let needed = usize::try_from(grid.shape().iter().product::<u64>())?.checked_mul(width);
    if needed != Some(bytes.len()) || grid.shape().is_empty() {
        return Err(PyValueError::new_err("the data do not have the given shape"));
    }
    Ok(bytes)
}

//! Encodes the chunks of a slab and hands them to Python, or to libhdf5.

use hyperslab_archive::{EncodeError, EncodedChunk, Encoding, Slab, encode_slab};
use hyperslab_core::ChunkGrid;
use hyperslab_engine::codecs::Filter;
use hyperslab_engine::default_thread_count;
use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::errors;
use crate::panics::detached;

/// The steps of an encoding, each by its name and parameters.
pub(crate) type Filters = Vec<(String, Vec<i64>)>;
/// The shape of a slab, and that of a chunk.
pub(crate) type Shapes = (Vec<u64>, Vec<u64>);
type Checksums<'py> = Bound<'py, PyArray1<u32>>;
/// Of each chunk its checksum before encoding, its stored bytes, and a bit for each filter that was skipped.
pub(crate) type Encoded<'py> = (Checksums<'py>, Bound<'py, PyArray1<u64>>, Checksums<'py>);

/// A look at signals every so many chunks costs nothing and makes Ctrl-C quick.
const CHUNKS_BETWEEN_CHECKS: usize = 16;

/// Encodes the chunks of a slab; `taken` gets number, bytes and mask of each, in order. Returns checksums.
#[pyfunction]
#[pyo3(signature = (data, shapes, fill, filters, taken, threads=None, leaves_out_fill=false))]
#[allow(clippy::needless_pass_by_value, clippy::too_many_arguments)] // one for each keyword, by value as PyO3 hands them
pub(crate) fn encode_chunks<'py>(
    py: Python<'py>,
    data: PyReadonlyArray1<'py, u8>,
    shapes: Shapes,
    fill: Vec<u8>,
    filters: Filters,
    taken: Option<Py<PyAny>>,
    threads: Option<usize>,
    leaves_out_fill: bool,
) -> PyResult<Checksums<'py>> {
    let filters = self::filters(&filters)?;
    let keeps_bytes = taken.is_some();
    let encoding = Encoding { filters: &filters, threads: count(threads), leaves_out_fill, keeps_bytes };
    encoded(py, &data, shapes, &fill, encoding, |number, chunk| match &taken {
        None => Ok(()),
        Some(function) => Python::attach(|py| {
            let bytes = chunk.bytes.as_ref().map(|bytes| PyBytes::new(py, bytes));
            function.call1(py, (number, bytes, chunk.mask)).map(drop)
        }),
    })
}

/// Encodes the chunks of a slab whose first element is at `first` in an array. `store` gets of each chunk that is not left
/// out where it begins in the array, its bytes and its mask.
pub(crate) fn write<'py>(
    py: Python<'py>,
    data: &PyReadonlyArray1<'py, u8>,
    shapes: Shapes,
    fill: &[u8],
    (filters, threads, leaves_out_fill): (&[Filter], Option<usize>, bool),
    first: &[u64],
    mut store: impl FnMut(&[u64], &[u8], u32) -> PyResult<()> + Send,
) -> PyResult<Encoded<'py>> {
    let grid = ChunkGrid::new(shapes.0.clone(), shapes.1.clone()).map_err(errors::to_python)?;
    let encoding = Encoding { filters, threads: count(threads), leaves_out_fill, keeps_bytes: true };
    let (mut sizes, mut masks) = (Vec::new(), Vec::new());
    let checksums = encoded(py, data, shapes, fill, encoding, |number, chunk| {
        sizes.push(chunk.bytes.as_ref().map_or(0, |bytes| bytes.len() as u64));
        masks.push(chunk.mask);
        let Some(bytes) = chunk.bytes else { return Ok(()) };
        let index = grid.chunk_index(number as u64).map_err(errors::to_python)?;
        let within = index.iter().zip(grid.chunk_shape());
        let start = first.iter().zip(within).map(|(first, (at, length))| first.checked_add(at * length));
        let start: Option<Vec<u64>> = start.collect();
        store(&start.ok_or_else(|| PyValueError::new_err("no array is as long as that"))?, &bytes, chunk.mask)
    })?;
    Ok((checksums, sizes.into_pyarray(py), masks.into_pyarray(py)))
}

fn encoded<'py>(
    py: Python<'py>,
    data: &PyReadonlyArray1<'py, u8>,
    shapes: Shapes,
    fill: &[u8],
    encoding: Encoding<'_>,
    mut take: impl FnMut(usize, EncodedChunk) -> PyResult<()> + Send,
) -> PyResult<Checksums<'py>> {
    let grid = ChunkGrid::new(shapes.0, shapes.1).map_err(errors::to_python)?;
    let slab = Slab { bytes: data.as_slice()?, grid: &grid, fill };
    let mut checksums = Vec::new();
    let done = detached(py, || {
        encode_slab(slab, encoding, |number, chunk| {
            checksums.push(chunk.checksum);
            if number % CHUNKS_BETWEEN_CHECKS == 0 {
                #[allow(clippy::redundant_closure_for_method_calls)] // the method has one lifetime, not any
                Python::attach(|py| py.check_signals())?;
            }
            take(number, chunk)
        })
    })?;
    done.map_err(|error| match error {
        EncodeError::Misfit => {
            PyValueError::new_err("the data do not have the given shape, or a chunk does not fit in memory")
        }
        EncodeError::Refused(number) => PyValueError::new_err(format!("chunk {number} cannot be encoded")),
        EncodeError::Taking(error) => error,
    })?;
    Ok(checksums.into_pyarray(py))
}

fn count(threads: Option<usize>) -> usize {
    threads.unwrap_or_else(default_thread_count)
}

/// The steps of an encoding.
pub(crate) fn filters(given: &Filters) -> PyResult<Vec<Filter>> {
    let of = |(step, numbers): &(String, Vec<i64>)| {
        let unknown =
            || PyValueError::new_err(format!("no encoder for {step} with the parameters {numbers:?}"));
        Filter::of(step, numbers).ok_or_else(unknown)
    };
    given.iter().map(of).collect()
}

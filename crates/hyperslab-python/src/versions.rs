//! What versioned files take of their virtual arrays, and the hashes of their chunks.

use hyperslab_core::{ChunkBox, ChunkGrid, chunk_places};
use hyperslab_engine::default_thread_count;
use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use ring::digest::{Context, Digest, SHA256};

use crate::stored_array::StoredArray;
use crate::{errors, integers};

/// Of each chunk of a version's array, in C order, its place in the stack of all chunks; -1 of those that are not
/// stored. None if the array is not made of such chunks.
#[pyfunction]
#[allow(clippy::needless_pass_by_value)] // PyO3 hands arguments over by value
pub(crate) fn chunk_places_of<'py>(
    py: Python<'py>,
    array: &Bound<'py, StoredArray>,
    chunk_shape: Vec<u64>,
) -> PyResult<Option<Bound<'py, PyArray1<i64>>>> {
    let array = array.get();
    let described = array.described();
    let Some(shape) = described.shape.clone() else { return Ok(None) };
    let grid = ChunkGrid::new(shape, chunk_shape).map_err(errors::to_python)?;
    let places = py.detach(|| {
        let found = chunk_places(&described.virtual_mappings, &grid)?;
        let mut places = vec![-1; usize::try_from(grid.chunk_count()).ok()?];
        for (index, place) in found {
            *places.get_mut(usize::try_from(index).ok()?)? = i64::try_from(place).ok()?;
        }
        Some(places)
    });
    Ok(places.map(|places| places.into_pyarray(py)))
}

/// The file and the path that all mappings of an array show a part of; `None` if there is no mapping.
///
/// Of mappings of several arrays both are empty.
#[pyfunction]
#[allow(clippy::needless_pass_by_value)] // PyO3 hands arguments over by value
pub(crate) fn mapped_source(array: &Bound<'_, StoredArray>) -> Option<(String, String)> {
    let mappings = &array.get().described().virtual_mappings;
    let first = mappings.first()?;
    let is_one = mappings.iter().all(|one| one.file == first.file && one.path == first.path);
    Some(if is_one { (first.file.to_string(), first.path.to_string()) } else { Default::default() })
}

/// Below so many bytes, starting threads takes longer than hashing.
const FEW_NBYTES: usize = 1 << 20;

/// SHA-256 of the valid part of each chunk of an array, and of its shape, as versioned-hdf5 wants it.
#[pyfunction]
#[allow(clippy::needless_pass_by_value)] // PyO3 hands arguments over by value
pub(crate) fn hash_chunks<'py>(
    py: Python<'py>,
    data: PyReadonlyArray1<'py, u8>,
    shape: Vec<u64>,
    chunk_shape: Vec<u64>,
    width: usize,
) -> PyResult<Bound<'py, PyBytes>> {
    let grid = ChunkGrid::new(shape, chunk_shape).map_err(errors::to_python)?;
    let bytes = data.as_slice()?;
    let needed = usize::try_from(grid.shape().iter().product::<u64>())?.checked_mul(width);
    if needed != Some(bytes.len()) || grid.shape().is_empty() {
        return Err(PyValueError::new_err("the data are not of the shape that is said"));
    }
    let mut digests = vec![0_u8; usize::try_from(grid.chunk_count())? * DIGEST_NBYTES];
    py.detach(|| {
        let count = digests.len() / DIGEST_NBYTES;
        let threads = if bytes.len() < FEW_NBYTES { 1 } else { default_thread_count() };
        let share = count.div_ceil(threads).max(1);
        std::thread::scope(|scope| {
            for (first, part) in (0..).step_by(share).zip(digests.chunks_mut(share * DIGEST_NBYTES)) {
                let grid = &grid;
                scope.spawn(move || {
                    for (index, digest) in (first..).zip(part.chunks_exact_mut(DIGEST_NBYTES)) {
                        if let Ok(chunk) = grid.chunk_index(index).and_then(|index| grid.chunk_box(&index)) {
                            digest.copy_from_slice(hash(bytes, grid.shape(), &chunk, width).as_ref());
                        }
                    }
                });
            }
        });
    });
    Ok(PyBytes::new(py, &digests))
}

const DIGEST_NBYTES: usize = 32;

/// The hash of one chunk, of bytes that were checked to be the array's.
fn hash(bytes: &[u8], shape: &[u64], chunk: &ChunkBox, width: usize) -> Digest {
    let mut context = Context::new(&SHA256);
    let (last, outer) = match chunk.valid_shape.split_last() {
        Some((&last, outer)) => (last, outer),
        None => (1, &[][..]),
    };
    let mut place = vec![0_u64; outer.len()];
    for _ in 0..outer.iter().product::<u64>() {
        let within = place.iter().copied().chain([0]);
        let axes = chunk.start.iter().zip(shape).zip(within);
        let first = axes.fold(0, |at, ((start, length), within)| at * length + start + within);
        let run = usize::try_from(first).unwrap_or(usize::MAX).saturating_mul(width);
        let stop = run.saturating_add(usize::try_from(last).unwrap_or(usize::MAX).saturating_mul(width));
        context.update(bytes.get(run..stop).unwrap_or_default());
        for (axis, length) in place.iter_mut().zip(outer).rev() {
            *axis += 1;
            if *axis < *length {
                break;
            }
            *axis = 0;
        }
    }
    context.update(integers::repr(&chunk.valid_shape).as_bytes());
    context.finish()
}

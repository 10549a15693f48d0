//! What versioned files take of their virtual arrays.

use hyperslab_core::{ChunkGrid, chunk_places};
use numpy::{IntoPyArray, PyArray1};
use pyo3::prelude::*;

use crate::errors;
use crate::stored_array::StoredArray;

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

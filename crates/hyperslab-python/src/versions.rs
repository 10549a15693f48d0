//! The mappings and chunk tables of versioned files.

use std::path::PathBuf;

use hyperslab_archive::{DIGEST_NBYTES, Digest};
use hyperslab_core::{ChunkGrid, PlanError, ReadPlan, Unreadable, chunk_slots};
use hyperslab_parsers::hdf5;
use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::errors;
use crate::panics::detached;
use crate::stored_array::StoredArray;

/// The slot of each chunk of a version's array, in C order; -1 for chunks that are not stored. None if the array is not
/// made of such chunks.
#[pyfunction]
#[allow(clippy::needless_pass_by_value)] // PyO3 hands arguments over by value
pub(crate) fn chunk_slots_of<'py>(
    py: Python<'py>,
    array: &Bound<'py, StoredArray>,
    chunk_shape: Vec<u64>,
) -> PyResult<Option<Bound<'py, PyArray1<i64>>>> {
    let array = array.get();
    let described = array.0.described();
    let Some(shape) = described.shape.clone() else { return Ok(None) };
    let grid = ChunkGrid::new(shape, chunk_shape).map_err(errors::to_python)?;
    let slots = detached(py, || {
        let found = chunk_slots(&described.virtual_mappings, &grid)?;
        let mut slots = vec![-1; usize::try_from(grid.chunk_count()).ok()?];
        for (index, slot) in found {
            *slots.get_mut(usize::try_from(index).ok()?)? = i64::try_from(slot).ok()?;
        }
        Some(slots)
    })?;
    Ok(slots.map(|slots| slots.into_pyarray(py)))
}

/// The file and path of the one source of all mappings of an array; `None` if it has no mapping.
///
/// Both are empty if the mappings have several sources.
#[pyfunction]
#[allow(clippy::needless_pass_by_value)] // PyO3 hands arguments over by value
pub(crate) fn mapped_source(array: &Bound<'_, StoredArray>) -> Option<(String, String)> {
    let mappings = &array.get().0.described().virtual_mappings;
    let names = mappings.one_source().map(|(file, path)| (file.to_string(), path.to_string()));
    (!mappings.is_empty()).then(|| names.unwrap_or_default())
}

/// What is damaged in an array's description, without looking at what it maps; `None` if nothing is.
#[pyfunction]
pub(crate) fn described_damage(array: &Bound<'_, StoredArray>) -> Option<String> {
    match ReadPlan::check(array.get().0.described()) {
        Err(PlanError::Unreadable(Unreadable::Damaged { problem })) => Some(problem),
        Err(PlanError::Unreadable(_)) | Ok(()) => None,
        Err(PlanError::Selection(error)) => Some(error.to_string()),
    }
}

/// The number and the parameters of each filter of an array, given its path in a local HDF5 file.
#[pyfunction]
#[allow(clippy::needless_pass_by_value)] // PyO3 hands arguments over by value
pub(crate) fn filters_of(py: Python<'_>, file: PathBuf, path: &str) -> PyResult<Vec<(u16, Vec<u32>)>> {
    detached(py, || hyperslab_archive::hdf5_filters(&file, path))?.map_err(errors::of_archive)
}

/// The mappings of a virtual array in libhdf5's own bytes; None if libhdf5 would use another encoding.
#[pyfunction]
#[allow(clippy::needless_pass_by_value)] // PyO3 hands arguments over by value
pub(crate) fn mappings_block<'py>(
    py: Python<'py>,
    path: &str,
    shape: Vec<u64>,
    chunk_shape: Vec<u64>,
    slots: PyReadonlyArray1<'py, i64>,
) -> PyResult<Option<Bound<'py, PyArray1<u8>>>> {
    let grid = ChunkGrid::new(shape, chunk_shape).map_err(errors::to_python)?;
    let slots = slots.as_slice()?;
    let block = detached(py, || hdf5::mappings_block(path, &grid, slots))?;
    Ok(block.map(|block| block.into_pyarray(py)))
}

type Numbers<'py> = Bound<'py, PyArray1<i64>>;

/// Maps the hash of each chunk to its slot.
#[pyclass(module = "hyperslab._core")]
pub(crate) struct ChunkTable(hyperslab_archive::ChunkTable);

#[pymethods]
#[allow(clippy::needless_pass_by_value)] // PyO3 hands arguments over by value
impl ChunkTable {
    #[new]
    fn new(digests: &[u8], slots: PyReadonlyArray1<'_, i64>) -> PyResult<Self> {
        let (digests, slots) = (split(digests)?, slots.as_slice()?);
        if digests.len() != slots.len() {
            return Err(PyValueError::new_err("digests and slots have different lengths"));
        }
        Ok(Self(hyperslab_archive::ChunkTable::new(digests.into_iter().zip(slots.iter().copied()))))
    }

    fn __len__(&self) -> usize {
        self.0.len()
    }

    /// The slot of each hash, and the numbers of the new hashes, each at its first occurrence.
    fn find<'py>(
        &self,
        py: Python<'py>,
        digests: &[u8],
        nothing: &[u8],
        next: i64,
    ) -> PyResult<(Numbers<'py>, Numbers<'py>)> {
        let (slots, new) = self.0.find(&split(digests)?, nothing, next);
        Ok((slots.into_pyarray(py), new.into_pyarray(py)))
    }

    /// Adds hashes whose chunks take consecutive slots, starting at `first`.
    fn add(&mut self, digests: &[u8], first: i64) -> PyResult<()> {
        self.0.add(split(digests)?, first);
        Ok(())
    }
}

fn split(digests: &[u8]) -> PyResult<Vec<Digest>> {
    let each = digests.chunks(DIGEST_NBYTES).map(Digest::try_from);
    each.collect::<Result<_, _>>().map_err(|_| PyValueError::new_err("each hash must have 32 bytes"))
}

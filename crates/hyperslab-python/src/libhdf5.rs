//! Loops over chunks through the libhdf5 that h5py loaded. We do not link to libhdf5: Python looks up the functions'
//! addresses in h5py's copy, and holds h5py's lock while we call them.

#![allow(unsafe_code)]

use std::ffi::{CString, c_char, c_int, c_void};
use std::ptr;

use hyperslab_core::ChunkGrid;
use hyperslab_engine::codecs::Filter;
use numpy::PyReadonlyArray1;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;

use crate::errors;
use crate::panics::detached;

/// `herr_t H5Sselect_hyperslab(hid_t, H5S_seloper_t, const hsize_t *start, *stride, *count, *block)`, since HDF5 1.10.
type SelectHyperslab =
    unsafe extern "C" fn(i64, c_int, *const u64, *const u64, *const u64, *const u64) -> c_int;
/// `herr_t H5Pset_virtual(hid_t plist, hid_t space, const char *file, const char *path, hid_t source_space)`.
type SetVirtual = unsafe extern "C" fn(i64, i64, *const c_char, *const c_char, i64) -> c_int;

/// `herr_t H5Dwrite_chunk(hid_t array, hid_t dxpl, uint32_t filters, const hsize_t *offset, size_t nbytes, const void *)`,
/// since HDF5 1.10.3.
pub(crate) type WriteChunk = unsafe extern "C" fn(i64, i64, u32, *const u64, usize, *const c_void) -> c_int;

/// `H5S_SELECT_SET`.
const SET: c_int = 0;

/// Adds a mapping to a property list for each stored chunk.
#[pyfunction]
#[allow(clippy::needless_pass_by_value)] // PyO3 hands arguments over by value
pub(crate) fn add_mappings(
    functions: (usize, usize),
    ids: (i64, i64, i64),
    path: &str,
    shape: Vec<u64>,
    chunk_shape: Vec<u64>,
    slots: PyReadonlyArray1<'_, i64>,
) -> PyResult<()> {
    let (plist, target, source) = ids;
    if functions.0 == 0 || functions.1 == 0 {
        return Err(PyValueError::new_err("there is no function at address 0"));
    }
    // SAFETY: the caller looked up these addresses by the functions' names in libhdf5 1.10 or later. Their signatures
    // have not changed since.
    let select: SelectHyperslab = unsafe { std::mem::transmute::<usize, SelectHyperslab>(functions.0) };
    // SAFETY: as above.
    let set_virtual: SetVirtual = unsafe { std::mem::transmute::<usize, SetVirtual>(functions.1) };
    let path = CString::new(path)?;
    let grid = ChunkGrid::new(shape, chunk_shape).map_err(errors::to_python)?;
    let slots = slots.as_slice()?;
    let one = vec![1; grid.shape().len()];
    let mut source_start = vec![0; grid.shape().len()];
    for (index, &slot) in (0..).zip(slots) {
        let Ok(slot) = u64::try_from(slot) else { continue };
        let chunk = grid.chunk_index(index).and_then(|index| grid.chunk_box(&index));
        let chunk = chunk.map_err(errors::to_python)?;
        source_start[0] = slot * grid.chunk_shape()[0];
        let (start, block) = (&chunk.start, &chunk.valid_shape);
        // SAFETY: all arrays have one entry for each axis of the spaces and outlive the calls; names end with a zero;
        // libhdf5 returns an error for a wrong identifier.
        let done = unsafe {
            select(target, SET, start.as_ptr(), ptr::null(), one.as_ptr(), block.as_ptr()) >= 0
                && select(source, SET, source_start.as_ptr(), ptr::null(), one.as_ptr(), block.as_ptr()) >= 0
                && set_virtual(plist, target, c".".as_ptr(), path.as_ptr(), source) >= 0
        };
        if !done {
            return Err(PyRuntimeError::new_err(format!("libhdf5 refused the mapping of chunk {index}")));
        }
    }
    Ok(())
}

/// Stores chunks in consecutive slots of a stack. Returns a bit for each filter that was skipped for the last chunk.
#[pyfunction]
#[allow(clippy::needless_pass_by_value)] // PyO3 hands arguments over by value
#[allow(clippy::too_many_arguments)] // one for each keyword
pub(crate) fn write_chunks(
    py: Python<'_>,
    function: usize,
    array: i64,
    first: u64,
    chunk_shape: Vec<u64>,
    chunks: PyReadonlyArray1<'_, u8>,
    chunk_nbytes: usize,
    filters: Vec<(u32, u32)>,
) -> PyResult<u32> {
    if function == 0 {
        return Err(PyValueError::new_err("there is no function at address 0"));
    }
    // SAFETY: as in `add_mappings`.
    let write = unsafe { std::mem::transmute::<usize, WriteChunk>(function) };
    let filters: Vec<Filter> = filters.into_iter().map(filter).collect::<PyResult<_>>()?;
    let chunks = chunks.as_slice()?;
    let length = *chunk_shape.first().ok_or_else(|| PyValueError::new_err("chunk_shape is empty"))?;
    let mut start = vec![0; chunk_shape.len()];
    let mut store = |slot: u64, bytes: &[u8], mask: u32| {
        start[0] = slot * length;
        // SAFETY: the start has one entry for each axis of the array, and the bytes outlive the call; libhdf5 returns
        // an error for a wrong identifier.
        let done = unsafe { write(array, 0, mask, start.as_ptr(), bytes.len(), bytes.as_ptr().cast()) };
        match done {
            0.. => Ok(()),
            _ => Err(PyRuntimeError::new_err(format!("libhdf5 refused the chunk at slot {slot}"))),
        }
    };
    if filters.is_empty() {
        let mut chunks = (first..).zip(chunks.chunks_exact(chunk_nbytes));
        return chunks.try_for_each(|(slot, bytes)| store(slot, bytes, 0)).map(|()| 0);
    }
    let encoded = detached(py, || hyperslab_archive::encoded_chunks(chunks, chunk_nbytes, &filters))?;
    (first..).zip(&encoded).try_fold(0, |_, (slot, encoded)| match encoded {
        Some((bytes, mask)) => store(slot, bytes, *mask).map(|()| *mask),
        None => Err(PyRuntimeError::new_err(format!("the chunk at slot {slot} cannot be encoded"))),
    })
}

/// A filter, by its number in HDF5, with its parameter.
fn filter((number, parameter): (u32, u32)) -> PyResult<Filter> {
    Ok(match number {
        1 => Filter::Deflate(parameter),
        2 => Filter::Shuffle(parameter as usize),
        3 => Filter::Fletcher32,
        32000 => Filter::Lzf,
        _ => return Err(PyValueError::new_err(format!("only libhdf5 applies filter {number}"))),
    })
}

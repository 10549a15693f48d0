//! Loops over chunks through the libhdf5 that h5py loaded. We link to none: Python finds the functions' addresses in
//! that very library, and keeps h5py's lock while we call them.

#![allow(unsafe_code)]

use std::ffi::{CString, c_char, c_int};
use std::ptr;

use hyperslab_core::ChunkGrid;
use numpy::PyReadonlyArray1;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;

use crate::errors;

/// `herr_t H5Sselect_hyperslab(hid_t, H5S_seloper_t, const hsize_t *start, *stride, *count, *block)`, since HDF5 1.10.
type SelectHyperslab =
    unsafe extern "C" fn(i64, c_int, *const u64, *const u64, *const u64, *const u64) -> c_int;
/// `herr_t H5Pset_virtual(hid_t plist, hid_t space, const char *file, const char *path, hid_t source_space)`.
type SetVirtual = unsafe extern "C" fn(i64, i64, *const c_char, *const c_char, i64) -> c_int;

/// `H5S_SELECT_SET`.
const SET: c_int = 0;

/// Add a mapping to a property list for each chunk that is stored.
#[pyfunction]
#[allow(clippy::needless_pass_by_value)] // PyO3 hands arguments over by value
pub(crate) fn add_mappings(
    functions: (usize, usize),
    ids: (i64, i64, i64),
    path: &str,
    shape: Vec<u64>,
    chunk_shape: Vec<u64>,
    places: PyReadonlyArray1<'_, i64>,
) -> PyResult<()> {
    let (plist, target, source) = ids;
    if functions.0 == 0 || functions.1 == 0 {
        return Err(PyValueError::new_err("no function is at address 0"));
    }
    // SAFETY: the caller found these addresses under the functions' names in libhdf5 1.10 or later, which have had
    // these signatures ever since.
    let select: SelectHyperslab = unsafe { std::mem::transmute::<usize, SelectHyperslab>(functions.0) };
    // SAFETY: as above.
    let set_virtual: SetVirtual = unsafe { std::mem::transmute::<usize, SetVirtual>(functions.1) };
    let path = CString::new(path)?;
    let grid = ChunkGrid::new(shape, chunk_shape).map_err(errors::to_python)?;
    let places = places.as_slice()?;
    let one = vec![1; grid.shape().len()];
    let mut source_start = vec![0; grid.shape().len()];
    for (index, &place) in (0..).zip(places) {
        let Ok(place) = u64::try_from(place) else { continue };
        let chunk = grid.chunk_index(index).and_then(|index| grid.chunk_box(&index));
        let chunk = chunk.map_err(errors::to_python)?;
        source_start[0] = place * grid.chunk_shape()[0];
        let (start, block) = (&chunk.start, &chunk.valid_shape);
        // SAFETY: all arrays have as many entries as the spaces have axes, and outlive the calls; names end with a
        // zero; a wrong identifier makes libhdf5 return an error.
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

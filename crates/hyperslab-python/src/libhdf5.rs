//! `LibHdf5`: the libhdf5 that h5py loaded. It finds the functions itself, and holds h5py's lock while it calls them.

#![allow(unsafe_code)]

use std::ffi::CString;
use std::ops::Deref;

use hyperslab_core::ChunkGrid;
use hyperslab_core::KnownCodec;
use hyperslab_engine::codecs::Filter;
use hyperslab_libhdf5::{Boxes, Id, Kind, Library, Module, Problem, StoredChunks};
use numpy::PyReadonlyArray1;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::chunk_encoding::{self, Encoded, Filters, Shapes};
use crate::errors;
use crate::panics::detached;

/// The libhdf5 that h5py loaded.
///
/// Only `of_h5py` makes one, so Python can neither choose the functions nor give an address. libhdf5 itself says what an
/// identifier stands for before it is used.
#[pyclass(module = "hyperslab._core", frozen)]
pub(crate) struct LibHdf5 {
    library: Library,
    lock: Py<PyAny>,
}

/// h5py's lock, held until this is dropped: only with it may libhdf5 be called.
struct Locked<'a>(&'a LibHdf5);

impl Deref for Locked<'_> {
    type Target = Library;

    fn deref(&self) -> &Library {
        &self.0.library
    }
}

impl Drop for Locked<'_> {
    fn drop(&mut self) {
        Python::attach(|py| {
            if let Err(error) = self.0.lock.call_method0(py, "release") {
                error.write_unraisable(py, None);
            }
        });
    }
}

impl LibHdf5 {
    fn locked(&self, py: Python<'_>) -> PyResult<Locked<'_>> {
        self.lock.call_method0(py, "acquire")?;
        Ok(Locked(self))
    }
}

#[pymethods]
impl LibHdf5 {
    /// The one that h5py uses; `None` if it is too old or cannot be found.
    #[staticmethod]
    fn of_h5py(py: Python<'_>) -> PyResult<Option<Self>> {
        let path: String = py.import("h5py.h5s")?.getattr("__file__")?.extract()?;
        let lock = py.import("h5py._objects")?.getattr("phil")?.unbind();
        let Some(module) = Module::loaded(&CString::new(path)?) else { return Ok(None) };
        // SAFETY: these are the names of libhdf5's functions and variables, looked up from h5py's module, which has
        // started libhdf5 and is never unloaded. All that calls this libhdf5 holds h5py's lock.
        let library = unsafe { Library::find(|name| module.find(name), |name| module.find(name)) };
        std::mem::forget(module); // it stays loaded
        Ok(library.filter(Library::is_new_enough_to_write).map(|library| Self { library, lock }))
    }

    /// Adds a mapping to a property list for each stored chunk.
    #[allow(clippy::needless_pass_by_value)] // PyO3 hands arguments over by value
    fn add_mappings(
        &self,
        py: Python<'_>,
        ids: (Id, Id, Id),
        path: &str,
        shape: Vec<u64>,
        chunk_shape: Vec<u64>,
        slots: PyReadonlyArray1<'_, i64>,
    ) -> PyResult<()> {
        let library = self.locked(py)?;
        let creation = library.held_properties(Kind::CreationOfArray, ids.0).map_err(to_python)?;
        let boxes = |id| library.held_space(id).and_then(Boxes::of).map_err(to_python);
        let (target, source) = (boxes(ids.1)?, boxes(ids.2)?.growing());
        let path = CString::new(path)?;
        let grid = ChunkGrid::new(shape, chunk_shape).map_err(errors::to_python)?;
        let mut source_start = vec![0; grid.shape().len()];
        for (index, &slot) in (0..).zip(slots.as_slice()?) {
            let Ok(slot) = u64::try_from(slot) else { continue };
            let chunk = grid.chunk_index(index).and_then(|index| grid.chunk_box(&index));
            let chunk = chunk.map_err(errors::to_python)?;
            if let (Some(start), Some(length)) = (source_start.first_mut(), grid.chunk_shape().first()) {
                *start = row(slot, *length)?;
            }
            let done = target
                .select(&chunk.start, &chunk.valid_shape)
                .and_then(|()| source.select(&source_start, &chunk.valid_shape))
                .and_then(|()| library.add_mapping(&creation, &target, c".", &path, &source));
            done.map_err(to_python)?;
        }
        Ok(())
    }

    /// Stores chunks in consecutive slots of a stack. Returns a bit for each filter that was skipped for the last chunk.
    #[allow(clippy::needless_pass_by_value)] // PyO3 hands arguments over by value
    fn write_chunks(
        &self,
        py: Python<'_>,
        array: Id,
        first: u64,
        chunks: PyReadonlyArray1<'_, u8>,
        filters: Vec<(u32, u32)>,
    ) -> PyResult<u32> {
        let library = self.locked(py)?;
        let stack = library.stored_chunks(array).map_err(to_python)?;
        let filters: Vec<Filter> = filters.into_iter().map(filter).collect::<PyResult<_>>()?;
        check_filters(&stack, &filters)?;
        let chunks = chunks.as_slice()?;
        if !chunks.len().is_multiple_of(stack.nbytes) {
            let (given, nbytes) = (chunks.len(), stack.nbytes);
            return Err(PyValueError::new_err(format!("{given} bytes are not chunks of {nbytes} bytes")));
        }
        let mut start = vec![0; stack.shape.len()];
        let mut store = |slot: u64, bytes: &[u8], mask: u32| {
            start[0] = row(slot, stack.shape[0])?; // an array with chunks has axes
            stack.write(&start, bytes, mask).map_err(to_python)
        };
        if filters.is_empty() {
            let mut chunks = (first..).zip(chunks.chunks_exact(stack.nbytes));
            return chunks.try_for_each(|(slot, bytes)| store(slot, bytes, 0)).map(|()| 0);
        }
        let encoded = detached(py, || hyperslab_archive::encoded_chunks(chunks, stack.nbytes, &filters))?;
        (first..).zip(&encoded).try_fold(0, |_, (slot, encoded)| match encoded {
            Some((bytes, mask)) => store(slot, bytes, *mask).map(|()| *mask),
            None => Err(PyRuntimeError::new_err(format!("the chunk at slot {slot} cannot be encoded"))),
        })
    }

    /// Encodes the chunks of a slab and stores them. Returns of each its checksum, stored bytes and mask.
    #[pyo3(signature = (array, first, data, shapes, fill, filters, threads=None, leaves_out_fill=false))]
    #[allow(clippy::needless_pass_by_value, clippy::too_many_arguments)] // one for each keyword, by value as PyO3 hands them
    fn write_slab<'py>(
        &self,
        py: Python<'py>,
        array: Id,
        first: Vec<u64>,
        data: PyReadonlyArray1<'py, u8>,
        shapes: Shapes,
        fill: Vec<u8>,
        filters: Filters,
        threads: Option<usize>,
        leaves_out_fill: bool,
    ) -> PyResult<Encoded<'py>> {
        let library = self.locked(py)?;
        let chunks = library.stored_chunks(array).map_err(to_python)?;
        let filters = chunk_encoding::filters(&filters)?;
        check_filters(&chunks, &filters)?;
        if chunks.shape != shapes.1 || first.len() != shapes.1.len() {
            let (own, given) = (&chunks.shape, &shapes.1);
            return Err(PyValueError::new_err(format!(
                "the array has chunks of {own:?}, not {given:?} at {first:?}"
            )));
        }
        let store = |start: &[u64], bytes: &[u8], mask| chunks.write(start, bytes, mask).map_err(to_python);
        chunk_encoding::write(py, &data, shapes, &fill, (&filters, threads, leaves_out_fill), &first, store)
    }

    /// Makes libhdf5 forget objects when they are closed.
    fn evict_on_close(&self, py: Python<'_>, access: Id) -> PyResult<()> {
        self.locked(py)?.evict_on_close(access).map_err(to_python)
    }

    /// The comment of an object; `None` if it has none.
    fn comment<'py>(&self, py: Python<'py>, object: Id) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let said = self.locked(py)?.comment(object).map_err(to_python)?;
        Ok(said.map(|said| PyBytes::new(py, said.as_bytes())))
    }

    /// Sets half of how many chunks a node of a chunk index has room for.
    fn set_chunk_index_width(&self, py: Python<'_>, creation: Id, half: u32) -> PyResult<()> {
        self.locked(py)?.set_index_width(creation, half).map_err(to_python)
    }

    /// Sets how many bytes a new group reserves for names.
    fn set_heap_nbytes(&self, py: Python<'_>, creation: Id, nbytes: u32) -> PyResult<()> {
        self.locked(py)?.set_heap_nbytes(creation, nbytes).map_err(to_python)
    }

    /// Sets which releases of libhdf5 must be able to read what is written to a file from now on.
    fn set_bounds(&self, py: Python<'_>, file: Id, low: i32, high: i32) -> PyResult<()> {
        self.locked(py)?.set_bounds(file, (low, high)).map_err(to_python)
    }

    /// Which kinds of plugins libhdf5 may load: a bit for each.
    #[getter]
    fn plugins(&self, py: Python<'_>) -> PyResult<u32> {
        self.locked(py)?.plugins().map_err(to_python)
    }

    #[setter]
    fn set_plugins(&self, py: Python<'_>, kinds: u32) -> PyResult<()> {
        self.locked(py)?.set_plugins(kinds).map_err(to_python)
    }
}

/// Where a slot begins in a stack of chunks of this length.
fn row(slot: u64, length: u64) -> PyResult<u64> {
    let too_large = || PyValueError::new_err(format!("a stack has no slot {slot}"));
    slot.checked_mul(length).ok_or_else(too_large)
}

/// A filter that h5py has itself, by its number in HDF5, with its parameter.
fn filter((number, parameter): (u32, u32)) -> PyResult<Filter> {
    let name = KnownCodec::of_hdf5(number).map_or("", |codec| codec.name);
    let filter = match name {
        "deflate" | "shuffle" => Filter::of(name, &[i64::from(parameter)]),
        "fletcher32" | "lzf" => Filter::of(name, &[]),
        _ => None,
    };
    filter.ok_or_else(|| PyValueError::new_err(format!("only libhdf5 applies filter {number}")))
}

/// Refuses to encode chunks otherwise than their array says: libhdf5 would decode what is not encoded.
fn check_filters(array: &StoredChunks<'_>, given: &[Filter]) -> PyResult<()> {
    let number = |filter: &Filter| filter.hdf5().and_then(|number| i32::try_from(number).ok());
    let numbers: Vec<_> = given.iter().map(number).collect();
    if numbers.iter().copied().eq(array.filters.iter().copied().map(Some)) {
        return Ok(());
    }
    Err(PyValueError::new_err(format!("the array has the filters {:?}, not {numbers:?}", array.filters)))
}

#[allow(clippy::needless_pass_by_value)] // map_err passes the error by value
fn to_python(problem: Problem) -> PyErr {
    let said = problem.to_string();
    match problem {
        Problem::NotA(..) | Problem::Misfit(_) => PyValueError::new_err(said),
        Problem::Refused(_) => PyRuntimeError::new_err(said),
    }
}

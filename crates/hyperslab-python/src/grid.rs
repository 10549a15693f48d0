//! `ChunkGrid`: an array cut into chunks, and how selections copy from it.

use hyperslab_core::{Error, Overlap, Selection};
use numpy::{PyArray1, PyArray2, PyArrayMethods};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::errors::to_python;
use crate::hyperslab::Hyperslab;
use crate::integers;
use crate::panics::detached;
use crate::selection;
use crate::totals::SelectionTotals;

type Int64Array<'py> = Bound<'py, PyArray1<i64>>;

/// The regular grid of chunks over an array.
#[pyclass(frozen, eq, hash, module = "hyperslab._core")]
#[derive(PartialEq, Eq, Hash)]
pub(crate) struct ChunkGrid(pub(crate) hyperslab_core::ChunkGrid);

impl ChunkGrid {
    /// Calls `measure` on each overlap, without holding the interpreter.
    fn each_overlap<T: Send>(
        &self,
        selection: &Bound<'_, PyAny>,
        measure: impl Fn(Overlap) -> T + Send,
    ) -> PyResult<Vec<T>> {
        let parsed: Selection = selection::parse(selection)?;
        let measured = || -> Result<Vec<T>, Error> { Ok(self.0.overlaps(&parsed)?.map(measure).collect()) };
        detached(selection.py(), measured)?.map_err(to_python)
    }
}

#[pymethods]
impl ChunkGrid {
    #[new]
    fn new(shape: &Bound<'_, PyAny>, chunk_shape: &Bound<'_, PyAny>) -> PyResult<Self> {
        let shape = integers::per_axis("shape", shape)?;
        let chunk_shape = integers::per_axis("chunk_shape", chunk_shape)?;
        hyperslab_core::ChunkGrid::new(shape, chunk_shape).map(Self).map_err(to_python)
    }

    /// The array's shape.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        integers::tuple(py, self.0.shape())
    }

    /// The shape of every stored chunk.
    #[getter]
    fn chunk_shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        integers::tuple(py, self.0.chunk_shape())
    }

    /// The number of chunks along each axis.
    #[getter]
    fn grid_shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        integers::tuple(py, &self.0.grid_shape())
    }

    /// The number of chunks.
    #[getter]
    fn chunk_count(&self) -> u64 {
        self.0.chunk_count()
    }

    /// The position of a chunk in row-major order.
    fn linear_index(&self, chunk_index: &Bound<'_, PyAny>) -> PyResult<u64> {
        self.0.linear_index(&integers::per_axis("chunk_index", chunk_index)?).map_err(to_python)
    }

    /// The chunk at a position in row-major order.
    fn chunk_index<'py>(&self, linear_index: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyTuple>> {
        let linear = integers::whole_number("linear_index", linear_index)?;
        integers::tuple(linear_index.py(), &self.0.chunk_index(linear).map_err(to_python)?)
    }

    /// The part of the array that a chunk holds.
    fn chunk_box(&self, chunk_index: &Bound<'_, PyAny>) -> PyResult<Hyperslab> {
        let chunk_box =
            self.0.chunk_box(&integers::per_axis("chunk_index", chunk_index)?).map_err(to_python)?;
        let ones = vec![1; chunk_box.start.len()];
        hyperslab_core::Hyperslab::new(&chunk_box.start, &ones, &chunk_box.valid_shape, &ones)
            .map(Hyperslab)
            .map_err(to_python)
    }

    /// The chunks that a selection touches, in row-major order: int64, shape `(chunks, ndim)`.
    fn chunks<'py>(&self, selection: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyArray2<i64>>> {
        let chunks = self.each_overlap(selection, |overlap| overlap.chunk_index().to_vec())?;
        let shape = [chunks.len(), self.0.shape().len()];
        let flat = chunks.into_iter().flatten().map(u64::cast_signed).collect();
        PyArray1::from_vec(selection.py(), flat).reshape(shape)
    }

    /// The runs and the elements to copy for each chunk of `chunks(selection)`.
    fn copy_runs<'py>(&self, selection: &Bound<'py, PyAny>) -> PyResult<(Int64Array<'py>, Int64Array<'py>)> {
        let counts = self.each_overlap(selection, |overlap| {
            (overlap.run_count().cast_signed(), overlap.element_count().cast_signed())
        })?;
        let (run_counts, element_counts) = counts.into_iter().unzip();
        let py = selection.py();
        Ok((PyArray1::from_vec(py, run_counts), PyArray1::from_vec(py, element_counts)))
    }

    /// Whether a selection covers the valid part of each chunk of `chunks(selection)`.
    fn fully_covered<'py>(&self, selection: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyArray1<bool>>> {
        let covered = self.each_overlap(selection, |overlap| overlap.fully_covers())?;
        Ok(PyArray1::from_vec(selection.py(), covered))
    }

    /// The runs that copy a chunk's part of a selection: `(chunk_offset, buffer_offset, length)` in elements.
    fn runs(
        &self,
        chunk_index: &Bound<'_, PyAny>,
        selection: &Bound<'_, PyAny>,
    ) -> PyResult<Vec<(u64, u64, u64)>> {
        let chunk_index = integers::per_axis("chunk_index", chunk_index)?;
        let parsed = selection::parse(selection)?;
        let list = || {
            let overlap = self.0.overlap(&chunk_index, &parsed)?;
            Ok(overlap.runs().map(|run| (run.chunk_offset, run.buffer_offset, run.length)).collect())
        };
        detached(selection.py(), list)?.map_err(to_python)
    }

    /// Chunks, runs and elements over the whole selection.
    fn totals(&self, selection: &Bound<'_, PyAny>) -> PyResult<SelectionTotals> {
        let parsed = selection::parse(selection)?;
        detached(selection.py(), || self.0.totals(&parsed))?.map(SelectionTotals).map_err(to_python)
    }

    fn __repr__(&self) -> String {
        let (shape, chunk_shape) = (integers::repr(self.0.shape()), integers::repr(self.0.chunk_shape()));
        format!("ChunkGrid(shape={shape}, chunk_shape={chunk_shape})")
    }

    fn __getnewargs__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, [self.shape(py)?, self.chunk_shape(py)?])
    }
}

//! `ReadPlan`: what reading a selection takes, known before anything is read.

use hyperslab_archive::ArrayPlan;
use hyperslab_core::{PlanTotals, Request};
use numpy::PyArray1;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::integers;
use crate::panics::detached;

/// The chunks, requests and bytes of one read.
#[pyclass(frozen, module = "hyperslab._core")]
pub(crate) struct ReadPlan(pub(crate) ArrayPlan);

impl ReadPlan {
    fn totals(&self, py: Python<'_>) -> PyResult<&PlanTotals> {
        detached(py, || self.0.totals())
    }
}

type Columns<'py> = (Bound<'py, PyArray1<u32>>, Bound<'py, PyArray1<u64>>, Bound<'py, PyArray1<u64>>);

#[pymethods]
impl ReadPlan {
    /// The shape of the output.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        integers::tuple(py, self.0.shape())
    }

    /// The number of elements in the output.
    #[getter]
    fn element_count(&self) -> u64 {
        self.0.element_count()
    }

    /// How many chunks are touched.
    #[getter]
    fn chunk_count(&self, py: Python<'_>) -> PyResult<u64> {
        Ok(self.totals(py)?.chunk_count)
    }

    /// How many of these were never written.
    #[getter]
    fn missing_chunk_count(&self, py: Python<'_>) -> PyResult<u64> {
        Ok(self.totals(py)?.missing_chunk_count)
    }

    /// How many requests there are, after neighbours are merged.
    #[getter]
    fn request_count(&self, py: Python<'_>) -> PyResult<u64> {
        Ok(self.totals(py)?.request_count)
    }

    /// Bytes to fetch.
    #[getter]
    fn fetched_nbytes(&self, py: Python<'_>) -> PyResult<u64> {
        Ok(self.totals(py)?.fetched_nbytes)
    }

    /// Bytes after decoding, including bytes stored without codecs.
    #[getter]
    fn decoded_nbytes(&self, py: Python<'_>) -> PyResult<u64> {
        Ok(self.totals(py)?.decoded_nbytes)
    }

    /// Bytes of the output.
    #[getter]
    fn output_nbytes(&self, py: Python<'_>) -> PyResult<u64> {
        Ok(self.totals(py)?.output_nbytes)
    }

    /// Decoded bytes per output byte; None if nothing is selected.
    #[getter]
    fn read_amplification(&self, py: Python<'_>) -> PyResult<Option<f64>> {
        Ok(self.totals(py)?.read_amplification())
    }

    /// The requests: file numbers, offsets, lengths.
    fn requests<'py>(&self, py: Python<'py>) -> PyResult<Columns<'py>> {
        let requests = detached(py, || self.0.requests())?;
        let column = |value: fn(&Request) -> u64| PyArray1::from_iter(py, requests.iter().map(value));
        let files = PyArray1::from_iter(py, requests.iter().map(|request| request.file));
        Ok((files, column(|request| request.range.offset), column(|request| request.range.length)))
    }

    /// What notebooks show: the totals as a table.
    #[pyo3(name = "_repr_html_")]
    fn repr_html<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        py.import("hyperslab.archive.views.display_html")?.getattr("plan")?.call1((slf,))
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let totals = self.totals(py)?;
        let amplification =
            totals.read_amplification().map_or("None".to_owned(), |ratio| format!("{ratio:.3}"));
        Ok(format!(
            "ReadPlan(shape={}, chunk_count={}, missing_chunk_count={}, request_count={}, fetched_nbytes={}, \
             decoded_nbytes={}, output_nbytes={}, read_amplification={amplification})",
            integers::repr(self.0.shape()),
            totals.chunk_count,
            totals.missing_chunk_count,
            totals.request_count,
            totals.fetched_nbytes,
            totals.decoded_nbytes,
            totals.output_nbytes,
        ))
    }
}

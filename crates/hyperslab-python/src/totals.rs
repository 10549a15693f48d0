//! `SelectionTotals`: what a selection touches and copies in a grid.

use pyo3::prelude::*;

/// Chunks, runs and elements over the whole selection.
#[pyclass(frozen, eq, hash, module = "hyperslab._core")]
#[derive(PartialEq, Eq, Hash)]
pub(crate) struct SelectionTotals(pub(crate) hyperslab_core::SelectionTotals);

#[pymethods]
impl SelectionTotals {
    /// Chunks that hold at least one selected element.
    #[getter]
    fn chunk_count(&self) -> u64 {
        self.0.chunk_count
    }

    /// Runs in all of these chunks.
    #[getter]
    fn run_count(&self) -> u64 {
        self.0.run_count
    }

    /// Elements selected.
    #[getter]
    fn element_count(&self) -> u64 {
        self.0.element_count
    }

    /// Elements in these chunks as stored: all are decoded to read the selection.
    #[getter]
    fn decoded_element_count(&self) -> u64 {
        self.0.decoded_element_count
    }

    /// Elements of these chunks that lie inside the array.
    #[getter]
    fn valid_element_count(&self) -> u64 {
        self.0.valid_element_count
    }

    /// Decoded elements per selected element; `None` if nothing is selected.
    #[getter]
    fn read_amplification(&self) -> Option<f64> {
        self.0.read_amplification()
    }

    fn __repr__(&self) -> String {
        format!(
            "SelectionTotals(chunk_count={}, run_count={}, element_count={}, decoded_element_count={}, \
             valid_element_count={})",
            self.0.chunk_count,
            self.0.run_count,
            self.0.element_count,
            self.0.decoded_element_count,
            self.0.valid_element_count,
        )
    }
}

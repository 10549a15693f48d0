//! Files that Python holds: `bytes`, or a function that reads ranges.

use std::sync::Arc;

use hyperslab_engine::{GivenStore, MemoryStore, RangeReader, Store};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;

/// A file that Python holds, and its name for people.
#[pyclass(frozen, module = "hyperslab._core")]
pub(crate) struct GivenFile {
    store: Arc<dyn Store>,
    pub(crate) version: String,
}

impl GivenFile {
    pub(crate) fn store(&self) -> Arc<dyn Store> {
        Arc::clone(&self.store)
    }
}

#[pymethods]
impl GivenFile {
    /// Bytes in memory. They are not copied.
    #[staticmethod]
    fn of_bytes(name: String, version: String, bytes: PyBackedBytes) -> Self {
        Self { store: Arc::new(MemoryStore::new(name, bytes)), version }
    }

    /// A file that `read(ranges)` reads. It returns a list of `bytes`, one for each pair of offset and length. Several
    /// threads call it, with at most this many ranges at a time.
    #[staticmethod]
    fn of_reader(
        name: String,
        version: String,
        host: String,
        nbytes: u64,
        read: Py<PyAny>,
        most_in_flight: usize,
    ) -> Self {
        let (reader, most_in_flight) = (Box::new(Function(read)), most_in_flight.max(1));
        Self { store: Arc::new(GivenStore { name, nbytes, host, reader, most_in_flight }), version }
    }
}

/// A Python function that reads ranges.
struct Function(Py<PyAny>);

impl RangeReader for Function {
    fn read(&self, wanted: &mut [(u64, &mut [u8])]) -> Result<(), String> {
        Python::attach(|py| {
            let ranges: Vec<(u64, usize)> = wanted.iter().map(|(offset, out)| (*offset, out.len())).collect();
            let read: Vec<PyBackedBytes> = self.0.call1(py, (ranges,))?.extract(py)?;
            if read.len() != wanted.len() {
                let (came, due) = (read.len(), wanted.len());
                return Err(PyValueError::new_err(format!("{came} ranges came, but {due} were expected")));
            }
            for (part, (_, out)) in read.iter().zip(wanted) {
                if part.len() != out.len() {
                    let (came, due) = (part.len(), out.len());
                    return Err(PyValueError::new_err(format!("{came} bytes came, but {due} were expected")));
                }
                out.copy_from_slice(part);
            }
            Ok(())
        })
        .map_err(|error: PyErr| said(&error))
    }
}

/// The class and the text of an exception, without what follows a question mark, which may be a signature.
fn said(error: &PyErr) -> String {
    let text = error.to_string();
    text.split_once('?').map_or_else(|| text.clone(), |(before, _)| format!("{before}?..."))
}

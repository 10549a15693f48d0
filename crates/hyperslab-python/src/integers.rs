//! Sequences of whole numbers, one per axis, from and to Python.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

/// One number per axis. An error names the argument and the axis.
pub(crate) fn per_axis(name: &str, numbers: &Bound<'_, PyAny>) -> PyResult<Vec<u64>> {
    let not_a_sequence = |_| {
        PyTypeError::new_err(format!("{name} is {numbers}: give a sequence with one whole number per axis"))
    };
    (numbers.try_iter().map_err(not_a_sequence)?.enumerate())
        .map(|(axis, number)| whole_number(&format!("{name}[{axis}]"), &number?))
        .collect()
}

/// A whole number of at least 0.
pub(crate) fn whole_number(name: &str, number: &Bound<'_, PyAny>) -> PyResult<u64> {
    number.extract().map_err(|error: PyErr| {
        let message = format!("{name} is {number}: use a whole number from 0 to 2**63 - 1");
        if error.is_instance_of::<PyTypeError>(number.py()) {
            PyTypeError::new_err(message)
        } else {
            PyValueError::new_err(message)
        }
    })
}

pub(crate) fn tuple<'py>(py: Python<'py>, numbers: &[u64]) -> PyResult<Bound<'py, PyTuple>> {
    PyTuple::new(py, numbers)
}

/// In Python's notation for tuples.
pub(crate) fn repr(numbers: &[u64]) -> String {
    match numbers {
        [number] => format!("({number},)"),
        _ => format!("({})", numbers.iter().map(u64::to_string).collect::<Vec<_>>().join(", ")),
    }
}

//! The closed set of selections, as an argument from Python.

use hyperslab_core::Selection;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

use crate::hyperslab::Hyperslab;
use crate::points::Points;

pub(crate) fn parse(selection: &Bound<'_, PyAny>) -> PyResult<Selection> {
    if let Ok(hyperslab) = selection.cast::<Hyperslab>() {
        return Ok(hyperslab.get().0.clone().into());
    }
    if let Ok(points) = selection.cast::<Points>() {
        return Ok(points.get().0.clone().into());
    }
    let given = selection.get_type().name()?;
    Err(PyTypeError::new_err(format!("selection is a {given}: give a Hyperslab or Points")))
}

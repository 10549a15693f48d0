//! Hyperslabs from and to the index in `array[...]`.

use hyperslab_core::{AxisSelection, Error};
use pyo3::exceptions::{PyIndexError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyEllipsis, PySlice, PyTuple};

use crate::errors::to_python;

/// One axis per entry of `shape`; `index` is an int, a slice, an ellipsis, or a tuple of these.
pub(crate) fn parse(index: &Bound<'_, PyAny>, shape: &[u64]) -> PyResult<Vec<AxisSelection>> {
    let items: Vec<Bound<'_, PyAny>> = match index.cast::<PyTuple>() {
        Ok(tuple) => tuple.iter().collect(),
        Err(_) => vec![index.clone()],
    };
    let is_ellipsis = |item: &Bound<'_, PyAny>| item.is_instance_of::<PyEllipsis>();
    let mut around = items.splitn(2, is_ellipsis);
    let before = around.next().unwrap_or_default();
    let after = around.next().unwrap_or_default();
    if after.iter().any(is_ellipsis) {
        return Err(PyIndexError::new_err("two ellipses in one index: use at most one '...'"));
    }
    let Some(skipped) = shape.len().checked_sub(before.len() + after.len()) else {
        let (given, ndim) = (before.len() + after.len(), shape.len());
        return Err(PyIndexError::new_err(format!(
            "{given} indices for {ndim} axes: give at most one per axis"
        )));
    };
    let given =
        before.iter().map(Some).chain(std::iter::repeat_n(None, skipped)).chain(after.iter().map(Some));
    given.zip(shape).enumerate().map(|(axis, (item, &length))| parse_axis(axis, item, length)).collect()
}

fn parse_axis(axis: usize, item: Option<&Bound<'_, PyAny>>, length: u64) -> PyResult<AxisSelection> {
    let Some(item) = item else {
        return AxisSelection::new(axis, 0, 1, length, 1).map_err(to_python);
    };
    if let Ok(slice) = item.cast::<PySlice>() {
        return parse_slice(axis, slice, length);
    }
    let index: i64 = item.extract().map_err(|_| {
        PyTypeError::new_err(format!(
            "axis {axis}: {item} is neither a whole number, a slice nor an ellipsis"
        ))
    })?;
    let start = if index < 0 { length.checked_add_signed(index) } else { Some(index.unsigned_abs()) };
    match start.filter(|&start| start < length) {
        Some(start) => AxisSelection::new(axis, start, 1, 1, 1).map_err(to_python),
        None => Err(PyIndexError::new_err(format!(
            "axis {axis}: index {index} is outside an array of length {length}; use one below {length}"
        ))),
    }
}

fn parse_slice(axis: usize, slice: &Bound<'_, PySlice>, length: u64) -> PyResult<AxisSelection> {
    let length =
        isize::try_from(length).map_err(|_| to_python(Error::TooLarge { what: "the array's length" }))?;
    let indices = slice.indices(length)?;
    if indices.step < 0 {
        let step = indices.step;
        return Err(PyValueError::new_err(format!(
            "axis {axis}: step {step} is negative; select with a positive step and flip the result"
        )));
    }
    let start = indices.start.unsigned_abs() as u64;
    AxisSelection::new(axis, start, indices.step.unsigned_abs() as u64, indices.slicelength as u64, 1)
        .map_err(to_python)
}

/// The slice that selects the same indices of an axis.
pub(crate) fn from_axis<'py>(
    py: Python<'py>,
    axis: usize,
    selected: &AxisSelection,
) -> PyResult<Bound<'py, PySlice>> {
    let step = if selected.is_contiguous() { 1 } else { selected.stride() };
    if !selected.is_contiguous() && selected.block() > 1 {
        let (block, stride) = (selected.block(), selected.stride());
        return Err(PyValueError::new_err(format!(
            "axis {axis} selects blocks of {block} every {stride}: no slice can express that; use one slice per block"
        )));
    }
    let signed =
        |index: u64| isize::try_from(index).map_err(|_| to_python(Error::TooLarge { what: "an index" }));
    Ok(PySlice::new(py, signed(selected.start())?, signed(selected.stop())?, signed(step)?))
}

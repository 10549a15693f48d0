//! What Python asks of each axis.

use hyperslab_core::{AxisIndices, AxisSelection, Orthogonal};
use numpy::{PyArray1, PyArrayMethods};
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;

use crate::errors::to_python;

/// One entry per axis: `(start, stride, count, block)`, or an int64 array of indices from 0 up.
pub(crate) fn parse(axes: &[Bound<'_, PyAny>]) -> PyResult<Orthogonal> {
    let parsed: PyResult<Vec<AxisIndices>> =
        axes.iter().enumerate().map(|(axis, asked)| parse_axis(axis, asked)).collect();
    Orthogonal::new(parsed?).map_err(to_python)
}

fn parse_axis(axis: usize, asked: &Bound<'_, PyAny>) -> PyResult<AxisIndices> {
    if let Ok(listed) = asked.cast::<PyArray1<i64>>() {
        let negative = |index: &i64| {
            let index = *index;
            u64::try_from(index)
                .map_err(|_| PyIndexError::new_err(format!("axis {axis}: index {index} is below 0")))
        };
        let indices: PyResult<Vec<u64>> = listed.readonly().as_array().iter().map(negative).collect();
        return indices.map(AxisIndices::Listed);
    }
    let (start, stride, count, block) = asked.extract()?;
    AxisSelection::new(axis, start, stride, count, block).map(AxisIndices::Regular).map_err(to_python)
}

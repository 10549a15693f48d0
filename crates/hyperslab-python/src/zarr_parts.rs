//! `ZarrParts`: the parts of chunks, or of shards, that zarr-python asks its codec pipeline to write.

use std::io;

use hyperslab_archive::{KeyPart, WriteError};
use hyperslab_core::ChunkGrid;
use hyperslab_parsers::zarr::ArrayDocument;
use pyo3::exceptions::{PyMemoryError, PyOSError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PySlice, PyTuple};

use crate::errors;

/// Parts of keys.
#[pyclass(frozen, module = "hyperslab._core")]
pub(crate) struct ZarrParts {
    pub(crate) keys: Vec<String>,
    pub(crate) parts: Vec<KeyPart>,
}

#[pymethods]
#[allow(clippy::needless_pass_by_value)] // PyO3 hands arguments over by value
impl ZarrParts {
    /// From zarr-python's items, if all are boxes of values; `None` otherwise.
    #[staticmethod]
    pub(crate) fn of(
        items: Vec<Bound<'_, PyTuple>>,
        shape: Vec<u64>,
        is_scalar: bool,
    ) -> PyResult<Option<Self>> {
        let (mut keys, mut parts) = (Vec::with_capacity(items.len()), Vec::with_capacity(items.len()));
        for item in items {
            let Some(part) = part(&item, &shape, is_scalar)? else { return Ok(None) };
            parts.push(part);
            keys.push(item.get_item(0)?.getattr("path")?.extract()?);
        }
        Ok(Some(Self { keys, parts }))
    }

    /// Whole keys of this shape, which lie one after the other along the first axis of the values.
    #[staticmethod]
    fn whole(keys: Vec<String>, shape: Vec<u64>) -> Self {
        let part = |number: usize| {
            let first = shape.first().map_or(0, |length| length * number as u64);
            let from = (0..shape.len()).map(|axis| if axis == 0 { first } else { 0 }).collect();
            KeyPart { start: vec![0; shape.len()], from, shape: shape.clone(), is_whole: true }
        };
        let parts = (0..keys.len()).map(part).collect();
        Self { keys, parts }
    }

    /// The numbers of the keys of which something is kept.
    #[getter]
    fn kept(&self) -> Vec<usize> {
        self.parts.iter().enumerate().filter(|(_, part)| !part.is_whole).map(|(number, _)| number).collect()
    }
}

/// The box of an item: the setter of its bytes, its specification, the selection in the chunk and in the values, and
/// whether the chunk is complete. `shape` is that of the values with an axis of length 1 for each integer, and
/// `is_scalar` says that there is one value for all.
fn part(item: &Bound<'_, PyTuple>, shape: &[u64], is_scalar: bool) -> PyResult<Option<KeyPart>> {
    let (taken, goes) = (item.get_item(2)?, item.get_item(3)?);
    let (Ok(taken), Ok(goes)) = (taken.cast::<PyTuple>(), goes.cast::<PyTuple>()) else { return Ok(None) };
    let is_whole = item.get_item(4)?.is_truthy()?;
    let ndim = taken.len();
    let mut made = KeyPart {
        start: Vec::with_capacity(ndim),
        from: Vec::with_capacity(ndim),
        shape: Vec::with_capacity(ndim),
        is_whole,
    };
    let mut goes = goes.iter_borrowed();
    for (axis, one) in taken.iter_borrowed().enumerate() {
        let Ok(one) = one.cast::<PySlice>() else {
            let Ok(index) = one.extract::<u64>() else { return Ok(None) };
            made.start.push(index);
            made.from.push(0);
            made.shape.push(1);
            continue;
        };
        let Some((start, stop)) = interval(&one)? else { return Ok(None) };
        made.start.push(start);
        made.shape.push(stop.saturating_sub(start));
        if is_scalar {
            made.from.push(0);
            continue;
        }
        let Some(target) = goes.next() else { return Ok(None) };
        let Ok(target) = target.cast::<PySlice>() else { return Ok(None) };
        let Some((first, last)) = interval(&target)? else { return Ok(None) };
        let is_like =
            last.saturating_sub(first) == stop.saturating_sub(start) && Some(&last) <= shape.get(axis);
        if !is_like {
            return Ok(None); // NumPy's rules of broadcasting decide
        }
        made.from.push(first);
    }
    Ok((is_scalar || goes.next().is_none()).then_some(made))
}

/// Start and stop of a slice without steps.
fn interval(slice: &Bound<'_, PySlice>) -> PyResult<Option<(u64, u64)>> {
    let number = |name: &str| slice.getattr(name).map(|value| value.extract::<u64>().ok());
    let step = slice.getattr("step")?;
    if !step.is_none() && step.extract::<i64>().ok() != Some(1) {
        return Ok(None);
    }
    Ok(number("start")?.zip(number("stop")?))
}

impl ZarrParts {
    /// The first index of the array's box that the parts make together, if they fill values of this shape; and the shape
    /// of the keys up to the last one. The numbers of a chunk are at the end of its key, in every encoding of keys.
    pub(crate) fn as_box(&self, key_shape: &[u64], shape: &[u64]) -> Option<(Vec<u64>, Vec<u64>)> {
        let mut first: Option<Vec<u64>> = None;
        let mut whole = vec![0; key_shape.len()];
        let mut count = 0_u64;
        for (key, part) in self.keys.iter().zip(&self.parts) {
            let mut numbers = key.rsplit(['/', '.']);
            let mut begin = vec![0; key_shape.len()];
            for axis in (0..key_shape.len()).rev() {
                let start = numbers.next()?.parse::<u64>().ok()?.checked_mul(key_shape[axis])?;
                whole[axis] = start.checked_add(key_shape[axis])?.max(whole[axis]);
                begin[axis] =
                    start.checked_add(*part.start.get(axis)?)?.checked_sub(*part.from.get(axis)?)?;
            }
            if *first.get_or_insert_with(|| begin.clone()) != begin {
                return None;
            }
            count += part.shape.iter().product::<u64>();
        }
        let is_filled = Some(count) == shape.iter().try_fold(1_u64, |all, &length| all.checked_mul(length));
        first.filter(|_| is_filled).map(|first| (first, whole))
    }

    /// The keys of a slab, values of this shape whose first element is the first one of a key.
    pub(crate) fn of_slab(document: &ArrayDocument, first: &[u64], shape: &[u64]) -> PyResult<Self> {
        let key_shape = document.key_shape();
        let misfit = || PyValueError::new_err("the slab does not begin where a chunk or shard begins");
        let begins = first.iter().zip(key_shape).all(|(first, length)| first.is_multiple_of(*length));
        if !begins || first.len() != key_shape.len() || shape.len() != key_shape.len() {
            return Err(misfit());
        }
        let stops = first.iter().zip(shape).map(|(first, length)| first.checked_add(*length));
        let whole: Vec<u64> = stops.collect::<Option<_>>().ok_or_else(misfit)?;
        let inner = ChunkGrid::new(shape.to_vec(), key_shape.to_vec()).map_err(errors::to_python)?;
        let outer = ChunkGrid::new(whole.clone(), key_shape.to_vec()).map_err(errors::to_python)?;
        let (mut parts, mut places) = (Vec::new(), Vec::new());
        for number in 0..inner.chunk_count() {
            let index = inner.chunk_index(number).map_err(errors::to_python)?;
            let from: Vec<u64> = index.iter().zip(key_shape).map(|(at, length)| at * length).collect();
            let rest = from.iter().zip(shape).zip(key_shape);
            let inside = rest.map(|((from, all), length)| (all - from).min(*length)).collect();
            let place =
                index.iter().zip(first).zip(key_shape).map(|((at, first), length)| at + first / length);
            places.push(outer.linear_index(&place.collect::<Vec<_>>()).map_err(errors::to_python)?);
            parts.push(KeyPart { start: vec![0; from.len()], from, shape: inside, is_whole: true });
        }
        let keys =
            document.keys(&whole, &places).map_err(|reason| PyValueError::new_err(reason.to_string()))?;
        Ok(Self { keys, parts })
    }

    /// The exception for keys that were not written.
    pub(crate) fn failure(&self, error: WriteError) -> PyErr {
        let key = |number: usize| self.keys.get(number).map_or("", String::as_str);
        match error {
            WriteError::Misfit => {
                PyMemoryError::new_err("the chunks do not fit the array, or do not fit in memory")
            }
            WriteError::Refused(number) => {
                errors::unsupported(format!("{}: it cannot be encoded", key(number)))
            }
            WriteError::Damaged(number, problem) => errors::damaged(format!("{}: {problem}", key(number))),
            WriteError::Store(number, error) => of_system(error, key(number)),
            WriteError::Caller(error) => errors::of_caller(error),
        }
    }
}

/// The system's error, as Python raises it.
fn of_system(error: io::Error, key: &str) -> PyErr {
    match error.raw_os_error() {
        Some(number) => {
            let said = error.to_string();
            let said = said.split(" (os error").next().unwrap_or_default().to_owned();
            PyOSError::new_err((number, said, key.to_owned()))
        }
        None => error.into(),
    }
}

//! Elements as Python values: attributes, elements of variable length, references as paths.

use hyperslab_archive::Archive;
use hyperslab_core::{Attribute, Element, ObjectNames, StringPadding, Value};
use hyperslab_engine::tidy;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyString, PyTuple};

use crate::dtypes::dtype;
use crate::errors::{damaged, unreadable, unsupported};

/// Bytes that follow the address in a region reference: a number in a heap.
const REGION_EXTRA_NBYTES: usize = 4;

/// `(name, value)` of each attribute. A value that cannot be read is the exception that says why.
pub(crate) fn attributes<'py>(
    py: Python<'py>,
    attributes: &[Attribute],
    archive: &Archive,
) -> PyResult<Bound<'py, PyList>> {
    let list = PyList::empty(py);
    for shown in archive.shown(attributes) {
        let value = match &shown.value {
            Ok(value) => attribute(py, value, &archive.tree().names),
            Err(reason) => Err(unreadable(reason, format!("attribute {:?}: {reason}", shown.name))),
        };
        let value = value.unwrap_or_else(|error| error.into_value(py).into_bound(py).into_any());
        list.append((&shown.name, value))?;
    }
    Ok(list)
}

/// `(shape, dtype, elements)`. The shape is None if there is no value. Elements are bytes, or a list if they are
/// objects. A single text of variable length has no dtype.
pub(crate) fn attribute<'py>(
    py: Python<'py>,
    value: &Value,
    names: &ObjectNames,
) -> PyResult<Bound<'py, PyAny>> {
    let shape = value.shape.as_ref().map(|shape| PyTuple::new(py, shape)).transpose()?;
    let is_text = value.shape.as_ref().is_some_and(Vec::is_empty)
        && matches!(value.element, Element::VlenString { .. });
    let dtype = if is_text { py.None().into_bound(py) } else { dtype(py, &value.element)? };
    let elements = if value.element.has_pointers() {
        Pointed::new(&value.heap, names).objects(py, &value.element, &value.bytes)?.into_any()
    } else {
        let mut bytes = value.bytes.clone();
        tidy(&value.element, &mut bytes);
        PyBytes::new(py, &bytes).into_any()
    };
    Ok((shape, dtype, elements).into_pyobject(py)?.into_any())
}

/// What pointers lead to: values in order, and objects by path.
pub(crate) struct Pointed<'v> {
    values: std::slice::Iter<'v, Vec<u8>>,
    names: &'v ObjectNames,
}

impl<'v> Pointed<'v> {
    pub(crate) fn new(values: &'v [Vec<u8>], names: &'v ObjectNames) -> Self {
        Self { values: values.iter(), names }
    }

    /// Converts consecutive elements to Python objects.
    pub(crate) fn objects<'py>(
        &mut self,
        py: Python<'py>,
        element: &Element,
        bytes: &[u8],
    ) -> PyResult<Bound<'py, PyList>> {
        let width = usize::try_from(element.nbytes()).unwrap_or(usize::MAX).max(1);
        let list = PyList::empty(py);
        for one in bytes.chunks_exact(width) {
            list.append(self.object(py, element, one)?)?;
        }
        Ok(list)
    }

    fn object<'py>(
        &mut self,
        py: Python<'py>,
        element: &Element,
        bytes: &[u8],
    ) -> PyResult<Bound<'py, PyAny>> {
        match element {
            Element::VlenString { padding, .. } => text(py, self.value()?, *padding),
            Element::VlenBytes { .. } => Ok(PyBytes::new(py, self.value()?).into_any()),
            Element::Json { .. } => json(py, self.value()?),
            Element::Vlen { element, .. } => self.sequence(py, element),
            Element::ObjectReference { .. } => self.path(py, bytes),
            Element::RegionReference { .. } => {
                let width = bytes.len().saturating_sub(REGION_EXTRA_NBYTES);
                let region = self.value()?;
                self.path(py, region.get(..width).unwrap_or_default())
            }
            Element::Compound { fields, .. } if element.has_pointers() => {
                let mut values = Vec::new();
                for field in fields {
                    let part = part(bytes, field.offset, field.element.nbytes())?;
                    values.push(self.object(py, &field.element, part)?);
                }
                Ok(PyTuple::new(py, values)?.into_any())
            }
            Element::Array { element: inner, .. } if inner.has_pointers() => {
                Ok(self.objects(py, inner, bytes)?.into_any())
            }
            _ => numbers(py, element, bytes)?.call_method1("__getitem__", (0,)),
        }
    }

    /// One axis of elements, which may be lists themselves.
    fn sequence<'py>(&mut self, py: Python<'py>, element: &Element) -> PyResult<Bound<'py, PyAny>> {
        let bytes = self.value()?;
        if !element.has_pointers() {
            return numbers(py, element, bytes);
        }
        let objects = self.objects(py, element, bytes)?;
        let filled = py.import("hyperslab.archive.tree.attributes")?.getattr("filled")?;
        filled.call1(((objects.len(),), dtype(py, element)?, objects))
    }

    /// The path of an object by its address; None if the address is null, or if no link leads to the object any more.
    fn path<'py>(&self, py: Python<'py>, address: &[u8]) -> PyResult<Bound<'py, PyAny>> {
        let address = address.iter().rev().fold(0, |address, &byte| address << 8 | u64::from(byte));
        let is_null = address == 0 || address == u64::MAX;
        if self.names.is_empty() && !is_null {
            return Err(unsupported(
                "a reference to an object is not supported where the names of objects are unknown".to_owned(),
            ));
        }
        Ok(self.names.path(address).into_pyobject(py)?)
    }

    fn value(&mut self) -> PyResult<&'v [u8]> {
        let missing = || PyValueError::new_err("there are fewer values than pointers");
        self.values.next().map(Vec::as_slice).ok_or_else(missing)
    }
}

/// An array of elements without pointers.
fn numbers<'py>(py: Python<'py>, element: &Element, bytes: &[u8]) -> PyResult<Bound<'py, PyAny>> {
    let mut bytes = bytes.to_vec();
    tidy(element, &mut bytes);
    let frozen =
        py.import("numpy")?.call_method1("frombuffer", (PyBytes::new(py, &bytes), dtype(py, element)?));
    if bytes.is_empty() {
        return py.import("numpy")?.call_method1("empty", (0, dtype(py, element)?));
    }
    frozen?.call_method0("copy")
}

/// Text up to its end. Bytes that are not UTF-8 become surrogates, as in Python's file names.
fn text<'py>(py: Python<'py>, bytes: &[u8], padding: StringPadding) -> PyResult<Bound<'py, PyAny>> {
    let end = match padding {
        StringPadding::NullTerminated | StringPadding::NullPadded => bytes.iter().position(|&byte| byte == 0),
        StringPadding::Unpadded => None,
        StringPadding::SpacePadded => bytes.iter().rposition(|&byte| byte != b' ').map(|last| last + 1),
    };
    let bytes = bytes.get(..end.unwrap_or(bytes.len())).unwrap_or(bytes);
    if let Ok(text) = std::str::from_utf8(bytes) {
        return Ok(PyString::new(py, text).into_any());
    }
    let bytes = PyBytes::new(py, bytes);
    bytes.call_method1("decode", ("utf-8", "surrogateescape"))
}

/// The value of a JSON text, from Python's own parser.
fn json<'py>(py: Python<'py>, text: &[u8]) -> PyResult<Bound<'py, PyAny>> {
    if text.is_empty() {
        return Ok(py.None().into_bound(py)); // never written
    }
    let read = py.import("json")?.call_method1("loads", (PyBytes::new(py, text),));
    read.map_err(|error| damaged(format!("a value is no JSON text: {}", error.value(py))))
}

fn part(bytes: &[u8], offset: u64, nbytes: u64) -> PyResult<&[u8]> {
    let start = usize::try_from(offset).ok();
    let stop = offset.checked_add(nbytes).and_then(|stop| usize::try_from(stop).ok());
    let part = start.zip(stop).and_then(|(start, stop)| bytes.get(start..stop));
    part.ok_or_else(|| PyValueError::new_err("a field lies outside its element"))
}

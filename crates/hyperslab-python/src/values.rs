//! Elements as Python values: attributes, and elements whose bytes lie elsewhere in the file.

use hyperslab_core::{Element, StringPadding, Value};
use hyperslab_engine::tidy;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyTuple};

use crate::dtypes::{dtype, has_pointers};
use crate::errors::unsupported;

/// `(shape, dtype, elements)`: a shape of None for no value, elements as bytes, or as a list where they are
/// objects.
pub(crate) fn attribute<'py>(py: Python<'py>, value: &Value) -> PyResult<Bound<'py, PyAny>> {
    let shape = value.shape.as_ref().map(|shape| PyTuple::new(py, shape)).transpose()?;
    let dtype = dtype(py, &value.element)?;
    let elements = if has_pointers(&value.element) {
        objects(py, &value.element, &value.bytes, &mut value.heap.iter().map(Vec::as_slice))?.into_any()
    } else {
        let mut bytes = value.bytes.clone();
        tidy(&value.element, &mut bytes);
        PyBytes::new(py, &bytes).into_any()
    };
    Ok((shape, dtype, elements).into_pyobject(py)?.into_any())
}

type Heap<'h> = dyn Iterator<Item = &'h [u8]> + 'h;

/// Elements one after another, as Python objects; `heap` has what their pointers lead to, in order.
pub(crate) fn objects<'py>(
    py: Python<'py>,
    element: &Element,
    bytes: &[u8],
    heap: &mut Heap<'_>,
) -> PyResult<Bound<'py, PyList>> {
    let width = usize::try_from(element.nbytes()).unwrap_or(usize::MAX).max(1);
    let list = PyList::empty(py);
    for one in bytes.chunks_exact(width) {
        list.append(object(py, element, one, heap)?)?;
    }
    Ok(list)
}

fn object<'py>(
    py: Python<'py>,
    element: &Element,
    bytes: &[u8],
    heap: &mut Heap<'_>,
) -> PyResult<Bound<'py, PyAny>> {
    match element {
        Element::VlenString { padding, .. } => text(py, next(heap)?, *padding),
        Element::Vlen { element, .. } if has_pointers(element) => {
            Err(unsupported("variable-length values within variable-length values".to_owned()))
        }
        Element::Vlen { element, .. } => numbers(py, element, next(heap)?),
        Element::Compound { fields, .. } if has_pointers(element) => {
            let mut values = Vec::new();
            for field in fields {
                let part = part(bytes, field.offset, field.element.nbytes())?;
                values.push(object(py, &field.element, part, heap)?);
            }
            Ok(PyTuple::new(py, values)?.into_any())
        }
        Element::Array { element: inner, .. } if has_pointers(inner) => {
            Ok(objects(py, inner, bytes, heap)?.into_any())
        }
        _ => numbers(py, element, bytes)?.call_method1("__getitem__", (0,)),
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

/// Text up to its end. Bytes that are no UTF-8 become surrogates, as in Python's file names.
fn text<'py>(py: Python<'py>, bytes: &[u8], padding: StringPadding) -> PyResult<Bound<'py, PyAny>> {
    let end = match padding {
        StringPadding::NullTerminated | StringPadding::NullPadded => bytes.iter().position(|&byte| byte == 0),
        StringPadding::SpacePadded => bytes.iter().rposition(|&byte| byte != b' ').map(|last| last + 1),
    };
    let bytes = PyBytes::new(py, bytes.get(..end.unwrap_or(bytes.len())).unwrap_or(bytes));
    bytes.call_method1("decode", ("utf-8", "surrogateescape"))
}

fn next<'h>(heap: &mut Heap<'h>) -> PyResult<&'h [u8]> {
    heap.next().ok_or_else(|| PyValueError::new_err("fewer variable-length values than pointers to them"))
}

fn part(bytes: &[u8], offset: u64, nbytes: u64) -> PyResult<&[u8]> {
    let start = usize::try_from(offset).ok();
    let stop = offset.checked_add(nbytes).and_then(|stop| usize::try_from(stop).ok());
    let part = start.zip(stop).and_then(|(start, stop)| bytes.get(start..stop));
    part.ok_or_else(|| PyValueError::new_err("a field outside its element"))
}

/// The pointers in elements, one after another, in the order in which [`objects`] follows them.
pub(crate) fn pointers(element: &Element, bytes: &[u8], out: &mut Vec<u8>) {
    let width = usize::try_from(element.nbytes()).unwrap_or(usize::MAX).max(1);
    for one in bytes.chunks_exact(width) {
        match element {
            Element::VlenString { .. } | Element::Vlen { .. } => out.extend_from_slice(one),
            Element::Compound { fields, .. } => {
                for field in fields.iter().filter(|field| has_pointers(&field.element)) {
                    let inner = part(one, field.offset, field.element.nbytes());
                    pointers(&field.element, inner.unwrap_or_default(), out);
                }
            }
            Element::Array { element, .. } => pointers(element, one, out),
            _ => {}
        }
    }
}

/// Width of the pointers in an element.
pub(crate) fn pointer_nbytes(element: &Element) -> Option<u64> {
    match element {
        Element::VlenString { nbytes, .. } | Element::Vlen { nbytes, .. } => Some(*nbytes),
        Element::Compound { fields, .. } => fields.iter().find_map(|field| pointer_nbytes(&field.element)),
        Element::Array { element, .. } => pointer_nbytes(element),
        _ => None,
    }
}

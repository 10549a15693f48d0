//! Objects of an HDF5 file as dictionaries and elements as tuples. `hyperslab.h5` presents them as h5py does.

use hyperslab_core::{ByteOrder, Charset, Element, Fill, StringPadding, Unreadable, Value, VirtualSelection};
use hyperslab_engine::tidy;
use hyperslab_parsers::hdf5::{ArrayFacts, LayoutFacts, ObjectFacts, ObjectKind, Target};
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyTuple};

use crate::{errors, integers};

type Any<'py> = Bound<'py, PyAny>;

/// What is known about one object.
pub(crate) fn object<'py>(py: Python<'py>, object: &ObjectFacts) -> PyResult<Bound<'py, PyDict>> {
    let facts = PyDict::new(py);
    facts.set_item("address", object.address)?;
    facts.set_item("attributes", attributes(py, object)?)?;
    facts.set_item("attributes_ordered", object.attributes_ordered)?;
    match &object.kind {
        ObjectKind::Group { links, ordered } => {
            let list = PyList::empty(py);
            for link in links {
                let target = match &link.target {
                    Target::Object(address) => any(py, ("hard", *address))?,
                    Target::Soft(path) => any(py, ("soft", path))?,
                    Target::External { file, path } => any(py, ("external", file, path))?,
                    Target::UserDefined(kind) => any(py, ("user", *kind))?,
                };
                list.append((&link.name, link.order, target))?;
            }
            facts.set_item("kind", "group")?;
            facts.set_item("links", list)?;
            facts.set_item("ordered", *ordered)?;
        }
        ObjectKind::Array(array) => fill_array(py, &facts, array)?,
        ObjectKind::Datatype(named) => {
            facts.set_item("kind", "datatype")?;
            facts.set_item("element", element(py, named)?)?;
        }
    }
    Ok(facts)
}

fn any<'py>(py: Python<'py>, parts: impl IntoPyObjectExt<'py>) -> PyResult<Any<'py>> {
    parts.into_bound_py_any(py)
}

/// Name, creation order, and either element, shape, bytes and heap, or the exception that tells why not.
fn attributes<'py>(py: Python<'py>, object: &ObjectFacts) -> PyResult<Bound<'py, PyList>> {
    let list = PyList::empty(py);
    for (attribute, order) in &object.attributes {
        let value = match &attribute.value {
            Ok(value) => stored(py, value)?,
            Err(reason) => unreadable(py, reason, &format!("attribute {:?}: {reason}", attribute.name)),
        };
        list.append((&attribute.name, *order, value))?;
    }
    Ok(list)
}

fn stored<'py>(py: Python<'py>, value: &Value) -> PyResult<Any<'py>> {
    let shape = value.shape.as_ref().map(|shape| integers::tuple(py, shape)).transpose()?;
    let heap: Vec<_> = value.heap.iter().map(|one| PyBytes::new(py, one)).collect();
    let mut bytes = value.bytes.clone();
    tidy(&value.element, &mut bytes);
    any(py, (element(py, &value.element)?, shape, PyBytes::new(py, &bytes), heap))
}

fn unreadable<'py>(py: Python<'py>, reason: &Unreadable, said: &str) -> Any<'py> {
    errors::unreadable(reason, said.to_owned()).into_value(py).into_bound(py).into_any()
}

fn fill_array<'py>(py: Python<'py>, facts: &Bound<'py, PyDict>, array: &ArrayFacts) -> PyResult<()> {
    facts.set_item("kind", "array")?;
    facts.set_item("element", element(py, &array.element)?)?;
    facts.set_item("committed", array.committed)?;
    let shape = array.shape.as_ref().map(|shape| integers::tuple(py, shape)).transpose()?;
    facts.set_item("shape", shape)?;
    facts.set_item("max_shape", PyTuple::new(py, &array.max_shape)?)?;
    let filter = |filter: &hyperslab_parsers::hdf5::Filter| {
        any(py, (filter.number, &filter.name, PyTuple::new(py, &filter.parameters)?))
    };
    facts.set_item("filters", array.filters.iter().map(filter).collect::<PyResult<Vec<_>>>()?)?;
    let storage = match &array.storage {
        Ok(storage) => storage,
        Err(reason) => return facts.set_item("storage", unreadable(py, reason, &reason.to_string())),
    };
    let layout = match &storage.layout {
        LayoutFacts::Compact => any(py, ("compact", py.None()))?,
        LayoutFacts::Contiguous(address) => any(py, ("contiguous", *address))?,
        LayoutFacts::Chunked(shape) => any(py, ("chunked", integers::tuple(py, shape)?))?,
        LayoutFacts::Virtual => any(py, ("virtual", py.None()))?,
    };
    facts.set_item("storage", layout)?;
    facts.set_item("index", storage.index)?;
    facts.set_item("external", storage.external.clone())?;
    let fill = match &storage.fill {
        Fill::Undefined => any(py, ("undefined", py.None()))?,
        Fill::Zero => any(py, ("default", py.None()))?,
        Fill::Value(value) => {
            let mut value = value.clone();
            tidy(&array.element, &mut value);
            any(py, ("value", PyBytes::new(py, &value)))?
        }
    };
    facts.set_item("fill", fill)
}

fn order(order: ByteOrder) -> &'static str {
    match order {
        ByteOrder::Little => "<",
        ByteOrder::Big => ">",
        ByteOrder::Vax => "vax",
    }
}

fn text(padding: StringPadding, charset: Charset) -> (&'static str, &'static str) {
    let padding = match padding {
        StringPadding::NullTerminated => "null terminated",
        StringPadding::NullPadded => "null padded",
        StringPadding::SpacePadded => "space padded",
        StringPadding::Unpadded => "unpadded", // only in Zarr
    };
    (padding, if charset == Charset::Utf8 { "utf-8" } else { "ascii" })
}

/// An element: its class, its width in bytes, and the parameters of the class.
fn element<'py>(py: Python<'py>, of: &Element) -> PyResult<Any<'py>> {
    let nbytes = of.nbytes();
    match of {
        Element::Integer { signed, order: bytes, bit_offset, precision, .. } => {
            any(py, ("integer", nbytes, order(*bytes), *signed, *bit_offset, *precision))
        }
        Element::Float { order: bytes, layout, .. } => {
            let exponent = (layout.exponent_start, layout.exponent_nbits, layout.exponent_bias);
            let mantissa = (layout.mantissa_start, layout.mantissa_nbits, layout.implied_one);
            let bits = (layout.bit_offset, layout.precision, layout.sign_bit, exponent, mantissa);
            any(py, ("float", nbytes, order(*bytes), bits))
        }
        Element::Complex { part } => any(py, ("complex", nbytes, element(py, part)?)),
        Element::FixedString { padding, charset, .. } => {
            any(py, ("string", nbytes, text(*padding, *charset)))
        }
        Element::Opaque { tag, .. } => any(py, ("opaque", nbytes, tag)),
        Element::Bitfield { order: bytes, .. } => any(py, ("bitfield", nbytes, order(*bytes))),
        Element::Enumeration { base, members } => {
            let names: Vec<_> =
                members.iter().map(|member| (&member.name, PyBytes::new(py, &member.value))).collect();
            any(py, ("enum", nbytes, element(py, base)?, names))
        }
        Element::Compound { fields, .. } => {
            let field = |field: &hyperslab_core::Field| {
                any(py, (&field.name, field.offset, element(py, &field.element)?))
            };
            let fields = fields.iter().map(field).collect::<PyResult<Vec<_>>>()?;
            any(py, ("compound", nbytes, fields))
        }
        Element::Array { shape, element: inner } => {
            any(py, ("array", nbytes, integers::tuple(py, shape)?, element(py, inner)?))
        }
        Element::VlenString { padding, charset, .. } => {
            any(py, ("vlen string", nbytes, text(*padding, *charset)))
        }
        Element::VlenBytes { .. } => any(py, ("vlen bytes", nbytes)),
        Element::Json { .. } => any(py, ("json", nbytes)),
        Element::Vlen { element: inner, .. } => any(py, ("vlen", nbytes, element(py, inner)?)),
        Element::ObjectReference { .. } => any(py, ("object reference", nbytes)),
        Element::RegionReference { .. } => any(py, ("region reference", nbytes)),
    }
}

/// The selection of a virtual array, or that of its source.
pub(crate) fn selection<'py>(py: Python<'py>, of: &VirtualSelection) -> PyResult<Any<'py>> {
    match of {
        VirtualSelection::All => any(py, ("all",)),
        VirtualSelection::Nothing => any(py, ("none",)),
        VirtualSelection::Regular(axes) => {
            let axes: Vec<_> =
                axes.iter().map(|axis| (axis.start, axis.stride, axis.count, axis.block)).collect();
            any(py, ("regular", axes))
        }
        VirtualSelection::Boxes(boxes) => {
            let boxes: Vec<_> = boxes.iter().map(|one| (one.start.clone(), one.stop.clone())).collect();
            any(py, ("boxes", boxes))
        }
        VirtualSelection::Points(points) => {
            let points: Vec<Vec<u64>> = points.iter().map(<[u64]>::to_vec).collect();
            any(py, ("points", points))
        }
    }
}

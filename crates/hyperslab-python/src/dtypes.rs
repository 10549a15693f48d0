//! The NumPy dtype of an element. The byte order stays the file's, so nothing is converted.
//!
//! The metadata of dtypes are h5py's: `enum` for the names of values, `vlen` for elements of variable length,
//! `h5py_encoding` for UTF-8 in text of fixed width. Text of variable length in ASCII has `h5py_encoding` too, because
//! its values are `str`, and h5py would take those for UTF-8.

use hyperslab_core::{ByteOrder, Charset, Element, Field, FloatLayout, Member};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyString};

use crate::errors::unsupported;

type Dtype<'py> = Bound<'py, PyAny>;

const ENCODING: &str = "h5py_encoding";

/// The dtype of an element. Elements of variable length are objects.
pub(crate) fn dtype<'py>(py: Python<'py>, element: &Element) -> PyResult<Dtype<'py>> {
    made(py, element).map_err(|error| {
        let is_numpys = error.is_instance_of::<PyValueError>(py) || error.is_instance_of::<PyTypeError>(py);
        if !is_numpys {
            return error;
        }
        let nbytes = element.nbytes();
        unsupported(format!("NumPy has no dtype for an element of {nbytes} bytes: {}", error.value(py)))
    })
}

fn made<'py>(py: Python<'py>, element: &Element) -> PyResult<Dtype<'py>> {
    match element {
        Element::Integer { nbytes, signed, order, .. } => {
            number(py, if *signed { 'i' } else { 'u' }, *nbytes, *order)
        }
        Element::Bitfield { nbytes, order } => number(py, 'u', *nbytes, *order),
        Element::Float { nbytes, order, layout } => float(py, *nbytes, *order, layout),
        Element::Complex { part } => complex(py, part),
        Element::FixedString { nbytes: 0, .. } | Element::Opaque { nbytes: 0, .. } => {
            Err(unsupported("an element of 0 bytes is not supported".to_owned()))
        }
        Element::FixedString { nbytes, charset, .. } => {
            let text = named(py, &format!("S{nbytes}"))?;
            let encoding = PyString::new(py, "utf-8").into_any();
            if *charset == Charset::Utf8 {
                with_metadata(py, text, &[(ENCODING, encoding)])
            } else {
                Ok(text)
            }
        }
        Element::Opaque { nbytes, tag } => opaque(py, *nbytes, tag),
        Element::ObjectReference { .. } | Element::RegionReference { .. } | Element::Json { .. } => {
            named(py, "O")
        }
        Element::Enumeration { base, members } => enumeration(py, base, members),
        Element::Compound { nbytes, fields } => compound(py, *nbytes, fields),
        Element::Array { shape, element } => {
            py.import("numpy")?.call_method1("dtype", ((dtype(py, element)?, shape.clone()),))
        }
        Element::VlenString { charset: Charset::Ascii, .. } => {
            let text = ("vlen", py.get_type::<PyString>().into_any());
            let encoding = (ENCODING, PyString::new(py, "ascii").into_any());
            with_metadata(py, named(py, "O")?, &[text, encoding])
        }
        Element::VlenString { .. } => object(py, py.get_type::<PyString>().into_any()),
        Element::VlenBytes { .. } => object(py, py.get_type::<PyBytes>().into_any()),
        Element::Vlen { element, .. } => object(py, dtype(py, element)?),
    }
}

fn named<'py>(py: Python<'py>, name: &str) -> PyResult<Dtype<'py>> {
    py.import("numpy")?.call_method1("dtype", (name,))
}

fn number(py: Python<'_>, kind: char, nbytes: u64, order: ByteOrder) -> PyResult<Dtype<'_>> {
    let order = match (order, nbytes) {
        (ByteOrder::Vax, _) => return Err(unsupported("VAX byte order is not supported".to_owned())),
        (_, 1) => '|',
        (ByteOrder::Little, _) => '<',
        (ByteOrder::Big, _) => '>',
    };
    let widths: &[u64] = if kind == 'c' { &[8, 16] } else { &[1, 2, 4, 8] };
    if !widths.contains(&nbytes) {
        return Err(unsupported(format!("a number of {nbytes} bytes is not supported")));
    }
    named(py, &format!("{order}{kind}{nbytes}"))
}

fn float<'py>(py: Python<'py>, nbytes: u64, order: ByteOrder, layout: &FloatLayout) -> PyResult<Dtype<'py>> {
    if FloatLayout::ieee(nbytes).as_ref() == Some(layout) {
        return number(py, 'f', nbytes, order);
    }
    if order == ByteOrder::Little && is_x87(layout) {
        let long_double = named(py, "longdouble")?;
        let mantissa: u64 =
            py.import("numpy")?.call_method1("finfo", (&long_double,))?.getattr("nmant")?.extract()?;
        if mantissa == 63 && long_double.getattr("itemsize")?.extract::<u64>()? == nbytes {
            return Ok(long_double);
        }
    }
    let (precision, exponent) = (layout.precision, layout.exponent_nbits);
    Err(unsupported(format!(
        "a float of {nbytes} bytes with {precision} bits, {exponent} of them exponent, is not supported"
    )))
}

/// The 80 bits of an x87 float, in however many bytes.
fn is_x87(layout: &FloatLayout) -> bool {
    (layout.sign_bit, layout.exponent_start, layout.exponent_nbits) == (79, 64, 15)
        && (layout.mantissa_start, layout.mantissa_nbits, layout.exponent_bias) == (0, 64, 16383)
        && (layout.bit_offset, layout.implied_one) == (0, false)
}

fn complex<'py>(py: Python<'py>, part: &Element) -> PyResult<Dtype<'py>> {
    match part {
        Element::Float { nbytes, order, layout } if FloatLayout::ieee(*nbytes).as_ref() == Some(layout) => {
            number(py, 'c', nbytes.saturating_mul(2), *order)
        }
        Element::Float { nbytes, order, layout } if is_x87(layout) => {
            float(py, *nbytes, *order, layout)?;
            named(py, "clongdouble")
        }
        _ => Err(unsupported("a complex number whose parts are not IEEE floats is not supported".to_owned())),
    }
}

/// h5py tags NumPy's dates.
fn opaque<'py>(py: Python<'py>, nbytes: u64, tag: &str) -> PyResult<Dtype<'py>> {
    if let Some(name) = tag.strip_prefix("NUMPY:")
        && let Ok(tagged) = named(py, name)
        && tagged.getattr("itemsize")?.extract::<u64>()? == nbytes
    {
        return Ok(tagged);
    }
    named(py, &format!("V{nbytes}"))
}

fn enumeration<'py>(py: Python<'py>, base: &Element, members: &[Member]) -> PyResult<Dtype<'py>> {
    let is = |member: &Member, name: &str, value: u8| member.name == name && *member.value == [value];
    if let [one, other] = members {
        let (first, second) = if one.name == "TRUE" { (other, one) } else { (one, other) };
        if base.nbytes() == 1 && is(first, "FALSE", 0) && is(second, "TRUE", 1) {
            return named(py, "bool");
        }
    }
    let base = dtype(py, base)?;
    let numpy = py.import("numpy")?;
    let names = PyDict::new(py);
    for member in members {
        let value = numpy.call_method1("frombuffer", (member.value.as_slice(), &base))?;
        names.set_item(&member.name, value.call_method1("item", (0,))?)?;
    }
    with_metadata(py, base, &[("enum", names.into_any())])
}

fn object<'py>(py: Python<'py>, value: Bound<'py, PyAny>) -> PyResult<Dtype<'py>> {
    with_metadata(py, named(py, "O")?, &[("vlen", value)])
}

fn with_metadata<'py>(
    py: Python<'py>,
    dtype: Dtype<'py>,
    items: &[(&str, Bound<'py, PyAny>)],
) -> PyResult<Dtype<'py>> {
    let (metadata, keywords) = (PyDict::new(py), PyDict::new(py));
    for (key, value) in items {
        metadata.set_item(key, value)?;
    }
    keywords.set_item("metadata", metadata)?;
    py.import("numpy")?.getattr("dtype")?.call((dtype,), Some(&keywords))
}

fn compound<'py>(py: Python<'py>, nbytes: u64, fields: &[Field]) -> PyResult<Dtype<'py>> {
    if let Some(part) = complex_part(nbytes, fields) {
        return complex(py, part);
    }
    let formats = fields.iter().map(|field| dtype(py, &field.element)).collect::<PyResult<Vec<_>>>()?;
    let names: Vec<&str> = fields.iter().map(|field| field.name.as_str()).collect();
    let description = PyDict::new(py);
    description.set_item("names", names)?;
    description.set_item("formats", formats)?;
    if !fields.iter().any(|field| field.element.has_pointers()) {
        let offsets: Vec<u64> = fields.iter().map(|field| field.offset).collect();
        description.set_item("offsets", offsets)?;
        description.set_item("itemsize", nbytes)?;
    } // objects are wider than the file's pointers, so NumPy chooses the offsets
    let made = py.import("numpy")?.call_method1("dtype", (description,));
    made.map_err(|error| unsupported(format!("a compound element that NumPy cannot represent ({error})")))
}

/// h5py writes a complex number as a compound of two equal floats, r and i.
pub(crate) fn complex_part(nbytes: u64, fields: &[Field]) -> Option<&Element> {
    let [real, imaginary] = fields else { return None };
    let width = real.element.nbytes();
    let is_complex = (real.name.as_str(), imaginary.name.as_str()) == ("r", "i")
        && real.element == imaginary.element
        && matches!(width, 4 | 8 | 12 | 16)
        && matches!(real.element, Element::Float { .. })
        && (real.offset, imaginary.offset, nbytes) == (0, width, width * 2);
    is_complex.then_some(&real.element)
}

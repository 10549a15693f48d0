//! Elements by name: NumPy's dtype strings (version 2) and data types (version 3).
//!
//! Types without an element of their own (UTF-32 text, dates) are opaque, with h5py's tag for NumPy's dtypes.

use hyperslab_core::{
    ByteOrder, Charset, Element, Field, FloatLayout, StringPadding, Unreadable, VALUE_POINTER_NBYTES,
};
use serde_json::Value;

use super::document;
use crate::attribute::boolean_element;

const MAX_DEPTH: usize = 16;
/// The prefix of a dtype string in HDF5's tags, as h5py writes it.
pub(super) const NUMPY_TAG: &str = "NUMPY:";

/// Text of variable length.
pub(super) fn text() -> Element {
    let (padding, charset) = (StringPadding::Unpadded, Charset::Utf8);
    Element::VlenString { nbytes: VALUE_POINTER_NBYTES, padding, charset }
}

/// An element, and the reason if its arrays cannot be read.
pub(super) type Named = (Element, Option<Unreadable>);

/// The element of a version 2 dtype: a string, or a list of fields.
pub(super) fn of_dtype(dtype: &Value) -> Result<Named, Unreadable> {
    dtype_at(dtype, 0)
}

fn dtype_at(dtype: &Value, depth: usize) -> Result<Named, Unreadable> {
    match dtype {
        Value::String(text) => of_string(text),
        Value::Array(fields) if depth < MAX_DEPTH => compound(fields, |field| dtype_at(field, depth + 1)),
        _ => Err(Unreadable::unsupported(format!("dtype {dtype}"))),
    }
}

/// Fields `[name, type]` or `[name, type, shape]`, without gaps.
fn compound(
    fields: &[Value],
    element: impl Fn(&Value) -> Result<Named, Unreadable>,
) -> Result<Named, Unreadable> {
    let (mut nbytes, mut made, mut trouble) = (0_u64, Vec::new(), None);
    for field in fields {
        let name = field.get(0).or_else(|| field.get("name")).and_then(Value::as_str);
        let inner = field.get(1).or_else(|| field.get("data_type"));
        let (name, inner) =
            name.zip(inner).ok_or_else(|| Unreadable::damaged("a field without a name or a type"))?;
        let (mut inner, problem) = element(inner)?;
        trouble = trouble.or(problem);
        if let Some(shape) = field.get(2) {
            let shape = shape.as_array().map_or_else(|| vec![shape.clone()], Clone::clone);
            let shape = shape.iter().map(Value::as_u64).collect::<Option<Vec<u64>>>();
            inner = Element::Array {
                shape: shape.ok_or_else(|| Unreadable::damaged("a field's shape is invalid"))?,
                element: Box::new(inner),
            };
        }
        let offset = nbytes;
        nbytes =
            offset.checked_add(inner.nbytes()).ok_or_else(|| Unreadable::damaged("an element too wide"))?;
        if !name.is_empty() {
            made.push(Field { name: name.into(), offset, element: inner }); // NumPy's gaps have no name
        }
    }
    if nbytes == 0 {
        return Err(Unreadable::damaged("an element 0 bytes wide"));
    }
    Ok((Element::Compound { nbytes, fields: made }, trouble))
}

/// A dtype string such as `<f4`, `|S5`, `<M8[ns]`.
pub(super) fn of_string(dtype: &str) -> Result<Named, Unreadable> {
    let unknown = || Unreadable::unsupported(format!("dtype {dtype:?}"));
    let mut letters = dtype.chars();
    let order = match letters.next() {
        Some('<' | '|') => ByteOrder::Little,
        Some('>') => ByteOrder::Big,
        _ => return Err(unknown()),
    };
    let kind = letters.next().ok_or_else(unknown)?;
    let rest = letters.as_str();
    let width = rest.split('[').next().unwrap_or_default();
    if kind == 'O' {
        return Ok((text(), Some(Unreadable::unsupported("objects within a dtype"))));
    }
    let width: u64 = width.parse().map_err(|_| unknown())?;
    let element = match (kind, width) {
        ('b', 1) => Some(boolean_element(0, 1)),
        ('i' | 'u', 1 | 2 | 4 | 8) => Some(Element::integer(width, kind == 'i', order)),
        ('f', _) => Element::float(width, order),
        ('c', 8 | 16) => {
            Element::float(width / 2, order).map(|part| Element::Complex { part: Box::new(part) })
        }
        ('S', 1..) => Some(bytes_element(width)),
        ('U', 1..) => width.checked_mul(4).map(|nbytes| tagged(nbytes, dtype)),
        ('V', 1..) => Some(Element::Opaque { nbytes: width, tag: dtype.into() }),
        ('M' | 'm', 8) => Some(tagged(8, dtype)),
        _ => None,
    };
    element.map(|element| (element, None)).ok_or_else(unknown)
}

/// The element of a version 3 data type. The `bytes` codec gives the byte order of numbers.
pub(super) fn of_data_type(data_type: &Value, order: ByteOrder) -> Result<Named, Unreadable> {
    data_type_at(data_type, order, 0)
}

fn data_type_at(data_type: &Value, order: ByteOrder, depth: usize) -> Result<Named, Unreadable> {
    let unknown = || Unreadable::unsupported(format!("data type {data_type}"));
    let (name, configuration) = document::extension(data_type).ok_or_else(unknown)?;
    if matches!(name, "struct" | "structured") && depth < MAX_DEPTH {
        let fields = configuration.get("fields").and_then(Value::as_array).ok_or_else(unknown)?;
        return compound(fields, |field| data_type_at(field, order, depth + 1));
    }
    if matches!(name, "string" | "bytes" | "variable_length_bytes" | "variable_length_utf8") {
        return Ok((text(), Some(Unreadable::unsupported(format!("{name} within a data type")))));
    }
    let width = configuration.get("length_bytes").and_then(Value::as_u64);
    let element = number(name, order).or_else(|| extended(name, width, &configuration, order));
    element.map(|element| (element, None)).ok_or_else(unknown)
}

fn number(name: &str, order: ByteOrder) -> Option<Element> {
    let bits = |prefix: &str| name.strip_prefix(prefix)?.parse::<u64>().ok();
    let complex = |nbits: u64| {
        let part = Element::float(nbits / 16, order).filter(|_| matches!(nbits, 64 | 128))?;
        Some(Element::Complex { part: Box::new(part) })
    };
    match name {
        "bool" => Some(boolean_element(0, 1)),
        "bfloat16" => Some(bfloat16(order)),
        _ => match (bits("int"), bits("uint"), bits("float"), bits("complex"), bits("r")) {
            (Some(nbits @ (8 | 16 | 32 | 64)), ..) => Some(Element::integer(nbits / 8, true, order)),
            (_, Some(nbits @ (8 | 16 | 32 | 64)), ..) => Some(Element::integer(nbits / 8, false, order)),
            (_, _, Some(nbits @ (16 | 32 | 64)), ..) => Element::float(nbits / 8, order),
            (_, _, _, Some(nbits), _) => complex(nbits),
            (_, _, _, _, Some(nbits)) if nbits > 0 && nbits % 8 == 0 => {
                Some(Element::Opaque { nbytes: nbits / 8, tag: format!("|V{}", nbits / 8) })
            }
            _ => None,
        },
    }
}

fn extended(
    name: &str,
    width: Option<u64>,
    configuration: &serde_json::Map<String, Value>,
    order: ByteOrder,
) -> Option<Element> {
    let sign = if order == ByteOrder::Big { '>' } else { '<' };
    let width = width.filter(|&width| width > 0);
    match name {
        "fixed_length_utf32" => width.map(|nbytes| tagged(nbytes, &format!("{sign}U{}", nbytes / 4))),
        "null_terminated_bytes" | "fixed_length_ascii" => width.map(bytes_element),
        "raw_bytes" => width.map(|nbytes| Element::Opaque { nbytes, tag: format!("|V{nbytes}") }),
        "numpy.datetime64" | "numpy.timedelta64" => {
            let unit = configuration.get("unit").and_then(Value::as_str)?;
            let factor = configuration.get("scale_factor").and_then(Value::as_u64).unwrap_or(1);
            let kind = if name.ends_with("datetime64") { 'M' } else { 'm' };
            let unit = if factor == 1 { unit.to_owned() } else { format!("{factor}{unit}") };
            let unit = if unit == "generic" { String::new() } else { format!("[{unit}]") };
            Some(tagged(8, &format!("{sign}{kind}8{unit}")))
        }
        _ => None,
    }
}

fn bfloat16(order: ByteOrder) -> Element {
    let layout = FloatLayout {
        bit_offset: 0,
        precision: 16,
        sign_bit: 15,
        exponent_start: 7,
        exponent_nbits: 8,
        mantissa_start: 0,
        mantissa_nbits: 7,
        exponent_bias: 127,
        implied_one: true,
    };
    Element::Float { nbytes: 2, order, layout }
}

/// An element that only NumPy's dtype string can describe.
fn tagged(nbytes: u64, dtype: &str) -> Element {
    Element::Opaque { nbytes, tag: format!("{NUMPY_TAG}{dtype}") }
}

fn bytes_element(nbytes: u64) -> Element {
    Element::FixedString { nbytes, padding: StringPadding::NullPadded, charset: Charset::Ascii }
}

//! DAP's types as elements, and the document's text values as bytes of these elements.

use hyperslab_core::{
    Attribute, ByteOrder, Charset, Element, Field, Member, StringPadding, Unreadable, Value,
};

use super::names::{Names, Scope};
use super::xml::{Node, numbers};
use crate::attribute::text_element;

/// NetCDF's fill value for floats. Documents have it with six digits.
const NETCDF_FILL: f64 = 9.969_209_968_386_869e36;
/// The limit for texts padded to one width.
const MAX_WORDS_NBYTES: usize = 64 << 20;
/// The longest fill value in bytes. Every array has its own copy.
const MAX_FILL_NBYTES: u64 = 1 << 16;
/// The longest names of an enumeration, which every array copies. Longer ones are dropped.
const MAX_MEMBERS: usize = 256;
/// The longest names of nested containers. Every attribute in them has these names in its own.
const MAX_PREFIX_NBYTES: usize = 1024;
/// Half of the sixth digit of a number that starts with 1.
const PRECISION: f64 = 5.000_001e-6;

/// An atomic type of fixed width.
pub(super) fn number_element(kind: &str, order: ByteOrder) -> Option<Element> {
    let integer = |nbytes, signed| Some(Element::integer(nbytes, signed, order));
    match kind {
        "Int8" => integer(1, true),
        "Byte" | "UByte" | "UInt8" | "Char" => integer(1, false),
        "Int16" => integer(2, true),
        "UInt16" => integer(2, false),
        "Int32" => integer(4, true),
        "UInt32" => integer(4, false),
        "Int64" => integer(8, true),
        "UInt64" => integer(8, false),
        "Float32" => Element::float(4, order),
        "Float64" => Element::float(8, order),
        _ => None,
    }
}

/// The elements of an array. For `String`, the caller gives the width of the text.
pub(super) fn element(
    node: &Node,
    names: &Names<'_>,
    scope: Scope<'_>,
    order: ByteOrder,
    offsets: &[u64],
) -> Result<Element, Unreadable> {
    if let Some(element) = number_element(&node.name, order) {
        return Ok(element);
    }
    match node.name.as_str() {
        "Enum" => enumeration(node, names, scope, order),
        "Structure" => structure(node, names, scope, order, offsets),
        kind => Err(Unreadable::unsupported(format!("DAP's type {kind}"))),
    }
}

fn enumeration(
    node: &Node,
    names: &Names<'_>,
    scope: Scope<'_>,
    order: ByteOrder,
) -> Result<Element, Unreadable> {
    let name = node.attribute("enum").unwrap_or_default();
    let described = names.enumeration(name, scope);
    let described =
        described.ok_or_else(|| Unreadable::damaged(format!("there is no enumeration {name:?}")))?;
    let kind = described.attribute("basetype").unwrap_or("Byte");
    let base = number_element(kind, order).filter(|base| matches!(base, Element::Integer { .. }));
    let base = base.ok_or_else(|| Unreadable::damaged(format!("an enumeration of {kind}")))?;
    let mut members = Vec::new();
    if described.children("EnumConst").count() > MAX_MEMBERS {
        return Ok(base);
    }
    for one in described.children("EnumConst") {
        let value = one.attribute("value").and_then(|text| number(&base, text));
        let value = value.ok_or_else(|| Unreadable::damaged("a name of an enumeration without a value"))?;
        members.push(Member { name: one.attribute("name").unwrap_or_default().into(), value });
    }
    Ok(Element::Enumeration { base: base.into(), members })
}

/// `offsets` has the offsets of all fields except the first, then the total width. Without it, the fields are
/// contiguous.
fn structure(
    node: &Node,
    names: &Names<'_>,
    scope: Scope<'_>,
    order: ByteOrder,
    offsets: &[u64],
) -> Result<Element, Unreadable> {
    let mut fields: Vec<Field> = Vec::new();
    let mut end = 0_u64;
    let too_wide = || Unreadable::damaged("a structure wider than any file");
    for child in &node.children {
        if !is_variable(&child.name) {
            continue;
        }
        let mut element = element(child, names, scope, order, &[])?;
        let shape = names.shape(child, scope)?.0;
        if !shape.is_empty() {
            element = Element::Array { shape, element: element.into() };
        }
        let packed = if fields.is_empty() { Some(0) } else { offsets.get(fields.len() - 1).copied() };
        let offset = packed.unwrap_or(end);
        end = offset.checked_add(element.nbytes()).ok_or_else(too_wide)?;
        fields.push(Field { name: child.attribute("name").unwrap_or_default().into(), offset, element });
    }
    let nbytes = if offsets.is_empty() { end } else { offsets.last().copied().unwrap_or(end) };
    let is_sound = offsets.is_empty() || offsets.len() == fields.len();
    if !is_sound || fields.iter().any(|field| field.offset.saturating_add(field.element.nbytes()) > nbytes) {
        return Err(Unreadable::damaged("the fields of a structure contradict their offsets"));
    }
    Ok(Element::Compound { nbytes, fields })
}

/// Whether an element of the document is an array, a scalar, or a DAP node that contains such.
pub(super) fn is_variable(name: &str) -> bool {
    number_element(name, ByteOrder::Little).is_some()
        || matches!(name, "String" | "URL" | "Url" | "Enum" | "Opaque" | "Structure" | "Sequence")
}

/// A number as one element.
pub(super) fn number(element: &Element, text: &str) -> Option<Vec<u8>> {
    let text = text.trim();
    let (mut bytes, order) = match element {
        Element::Integer { nbytes, signed, order, .. } => {
            let value: i128 = text.parse().ok()?;
            let nbits = u32::try_from(nbytes.checked_mul(8)?).ok()?;
            let low = if *signed { -(1_i128 << (nbits - 1)) } else { 0 };
            let high = if *signed { 1_i128 << (nbits - 1) } else { 1_i128 << nbits };
            let bytes = value.to_le_bytes();
            let kept = bytes.get(..usize::try_from(*nbytes).ok()?)?.to_vec();
            (low..high).contains(&value).then_some((kept, *order))?
        }
        Element::Float { nbytes: 4, order, .. } => (text.parse::<f32>().ok()?.to_le_bytes().to_vec(), *order),
        Element::Float { order, .. } => (text.parse::<f64>().ok()?.to_le_bytes().to_vec(), *order),
        Element::Enumeration { base, .. } => return number(base, text),
        _ => return None,
    };
    if order == ByteOrder::Big {
        bytes.reverse();
    }
    Some(bytes)
}

/// A fill value: one number, or one number for each field of a structure; `None` if we do not understand it.
pub(super) fn fill(element: &Element, text: &str, exact: Option<&str>) -> Option<Vec<u8>> {
    match element {
        Element::FixedString { nbytes, .. } => {
            let mut bytes = text.as_bytes().to_vec();
            let width = usize::try_from(*nbytes).ok().filter(|_| *nbytes <= MAX_FILL_NBYTES)?;
            if bytes.len() > width {
                return None;
            }
            bytes.resize(width, 0);
            Some(bytes)
        }
        Element::Float { .. } => number(element, &refined(text, exact)),
        Element::Compound { nbytes, .. } => {
            let words: Vec<&str> = text.split_whitespace().collect();
            let mut bytes = vec![0; usize::try_from(*nbytes).ok().filter(|_| *nbytes <= MAX_FILL_NBYTES)?];
            if !words.iter().all(|word| word.parse() == Ok(0.0)) {
                let mut words = words.into_iter();
                fill_fields(element, &mut words, &mut bytes)?;
                if words.next().is_some() {
                    return None;
                }
            }
            Some(bytes)
        }
        _ => number(element, text),
    }
}

fn fill_fields<'t>(
    element: &Element,
    words: &mut impl Iterator<Item = &'t str>,
    out: &mut [u8],
) -> Option<()> {
    match element {
        Element::Compound { fields, .. } => {
            for field in fields {
                let start = usize::try_from(field.offset).ok()?;
                fill_fields(&field.element, words, out.get_mut(start..)?)?;
            }
        }
        Element::Array { shape, element } => {
            let width = usize::try_from(element.nbytes()).ok().filter(|&width| width > 0)?;
            let count = shape.iter().try_fold(1_u64, |product, &length| product.checked_mul(length))?;
            for target in out.chunks_exact_mut(width).take(usize::try_from(count).ok()?) {
                fill_fields(element, words, target)?;
            }
        }
        _ => {
            let bytes = number(element, words.next()?)?;
            out.get_mut(..bytes.len())?.copy_from_slice(&bytes);
        }
    }
    Some(())
}

/// Documents round fill values to six digits. Restores the exact value if it is `_FillValue` or NetCDF's default.
fn refined(text: &str, exact: Option<&str>) -> String {
    let Ok(given) = text.trim().parse::<f64>() else { return text.to_owned() };
    let is_meant = |value: f64| (value - given).abs() <= given.abs() * PRECISION;
    match exact.map(|exact| (exact, exact.trim().parse::<f64>())) {
        Some((exact, Ok(value))) if is_meant(value) => exact.to_owned(),
        _ if is_meant(NETCDF_FILL) => NETCDF_FILL.to_string(),
        _ => text.to_owned(),
    }
}

/// The attributes of a group or an array. Attributes in a container get the container's name as a prefix, unless the
/// container stands for the file.
pub(super) fn attributes(node: &Node) -> Vec<Attribute> {
    let mut found = Vec::new();
    gather(node, "", &mut found);
    found
}

fn gather(node: &Node, prefix: &str, found: &mut Vec<Attribute>) {
    for child in node.children("Attribute") {
        let name = child.attribute("name").unwrap_or_default();
        match child.attribute("type").unwrap_or("String") {
            "Container" if name == "build_dmrpp_metadata" => {} // from the program that wrote the document
            "Container" if matches!(name, "HDF5_GLOBAL" | "NC_GLOBAL") => gather(child, prefix, found),
            "Container" if prefix.len() + name.len() > MAX_PREFIX_NBYTES => {
                let value = Err(Unreadable::unsupported("an attribute in containers with very long names"));
                found.push(Attribute { name: name.to_owned(), value });
            }
            "Container" => gather(child, &format!("{prefix}{name}."), found),
            kind => found.push(Attribute { name: format!("{prefix}{name}"), value: value(child, kind) }),
        }
    }
}

/// One value becomes a scalar, because documents do not tell it from a list of one.
fn value(node: &Node, kind: &str) -> Result<Value, Unreadable> {
    let values = node.children("Value").map(|value| value.attribute("value").unwrap_or(&value.text));
    let values: Vec<&str> = values.collect();
    let shape = if let [_] = *values { Vec::new() } else { vec![values.len() as u64] };
    let (element, bytes) = match number_element(kind, ByteOrder::Little) {
        Some(element) => {
            let bytes = values.iter().map(|text| {
                let text = if text.trim() == "*" { "nan" } else { text };
                let refused = || Unreadable::damaged(format!("{text:?} is not of type {kind}"));
                number(&element, text).ok_or_else(refused)
            });
            let bytes = bytes.collect::<Result<Vec<_>, _>>()?.concat();
            (element, bytes)
        }
        None if matches!(kind, "String" | "URL" | "Url") => {
            words(&values).ok_or_else(|| Unreadable::unsupported("an attribute of very long texts"))?
        }
        None => return Err(Unreadable::unsupported(format!("an attribute of DAP's type {kind}"))),
    };
    Ok(Value { element, shape: Some(shape), bytes, heap: Vec::new() })
}

/// Texts as elements of one width, unless they are too large together.
pub(super) fn words<T: AsRef<[u8]>>(texts: &[T]) -> Option<(Element, Vec<u8>)> {
    let width = texts.iter().map(|text| text.as_ref().len()).max().unwrap_or(0).max(1);
    let nbytes = width.checked_mul(texts.len()).filter(|&nbytes| nbytes <= MAX_WORDS_NBYTES)?;
    let mut bytes = Vec::with_capacity(nbytes);
    for text in texts {
        let text = text.as_ref();
        let padding = width.saturating_sub(text.len());
        bytes.extend_from_slice(text);
        bytes.extend(std::iter::repeat_n(0, padding));
    }
    Some((text_element(width as u64), bytes))
}

/// Text of fixed width, as in `FixedLengthStringArray`.
pub(super) fn fixed_text(node: &Node) -> Option<Element> {
    let nbytes = numbers(node.attribute("string_length")?)?.first().copied().filter(|&nbytes| nbytes > 0)?;
    let padding = match node.attribute("pad").unwrap_or_default() {
        pad if pad.starts_with("space") => StringPadding::SpacePadded,
        "null" | "null_term" => StringPadding::NullTerminated,
        _ => StringPadding::NullPadded,
    };
    Some(Element::FixedString { nbytes, padding, charset: Charset::Utf8 })
}

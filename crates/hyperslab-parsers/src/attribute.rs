//! Makes attributes from the values of text formats: numbers, text, booleans.

use hyperslab_core::{Attribute, ByteOrder, Charset, Element, Member, StringPadding, Value};

/// A boolean in one byte, named as `h5py` names it.
pub(crate) fn boolean_element(false_byte: u8, true_byte: u8) -> Element {
    let member = |name: &str, byte| Member { name: name.into(), value: vec![byte] };
    Element::Enumeration {
        base: Box::new(Element::integer(1, true, ByteOrder::Little)),
        members: vec![member("FALSE", false_byte), member("TRUE", true_byte)],
    }
}

/// One element.
pub(crate) fn scalar(element: Element, bytes: Vec<u8>) -> Value {
    Value { element, shape: Some(Vec::new()), bytes, heap: Vec::new() }
}

/// A boolean.
pub(crate) fn boolean(value: bool) -> Value {
    scalar(boolean_element(0, 1), vec![u8::from(value)])
}

/// A whole number.
pub(crate) fn integer(value: i64) -> Value {
    scalar(Element::integer(8, true, ByteOrder::Little), value.to_le_bytes().to_vec())
}

/// A whole number that needs all 64 bits.
pub(crate) fn unsigned(value: u64) -> Value {
    scalar(Element::integer(8, false, ByteOrder::Little), value.to_le_bytes().to_vec())
}

/// A floating-point number.
pub(crate) fn float(value: f64) -> Value {
    scalar(float_element(), value.to_le_bytes().to_vec())
}

/// The result of [`float`].
pub(crate) fn float_element() -> Element {
    let opaque = Element::Opaque { nbytes: 8, tag: "float".into() };
    Element::float(8, ByteOrder::Little).unwrap_or(opaque)
}

/// Text. Empty text takes one zero byte, because no string type has 0 bytes.
pub(crate) fn text(value: &str) -> Value {
    let mut bytes = value.as_bytes().to_vec();
    if bytes.is_empty() {
        bytes.push(0);
    }
    scalar(text_element(bytes.len() as u64), bytes)
}

/// Text of a fixed width, padded with zero bytes.
pub(crate) fn text_element(nbytes: u64) -> Element {
    Element::FixedString { nbytes, padding: StringPadding::NullPadded, charset: Charset::Utf8 }
}

/// An attribute with a value.
pub(crate) fn named(name: impl Into<String>, value: Value) -> Attribute {
    Attribute { name: name.into(), value: Ok(value) }
}

//! Reads JSON documents, including Python's NaN, and makes attributes from their values.

use hyperslab_core::{Attribute, ByteOrder, Element, Unreadable, VALUE_POINTER_NBYTES, Value as Stored};
use serde_json::{Map, Value};

use crate::attribute;
use crate::error::Error;

/// Marks `NaN`, `Infinity` and `-Infinity` that were not strings in the document.
pub(super) const BARE: char = '\u{0}';

/// A document. Python writes NaN and infinities without quotes, which JSON forbids.
pub(super) fn read(bytes: &[u8]) -> Result<Value, Error> {
    let strict = serde_json::from_slice(bytes);
    let value = strict.or_else(|error| {
        let text = std::str::from_utf8(bytes).map_err(|_| error)?;
        serde_json::from_str(&with_quoted_words(text))
    });
    value.map_err(|error| Error::invalid("a Zarr metadata document", 0, error.to_string()))
}

pub(super) fn with_quoted_words(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len());
    let mut rest = text;
    let (mut in_string, mut escaped) = (false, false);
    while let Some(character) = rest.chars().next() {
        let bare = ["NaN", "-Infinity", "Infinity"].into_iter().find(|word| rest.starts_with(word));
        if let Some(word) = bare.filter(|_| !in_string) {
            quoted.extend(["\"\\u0000", word, "\""]);
            rest = rest.get(word.len()..).unwrap_or_default();
            continue;
        }
        in_string ^= character == '"' && !escaped;
        escaped = in_string && character == '\\' && !escaped;
        quoted.push(character);
        rest = rest.get(character.len_utf8()..).unwrap_or_default();
    }
    quoted
}

/// Attributes, except for what is stored elsewhere.
pub(super) fn attributes(attributes: Option<&Value>) -> Vec<Attribute> {
    let members = attributes.and_then(Value::as_object).into_iter().flatten();
    let members = members.filter(|(name, _)| *name != "_ARRAY_DIMENSIONS");
    members.map(|(name, value)| attribute::named(name, stored(value))).collect()
}

/// Numbers, booleans and text, and lists of one of these. Everything else stays JSON.
fn stored(value: &Value) -> Stored {
    match value {
        Value::String(text) => bare_float(text).map_or_else(|| attribute::text(text), attribute::float),
        Value::Bool(value) => attribute::boolean(*value),
        Value::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(number), _) => attribute::integer(number),
            (None, Some(number)) => attribute::unsigned(number),
            (None, None) => attribute::float(number.as_f64().unwrap_or(f64::NAN)),
        },
        Value::Array(items) => list(items).unwrap_or_else(|| json(value)),
        Value::Object(_) | Value::Null => json(value),
    }
}

fn json(value: &Value) -> Stored {
    let word = |text: String, word: &str| text.replace(&format!("\"\\u0000{word}\""), word); // as Python writes it
    let text = ["NaN", "-Infinity", "Infinity"].into_iter().fold(value.to_string(), word);
    let pointer = vec![0; usize::try_from(VALUE_POINTER_NBYTES).unwrap_or_default()];
    let stored = attribute::scalar(Element::Json { nbytes: VALUE_POINTER_NBYTES }, pointer);
    Stored { heap: vec![text.into_bytes()], ..stored }
}

fn list(items: &[Value]) -> Option<Stored> {
    let integers: Option<Vec<i64>> = items.iter().map(Value::as_i64).collect();
    let (element, bytes) = if items.is_empty() {
        return None;
    } else if let Some(integers) = integers {
        let bytes = integers.iter().flat_map(|value| value.to_le_bytes()).collect();
        (Element::integer(8, true, ByteOrder::Little), bytes)
    } else if let Some(numbers) = items.iter().map(Value::as_u64).collect::<Option<Vec<u64>>>() {
        let bytes = numbers.iter().flat_map(|value| value.to_le_bytes()).collect();
        (Element::integer(8, false, ByteOrder::Little), bytes)
    } else if let Some(floats) = items.iter().map(float).collect::<Option<Vec<f64>>>() {
        (attribute::float_element(), floats.iter().flat_map(|value| value.to_le_bytes()).collect())
    } else {
        strings(items.iter().map(Value::as_str).collect::<Option<Vec<&str>>>()?)?
    };
    Some(Stored { element, shape: Some(vec![items.len() as u64]), bytes, heap: Vec::new() })
}

/// Texts of one width; `None` if padding would need far more bytes than the texts.
fn strings(texts: Vec<&str>) -> Option<(Element, Vec<u8>)> {
    let width = texts.iter().map(|text| text.len()).max().unwrap_or(0).max(1);
    let nbytes: usize = texts.iter().map(|text| text.len() + 1).sum();
    if width.saturating_mul(texts.len()) > nbytes.saturating_mul(64).saturating_add(1 << 16) {
        return None;
    }
    let padded = |text: &str| {
        let mut bytes = text.as_bytes().to_vec();
        bytes.resize(width, 0);
        bytes
    };
    Some((attribute::text_element(width as u64), texts.into_iter().flat_map(padded).collect()))
}

fn float(value: &Value) -> Option<f64> {
    value.as_f64().or_else(|| bare_float(value.as_str()?))
}

fn bare_float(text: &str) -> Option<f64> {
    text.strip_prefix(BARE).and_then(|word| word.parse().ok())
}

/// A list of lengths.
pub(super) fn lengths(document: &Value, key: &str) -> Result<Vec<u64>, Unreadable> {
    let lengths = document.get(key).and_then(Value::as_array);
    let lengths = lengths.and_then(|lengths| lengths.iter().map(Value::as_u64).collect::<Option<Vec<u64>>>());
    lengths.ok_or_else(|| Unreadable::damaged(format!("{key} is missing, or not a list of lengths")))
}

/// A string member.
pub(super) fn string<'v>(document: &'v Value, key: &str) -> Option<&'v str> {
    document.get(key).and_then(Value::as_str)
}

/// The contents of an extension point: `"name"` alone, or `{"name": …, "configuration": {…}}`.
pub(super) fn extension(value: &Value) -> Option<(&str, Map<String, Value>)> {
    if let Some(name) = value.as_str() {
        return Some((name, Map::new()));
    }
    let configuration = value.get("configuration").and_then(Value::as_object).cloned();
    Some((string(value, "name")?, configuration.unwrap_or_default()))
}

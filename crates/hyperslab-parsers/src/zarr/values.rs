//! Elements of variable length: which codec stores their values, and what unwritten elements are.

use hyperslab_core::{Codec, Element, Fill, Framing, Unreadable, VALUE_POINTER_NBYTES};
use serde_json::Value;

use super::base64::decoded;
use super::{document, element};

/// The dtype of elements of variable length in version 2. A filter encodes them.
pub(super) const OBJECTS: &str = "|O";
const MOST_FILL_NBYTES: usize = 1 << 20;

/// An element of variable length, and the codec that stores its values.
pub(super) struct Values {
    pub element: Element,
    pub codec: Codec,
    pub fill: Fill,
}

/// The element of a version 2 array of objects, by its first filter.
pub(super) fn of_filters(document: &Value) -> Result<Values, Unreadable> {
    let filter = document.get("filters").and_then(|filters| filters.as_array()?.first());
    let filter = filter.ok_or_else(|| Unreadable::unsupported("dtype |O without a filter for objects"))?;
    let nbytes = VALUE_POINTER_NBYTES;
    let (element, framing) = match document::string(filter, "id") {
        Some("vlen-utf8") => (element::text(), Framing::Utf8),
        Some("vlen-bytes") => (Element::VlenBytes { nbytes }, Framing::Bytes),
        Some("vlen-array") => {
            let dtype =
                filter.get("dtype").ok_or_else(|| Unreadable::damaged("vlen-array without a dtype"))?;
            let (inner, trouble) = element::of_dtype(dtype)?;
            if let Some(trouble) = trouble {
                return Err(trouble);
            }
            let element_nbytes = inner.nbytes();
            (Element::Vlen { nbytes, element: Box::new(inner) }, Framing::Sequences { element_nbytes })
        }
        Some("json2") => match document::string(filter, "encoding") {
            None | Some("utf-8" | "utf8" | "ascii") => (Element::Json { nbytes }, Framing::Json),
            Some(other) => return Err(Unreadable::unsupported(format!("json2 with encoding {other:?}"))),
        },
        Some("pickle") => {
            let said = "codec pickle, whose chunks can run arbitrary code when they are decoded,";
            return Err(Unreadable::unsupported(said));
        }
        Some(other) => return Err(Unreadable::unsupported(format!("codec {other} for objects"))),
        None => return Err(Unreadable::damaged("a codec without an id")),
    };
    Values::new(element, framing, document.get("fill_value"))
}

/// The element of a version 3 array, by its data type; `None` if that has a fixed width.
pub(super) fn of_data_type(document: &Value) -> Option<Result<Values, Unreadable>> {
    let (name, _) = document.get("data_type").and_then(document::extension)?;
    let (element, framing) = match name {
        "string" | "variable_length_utf8" => (element::text(), Framing::Utf8),
        "bytes" | "variable_length_bytes" => {
            (Element::VlenBytes { nbytes: VALUE_POINTER_NBYTES }, Framing::Bytes)
        }
        _ => return None,
    };
    Some(Values::new(element, framing, document.get("fill_value")))
}

/// Fails if the chain of an array with elements of fixed width has a codec for values of variable length.
pub(super) fn none_in(codecs: &[Codec]) -> Result<(), Unreadable> {
    let found = codecs.iter().find(|codec| matches!(codec, Codec::Values { .. }));
    let refuse = |codec: &Codec| {
        Err(Unreadable::unsupported(format!("codec {} for elements of fixed width", codec.name())))
    };
    found.map_or(Ok(()), refuse)
}

impl Values {
    fn new(element: Element, framing: Framing, fill: Option<&Value>) -> Result<Self, Unreadable> {
        let (value, fill) = match fill.filter(|fill| !fill.is_null()) {
            None => (Vec::new(), Fill::Undefined),
            Some(fill) => {
                let unknown = || Unreadable::unsupported(format!("fill value {fill}"));
                (value(framing, fill).ok_or_else(unknown)?, Fill::Zero)
            }
        };
        if value.len() > MOST_FILL_NBYTES {
            return Err(Unreadable::unsupported(format!("a fill value of {} bytes", value.len())));
        }
        Ok(Self { element, codec: Codec::Values { framing, fill: value }, fill })
    }

    /// The chain of the chunks, with this element's codec in place of the one that has no fill value.
    pub fn chain(&self, codecs: &[Codec]) -> Result<Vec<Codec>, Unreadable> {
        let is_values = |codec: &Codec| matches!(codec, Codec::Values { .. });
        let own = self.codec.name();
        let place = codecs.iter().position(|codec| is_values(codec) && codec.name() == own);
        let place = place.ok_or_else(|| Unreadable::unsupported(format!("values without codec {own}")))?;
        let (before, behind) = (codecs.iter().take(place), codecs.iter().skip(place + 1));
        if before.clone().any(|codec| !matches!(codec, Codec::Transpose { .. }))
            || behind.clone().any(is_values)
        {
            return Err(Unreadable::unsupported(format!("a codec before {own}")));
        }
        Ok(before.chain([&self.codec]).chain(behind).cloned().collect())
    }
}

/// A fill value, encoded as a chunk would store it.
fn value(framing: Framing, fill: &Value) -> Option<Vec<u8>> {
    match (framing, fill) {
        (Framing::Utf8, Value::String(text)) => Some(text.clone().into_bytes()),
        (Framing::Utf8, Value::Number(number)) => Some(number.to_string().into_bytes()), // as zarr-python reads them
        (Framing::Bytes, Value::String(text)) => decoded(text),
        (Framing::Bytes, Value::Array(bytes)) => {
            bytes.iter().map(|byte| u8::try_from(byte.as_u64()?).ok()).collect()
        }
        (Framing::Bytes | Framing::Sequences { .. }, Value::Number(number))
            if number.as_f64() == Some(0.0) =>
        {
            Some(Vec::new())
        }
        (Framing::Sequences { .. }, Value::String(text)) if text.is_empty() => Some(Vec::new()),
        (Framing::Json, fill) => Some(fill.to_string().into_bytes()),
        _ => None,
    }
}

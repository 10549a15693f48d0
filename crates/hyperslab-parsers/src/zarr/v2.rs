//! `.zarray`: Zarr storage specification 2.

use serde_json::Value;

use super::description::Description;
use super::keys::Keys;
use super::{codecs, document, element, fill, values};
use hyperslab_core::{Codec, Fill, Framing, Role, Unreadable};

/// The contents of a `.zarray` and its `.zattrs`.
pub(super) fn describe(document: &Value, attributes: Option<&Value>) -> Result<Description, Unreadable> {
    if document.get("zarr_format").and_then(Value::as_u64) != Some(2) {
        return Err(Unreadable::damaged(".zarray: zarr_format is not 2"));
    }
    let shape = document::lengths(document, "shape")?;
    let dtype = document.get("dtype").ok_or_else(|| Unreadable::damaged("dtype is missing"))?;
    let (element, fill, codecs) = if dtype.as_str() == Some(values::OBJECTS) {
        match values::of_filters(document) {
            Ok(values) => {
                let codecs = codecs_of(document, shape.len()).and_then(|codecs| values.chain(&codecs));
                (values.element, Ok(values.fill), codecs)
            }
            Err(reason) => (element::text(), Ok(Fill::Undefined), Err(reason)),
        }
    } else {
        let (element, trouble) = element::of_dtype(dtype)?;
        let fill = fill::of(&element, document.get("fill_value"));
        let codecs = trouble.map_or_else(|| codecs_of(document, shape.len()), Err);
        (element, fill, codecs.and_then(|codecs| values::none_in(&codecs).map(|()| codecs)))
    };
    let separator = document::string(document, "dimension_separator").unwrap_or(".");
    let names = attributes.and_then(|attributes| attributes.get("_ARRAY_DIMENSIONS")?.as_array());
    let names = names.and_then(|names| names.iter().map(|name| name.as_str().map(Into::into)).collect());
    Ok(Description {
        role: Role::FillIsMissing,
        chunk_shape: document::lengths(document, "chunks")?,
        element,
        codecs: fill.as_ref().map_err(Clone::clone).and(codecs),
        fill: fill.unwrap_or(Fill::Undefined),
        shards: None,
        keys: Keys { start: String::new(), separator: separator.into(), scalar: "0".into() },
        dimensions: names.filter(|names: &Vec<String>| names.len() == shape.len()),
        attributes: document::attributes(attributes),
        shape,
    })
}

/// Filters, first to last, work on the chunk in its own order of elements. The compressor comes last.
fn codecs_of(document: &Value, ndim: usize) -> Result<Vec<Codec>, Unreadable> {
    let mut chain = Vec::new();
    let filters = document.get("filters").and_then(Value::as_array).into_iter().flatten();
    let mut names = filters.clone().map(|filter| document::string(filter, "id"));
    match document::string(document, "order") {
        Some("F") if names.next() == Some(Some(Framing::Json.name())) => (), // lists are nested in C order
        Some("F") if ndim > 1 => chain.push(Codec::Transpose { order: (0..ndim).rev().collect() }),
        Some("C" | "F") | None => (),
        Some(other) => return Err(Unreadable::unsupported(format!("order {other:?}"))),
    }
    let compressor = document.get("compressor").filter(|compressor| !compressor.is_null());
    for configuration in filters.chain(compressor) {
        let name = document::string(configuration, "id")
            .ok_or_else(|| Unreadable::damaged("a codec without an id"))?;
        chain.extend(codecs::numcodec(name, configuration)?);
    }
    Ok(chain)
}

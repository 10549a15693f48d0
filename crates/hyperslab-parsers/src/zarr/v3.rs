//! `zarr.json` of an array: Zarr core specification 3.

use serde_json::Value;

use super::codecs::Chain;
use super::description::Description;
use super::keys::Keys;
use super::{codecs, document, element, fill, values};
use hyperslab_core::{ByteOrder, Fill, Role, Unreadable};

const KNOWN_KEYS: [&str; 13] = [
    "zarr_format",
    "node_type",
    "shape",
    "data_type",
    "chunk_grid",
    "chunk_key_encoding",
    "fill_value",
    "codecs",
    "attributes",
    "dimension_names",
    "storage_transformers",
    "consolidated_metadata",
    "extensions",
];

/// The contents of a `zarr.json`.
pub(super) fn describe(document: &Value) -> Result<Description, Unreadable> {
    if document.get("zarr_format").and_then(Value::as_u64) != Some(3) {
        return Err(Unreadable::damaged("zarr.json: zarr_format is not 3"));
    }
    let shape = document::lengths(document, "shape")?;
    let grid = chunk_shape(document);
    let data_type = document.get("data_type").ok_or_else(|| Unreadable::damaged("data_type is missing"))?;
    let chain = codecs::chain(document.get("codecs"), shape.len());
    let order = chain.as_ref().map_or(ByteOrder::Little, |chain| chain.order);
    let (element, fill, trouble, chain) = match values::of_data_type(document) {
        Some(Ok(values)) => {
            let made = |chain: Chain| Ok(Chain { codecs: values.chain(&chain.codecs)?, ..chain });
            let chain = chain.and_then(made);
            (values.element, Ok(values.fill), None, chain)
        }
        Some(Err(reason)) => (element::text(), Ok(Fill::Undefined), Some(reason), chain),
        None => {
            let (element, trouble) = element::of_data_type(data_type, order)?;
            let fill = fill::of(&element, document.get("fill_value"));
            (element, fill, trouble, chain.and_then(|chain| values::none_in(&chain.codecs).map(|()| chain)))
        }
    };
    let troubles =
        [trouble, fill.as_ref().err().cloned(), grid.as_ref().err().cloned(), misunderstood(document)];
    let chain = troubles.into_iter().flatten().next().map_or(chain, Err);
    let (codecs, shards) = match chain {
        Err(reason) => (Err(reason), None),
        Ok(chain) => (Ok(chain.codecs), chain.shards),
    };
    Ok(Description {
        role: Role::Plain,
        chunk_shape: grid.unwrap_or_else(|_| vec![1; shape.len()]),
        element,
        fill: fill.unwrap_or(Fill::Undefined),
        codecs,
        shards,
        keys: keys(document)?,
        dimensions: dimensions(document, shape.len()),
        attributes: document::attributes(document.get("attributes")),
        shape,
    })
}

fn chunk_shape(document: &Value) -> Result<Vec<u64>, Unreadable> {
    let (name, configuration) = document
        .get("chunk_grid")
        .and_then(document::extension)
        .ok_or_else(|| Unreadable::damaged("chunk_grid is missing"))?;
    if name != "regular" {
        return Err(Unreadable::unsupported(format!("chunk grid {name:?}")));
    }
    document::lengths(&Value::Object(configuration), "chunk_shape")
}

fn keys(document: &Value) -> Result<Keys, Unreadable> {
    let encoding = document.get("chunk_key_encoding").and_then(document::extension);
    let (name, configuration) =
        encoding.ok_or_else(|| Unreadable::damaged("chunk_key_encoding is missing"))?;
    let separator = configuration.get("separator").and_then(Value::as_str);
    match name {
        "default" => {
            let separator = separator.unwrap_or("/").to_owned();
            Ok(Keys { start: format!("c{separator}"), separator, scalar: "c".into() })
        }
        "v2" => {
            Ok(Keys { start: String::new(), separator: separator.unwrap_or(".").into(), scalar: "0".into() })
        }
        _ => Err(Unreadable::unsupported(format!("chunk key encoding {name:?}"))),
    }
}

/// Names, if every dimension has one; some may be null.
fn dimensions(document: &Value, ndim: usize) -> Option<Vec<String>> {
    let names = document.get("dimension_names")?.as_array()?;
    let names: Option<Vec<String>> = names.iter().map(|name| name.as_str().map(Into::into)).collect();
    names.filter(|names| names.len() == ndim)
}

/// A member that we do not know and must not ignore.
fn misunderstood(document: &Value) -> Option<Unreadable> {
    let transforms = document.get("storage_transformers").and_then(Value::as_array);
    if transforms.is_some_and(|transforms| !transforms.is_empty()) {
        return Some(Unreadable::unsupported("a storage transformer"));
    }
    let mut members = document.as_object()?.iter();
    let ignorable = |value: &Value| value.get("must_understand") == Some(&Value::Bool(false));
    let (name, _) =
        members.find(|(name, value)| !KNOWN_KEYS.contains(&name.as_str()) && !ignorable(value))?;
    Some(Unreadable::unsupported(format!("{name:?} of zarr.json, which must be understood,")))
}

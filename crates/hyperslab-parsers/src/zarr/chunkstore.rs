//! `.zchunkstore`: the location of an array's chunks in another file. It is beside the array's `.zarray` or in
//! `.zmetadata`.
//!
//! The format is that of zarr-python's issue 556 and its `FileChunkStore`: `{"PATH/0.1": {"offset": …, "size": …}, …,
//! "source": {"array_name": "/PATH", "uri": "…"}}`. Some files have chunk keys without the path.

use hyperslab_core::{ByteRange, Unreadable};
use serde_json::Value;

use super::document;
use super::files::{Files, local};
use super::hierarchy::{Hierarchy, Location};
use crate::error::Error;

const NAME: &str = ".zchunkstore";

/// The same hierarchy, with the keys from its `.zchunkstore`s.
pub(super) fn resolved(hierarchy: Hierarchy) -> Result<Hierarchy, Error> {
    let mut stores = consolidated(&hierarchy);
    let own = hierarchy.keys().filter_map(|key| Some((key, array_of(key)?)));
    for (key, array) in own {
        stores.push((array.to_owned(), document::read(&hierarchy.document(key)?)?));
    }
    if stores.is_empty() {
        return Ok(hierarchy);
    }
    let mut files = Files::of(hierarchy.files());
    let mut entries = Vec::new();
    for (array, store) in &stores {
        add(array, store, &mut files, &mut entries)?;
    }
    Ok(hierarchy.with(entries, files.names))
}

/// Whether there is any.
pub(super) fn is_in(hierarchy: &Hierarchy) -> bool {
    hierarchy.keys().any(|key| array_of(key).is_some()) || !consolidated(hierarchy).is_empty()
}

fn consolidated(hierarchy: &Hierarchy) -> Vec<(String, Value)> {
    let metadata = hierarchy.document(".zmetadata").and_then(|bytes| document::read(&bytes));
    let Ok(Value::Object(mut metadata)) = metadata else { return Vec::new() };
    let Some(Value::Object(members)) = metadata.remove("metadata") else { return Vec::new() };
    members.into_iter().filter_map(|(key, value)| Some((array_of(&key)?.to_owned(), value))).collect()
}

/// The array that a `.zchunkstore` key belongs to.
fn array_of(key: &str) -> Option<&str> {
    let array = key.strip_suffix(NAME)?;
    if array.is_empty() { Some(array) } else { array.strip_suffix('/') }
}

fn add(
    array: &str,
    store: &Value,
    files: &mut Files,
    entries: &mut Vec<(Box<str>, Location)>,
) -> Result<(), Error> {
    let wrong = |problem: &str| Error::invalid("a .zchunkstore", 0, format!("of array {array:?}: {problem}"));
    let members = store.as_object().ok_or_else(|| wrong("it is not an object"))?;
    let uri = store.get("source").and_then(|source| document::string(source, "uri"));
    let uri = uri.ok_or_else(|| {
        Error::unsupported(format!("the .zchunkstore of array {array:?}, which names no source,"))
    })?;
    let file = files.number(local(uri));
    let prefix = if array.is_empty() { String::new() } else { format!("{array}/") };
    for (key, value) in members.iter().filter(|(key, _)| *key != "source") {
        let number = |name| value.get(name).and_then(Value::as_u64);
        let numbers = number("offset").zip(number("size"));
        let (offset, length) =
            numbers.ok_or_else(|| wrong(&format!("chunk {key:?} has no offset or size")))?;
        let range = ByteRange::new(offset, length).map_err(|error| Unreadable::from(error).to_string());
        let range = range.map_err(|problem| wrong(&format!("chunk {key:?}: {problem}")))?;
        let key = if key.starts_with(&prefix) { key.clone() } else { format!("{prefix}{key}") };
        entries.push((key.into_boxed_str(), Location::Stored { file, range: Some(range) }));
    }
    Ok(())
}

//! A remote hierarchy. Its keys are asked for in a few rounds: consolidated metadata if there are any, otherwise level
//! by level if folders can be listed. Chunks are not listed.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;

use hyperslab_core::Tree;
use serde_json::Value;

use super::array_document::ArrayDocument;
use super::budget::Budget;
use super::hierarchy::{Hierarchy, Location};
use super::{chunkstore, document, nodes};
use crate::allowed::Allowed;
use crate::error::Error;
use crate::error::FetchError;

/// A store of keys that are asked for many at a time.
pub trait FarKeys {
    /// The contents of each key; `None` if it does not exist.
    fn get(&self, keys: &[String]) -> Result<Vec<Option<Vec<u8>>>, FetchError>;

    /// The names of the folders in each of several folders (the root is ""); `None` if the store cannot list.
    fn folders(&self, of: &[String]) -> Result<Option<Vec<Vec<String>>>, FetchError>;
}

/// A remote hierarchy.
pub struct FarHierarchy {
    /// Its groups and arrays; the arrays without chunks.
    pub tree: Tree,
    /// What to look for chunks with, by array number.
    pub documents: Vec<ArrayDocument>,
    /// Tells its metadata from later ones.
    pub digest: u64,
}

const MOST_DEPTH: usize = 64;
const MOST_NODES: usize = 1 << 20;
/// The most keys in one round.
const MOST_TOGETHER: usize = 4096;
const ROOT: [&str; 5] = ["zarr.json", ".zmetadata", ".zgroup", ".zarray", ".zattrs"];

/// The hierarchy of these keys.
pub fn parse_far(keys: &dyn FarKeys) -> Result<FarHierarchy, Error> {
    let mut budget = Budget::default();
    let mut found = got(keys, &ROOT.map(str::to_owned), &mut budget)?;
    let has = |found: &[(String, Vec<u8>)], name: &str| found.iter().any(|(key, _)| key == name);
    if !ROOT.iter().take(4).any(|name| has(&found, name)) {
        let reason = "there is no zarr.json, .zmetadata, .zgroup or .zarray";
        return Err(Error::UnknownFormat { reason: reason.to_owned() });
    }
    let zarr_format = if has(&found, ROOT[0]) { 3 } else { 2 };
    let is_whole = match found.first().filter(|_| zarr_format == 3) {
        Some((_, root)) => !is_open_group(&document::read(root)?),
        None => has(&found, ".zmetadata") || has(&found, ".zarray"),
    };
    if !is_whole {
        walk(keys, if zarr_format == 3 { &ROOT[..1] } else { &ROOT[2..] }, &mut found, &mut budget)?;
    }
    let mut hasher = DefaultHasher::new();
    found.hash(&mut hasher);
    let inline = |(key, text): (String, Vec<u8>)| (key.into_boxed_str(), Location::Inline(text.into()));
    let hierarchy = Hierarchy::new(
        found.into_iter().map(inline).collect(),
        Vec::new(),
        Path::new(""),
        &Allowed::only(&[]),
    );
    if chunkstore::is_in(&hierarchy) {
        return Err(Error::unsupported("a remote .zchunkstore"));
    }
    let mut documents = Vec::new();
    let tree = nodes::tree(hierarchy, |_, path, description| {
        let document = ArrayDocument::new(path, description);
        let array = document.empty();
        documents.push(document);
        array
    })?;
    Ok(FarHierarchy { tree, documents, digest: hasher.finish() })
}

/// The keys that exist, with their contents.
fn got(keys: &dyn FarKeys, names: &[String], budget: &mut Budget) -> Result<Vec<(String, Vec<u8>)>, Error> {
    let mut found = Vec::new();
    for together in names.chunks(MOST_TOGETHER) {
        for (key, text) in together.iter().zip(keys.get(together)?) {
            let Some(text) = text else { continue };
            budget.spend(&text)?;
            found.push((key.clone(), text));
        }
    }
    Ok(found)
}

/// Whether a `zarr.json` is of a group that does not list its members.
fn is_open_group(document: &Value) -> bool {
    let consolidated = document.get("consolidated_metadata").and_then(|it| it.get("metadata")?.as_object());
    document::string(document, "node_type") == Some("group") && consolidated.is_none()
}

/// Adds the documents of everything in the root, level by level.
fn walk(
    keys: &dyn FarKeys,
    names: &[&str],
    found: &mut Vec<(String, Vec<u8>)>,
    budget: &mut Budget,
) -> Result<(), Error> {
    let mut level = vec![String::new()];
    for _ in 0..MOST_DEPTH {
        let Some(folders) = keys.folders(&level)? else {
            return Err(Error::unsupported(
                "a group without consolidated metadata (zarr.consolidate_metadata writes them) where folders cannot \
                 be listed, so that nobody knows what is in it,",
            ));
        };
        let within = |(parent, names): (&String, Vec<String>)| {
            let parent = if parent.is_empty() { String::new() } else { format!("{parent}/") };
            names.into_iter().map(move |name| format!("{parent}{name}"))
        };
        let children: Vec<String> = level.iter().zip(folders).flat_map(within).collect();
        if children.is_empty() {
            return Ok(());
        }
        if found.len().saturating_add(children.len()) > MOST_NODES {
            return Err(Error::TooMany { what: "nodes of a Zarr hierarchy", limit: MOST_NODES as u64 });
        }
        let asked = children.iter().flat_map(|child| names.iter().map(move |name| format!("{child}/{name}")));
        let documents = got(keys, &asked.collect::<Vec<String>>(), budget)?;
        level = documents.iter().filter_map(|(key, text)| group_of(key, text)).collect();
        found.extend(documents);
    }
    Err(Error::TooMany { what: "groups within groups", limit: MOST_DEPTH as u64 })
}

/// The group of a document. Faults in the document are reported when it is opened.
fn group_of(key: &str, text: &[u8]) -> Option<String> {
    let (path, name) = key.rsplit_once('/')?;
    let is_group = match name {
        "zarr.json" => document::string(&document::read(text).ok()?, "node_type") == Some("group"),
        name => name == ".zgroup",
    };
    is_group.then(|| path.to_owned())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::cell::Cell;
    use std::collections::BTreeMap;

    use hyperslab_core::Link;

    use super::*;

    struct Held {
        keys: BTreeMap<&'static str, &'static str>,
        lists: bool,
        rounds: Cell<usize>,
    }

    impl Held {
        fn new(keys: &[(&'static str, &'static str)], lists: bool) -> Self {
            Self { keys: keys.iter().copied().collect(), lists, rounds: Cell::new(0) }
        }
    }

    impl FarKeys for Held {
        fn get(&self, keys: &[String]) -> Result<Vec<Option<Vec<u8>>>, FetchError> {
            self.rounds.set(self.rounds.get() + 1);
            Ok(keys.iter().map(|key| Some(self.keys.get(key.as_str())?.as_bytes().to_vec())).collect())
        }

        fn folders(&self, of: &[String]) -> Result<Option<Vec<Vec<String>>>, FetchError> {
            self.rounds.set(self.rounds.get() + 1);
            let within = |folder: &String| {
                let prefix = if folder.is_empty() { String::new() } else { format!("{folder}/") };
                let below =
                    self.keys.keys().filter_map(|key| key.strip_prefix(prefix.as_str())?.split_once('/'));
                let mut names: Vec<String> = below.map(|(name, _)| name.to_owned()).collect();
                names.dedup();
                names
            };
            Ok(self.lists.then(|| of.iter().map(within).collect()))
        }
    }

    const GROUP: &str = r#"{"zarr_format": 3, "node_type": "group"}"#;
    const ARRAY: &str = r#"{"zarr_format": 3, "node_type": "array", "shape": [5], "data_type": "uint8", "fill_value": 0,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2]}},
        "chunk_key_encoding": {"name": "default"}, "codecs": ["bytes"]}"#;

    #[test]
    fn groups_are_listed_level_by_level() {
        let keys =
            [("zarr.json", GROUP), ("a/zarr.json", ARRAY), ("g/zarr.json", GROUP), ("g/b/zarr.json", ARRAY)];
        let held = Held::new(&keys, true);
        let found = parse_far(&held).unwrap();
        assert_eq!((found.tree.arrays.len(), found.documents.len()), (2, 2));
        assert!(
            matches!(&found.tree.groups[0].links[..], [(a, Link::Array(0)), (g, Link::Group(_))] if a == "a" && g == "g")
        );
        assert_eq!(held.rounds.get(), 6); // the root; two levels of folders and documents; the last level is empty
        assert!(matches!(parse_far(&Held::new(&keys, false)), Err(Error::Unsupported { .. })));
    }

    #[test]
    fn consolidated_metadata_take_one_round() {
        let root = r#"{"zarr_format": 3, "node_type": "group", "consolidated_metadata": {"metadata": {}}}"#;
        let held = Held::new(&[("zarr.json", root)], false);
        assert_eq!(parse_far(&held).unwrap().tree.groups.len(), 1);
        let old = Held::new(&[(".zmetadata", r#"{"metadata": {".zgroup": {"zarr_format": 2}}}"#)], false);
        assert!(parse_far(&old).is_ok());
        assert_eq!((held.rounds.get(), old.rounds.get()), (1, 1));
        let references = r#"{"metadata": {".zgroup": {"zarr_format": 2}, "a/.zchunkstore": {}}}"#;
        assert!(parse_far(&Held::new(&[(".zmetadata", references)], false)).is_err());
        assert!(matches!(parse_far(&Held::new(&[], true)), Err(Error::UnknownFormat { .. })));
    }
}

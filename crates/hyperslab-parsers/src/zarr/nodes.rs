//! The groups and arrays of a hierarchy, and their tree.

use std::collections::{BTreeMap, HashMap};

use hyperslab_core::{Array, Group, Link, Tree, Unreadable};
use serde_json::Value;

use super::budget::Budget;
use super::description::Description;
use super::hierarchy::Hierarchy;
use super::{document, v2, v3};
use crate::error::Error;

const MAX_NODE_COUNT: usize = 1 << 24;

/// A node's documents, by file name.
pub(super) type Documents = HashMap<&'static str, Result<Value, Error>>;

const NAMES: [&str; 4] = ["zarr.json", ".zarray", ".zgroup", ".zattrs"];

/// The tree of all nodes below a root. `make` makes each array, in the order of array numbers.
pub(super) fn tree(
    hierarchy: Hierarchy,
    mut make: impl FnMut(&Hierarchy, &str, Description) -> Array,
) -> Result<Tree, Error> {
    let mut budget = Budget::default();
    let mut nodes = listed(&hierarchy, &mut budget)?;
    consolidated(&hierarchy, &mut nodes, &mut budget)?;
    nodes.retain(|_, documents| NAMES.iter().take(3).any(|name| documents.contains_key(name)));
    if nodes.is_empty() {
        let reason = "there is no zarr.json, .zgroup or .zarray";
        return Err(Error::UnknownFormat { reason: reason.into() });
    }
    let mut tree = Tree { groups: vec![Group::default()], ..Tree::default() };
    let mut groups = HashMap::from([(String::new(), 0)]);
    for (path, documents) in &nodes {
        add(&mut tree, &mut groups, path, documents, |description| make(&hierarchy, path, description));
    }
    (tree.other_files, tree.listed) = hierarchy.into_files();
    Ok(tree)
}

fn listed(hierarchy: &Hierarchy, budget: &mut Budget) -> Result<BTreeMap<String, Documents>, Error> {
    let mut nodes: BTreeMap<String, Documents> = BTreeMap::new();
    for key in hierarchy.keys() {
        let (path, name) = key.rsplit_once('/').unwrap_or(("", key));
        let Some(name) = NAMES.into_iter().find(|known| *known == name) else { continue };
        let bytes = hierarchy.document(key);
        budget.spend(bytes.as_deref().unwrap_or_default())?;
        let value = bytes.and_then(|bytes| document::read(&bytes));
        nodes.entry(path.to_owned()).or_default().insert(name, value);
        if nodes.len() > MAX_NODE_COUNT {
            return Err(Error::TooMany { what: "nodes of a Zarr hierarchy", limit: MAX_NODE_COUNT as u64 });
        }
    }
    Ok(nodes)
}

/// `.zmetadata` (version 2) and `consolidated_metadata` of the root's document (version 3).
fn consolidated(
    hierarchy: &Hierarchy,
    nodes: &mut BTreeMap<String, Documents>,
    budget: &mut Budget,
) -> Result<(), Error> {
    let mut more: Vec<(String, &'static str, Value)> = Vec::new();
    let old = hierarchy.document(".zmetadata").unwrap_or_default();
    budget.spend(&old)?;
    let old = document::read(&old).ok();
    for (key, value) in old.iter().filter_map(|it| it.get("metadata")?.as_object()).flatten() {
        let (path, name) = key.rsplit_once('/').unwrap_or(("", key));
        let name = NAMES.into_iter().find(|known| *known == name);
        more.extend(name.map(|name| (path.to_owned(), name, value.clone())));
    }
    let new = nodes.get("").and_then(|root| root.get("zarr.json")?.as_ref().ok());
    let new = new.and_then(|root| root.get("consolidated_metadata")?.get("metadata")?.as_object());
    for (path, value) in new.into_iter().flatten() {
        more.push((path.trim_matches('/').to_owned(), "zarr.json", value.clone()));
    }
    for (path, name, value) in more {
        nodes.entry(path).or_default().entry(name).or_insert(Ok(value));
    }
    Ok(())
}

fn add(
    tree: &mut Tree,
    groups: &mut HashMap<String, usize>,
    path: &str,
    documents: &Documents,
    make: impl FnOnce(Description) -> Array,
) {
    match node(documents) {
        Ok(Some(description)) => {
            let number = tree.arrays.len();
            tree.arrays.push(make(description));
            link(tree, groups, path, Link::Array(number));
        }
        Ok(None) => {
            let number = group(tree, groups, path);
            if let Some(group) = tree.groups.get_mut(number) {
                group.attributes = group_attributes(documents);
            }
        }
        Err(reason) => link(tree, groups, path, Link::Unreadable(reason)),
    }
}

/// An array, or `None` for a group.
pub(super) fn node(documents: &Documents) -> Result<Option<Description>, Unreadable> {
    let get = |name| match documents.get(name) {
        None => Ok(None),
        Some(Ok(value)) => Ok(Some(value)),
        Some(Err(error)) => Err(match error.clone().into() {
            Unreadable::Damaged { problem } => Unreadable::damaged(format!("{name}: {problem}")),
            other => other,
        }),
    };
    if let Some(document) = get("zarr.json")? {
        return match document::string(document, "node_type") {
            Some("array") => v3::describe(document).map(Some),
            Some("group") => Ok(None),
            other => Err(Unreadable::unsupported(format!("zarr.json: node_type {other:?}"))),
        };
    }
    let Some(document) = get(".zarray")? else { return Ok(None) };
    v2::describe(document, get(".zattrs")?).map(Some)
}

fn group_attributes(documents: &Documents) -> Vec<hyperslab_core::Attribute> {
    let of = |name| documents.get(name).and_then(|document| document.as_ref().ok());
    let attributes = match of("zarr.json") {
        Some(document) => document.get("attributes"),
        None => of(".zattrs"),
    };
    document::attributes(attributes)
}

/// The number of a group. Creates the group and its parents if needed.
fn group(tree: &mut Tree, groups: &mut HashMap<String, usize>, path: &str) -> usize {
    let mut number = 0;
    for (stop, _) in path.match_indices('/').chain([(path.len(), "")]) {
        let part = path.get(..stop).unwrap_or_default();
        if part.is_empty() {
            continue;
        }
        number = groups.get(part).copied().unwrap_or_else(|| {
            let made = tree.groups.len();
            tree.groups.push(Group::default());
            let name = part.rsplit('/').next().unwrap_or(part);
            if let Some(parent) = tree.groups.get_mut(number) {
                parent.links.push((name.to_owned(), Link::Group(made)));
            }
            groups.insert(part.to_owned(), made);
            made
        });
    }
    number
}

/// An array at the root itself gets the empty name.
fn link(tree: &mut Tree, groups: &mut HashMap<String, usize>, path: &str, link: Link) {
    let (parent, name) = path.rsplit_once('/').unwrap_or(("", path));
    let parent = group(tree, groups, parent);
    if let Some(parent) = tree.groups.get_mut(parent) {
        parent.links.push((name.to_owned(), link));
    }
}

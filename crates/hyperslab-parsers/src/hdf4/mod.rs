//! HDF4: scientific data sets, with their chunks, attributes and dimensions.
//!
//! We follow the "HDF Specification and Developer's Guide" 4.2. A file is a list of data descriptors: tag, reference
//! number, offset, length. Scientific data sets are in Vgroups of class `Var0.0` under one of class `CDF0.0` (written
//! by the SD interface), or in numeric data groups alone (written by the older DFSD interface). All of them appear in
//! the root group; if two share a name, the later one gets a number. Vdata and raster images are listed by name, but
//! not read.

mod annotations;
mod chunked;
mod descriptors;
mod file;
mod groups;
mod layout;
mod number_type;
mod pieces;
mod scientific;
mod special;
#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic, clippy::cast_possible_truncation)]
mod tests;
mod text;
mod variables;
mod vdata;

use std::collections::{HashMap, HashSet};

use hyperslab_core::{Attribute, Group, Link, Tree, Unreadable};

use crate::error::Error;
use crate::pages::Pages;
use crate::rounds::gather;
use crate::rounds::{settle, settle_each};
use descriptors::tag;
use file::{File, Found, Named, Source};

/// What a file holds, before its arrays are read.
struct Contents {
    sources: Vec<Source>,
    attributes: Vec<Attribute>,
    /// What we only list by name.
    others: Vec<(String, Unreadable)>,
}

/// The tree of an HDF4 file.
pub fn parse(pages: &mut Pages<'_>) -> Result<Tree, Error> {
    let descriptors = descriptors::read(pages)?;
    descriptors.want_metadata(pages);
    let found = Found::default();
    let contents =
        settle(pages, |pages| contents(&File { pages, descriptors: &descriptors, found: &found }))?;
    let arrays = settle_each(pages, &contents.sources, |pages, source| {
        let file = File { pages, descriptors: &descriptors, found: &found };
        match source {
            Source::Variable(reference) => variables::named(&file, *reference).map(|array| vec![array]),
            Source::Group(tag, reference) => scientific::arrays(&file, *tag, *reference),
        }
    })?;
    let mut tree = tree(contents, arrays);
    tree.other_files = found.other_files.into_inner();
    Ok(tree)
}

fn contents(file: &File<'_>) -> Result<Contents, Error> {
    let vgroups = gather(file.descriptors.with_tag(tag::VGROUP), |descriptor| {
        tolerant(groups::read(file, descriptor.reference)).map(|vgroup| (descriptor.reference, vgroup))
    })?;
    let root = vgroups.iter().filter(|(_, vgroup)| vgroup.as_ref().is_some_and(|it| it.class == "CDF0.0"));
    let root = root.min_by_key(|(reference, _)| *reference).and_then(|(_, vgroup)| vgroup.as_ref());
    let others = others(file)?;
    let Some(root) = root else {
        return Ok(Contents { sources: scientific::sources(file)?, attributes: Vec::new(), others });
    };
    let variables =
        vgroups.iter().filter(|(_, vgroup)| vgroup.as_ref().is_some_and(|it| it.class == "Var0.0"));
    let variables: HashSet<u16> = variables.map(|&(reference, _)| reference).collect();
    let members = root.members.iter().filter(|(tag, it)| *tag == tag::VGROUP && variables.contains(it));
    Ok(Contents {
        sources: members.map(|&(_, reference)| Source::Variable(reference)).collect(),
        attributes: variables::attributes(file, root)?,
        others,
    })
}

/// A damaged object counts as missing. Bytes that are not held yet are an error.
fn tolerant<T>(result: Result<T, Error>) -> Result<Option<T>, Error> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.is_not_held() => Err(error),
        Err(_) => Ok(None),
    }
}

/// The user's own tables, and raster images.
fn others(file: &File<'_>) -> Result<Vec<(String, Unreadable)>, Error> {
    let tables = gather(file.descriptors.with_tag(tag::VDATA), |descriptor| {
        let table = tolerant(vdata::read(file, descriptor.reference))?;
        let table = table.filter(|table| !INTERNAL.iter().any(|class| table.class.starts_with(class)));
        Ok(table.map(|table| (format!("vdata {} {}", descriptor.reference, table.name), "a Vdata table")))
    })?;
    let images = file.descriptors.with_tag(tag::RASTER_GROUP);
    let images =
        images.map(|descriptor| (format!("raster image {}", descriptor.reference), "a raster image"));
    let all = tables.into_iter().flatten().chain(images);
    Ok(all.map(|(name, kind)| (name.replace('/', "_"), Unreadable::unsupported(kind))).collect())
}

/// Classes of Vdata that belong to other objects.
const INTERNAL: [&str; 9] =
    ["Attr0.", "DimVal0.", "Dim0.", "UDim0.", "SDSVar", "CoordVar", "_HDF_CHK_TBL_", "RIATTR", "RI0.0"];

fn tree(contents: Contents, arrays: Vec<Result<Vec<Named>, Error>>) -> Tree {
    let mut tree = Tree::default();
    let mut root = Group { attributes: contents.attributes, links: Vec::new() };
    let mut names = HashMap::new();
    let mut unnamed_count = 0;
    for (source, result) in contents.sources.iter().zip(arrays) {
        let mut arrays = result.unwrap_or_else(|error| vec![(name(source), Err(error.into()))]);
        if matches!(source, Source::Group(..)) {
            scientific::number(&mut arrays, &mut unnamed_count);
        }
        for (name, array) in arrays {
            let link = match array {
                Err(reason) => Link::Unreadable(reason),
                Ok(array) => {
                    tree.arrays.push(array);
                    Link::Array(tree.arrays.len() - 1)
                }
            };
            root.links.push((free(&mut names, &name), link));
        }
    }
    for (name, reason) in contents.others {
        root.links.push((free(&mut names, &name), Link::Unreadable(reason)));
    }
    tree.groups.push(root);
    tree
}

fn name(source: &Source) -> String {
    match source {
        Source::Variable(reference) => format!("variable {reference}"),
        Source::Group(_, reference) => format!("Data-Set-{reference}"),
    }
}

/// In HDF4, arrays may share a name, and names may contain slashes. The later array gets a number, and a slash becomes
/// an underscore.
fn free(names: &mut HashMap<String, u64>, name: &str) -> String {
    let name = name.replace('/', "_");
    let mut free = name.clone();
    while names.contains_key(&free) {
        let count = names.entry(name.clone()).or_insert(1);
        *count += 1; // so the next array of this name does not try the same numbers again
        free = format!("{name}_{count}");
    }
    names.insert(free.clone(), 1);
    free
}

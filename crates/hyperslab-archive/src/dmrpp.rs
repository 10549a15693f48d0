//! Finds the data files that a DMR++ document names.

use std::path::{Path, PathBuf};

use hyperslab_core::Tree;
use hyperslab_parsers::{Allowed, Error, Source, dmrpp};

use crate::url::{folder_of, is_url};

/// The tree of a document.
pub(crate) fn parse(source: &dyn Source, document: &Path, allowed: &Allowed) -> Result<Tree, Error> {
    let mut tree = dmrpp::parse(source)?;
    locate_files(&mut tree, document, allowed);
    Ok(tree)
}

/// Fills in the paths of the data files. The document has the names that its writer or server used. In the document's
/// folder we look for the whole name, then for its last part, then for the document's own name without its ending.
fn locate_files(tree: &mut Tree, document: &Path, allowed: &Allowed) {
    let own = document.file_name().unwrap_or_default().to_string_lossy();
    let beside = dmrpp::beside(&own);
    let folder = if is_url(&document.to_string_lossy()) { None } else { Some(folder_of(document)) };
    for name in &mut tree.other_files {
        if let Some(found) = located(name, beside, folder.as_deref(), allowed) {
            *name = found;
        }
    }
}

/// Where a file is, if it is not where its name says. For a remote document, only names can be compared.
fn located(name: &str, beside: &str, folder: Option<&Path>, allowed: &Allowed) -> Option<String> {
    let last = name.rsplit('/').next().unwrap_or_default();
    let is_named = name.is_empty() || is_url(name);
    match folder {
        _ if name.is_empty() => Some(beside.to_owned()),
        None if last == beside && !is_named => Some(beside.to_owned()),
        None => None,
        Some(folder) => {
            let is_there = |name: &str| {
                let path = folder.join(name);
                allowed.permits(&path) && path.is_file()
            };
            let candidates = [name, last, beside];
            let found = candidates.into_iter().find(|name| !name.is_empty() && is_there(name))?;
            Some(PathBuf::from(found).to_string_lossy().into_owned())
        }
    }
}

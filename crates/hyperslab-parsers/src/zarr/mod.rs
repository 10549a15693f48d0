//! Zarr versions 2 and 3: in a directory, where every chunk or shard is a file, or in references, which locate the
//! chunks in other files.
//!
//! We follow the Zarr specifications 2 and 3.1. A directory is listed once, and what the listing lacks does not exist.
//! Consolidated metadata fill in for nodes without a document of their own. A damaged node becomes an unsupported link.
//! If an array's codecs do not allow reading by chunks, its segments are an error that says so.

mod array_document;
pub(crate) mod base64;
mod budget;
mod chunk_bytes;
mod chunks;
mod chunkstore;
mod codecs;
mod description;
mod document;
mod element;
mod far;
pub(crate) mod files;
mod fill;
mod generated;
mod hierarchy;
mod kerchunk;
mod keys;
mod listing;
mod nodes;
mod parts;
#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic)]
mod reference_tests;
mod references;
mod shards;
mod tables;
mod templates;
#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic, clippy::cast_possible_truncation)]
mod tests;
mod v2;
mod v3;
mod values;

use std::path::Path;

use hyperslab_core::{Array, ByteRange, Tree};

use crate::allowed::Allowed;
use crate::error::{Error, FetchError};
use crate::pages::Source;
pub use array_document::ArrayDocument;
use description::{Description, array};
pub use far::{FarHierarchy, FarKeys, parse_far};
pub use files::place_of;
use hierarchy::{Hierarchy, Location};
pub use parts::Parts;
pub use tables::Table;

/// A reference file is read as a whole. No sensible one is longer.
const MAX_REFERENCES_NBYTES: u64 = 2 << 30;

/// The tree of a Zarr directory. Links in it must lead to allowed files.
pub fn parse_directory(root: &Path, allowed: &Allowed) -> Result<Tree, Error> {
    nodes::tree(chunkstore::resolved(listing::hierarchy(root, allowed)?)?, with_chunks)
}

/// The tree of a JSON file of references: Kerchunk's, or consolidated metadata with `.zchunkstore`s. File names are
/// relative to `folder`, which may be a URL.
pub fn parse_references(source: &dyn Source, folder: &Path, allowed: &Allowed) -> Result<Tree, Error> {
    let length = source.length();
    if length > MAX_REFERENCES_NBYTES {
        return Err(Error::TooMany { what: "bytes of a reference file", limit: MAX_REFERENCES_NBYTES });
    }
    let bytes = source.read_ranges(&[ByteRange { offset: 0, length }])?.pop();
    let bytes = bytes.ok_or_else(|| FetchError("no bytes of a reference file came".to_owned()))?;
    nodes::tree(references::read(&bytes, folder, allowed)?, with_chunks)
}

/// The tree of metadata documents, by key, and tables of chunks, by array path.
pub fn parse_tables(
    documents: impl IntoIterator<Item = (String, Vec<u8>)>,
    tables: impl IntoIterator<Item = (String, Table)>,
    files: &[String],
    folder: &Path,
    allowed: &Allowed,
) -> Result<Tree, Error> {
    let inline = |(key, bytes): (String, Vec<u8>)| (key.into_boxed_str(), Location::Inline(bytes.into()));
    let entries = documents.into_iter().map(inline).collect();
    let files = files.iter().map(|name| files::local(name).to_owned()).collect();
    let hierarchy = Hierarchy::new(entries, files, folder, allowed);
    nodes::tree(hierarchy.with_tables(tables.into_iter().collect()), with_chunks)
}

/// An array with its chunks in the hierarchy.
#[allow(clippy::needless_pass_by_value)] // `nodes::tree` passes it by value
fn with_chunks(hierarchy: &Hierarchy, path: &str, description: Description) -> Array {
    let segments = chunks::segments(hierarchy, path, &description);
    array(&description, &description.shape, segments)
}

//! Zarr version 2 and 3 in a directory: every chunk, or every shard, is a file.
//!
//! After the Zarr specifications 2 and 3.1. The directory is listed once; what the listing does not hold is
//! not there. Consolidated metadata serve for the nodes whose own documents are missing. A node that is
//! damaged becomes an unsupported link; an array whose codecs cannot be addressed by chunks says so in its
//! segments.

mod chunks;
mod codecs;
mod document;
mod element;
mod fill;
mod listing;
mod nodes;
mod shards;
#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic, clippy::cast_possible_truncation)]
mod tests;
mod v2;
mod v3;

use std::path::Path;

use hyperslab_core::{Array, Attribute, Codec, Element, Fill, Tree, Unreadable};

use crate::error::Error;
use listing::Listing;

/// What an array's metadata say, in whichever version.
struct Description {
    shape: Vec<u64>,
    /// Shape of what one file holds.
    chunk_shape: Vec<u64>,
    element: Element,
    fill: Fill,
    /// The chain of a chunk, or of a subchunk where there are shards; or why there is none.
    codecs: Result<Vec<Codec>, Unreadable>,
    shards: Option<shards::Shards>,
    keys: chunks::Keys,
    dimensions: Option<Vec<String>>,
    attributes: Vec<Attribute>,
}

/// The tree of a Zarr directory.
pub fn parse_directory(root: &Path) -> Result<Tree, Error> {
    let listing = Listing::of(root)?;
    nodes::tree(&listing)
}

fn array(listing: &Listing, path: &str, description: Description, files: &mut Vec<String>) -> Array {
    let segments = match &description.codecs {
        Err(reason) => Err(reason.clone()),
        Ok(codecs) => chunks::segments(listing, path, &description, codecs, files),
    };
    Array {
        max_shape: vec![None; description.shape.len()],
        shape: Some(description.shape),
        element: description.element,
        fill: description.fill,
        is_chunked: true,
        virtual_mappings: Vec::new(),
        segments,
        dimensions: description.dimensions,
        attributes: description.attributes,
    }
}

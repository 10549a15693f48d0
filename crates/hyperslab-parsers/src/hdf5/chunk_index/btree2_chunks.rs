//! Chunks in a B-tree of version 2, record types 10 and 11 (HDF5 File Format Specification 3.0, III.A.2).

use std::sync::Arc;

use hyperslab_core::StoredChunk;

use super::element::ElementFormat;
use super::index::{ChunkIndex, is_before, push};
use crate::cursor::Cursor;
use crate::error::Error;
use crate::hdf5::btree2::{Header, Node};
use crate::pages::Pages;

const RECORD: &str = "a chunk's record in a B-tree (version 2)";
/// Record type of chunks without filters.
const PLAIN: u8 = 10;
/// Record type of chunks with filters.
const FILTERED: u8 = 11;

/// Reads the tree's header.
pub(super) fn start(
    index: &ChunkIndex,
    address: u64,
    pages: &Pages<'_>,
) -> Result<Vec<(Arc<Header>, Node)>, Error> {
    let header = Header::read(address, index.sizes, pages)?;
    if format(index, &header).is_none() {
        let (kind, nbytes) = (header.record_type, header.record_nbytes);
        let problem = format!("records of type {kind} and {nbytes} bytes cannot be chunks of this array");
        return Err(Error::invalid(RECORD, address, problem));
    }
    let root = header.root();
    let header = Arc::new(header);
    Ok(root.into_iter().map(|root| (Arc::clone(&header), root)).collect())
}

/// Reads a node: its chunks, and the nodes below it.
pub(super) fn step(
    index: &ChunkIndex,
    header: &Header,
    node: Node,
    pages: &Pages<'_>,
    found: &mut Vec<StoredChunk>,
) -> Result<Vec<Node>, Error> {
    let Some(format) = format(index, header) else { return Ok(Vec::new()) };
    let mut previous = Vec::new();
    let mut each = |record: &[u8]| push_record(index, format, record, &mut previous, found);
    header.read_node(node, pages, &index.visited, &mut each)
}

/// The part of a record before the chunk's position in the grid, which takes eight bytes for each axis.
fn format(index: &ChunkIndex, header: &Header) -> Option<ElementFormat> {
    let filtered = match header.record_type {
        PLAIN => false,
        FILTERED => true,
        _ => return None,
    };
    let element = header.record_nbytes.checked_sub(8 * index.numbering.ndim())?;
    ElementFormat::new(index.sizes, index.chunk_nbytes, filtered, element)
}

fn push_record(
    index: &ChunkIndex,
    format: ElementFormat,
    record: &[u8],
    previous: &mut Vec<u8>,
    found: &mut Vec<StoredChunk>,
) -> Result<(), Error> {
    let mut cursor = Cursor::new(RECORD, 0, record);
    let stored = format.read(&mut cursor)?;
    let position = cursor.rest();
    if !is_before(previous, position) {
        return Err(Error::invalid(RECORD, 0, "chunks out of order")); // libraries look for them by it
    }
    previous.clear();
    previous.extend_from_slice(position);
    let axes = position.chunks_exact(8).map(|bytes| {
        let eight: Option<&[u8; 8]> = bytes.first_chunk();
        eight.map_or(u64::MAX, |&eight| u64::from_le_bytes(eight))
    });
    if let (Some(linear), Some(stored)) = (index.numbering.of_chunk(axes), stored) {
        push(linear, stored, found);
    }
    Ok(())
}

#[cfg(test)]
#[path = "btree2_chunks_tests.rs"]
mod tests;

//! The B-tree of version 1 over chunks, node type 1 (HDF5 File Format Specification 3.0, III.A.1).

use hyperslab_core::{ByteRange, StoredChunk};

use super::index::{ChunkIndex, is_before, push};
use crate::cursor::Cursor;
use crate::error::Error;
use crate::hdf5::sizes::all_ones;
use crate::pages::Pages;

const NODE: &str = "a B-tree (version 1) node of chunks";
/// How many entries a full node has, unless the superblock says otherwise. We use it to guess what to fetch.
const USUAL_ENTRIES: u64 = 64;
/// Chunk length and filter mask at the start of a key.
const KEY_START: usize = 8;

/// A node. Except for the root, `level` is known and must match.
#[derive(Clone, Copy, Debug)]
pub(super) struct Node {
    address: u64,
    level: Option<u8>,
}

impl Node {
    /// The root of a tree.
    pub fn root(address: u64) -> Self {
        Self { address, level: None }
    }
}

/// Notes that a node will be needed.
pub(super) fn want(index: &ChunkIndex, address: u64, pages: &Pages<'_>) {
    let length = header_nbytes(index) + USUAL_ENTRIES * entry_nbytes(index) as u64;
    pages.want(ByteRange { offset: address, length });
}

/// Reads a node: chunks from a leaf, child nodes from other nodes.
pub(super) fn step(
    index: &ChunkIndex,
    node: Node,
    pages: &Pages<'_>,
    found: &mut Vec<StoredChunk>,
) -> Result<Vec<Node>, Error> {
    let header = pages.bytes(NODE, node.address, header_nbytes(index))?;
    let (level, entry_count) = read_header(node, &header)?;
    let nbytes = u64::from(entry_count) * entry_nbytes(index) as u64;
    let start = node.address.saturating_add(header_nbytes(index));
    let entries = pages.bytes(NODE, start, nbytes)?;
    index.visited.enter(NODE, node.address, header_nbytes(index) + nbytes, pages.file_length())?;
    if level > 0 {
        return children(index, level - 1, Cursor::new(NODE, start, &entries), pages);
    }
    found.reserve(usize::from(entry_count));
    match index.sizes.offset {
        8 => chunks(index, start, &entries, found, |bytes| word(bytes, 0)),
        width => chunks(index, start, &entries, found, |bytes| narrow(bytes, width)),
    }?;
    Ok(Vec::new())
}

/// Signature, node type, level, count, and two siblings, which we do not need.
fn header_nbytes(index: &ChunkIndex) -> u64 {
    8 + 2 * index.sizes.offset as u64
}

/// A key (length, mask, the chunk's offset on each axis and within the element) and the address of its child.
fn entry_nbytes(index: &ChunkIndex) -> usize {
    KEY_START + 8 * (index.numbering.ndim() + 1) + index.sizes.offset
}

fn read_header(node: Node, bytes: &[u8]) -> Result<(u8, u16), Error> {
    let mut cursor = Cursor::new(NODE, node.address, bytes);
    cursor.signature(b"TREE")?;
    let node_type = cursor.u8()?;
    if node_type != 1 {
        return Err(cursor.invalid(format!("node type {node_type}, but chunk nodes have type 1")));
    }
    let level = cursor.u8()?;
    if let Some(expected) = node.level.filter(|&expected| expected != level) {
        return Err(cursor.invalid(format!("a node of level {level} where level {expected} must be")));
    }
    Ok((level, cursor.u16()?))
}

fn children(
    index: &ChunkIndex,
    level: u8,
    mut cursor: Cursor<'_>,
    pages: &Pages<'_>,
) -> Result<Vec<Node>, Error> {
    let key_nbytes = entry_nbytes(index) - index.sizes.offset;
    let mut nodes = Vec::with_capacity(cursor.remaining() / entry_nbytes(index));
    while cursor.remaining() > 0 {
        let key = cursor.take(key_nbytes)?;
        let address = index.sizes.defined_address(&mut cursor)?;
        if may_hold(index, key, cursor.rest().get(..key_nbytes)) {
            want(index, address, pages);
            nodes.push(Node { address, level: Some(level) });
        }
    }
    Ok(nodes)
}

/// Whether the chunks we look for may be below a child: none may be before its key, or at or after the next child's
/// key.
fn may_hold(index: &ChunkIndex, key: &[u8], next: Option<&[u8]>) -> bool {
    let Some(sought) = &index.sought else { return true };
    let offsets = |key: &[u8]| -> Vec<u64> {
        let key = key.get(KEY_START..).unwrap_or_default();
        key.chunks_exact(8).take(index.numbering.ndim()).map(|bytes| word(bytes, 0)).collect()
    };
    let (first, behind) = (offsets(key), next.map(offsets));
    sought.iter().any(|start| *start >= first && behind.as_ref().is_none_or(|behind| start < behind))
}

/// Every chunk of a leaf. This is the hot loop for old files: it allocates nothing and avoids every unnecessary step.
#[inline]
fn chunks(
    index: &ChunkIndex,
    start: u64,
    entries: &[u8],
    found: &mut Vec<StoredChunk>,
    address_of: impl Fn(&[u8]) -> u64,
) -> Result<(), Error> {
    let offsets_stop = KEY_START + 8 * index.numbering.ndim();
    let mut previous: &[u8] = &[];
    for (number, entry) in entries.chunks_exact(entry_nbytes(index)).enumerate() {
        let (key, rest) = entry.split_at_checked(offsets_stop).unwrap_or_default();
        let (sizes, offsets) = key.split_at_checked(KEY_START).unwrap_or_default();
        let (within_element, address) = rest.split_at_checked(8).unwrap_or_default();
        let invalid = |problem: String| {
            let offset = start.saturating_add((number * entry.len()) as u64);
            Error::invalid("a key of a B-tree (version 1) of chunks", offset, problem)
        };
        if word(within_element, 0) != 0 {
            return Err(invalid("a chunk that starts within an element".into()));
        }
        let axes = offsets.chunks_exact(8).map(|bytes| word(bytes, 0));
        let linear = index.numbering.of_offsets(axes);
        let linear =
            linear.map_err(|offset| invalid(format!("no chunk starts at element {offset} of an axis")))?;
        if !is_before(previous, offsets) {
            return Err(invalid("chunks out of order".into())); // libraries look for them by it
        }
        previous = offsets;
        let Some(linear) = linear else { continue };
        let (length, filter_mask) = (u64::from(half(sizes, 0)), half(sizes, 4));
        let address = address_of(address);
        if address == all_ones(index.sizes.offset) {
            continue;
        }
        let address =
            address.checked_add(index.sizes.base).ok_or_else(|| invalid("a chunk beyond 2^64".into()))?;
        push(linear, (ByteRange { offset: address, length }, filter_mask), found);
    }
    Ok(())
}

/// Eight bytes from `start` on; 0 if there are none, which the callers' lengths rule out.
#[inline]
fn word(bytes: &[u8], start: usize) -> u64 {
    let eight = bytes.get(start..).and_then(<[u8]>::first_chunk::<8>);
    eight.map_or(0, |&eight| u64::from_le_bytes(eight))
}

#[inline]
fn half(bytes: &[u8], start: usize) -> u32 {
    let four = bytes.get(start..).and_then(<[u8]>::first_chunk::<4>);
    four.map_or(0, |&four| u32::from_le_bytes(four))
}

fn narrow(bytes: &[u8], width: usize) -> u64 {
    bytes.iter().take(width.min(8)).rev().fold(0, |value, &byte| value << 8 | u64::from(byte))
}

#[cfg(test)]
#[path = "btree1_tests.rs"]
mod tests;

//! The B-tree of version 1 over chunks, node type 1 (HDF5 File Format Specification 3.0, III.A.1).

use std::sync::Arc;

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
const KEY: &str = "a key of a B-tree (version 1) of chunks";
const OUT_OF_ORDER: &str = "chunks out of order"; // libraries look for them by it

/// A node. Except for the root, `level` is known and must match.
#[derive(Clone, Debug)]
pub(super) struct Node {
    address: u64,
    level: Option<u8>,
    /// Where its chunks start, by the keys of the nodes above.
    within: Within,
}

impl Node {
    /// The root of a tree.
    pub fn root(address: u64) -> Self {
        Self { address, level: None, within: Within::default() }
    }
}

/// The positions between which the chunks below a node start: libraries look for a chunk only where its position lies
/// between two keys, in every node on the way. A position has one word for each axis and one for the place within the
/// element.
#[derive(Clone, Debug, Default)]
struct Within {
    first: Arc<[u8]>,
    /// Behind all chunks; `None` for no end.
    behind: Option<Arc<[u8]>>,
}

impl Within {
    /// What is left of it between two keys.
    fn narrowed(&self, first: &Arc<[u8]>, behind: &Arc<[u8]>) -> Self {
        let (above, outer) = (&self.first, self.behind.as_ref());
        let first = if is_before(first, above) { above } else { first };
        let behind = outer.filter(|outer| is_before(outer, behind)).unwrap_or(behind);
        Self { first: Arc::clone(first), behind: Some(Arc::clone(behind)) }
    }

    /// Whether it holds what starts at a position.
    fn holds(&self, position: &[u8]) -> bool {
        let is_early = self.behind.as_ref().is_none_or(|behind| is_before(position, behind));
        is_early && !is_before(position, &self.first)
    }
}

/// Notes that a node will be needed.
pub(super) fn want(index: &ChunkIndex, address: u64, pages: &Pages<'_>) {
    let length = header_nbytes(index) + entries_nbytes(index, USUAL_ENTRIES);
    pages.want(ByteRange { offset: address, length });
}

/// Notes how long a tree is if its nodes lie together, full as libhdf5 leaves them if chunks come in order.
pub(super) fn expect(index: &ChunkIndex, address: u64, pages: &Pages<'_>) {
    let node_nbytes = header_nbytes(index) + entries_nbytes(index, USUAL_ENTRIES);
    let leaf_count = index.numbering.chunk_count().div_ceil(USUAL_ENTRIES - USUAL_ENTRIES / 9);
    let node_count = leaf_count.saturating_add(leaf_count / 50 + 3); // those above them
    let length = node_count.saturating_mul(node_nbytes);
    pages.expect(ByteRange { offset: address, length });
}

/// Reads a node: chunks from a leaf, child nodes from other nodes.
pub(super) fn step(
    index: &ChunkIndex,
    node: &Node,
    pages: &Pages<'_>,
    found: &mut Vec<StoredChunk>,
) -> Result<Vec<Node>, Error> {
    let header = pages.bytes(NODE, node.address, header_nbytes(index))?;
    let (level, entry_count) = read_header(node, &header)?;
    let nbytes = entries_nbytes(index, u64::from(entry_count));
    let start = node.address.saturating_add(header_nbytes(index));
    let entries = pages.bytes(NODE, start, nbytes)?;
    index.visited.enter(NODE, node.address, header_nbytes(index) + nbytes, pages.file_length())?;
    if level > 0 {
        return children(index, level - 1, &node.within, Cursor::new(NODE, start, &entries), pages);
    }
    found.reserve(usize::from(entry_count));
    match index.sizes.offset {
        8 => chunks(index, &node.within, start, &entries, found, |bytes| word(bytes, 0)),
        width => chunks(index, &node.within, start, &entries, found, |bytes| narrow(bytes, width)),
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

/// A key: length and mask, then a position.
fn key_nbytes(index: &ChunkIndex) -> usize {
    entry_nbytes(index) - index.sizes.offset
}

/// Keys and addresses take turns, and a key comes last. An empty node has none.
fn entries_nbytes(index: &ChunkIndex, count: u64) -> u64 {
    let last = if count == 0 { 0 } else { key_nbytes(index) as u64 };
    count * entry_nbytes(index) as u64 + last
}

fn read_header(node: &Node, bytes: &[u8]) -> Result<(u8, u16), Error> {
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
    within: &Within,
    mut cursor: Cursor<'_>,
    pages: &Pages<'_>,
) -> Result<Vec<Node>, Error> {
    let mut nodes = Vec::with_capacity(cursor.remaining() / entry_nbytes(index));
    let mut key = if cursor.remaining() > 0 { read_key(index, &mut cursor)? } else { Arc::default() };
    while cursor.remaining() > 0 {
        let address = index.sizes.defined_address(&mut cursor)?;
        let start = cursor.offset();
        let next = read_key(index, &mut cursor)?;
        if !is_before(&key, &next) {
            return Err(Error::invalid(KEY, start, OUT_OF_ORDER));
        }
        let within = within.narrowed(&key, &next);
        if may_hold(index, &within) {
            want(index, address, pages);
            nodes.push(Node { address, level: Some(level), within });
        }
        key = next;
    }
    Ok(nodes)
}

/// The position in a key between nodes, or behind the last of them.
fn read_key(index: &ChunkIndex, cursor: &mut Cursor<'_>) -> Result<Arc<[u8]>, Error> {
    let start = cursor.offset();
    let key = cursor.take(key_nbytes(index))?;
    check_position(index, start, key.get(KEY_START..).unwrap_or_default()).map(Arc::from)
}

/// Refuses what libraries refuse: a position where no chunk, or no element, can start.
fn check_position<'k>(index: &ChunkIndex, start: u64, position: &'k [u8]) -> Result<&'k [u8], Error> {
    let (axes, within_element) = position.split_at_checked(8 * index.numbering.ndim()).unwrap_or_default();
    let whole = index.numbering.of_offsets(axes.chunks_exact(8).map(|bytes| word(bytes, 0)));
    whole.map_err(|offset| Error::invalid(KEY, start, no_chunk_at(offset)))?;
    if word(within_element, 0).checked_rem(index.element_nbytes) == Some(0) {
        return Ok(position);
    }
    Err(Error::invalid(KEY, start, "a position within an element"))
}

fn no_chunk_at(offset: u64) -> String {
    format!("no chunk starts at element {offset} of an axis")
}

/// Whether the chunks we look for may be below a child.
fn may_hold(index: &ChunkIndex, within: &Within) -> bool {
    index.sought.as_ref().is_none_or(|sought| sought.iter().any(|position| within.holds(position)))
}

/// Every chunk of a leaf. This is the hot loop for old files: it allocates nothing and avoids every unnecessary step.
#[inline]
fn chunks(
    index: &ChunkIndex,
    within: &Within,
    start: u64,
    entries: &[u8],
    found: &mut Vec<StoredChunk>,
    address_of: impl Fn(&[u8]) -> u64,
) -> Result<(), Error> {
    let axes_nbytes = 8 * index.numbering.ndim();
    let entries = entries.chunks_exact(entry_nbytes(index));
    let last = entries.remainder().get(KEY_START..).unwrap_or_default();
    let at = |number: usize| start.saturating_add((number * entry_nbytes(index)) as u64);
    let (mut previous, mut count): (&[u8], usize) = (&[], 0);
    for (number, entry) in entries.enumerate() {
        let (key, address) = entry.split_at_checked(key_nbytes(index)).unwrap_or_default();
        let (sizes, position) = key.split_at_checked(KEY_START).unwrap_or_default();
        let (axes, within_element) = position.split_at_checked(axes_nbytes).unwrap_or_default();
        let invalid = |problem: String| Error::invalid(KEY, at(number), problem);
        if word(within_element, 0) != 0 {
            return Err(invalid("a chunk that starts within an element".into()));
        }
        let linear = index.numbering.of_offsets(axes.chunks_exact(8).map(|bytes| word(bytes, 0)));
        let linear = linear.map_err(|offset| invalid(no_chunk_at(offset)))?;
        let is_placed = if number == 0 { within.holds(position) } else { is_before(previous, position) };
        if !is_placed {
            return Err(invalid(OUT_OF_ORDER.into()));
        }
        (previous, count) = (position, number + 1);
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
    if count == 0 {
        return Ok(());
    }
    // The key behind the last chunk bounds it as the others bound the chunks before them.
    check_position(index, at(count), last)?;
    if is_before(previous, last) && within.holds(previous) {
        return Ok(());
    }
    Err(Error::invalid(KEY, at(count), OUT_OF_ORDER))
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

//! B-trees of version 2, of any record type (HDF5 File Format Specification 3.0, III.A.2).
//!
//! To read all records of a tree, for example the names in a group with dense links:
//!
//! ```text
//! let mut walk = Walk::new(address, sizes, &[5]);      // the allowed record types
//! walk.resume(&pages, &mut |record| { … Ok(()) })?;    // NotHeld: call again after the next round
//! ```
//!
//! `record` holds the bytes of one record. Each record comes once, in no particular order. [`Header`] and
//! [`Header::read_node`] are the underlying steps, for callers that keep their own list of nodes.

use hyperslab_core::ByteRange;

use super::lookup3::{CHECKSUM_NBYTES, checked};
use super::sizes::Sizes;
use super::visited::Visited;
use crate::cursor::Cursor;
use crate::error::Error;
use crate::pages::Pages;

const HEADER: &str = "a B-tree (version 2) header";
const NODE: &str = "a B-tree (version 2) node";
/// Signature, version, type and checksum of a node.
const NODE_OVERHEAD: u64 = 10;
/// Each level has at least twice the nodes of the level above, so no file holds a deeper tree.
const MAX_DEPTH: u16 = 64;

/// A tree, from its header.
#[derive(Clone, Debug)]
pub(crate) struct Header {
    sizes: Sizes,
    /// The type of its records.
    pub record_type: u8,
    /// Bytes of a record.
    pub record_nbytes: usize,
    root: Option<Node>,
    /// Levels, from the leaves up.
    levels: Vec<Level>,
    /// Bytes of the count of one node's own records.
    count_width: usize,
}

/// What the nodes of one level share.
#[derive(Clone, Copy, Debug)]
struct Level {
    /// How many records fit into a node.
    max_records: u64,
    /// How many records fit into a node and all nodes below it.
    max_total: u64,
    /// Bytes of that second count; 0 for leaves.
    total_width: usize,
}

/// A node: its address, how many records it has itself, and its level above the leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Node {
    address: u64,
    record_count: u64,
    level: u16,
}

/// Bytes that a number up to `most` takes (the library's `H5VM_limit_enc_size`).
fn width_of(limit: u64) -> usize {
    (limit.max(1).ilog2() / 8 + 1) as usize
}

impl Header {
    /// Bytes of a header in the file.
    fn nbytes(sizes: Sizes) -> u64 {
        (16 + sizes.offset + 2 + sizes.length + CHECKSUM_NBYTES) as u64
    }

    /// Notes that a header will be needed.
    pub fn want(address: u64, sizes: Sizes, pages: &Pages<'_>) {
        pages.want(ByteRange { offset: address, length: Self::nbytes(sizes) });
    }

    /// The header at an address. Notes that the root will be needed.
    pub fn read(address: u64, sizes: Sizes, pages: &Pages<'_>) -> Result<Self, Error> {
        let bytes = pages.bytes(HEADER, address, Self::nbytes(sizes))?;
        let mut cursor = Cursor::new(HEADER, address, checked(HEADER, address, &bytes)?);
        cursor.signature(b"BTHD")?;
        if cursor.u8()? != 0 {
            return Err(Error::unsupported("a B-tree (version 2) header of a version other than 0"));
        }
        let record_type = cursor.u8()?;
        let node_nbytes = u64::from(cursor.u32()?);
        let record_nbytes = cursor.u16()?;
        let depth = cursor.u16()?;
        cursor.skip(2)?; // when to split and merge: only writers need this
        let root_address = sizes.address(&mut cursor)?;
        let root_count = u64::from(cursor.u16()?);
        if record_nbytes == 0 || depth > MAX_DEPTH {
            return Err(cursor.invalid(format!("records of {record_nbytes} bytes, {depth} levels deep")));
        }
        let levels = Level::all(node_nbytes, u64::from(record_nbytes), depth, sizes)
            .ok_or_else(|| cursor.invalid(format!("nodes of {node_nbytes} bytes hold no record")))?;
        let root = root_address.filter(|_| root_count > 0).map(|address| Node {
            address,
            record_count: root_count,
            level: depth,
        });
        let count_width = levels.first().map_or(1, |leaf| width_of(leaf.max_records));
        let record_nbytes = usize::from(record_nbytes);
        let header = Self { sizes, record_type, record_nbytes, root, levels, count_width };
        if let Some(root) = header.root {
            pages.want(header.range(root));
        }
        Ok(header)
    }

    /// The root; `None` if the tree has no records.
    pub fn root(&self) -> Option<Node> {
        self.root
    }

    fn level(&self, level: u16) -> Option<&Level> {
        self.levels.get(usize::from(level))
    }

    /// Bytes of a pointer to a node of a level: address, own records, and, above the leaves, all records below.
    fn pointer_nbytes(&self, level: u16) -> usize {
        let total = self.level(level).map_or(0, |level| level.total_width);
        self.sizes.offset + self.count_width + total
    }

    /// How many bytes of a node are in use.
    fn range(&self, node: Node) -> ByteRange {
        let records = node.record_count.saturating_mul(self.record_nbytes as u64);
        let pointers = node.level.checked_sub(1).map_or(0, |below| {
            node.record_count.saturating_add(1).saturating_mul(self.pointer_nbytes(below) as u64)
        });
        let length = NODE_OVERHEAD.saturating_add(records).saturating_add(pointers);
        ByteRange { offset: node.address, length: length.min(u64::MAX - node.address) }
    }

    /// Reads one node: passes its records to `each`, and returns its children, noted as needed.
    ///
    /// `NotHeld` comes before the first record.
    pub fn read_node(
        &self,
        node: Node,
        pages: &Pages<'_>,
        visited: &Visited,
        each: &mut dyn FnMut(&[u8]) -> Result<(), Error>,
    ) -> Result<Vec<Node>, Error> {
        let max = self.level(node.level).map_or(0, |level| level.max_records);
        if node.record_count > max {
            let problem = format!("{} records, but only {max} fit", node.record_count);
            return Err(Error::invalid(NODE, node.address, problem));
        }
        let range = self.range(node);
        let bytes = pages.bytes(NODE, node.address, range.length)?;
        visited.enter(NODE, node.address, range.length, pages.file_length())?;
        let mut cursor = Cursor::new(NODE, node.address, checked(NODE, node.address, &bytes)?);
        cursor.signature(if node.level == 0 { b"BTLF" } else { b"BTIN" })?;
        if cursor.u8()? != 0 {
            return Err(Error::unsupported("a B-tree (version 2) node of a version other than 0"));
        }
        if cursor.u8()? != self.record_type {
            return Err(cursor.invalid("its record type is not the header's"));
        }
        for _ in 0..node.record_count {
            each(cursor.take(self.record_nbytes)?)?;
        }
        let children = self.children(node, &mut cursor)?;
        for &child in &children {
            pages.want(self.range(child));
        }
        Ok(children)
    }

    fn children(&self, node: Node, cursor: &mut Cursor<'_>) -> Result<Vec<Node>, Error> {
        let Some(level) = node.level.checked_sub(1) else { return Ok(Vec::new()) };
        let total_width = self.level(level).map_or(0, |level| level.total_width);
        let child = |cursor: &mut Cursor<'_>| {
            let address = self.sizes.defined_address(cursor)?;
            let record_count = cursor.uint(self.count_width)?;
            cursor.skip(total_width)?;
            Ok(Node { address, record_count, level })
        };
        (0..=node.record_count).map(|_| child(cursor)).collect()
    }
}

impl Level {
    /// The levels from the leaves up to `depth`; `None` if not even one record fits.
    fn all(node_nbytes: u64, record_nbytes: u64, depth: u16, sizes: Sizes) -> Option<Vec<Self>> {
        let leaf = node_nbytes.checked_sub(NODE_OVERHEAD)?.checked_div(record_nbytes)?;
        let count_width = width_of(leaf);
        let mut levels = vec![Self { max_records: leaf, max_total: leaf, total_width: 0 }];
        for _ in 0..depth {
            let below = levels.last()?;
            let pointer = (sizes.offset + count_width + below.total_width) as u64;
            let room = node_nbytes.checked_sub(NODE_OVERHEAD + pointer)?;
            let max_records = room.checked_div(record_nbytes + pointer)?;
            let max_total = max_records.saturating_add(1).saturating_mul(below.max_total);
            let max_total = max_total.saturating_add(max_records);
            levels.push(Self { max_records, max_total, total_width: width_of(max_total) });
        }
        levels.iter().all(|level| level.max_records > 0).then_some(levels)
    }
}

/// Visits all records of a tree, as far as the pages reach. Call `resume` until it succeeds.
#[derive(Debug)]
pub(crate) struct Walk {
    address: u64,
    sizes: Sizes,
    record_types: &'static [u8],
    header: Option<Header>,
    waiting: Vec<Node>,
    visited: Visited,
}

impl Walk {
    /// A walk through the tree whose header is at an address, with records of one of these types.
    pub fn new(address: u64, sizes: Sizes, record_types: &'static [u8]) -> Self {
        let visited = Visited::default();
        Self { address, sizes, record_types, header: None, waiting: Vec::new(), visited }
    }

    /// Goes on. Returns `NotHeld` if nodes are missing. All of them are noted; call again after the next round.
    pub fn resume(
        &mut self,
        pages: &Pages<'_>,
        each: &mut dyn FnMut(&[u8]) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let header = match self.header.take() {
            Some(header) => header,
            None => self.start(pages)?,
        };
        let result = self.advance(&header, pages, each);
        self.header = Some(header);
        result
    }

    fn start(&mut self, pages: &Pages<'_>) -> Result<Header, Error> {
        let header = Header::read(self.address, self.sizes, pages)?;
        if !self.record_types.contains(&header.record_type) {
            let problem = format!("record type {} is not one of {:?}", header.record_type, self.record_types);
            return Err(Error::invalid(HEADER, self.address, problem));
        }
        self.waiting = header.root().into_iter().collect();
        Ok(header)
    }

    fn advance(
        &mut self,
        header: &Header,
        pages: &Pages<'_>,
        each: &mut dyn FnMut(&[u8]) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let mut missing = Vec::new();
        while let Some(node) = self.waiting.pop() {
            match header.read_node(node, pages, &self.visited, each) {
                Ok(children) => self.waiting.extend(children),
                Err(Error::NotHeld { .. }) => missing.push(node),
                Err(error) => return Err(error),
            }
        }
        let first = missing.first().map(|node| node.address);
        self.waiting = missing;
        first.map_or(Ok(()), |offset| Err(Error::NotHeld { offset }))
    }
}

#[cfg(test)]
#[path = "btree2_tests.rs"]
mod tests;

//! Old-style groups: a B-tree of version 1 over symbol table nodes (HDF5 File Format Specification 3.0, III.A.1,
//! III.B).

use hyperslab_core::ByteRange;

use super::links::{NamedLink, Target};
use super::local_heap::LocalHeap;
use super::sizes::Sizes;
use crate::cursor::Cursor;
use crate::error::Error;
use crate::pages::Pages;

const TREE: &str = "B-tree of a group";
const NODE: &str = "symbol table node";
/// Bytes of the largest node that is read at once: 2 * 65535 entries of 40 bytes, and room to spare.
const MAX_NODE_NBYTES: u64 = 8 << 20;

/// Bytes of a node as libraries write them. They are fetched along with its head.
const AHEAD_NBYTES: u64 = 1024;

/// Where the links of an old-style group are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SymbolTable {
    /// The B-tree's root.
    pub tree: u64,
    /// The local heap with the names.
    pub heap: u64,
}

/// The contents of a node of the group's tree.
pub(crate) enum Node {
    /// Other nodes.
    Children(Vec<u64>),
    /// Links.
    Links(Vec<NamedLink>),
}

impl SymbolTable {
    /// From the symbol table message.
    pub fn read(cursor: &mut Cursor<'_>, sizes: Sizes) -> Result<Self, Error> {
        Ok(Self { tree: sizes.defined_address(cursor)?, heap: sizes.defined_address(cursor)? })
    }

    /// The contents of the node at an address: a node of the B-tree, or a symbol table node below it.
    pub fn node(&self, pages: &Pages<'_>, sizes: Sizes, address: u64) -> Result<Node, Error> {
        let heap = LocalHeap::read(pages, sizes, self.heap);
        pages.want(ByteRange { offset: address, length: AHEAD_NBYTES });
        let head = pages.bytes(TREE, address, 8)?;
        if !head.starts_with(b"TREE") {
            return links(pages, sizes, &mut Cursor::new(NODE, address, &head), &heap?);
        }
        heap?.want(pages);
        tree_node(pages, sizes, &mut Cursor::new(TREE, address, &head))
    }
}

/// Keys and children alternate. Only the children matter here.
fn tree_node(pages: &Pages<'_>, sizes: Sizes, head: &mut Cursor<'_>) -> Result<Node, Error> {
    let address = head.offset();
    head.signature(b"TREE")?;
    let kind = head.u8()?;
    if kind != 0 {
        return Err(head.invalid(format!("node type {kind}, not 0")));
    }
    head.skip(1)?; // level: symbol table nodes below the lowest one have their own signature
    let count = usize::from(head.u16()?);
    let start = 8 + 2 * sizes.offset;
    let length = start + count * (sizes.length + sizes.offset) + sizes.length;
    let bytes = pages.bytes(TREE, address, length as u64)?;
    let mut cursor = Cursor::new(TREE, address, &bytes);
    cursor.skip(start)?;
    let mut children = Vec::with_capacity(count);
    for _ in 0..count {
        cursor.skip(sizes.length)?;
        children.push(sizes.defined_address(&mut cursor)?);
    }
    Ok(Node::Children(children))
}

fn links(pages: &Pages<'_>, sizes: Sizes, head: &mut Cursor<'_>, heap: &LocalHeap) -> Result<Node, Error> {
    let address = head.offset();
    head.signature(b"SNOD")?;
    head.skip(2)?; // version, reserved
    let count = usize::from(head.u16()?);
    let length = (8 + count * (sizes.length + sizes.offset + 24)) as u64;
    if length > MAX_NODE_NBYTES {
        return Err(Error::TooMany { what: "bytes of a symbol table node", limit: MAX_NODE_NBYTES });
    }
    let bytes = pages.bytes(NODE, address, length)?;
    let mut cursor = Cursor::new(NODE, address, &bytes);
    cursor.skip(8)?;
    let mut links = Vec::with_capacity(count);
    for _ in 0..count {
        links.push(entry(pages, sizes, &mut cursor, heap)?);
    }
    Ok(Node::Links(links))
}

/// A symbol table entry: name, object header, and for a soft link (cache type 2) the location of its path.
fn entry(
    pages: &Pages<'_>,
    sizes: Sizes,
    cursor: &mut Cursor<'_>,
    heap: &LocalHeap,
) -> Result<NamedLink, Error> {
    // By the specification, the offset of the name is as wide as an address. The library writes it as wide as a length.
    let name = heap.text(pages, sizes.length(cursor)?)?;
    let address = sizes.address(cursor)?;
    let cache = cursor.u32()?;
    cursor.skip(4)?;
    let path = u64::from(cursor.u32()?);
    cursor.skip(12)?;
    let target = match (cache, address) {
        (2, _) => Target::Soft(heap.text(pages, path)?),
        (_, Some(address)) => Target::Object(address),
        (_, None) => return Err(cursor.invalid(format!("link {name:?} leads nowhere"))),
    };
    Ok(NamedLink { name, order: None, target })
}

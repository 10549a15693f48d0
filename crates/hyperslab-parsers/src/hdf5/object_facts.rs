//! The contents of one object's header, for readers who want them as HDF5's own library reports them: filters with
//! parameters, links with the addresses that they lead to, creation orders.

use hyperslab_core::{Attribute, Element, Fill, Unreadable};

use super::attribute::{RawAttribute, with_ieee_floats};
use super::cache_image::start;
use super::dense::{Dense, DenseWalk};
use super::file::File;
use super::filters::Filter;
use super::header;
use super::layout::Layout;
use super::links::{DenseStorage, NamedLink, Target};
use super::object::{self, Kind, Messages};
use super::symbol_table::{Node, SymbolTable};
use super::vlen;
use crate::error::Error;
use crate::pages::Pages;
use crate::rounds::settle;

/// The most nodes of one group's table. No library makes that many, and a damaged table may contain a circle.
const MAX_NODES: usize = 1 << 20;

/// One object, as its header describes it. Addresses count from the file's base address, as references do.
#[derive(Debug)]
pub struct ObjectFacts {
    /// The address of its header.
    pub address: u64,
    /// What it is.
    pub kind: ObjectKind,
    /// The attributes in the file's order, with their creation order if it is tracked.
    pub attributes: Vec<(Attribute, Option<u32>)>,
    /// Whether the creation order of attributes is tracked.
    pub attributes_ordered: bool,
}

/// The kinds of objects.
#[derive(Debug)]
pub enum ObjectKind {
    /// A group.
    Group {
        /// Its links, in the order in which the file's structures list them.
        links: Vec<NamedLink>,
        /// Whether their creation order is tracked.
        ordered: bool,
    },
    /// An array.
    Array(Box<ArrayFacts>),
    /// A named datatype.
    Datatype(Element),
}

/// An array, without its elements.
#[derive(Debug)]
pub struct ArrayFacts {
    /// Its elements.
    pub element: Element,
    /// The address of the committed datatype that it shares with others.
    pub committed: Option<u64>,
    /// Its shape; `None` if there are no elements at all.
    pub shape: Option<Vec<u64>>,
    /// Its largest shape; `None` for an unlimited axis.
    pub max_shape: Vec<Option<u64>>,
    /// Its filters in encoding order.
    pub filters: Vec<Filter>,
    /// How it is stored, or why that cannot be read.
    pub storage: Result<StorageFacts, Unreadable>,
}

/// How an array is stored.
#[derive(Debug)]
pub struct StorageFacts {
    /// The value of unwritten elements.
    pub fill: Fill,
    /// Its layout in the file.
    pub layout: LayoutFacts,
    /// The kind of its chunk index, and whether it stores lengths of filtered chunks in eight bytes; `None` without
    /// chunks.
    pub index: Option<(&'static str, bool)>,
    /// Parts in other files: file, offset, and length; `None` for the rest of the array.
    pub external: Vec<(String, u64, Option<u64>)>,
}

/// The layout of an array in its file.
#[derive(Debug)]
pub enum LayoutFacts {
    /// In its header.
    Compact,
    /// In one piece, at this address if anything was written.
    Contiguous(Option<u64>),
    /// In chunks of this shape.
    Chunked(Vec<u64>),
    /// In other arrays.
    Virtual,
}

/// The contents of the header at an address; without an address, those of the root's header.
pub fn describe(pages: &mut Pages<'_>, address: Option<u64>) -> Result<ObjectFacts, Error> {
    let superblock = start(pages)?;
    let mut file = settle(pages, |pages| File::read(pages, &superblock))?;
    let base = superblock.sizes.base;
    let place = address.map_or(superblock.root, |address| address.wrapping_add(base));
    let description = settle(pages, |pages| object::describe(&mut file, pages, place))?;
    let messages = settle(pages, |pages| header::messages(pages, superblock.sizes, place)).map(Messages)?;
    let mut attributes = description.attributes;
    if let Some(storage) = description.dense_attributes {
        attributes.extend(dense_attributes(&mut file, pages, storage)?);
    }
    for raw in &mut attributes {
        follow(&mut file, pages, raw)?;
    }
    let kind = match description.kind {
        Kind::Group(group) => {
            let ordered = group.ordered;
            let mut links = group.links;
            if let Some(storage) = group.dense {
                links.extend(dense_links(&mut file, pages, storage)?);
            }
            if let Some(table) = group.table {
                table_links(&file, pages, table, &mut links)?;
            }
            for link in &mut links {
                if let Target::Object(address) = &mut link.target {
                    *address = address.wrapping_sub(base);
                }
            }
            ObjectKind::Group { links, ordered }
        }
        Kind::Array(array) => {
            let committed = messages.committed(&file)?.map(|address| address.wrapping_sub(base));
            ObjectKind::Array(Box::new(array_facts(&mut file, pages, &messages, *array, committed)?))
        }
        Kind::Datatype(_) => ObjectKind::Datatype(settle(pages, |pages| messages.element(&mut file, pages))?),
    };
    let attributes_ordered = messages.attributes_ordered(&file)?;
    let shown = |raw: RawAttribute| (with_ieee_floats(raw.attribute), raw.order);
    let attributes = attributes.into_iter().map(shown).collect();
    Ok(ObjectFacts { address: place.wrapping_sub(base), kind, attributes, attributes_ordered })
}

fn array_facts(
    file: &mut File,
    pages: &mut Pages<'_>,
    messages: &Messages,
    array: object::ArrayDescription,
    committed: Option<u64>,
) -> Result<ArrayFacts, Error> {
    let filters = settle(pages, |pages| messages.filters(file, pages))?;
    let storage = match array.storage {
        Err(reason) => Err(reason),
        Ok(storage) => {
            let index = match &storage.layout {
                Layout::Chunked(layout) => Some(layout.index_name()),
                _ => None,
            };
            let layout = match storage.layout {
                Layout::Compact(_) => LayoutFacts::Compact,
                Layout::Contiguous { address, .. } => LayoutFacts::Contiguous(address),
                Layout::Chunked(layout) => LayoutFacts::Chunked(layout.chunk_shape),
                Layout::Virtual { .. } => LayoutFacts::Virtual,
            };
            let external = match storage.external {
                Some(files) => settle(pages, |pages| files.named(pages, file.sizes))?,
                None => Vec::new(),
            };
            let external = external.iter().map(super::external::NamedPart::facts).collect();
            Ok(StorageFacts { fill: storage.fill, layout, index, external })
        }
    };
    let (shape, max_shape) = (array.dataspace.shape, array.dataspace.max_shape);
    Ok(ArrayFacts { element: array.element, committed, shape, max_shape, filters, storage })
}

fn dense_attributes(
    file: &mut File,
    pages: &mut Pages<'_>,
    storage: DenseStorage,
) -> Result<Vec<RawAttribute>, Error> {
    let mut walk = DenseWalk::new(Dense::Attributes, storage, file.sizes);
    let messages = settle(pages, |pages| walk.messages(file, pages))?;
    let read = |message| settle(pages, |pages| RawAttribute::read(file, pages, message));
    let mut found: Vec<RawAttribute> = messages.iter().map(read).collect::<Result<_, _>>()?;
    found.sort_by(|one, other| one.attribute.name.cmp(&other.attribute.name));
    Ok(found)
}

/// Adds the values that an attribute's pointers lead to.
fn follow(file: &mut File, pages: &mut Pages<'_>, raw: &mut RawAttribute) -> Result<(), Error> {
    let Ok(value) = &mut raw.attribute.value else { return Ok(()) };
    if !value.element.has_pointers() {
        return Ok(());
    }
    let File { collections, sizes, .. } = file;
    let found = settle(pages, |pages| vlen::values(collections, pages, *sizes, &value.element, &value.bytes));
    match found {
        Ok(heap) => value.heap = heap,
        Err(error @ Error::Fetch(_)) => return Err(error),
        Err(error) => raw.attribute.value = Err(error.into()),
    }
    Ok(())
}

fn dense_links(
    file: &mut File,
    pages: &mut Pages<'_>,
    storage: DenseStorage,
) -> Result<Vec<NamedLink>, Error> {
    let mut walk = DenseWalk::new(Dense::Links, storage, file.sizes);
    let messages = settle(pages, |pages| walk.messages(file, pages))?;
    let sizes = file.sizes;
    messages.iter().map(|message| super::links::link(&mut message.cursor("link"), sizes)).collect()
}

fn table_links(
    file: &File,
    pages: &mut Pages<'_>,
    table: SymbolTable,
    links: &mut Vec<NamedLink>,
) -> Result<(), Error> {
    let (mut todo, mut count) = (vec![table.tree], 0);
    while let Some(address) = todo.pop() {
        count += 1;
        if count > MAX_NODES {
            return Err(Error::TooMany { what: "nodes of a group's table", limit: MAX_NODES as u64 });
        }
        match settle(pages, |pages| table.node(pages, file.sizes, address))? {
            Node::Links(found) => links.extend(found),
            Node::Children(children) => todo.extend(children.into_iter().rev()), // the first one comes next
        }
    }
    Ok(())
}

//! The data layout message: how an array's elements are stored (HDF5 File Format Specification 3.0,
//! IV.A.2.i).

use super::dataspace::MAX_NDIM;
pub(crate) use super::sizes::Sizes;
use crate::cursor::Cursor;
use crate::error::Error;

/// Chunked layout flag: edge chunks are stored without filters.
const PLAIN_EDGE_CHUNKS: u8 = 0x01;
/// Chunked layout flag: the only chunk was filtered.
const SINGLE_FILTERED: u8 = 0x02;

/// How an array's elements are stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Layout {
    /// In the message itself.
    Compact(Vec<u8>),
    /// In one run of bytes; no address if nothing was written.
    Contiguous {
        /// Its address.
        address: Option<u64>,
        /// Its length by the message. Older messages have none.
        length: Option<u64>,
    },
    /// In chunks.
    Chunked(ChunkedLayout),
    /// In other arrays. The mappings are object `index` of the global heap collection at `address`.
    Virtual {
        /// The collection; `None` if there is no mapping.
        address: Option<u64>,
        /// The number of the object in it.
        index: u32,
    },
}

/// An array in chunks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ChunkedLayout {
    /// The version of the layout message: 1 to 5. From version 5 on, lengths of filtered chunks take `Sizes::length`
    /// bytes.
    pub version: u8,
    /// The shape of a chunk in elements, without the trailing width of an element.
    pub chunk_shape: Vec<u64>,
    /// Width of an element in bytes.
    pub element_nbytes: u64,
    /// Whether there is a filter pipeline (with at least one filter).
    pub filtered: bool,
    /// Whether chunks that reach past the array's end are stored without filters.
    pub plain_edge_chunks: bool,
    /// What leads to the chunks.
    pub kind: IndexKind,
}

impl ChunkedLayout {
    /// The name of its chunk index, and whether lengths of filtered chunks take eight bytes in it. An index that was
    /// not made yet has a name only in old files, which know only one kind.
    pub fn index_name(&self) -> (&'static str, bool) {
        let name = match self.kind {
            IndexKind::Unallocated if self.version > 3 => "unknown",
            IndexKind::Unallocated | IndexKind::BTree1 { .. } => "btree_v1",
            IndexKind::Single { .. } | IndexKind::Implicit { .. } => "none",
            IndexKind::FixedArray { .. } => "fixed_array",
            IndexKind::ExtensibleArray { .. } => "extensible_array",
            IndexKind::BTree2 { .. } => "btree_v2",
        };
        (name, self.version > 4)
    }
}

/// How to find a chunk's bytes from its position in the grid. Addresses are offsets in the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum IndexKind {
    /// Nothing has been written yet.
    Unallocated,
    /// A B-tree of version 1, node type 1.
    BTree1 {
        /// The root node.
        address: u64,
    },
    /// There is only one chunk, and this is it.
    Single {
        /// The chunk.
        address: u64,
        /// Its stored length and its filter mask, if it was filtered.
        filtered: Option<(u64, u32)>,
    },
    /// All chunks have the same length and are contiguous.
    Implicit {
        /// The first chunk.
        address: u64,
    },
    /// A fixed array.
    FixedArray {
        /// The address of its header.
        address: u64,
        /// log2 of the elements of a page, from the layout message.
        page_nbits: u8,
    },
    /// An extensible array.
    ExtensibleArray {
        /// The address of its header.
        address: u64,
        /// Its parameters, from the layout message.
        parameters: ExtensibleArrayParameters,
    },
    /// A B-tree of version 2.
    BTree2 {
        /// The address of its header.
        address: u64,
    },
}

/// The layout message's parameters of an extensible array. The array's header repeats them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ExtensibleArrayParameters {
    /// How many bits the largest element index takes.
    pub max_nbits: u8,
    /// Elements in the index block.
    pub index_elements: u8,
    /// The least number of data block pointers in a secondary block.
    pub min_pointers: u8,
    /// The least number of elements in a data block.
    pub min_elements: u8,
    /// log2 of the elements of a page.
    pub page_nbits: u8,
}

impl Layout {
    /// From the body of a message. `filtered` tells whether the object has filters.
    pub fn read(cursor: &mut Cursor<'_>, sizes: Sizes, filtered: bool) -> Result<Self, Error> {
        match cursor.u8()? {
            1 | 2 => old(cursor, sizes, filtered),
            version @ 3..=5 => new(cursor, sizes, filtered, version),
            version => Err(Error::unsupported(format!("data layout message version {version}"))),
        }
    }
}

/// Versions 1 and 2: the number of axes, the class, an address, lengths of four bytes.
fn old(cursor: &mut Cursor<'_>, sizes: Sizes, filtered: bool) -> Result<Layout, Error> {
    let ndim = usize::from(cursor.u8()?);
    let class = cursor.u8()?;
    cursor.skip(5)?;
    match class {
        0 => {
            cursor.skip(4 * ndim)?;
            let length = usize::try_from(cursor.u32()?).unwrap_or(usize::MAX);
            Ok(Layout::Compact(cursor.take(length)?.to_vec()))
        }
        1 => Ok(Layout::Contiguous { address: sizes.address(cursor)?, length: None }),
        2 => old_chunks(cursor, sizes, filtered, ndim),
        _ => Err(cursor.invalid(format!("layout class {class}"))),
    }
}

/// Chunks with a B-tree of version 1, in message versions 1 to 3.
fn old_chunks(cursor: &mut Cursor<'_>, sizes: Sizes, filtered: bool, ndim: usize) -> Result<Layout, Error> {
    let kind = match sizes.address(cursor)? {
        None => IndexKind::Unallocated,
        Some(address) => IndexKind::BTree1 { address },
    };
    let (chunk_shape, element_nbytes) = chunk_lengths(cursor, ndim, 4)?;
    let plain_edge_chunks = false;
    let version = 3;
    Ok(Layout::Chunked(ChunkedLayout {
        version,
        chunk_shape,
        element_nbytes,
        filtered,
        plain_edge_chunks,
        kind,
    }))
}

/// Lengths of a chunk; the last one is the width of an element.
fn chunk_lengths(cursor: &mut Cursor<'_>, count: usize, width: usize) -> Result<(Vec<u64>, u64), Error> {
    if count > usize::from(MAX_NDIM) + 1 {
        return Err(cursor.invalid(format!("chunks of {count} axes")));
    }
    let mut lengths = (0..count).map(|_| cursor.uint(width)).collect::<Result<Vec<_>, _>>()?;
    if lengths.contains(&0) {
        return Err(cursor.invalid("a chunk without elements"));
    }
    let element_nbytes = lengths.pop().ok_or_else(|| cursor.invalid("chunks without axes"))?;
    Ok((lengths, element_nbytes))
}

/// Versions 3, 4 and 5.
fn new(cursor: &mut Cursor<'_>, sizes: Sizes, filtered: bool, version: u8) -> Result<Layout, Error> {
    match cursor.u8()? {
        0 => {
            let length = usize::from(cursor.u16()?);
            Ok(Layout::Compact(cursor.take(length)?.to_vec()))
        }
        1 => {
            let address = sizes.address(cursor)?;
            Ok(Layout::Contiguous { address, length: Some(sizes.length(cursor)?) })
        }
        2 if version == 3 => {
            let ndim = usize::from(cursor.u8()?);
            old_chunks(cursor, sizes, filtered, ndim)
        }
        2 => new_chunks(cursor, sizes, filtered, version),
        3 => Ok(Layout::Virtual { address: sizes.address(cursor)?, index: cursor.u32()? }),
        class => Err(cursor.invalid(format!("layout class {class}"))),
    }
}

/// Chunks in message versions 4 and 5, with any index except the old B-tree.
fn new_chunks(cursor: &mut Cursor<'_>, sizes: Sizes, filtered: bool, version: u8) -> Result<Layout, Error> {
    let flags = cursor.u8()?;
    if flags & !(PLAIN_EDGE_CHUNKS | SINGLE_FILTERED) != 0 {
        return Err(Error::unsupported(format!("chunked layout with flags {flags:#x}")));
    }
    let ndim = usize::from(cursor.u8()?);
    let width = usize::from(cursor.u8()?);
    let (chunk_shape, element_nbytes) = chunk_lengths(cursor, ndim, width)?;
    let kind = index_kind(cursor, sizes, flags)?;
    let plain_edge_chunks = flags & PLAIN_EDGE_CHUNKS != 0;
    Ok(Layout::Chunked(ChunkedLayout {
        version,
        chunk_shape,
        element_nbytes,
        filtered,
        plain_edge_chunks,
        kind,
    }))
}

/// The index's own parameters, then its address.
fn index_kind(cursor: &mut Cursor<'_>, sizes: Sizes, flags: u8) -> Result<IndexKind, Error> {
    let number = cursor.u8()?;
    let mut single = None;
    let mut parameters = [0_u8; 5];
    match number {
        1 if flags & SINGLE_FILTERED != 0 => single = Some((sizes.length(cursor)?, cursor.u32()?)),
        1 | 2 => {}
        3 => parameters.iter_mut().zip(cursor.take(1)?).for_each(|(to, from)| *to = *from),
        4 => parameters.iter_mut().zip(cursor.take(5)?).for_each(|(to, from)| *to = *from),
        5 => cursor.skip(6)?, // node size, split and merge percents: its header repeats them
        _ => return Err(Error::unsupported(format!("chunk index type {number}"))),
    }
    let Some(address) = sizes.address(cursor)? else { return Ok(IndexKind::Unallocated) };
    let [first, second, third, fourth, fifth] = parameters;
    Ok(match number {
        1 => IndexKind::Single { address, filtered: single },
        2 => IndexKind::Implicit { address },
        3 => IndexKind::FixedArray { address, page_nbits: first },
        4 => IndexKind::ExtensibleArray {
            address,
            parameters: ExtensibleArrayParameters {
                max_nbits: first,
                index_elements: second,
                min_pointers: third,
                min_elements: fourth,
                page_nbits: fifth,
            },
        },
        _ => IndexKind::BTree2 { address },
    })
}

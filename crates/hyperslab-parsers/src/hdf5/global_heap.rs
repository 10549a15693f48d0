//! Global heap collections, where variable-length values are (HDF5 File Format Specification 3.0, III.E).

use std::borrow::Cow;
use std::collections::HashMap;

use hyperslab_core::ByteRange;

use super::datatype::POINTER_EXTRA_NBYTES;
use super::sizes::Sizes;
use super::superblock::Superblock;
use crate::cursor::Cursor;
use crate::error::Error;
use crate::pages::Pages;
use crate::rounds::settle;

const WHAT: &str = "global heap collection";
/// Bytes of a collection as the library makes them, fetched with its head.
const AHEAD_NBYTES: u64 = 4096;
/// Resolved bytes that are always allowed, however small the file.
const MIN_LIMIT: u64 = 64 << 20;

/// The collections seen so far: where each object lies.
#[derive(Debug, Default)]
pub(crate) struct Collections {
    known: HashMap<u64, HashMap<u32, ByteRange>>,
    object_count: u64,
}

impl Collections {
    /// The bytes of one object of the collection at an address.
    pub fn object<'p>(
        &mut self,
        pages: &'p Pages<'_>,
        sizes: Sizes,
        address: u64,
        index: u32,
    ) -> Result<Cow<'p, [u8]>, Error> {
        if !self.known.contains_key(&address) {
            let objects = collection(pages, sizes, address)?;
            self.count(pages, objects.len())?;
            self.known.insert(address, objects);
        }
        let range = self.known.get(&address).and_then(|objects| objects.get(&index));
        let missing = || Error::invalid(WHAT, address, format!("it has no object {index}"));
        let range = range.ok_or_else(missing)?;
        pages.bytes(WHAT, range.offset, range.length)
    }

    /// Collections that do not overlap have at most one object in 16 bytes of the file.
    fn count(&mut self, pages: &Pages<'_>, more: usize) -> Result<(), Error> {
        self.object_count = self.object_count.saturating_add(more as u64);
        let limit = pages.file_length() / 16;
        if self.object_count > limit {
            return Err(Error::TooMany { what: "objects of global heap collections", limit });
        }
        Ok(())
    }

    /// What pointers lead to, one entry each, empty for null. All that is missing is noted before giving up.
    pub fn resolve(
        &mut self,
        pages: &Pages<'_>,
        sizes: Sizes,
        pointers: &[Pointer],
    ) -> Result<Vec<Vec<u8>>, Error> {
        let limit = pages.file_length().saturating_mul(4).max(MIN_LIMIT);
        let (mut nbytes, mut missed, mut out) = (0_u64, None, Vec::new());
        for pointer in pointers {
            match self.follow(pages, sizes, *pointer) {
                Ok(bytes) if missed.is_none() => {
                    nbytes = nbytes.saturating_add(bytes.len() as u64);
                    if nbytes > limit {
                        return Err(Error::TooMany { what: "bytes of variable-length values", limit });
                    }
                    out.push(bytes.into_owned());
                }
                Ok(_) => {}
                Err(error) if error.is_not_held() => missed = Some(error),
                Err(error) => return Err(error),
            }
        }
        missed.map_or(Ok(out), Err)
    }

    fn follow<'p>(
        &mut self,
        pages: &'p Pages<'_>,
        sizes: Sizes,
        pointer: Pointer,
    ) -> Result<Cow<'p, [u8]>, Error> {
        match pointer.place {
            None => Ok(Cow::Borrowed(&[])),
            Some((address, index)) => self.object(pages, sizes, address, index),
        }
    }
}

/// Where each object of a collection lies. Object 0 is the free space at the end.
fn collection(pages: &Pages<'_>, sizes: Sizes, address: u64) -> Result<HashMap<u32, ByteRange>, Error> {
    pages.want(ByteRange { offset: address, length: AHEAD_NBYTES });
    let head_nbytes = head_nbytes(sizes);
    let head = pages.bytes(WHAT, address, head_nbytes as u64)?;
    let mut cursor = Cursor::new(WHAT, address, &head);
    cursor.signature(b"GCOL")?;
    let version = cursor.u8()?;
    if version != 1 {
        return Err(Error::unsupported(format!("global heap version {version}")));
    }
    cursor.skip(3)?;
    let length = sizes.length(&mut cursor)?;
    let bytes = pages.bytes(WHAT, address, length)?;
    let mut cursor = Cursor::new(WHAT, address, &bytes);
    cursor.skip(head_nbytes)?;
    let mut objects = HashMap::new();
    while cursor.remaining() >= head_nbytes {
        let Some((index, range)) = object(&mut cursor, sizes)? else { break };
        objects.insert(index, range);
    }
    Ok(objects)
}

/// Bytes before a collection's objects, and before an object's data: the library pads both to eight.
fn head_nbytes(sizes: Sizes) -> usize {
    (8 + sizes.length).next_multiple_of(8)
}

fn object(cursor: &mut Cursor<'_>, sizes: Sizes) -> Result<Option<(u32, ByteRange)>, Error> {
    let index = u32::from(cursor.u16()?);
    cursor.skip(6)?; // reference count, reserved
    let length = sizes.length(cursor)?;
    if index == 0 {
        return Ok(None);
    }
    cursor.skip(head_nbytes(sizes) - 8 - sizes.length)?;
    let range = ByteRange { offset: cursor.offset(), length };
    let length = usize::try_from(length).unwrap_or(usize::MAX);
    cursor.skip(length)?;
    let padding = length.next_multiple_of(8) - length;
    cursor.skip(padding.min(cursor.remaining()))?;
    Ok(Some((index, range)))
}

/// What an element of variable length is: a length, and where its bytes are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pointer {
    place: Option<(u64, u32)>,
}

impl Pointer {
    /// Pointers one after another. One of length 0, or without address, leads nowhere.
    pub fn read_all(raw: &[u8], sizes: Sizes) -> Result<Vec<Self>, Error> {
        let nbytes = sizes.offset + POINTER_EXTRA_NBYTES;
        if !raw.len().is_multiple_of(nbytes) {
            let problem = format!("{} bytes are no whole pointers of {nbytes}", raw.len());
            return Err(Error::invalid("variable-length values", 0, problem));
        }
        raw.chunks_exact(nbytes).map(|pointer| Self::read(pointer, sizes)).collect()
    }

    fn read(raw: &[u8], sizes: Sizes) -> Result<Self, Error> {
        let mut cursor = Cursor::new("variable-length value", 0, raw);
        let length = cursor.u32()?;
        let address = sizes.address(&mut cursor)?;
        let index = cursor.u32()?;
        // Address 0 of the file's own counting is the superblock: no collection is there.
        let address = address.filter(|&address| address != sizes.base && length > 0);
        Ok(Self { place: address.map(|address| (address, index)) })
    }
}

/// What pointers of variable-length elements lead to, one entry each, empty for null.
///
/// `raw` holds pointers of `pointer_nbytes` one after another, as chunks decode to. A sequence's bytes are
/// its elements, as stored.
pub fn resolve_pointers(
    pages: &mut Pages<'_>,
    raw: &[u8],
    pointer_nbytes: usize,
) -> Result<Vec<Vec<u8>>, Error> {
    let sizes = settle(pages, Superblock::read)?.sizes;
    if pointer_nbytes != sizes.offset + POINTER_EXTRA_NBYTES {
        let problem =
            format!("pointers of {pointer_nbytes} bytes, not {}", sizes.offset + POINTER_EXTRA_NBYTES);
        return Err(Error::invalid("variable-length values", 0, problem));
    }
    let pointers = Pointer::read_all(raw, sizes)?;
    let mut collections = Collections::default();
    settle(pages, |pages| collections.resolve(pages, sizes, &pointers))
}

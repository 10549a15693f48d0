//! Global heap collections, which hold variable-length values (HDF5 File Format Specification 3.0, III.E).

use std::borrow::Cow;
use std::collections::HashMap;

use hyperslab_core::ByteRange;

use super::sizes::Sizes;
use crate::cursor::Cursor;
use crate::error::Error;
use crate::pages::Pages;

const WHAT: &str = "global heap collection";
/// Bytes of a collection as the library creates it. They are fetched along with its head.
const AHEAD_NBYTES: u64 = 4096;
/// Longer collections, such as the mappings of many chunks, are fetched in one piece: pages would be copied twice.
const PIECE_NBYTES: u64 = 128 << 10;
/// How often, on average, each byte of a file may come in a piece.
const MOST_REUSES: u64 = 8;

/// The collections seen so far, and the location of each object.
#[derive(Debug, Default)]
pub(crate) struct Collections {
    known: HashMap<u64, HashMap<u32, ByteRange>>,
    object_count: u64,
    /// Bytes of collections that were read in one piece.
    nbytes: u64,
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
        let missing = || Error::invalid(WHAT, address, format!("it has no object {index}"));
        if let Some(objects) = self.known.get(&address) {
            let range = *objects.get(&index).ok_or_else(missing)?;
            return match range.length {
                PIECE_NBYTES.. => self.piece(pages, range).map(Cow::Owned),
                _ => pages.bytes(WHAT, range.offset, range.length),
            };
        }
        let length = collection_nbytes(pages, sizes, address)?;
        let whole = ByteRange { offset: address, length };
        let bytes = match length {
            PIECE_NBYTES.. => Cow::Owned(self.piece(pages, whole)?),
            _ => pages.bytes(WHAT, address, length)?,
        };
        let objects = objects(&bytes, sizes, address)?;
        self.count(pages, objects.len())?;
        let range = objects.get(&index).copied();
        self.known.insert(address, objects);
        part(bytes, whole, range.ok_or_else(missing)?).ok_or_else(missing)
    }

    /// Counts bytes that do not go through pages. Collections may overlap, or be asked for one object after another.
    fn piece(&mut self, pages: &Pages<'_>, range: ByteRange) -> Result<Vec<u8>, Error> {
        let bytes = pages.piece(WHAT, range.offset, range.length)?;
        self.nbytes = self.nbytes.saturating_add(range.length);
        let limit = pages.file_length().saturating_mul(MOST_REUSES);
        if self.nbytes > limit {
            return Err(Error::TooMany { what: "bytes of global heap collections", limit });
        }
        Ok(bytes)
    }

    /// Collections that do not overlap have at most one object for every 16 bytes of the file.
    fn count(&mut self, pages: &Pages<'_>, more: usize) -> Result<(), Error> {
        self.object_count = self.object_count.saturating_add(more as u64);
        let limit = pages.file_length() / 16;
        if self.object_count > limit {
            return Err(Error::TooMany { what: "objects of global heap collections", limit });
        }
        Ok(())
    }
}

/// The bytes of one object, taken from those of its collection.
fn part(bytes: Cow<'_, [u8]>, whole: ByteRange, range: ByteRange) -> Option<Cow<'_, [u8]>> {
    let start = usize::try_from(range.offset.checked_sub(whole.offset)?).ok()?;
    let stop = start.checked_add(usize::try_from(range.length).ok()?)?;
    match bytes {
        Cow::Borrowed(bytes) => bytes.get(start..stop).map(Cow::Borrowed),
        Cow::Owned(mut bytes) if stop <= bytes.len() => {
            bytes.truncate(stop);
            bytes.drain(..start);
            Some(Cow::Owned(bytes))
        }
        Cow::Owned(_) => None,
    }
}

/// The length of a collection.
fn collection_nbytes(pages: &Pages<'_>, sizes: Sizes, address: u64) -> Result<u64, Error> {
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
    sizes.length(&mut cursor)
}

/// The location of each object of a collection. Object 0 is the free space at the end.
fn objects(bytes: &[u8], sizes: Sizes, address: u64) -> Result<HashMap<u32, ByteRange>, Error> {
    let head_nbytes = head_nbytes(sizes);
    let mut cursor = Cursor::new(WHAT, address, bytes);
    cursor.skip(head_nbytes)?;
    let mut objects = HashMap::new();
    while cursor.remaining() >= head_nbytes {
        let Some((index, range)) = object(&mut cursor, sizes)? else { break };
        objects.insert(index, range);
    }
    Ok(objects)
}

/// Bytes before a collection's objects, and before an object's data. The library pads both to eight.
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

//! Global heap collections, where variable-length values are (HDF5 File Format Specification 3.0, III.E).

use std::borrow::Cow;
use std::collections::HashMap;

use hyperslab_core::ByteRange;

use super::sizes::Sizes;
use crate::cursor::Cursor;
use crate::error::Error;
use crate::pages::Pages;

const WHAT: &str = "global heap collection";
/// Bytes of a collection as the library makes them, fetched with its head.
const AHEAD_NBYTES: u64 = 4096;

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

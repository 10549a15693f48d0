//! The metadata cache image: metadata that are missing or outdated at their own addresses. Its message (0x18) leads
//! from the superblock's extension to a block "MDCI", whose layout is in `H5Cimage.c` of HDF5 1.10 and later.

use super::header::{self, kind};
use super::lookup3;
use super::superblock::Superblock;
use crate::cursor::Cursor;
use crate::error::Error;
use crate::pages::Pages;
use crate::rounds::settle;

const MESSAGE: &str = "metadata cache image message";
const IMAGE: &str = "metadata cache image";
/// The longest image. Libraries write a few megabytes.
const MAX_NBYTES: u64 = 256 << 20;

/// An offset in the file, and the bytes that belong there.
type Entry = (u64, Vec<u8>);

/// Lays the entries of the file's image, if it has one, over the file's bytes.
pub(super) fn lay_over(pages: &mut Pages<'_>, superblock: &Superblock) -> Result<(), Error> {
    for (offset, bytes) in settle(pages, |pages| entries(pages, superblock))? {
        pages.lay_over(IMAGE, offset, &bytes)?;
    }
    Ok(())
}

fn entries(pages: &Pages<'_>, superblock: &Superblock) -> Result<Vec<Entry>, Error> {
    let Some(extension) = superblock.extension else { return Ok(Vec::new()) };
    let sizes = superblock.sizes;
    let messages = header::messages(pages, sizes, extension)?;
    let Some(message) = messages.iter().find(|message| message.kind == kind::CACHE_IMAGE) else {
        return Ok(Vec::new());
    };
    let mut cursor = message.cursor(MESSAGE);
    cursor.skip(1)?; // version
    let (address, length) = (sizes.address(&mut cursor)?, sizes.length(&mut cursor)?);
    let Some(address) = address.filter(|_| length > 0) else { return Ok(Vec::new()) };
    if length > MAX_NBYTES {
        return Err(Error::TooMany { what: "bytes of a metadata cache image", limit: MAX_NBYTES });
    }
    let bytes = pages.bytes(IMAGE, address, length)?;
    let mut cursor = Cursor::new(IMAGE, address, lookup3::checked(IMAGE, address, &bytes)?);
    cursor.signature(b"MDCI")?;
    cursor.skip(2)?; // version, flags
    sizes.length(&mut cursor)?; // its length again
    let count = cursor.u32()?;
    (0..count).map(|_| entry(&mut cursor, superblock)).collect()
}

fn entry(cursor: &mut Cursor<'_>, superblock: &Superblock) -> Result<Entry, Error> {
    let sizes = superblock.sizes;
    cursor.skip(8)?; // type, flags, ring, age, children, children that are to be written
    let parent_count = usize::from(cursor.u16()?);
    cursor.skip(4)?; // position in the order of use
    let offset = sizes.defined_address(cursor)?;
    let length = usize::try_from(sizes.length(cursor)?).unwrap_or(usize::MAX);
    cursor.skip(parent_count.saturating_mul(sizes.offset))?;
    Ok((offset, cursor.take(length)?.to_vec()))
}

/// The superblock, with the image's metadata laid over the file.
pub(super) fn start(pages: &mut Pages<'_>) -> Result<Superblock, Error> {
    let superblock = settle(pages, Superblock::read)?;
    lay_over(pages, &superblock)?;
    Ok(superblock)
}

//! The superblock: where an HDF5 file starts, its widths, its root (HDF5 File Format Specification 3.0, II.A).

use super::lookup3;
use super::sizes::{Sizes, all_ones};
use crate::cursor::Cursor;
use crate::error::Error;
use crate::pages::Pages;

const WHAT: &str = "HDF5 superblock";
const SIGNATURE: &[u8] = b"\x89HDF\r\n\x1a\n";
/// The longest superblock: version 1 with addresses of 8 bytes.
const MAX_NBYTES: u64 = 100;

/// The contents of the superblock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Superblock {
    /// Widths, and the offset that addresses count from.
    pub sizes: Sizes,
    /// The address of the root group's object header.
    pub root: u64,
    /// The address of the superblock extension's object header.
    pub extension: Option<u64>,
    /// The address of the block that describes the file's driver; versions 2 and 3 have it in the extension.
    pub driver: Option<u64>,
    /// Where the file ends if it is complete; `None` if the superblock does not say.
    pub end: Option<u64>,
}

impl Superblock {
    /// Finds the superblock and reads it.
    pub fn read(pages: &Pages<'_>) -> Result<Self, Error> {
        let start = locate(pages)?;
        let available = pages.file_length().saturating_sub(start);
        let bytes = pages.bytes(WHAT, start, available.min(MAX_NBYTES))?;
        let mut cursor = Cursor::new(WHAT, start, &bytes);
        cursor.signature(SIGNATURE)?;
        match cursor.u8()? {
            version @ (0 | 1) => old(&mut cursor, version, start),
            2 | 3 => new(&mut cursor, start, &bytes),
            version => Err(Error::unsupported(format!("HDF5 superblock version {version}"))),
        }
    }
}

/// The offset of the signature: 0, or 512, 1024, 2048 … after a user block.
pub(crate) fn locate(pages: &Pages<'_>) -> Result<u64, Error> {
    let length = SIGNATURE.len() as u64;
    let mut missed = None;
    let mut start = 0_u64;
    while start.saturating_add(length) <= pages.file_length() {
        match pages.bytes(WHAT, start, length) {
            // A signature after bytes that are not held yet only counts once those are known.
            Ok(bytes) if missed.is_none() && *bytes == *SIGNATURE => return Ok(start),
            // The signature is nearly always here. The other offsets wait until we know that it is not.
            Err(error) if error.is_not_held() && start == 0 => return Err(error),
            Err(error) if error.is_not_held() => missed = missed.or(Some(error)),
            Ok(_) | Err(_) => {}
        }
        start = if start == 0 { 512 } else { start.saturating_mul(2) };
    }
    let reason = "no HDF5 signature at offset 0, 512, 1024, 2048 …".to_string();
    Err(missed.unwrap_or(Error::UnknownFormat { reason }))
}

fn width(cursor: &mut Cursor<'_>) -> Result<usize, Error> {
    match cursor.u8()? {
        width @ (2 | 4 | 8) => Ok(usize::from(width)),
        width => Err(cursor.invalid(format!("addresses or lengths of {width} bytes"))),
    }
}

/// Versions 0 and 1. The base address is where the superblock is, whatever it says: a file may get its user block
/// later.
fn old(cursor: &mut Cursor<'_>, version: u8, base: u64) -> Result<Superblock, Error> {
    cursor.skip(4)?;
    let (offset, length) = (width(cursor)?, width(cursor)?);
    let sizes = Sizes { offset, length, base };
    // Reserved, two B-tree ranks, consistency flags; version 1 adds a rank and padding.
    cursor.skip(if version == 0 { 9 } else { 13 })?;
    let written_base = cursor.uint(offset)?;
    cursor.skip(offset)?; // free space
    let end = end(cursor, offset, written_base, base)?;
    let driver = sizes.address(cursor)?;
    cursor.skip(length)?; // name of the root's symbol table entry, as wide as a length in practice
    Ok(Superblock { sizes, root: sizes.defined_address(cursor)?, extension: None, driver, end })
}

fn new(cursor: &mut Cursor<'_>, base: u64, bytes: &[u8]) -> Result<Superblock, Error> {
    let (offset, length) = (width(cursor)?, width(cursor)?);
    let sizes = Sizes { offset, length, base };
    cursor.skip(1)?; // consistency flags
    let written_base = cursor.uint(offset)?;
    let extension = sizes.address(cursor)?;
    let end = end(cursor, offset, written_base, base)?;
    let root = sizes.defined_address(cursor)?;
    let stop = cursor.position().saturating_add(lookup3::CHECKSUM_NBYTES);
    lookup3::checked(WHAT, base, bytes.get(..stop).unwrap_or_default())?;
    Ok(Superblock { sizes, root, extension, driver: None, end })
}

/// The end-of-file address counts from the start of the file, not from the base address. It is also off by as much as
/// the superblock has moved, if the user block came later.
fn end(cursor: &mut Cursor<'_>, width: usize, written_base: u64, base: u64) -> Result<Option<u64>, Error> {
    let end = cursor.uint(width)?;
    let is_defined = end != all_ones(width);
    Ok(end.checked_sub(written_base).filter(|_| is_defined).and_then(|nbytes| nbytes.checked_add(base)))
}

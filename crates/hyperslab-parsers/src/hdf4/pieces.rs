//! Where the bytes of an object are: in one piece, in linked blocks, or in another file.

use std::collections::HashSet;

use super::descriptors::{Descriptor, small, tag};
use super::file::File;
use super::special::{self, Chunked, Coder, Special};
use crate::cursor::Cursor;
use crate::error::Error;
use crate::pieces::{Piece, Pieces};
use crate::rounds::gather;

/// The most bytes taken into the metadata: small objects, and data that chunks cannot address.
pub(super) const MAX_INLINE_NBYTES: u64 = 64 << 20;

/// What a tag and a reference number lead to.
#[derive(Debug)]
pub(super) enum Located {
    /// No object, or one without bytes.
    Nothing,
    /// The bytes themselves.
    Plain(Pieces),
    /// Encoded bytes.
    Compressed(Pieces, Coder),
    /// A chunk table, still to be read.
    Chunked(Chunked),
}

/// Where an object is.
pub(super) fn locate(file: &File<'_>, tag: u16, reference: u16) -> Result<Located, Error> {
    let Some(descriptor) = file.descriptors.get(tag, reference) else { return Ok(Located::Nothing) };
    let Some(range) = descriptor.range else { return Ok(Located::Nothing) };
    if !descriptor.is_special {
        return Ok(Located::Plain(Pieces::one(0, range)));
    }
    match special::read(file, descriptor)? {
        Special::Linked { length, block_nbytes, blocks_per_table, table } => {
            linked(file, length, block_nbytes, blocks_per_table, table).map(Located::Plain)
        }
        Special::External { range, file: name } => {
            Ok(Located::Plain(Pieces::one(file.number_of(name), range)))
        }
        Special::Compressed { reference, coder } => match locate_plain(file, tag::COMPRESSED, reference)? {
            Some(pieces) => Ok(Located::Compressed(pieces, coder)),
            None => Ok(Located::Nothing),
        },
        Special::Chunked(chunked) => Ok(Located::Chunked(chunked)),
    }
}

/// Encoded bytes are plain or in linked blocks. Anything else could nest without end.
fn locate_plain(file: &File<'_>, tag: u16, reference: u16) -> Result<Option<Pieces>, Error> {
    let descriptor = file.descriptors.get(tag, reference);
    let Some((descriptor, range)) = descriptor.and_then(|it| Some((it, it.range?))) else { return Ok(None) };
    if !descriptor.is_special {
        return Ok(Some(Pieces::one(0, range)));
    }
    match special::read(file, descriptor)? {
        Special::Linked { length, block_nbytes, blocks_per_table, table } => {
            linked(file, length, block_nbytes, blocks_per_table, table).map(Some)
        }
        Special::External { range, file: name } => Ok(Some(Pieces::one(file.number_of(name), range))),
        _ => Err(Error::unsupported("an HDF4 special element inside another")),
    }
}

/// The bytes of a small object, and their offset.
pub(super) fn element(
    file: &File<'_>,
    what: &'static str,
    tag: u16,
    reference: u16,
) -> Result<(u64, Vec<u8>), Error> {
    match locate(file, tag, reference)? {
        Located::Plain(pieces) => {
            let offset = pieces.list.first().and_then(|piece| piece.offset).unwrap_or_default();
            Ok((offset, bytes(&pieces, file, what)?))
        }
        Located::Nothing => Err(Error::invalid(what, 0, format!("object {tag}/{reference} has no bytes"))),
        _ => Err(Error::unsupported(format!("{what} that is compressed or in chunks"))),
    }
}

/// The bytes of all pieces, joined.
pub(super) fn bytes(pieces: &Pieces, file: &File<'_>, what: &'static str) -> Result<Vec<u8>, Error> {
    let nbytes = pieces.nbytes();
    if nbytes > MAX_INLINE_NBYTES {
        return Err(Error::TooMany { what: "bytes of scattered HDF4 data", limit: MAX_INLINE_NBYTES });
    }
    file.spend(nbytes)?;
    if pieces.file != 0 {
        return Err(Error::unsupported(format!("{what} in another file")));
    }
    let parts = gather(&pieces.list, |piece| match piece.offset {
        Some(offset) => file.pages.bytes(what, offset, piece.length).map(std::borrow::Cow::into_owned),
        None => Ok(vec![0; usize::try_from(piece.length).unwrap_or_default()]),
    })?;
    Ok(parts.concat())
}

/// The chain of block tables. The first block may have its own length, because it existed before the others.
fn linked(
    file: &File<'_>,
    length: u64,
    block_nbytes: u64,
    blocks_per_table: u64,
    first_table: u16,
) -> Result<Pieces, Error> {
    let mut pieces = Pieces { file: 0, list: Vec::new() };
    let (mut left, mut next, mut seen) = (length, first_table, HashSet::new());
    while left > 0 && next != 0 {
        if !seen.insert(next) {
            return Err(Error::Cycle {
                what: "a table of linked blocks, by reference number",
                offset: next.into(),
            });
        }
        let (following, blocks) = table(file, next, blocks_per_table)?;
        for block in blocks {
            let descriptor = file.descriptors.get(tag::LINKED, block).filter(|_| block != 0);
            let piece = piece(descriptor, pieces.list.is_empty(), block_nbytes, left);
            left = left.saturating_sub(piece.length);
            pieces.push(piece);
            if left == 0 {
                break;
            }
        }
        next = following;
    }
    if left > 0 {
        pieces.push(Piece { offset: None, length: left }); // reserved, never written
    }
    Ok(pieces)
}

fn table(file: &File<'_>, reference: u16, count: u64) -> Result<(u16, Vec<u16>), Error> {
    const WHAT: &str = "a table of linked blocks";
    let range = file.descriptors.get(tag::LINKED, reference).and_then(|descriptor| descriptor.range);
    let range = range.ok_or_else(|| Error::invalid(WHAT, 0, format!("there is no object {reference}")))?;
    let bytes = file.pages.bytes(WHAT, range.offset, range.length)?;
    let mut cursor = Cursor::new(WHAT, range.offset, &bytes);
    let next = small(cursor.uint_be(2)?);
    let count = count.min(cursor.remaining() as u64 / 2);
    let blocks: Result<Vec<u16>, Error> = (0..count).map(|_| cursor.uint_be(2).map(small)).collect();
    Ok((next, blocks?))
}

fn piece(descriptor: Option<Descriptor>, is_first: bool, block_nbytes: u64, left: u64) -> Piece {
    let Some(range) = descriptor.and_then(|descriptor| descriptor.range) else {
        return Piece { offset: None, length: block_nbytes.min(left) };
    };
    let length = if is_first { range.length } else { block_nbytes };
    Piece { offset: Some(range.offset), length: length.min(left) }
}

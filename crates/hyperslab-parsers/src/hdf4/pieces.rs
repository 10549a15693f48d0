//! Where the bytes of an object lie: in one piece, in linked blocks, or in another file.

use std::collections::HashSet;

use hyperslab_core::ByteRange;

use super::descriptors::{Descriptor, small, tag};
use super::special::{self, Chunked, Coder, Special};
use super::{File, groups};
use crate::cursor::Cursor;
use crate::error::Error;

/// Most bytes that are taken into the metadata: small objects, and data that no chunk address can say.
pub(super) const MAX_INLINE_NBYTES: u64 = 64 << 20;

/// Consecutive bytes of an object; without an offset, they were never written and are zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    pub offset: Option<u64>,
    pub length: u64,
}

/// The bytes of an object, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pieces {
    /// As in a manifest.
    pub file: u32,
    pub list: Vec<Piece>,
}

/// What is found behind a tag and a reference number.
#[derive(Debug)]
pub(super) enum Located {
    /// No object, or one without bytes.
    Nothing,
    /// The bytes themselves.
    Plain(Pieces),
    /// Encoded bytes.
    Compressed(Pieces, Coder),
    /// Chunks, to be looked up.
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

/// Encoded bytes are plain or in linked blocks; anything else would lead deeper for ever.
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

/// The bytes of a small object, and where they start.
pub(super) fn element(
    file: &File<'_>,
    what: &'static str,
    tag: u16,
    reference: u16,
) -> Result<(u64, Vec<u8>), Error> {
    match locate(file, tag, reference)? {
        Located::Plain(pieces) => {
            let offset = pieces.list.first().and_then(|piece| piece.offset).unwrap_or_default();
            Ok((offset, pieces.bytes(file, what)?))
        }
        Located::Nothing => Err(Error::invalid(what, 0, format!("object {tag}/{reference} has no bytes"))),
        _ => Err(Error::unsupported(format!("{what} that is compressed or in chunks"))),
    }
}

impl Pieces {
    fn one(file: u32, range: ByteRange) -> Self {
        Self { file, list: vec![Piece { offset: Some(range.offset), length: range.length }] }
    }

    /// How many bytes there are.
    pub fn nbytes(&self) -> u64 {
        self.list.iter().fold(0, |sum, piece| sum.saturating_add(piece.length))
    }

    /// The first `nbytes` of them, where there are more.
    pub fn truncated(&self, nbytes: u64) -> Self {
        let mut left = nbytes;
        let mut list = Vec::new();
        for piece in &self.list {
            let length = piece.length.min(left);
            left -= length;
            if length > 0 {
                list.push(Piece { length, ..*piece });
            }
        }
        Self { file: self.file, list }
    }

    /// The range, if it is one.
    pub fn range(&self) -> Option<ByteRange> {
        match self.list.as_slice() {
            [Piece { offset: Some(offset), length }] => ByteRange::new(*offset, *length).ok(),
            _ => None,
        }
    }

    /// All bytes, one piece behind the other.
    pub fn bytes(&self, file: &File<'_>, what: &'static str) -> Result<Vec<u8>, Error> {
        let nbytes = self.nbytes();
        if nbytes > MAX_INLINE_NBYTES {
            return Err(Error::TooMany { what: "bytes of scattered HDF4 data", limit: MAX_INLINE_NBYTES });
        }
        file.spend(nbytes)?;
        if self.file != 0 {
            return Err(Error::unsupported(format!("{what} in another file")));
        }
        let parts = groups::gather(&self.list, |piece| match piece.offset {
            Some(offset) => file.pages.bytes(what, offset, piece.length).map(std::borrow::Cow::into_owned),
            None => Ok(vec![0; usize::try_from(piece.length).unwrap_or_default()]),
        })?;
        Ok(parts.concat())
    }
}

/// The chain of tables of blocks; the first block may have its own length, for it was there before the
/// others.
fn linked(
    file: &File<'_>,
    length: u64,
    block_nbytes: u64,
    blocks_per_table: u64,
    first_table: u16,
) -> Result<Pieces, Error> {
    let mut list: Vec<Piece> = Vec::new();
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
            let piece = piece(descriptor, list.is_empty(), block_nbytes, left);
            left = left.saturating_sub(piece.length);
            push(&mut list, piece);
            if left == 0 {
                break;
            }
        }
        next = following;
    }
    if left > 0 {
        push(&mut list, Piece { offset: None, length: left }); // reserved, never written
    }
    Ok(Pieces { file: 0, list })
}

fn table(file: &File<'_>, reference: u16, count: u64) -> Result<(u16, Vec<u16>), Error> {
    const WHAT: &str = "a table of linked blocks";
    let range = file.descriptors.get(tag::LINKED, reference).and_then(|descriptor| descriptor.range);
    let range = range.ok_or_else(|| Error::invalid(WHAT, 0, format!("object {reference} is not there")))?;
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

/// Blocks that follow one another in the file are one piece.
fn push(list: &mut Vec<Piece>, piece: Piece) {
    if piece.length == 0 {
        return;
    }
    match list.last_mut() {
        Some(last) if follows(last, &piece) => last.length = last.length.saturating_add(piece.length),
        _ => list.push(piece),
    }
}

fn follows(last: &Piece, piece: &Piece) -> bool {
    match (last.offset, piece.offset) {
        (Some(offset), Some(next)) => offset.checked_add(last.length) == Some(next),
        (None, None) => true,
        _ => false,
    }
}

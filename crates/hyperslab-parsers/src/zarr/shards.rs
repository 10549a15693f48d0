//! Shards: files that hold many subchunks and an index of them (Zarr's `sharding_indexed` codec, version 1.0).

use hyperslab_core::{ByteOrder, ByteRange, ChunkGrid, Unreadable};

use super::chunk_bytes::{Chunk, ChunkBytes};
use super::files::invalid;
use super::parts::{self, Parts};
use crate::error::Error;
use crate::error::FetchError;

/// How many indexes of shards are in memory at a time.
const INDICES_TOGETHER: usize = 256;
const WHAT: &str = "a shard's index";

/// The structure of shards.
pub(super) struct Shards {
    pub subchunk_shape: Vec<u64>,
    pub order: ByteOrder,
    pub has_checksum: bool,
    pub index_at_start: bool,
    /// The structure of subchunks that are shards themselves.
    pub within: Option<Box<Shards>>,
}

impl Shards {
    /// The location of the index in a shard of this shape: whether it is at the start, and how many bytes it takes.
    pub fn index_position(&self, shard_shape: &[u64]) -> Result<(bool, u64), Unreadable> {
        let nbytes = self.index_nbytes(&self.counts(shard_shape)?);
        let nbytes = nbytes.ok_or_else(|| Unreadable::damaged("a shard of too many subchunks"))?;
        Ok((self.index_at_start, nbytes))
    }

    /// The subchunks of a shard of this shape, given all its bytes: one entry for each, `None` where there is none. Entries
    /// that lie past the end, or that together are longer than the shard, are damage.
    pub fn entries_in(&self, shard_shape: &[u64], shard: &[u8]) -> Result<Vec<Option<ByteRange>>, Error> {
        let bytes = ChunkBytes::Inline(shard);
        let counts = self.counts(shard_shape).map_err(|reason| invalid(reason.to_string()))?;
        let (offset, part) = position(self, &counts, &bytes)?;
        let ChunkBytes::Inline(index) = part else { return Ok(Vec::new()) };
        let entries = entries(self, offset, index)?;
        let mut left = shard.len() as u64;
        for range in entries.iter().flatten() {
            let is_within = bytes.part(*range).is_some();
            let rest = left.checked_sub(range.length).filter(|_| is_within);
            left = rest.ok_or_else(|| invalid("subchunks past the end of their shard, or that overlap"))?;
        }
        Ok(entries)
    }

    /// The index of a shard whose subchunks, in order, have these lengths and follow each other from `first` on.
    pub fn index_of(&self, lengths: &[Option<u64>], first: u64) -> Vec<u8> {
        let mut offset = first;
        let mut index = Vec::with_capacity(lengths.len() * 16 + 4);
        for length in lengths {
            for number in [length.map(|_| offset), *length] {
                let number = number.unwrap_or(u64::MAX);
                let is_big = self.order == ByteOrder::Big;
                index.extend(if is_big { number.to_be_bytes() } else { number.to_le_bytes() });
            }
            offset += length.unwrap_or(0);
        }
        if self.has_checksum {
            index.extend(crc32c(&index).to_le_bytes());
        }
        index
    }

    fn index_nbytes(&self, counts: &[u64]) -> Option<u64> {
        let count = counts.iter().try_fold(1_u64, |product, &count| product.checked_mul(count))?;
        count.checked_mul(16)?.checked_add(if self.has_checksum { 4 } else { 0 })
    }

    /// How many subchunks a shard has along each axis.
    fn counts(&self, shard_shape: &[u64]) -> Result<Vec<u64>, Unreadable> {
        let pairs = shard_shape.iter().zip(&self.subchunk_shape);
        let counts =
            pairs.map(|(&shard, &subchunk)| shard.is_multiple_of(subchunk).then(|| shard / subchunk));
        counts
            .collect::<Option<_>>()
            .ok_or_else(|| Unreadable::damaged("subchunks do not divide their shard"))
    }
}

/// The stored subchunks of all shards. The entries of each index are counted against `entries_left`: if shards overlap,
/// so that a few bytes would make many subchunks, they are damaged.
pub(super) fn subchunks<'h>(
    parts: &dyn Parts,
    shards: &Shards,
    outer: &ChunkGrid,
    inner: &ChunkGrid,
    chunks: &[Chunk<'h>],
    entries_left: &mut u64,
) -> Result<Vec<Chunk<'h>>, Unreadable> {
    let counts = shards.counts(outer.chunk_shape())?;
    let mut subchunks = Vec::new();
    for together in chunks.chunks(INDICES_TOGETHER) {
        for (shard, entries) in together.iter().zip(indices(parts, shards, &counts, together)) {
            let shard_index = outer.chunk_index(shard.index)?;
            let entries = entries.map_err(|error| in_shard(&shard_index, error))?;
            let left = entries_left.checked_sub(entries.len() as u64);
            *entries_left = left.ok_or_else(|| Unreadable::damaged("shards that overlap"))?;
            for (position, range) in (0_u64..).zip(entries) {
                let Some(range) = range else { continue };
                let beyond =
                    || Unreadable::damaged(format!("shard {shard_index:?}: a subchunk past its end"));
                let bytes =
                    shard.bytes.part(range).or_else(|| shard.bytes.beyond(range)).ok_or_else(beyond)?;
                let Some(chunk_index) = chunk_index(&counts, &shard_index, position) else { continue };
                // Some writers store subchunks past the array's end. These mean nothing.
                if let Ok(index) = inner.linear_index(&chunk_index) {
                    subchunks.push(Chunk { index, bytes });
                }
            }
        }
    }
    Ok(subchunks)
}

/// The error of one shard, with its index. Bytes that cannot be fetched name their file themselves.
fn in_shard(shard_index: &[u64], error: Error) -> Unreadable {
    match error.into() {
        Unreadable::Damaged { problem } => Unreadable::damaged(format!("shard {shard_index:?}: {problem}")),
        other => other,
    }
}

/// The index of a shard's subchunk in the whole array's grid of subchunks.
fn chunk_index(counts: &[u64], shard_index: &[u64], position: u64) -> Option<Vec<u64>> {
    let mut rest = position;
    let mut index = Vec::with_capacity(counts.len());
    for (&count, &shard) in counts.iter().zip(shard_index).rev() {
        index.push(shard.checked_mul(count)?.checked_add(rest.checked_rem(count)?)?);
        rest = rest.checked_div(count)?;
    }
    index.reverse();
    Some(index)
}

/// The entries of several shards' indexes, which are read together.
fn indices(
    parts: &dyn Parts,
    shards: &Shards,
    counts: &[u64],
    together: &[Chunk<'_>],
) -> Vec<Result<Vec<Option<ByteRange>>, Error>> {
    let positions: Vec<_> = together.iter().map(|shard| position(shards, counts, &shard.bytes)).collect();
    let wanted: Vec<ChunkBytes<'_>> = positions.iter().flatten().map(|(_, part)| *part).collect();
    let mut read = parts::read_each(parts, &wanted).into_iter();
    let none = || Err(Error::Fetch(FetchError("no bytes of a shard's index came".to_owned())));
    let index = |found: Result<(u64, ChunkBytes<'_>), Error>| {
        let (offset, _) = found?;
        entries(shards, offset, &read.next().unwrap_or_else(none)?)
    };
    positions.into_iter().map(index).collect()
}

/// The location of a shard's index: its offset, and its bytes.
fn position<'h>(
    shards: &Shards,
    counts: &[u64],
    shard: &ChunkBytes<'h>,
) -> Result<(u64, ChunkBytes<'h>), Error> {
    let (length, file_length) = (shards.index_nbytes(counts).unwrap_or(u64::MAX), shard.length());
    let offset = if shards.index_at_start { Some(0) } else { file_length.checked_sub(length) };
    let part = offset.and_then(|offset| Some((offset, shard.part(ByteRange { offset, length })?)));
    part.ok_or(Error::Truncated { what: WHAT, offset: 0, length, file_length })
}

fn entries(shards: &Shards, offset: u64, bytes: &[u8]) -> Result<Vec<Option<ByteRange>>, Error> {
    let (entries, stored) =
        bytes.split_at(bytes.len().saturating_sub(if shards.has_checksum { 4 } else { 0 }));
    let found = stored.iter().rev().fold(0, |value, &byte| value << 8 | u32::from(byte));
    let computed = crc32c(entries);
    if shards.has_checksum && found != computed {
        return Err(Error::Checksum { what: WHAT, offset, found, computed });
    }
    Ok(entries.chunks_exact(16).map(|entry| range(shards.order, entry)).collect())
}

/// Offset and length; both are all ones if there is no subchunk. If it lies past the end of its file, reading it will
/// report that.
fn range(order: ByteOrder, entry: &[u8]) -> Option<ByteRange> {
    let (offset, length) = entry.split_at(8);
    let (offset, length) = (number(order, offset), number(order, length));
    if offset == u64::MAX && length == u64::MAX {
        return None;
    }
    Some(ByteRange { offset, length })
}

fn number(order: ByteOrder, bytes: &[u8]) -> u64 {
    let join = |value, &byte: &u8| value << 8 | u64::from(byte);
    if order == ByteOrder::Big { bytes.iter().fold(0, join) } else { bytes.iter().rev().fold(0, join) }
}

/// CRC-32C (Castagnoli) as in RFC 3720, appendix B.4.
pub(super) fn crc32c(bytes: &[u8]) -> u32 {
    let mut table = [0_u32; 256];
    for (byte, entry) in (0_u32..).zip(&mut table) {
        *entry =
            (0..8).fold(byte, |value, _| if value & 1 == 1 { value >> 1 ^ 0x82f6_3b78 } else { value >> 1 });
    }
    let step = |value: u32, &byte: &u8| {
        let position = usize::from((value & 0xff) as u8 ^ byte);
        value >> 8 ^ table.get(position).copied().unwrap_or_default()
    };
    !bytes.iter().fold(u32::MAX, step)
}

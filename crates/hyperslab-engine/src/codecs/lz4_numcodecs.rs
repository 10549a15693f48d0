//! numcodecs' lz4: the size of the data in four little-endian bytes, then one LZ4 block.

use super::buffer::Buffer;
use super::lz4::{CODEC, decode_block};
use super::lz4_encode::{Lz4, bound};
use super::reader::Bytes;
use super::scratch::{Coded, Tools};
use crate::Error;

/// Decodes the block.
pub(super) fn decode(coded: &Coded<'_>, out: &mut Buffer, _: &mut Tools) -> Result<usize, Error> {
    let mut input = Bytes::new(CODEC, coded.bytes);
    let nbytes = coded.size.admit_claim(CODEC, u64::from(input.u32_le()?))?;
    decode_block(CODEC, input.rest(), out.space(nbytes)?)?;
    Ok(nbytes)
}

/// Encodes; `None` above the largest size that it can record.
pub(super) fn encode(bytes: &[u8], lz4: &mut Lz4) -> Option<Vec<u8>> {
    let nbytes = i32::try_from(bytes.len()).ok()?;
    Some([&nbytes.to_le_bytes()[..], lz4.encode(bytes, 1, bound(bytes.len()))?].concat())
}

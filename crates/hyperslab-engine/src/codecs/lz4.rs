//! LZ4 blocks in the framing of registered filter 32004.

use super::buffer::Buffer;
use super::lz4_encode::{Lz4, bound};
use super::reader::Bytes;
use super::scratch::{Coded, Tools};
use crate::Error;

pub(super) const CODEC: &str = "lz4";

/// The sizes of the data and of a block, big-endian; then blocks, each after its encoded size. A block of full size is
/// stored plain.
pub(super) fn decode(coded: &Coded<'_>, out: &mut Buffer, _: &mut Tools) -> Result<usize, Error> {
    let Coded { bytes: input, size, .. } = *coded;
    let mut input = Bytes::new(CODEC, input);
    let nbytes = size.admit_claim(CODEC, input.u64_be()?)?;
    let block_nbytes = input.u32_be()? as usize;
    if block_nbytes == 0 && nbytes != 0 {
        return Err(Error::Damaged { codec: CODEC, problem: "blocks of 0 bytes" });
    }
    for block in out.space(nbytes)?.chunks_mut(block_nbytes.max(1)) {
        let encoded_nbytes = input.u32_be()? as usize;
        let encoded = input.take(encoded_nbytes)?;
        if encoded.len() == block.len() {
            block.copy_from_slice(encoded);
        } else {
            decode_block(CODEC, encoded, block)?;
        }
    }
    Ok(nbytes)
}

/// One LZ4 block. It must fill `out`.
pub(super) fn decode_block(codec: &'static str, encoded: &[u8], out: &mut [u8]) -> Result<(), Error> {
    let expected = out.len();
    match lz4_flex::block::decompress_into(encoded, out) {
        Ok(nbytes) if nbytes == expected => Ok(()),
        Ok(found) => Err(Error::DecodedSize { codec, expected, found }),
        Err(lz4_flex::block::DecompressError::OutputTooSmall { .. }) => {
            Err(Error::DecodedBeyond { codec, limit: expected })
        }
        Err(_) => Err(Error::Damaged { codec, problem: "not a complete LZ4 block" }),
    }
}

/// Encodes in the framing of HDF5's filter, in blocks of this many bytes; 0 stands for one block.
pub(super) fn encode(bytes: &[u8], block_nbytes: usize, lz4: &mut Lz4) -> Option<Vec<u8>> {
    let most = if block_nbytes == 0 { 1 << 30 } else { block_nbytes };
    let block_nbytes = most.min(bytes.len()).max(1);
    let mut out = (bytes.len() as u64).to_be_bytes().to_vec();
    out.extend(u32::try_from(block_nbytes).ok()?.to_be_bytes());
    for block in bytes.chunks(block_nbytes) {
        let encoded = lz4.encode(block, 1, bound(block.len()))?;
        let encoded = if encoded.len() < block.len() { encoded } else { block };
        out.extend(u32::try_from(encoded.len()).ok()?.to_be_bytes());
        out.extend(encoded);
    }
    Some(out)
}

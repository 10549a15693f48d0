//! LZ4 blocks in two framings: registered filter 32004's, and numcodecs' lz4.

use super::buffer::{Buffer, Size};
use super::reader::Bytes;
use crate::Error;

const CODEC: &str = "lz4";

/// The sizes of the data and of a block, big-endian; then blocks, each after its encoded size. A block of full size is
/// stored plain.
pub(super) fn decode_hdf5(input: &[u8], size: Size, out: &mut Buffer) -> Result<usize, Error> {
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

/// The size, little-endian, then one block.
pub(super) fn decode_numcodecs(input: &[u8], size: Size, out: &mut Buffer) -> Result<usize, Error> {
    let mut input = Bytes::new(CODEC, input);
    let nbytes = size.admit_claim(CODEC, u64::from(input.u32_le()?))?;
    decode_block(CODEC, input.rest(), out.space(nbytes)?)?;
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

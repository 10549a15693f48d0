//! DEFLATE in zlib's framing (RFC 1950): HDF5's filter 1, numcodecs' zlib.

use libdeflater::{DecompressionError, Decompressor};

use super::buffer::Buffer;
use super::scratch::{Coded, Tools};
use crate::Error;

pub(super) const CODEC: &str = "deflate";

/// Decodes one stream. Ignores bytes after its end, as zlib does.
pub(super) fn decode(coded: &Coded<'_>, out: &mut Buffer, tools: &mut Tools) -> Result<usize, Error> {
    let Coded { bytes: input, size, .. } = *coded;
    let nbytes =
        inflate_into(input, out.space(size.limit())?, &mut tools.inflate)?.ok_or(size.exceeded(CODEC))?;
    size.admit(CODEC, nbytes)
}

/// Decodes into `out`. Returns how many bytes, or `None` if they do not fit.
pub(super) fn inflate_into(
    input: &[u8],
    out: &mut [u8],
    inflate: &mut Decompressor,
) -> Result<Option<usize>, Error> {
    match inflate.zlib_decompress(input, out) {
        Ok(nbytes) => Ok(Some(nbytes)),
        Err(DecompressionError::InsufficientSpace) => Ok(None),
        Err(DecompressionError::BadData) => Err(Error::Damaged {
            codec: CODEC,
            problem: "not a complete zlib stream with a correct checksum",
        }),
    }
}

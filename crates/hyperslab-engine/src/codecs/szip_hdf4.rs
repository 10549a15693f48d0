//! HDF4's coder 5: szip's pixels, since 4.2r1 after a header.

use super::buffer::Buffer;
use super::reader::Bytes;
use super::scratch::{Coded, Tools};
use super::szip::{CODEC, decode_pixels};
use crate::Error;

/// Decodes a chunk. The parameters are those of szip, and whether there is a header: a byte that tells whether the data are
/// encoded, and how many bytes follow.
pub(super) fn decode(coded: &Coded<'_>, out: &mut Buffer, tools: &mut Tools) -> Result<usize, Error> {
    let Coded { bytes: input, size, .. } = *coded;
    let [options, pixel_nbits, block_pixels, line_pixels, has_header] = coded.numbers(CODEC)?;
    let layout = [options, pixel_nbits, block_pixels, line_pixels];
    let nbytes = size.known(CODEC)?;
    let mut input = Bytes::new(CODEC, input);
    if has_header == 0 {
        return decode_pixels(layout, input.rest(), nbytes, out, tools);
    }
    let is_plain = input.byte()? == 1;
    let encoded_nbytes = usize::try_from(input.u32_be()?).unwrap_or(usize::MAX);
    let encoded = input.take(encoded_nbytes)?;
    if is_plain {
        size.admit(CODEC, encoded_nbytes)?;
        out.space(nbytes)?.copy_from_slice(encoded);
        return Ok(nbytes);
    }
    decode_pixels(layout, encoded, nbytes, out, tools)
}

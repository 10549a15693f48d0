//! HDF4's run-length coding (HDF Specification, "run-length encoding" of compressed elements).
//!
//! Each step starts with a byte. If its high bit is set, one byte follows that is repeated; otherwise plain bytes
//! follow.

use super::buffer::Buffer;
use super::reader::Bytes;
use super::scratch::{Coded, Tools};
use crate::Error;

const CODEC: &str = "run-length";
const RUN: u8 = 0x80;
/// Shorter runs are not worth encoding.
const LEAST_RUN: usize = 3;

/// Decodes as many bytes as `size` allows. Nothing marks the end of the data.
pub(super) fn decode(coded: &Coded<'_>, out: &mut Buffer, _: &mut Tools) -> Result<usize, Error> {
    let Coded { bytes: input, size, .. } = *coded;
    let nbytes = size.known(CODEC)?;
    let mut input = Bytes::new(CODEC, input);
    let mut rest = out.space(nbytes)?;
    while !rest.is_empty() {
        let control = input.byte()?;
        let count = usize::from(control & !RUN) + if control & RUN == 0 { 1 } else { LEAST_RUN };
        let (now, later) = rest.split_at_mut_checked(count).ok_or(size.exceeded(CODEC))?;
        if control & RUN == 0 {
            now.copy_from_slice(input.take(count)?);
        } else {
            now.fill(input.byte()?);
        }
        rest = later;
    }
    Ok(nbytes)
}

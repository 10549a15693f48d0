//! DEFLATE in gzip's framing (RFC 1952), with one or several members: Zarr's gzip.

use std::io::Read as _;

use super::buffer::{Buffer, Size};
use super::scratch::{Coded, Tools};
use crate::Error;

const CODEC: &str = "gzip";

/// Decodes all members.
pub(super) fn decode(coded: &Coded<'_>, out: &mut Buffer, tools: &mut Tools) -> Result<usize, Error> {
    let Coded { bytes: input, size, .. } = *coded;
    let space = out.space(size.limit())?;
    if let Size::Exact(expected) = size {
        // There is nearly always one member, and libdeflate is fast. It does not report whether more members follow. If
        // the first one has the right size, further ones could only be empty.
        if tools.inflate.gzip_decompress(input, space) == Ok(expected) {
            return Ok(expected);
        }
    }
    let nbytes = read_members(input, space)?.ok_or(size.exceeded(CODEC))?;
    size.admit(CODEC, nbytes)
}

/// Decodes member by member. Returns how many bytes, or `None` if they do not fit.
fn read_members(input: &[u8], out: &mut [u8]) -> Result<Option<usize>, Error> {
    let damaged =
        |_| Error::Damaged { codec: CODEC, problem: "not complete gzip members with correct checksums" };
    let mut members = flate2::read::MultiGzDecoder::new(input);
    let mut filled = 0;
    while let Some(space) = out.get_mut(filled..).filter(|space| !space.is_empty()) {
        match members.read(space).map_err(damaged)? {
            0 => return Ok(Some(filled)),
            nbytes => filled += nbytes,
        }
    }
    let more = members.read(&mut [0]).map_err(damaged)?;
    Ok((more == 0).then_some(filled))
}

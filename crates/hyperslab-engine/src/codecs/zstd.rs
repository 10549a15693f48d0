//! One or several Zstandard frames (RFC 8878) of known or unknown size: registered filter 32015, Zarr's zstd.

use zstd_safe::{CCtx, DCtx};

use super::buffer::Buffer;
use super::scratch::{Coded, Tools};
use crate::Error;

const CODEC: &str = "zstd";

/// Decodes all frames.
pub(super) fn decode(coded: &Coded<'_>, out: &mut Buffer, tools: &mut Tools) -> Result<usize, Error> {
    let Coded { bytes: input, size, .. } = *coded;
    let nbytes =
        decode_into(input, out.space(size.limit())?, &mut tools.zstd)?.ok_or(size.exceeded(CODEC))?;
    size.admit(CODEC, nbytes)
}

/// Decodes into `out`. Returns how many bytes, or `None` if they do not fit.
pub(super) fn decode_into(
    input: &[u8],
    out: &mut [u8],
    context: &mut Option<DCtx<'static>>,
) -> Result<Option<usize>, Error> {
    if context.is_none() {
        *context = DCtx::try_create();
    }
    let context = context.as_mut().ok_or(Error::OutOfMemory { nbytes: size_of::<DCtx<'static>>() })?;
    match context.decompress(out, input) {
        Ok(nbytes) => Ok(Some(nbytes)),
        Err(code) if zstd_safe::get_error_name(code).contains("too small") => Ok(None),
        Err(_) => Err(Error::Damaged { codec: CODEC, problem: "not a complete Zstandard frame" }),
    }
}

/// Encodes one frame, which records its size; `None` if memory does not suffice.
pub(super) fn encode(bytes: &[u8], level: i32, context: &mut Option<CCtx<'static>>) -> Option<Vec<u8>> {
    if context.is_none() {
        *context = CCtx::try_create();
    }
    let mut out = vec![0; zstd_safe::compress_bound(bytes.len())];
    let nbytes = context.as_mut()?.compress(out.as_mut_slice(), bytes, level).ok()?;
    out.truncate(nbytes);
    Some(out)
}

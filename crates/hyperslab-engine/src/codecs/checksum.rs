//! A checksum before or after the data, in four little-endian bytes: numcodecs' crc32, adler32 and crc32c.

use hyperslab_core::Checksum;

use super::buffer::{Buffer, Size};
use super::scratch::Step;
use crate::Error;

/// Verifies the checksum. Data after the checksum are copied; data before it stay where they are.
pub(super) fn decode(
    sum: Checksum,
    at_start: bool,
    input: &[u8],
    size: Size,
    out: &mut Buffer,
) -> Result<Step, Error> {
    let codec = sum.name();
    let parts = if at_start {
        input.split_first_chunk::<4>()
    } else {
        input.split_last_chunk::<4>().map(|(data, stored)| (stored, data))
    };
    let (stored, data) = parts.ok_or(Error::Damaged { codec, problem: "shorter than its checksum" })?;
    let stored = u32::from_le_bytes(*stored);
    let computed = match sum {
        Checksum::Crc32 => libdeflater::crc32(data),
        Checksum::Adler32 => libdeflater::adler32(data),
        Checksum::Crc32c => ::crc32c::crc32c(data),
    };
    if stored != computed {
        return Err(Error::Checksum { codec, stored, computed });
    }
    if !at_start {
        return Ok(Step::Kept(data.len()));
    }
    let nbytes = size.admit(codec, data.len())?;
    out.space(nbytes)?.copy_from_slice(data);
    Ok(Step::Made(nbytes))
}

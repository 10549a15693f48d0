//! Checksums of four little-endian bytes before or after the data: HDF5's filter 3, Zarr's crc32c, and numcodecs' crc32,
//! adler32 and crc32c.

use hyperslab_core::{Checksum, fletcher32, fletcher32_is_right};

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
    if !is_right(sum, data, stored) {
        return Err(Error::Checksum { codec, stored, computed: compute(sum, data) });
    }
    if !at_start {
        return Ok(Step::Kept(data.len()));
    }
    let nbytes = size.admit(codec, data.len())?;
    out.space(nbytes)?.copy_from_slice(data);
    Ok(Step::Made(nbytes))
}

/// The data, followed by their checksum.
pub(super) fn encode(sum: Checksum, data: &[u8]) -> Vec<u8> {
    [data, &compute(sum, data).to_le_bytes()].concat()
}

/// The CRC-32C of bytes.
pub fn crc32c(data: &[u8]) -> u32 {
    ::crc32c::crc32c(data)
}

fn is_right(sum: Checksum, data: &[u8], stored: u32) -> bool {
    if sum == Checksum::Fletcher32 { fletcher32_is_right(data, stored) } else { compute(sum, data) == stored }
}

fn compute(sum: Checksum, data: &[u8]) -> u32 {
    match sum {
        Checksum::Crc32 => libdeflater::crc32(data),
        Checksum::Adler32 => libdeflater::adler32(data),
        Checksum::Crc32c => crc32c(data),
        Checksum::Fletcher32 => fletcher32(data),
    }
}

//! CRC-32C after the data, in four little-endian bytes: Zarr's crc32c.

use crate::Error;

const CODEC: &str = "crc32c";

/// Verifies the checksum. Returns the length of the data before it.
pub(super) fn verify(input: &[u8]) -> Result<usize, Error> {
    let (data, stored) = input
        .split_last_chunk::<4>()
        .ok_or(Error::Damaged { codec: CODEC, problem: "shorter than its checksum" })?;
    let stored = u32::from_le_bytes(*stored);
    let computed = ::crc32c::crc32c(data);
    if stored == computed { Ok(data.len()) } else { Err(Error::Checksum { codec: CODEC, stored, computed }) }
}

/// The data, followed by their checksum.
pub(super) fn encode(data: &[u8]) -> Vec<u8> {
    [data, &::crc32c::crc32c(data).to_le_bytes()].concat()
}

/// The checksum of bytes.
pub fn checksum(data: &[u8]) -> u32 {
    ::crc32c::crc32c(data)
}

//! HDF5's checksum after the data, in four little-endian bytes: filter 3.

use hyperslab_core::{fletcher32, fletcher32_is_right};

use crate::Error;

const CODEC: &str = "fletcher32";

/// Verifies the checksum. Returns the length of the data before it.
pub(super) fn verify(input: &[u8]) -> Result<usize, Error> {
    let (data, stored) = input
        .split_last_chunk::<4>()
        .ok_or(Error::Damaged { codec: CODEC, problem: "shorter than its checksum" })?;
    let stored = u32::from_le_bytes(*stored);
    if fletcher32_is_right(data, stored) {
        return Ok(data.len());
    }
    Err(Error::Checksum { codec: CODEC, stored, computed: fletcher32(data) })
}

/// The data, followed by their checksum.
pub(super) fn encode(data: &[u8]) -> Vec<u8> {
    [data, &fletcher32(data).to_le_bytes()].concat()
}

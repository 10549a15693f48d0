//! Numbers that the engine reads by and the cost model prices by.

/// Bytes of decoded chunks that an open archive keeps, unless it is told otherwise.
pub const CHUNK_CACHE_NBYTES: u64 = 32 << 20;
/// Requests in flight that a host far away is sent to begin with; few reads are spread over as many batches.
pub const FIRST_IN_FLIGHT: usize = 32;

//! Defaults that the engine and the cost model share.

/// The default size in bytes of an open archive's cache of decoded chunks.
pub const CHUNK_CACHE_NBYTES: u64 = 32 << 20;
/// How many requests a remote host gets at a time in the beginning. Few reads are spread over as many batches.
pub const FIRST_IN_FLIGHT: usize = 32;

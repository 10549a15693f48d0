//! The variables of the cost model, by the symbols of the paper (Kang et al., tables I and II).

/// What an access, or a sequence of accesses, makes a library and its device do. Sizes are in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Variables {
    /// Memory copies: runs that are contiguous in a chunk and in the caller's buffer.
    pub n_memcpy: u64,
    /// Bytes that they copy.
    pub s_memcpy: u64,
    /// Reads that the software cache (the page cache) serves: whole chunks, or runs if the library reads runs.
    pub n_cache: u64,
    /// Stored bytes of these reads.
    pub s_cache: u64,
    /// Reads that the device serves.
    pub n_rdisk: u64,
    /// Stored bytes of these reads. If the library reads runs: bytes of the pages that were not cached. With
    /// read-ahead: all bytes that the device brings. For remote files: the bytes of the requests.
    pub s_rdisk: u64,
    /// Device reads that do not start where the one before ended. With read-ahead: requests that are waited for,
    /// including index blocks. For remote files: rounds of requests.
    pub n_rseek: u64,
    /// Bytes that these bring. Each is a single request, with nothing else in flight.
    pub s_rseek: u64,
    /// Index blocks read.
    pub n_rindex: u64,
    /// Bytes of these blocks.
    pub s_rindex: u64,
    /// Writes of chunks, or of runs if the library writes runs.
    pub n_wdisk: u64,
    /// Stored bytes of these writes.
    pub s_wdisk: u64,
    /// Writes that do not start where the one before ended.
    pub n_wseek: u64,
    /// Index blocks written.
    pub n_windex: u64,
    /// Read requests to data servers, by one process of a parallel program.
    pub n_rrequest: u64,
    /// Bytes that they ask for.
    pub s_rrequest: u64,
    /// Write requests to data servers, by one process of a parallel program.
    pub n_wrequest: u64,
    /// Bytes that they carry.
    pub s_wrequest: u64,
    /// Chunks touched. Each costs a library some time, whatever else happens.
    pub n_chunk: u64,
    /// Files opened for reading.
    pub n_open: u64,
    /// Attempts to open a file that does not exist.
    pub n_absent: u64,
    /// Files rewritten and renamed.
    pub n_create: u64,
    /// Bytes that codecs produce when decoding.
    pub s_decode: u64,
    /// Bytes that codecs take in when encoding.
    pub s_encode: u64,
    /// Bytes that read-ahead asked the device for, which have to be there by now: an access reads them for the first
    /// time, or waits for something that was asked for after them. What remains of `s_rdisk - s_rseek` nobody waits for.
    pub s_rneed: u64,
}

/// Name and value of each variable.
macro_rules! each_variable {
    ($($name:ident),*) => {
        impl Variables {
            /// Their names, in a fixed order: the paper's first.
            pub const NAMES: &[&str] = &[$(stringify!($name)),*];

            /// Their values, in the order of `NAMES`.
            pub fn values(&self) -> Vec<u64> {
                vec![$(self.$name),*]
            }
        }

        impl std::ops::AddAssign for Variables {
            fn add_assign(&mut self, other: Self) {
                $(self.$name = self.$name.saturating_add(other.$name);)*
            }
        }
    };
}

each_variable!(
    n_memcpy, s_memcpy, n_cache, s_cache, n_rdisk, s_rdisk, n_rseek, s_rseek, n_rindex, s_rindex, n_wdisk,
    s_wdisk, n_wseek, n_windex, n_rrequest, s_rrequest, n_wrequest, s_wrequest, n_chunk, n_open, n_absent,
    n_create, s_decode, s_encode, s_rneed
);

/// Formula 8, `cf`: how many of `processes` use one data server at a time, if the file is spread over `servers`. `None`
/// without processes or servers.
#[allow(clippy::cast_precision_loss)] // 53 bits are enough for a mean
pub fn contention(processes: u64, servers: u64) -> Option<f64> {
    (processes > 0 && servers > 0).then(|| 1.0 + (processes - 1) as f64 / servers as f64)
}

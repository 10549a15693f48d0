//! The variables of the cost model, by the symbols of the paper (Kang et al., tables I and II).

/// What one access, or a sequence of them, makes a library and its device do. Sizes are bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Variables {
    /// Memory copy operations: runs consecutive in a chunk and in the caller's buffer.
    pub n_memcpy: u64,
    /// Bytes that they copy.
    pub s_memcpy: u64,
    /// Reads that the software cache (the page cache) serves: whole chunks, or runs where a library reads runs.
    pub n_cache: u64,
    /// Stored bytes of these.
    pub s_cache: u64,
    /// Reads that the device serves.
    pub n_rdisk: u64,
    /// Stored bytes of these; where a library reads runs, those of the pages that were not cached; where read-ahead is
    /// followed, all bytes that the device brings.
    pub s_rdisk: u64,
    /// Device reads that do not start where the one before ended; where read-ahead is followed, requests that are waited
    /// for, of index blocks too.
    pub n_rseek: u64,
    /// Bytes that these bring: read by one request, nothing else meanwhile.
    pub s_rseek: u64,
    /// Index blocks read.
    pub n_rindex: u64,
    /// Bytes of these.
    pub s_rindex: u64,
    /// Writes of chunks, or of runs where a library writes runs.
    pub n_wdisk: u64,
    /// Stored bytes of these.
    pub s_wdisk: u64,
    /// Writes that do not start where the one before ended.
    pub n_wseek: u64,
    /// Index blocks written.
    pub n_windex: u64,
    /// Data server read requests of one process of a parallel program.
    pub n_rrequest: u64,
    /// Bytes that they ask for.
    pub s_rrequest: u64,
    /// Data server write requests of one process of a parallel program.
    pub n_wrequest: u64,
    /// Bytes that they bring.
    pub s_wrequest: u64,
    /// Chunks touched: what costs a library time of its own, whatever else happens.
    pub n_chunk: u64,
    /// Files opened to be read.
    pub n_open: u64,
    /// Openings that find no file.
    pub n_absent: u64,
    /// Files written anew and renamed.
    pub n_create: u64,
    /// Bytes that come out of codecs.
    pub s_decode: u64,
    /// Bytes that go into codecs.
    pub s_encode: u64,
}

/// Name and value of each variable.
macro_rules! each_variable {
    ($($name:ident),*) => {
        impl Variables {
            /// Their names, in a fixed order: those of the paper first.
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
    n_create, s_decode, s_encode
);

/// Formula 8, `cf`: how many of `processes` use a data server at a time, of `servers` that the file lies on.
/// `None` where there is no process or no server.
#[allow(clippy::cast_precision_loss)] // a mean: 53 bits do
pub fn contention(processes: u64, servers: u64) -> Option<f64> {
    (processes > 0 && servers > 0).then(|| 1.0 + (processes - 1) as f64 / servers as f64)
}

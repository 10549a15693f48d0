//! Executes reads: fetches the bytes that a selection needs, decodes them, and puts elements where they belong.
//!
//! | verb or noun | home |
//! |---|---|
//! | [`execute`] | executes a plan with several threads |
//! | [`Store`], [`Stores`] | where bytes are: one file each in `stores/` |
//! | [`codecs::decode`] | decodes one chunk through its chain of codecs |
//! | [`ChunkCache`] | decoded chunks that were read only in part |
//! | [`lock_briefly`] | a lock that nobody waits for, as after a fork nobody may hold it |
//! | [`ValueHeap`] | values of variable length, which elements point to |
//!
//! `unsafe` is only in `scatter.rs` (threads share one output), `stream_copy.rs` (vector stores) and the SIMD code of
//! `codecs/`.

mod brief_lock;
mod chunk_cache;
pub mod codecs;
mod error;
mod execute;
mod fill;
mod plain;
mod points;
mod read_error;
mod scatter;
mod stores;
mod stream_copy;
mod threads;
mod tidy;
mod values;

pub use brief_lock::lock_briefly;
pub use chunk_cache::ChunkCache;
pub use error::Error;
pub use execute::{Execution, MAX_CHUNK_NBYTES, execute};
pub use points::read_points;
pub use read_error::ReadError;
pub use stores::{
    AsFarStore, ByteCache, Expected, FarStore, FileStore, FileVersion, GivenStore, Identity, Location,
    MemoryStore, ObjectEnd, Opener, OtherFile, ROUND_PART_NBYTES, RangeReader, RemoteFolder, RemoteOptions,
    RemoteStatistics, RemoteStore, Stop, Store, Stores, URL_SCHEMES, UrlParts, WebUrl, remote_statistics,
};
pub use threads::{Kept, default_thread_count, in_shares, with_helpers};
pub use tidy::{is_tidy, tidy};
pub use values::ValueHeap;

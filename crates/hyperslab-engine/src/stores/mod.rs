//! Stores: where the bytes of files are. One file each, behind one contract.

mod as_far;
mod contract;
mod file;
mod file_version;
mod given;
mod held;
mod padded;
mod remote;
mod table;

pub use as_far::AsFarStore;
pub use contract::{FarStore, ROUND_PART_NBYTES, Stop, Store};
pub use file::FileStore;
pub use file_version::FileVersion;
pub use given::{GivenStore, MemoryStore, RangeReader};
pub use remote::{
    ByteCache, Expected, Identity, Location, ObjectEnd, RemoteFolder, RemoteOptions, RemoteStatistics,
    RemoteStore, URL_SCHEMES, UrlParts, WebUrl, remote_statistics,
};
pub(crate) use table::Found;
pub use table::{Opener, OtherFile, Stores};

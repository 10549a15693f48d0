//! What accesses cost, in numbers: the variables of the cost model of Kang et al. (tables I and II), counted by
//! simulating a library, its caches and the page cache. Pure: no I/O, no clock, no Python.
//!
//! A [`CacheState`] is an array in a layout ([`Stored`]) that a [`Library`] has open. Each access returns its
//! [`Variables`] and shows the requests behind them to a [`Watch`]. The contents of the caches remain for the next
//! access. The geometry (which chunks, how many runs) comes from `hyperslab-core`.
//!
//! | module | simulates |
//! |---|---|
//! | `hdf5` | HDF5: `chunk_cache`, the direct path, deferred writes, `index` (`btree`, `btree2`, `tables`) |
//! | `zarr` | zarr-python 3: a file for each chunk or shard |
//! | `flat` | one array in one piece: netCDF-3, FITS, npy; HDF5 without chunks, with its `sieve` buffer |
//! | `hyperslab_engine` | our own engine: the requests of its plan |
//! | `paper` | algorithm 1 of the paper as printed |
//! | `device` | the page cache, and what reaches the device |
//! | `reuse` | caches of all sizes at once, by how far apart the touches of a chunk are |
//! | `read_ahead` | what the system reads of one file beyond what is asked for |
//! | `server_queues` | processes that wait for servers, request by request |

mod access;
mod chunk_cache;
mod chunk_locations;
mod device;
mod error;
mod flat;
mod hdf5;
mod hyperslab_engine;
mod index;
mod lru;
mod operation;
mod paper;
mod read_ahead;
mod request;
mod reuse;
mod server_queues;
mod sieve;
mod stored;
mod variables;
mod zarr;

pub use access::{CacheState, Library};
pub use chunk_cache::ChunkCacheSize;
pub use device::PageCacheSize;
pub use error::ModelError;
pub use hdf5::Hdf5;
pub use hyperslab_engine::HyperslabEngine;
pub use index::kind::IndexKind;
pub use operation::Operation;
pub use paper::PaperLibrary;
pub use request::{Purpose, Request, Watch};
pub use reuse::reuse_distances;
pub use server_queues::{ServedRequests, ServerRequests};
pub use stored::{Chunks, Stored};
pub use variables::{Variables, contention};
pub use zarr::{Joining, Zarr};

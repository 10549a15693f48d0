//! Archives: local and remote files of every format, opened, and their arrays read.
//!
//! ```text
//! path or URL ─► Archive: format, tree, stores ─► ArchiveArray ─► WholeArray: segments, sources found ─► plan ─► bytes
//! ```
//!
//! | noun | home |
//! |---|---|
//! | [`Archive`]; [`OpenOptions`]; [`FileIdentity`] | what is open: `archive`, `open_local`, `open_far` |
//! | [`ArchiveArray`]; [`ArrayPlan`]; [`ArraySelection`] | one array of it: `array`, `heap`; `array_plan`; `reading` |
//! | [`WholeArray`] | an array whose segments are known: `whole_array`, `virtual_array`, `lazy_indexes`, `lazy_tables` |
//! | [`SourceResolver`] | the files that a document names, and whether it may: `source_resolver`, `hdf5_search` |
//! | [`CombinedArray`] | several archives as one: `combining` |
//! | [`save_references`] | where chunks are, written into a file of its own: `saving`; read again by `open_references` |
//! | [`embedded_index`] | what opening an HDF5 file takes, kept at its own end: `embedded` |
//! | [`encode_slab`] | encodes the chunks of a part of an array, on their way into a new file: `chunk_encoding` |
//! | [`hash_chunks`], [`gather_chunks`], [`encoded_chunks`], [`ChunkTable`] | chunks on their way into a file of versions: `chunk_hashes`, `chunk_gathering`, `chunk_table` |
//! | [`same_stored`] | which chunks two files store with the same bytes: `stored_equality` |
//! | [`ZarrArray`] | a Zarr array that others write to: `zarr_array`, `sought` |
//! | [`write_keys`] | writes its chunks and shards: `zarr_writing`, to where `key_targets` says |
//!
//! Callers implement small traits where their own code is needed: [`InterruptCheck`], [`UrlResolver`],
//! [`BetweenCommits`], [`TableReader`]. Nothing here knows Python. Archives share no state, except what belongs to the
//! process: threads, connections, open files.

mod archive;
mod array;
mod array_plan;
mod chunk_encoding;
mod chunk_gathering;
mod chunk_hashes;
mod chunk_table;
mod combining;
mod desk;
mod dmrpp;
mod embedded;
mod error;
mod format;
mod hdf5_filters;
mod hdf5_objects;
mod hdf5_search;
mod heap;
mod interrupt;
mod key_targets;
mod lazy_indexes;
mod lazy_tables;
mod open_far;
mod open_given;
mod open_local;
mod open_references;
mod opening;
mod reading;
mod referenced;
mod resolved;
mod role;
mod saving;
mod sought;
mod source_resolver;
mod sources;
mod stored_equality;
mod tree_path;
mod url;
mod virtual_array;
mod whole_array;
mod zarr_array;
mod zarr_writing;

pub use archive::Archive;
pub use array::ArchiveArray;
pub use array_plan::ArrayPlan;
pub use chunk_encoding::{EncodeError, EncodedChunk, Encoding, Slab, encode_slab};
pub use chunk_gathering::{encoded_chunks, gather_chunks};
pub use chunk_hashes::{ChunkSource, DIGEST_NBYTES, Digest, HashError, TakeHashes, hash_chunks};
pub use chunk_table::ChunkTable;
pub use combining::{CombinedArray, CombinedGroup, Conversion, find_counterparts};
pub use embedded::embedded_index;
pub use error::{CallerError, Error};
pub use format::Format;
pub use hdf5_filters::hdf5_filters;
pub use interrupt::{InterruptCheck, NeverInterrupted};
pub use key_targets::{FolderTarget, GivenTarget};
pub use lazy_indexes::BetweenCommits;
pub use lazy_tables::TableReader;
pub use open_far::RemoteFile;
pub use open_given::read_metadata;
pub use open_local::{CHUNK_CACHE_NBYTES, OpenOptions};
pub use opening::Opening;
pub use reading::{ArraySelection, ReadOptions};
pub use saving::{SaveError, save_references};
pub use sought::Keys;
pub use source_resolver::{SourceResolver, UrlResolver};
pub use stored_equality::{StoredPairs, same_stored};
pub use url::shown;
pub use whole_array::WholeArray;
pub use zarr_array::ZarrArray;
pub use zarr_writing::{KeyEncoding, KeyPart, KeyTarget, Values, WriteError, is_writable, write_keys};

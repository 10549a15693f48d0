//! Codecs: one file each, and one table of all ([`step::step`]).
//!
//! A chain is in encoding order and is decoded from its last codec to its first. Two buffers of the thread's
//! [`Scratch`] take turns, so nothing is allocated from chunk to chunk. Input may be hostile: every size is bounded by
//! the chunk's decoded size before memory is allocated.

mod bitshuffle;
mod blosc;
mod blosc2;
mod blosc_encode;
mod blosclz;
mod buffer;
mod bzip2;
mod chain;
mod checksum;
mod compress;
mod convert;
mod crc32c;
mod delta;
mod encode;
mod fixedscaleoffset;
mod fletcher32;
mod gzip;
mod lz4;
mod lzf;
mod nbit;
mod nbit_hdf4;
mod numbers;
mod packbits;
mod planes;
mod plio;
mod quantize;
mod reader;
mod rice;
mod run_length;
mod scaleoffset;
mod scratch;
mod shuffle;
#[cfg(target_arch = "x86_64")]
mod shuffle_x86;
mod skipping_huffman;
mod step;
mod szip;
mod values;
mod zlib;
mod zstd;

pub use chain::{Decoded, decode};
pub use compress::{Blosc, Inner};
pub use crc32c::checksum as crc32c;
pub use encode::{Encoder, Filter, encode};
pub use lzf::encode as lzf;
pub use scratch::Scratch;
pub use shuffle::{Shuffled, unshuffle_into, unshuffle_whole};
pub(crate) use values::StoredValues;

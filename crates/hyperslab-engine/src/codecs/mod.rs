//! Codecs: one file each. `hyperslab_core::codec_table!` names those that turn bytes into bytes; [`step::step`] has all.
//!
//! A file of the table has a function `decode`, which takes what is [`scratch::Coded`], the buffer to fill and the thread's
//! [`scratch::Tools`]. It says how many bytes it made, or gives a [`scratch::Step`].
//!
//! A chain is in encoding order and is decoded from its last codec to its first. Two buffers of the thread's
//! [`Scratch`] take turns, so nothing is allocated from chunk to chunk. Input may be hostile: every size is bounded by
//! the chunk's decoded size before memory is allocated.

mod blosc_encode;
mod blosclz;
mod blosclz_encode;
mod buffer;
mod chain;
mod checksum;
mod compress;
mod convert;
mod decoders;
mod delta;
mod encode;
mod fixedscaleoffset;
mod lz4_encode;
mod numbers;
mod planes;
mod quantize;
mod reader;
mod scratch;
mod shuffle;
#[cfg(target_arch = "x86_64")]
mod shuffle_x86;
mod step;
mod values;

/// Declares the files of the table.
macro_rules! declared {
    (decoded { $($file:ident $name:literal $facts:tt)* } others $others:tt) => { $(mod $file;)* };
}

hyperslab_core::codec_table!(declared);

pub use chain::{Decoded, decode};
pub use checksum::crc32c;
pub use encode::{Encoder, Filter, encode};
pub use lzf::encode as lzf;
pub use scratch::Scratch;
pub use shuffle::{Shuffled, unshuffle_into, unshuffle_whole};
pub(crate) use values::StoredValues;

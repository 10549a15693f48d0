//! Codecs: one file each, and one visible table ([`step`]).
//!
//! A chain stands in the order of encoding and is decoded from its last codec to its first. Two buffers of
//! the thread's [`Scratch`] take turns, so that nothing is allocated from chunk to chunk. Input is hostile:
//! every size is bounded by the chunk's decoded size before memory is asked for.

mod bitshuffle;
mod blosc;
mod blosc2;
mod blosclz;
mod buffer;
mod bzip2;
mod chain;
mod checksum;
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
mod plio;
mod quantize;
mod reader;
mod rice;
mod run_length;
mod scaleoffset;
mod shuffle;
#[cfg(target_arch = "x86_64")]
mod shuffle_x86;
mod skipping_huffman;
mod szip;
mod zlib;
mod zstd;

use hyperslab_core::Codec;

use crate::Error;
use buffer::{Buffer, Size};
pub use chain::{Decoded, decode};
pub use encode::{Filter, encode, lzf};
pub use shuffle::{Shuffled, unshuffle_into, unshuffle_whole};

/// What one thread keeps from chunk to chunk: memory and decompressors.
#[derive(Default)]
pub struct Scratch {
    front: Buffer,
    back: Buffer,
    tools: Tools,
}

/// Decompressors that are costly to make, and memory for use within one codec.
pub(crate) struct Tools {
    inflate: libdeflater::Decompressor,
    zstd: Option<zstd_safe::DCtx<'static>>,
    work: Buffer,
    planes: Buffer,
    frame: Buffer,
    samples: Vec<u32>,
}

impl Default for Tools {
    fn default() -> Self {
        Self {
            inflate: libdeflater::Decompressor::new(),
            zstd: None,
            work: Buffer::default(),
            planes: Buffer::default(),
            frame: Buffer::default(),
            samples: Vec::new(),
        }
    }
}

/// What a step did.
pub(crate) enum Step {
    /// Its output is the first so many bytes of its input.
    Kept(usize),
    /// Its output is so many bytes in the other buffer.
    Made(usize),
    /// The same, but its blocks' elements are still shuffled: only where scatter comes next.
    MadeShuffled {
        /// Bytes in the other buffer.
        nbytes: usize,
        /// Width of an element; at least 2.
        element_nbytes: usize,
        /// Bytes of each block but the last: a multiple of an element's.
        block_nbytes: usize,
    },
}

/// The table: decodes one codec's `input` into `out`, whose size must be `size`; `chunk` is the chunk's linear index.
/// Of the outermost one scatter takes shuffled elements.
fn step(
    codec: &Codec,
    chunk: u64,
    input: &[u8],
    size: Size,
    is_outermost: bool,
    out: &mut Buffer,
    tools: &mut Tools,
) -> Result<Step, Error> {
    let made = match codec {
        Codec::Fletcher32 => return fletcher32::verify(input).map(Step::Kept),
        Codec::Crc32c => return crc32c::verify(input).map(Step::Kept),
        Codec::Checksum { sum, at_start } => return checksum::decode(*sum, *at_start, input, size, out),
        Codec::Transpose { .. } => return Ok(Step::Kept(input.len())), // scatter's: see chain.rs
        Codec::Nbit { parameters } if nbit::is_identity(parameters) => return Ok(Step::Kept(input.len())),
        Codec::ScaleOffset { parameters } if scaleoffset::is_identity(parameters) => {
            return Ok(Step::Kept(input.len()));
        }
        Codec::Shuffle { element_nbytes } => shuffle::decode(*element_nbytes, input, size, out),
        Codec::Zlib => zlib::decode(input, size, out, &mut tools.inflate),
        Codec::Gzip => gzip::decode(input, size, out, &mut tools.inflate),
        Codec::Szip { options, pixel_nbits, pixels_per_block, pixels_per_scanline } => {
            let layout = [*options, *pixel_nbits, *pixels_per_block, *pixels_per_scanline];
            szip::decode(layout, input, size, out, tools)
        }
        Codec::Nbit { parameters } => nbit::decode(parameters, input, size, out),
        Codec::ScaleOffset { parameters } => scaleoffset::decode(parameters, input, size, out),
        Codec::Lzf => lzf::decode(input, size, out),
        Codec::Zstd => zstd::decode(input, size, out, tools),
        Codec::Blosc => return blosc::decode(input, size, is_outermost, out, tools),
        Codec::Blosc2 => blosc2::decode(input, size, out, tools),
        Codec::Lz4Hdf5 => lz4::decode_hdf5(input, size, out),
        Codec::Lz4Numcodecs => lz4::decode_numcodecs(input, size, out),
        Codec::Bzip2 => bzip2::decode(input, size, out),
        Codec::Bitshuffle { element_nbytes, block_elements, inner } => {
            bitshuffle::decode(*element_nbytes, *block_elements, *inner, input, size, out, tools)
        }
        Codec::Delta { stored, decoded } => delta::decode(stored, decoded, input, size, out),
        Codec::FixedScaleOffset { scale, offset, stored, decoded } => {
            fixedscaleoffset::decode(*scale, *offset, stored, decoded, input, size, out)
        }
        Codec::Convert { stored, decoded } => convert::decode(None, stored, decoded, input, size, out),
        Codec::Unpack { packing, stored, decoded } => {
            convert::decode(Some(packing), stored, decoded, input, size, out)
        }
        Codec::Rice { element_nbytes, block_elements } => {
            rice::decode(*element_nbytes, *block_elements, input, size, out)
        }
        Codec::RunLength => run_length::decode(input, size, out),
        Codec::SkippingHuffman { element_nbytes } => {
            skipping_huffman::decode(*element_nbytes, input, size, out)
        }
        Codec::NbitHdf4 { element_nbytes, first_bit, nbits, sign_extended, filled_with_ones } => {
            let fill = nbit_hdf4::Fill { sign_extended: *sign_extended, ones: *filled_with_ones };
            nbit_hdf4::decode(*element_nbytes, *first_bit, *nbits, fill, input, size, out)
        }
        Codec::SzipHdf4 { options, pixel_nbits, pixels_per_block, pixels_per_scanline, has_header } => {
            let layout = [*options, *pixel_nbits, *pixels_per_block, *pixels_per_scanline];
            szip::decode_hdf4(layout, *has_header, input, size, out, tools)
        }
        Codec::Plio => plio::decode(input, size, out),
        Codec::Quantize { chunks, dither, decoded } => {
            quantize::decode(chunks, chunk, *dither, decoded, input, size, out)
        }
        Codec::Unknown { number, name } => Err(Error::UnknownCodec { number: *number, name: name.clone() }),
    };
    made.map(Step::Made)
}

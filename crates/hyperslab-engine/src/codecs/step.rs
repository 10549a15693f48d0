//! The table of codecs: which function decodes each.

use hyperslab_core::Codec;

use super::buffer::{Buffer, Size};
use super::scratch::{Step, Tools};
use super::{
    bitshuffle, blosc, blosc2, bzip2, checksum, convert, crc32c, delta, fixedscaleoffset, fletcher32, gzip,
    lz4, lzf, nbit, nbit_hdf4, packbits, plio, quantize, rice, run_length, scaleoffset, shuffle,
    skipping_huffman, szip, zlib, zstd,
};
use crate::Error;

/// The table. Decodes one codec's `input` into `out`; the output must have `size`. `chunk` is the chunk's linear index.
/// The outermost codec may leave its elements shuffled for scatter.
pub(super) fn step(
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
        Codec::Transpose { .. } => return Ok(Step::Kept(input.len())), // scatter transposes: see chain.rs
        _ if is_identity(codec) => return Ok(Step::Kept(input.len())),
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
        Codec::PackBits => packbits::decode(input, size, out),
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
        Codec::Values { framing, .. } => {
            Err(Error::Unsupported { codec: framing.name(), feature: "decoding values to elements" })
        }
        Codec::Unknown { number, name } => Err(Error::UnknownCodec { number: *number, name: name.clone() }),
    };
    made.map(Step::Made)
}

/// Whether a codec that could do something has left the elements as they were.
fn is_identity(codec: &Codec) -> bool {
    match codec {
        Codec::Nbit { parameters } => nbit::is_identity(parameters),
        Codec::ScaleOffset { parameters } => scaleoffset::is_identity(parameters),
        _ => false,
    }
}

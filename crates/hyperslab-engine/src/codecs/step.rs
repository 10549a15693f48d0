//! Decodes by one codec.

use hyperslab_core::Codec;

use super::buffer::{Buffer, Size};
use super::decoders::DECODERS;
use super::scratch::{Coded, Step, Tools};
use super::{checksum, convert, delta, fixedscaleoffset, quantize, shuffle};
use crate::Error;

/// Decodes one codec's `input` into `out`; the output must have `size`. `chunk` is the chunk's linear index. The
/// outermost codec may leave its elements shuffled for scatter.
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
        Codec::Known { codec, parameters } => {
            let decode = DECODERS.get(codec.line).ok_or_else(|| unknown(None, codec.name))?;
            return decode(&Coded { bytes: input, size, parameters, is_outermost }, out, tools);
        }
        Codec::Checksum { sum, at_start } => return checksum::decode(*sum, *at_start, input, size, out),
        Codec::Transpose { .. } => return Ok(Step::Kept(input.len())), // scatter transposes: see chain.rs
        Codec::Shuffle { element_nbytes } => shuffle::decode(*element_nbytes, input, size, out),
        Codec::Delta { stored, decoded } => delta::decode(stored, decoded, input, size, out),
        Codec::FixedScaleOffset { scale, offset, stored, decoded } => {
            fixedscaleoffset::decode(*scale, *offset, stored, decoded, input, size, out)
        }
        Codec::Convert { stored, decoded } => convert::decode(None, stored, decoded, input, size, out),
        Codec::Unpack { packing, stored, decoded } => {
            convert::decode(Some(packing), stored, decoded, input, size, out)
        }
        Codec::Quantize { chunks, dither, decoded } => {
            quantize::decode(chunks, chunk, *dither, decoded, input, size, out)
        }
        Codec::Values { framing, .. } => {
            Err(Error::Unsupported { codec: framing.name(), feature: "decoding values to elements" })
        }
        Codec::Unknown { number, name } => Err(unknown(*number, name)),
    };
    made.map(Step::Made)
}

fn unknown(number: Option<u32>, name: &str) -> Error {
    Error::UnknownCodec { number, name: name.to_owned() }
}

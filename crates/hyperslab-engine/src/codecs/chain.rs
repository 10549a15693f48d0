//! Decodes a chunk through its chain of codecs.

use hyperslab_core::Codec;

use super::{Scratch, Size, Step, step};
use crate::Error;

/// A decoded chunk, in the thread's scratch memory or in the encoded bytes themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decoded<'a> {
    /// The elements, in the chunk's order.
    Plain(&'a [u8]),
    /// The elements' bytes still shuffled: [`super::unshuffle_into`] puts them where they belong.
    Shuffled {
        /// All first bytes, all second bytes, …; then the bytes that make no whole element.
        planes: &'a [u8],
        /// Width of an element; at least 2.
        element_nbytes: usize,
    },
}

/// Where the bytes of the step before are: in the front buffer, or still where they came from.
struct Held {
    in_front: bool,
    nbytes: usize,
}

/// Decodes one chunk.
///
/// `codecs` stand in the order of encoding; `chunk` is the chunk's linear index, by which a codec keeps what
/// differs from chunk to chunk; a set bit `i` of `filter_mask` says that codec `i` was skipped
/// for this chunk. If the chunk's first applied codec is shuffle, it is left to the caller. Transpositions
/// are left to the caller too: the elements come in the order in which the transposed array has them.
///
/// `decoded_nbytes` is the size of the whole chunk: any other is [`Error::DecodedSize`] or
/// [`Error::DecodedBeyond`]. The caller bounds it, for memory of that size is asked for. The size between two
/// codecs may be unknown; there it is at most twice that and 64 KiB, more than any encoder adds to what it
/// cannot compress, so that a decompression bomb ends in [`Error::DecodedBeyond`].
pub fn decode<'s>(
    codecs: &[Codec],
    chunk: u64,
    filter_mask: u32,
    encoded: &'s [u8],
    decoded_nbytes: usize,
    scratch: &'s mut Scratch,
) -> Result<Decoded<'s>, Error> {
    let chain = Chain { codecs, filter_mask, decoded_nbytes };
    chain.check_transpositions()?;
    let shuffle = chain.last_shuffle();
    let mut held = Held { in_front: false, nbytes: encoded.len() };
    let mut name = "stored bytes";
    for (index, codec) in chain.applied().rev() {
        if shuffle.is_some_and(|(deferred, _)| deferred == index) {
            continue;
        }
        let Scratch { front, back, tools } = &mut *scratch;
        let input = if held.in_front { front.filled(held.nbytes) } else { prefix(encoded, held.nbytes) };
        match step(codec, chunk, input, chain.size_before(index), back, tools)? {
            Step::Kept(nbytes) => held.nbytes = nbytes,
            Step::Made(nbytes) => {
                std::mem::swap(front, back);
                held = Held { in_front: true, nbytes };
            }
        }
        name = static_name(codec);
    }
    Size::Exact(decoded_nbytes).admit(name, held.nbytes)?;
    let bytes = if held.in_front { scratch.front.filled(held.nbytes) } else { prefix(encoded, held.nbytes) };
    Ok(match shuffle {
        Some((_, element_nbytes)) => Decoded::Shuffled { planes: bytes, element_nbytes },
        None => Decoded::Plain(bytes),
    })
}

fn prefix(bytes: &[u8], nbytes: usize) -> &[u8] {
    bytes.get(..nbytes).unwrap_or(bytes)
}

/// The chain of one chunk.
struct Chain<'c> {
    codecs: &'c [Codec],
    filter_mask: u32,
    decoded_nbytes: usize,
}

impl<'c> Chain<'c> {
    /// The codecs that were not skipped, in the order of encoding.
    fn applied(&self) -> impl DoubleEndedIterator<Item = (usize, &'c Codec)> + use<'c> {
        let filter_mask = self.filter_mask;
        let skipped = move |index: usize| {
            u32::try_from(index).ok().and_then(|index| filter_mask.checked_shr(index)).unwrap_or(0) & 1 == 1
        };
        self.codecs.iter().enumerate().filter(move |(index, _)| !skipped(*index))
    }

    /// Shuffle, where it is the first codec that changes bytes: its index and its element's width.
    fn last_shuffle(&self) -> Option<(usize, usize)> {
        let (index, codec) = self.applied().find(|(_, codec)| !matches!(codec, Codec::Transpose { .. }))?;
        let Codec::Shuffle { element_nbytes } = codec else { return None };
        let element_nbytes = usize::try_from(*element_nbytes).unwrap_or(usize::MAX);
        (element_nbytes > 1).then_some((index, element_nbytes))
    }

    /// A transposition can be left to the caller only if no codec before it looks at neighbours.
    fn check_transpositions(&self) -> Result<(), Error> {
        let last = self.applied().rfind(|(_, codec)| matches!(codec, Codec::Transpose { .. }));
        let Some((last, _)) = last else { return Ok(()) };
        let orderless =
            |codec: &Codec| matches!(codec, Codec::Transpose { .. } | Codec::FixedScaleOffset { .. });
        if self.applied().take_while(|(index, _)| *index < last).all(|(_, codec)| orderless(codec)) {
            return Ok(());
        }
        Err(Error::Unsupported { codec: "transpose", feature: "a transposition after another codec" })
    }

    /// The size that the codec with this index was given when it encoded.
    fn size_before(&self, index: usize) -> Size {
        let limit = self.decoded_nbytes.saturating_mul(2).saturating_add(64 * 1024);
        let whole = Size::Exact(self.decoded_nbytes);
        self.applied().take_while(|(earlier, _)| *earlier < index).fold(whole, |size, (_, codec)| match codec
        {
            Codec::Shuffle { .. } | Codec::Transpose { .. } => size,
            Codec::Fletcher32 | Codec::Crc32c => size.plus(4),
            Codec::Quantize { decoded, .. } => size.of_elements(decoded.nbytes(), 4),
            Codec::FixedScaleOffset { stored, decoded, .. }
            | Codec::Delta { stored, decoded }
            | Codec::Convert { stored, decoded } => size.of_elements(decoded.nbytes(), stored.nbytes()),
            _ => Size::AtMost(limit.max(size.limit())),
        })
    }
}

/// [`Codec::name`] of a codec that was decoded, for an error.
fn static_name(codec: &Codec) -> &'static str {
    match codec {
        Codec::Shuffle { .. } => "shuffle",
        Codec::Zlib => "deflate",
        Codec::Gzip => "gzip",
        Codec::Fletcher32 => "fletcher32",
        Codec::Szip { .. } | Codec::SzipHdf4 { .. } => "szip",
        Codec::Nbit { .. } | Codec::NbitHdf4 { .. } => "nbit",
        Codec::RunLength => "run-length",
        Codec::SkippingHuffman { .. } => "skipping-huffman",
        Codec::ScaleOffset { .. } => "scaleoffset",
        Codec::Lzf => "lzf",
        Codec::Zstd => "zstd",
        Codec::Blosc => "blosc",
        Codec::Blosc2 => "blosc2",
        Codec::Lz4Hdf5 | Codec::Lz4Numcodecs => "lz4",
        Codec::Bzip2 => "bzip2",
        Codec::Bitshuffle { .. } => "bitshuffle",
        Codec::Crc32c => "crc32c",
        Codec::Transpose { .. } => "transpose",
        Codec::Delta { .. } => "delta",
        Codec::FixedScaleOffset { .. } => "fixedscaleoffset",
        Codec::Convert { .. } => "convert",
        Codec::Rice { .. } => "rice",
        Codec::Plio => "plio",
        Codec::Quantize { .. } => "quantize",
        Codec::Unknown { .. } => "unknown codec",
    }
}

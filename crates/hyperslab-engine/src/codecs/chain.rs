//! Decodes a chunk through its chain of codecs.

use hyperslab_core::Codec;

use super::buffer::Size;
use super::scratch::{Scratch, Step};
use super::shuffle::Shuffled;
use super::step::step;
use crate::Error;

/// A decoded chunk, in the thread's scratch memory or within the encoded bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decoded<'a> {
    /// The elements in the chunk's order.
    Plain(&'a [u8]),
    /// The elements' bytes, still shuffled. The caller unshuffles them while copying them to the output.
    Shuffled(Shuffled<'a>),
}

/// Where the output of the last step is: in the front buffer, or still in the input.
pub(super) struct Held {
    in_front: bool,
    nbytes: usize,
}

impl Held {
    /// The bytes. `encoded` is the input.
    pub(super) fn bytes<'s>(&self, encoded: &'s [u8], scratch: &'s Scratch) -> &'s [u8] {
        if self.in_front { scratch.front.filled(self.nbytes) } else { prefix(encoded, self.nbytes) }
    }
}

/// Decodes one chunk.
///
/// `codecs` are in encoding order. `chunk` is the chunk's linear index, for codecs whose parameters differ from chunk
/// to chunk. If bit `i` of `filter_mask` is set, codec `i` was skipped for this chunk. If the first codec that was
/// applied is shuffle, or shuffles blocks before it compresses them, the caller unshuffles. Transpositions are also
/// left to the caller: elements come in the order of the transposed array.
///
/// `decoded_nbytes` is the size of the whole chunk. Any other size is [`Error::DecodedSize`] or
/// [`Error::DecodedBeyond`]. The caller must bound it, because this much memory is allocated. Sizes between two codecs
/// may be unknown. They may be up to twice that size plus 64 KiB, which is more than any encoder adds to incompressible
/// data, so a decompression bomb ends in [`Error::DecodedBeyond`].
pub fn decode<'s>(
    codecs: &[Codec],
    chunk: u64,
    filter_mask: u32,
    encoded: &'s [u8],
    decoded_nbytes: usize,
    scratch: &'s mut Scratch,
) -> Result<Decoded<'s>, Error> {
    let chain = Chain { codecs, filter_mask, whole: Size::Exact(decoded_nbytes) };
    chain.check_transpositions()?;
    let (held, shuffle) = decode_chain(&chain, chain.outermost(), chunk, encoded, scratch)?;
    let bytes = held.bytes(encoded, scratch);
    Ok(match shuffle {
        Some((element_nbytes, block_nbytes)) => {
            let block_nbytes = block_nbytes.min(bytes.len());
            Decoded::Shuffled(Shuffled { planes: bytes, element_nbytes, block_nbytes })
        }
        None => Decoded::Plain(bytes),
    })
}

/// Decodes data of unknown size: [`Error::DecodedBeyond`] if they exceed `limit`.
pub(super) fn decode_unsized(
    codecs: &[Codec],
    chunk: u64,
    encoded: &[u8],
    limit: usize,
    scratch: &mut Scratch,
) -> Result<Held, Error> {
    let chain = Chain { codecs, filter_mask: 0, whole: Size::AtMost(limit) };
    chain.check_transpositions()?;
    decode_chain(&chain, None, chunk, encoded, scratch).map(|(held, _)| held)
}

/// Decodes a chain. If the codec `outermost` shuffles, the caller unshuffles; the result has the widths of elements and
/// blocks.
fn decode_chain(
    chain: &Chain<'_>,
    outermost: Option<(usize, &Codec)>,
    chunk: u64,
    encoded: &[u8],
    scratch: &mut Scratch,
) -> Result<(Held, Option<(usize, usize)>), Error> {
    let mut shuffle = outermost.and_then(|(_, codec)| shuffled_nbytes(codec));
    let mut block_nbytes = usize::MAX;
    let mut held = Held { in_front: false, nbytes: encoded.len() };
    let mut name = "stored bytes";
    for (index, codec) in chain.applied().rev() {
        let is_outermost = outermost.is_some_and(|(first, _)| first == index);
        if is_outermost && shuffle.is_some() {
            continue;
        }
        name = codec.kind();
        let Scratch { front, back, tools } = &mut *scratch;
        let input = if held.in_front { front.filled(held.nbytes) } else { prefix(encoded, held.nbytes) };
        let made = match step(codec, chunk, input, chain.size_before(index), is_outermost, back, tools)? {
            Step::Kept(nbytes) => {
                held.nbytes = nbytes;
                continue;
            }
            Step::Made(nbytes) => nbytes,
            Step::MadeShuffled { nbytes, element_nbytes, block_nbytes: shuffled } => {
                (shuffle, block_nbytes) = (Some(element_nbytes), shuffled);
                nbytes
            }
        };
        std::mem::swap(front, back);
        held = Held { in_front: true, nbytes: made };
    }
    chain.whole.admit(name, held.nbytes)?;
    Ok((held, shuffle.map(|element_nbytes| (element_nbytes, block_nbytes))))
}

fn prefix(bytes: &[u8], nbytes: usize) -> &[u8] {
    bytes.get(..nbytes).unwrap_or(bytes)
}

/// The element width, if the codec only shuffles.
fn shuffled_nbytes(codec: &Codec) -> Option<usize> {
    let Codec::Shuffle { element_nbytes } = codec else { return None };
    let element_nbytes = usize::try_from(*element_nbytes).unwrap_or(usize::MAX);
    (element_nbytes > 1).then_some(element_nbytes)
}

/// The chain of one chunk.
struct Chain<'c> {
    codecs: &'c [Codec],
    filter_mask: u32,
    /// The size of the whole chunk.
    whole: Size,
}

impl<'c> Chain<'c> {
    /// The codecs that were not skipped, in encoding order.
    fn applied(&self) -> impl DoubleEndedIterator<Item = (usize, &'c Codec)> + use<'c> {
        let filter_mask = self.filter_mask;
        let skipped = move |index: usize| {
            u32::try_from(index).ok().and_then(|index| filter_mask.checked_shr(index)).unwrap_or(0) & 1 == 1
        };
        self.codecs.iter().enumerate().filter(move |(index, _)| !skipped(*index))
    }

    /// The first codec that changes bytes. It is undone last.
    fn outermost(&self) -> Option<(usize, &'c Codec)> {
        self.applied().find(|(_, codec)| !matches!(codec, Codec::Transpose { .. }))
    }

    /// The caller can transpose only if no codec before the transposition depends on neighbours.
    fn check_transpositions(&self) -> Result<(), Error> {
        let last = self.applied().rfind(|(_, codec)| matches!(codec, Codec::Transpose { .. }));
        let Some((last, _)) = last else { return Ok(()) };
        let orderless = |codec: &Codec| {
            matches!(codec, Codec::Transpose { .. } | Codec::FixedScaleOffset { .. })
                || matches!(codec, Codec::Convert { .. } | Codec::Unpack { .. })
        };
        if self.applied().take_while(|(index, _)| *index < last).all(|(_, codec)| orderless(codec)) {
            return Ok(());
        }
        Err(Error::Unsupported { codec: "transpose", feature: "a transposition after another codec" })
    }

    /// The size of the input when the codec with this index encoded it.
    fn size_before(&self, index: usize) -> Size {
        let (whole, limit) = (self.whole, self.whole.limit().saturating_mul(2).saturating_add(64 * 1024));
        self.applied().take_while(|(earlier, _)| *earlier < index).fold(whole, |size, (_, codec)| match codec
        {
            Codec::Shuffle { .. } | Codec::Transpose { .. } => size,
            Codec::Checksum { .. } => size.plus(4),
            Codec::Quantize { decoded, .. } => size.of_elements(decoded.nbytes(), 4),
            Codec::FixedScaleOffset { stored, decoded, .. }
            | Codec::Delta { stored, decoded }
            | Codec::Convert { stored, decoded }
            | Codec::Unpack { stored, decoded, .. } => size.of_elements(decoded.nbytes(), stored.nbytes()),
            _ => Size::AtMost(limit.max(size.limit())),
        })
    }
}

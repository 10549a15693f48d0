//! Encodes chunks of Blosc 1: a header, the starts of the blocks, and the blocks, each compressed into one stream.
//!
//! Splitting a block into one stream for each byte of an element is optional, and every Blosc reads blocks that are not
//! split; see c-blosc's `README_CHUNK_FORMAT.rst`.

use super::compress::{Blosc, Compressors, Inner};
use super::{bitshuffle, shuffle};

const HEADER_NBYTES: usize = 16;
/// Blosc cannot hold more in one chunk.
const MOST_NBYTES: usize = (1 << 31) - 1 - HEADER_NBYTES;
/// Blocks fit in a second-level cache.
const BLOCK_NBYTES: usize = 256 << 10;
const FORMAT_VERSION: u8 = 2;
const CODEC_VERSION: u8 = 1;
const COPIED: u8 = 2;
const ONE_STREAM: u8 = 0x10;

/// Encodes one chunk; `None` if it is too large, or a compressor refuses its level.
pub(super) fn encode(bytes: &[u8], settings: Blosc, encoder: &mut Compressors) -> Option<Vec<u8>> {
    let width = if (1..=255).contains(&settings.element_nbytes) { settings.element_nbytes } else { 1 };
    if bytes.len() > MOST_NBYTES {
        return None;
    }
    let block_nbytes = (BLOCK_NBYTES / (8 * width) * (8 * width)).min(bytes.len());
    let arrangement = match settings.shuffle {
        1 if width > 1 => 1,
        2 => 4,
        _ => 0,
    };
    let compression = match settings.inner {
        Inner::Plain | Inner::Lz4 => 1,
        Inner::Deflate(_) => 3,
        Inner::Zstd(_) => 4,
    };
    let flags = arrangement | ONE_STREAM | compression << 5;
    let body = blocks(bytes, block_nbytes, arrangement, width, settings.inner, encoder)?;
    let is_shorter = body.len() < bytes.len();
    let (flags, body) = if is_shorter { (flags, body) } else { (flags | COPIED, bytes.to_vec()) };
    let mut out = vec![FORMAT_VERSION, CODEC_VERSION, flags, u8::try_from(width).ok()?];
    for nbytes in [bytes.len(), block_nbytes, HEADER_NBYTES + body.len()] {
        out.extend(u32::try_from(nbytes).ok()?.to_le_bytes());
    }
    out.extend(body);
    Some(out)
}

/// The starts of the blocks, and the blocks.
fn blocks(
    bytes: &[u8],
    block_nbytes: usize,
    arrangement: u8,
    width: usize,
    inner: Inner,
    encoder: &mut Compressors,
) -> Option<Vec<u8>> {
    let count = bytes.len().div_ceil(block_nbytes.max(1));
    let mut starts = Vec::with_capacity(4 * count);
    let mut streams = Vec::new();
    for block in bytes.chunks(block_nbytes.max(1)) {
        starts.extend(u32::try_from(HEADER_NBYTES + 4 * count + streams.len()).ok()?.to_le_bytes());
        let arranged = match arrangement {
            1 => shuffle::encode(width, block),
            // Blosc 1 leaves blocks alone that are not whole eights of elements.
            4 if block.len() % (8 * width) == 0 => bitshuffle::shuffle_bits(block, width),
            _ => block.to_vec(),
        };
        let stream = encoder.inner(&arranged, inner)?;
        let stream = if stream.len() < block.len() { stream } else { arranged };
        streams.extend(u32::try_from(stream.len()).ok()?.to_le_bytes());
        streams.extend(stream);
    }
    starts.extend(streams);
    Some(starts)
}

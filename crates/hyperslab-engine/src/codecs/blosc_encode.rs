//! Encodes chunks of Blosc 1 as c-blosc 1.21 does: a header, the starts of the blocks, and the blocks, each compressed into
//! one stream, or into one for each byte of an element.
//!
//! The sizes of blocks and their division follow c-blosc's rules, because stored sizes depend on them: bytes of equal
//! significance compress alike, so streams of their own make chunks of Zlib up to 60 % smaller.

use super::blosc::{MAX_SPLITS, MIN_SPLIT_NBYTES};
use super::compress::{Blosc, Compressors, Inner, Made};
use super::{bitshuffle, shuffle};

const HEADER_NBYTES: usize = 16;
/// Blosc cannot hold more in one chunk.
const MOST_NBYTES: usize = (1 << 31) - 1 - HEADER_NBYTES;
/// Blosc does not compress less.
const LEAST_NBYTES: usize = 128;
const FIRST_LEVEL_CACHE: usize = 32 << 10;
const FORMAT_VERSION: u8 = 2;
const CODEC_VERSION: u8 = 1;
const COPIED: u8 = 2;
const ONE_STREAM: u8 = 0x10;

/// Encodes one chunk. Returns nothing if it is too large, or a compressor refuses its level; `Some(None)` if it would not
/// become shorter, and is not to be copied then.
pub(super) fn encode(bytes: &[u8], settings: Blosc, encoder: &mut Compressors) -> Made {
    let width = if (1..=255).contains(&settings.element_nbytes) { settings.element_nbytes } else { 1 };
    if bytes.len() > MOST_NBYTES {
        return None;
    }
    let layout = Layout::of(bytes.len(), width, &settings);
    let flags = layout.flags(&settings);
    let is_tried = settings.level > 0 && bytes.len() >= LEAST_NBYTES;
    let body = if is_tried { Some(layout.blocks(bytes, settings.inner, encoder)?) } else { None };
    let most = if settings.is_skipped { bytes.len().checked_sub(HEADER_NBYTES) } else { Some(bytes.len()) };
    let body = body.filter(|body| most.is_some_and(|most| body.len() <= most));
    let (flags, body) = match body {
        Some(body) => (flags, body),
        None if settings.is_skipped => return Some(None),
        None => (flags | COPIED, bytes.to_vec()),
    };
    let mut out = vec![FORMAT_VERSION, CODEC_VERSION, flags, u8::try_from(width).ok()?];
    for nbytes in [bytes.len(), layout.block_nbytes, HEADER_NBYTES + body.len()] {
        out.extend(u32::try_from(nbytes).ok()?.to_le_bytes());
    }
    out.extend(body);
    Some(Some(out))
}

/// How a chunk is divided and rearranged.
struct Layout {
    width: usize,
    block_nbytes: usize,
    /// Whether whole blocks have a stream for each byte of an element.
    is_split: bool,
    arrangement: u8,
}

impl Layout {
    fn of(nbytes: usize, width: usize, settings: &Blosc) -> Self {
        let arrangement = match settings.shuffle {
            1 if width > 1 => 1,
            2 => 4,
            _ => 0,
        };
        let block_nbytes = block_nbytes(nbytes, width, settings);
        Self { width, block_nbytes, is_split: splits(settings.inner, width, block_nbytes), arrangement }
    }

    fn flags(&self, settings: &Blosc) -> u8 {
        let compression = match settings.inner {
            Inner::BloscLz { .. } => 0,
            Inner::Plain | Inner::Lz4 => 1,
            Inner::Deflate(_) => 3,
            Inner::Zstd(_) => 4,
        };
        self.arrangement | if self.is_split { 0 } else { ONE_STREAM } | compression << 5
    }

    /// The starts of the blocks, and the blocks.
    fn blocks(&self, bytes: &[u8], inner: Inner, encoder: &mut Compressors) -> Option<Vec<u8>> {
        let count = bytes.len().div_ceil(self.block_nbytes.max(1));
        let mut starts = Vec::with_capacity(4 * count);
        let mut streams = Vec::new();
        let inner = match inner {
            Inner::BloscLz { level, .. } => Inner::BloscLz { level, is_split: self.is_split },
            other => other,
        };
        for block in bytes.chunks(self.block_nbytes.max(1)) {
            starts.extend(u32::try_from(HEADER_NBYTES + 4 * count + streams.len()).ok()?.to_le_bytes());
            let arranged = match self.arrangement {
                1 => shuffle::encode(self.width, block),
                // Blosc 1 leaves blocks alone that are not whole eights of elements.
                4 if block.len() % (8 * self.width) == 0 => bitshuffle::shuffle_bits(block, self.width),
                _ => block.to_vec(),
            };
            let is_split = self.is_split && block.len() == self.block_nbytes;
            let parts = if is_split { self.width } else { 1 };
            for part in arranged.chunks_exact(block.len() / parts) {
                let stream = encoder.inner(part, inner)?;
                let stream = if stream.len() < part.len() { &stream[..] } else { part };
                streams.extend(u32::try_from(stream.len()).ok()?.to_le_bytes());
                streams.extend(stream);
            }
        }
        starts.extend(streams);
        Some(starts)
    }
}

/// Whether a whole block gets a stream for each byte of an element: c-blosc's mode for readers of all versions, its default.
fn splits(inner: Inner, width: usize, block_nbytes: usize) -> bool {
    !matches!(inner, Inner::Zstd(_)) && width <= MAX_SPLITS && block_nbytes / width >= MIN_SPLIT_NBYTES
}

/// The size of a block, which c-blosc takes from the compressor's level: blocks of slow compressors are larger.
fn block_nbytes(nbytes: usize, width: usize, settings: &Blosc) -> usize {
    let is_slow = matches!(settings.inner, Inner::Deflate(_) | Inner::Zstd(_));
    let mut block = nbytes;
    if nbytes < width {
        return 1;
    }
    if nbytes >= FIRST_LEVEL_CACHE {
        block = FIRST_LEVEL_CACHE * if is_slow { 2 } else { 1 };
        block = match settings.level {
            0 => block / 4,
            1 => block / 2,
            2 => block,
            3 => block * 2,
            4 | 5 => block * 4,
            9 if is_slow => block * 16,
            _ => block * 8,
        };
    }
    if settings.level > 0 && splits(settings.inner, width, block) {
        block = (block.min(1 << 18) * width).clamp(1 << 16, 1 << 20);
    }
    block = block.min(nbytes);
    if block > width { block / width * width } else { block }
}

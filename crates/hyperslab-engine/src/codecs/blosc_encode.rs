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
/// The lower a level is, the higher is the acceleration of LZ4: together they are this many.
const LZ4_LEVELS: usize = 10;
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
    let is_tried = settings.level > 0 && bytes.len() >= LEAST_NBYTES;
    let most = if settings.is_skipped { bytes.len().checked_sub(HEADER_NBYTES) } else { Some(bytes.len()) };
    let mut out = Vec::with_capacity(HEADER_NBYTES + bytes.len());
    out.resize(HEADER_NBYTES, 0);
    if is_tried {
        layout.blocks(bytes, &settings, encoder, &mut out)?;
    }
    let is_shorter = is_tried && most.is_some_and(|most| out.len() - HEADER_NBYTES <= most);
    if !is_shorter && settings.is_skipped {
        return Some(None);
    }
    let mut flags = layout.flags(&settings);
    if !is_shorter {
        flags |= COPIED;
        out.truncate(HEADER_NBYTES);
        out.extend(bytes);
    }
    let (head, _) = out.split_first_chunk_mut::<HEADER_NBYTES>()?;
    head[..4].copy_from_slice(&[FORMAT_VERSION, CODEC_VERSION, flags, u8::try_from(width).ok()?]);
    head[4..8].copy_from_slice(&u32::try_from(bytes.len()).ok()?.to_le_bytes());
    head[8..12].copy_from_slice(&u32::try_from(layout.block_nbytes).ok()?.to_le_bytes());
    let nbytes = u32::try_from(out.len()).ok()?;
    out[12..16].copy_from_slice(&nbytes.to_le_bytes());
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

    /// Appends the starts of the blocks, and the blocks.
    fn blocks(
        &self,
        bytes: &[u8],
        settings: &Blosc,
        encoder: &mut Compressors,
        out: &mut Vec<u8>,
    ) -> Option<()> {
        let first = out.len();
        out.resize(first + 4 * bytes.len().div_ceil(self.block_nbytes.max(1)), 0);
        let mut arranged = std::mem::take(&mut encoder.arranged);
        for (number, block) in bytes.chunks(self.block_nbytes.max(1)).enumerate() {
            let start = u32::try_from(out.len()).ok()?;
            out[first + 4 * number..][..4].copy_from_slice(&start.to_le_bytes());
            let block = match self.arrangement {
                1 => {
                    shuffle::encode_into(self.width, block, &mut arranged);
                    &arranged[..]
                }
                // Blosc 1 leaves blocks alone that are not whole eights of elements.
                4 if block.len() % (8 * self.width) == 0 => {
                    arranged = bitshuffle::shuffle_bits(block, self.width);
                    &arranged[..]
                }
                _ => block,
            };
            let is_split = self.is_split && block.len() == self.block_nbytes;
            let parts = if is_split { self.width } else { 1 };
            for part in block.chunks_exact(block.len() / parts) {
                self.stream(part, settings, encoder, out)?;
            }
        }
        encoder.arranged = arranged;
        Some(())
    }

    /// Appends a stream, compressed if that makes it shorter.
    fn stream(
        &self,
        part: &[u8],
        settings: &Blosc,
        encoder: &mut Compressors,
        out: &mut Vec<u8>,
    ) -> Option<()> {
        let made;
        let stream = match settings.inner {
            Inner::Lz4 => {
                let acceleration = LZ4_LEVELS.saturating_sub(settings.level.into());
                encoder.lz4.encode(part, acceleration, part.len())
            }
            inner => {
                let inner = match inner {
                    Inner::BloscLz { level, .. } => Inner::BloscLz { level, is_split: self.is_split },
                    other => other,
                };
                made = encoder.inner(part, inner)?;
                Some(&made[..])
            }
        };
        let stream = stream.filter(|stream| stream.len() < part.len()).unwrap_or(part);
        out.extend(u32::try_from(stream.len()).ok()?.to_le_bytes());
        out.extend(stream);
        Some(())
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

//! Blosc chunks of both generations, which describe themselves: registered filter 32001, Zarr's blosc.
//!
//! A chunk has a header, the starts of its blocks, and the blocks. Each block was shuffled and then compressed into one
//! stream, or into one stream for each byte of an element ("split"). See c-blosc2's `README_CHUNK_FORMAT.rst`. Blosc 1
//! splits blocks and bitshuffles elements by other rules.

use super::buffer::{Buffer, Size};
use super::reader::Bytes;
use super::scratch::{Coded, Step, Tools};
use super::{bitshuffle, blosclz, lz4, shuffle, zlib, zstd};
use crate::Error;

pub(super) const CODEC: &str = "blosc";

/// Blosc 1 splits blocks of elements up to this width, if each stream has at least this many bytes.
pub(super) const MAX_SPLITS: usize = 16;
pub(super) const MIN_SPLIT_NBYTES: usize = 128;

fn damaged(problem: &'static str) -> Error {
    Error::Damaged { codec: CODEC, problem }
}

fn unsupported(feature: &'static str) -> Error {
    Error::Unsupported { codec: CODEC, feature }
}

/// Decodes one chunk. Its elements may stay shuffled.
pub(super) fn decode(coded: &Coded<'_>, out: &mut Buffer, tools: &mut Tools) -> Result<Step, Error> {
    let Coded { bytes: input, size, is_outermost, .. } = *coded;
    let mut header = Header::of(input)?;
    let nbytes = size.admit_claim(CODEC, header.nbytes as u64)?;
    let stays_shuffled = is_outermost && header.can_stay_shuffled();
    if stays_shuffled {
        header.arrangement = Arrangement::Plain;
    }
    decode_blocks(&header, input, out.space(nbytes)?, tools)?;
    let Header { element_nbytes, block_nbytes, .. } = header;
    Ok(if stays_shuffled {
        Step::MadeShuffled { nbytes, element_nbytes, block_nbytes }
    } else {
        Step::Made(nbytes)
    })
}

/// Decodes one chunk. It must fill `out`.
pub(super) fn decode_chunk(input: &[u8], out: &mut [u8], tools: &mut Tools) -> Result<(), Error> {
    let header = Header::of(input)?;
    Size::Exact(out.len()).admit(CODEC, header.nbytes)?;
    decode_blocks(&header, input, out, tools)
}

fn decode_blocks(header: &Header, input: &[u8], out: &mut [u8], tools: &mut Tools) -> Result<(), Error> {
    let chunk = input.get(..header.encoded_nbytes).ok_or(damaged("the encoded bytes end too early"))?;
    let body = chunk.get(header.start..).ok_or(damaged("shorter than its header"))?;
    if let Some(special) = header.special {
        return fill_special(special, header.element_nbytes, body, out);
    }
    if header.copied {
        out.copy_from_slice(body.get(..out.len()).ok_or(damaged("the encoded bytes end too early"))?);
        return Ok(());
    }
    if header.block_nbytes == 0 {
        return Err(damaged("blocks of 0 bytes"));
    }
    let mut starts = Bytes::new(CODEC, body);
    let (first_block, mut rest) = out.split_at_mut(header.block_nbytes.min(out.len()));
    decode_block(header, chunk, starts.u32_le()?, first_block, None, tools)?;
    while !rest.is_empty() {
        let (block, later) = rest.split_at_mut(header.block_nbytes.min(rest.len()));
        decode_block(header, chunk, starts.u32_le()?, block, Some(first_block), tools)?;
        rest = later;
    }
    Ok(())
}

/// How the bytes of a block were rearranged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Arrangement {
    Plain,
    Shuffled,
    Bitshuffled,
}

/// The value of all bytes of a special chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Special {
    Zeros,
    NaN,
    Value,
}

/// The contents of the header.
#[derive(Clone, Copy, Debug)]
#[allow(clippy::struct_excessive_bools)] // a header consists of flags
struct Header {
    second_generation: bool,
    compression: u8,
    one_stream: bool,
    copied: bool,
    element_nbytes: usize,
    nbytes: usize,
    block_nbytes: usize,
    encoded_nbytes: usize,
    /// Where the body starts.
    start: usize,
    arrangement: Arrangement,
    delta: bool,
    special: Option<Special>,
}

impl Header {
    fn of(input: &[u8]) -> Result<Self, Error> {
        let mut bytes = Bytes::new(CODEC, input);
        let (version, _) = (bytes.byte()?, bytes.byte()?);
        let (flags, element_nbytes) = (bytes.byte()?, usize::from(bytes.byte()?).max(1));
        let (nbytes, block_nbytes) = (bytes.u32_le()? as usize, bytes.u32_le()? as usize);
        let encoded_nbytes = bytes.u32_le()? as usize;
        let arrangement = match flags & 5 {
            0 => Arrangement::Plain,
            1 => Arrangement::Shuffled,
            _ => Arrangement::Bitshuffled,
        };
        let mut header = Self {
            second_generation: version > 2,
            compression: flags >> 5,
            one_stream: flags & 0x10 != 0,
            copied: flags & 2 != 0,
            element_nbytes,
            nbytes,
            block_nbytes,
            encoded_nbytes,
            start: 16,
            arrangement,
            delta: false,
            special: None,
        };
        if flags & 5 == 5 {
            header.extend(&mut bytes)?;
        } else if header.second_generation && flags & 8 != 0 {
            return Err(unsupported("a delta filter without a pipeline"));
        }
        Ok(header)
    }

    /// The sixteen bytes that Blosc 2 adds: six filters in encoding order, and more flags.
    fn extend(&mut self, bytes: &mut Bytes<'_>) -> Result<(), Error> {
        let filters = bytes.take(6)?;
        let _codec = bytes.take(2)?;
        let metas = bytes.take(6)?;
        let _reserved = bytes.byte()?;
        let flags = bytes.byte()?;
        self.start = 32;
        self.special = match (flags >> 4) & 7 {
            0 => None,
            1 | 4 => Some(Special::Zeros), // 4: never written, so any value will do
            2 => Some(Special::NaN),
            3 => Some(Special::Value),
            _ => return Err(unsupported("an unknown special value")),
        };
        if flags & 1 != 0 {
            return Err(unsupported("a dictionary"));
        }
        if flags & 8 != 0 {
            return Err(damaged("a chunk whose data are elsewhere"));
        }
        self.arrangement = Arrangement::Plain;
        for (&filter, &meta) in filters.iter().zip(metas) {
            self.add_filter(filter, meta)?;
        }
        Ok(())
    }

    fn add_filter(&mut self, filter: u8, meta: u8) -> Result<(), Error> {
        let arrangement = match (filter, meta) {
            (0 | 4, _) => return Ok(()), // filter 4 removed bits before encoding
            (1, 0) => Arrangement::Shuffled,
            (2, _) => Arrangement::Bitshuffled,
            (3, _) if self.arrangement == Arrangement::Plain && !self.delta => {
                self.delta = true;
                return Ok(());
            }
            _ => return Err(unsupported("a filter other than shuffle, bitshuffle, delta and truncation")),
        };
        if self.arrangement != Arrangement::Plain {
            return Err(unsupported("two shuffles"));
        }
        self.arrangement = arrangement;
        Ok(())
    }

    /// Whether the caller can unshuffle: unshuffling must be the last step, and each block must hold whole elements.
    fn can_stay_shuffled(&self) -> bool {
        let is_shuffled = self.arrangement == Arrangement::Shuffled && self.element_nbytes > 1;
        let is_last = !self.delta && !self.copied && self.special.is_none();
        is_shuffled && is_last && self.block_nbytes.is_multiple_of(self.element_nbytes)
    }

    /// The number of streams in a block of this size.
    fn streams(&self, block_nbytes: usize) -> usize {
        let whole = block_nbytes == self.block_nbytes;
        let small =
            self.element_nbytes <= MAX_SPLITS && block_nbytes / self.element_nbytes >= MIN_SPLIT_NBYTES;
        let split = !self.one_stream && whole && (small || self.second_generation);
        if split { self.element_nbytes } else { 1 }
    }

    /// How many bytes of a block are bitshuffled: a multiple of eight elements. Blosc 1 does not bitshuffle other
    /// blocks.
    fn bitshuffled_nbytes(&self, block_nbytes: usize) -> usize {
        let elements = block_nbytes / self.element_nbytes;
        let rest = elements % 8;
        if rest != 0 && !self.second_generation { 0 } else { (elements - rest) * self.element_nbytes }
    }
}

/// Decodes a chunk that has only one value.
fn fill_special(special: Special, element_nbytes: usize, body: &[u8], out: &mut [u8]) -> Result<(), Error> {
    let value: &[u8] = match (special, element_nbytes) {
        (Special::Zeros, _) => &[0],
        (Special::NaN, 4) => &f32::NAN.to_le_bytes(),
        (Special::NaN, 8) => &f64::NAN.to_le_bytes(),
        (Special::NaN, _) => return Err(unsupported("NaN of another width than 4 or 8 bytes")),
        (Special::Value, _) => {
            body.get(..element_nbytes).ok_or(damaged("the encoded bytes end too early"))?
        }
    };
    for element in out.chunks_mut(value.len()) {
        element.copy_from_slice(value.get(..element.len()).unwrap_or_default());
    }
    Ok(())
}

/// Decodes one block. `reference` is the chunk's first block, unless this is the first block.
fn decode_block(
    header: &Header,
    chunk: &[u8],
    start: u32,
    block: &mut [u8],
    reference: Option<&[u8]>,
    tools: &mut Tools,
) -> Result<(), Error> {
    let streams = chunk.get(start as usize..).ok_or(damaged("a block starts after the chunk's end"))?;
    let mut streams = Bytes::new(CODEC, streams);
    let mut work = std::mem::take(&mut tools.work);
    let done = decode_arranged(header, &mut streams, block, &mut work, tools);
    tools.work = work;
    done?;
    if header.delta {
        undo_delta(header.element_nbytes, block, reference);
    }
    Ok(())
}

/// Decodes a block's streams and restores the order of its bytes.
fn decode_arranged(
    header: &Header,
    streams: &mut Bytes<'_>,
    block: &mut [u8],
    work: &mut Buffer,
    tools: &mut Tools,
) -> Result<(), Error> {
    let element_nbytes = header.element_nbytes;
    match header.arrangement {
        Arrangement::Shuffled if element_nbytes > 1 => {
            let planes = work.space(block.len())?;
            decode_streams(header, streams, planes, tools)?;
            shuffle::unshuffle_whole(planes, element_nbytes, block);
        }
        Arrangement::Bitshuffled if block.len() >= element_nbytes => {
            let rows = work.space(block.len())?;
            decode_streams(header, streams, rows, tools)?;
            let whole = header.bitshuffled_nbytes(block.len());
            let ((rows, rest), (elements, after)) = (rows.split_at(whole), block.split_at_mut(whole));
            bitshuffle::unshuffle_bits(rows, element_nbytes, elements, &mut tools.planes)?;
            after.copy_from_slice(rest);
        }
        _ => decode_streams(header, streams, block, tools)?,
    }
    Ok(())
}

fn decode_streams(
    header: &Header,
    streams: &mut Bytes<'_>,
    out: &mut [u8],
    tools: &mut Tools,
) -> Result<(), Error> {
    let count = header.streams(out.len());
    let stream_nbytes = out.len() / count;
    if stream_nbytes == 0 || !out.len().is_multiple_of(count) {
        return Err(damaged("a block that is not a whole number of elements"));
    }
    out.chunks_exact_mut(stream_nbytes).try_for_each(|part| decode_stream(header, streams, part, tools))
}

/// Decodes one stream, which follows its encoded size. Blosc 2 marks runs of one byte by sizes that are otherwise
/// invalid.
fn decode_stream(
    header: &Header,
    streams: &mut Bytes<'_>,
    out: &mut [u8],
    tools: &mut Tools,
) -> Result<(), Error> {
    let encoded_nbytes = streams.i32_le()?;
    if header.second_generation && encoded_nbytes == 0 {
        out.fill(0);
        return Ok(());
    }
    let Ok(encoded_nbytes) = usize::try_from(encoded_nbytes) else {
        if !header.second_generation || streams.byte()? & 1 == 0 || encoded_nbytes < -255 {
            return Err(damaged("a stream of a negative size"));
        }
        out.fill(encoded_nbytes.unsigned_abs().to_le_bytes()[0]);
        return Ok(());
    };
    let encoded = streams.take(encoded_nbytes)?;
    if encoded.len() == out.len() {
        out.copy_from_slice(encoded);
        return Ok(());
    }
    decompress(header.compression, encoded, out, tools)
}

fn decompress(compression: u8, encoded: &[u8], out: &mut [u8], tools: &mut Tools) -> Result<(), Error> {
    let expected = out.len();
    let found = match compression {
        0 => return blosclz::decode_into(encoded, out),
        1 => return lz4::decode_block(CODEC, encoded, out),
        2 => return Err(unsupported("snappy")),
        3 => zlib::inflate_into(encoded, out, &mut tools.inflate)?,
        4 => zstd::decode_into(encoded, out, &mut tools.zstd)?,
        _ => return Err(unsupported("a codec that is not Blosc's own")),
    };
    let found = found.ok_or(Error::DecodedBeyond { codec: CODEC, limit: expected })?;
    Size::Exact(expected).admit(CODEC, found).map(|_| ())
}

/// Undoes Blosc 2's delta, which uses exclusive or: elements of the first block are combined with the elements before
/// them, elements of other blocks with those of the first block.
fn undo_delta(element_nbytes: usize, block: &mut [u8], reference: Option<&[u8]>) {
    let width = match element_nbytes {
        1 | 2 | 4 | 8 => element_nbytes,
        other if other % 8 == 0 => 8,
        _ => 1,
    };
    let whole = block.len() / width * width;
    let Some(block) = block.get_mut(..whole) else { return };
    if let Some(reference) = reference {
        block.iter_mut().zip(reference).for_each(|(byte, before)| *byte ^= before);
        return;
    }
    let mut before = [0; 8];
    for element in block.chunks_exact_mut(width) {
        for (byte, before) in element.iter_mut().zip(&mut before) {
            *byte ^= *before;
            *before = *byte;
        }
    }
}

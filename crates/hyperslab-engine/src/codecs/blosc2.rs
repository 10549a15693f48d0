//! Blosc-2 contiguous frames, as registered filter 32026 writes them.
//!
//! A frame has a header in `MessagePack`, Blosc chunks, a chunk of their offsets, and a trailer that we do not need:
//! see c-blosc2's `README_CFRAME_FORMAT.rst`. A frame with the metalayer `b2nd` has a single chunk: an n-dimensional
//! array cut into blocks (`README_B2ND_METALAYER.rst`).

use super::blosc;
use super::buffer::{Buffer, Size};
use super::reader::Bytes;
use super::scratch::{Coded, Tools};
use crate::Error;

const CODEC: &str = "blosc2";

/// The most chunks in one frame. The filter writes one.
const MAX_CHUNKS: usize = 1 << 20;
/// Axes of an n-dimensional frame: Blosc 2's own limit.
const MAX_NDIM: usize = 16;
/// Padding to whole blocks enlarges a chunk less than twofold along each axis. We accept the padding of this many axes.
const MAX_PADDED_NDIM: usize = 8;

fn damaged(problem: &'static str) -> Error {
    Error::Damaged { codec: CODEC, problem }
}

fn unsupported(feature: &'static str) -> Error {
    Error::Unsupported { codec: CODEC, feature }
}

/// Decodes a frame.
pub(super) fn decode(coded: &Coded<'_>, out: &mut Buffer, tools: &mut Tools) -> Result<usize, Error> {
    let Coded { bytes: input, size, .. } = *coded;
    let frame = Frame::of(input)?;
    let mut held = std::mem::take(&mut tools.frame);
    let done = match frame.blocks()? {
        Some(blocks) => decode_blocks(&frame, &blocks, size, out, &mut held, tools),
        None => decode_chunks(&frame, size, out, &mut held, tools),
    };
    tools.frame = held;
    done
}

/// Decodes a frame of bytes, whose chunks follow one another.
fn decode_chunks(
    frame: &Frame<'_>,
    size: Size,
    out: &mut Buffer,
    held: &mut Buffer,
    tools: &mut Tools,
) -> Result<usize, Error> {
    let nbytes = size.admit(CODEC, frame.nbytes)?;
    let count = frame.chunk_count()?;
    let offsets = held.space(count * 8)?;
    frame.offsets(offsets, tools)?;
    let space = out.space(nbytes)?;
    for (chunk, offset) in space.chunks_mut(frame.chunk_nbytes.max(1)).zip(offsets.chunks_exact(8)) {
        frame.decode_chunk(offset, chunk, tools)?;
    }
    Ok(nbytes)
}

/// Decodes a frame of blocks. It has one chunk, whose blocks are copied to where they belong.
fn decode_blocks(
    frame: &Frame<'_>,
    blocks: &Blocks,
    size: Size,
    out: &mut Buffer,
    held: &mut Buffer,
    tools: &mut Tools,
) -> Result<usize, Error> {
    let nbytes = size.admit(CODEC, blocks.nbytes(&blocks.shape, frame.element_nbytes)?)?;
    let padded = blocks.nbytes(&blocks.padded_shape(), frame.element_nbytes)?;
    let limit = nbytes.saturating_mul(1 << blocks.shape.len().min(MAX_PADDED_NDIM));
    if padded > limit {
        return Err(Error::DecodedBeyond { codec: CODEC, limit });
    }
    if padded != frame.chunk_nbytes || frame.chunk_count()? > 1 {
        return Err(unsupported("a frame of several n-dimensional chunks"));
    }
    let space = out.space(nbytes)?;
    if nbytes == 0 {
        return Ok(0);
    }
    let mut offset = [0; 8];
    frame.offsets(&mut offset, tools)?;
    let chunk = held.space(padded)?;
    frame.decode_chunk(&offset, chunk, tools)?;
    blocks.copy(chunk, frame.element_nbytes, space).ok_or(damaged("blocks outside their array"))?;
    Ok(nbytes)
}

/// The contents of the header.
struct Frame<'f> {
    bytes: &'f [u8],
    header_nbytes: usize,
    nbytes: usize,
    encoded_nbytes: usize,
    element_nbytes: usize,
    chunk_nbytes: usize,
}

impl<'f> Frame<'f> {
    /// All fields before the metalayers have fixed positions. A marker of its type precedes each field.
    fn of(bytes: &'f [u8]) -> Result<Self, Error> {
        let mut fields = Bytes::new(CODEC, bytes);
        if fields.take(10)?.get(2..) != Some(b"b2frame\0") {
            return Err(damaged("not a Blosc-2 frame"));
        }
        let header_nbytes = int32(&mut fields)?;
        let _frame_nbytes = int64(&mut fields)?;
        let [_, flags, kind, ..] = fields.take(5)? else { return Err(damaged("a frame without flags")) };
        if kind & 15 != 0 {
            return Err(unsupported("a sparse frame"));
        }
        if (flags >> 4) & 3 != 1 || flags & 0x40 != 0 {
            return Err(unsupported("a frame with offsets of other than 8 bytes, or chunks of varying size"));
        }
        let (nbytes, encoded_nbytes) = (int64(&mut fields)?, int64(&mut fields)?);
        let (element_nbytes, _block_nbytes) = (int32(&mut fields)?, int32(&mut fields)?);
        let chunk_nbytes = int32(&mut fields)?;
        Ok(Self { bytes, header_nbytes, nbytes, encoded_nbytes, element_nbytes, chunk_nbytes })
    }

    fn chunk_count(&self) -> Result<usize, Error> {
        let count = match self.chunk_nbytes {
            0 => 0,
            chunk_nbytes => self.nbytes.div_ceil(chunk_nbytes),
        };
        if (count == 0 && self.nbytes > 0) || count > MAX_CHUNKS {
            return Err(damaged("a frame of an impossible number of chunks"));
        }
        Ok(count)
    }

    /// Where its chunks start, in eight bytes each.
    fn offsets(&self, offsets: &mut [u8], tools: &mut Tools) -> Result<(), Error> {
        if offsets.is_empty() {
            return Ok(());
        }
        let start = self.header_nbytes.saturating_add(self.encoded_nbytes);
        let chunk = self.bytes.get(start..).ok_or(damaged("the encoded bytes end too early"))?;
        blosc::decode_chunk(chunk, offsets, tools)
    }

    /// Decodes the chunk at this offset. A negative offset encodes the value of all its elements.
    fn decode_chunk(&self, offset: &[u8], out: &mut [u8], tools: &mut Tools) -> Result<(), Error> {
        let offset = offset.iter().rev().fold(0_u64, |offset, &byte| (offset << 8) | u64::from(byte));
        if offset >> 63 == 1 {
            return match (offset >> 56) & 7 {
                1 | 4 => {
                    out.fill(0);
                    Ok(())
                }
                _ => Err(unsupported("a chunk of one special value")),
            };
        }
        let start = usize::try_from(offset).ok().and_then(|offset| offset.checked_add(self.header_nbytes));
        let chunk = start.and_then(|start| self.bytes.get(start..));
        blosc::decode_chunk(chunk.ok_or(damaged("a chunk starts after the frame's end"))?, out, tools)
    }

    /// The blocks of an n-dimensional frame, from its metalayer.
    fn blocks(&self) -> Result<Option<Blocks>, Error> {
        // After the fixed fields (87 bytes): an array of 3, the index's size, a map of names and offsets.
        let mut fields = Bytes::new(CODEC, self.bytes);
        fields.take(87 + 1 + 3 + 1)?;
        let count = u16::from_be_bytes([fields.byte()?, fields.byte()?]);
        for _ in 0..count {
            let name_nbytes = usize::from(fields.byte()? & 31);
            let name = fields.take(name_nbytes)?;
            let offset = int32(&mut fields)?;
            if name == b"b2nd" || name == b"caterva" {
                let content = self.bytes.get(offset..).ok_or(damaged("a metalayer after the frame's end"))?;
                return Blocks::of(content).map(Some);
            }
        }
        Ok(None)
    }
}

/// An integer of four bytes after its marker.
fn int32(fields: &mut Bytes<'_>) -> Result<usize, Error> {
    fields.byte()?;
    usize::try_from(fields.u32_be()?.cast_signed()).map_err(|_| damaged("a negative size"))
}

/// An integer of eight bytes after its marker.
fn int64(fields: &mut Bytes<'_>) -> Result<usize, Error> {
    fields.byte()?;
    usize::try_from(fields.u64_be()?.cast_signed()).map_err(|_| damaged("a negative size"))
}

/// An n-dimensional array of one chunk, cut into blocks. Blocks are stored whole, in row-major order.
#[derive(Debug)]
struct Blocks {
    shape: Vec<usize>,
    chunk_shape: Vec<usize>,
    block_shape: Vec<usize>,
}

impl Blocks {
    fn of(content: &[u8]) -> Result<Self, Error> {
        let mut fields = Bytes::new(CODEC, content);
        fields.take(1 + 4 + 1 + 1)?; // bytes and their length; array of 7; version
        let ndim = usize::from(fields.byte()?);
        if ndim == 0 || ndim > MAX_NDIM {
            return Err(damaged("an array of an impossible number of axes"));
        }
        let mut lengths = |read: fn(&mut Bytes<'_>) -> Result<usize, Error>| {
            fields.byte()?;
            (0..ndim).map(|_| read(&mut fields)).collect::<Result<Vec<_>, _>>()
        };
        let (shape, chunk_shape, block_shape) = (lengths(int64)?, lengths(int32)?, lengths(int32)?);
        if chunk_shape.contains(&0) || block_shape.contains(&0) {
            return Err(damaged("blocks without elements"));
        }
        if shape.iter().zip(&chunk_shape).any(|(length, chunk_length)| length > chunk_length) {
            return Err(unsupported("a frame of several n-dimensional chunks"));
        }
        Ok(Self { shape, chunk_shape, block_shape })
    }

    /// The chunk's shape, rounded up to whole blocks.
    fn padded_shape(&self) -> Vec<usize> {
        let lengths = self.chunk_shape.iter().zip(&self.block_shape);
        lengths.map(|(length, block)| length.div_ceil(*block).saturating_mul(*block)).collect()
    }

    fn nbytes(&self, shape: &[usize], element_nbytes: usize) -> Result<usize, Error> {
        debug_assert_eq!(shape.len(), self.shape.len());
        let product = shape.iter().try_fold(element_nbytes, |product, &length| product.checked_mul(length));
        product.ok_or(damaged("an array larger than memory"))
    }

    /// Copies each row of each block to its position, except for the part outside the array.
    fn copy(&self, chunk: &[u8], element_nbytes: usize, out: &mut [u8]) -> Option<()> {
        let last = self.shape.len().checked_sub(1)?;
        let counts: Vec<usize> =
            self.chunk_shape.iter().zip(&self.block_shape).map(|(n, block)| n.div_ceil(*block)).collect();
        let mut rows_of_block = self.block_shape.clone();
        *rows_of_block.get_mut(last)? = 1;
        let row_nbytes = self.block_shape.get(last)?.checked_mul(element_nbytes)?;
        let mut rows = chunk.chunks_exact(row_nbytes);
        let mut block = vec![0; counts.len()];
        loop {
            let mut row = vec![0; counts.len()];
            loop {
                self.copy_row(rows.next()?, &block, &row, element_nbytes, out)?;
                if !step(&mut row, &rows_of_block) {
                    break;
                }
            }
            if !step(&mut block, &counts) {
                return Some(());
            }
        }
    }

    fn copy_row(
        &self,
        bytes: &[u8],
        block: &[usize],
        row: &[usize],
        element_nbytes: usize,
        out: &mut [u8],
    ) -> Option<()> {
        let mut linear = 0_usize;
        let mut room = 0;
        for (axis, &length) in self.shape.iter().enumerate() {
            let index = block.get(axis)? * self.block_shape.get(axis)? + row.get(axis)?;
            if index >= length {
                return Some(()); // padding
            }
            linear = linear.checked_mul(length)?.checked_add(index)?;
            room = length - index;
        }
        let count = room.checked_mul(element_nbytes)?.min(bytes.len());
        let start = linear.checked_mul(element_nbytes)?;
        out.get_mut(start..start.checked_add(count)?)?.copy_from_slice(bytes.get(..count)?);
        Some(())
    }
}

/// Moves to the next index in row-major order. Returns whether there was one.
fn step(index: &mut [usize], lengths: &[usize]) -> bool {
    for (index, length) in index.iter_mut().zip(lengths).rev() {
        *index += 1;
        if *index < *length {
            return true;
        }
        *index = 0;
    }
    false
}

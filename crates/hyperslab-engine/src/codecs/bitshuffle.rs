//! Groups bits of equal significance in blocks, compressed or not: registered filter 32008.

use super::buffer::{Buffer, Size};
use super::compress::{Compressors, Inner};
use super::lz4::decode_block;
use super::reader::Bytes;
use super::scratch::{Coded, Tools};
use super::{shuffle, zstd};
use crate::Error;

const CODEC: &str = "bitshuffle";

/// The compression of the transposed blocks, as the last parameter says it.
const PLAIN: u32 = 0;
const LZ4: u32 = 1;
const ZSTD: u32 = 2;

/// The default block size in bytes, and the smallest number of elements in a block.
const DEFAULT_BLOCK_NBYTES: usize = 8192;
const MIN_DEFAULT_BLOCK_ELEMENTS: usize = 128;

/// Decodes block by block. The parameters are the width of an element in bytes, the elements of a block (0 for the default
/// of 8192 bytes), and the compression of the blocks. Elements after the last multiple of eight are stored unchanged.
pub(super) fn decode(coded: &Coded<'_>, out: &mut Buffer, tools: &mut Tools) -> Result<usize, Error> {
    let Coded { bytes: input, size, .. } = *coded;
    let [element_nbytes, block_elements, inner] = coded.numbers(CODEC)?;
    let element_nbytes = element_nbytes as usize;
    if element_nbytes == 0 {
        return Err(Error::Parameters { codec: CODEC, problem: "elements of 0 bytes" });
    }
    if inner > ZSTD {
        return Err(Error::Parameters { codec: CODEC, problem: "an unknown compression of the blocks" });
    }
    let mut input = Bytes::new(CODEC, input);
    let (nbytes, block_nbytes) = if inner == PLAIN {
        (size.admit(CODEC, input.rest().len())?, block_nbytes(block_elements as usize, element_nbytes)?)
    } else {
        // The sizes of the data and of a block, as stored before the data.
        let nbytes = size.admit_claim(CODEC, input.u64_be()?)?;
        (nbytes, block_nbytes(input.u32_be()? as usize / element_nbytes, element_nbytes)?)
    };
    let space = out.space(nbytes)?;
    let eights_nbytes = nbytes / element_nbytes / 8 * 8 * element_nbytes;
    let (blocks, rest) = space.split_at_mut(eights_nbytes);
    for block in blocks.chunks_mut(block_nbytes) {
        decode_one(inner, &mut input, element_nbytes, block, tools)?;
    }
    rest.copy_from_slice(input.take(rest.len())?);
    Ok(nbytes)
}

/// The size of a block of this many elements; 0 means the default. Must be a multiple of eight elements.
fn block_nbytes(elements: usize, element_nbytes: usize) -> Result<usize, Error> {
    let elements = if elements == 0 {
        (DEFAULT_BLOCK_NBYTES / element_nbytes / 8 * 8).max(MIN_DEFAULT_BLOCK_ELEMENTS)
    } else {
        elements
    };
    if elements % 8 != 0 {
        return Err(Error::Parameters {
            codec: CODEC,
            problem: "blocks that are not a multiple of eight elements",
        });
    }
    Ok(elements.saturating_mul(element_nbytes))
}

fn decode_one(
    inner: u32,
    input: &mut Bytes<'_>,
    element_nbytes: usize,
    block: &mut [u8],
    tools: &mut Tools,
) -> Result<(), Error> {
    if inner == PLAIN {
        let rows = input.take(block.len())?;
        return unshuffle_bits(rows, element_nbytes, block, &mut tools.planes);
    }
    let encoded_nbytes = input.u32_be()? as usize;
    let encoded = input.take(encoded_nbytes)?;
    let expected = block.len();
    let rows = tools.work.space(expected)?;
    if inner == LZ4 {
        decode_block(CODEC, encoded, rows)?;
    } else {
        let found = zstd::decode_into(encoded, rows, &mut tools.zstd)?
            .ok_or(Error::DecodedBeyond { codec: CODEC, limit: expected })?;
        Size::Exact(expected).admit(CODEC, found)?;
    }
    unshuffle_bits(rows, element_nbytes, block, &mut tools.planes)
}

/// Undoes the bit transposition of a block: row `8·j + k` holds bit `k` of byte `j` of each element, eight elements to
/// a byte. The block must have a multiple of eight elements. Blosc uses this too.
pub(super) fn unshuffle_bits(
    rows: &[u8],
    element_nbytes: usize,
    out: &mut [u8],
    planes: &mut Buffer,
) -> Result<(), Error> {
    let row_nbytes = rows.len() / element_nbytes / 8;
    if row_nbytes == 0 {
        return Ok(());
    }
    let planes = planes.space(rows.len())?;
    for (rows, plane) in rows.chunks_exact(8 * row_nbytes).zip(planes.chunks_exact_mut(8 * row_nbytes)) {
        transpose_plane(rows, row_nbytes, plane);
    }
    shuffle::unshuffle_whole(planes, element_nbytes, out);
    Ok(())
}

/// Turns eight rows of bits into one byte of each element.
fn transpose_plane(rows: &[u8], row_nbytes: usize, plane: &mut [u8]) {
    let (first, rest) = rows.split_at(row_nbytes);
    let mut others = rest.chunks_exact(row_nbytes);
    let mut row = || others.next().unwrap_or_default();
    let (r1, r2, r3, r4, r5, r6, r7) = (row(), row(), row(), row(), row(), row(), row());
    let later = r1.iter().zip(r2).zip(r3).zip(r4).zip(r5).zip(r6).zip(r7);
    for ((b0, ((((((b1, b2), b3), b4), b5), b6), b7)), bytes) in
        first.iter().zip(later).zip(plane.chunks_exact_mut(8))
    {
        let word = u64::from_le_bytes([*b0, *b1, *b2, *b3, *b4, *b5, *b6, *b7]);
        bytes.copy_from_slice(&transpose_bits(word).to_le_bytes());
    }
}

/// Transposes an eight-by-eight matrix of bits by swapping ever larger squares across the diagonal, in three rounds
/// (Warren, Hacker's Delight, 7-3).
fn transpose_bits(word: u64) -> u64 {
    let swap = |word: u64, distance: u32, mask: u64| {
        let differing = (word ^ (word >> distance)) & mask;
        word ^ differing ^ (differing << distance)
    };
    let word = swap(word, 7, 0x00aa_00aa_00aa_00aa);
    let word = swap(word, 14, 0x0000_cccc_0000_cccc);
    swap(word, 28, 0x0000_0000_f0f0_f0f0)
}

/// Encodes block by block, as HDF5's filter does with its default block size.
pub(super) fn encode(bytes: &[u8], width: usize, inner: Inner, encoder: &mut Compressors) -> Option<Vec<u8>> {
    let width = width.max(1);
    let block_nbytes = block_nbytes(0, width).ok()?;
    let (whole, rest) = bytes.split_at(bytes.len() / width / 8 * 8 * width);
    let mut out = Vec::with_capacity(bytes.len());
    if inner != Inner::Plain {
        out.extend((bytes.len() as u64).to_be_bytes());
        out.extend(u32::try_from(block_nbytes).ok()?.to_be_bytes());
    }
    for block in whole.chunks(block_nbytes) {
        let rows = shuffle_bits(block, width);
        if inner == Inner::Plain {
            out.extend(rows);
            continue;
        }
        let encoded = encoder.inner(&rows, inner)?;
        out.extend(u32::try_from(encoded.len()).ok()?.to_be_bytes());
        out.extend(encoded);
    }
    out.extend(rest);
    Some(out)
}

/// Transposes the bits of a block of a multiple of eight elements; `unshuffle_bits` undoes it.
pub(super) fn shuffle_bits(block: &[u8], element_nbytes: usize) -> Vec<u8> {
    let planes = shuffle::encode(element_nbytes, block);
    let row_nbytes = block.len() / element_nbytes / 8;
    let mut out = vec![0; block.len()];
    if row_nbytes == 0 {
        return out;
    }
    for (plane, rows) in planes.chunks_exact(8 * row_nbytes).zip(out.chunks_exact_mut(8 * row_nbytes)) {
        for (at, bytes) in plane.chunks_exact(8).enumerate() {
            let word = bytes.try_into().map_or(0, u64::from_le_bytes);
            for (row, byte) in transpose_bits(word).to_le_bytes().into_iter().enumerate() {
                rows[row * row_nbytes + at] = byte;
            }
        }
    }
    out
}

//! Shuffle groups bytes of equal significance: HDF5's filter 2, numcodecs' shuffle. Blosc uses it too.
//!
//! A shuffled chunk holds the first bytes of all elements, then all second bytes, and so on: planes. Bytes after the
//! last whole element stay at the end unchanged (HDF5's `H5Zshuffle.c` does the same).

use super::buffer::{Buffer, Size};
use super::planes::Planes;
#[cfg(target_arch = "x86_64")]
use super::shuffle_x86 as simd;
use crate::Error;

const CODEC: &str = "shuffle";

/// How many elements the portable loop handles at a time, so its output stays in the first-level cache.
const GROUP_ELEMENTS: usize = 256;

/// Undoes shuffle in the middle of a chain.
pub(super) fn decode(
    element_nbytes: u64,
    input: &[u8],
    size: Size,
    out: &mut Buffer,
) -> Result<usize, Error> {
    let element_nbytes = usize::try_from(element_nbytes).unwrap_or(usize::MAX);
    if element_nbytes == 0 {
        return Err(Error::Parameters { codec: CODEC, problem: "elements of 0 bytes" });
    }
    let nbytes = size.admit(CODEC, input.len())?;
    unshuffle_whole(input, element_nbytes, out.space(nbytes)?);
    Ok(nbytes)
}

/// Encodes: the first bytes of all elements, then all second bytes, and so on; then the bytes after the last whole
/// element.
pub(super) fn encode(width: usize, bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    encode_into(width, bytes, &mut out);
    out
}

/// The same, into memory that is used again.
#[allow(clippy::cast_possible_truncation)] // the lowest byte is meant
pub(super) fn encode_into(width: usize, bytes: &[u8], out: &mut Vec<u8>) {
    let count = bytes.len() / width;
    if count <= 1 || width == 1 {
        bytes.clone_into(out);
        return;
    }
    out.resize(bytes.len(), 0);
    let (elements, rest) = bytes.split_at(count * width);
    let (planes, end) = out.split_at_mut(count * width);
    match width {
        2 => deinterleave(elements, planes, |element, bits| (u16::from_le_bytes(element) >> bits) as u8),
        4 => deinterleave(elements, planes, |element, bits| (u32::from_le_bytes(element) >> bits) as u8),
        8 => deinterleave(elements, planes, |element, bits| (u64::from_le_bytes(element) >> bits) as u8),
        _ => {
            for (index, plane) in planes.chunks_exact_mut(count).enumerate() {
                for (byte, element) in plane.iter_mut().zip(elements.chunks_exact(width)) {
                    *byte = element[index];
                }
            }
        }
    }
    end.copy_from_slice(rest);
}

/// Fills planes from elements of `W` bytes, a few elements at a time, so that they are read from the nearest cache.
/// `byte` takes one of an element, by its lowest bit: of whole numbers the compiler takes many at a time.
fn deinterleave<const W: usize>(elements: &[u8], planes: &mut [u8], byte: impl Fn([u8; W], usize) -> u8) {
    let (elements, _) = elements.as_chunks::<W>();
    for (number, group) in elements.chunks(GROUP_ELEMENTS).enumerate() {
        for index in 0..W {
            let plane = &mut planes[index * elements.len() + number * GROUP_ELEMENTS..][..group.len()];
            for (out, element) in plane.iter_mut().zip(group) {
                *out = byte(*element, 8 * index);
            }
        }
    }
}

/// Copies all elements of a shuffled chunk, and the bytes after the last whole one, into `out`.
///
/// # Panics
/// If `out` is not as long as `planes`, or `element_nbytes` is 0.
pub fn unshuffle_whole(planes: &[u8], element_nbytes: usize, out: &mut [u8]) {
    assert_eq!(planes.len(), out.len(), "an unshuffled chunk is as long as the shuffled one");
    unshuffle_into(planes, element_nbytes, 0, out);
}

/// Copies elements of a shuffled chunk into `out`, starting at `first_element`: as many as fit.
///
/// If `out` is longer than the rest of the elements, the bytes after the last whole element follow.
///
/// # Panics
/// If the chunk has too few elements and bytes, or `element_nbytes` is 0.
pub fn unshuffle_into(planes: &[u8], element_nbytes: usize, first_element: usize, out: &mut [u8]) {
    let count = planes.len() / element_nbytes;
    assert!(first_element <= count, "element {first_element} of a chunk of {count}");
    let wanted = (out.len() / element_nbytes).min(count - first_element);
    let (elements, rest) = out.split_at_mut(wanted * element_nbytes);
    interleave(Planes { bytes: planes, count, element_nbytes, first_element }, elements);
    if !rest.is_empty() {
        let tail = &planes[count * element_nbytes..];
        assert!(rest.len() <= tail.len(), "{} bytes after the last element, of {}", rest.len(), tail.len());
        rest.copy_from_slice(&tail[..rest.len()]);
    }
}

/// The bytes of a chunk that was shuffled block by block. HDF5's filter has one block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shuffled<'p> {
    /// For each block: all first bytes, all second bytes, and so on; then the bytes after the last whole element.
    pub planes: &'p [u8],
    /// Width of an element; at least 2.
    pub element_nbytes: usize,
    /// Bytes of each block except the last. With several blocks, a multiple of the element width.
    pub block_nbytes: usize,
}

impl Shuffled<'_> {
    /// Copies all elements into `out`.
    ///
    /// # Panics
    /// If `out` is not as long as `planes`.
    pub fn unshuffle(&self, out: &mut [u8]) {
        assert_eq!(self.planes.len(), out.len(), "an unshuffled chunk is as long as the shuffled one");
        let block_nbytes = self.block_nbytes.max(1);
        for (planes, out) in self.planes.chunks(block_nbytes).zip(out.chunks_mut(block_nbytes)) {
            unshuffle_whole(planes, self.element_nbytes, out);
        }
    }

    /// Copies every `step`-th element into `out`, starting at `first`: as many whole ones as fit.
    ///
    /// # Panics
    /// If the chunk has too few elements.
    pub fn gather(&self, first: usize, step: usize, out: &mut [u8]) {
        let width = self.element_nbytes;
        let per_block = (self.block_nbytes / width).max(1);
        let whole = out.len() / width * width;
        let (mut position, mut rest) = (first, &mut out[..whole]);
        while !rest.is_empty() {
            let later = &self.planes[position / per_block * self.block_nbytes..];
            let block = &later[..later.len().min(self.block_nbytes)];
            let within = position % per_block;
            let count = (per_block - within).div_ceil(step).min(rest.len() / width);
            let (elements, next) = rest.split_at_mut(count * width);
            if step == 1 {
                unshuffle_into(block, width, within, elements);
            } else {
                pick(block, width, (within..).step_by(step), elements);
            }
            (position, rest) = (position + count * step, next);
        }
    }
}

/// Copies the elements at these positions of a block into `out`.
fn pick(block: &[u8], element_nbytes: usize, positions: impl Iterator<Item = usize>, out: &mut [u8]) {
    let count = block.len() / element_nbytes;
    for (element, position) in out.chunks_exact_mut(element_nbytes).zip(positions) {
        for (index, byte) in element.iter_mut().enumerate() {
            *byte = block[index * count + position];
        }
    }
}

/// Fills `out` with whole elements.
fn interleave(planes: Planes<'_>, out: &mut [u8]) {
    if out.is_empty() {
        return; // an element may be wider than memory
    }
    if planes.element_nbytes == 1 {
        let length = out.len();
        out.copy_from_slice(&planes.plane(0)[..length]);
        return;
    }
    #[cfg(target_arch = "x86_64")]
    let done = simd::interleave(planes, planes.element_nbytes, out);
    #[cfg(not(target_arch = "x86_64"))]
    let done = 0;
    interleave_portably(planes.skip(done), &mut out[done * planes.element_nbytes..]);
}

/// The same without vector instructions.
fn interleave_portably(planes: Planes<'_>, out: &mut [u8]) {
    let element_nbytes = planes.element_nbytes;
    let mut planes = planes;
    for group in out.chunks_mut(GROUP_ELEMENTS.saturating_mul(element_nbytes)) {
        for index in 0..element_nbytes {
            let elements = group.chunks_exact_mut(element_nbytes);
            for (element, &byte) in elements.zip(planes.plane(index)) {
                element[index] = byte;
            }
        }
        planes = planes.skip(group.len() / element_nbytes);
    }
}

#[cfg(test)]
mod tests {
    use super::{Shuffled, encode, unshuffle_into, unshuffle_whole};

    fn shuffled(bytes: &[u8], element_nbytes: usize) -> Vec<u8> {
        let count = bytes.len() / element_nbytes;
        let mut planes = Vec::new();
        for index in 0..element_nbytes {
            planes.extend((0..count).map(|element| bytes[element * element_nbytes + index]));
        }
        planes.extend(&bytes[count * element_nbytes..]);
        planes
    }

    #[test]
    fn what_is_encoded_many_at_a_time_is_what_one_by_one_gives() {
        let bytes: Vec<u8> =
            (0..20_011_u32).map(|i| i.wrapping_mul(2_654_435_761).to_le_bytes()[3]).collect();
        for width in 1..=9 {
            for nbytes in [0, 1, width, 2 * width + 1, 255 * width, 256 * width, 257 * width + 1, bytes.len()]
            {
                let bytes = &bytes[..nbytes.min(bytes.len())];
                assert_eq!(encode(width, bytes), shuffled(bytes, width), "{width} {nbytes}");
            }
        }
    }

    #[test]
    fn every_width_and_length() {
        let bytes: Vec<u8> = (0..6000_u32).map(|i| i.wrapping_mul(2_654_435_761).to_le_bytes()[3]).collect();
        for element_nbytes in [1, 2, 3, 4, 5, 7, 8, 12, 16, 24, 31, 32, 100, 700] {
            for length in (0..150).chain(2040..2060).chain([5987, 6000]) {
                let planes = shuffled(&bytes[..length], element_nbytes);
                let mut out = vec![0; length];
                unshuffle_whole(&planes, element_nbytes, &mut out);
                assert_eq!(out, bytes[..length], "{length} bytes, elements of {element_nbytes}");
            }
        }
    }

    #[test]
    fn some_elements() {
        let bytes: Vec<u8> = (0..4003_u32).map(|i| i.wrapping_mul(2_654_435_761).to_le_bytes()[3]).collect();
        for element_nbytes in [2, 3, 4, 8, 16] {
            let planes = shuffled(&bytes, element_nbytes);
            let count = bytes.len() / element_nbytes;
            for first in [0, 1, 17, 100, count] {
                for wanted in [0, 1, 15, 16, 33, 64, 100, 131] {
                    let wanted = wanted.min(count - first);
                    let mut out = vec![0; wanted * element_nbytes];
                    unshuffle_into(&planes, element_nbytes, first, &mut out);
                    assert_eq!(out, bytes[first * element_nbytes..][..out.len()]);
                }
            }
        }
    }

    #[test]
    fn elements_of_several_blocks() {
        let bytes: Vec<u8> = (0..1000_u32).map(|i| i.wrapping_mul(2_654_435_761).to_le_bytes()[3]).collect();
        for (element_nbytes, block_nbytes) in [(2, 2), (2, 64), (4, 400), (4, 1000), (4, 2000), (8, 24)] {
            let blocks = bytes.chunks(block_nbytes).flat_map(|block| shuffled(block, element_nbytes));
            let planes: Vec<u8> = blocks.collect();
            let chunk = Shuffled { planes: &planes, element_nbytes, block_nbytes };
            let mut out = vec![0; bytes.len()];
            chunk.unshuffle(&mut out);
            assert_eq!(out, bytes);
            for (first, step) in [(0, 1), (3, 1), (0, 2), (5, 7), (99, 100)] {
                let wanted: Vec<u8> =
                    bytes.chunks_exact(element_nbytes).skip(first).step_by(step).flatten().copied().collect();
                let mut out = vec![0; wanted.len()];
                chunk.gather(first, step, &mut out);
                assert_eq!(out, wanted, "every {step} of {element_nbytes} bytes, blocks of {block_nbytes}");
            }
        }
    }

    #[test]
    fn bytes_after_the_last_element() {
        let planes = [1, 3, 2, 4, 9];
        let mut out = [0; 3];
        unshuffle_into(&planes, 2, 1, &mut out);
        assert_eq!(out, [3, 4, 9]);
    }
}

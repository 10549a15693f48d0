//! HDF5's filter 4: extended-Rice coding by CCSDS 121.0-B, in libsz's framing.
//!
//! HDF5 writes the decoded size in four little-endian bytes, then a stream of bits. Samples come in scan lines. Each
//! line is coded on its own (a "reference sample interval" of the standard) and padded to whole blocks. With
//! preprocessing, a sample is its mapped difference to the one before, and the first block of a line starts with a
//! plain sample. Pixels of 32 and 64 bits are coded as planes of bytes.

use super::buffer::Buffer;
use super::reader::{Bits, Bytes};
use super::scratch::{Coded, Tools};
use super::shuffle;
use crate::Error;

pub(super) const CODEC: &str = "szip";

/// libsz's options: most significant byte first, and preprocessing by nearest neighbour.
const MSB: u32 = 16;
const NEAREST_NEIGHBOUR: u32 = 32;

/// libsz's limits are 32 and 4096; the standard allows blocks of 64.
const MAX_BLOCK_SAMPLES: u32 = 64;
const MAX_LINE_SAMPLES: u32 = 1 << 16;

fn damaged(problem: &'static str) -> Error {
    Error::Damaged { codec: CODEC, problem }
}

/// Decodes an HDF5 chunk. The parameters are libsz's options, bits per pixel, pixels per block and pixels per scan line.
pub(super) fn decode(coded: &Coded<'_>, out: &mut Buffer, tools: &mut Tools) -> Result<usize, Error> {
    let Coded { bytes: input, size, .. } = *coded;
    let mut input = Bytes::new(CODEC, input);
    let nbytes = size.admit_claim(CODEC, u64::from(input.u32_le()?))?;
    decode_pixels(coded.numbers(CODEC)?, input.rest(), nbytes, out, tools)
}

/// Decodes a stream of pixels. `layout` has libsz's options, bits per pixel, pixels per block and pixels per scan line.
pub(super) fn decode_pixels(
    layout: [u32; 4],
    input: &[u8],
    nbytes: usize,
    out: &mut Buffer,
    tools: &mut Tools,
) -> Result<usize, Error> {
    let [options, pixel_nbits, block_samples, line_samples] = layout;
    let planes = matches!(pixel_nbits, 32 | 64);
    let coding = Coding::of(options, if planes { 8 } else { pixel_nbits }, block_samples, line_samples)?;
    let space = out.space(nbytes)?;
    if !planes {
        coding.decode(input, space, &mut tools.samples)?;
        return Ok(nbytes);
    }
    let bytes = tools.work.space(nbytes)?;
    coding.decode(input, bytes, &mut tools.samples)?;
    shuffle::unshuffle_whole(bytes, pixel_nbits as usize / 8, space);
    Ok(nbytes)
}

/// How samples are coded.
#[derive(Clone, Copy, Debug)]
struct Coding {
    big_endian: bool,
    preprocessed: bool,
    sample_nbits: u32,
    sample_nbytes: usize,
    /// How many bits encode the kind of a block.
    id_nbits: u32,
    block_samples: usize,
    line_samples: usize,
}

impl Coding {
    fn of(options: u32, sample_nbits: u32, block_samples: u32, line_samples: u32) -> Result<Self, Error> {
        let (sample_nbytes, id_nbits) = match sample_nbits {
            1..=8 => (1, 3),
            9..=16 => (2, 4),
            17..=32 => (4, 5),
            _ => return Err(Error::Parameters { codec: CODEC, problem: "pixels of an unsupported width" }),
        };
        let possible = (1..=MAX_BLOCK_SAMPLES).contains(&block_samples)
            && block_samples.is_multiple_of(2)
            && (1..=MAX_LINE_SAMPLES).contains(&line_samples);
        if !possible {
            return Err(Error::Parameters {
                codec: CODEC,
                problem: "blocks or lines of an unsupported size",
            });
        }
        Ok(Self {
            big_endian: options & MSB != 0,
            preprocessed: options & NEAREST_NEIGHBOUR != 0,
            sample_nbits,
            sample_nbytes,
            id_nbits,
            block_samples: block_samples as usize,
            line_samples: line_samples as usize,
        })
    }

    /// Decodes line by line until `out` is full.
    fn decode(self, input: &[u8], out: &mut [u8], samples: &mut Vec<u32>) -> Result<(), Error> {
        if !out.len().is_multiple_of(self.sample_nbytes) {
            return Err(damaged("a size that is not a whole number of pixels"));
        }
        let mut bits = Bits::new(input);
        for line in out.chunks_mut(self.line_samples * self.sample_nbytes) {
            samples.clear();
            self.read_line(&mut bits, line.len() / self.sample_nbytes, samples)
                .ok_or(damaged("not a complete stream of coded blocks"))?;
            if self.preprocessed {
                self.undo_differences(samples);
            }
            self.store(samples, line);
        }
        Ok(())
    }

    /// Reads the blocks of a line, until at least this many samples are there.
    fn read_line(self, bits: &mut Bits<'_>, needed: usize, samples: &mut Vec<u32>) -> Option<()> {
        let line_blocks = self.line_samples.div_ceil(self.block_samples);
        // Where the array's end cuts a line, today's library codes the whole line and old ones only its start. Nothing
        // follows it, so reading what is needed works for both.
        let whole = needed == self.line_samples;
        let end = if whole { line_blocks * self.block_samples } else { needed };
        while samples.len() < end {
            self.read_block(bits, line_blocks, samples)?;
        }
        Some(())
    }

    fn read_block(self, bits: &mut Bits<'_>, line_blocks: usize, samples: &mut Vec<u32>) -> Option<()> {
        let id = u32::try_from(bits.take(self.id_nbits)?).ok()?;
        let start = samples.len();
        let reference = self.preprocessed && start == 0;
        if id == (1 << self.id_nbits) - 1 {
            for _ in 0..self.block_samples {
                samples.push(self.plain(bits)?);
            }
            return Some(());
        }
        let second_extension = if id == 0 { Some(bits.take(1)? == 1) } else { None };
        if reference {
            samples.push(self.plain(bits)?);
        }
        match second_extension {
            None => read_split(bits, id - 1, start + self.block_samples, samples),
            Some(true) => read_pairs(bits, start + self.block_samples, samples),
            Some(false) => self.read_zeros(bits, start, line_blocks, samples),
        }
    }

    /// A plain sample.
    fn plain(self, bits: &mut Bits<'_>) -> Option<u32> {
        u32::try_from(bits.take(self.sample_nbits)?).ok()
    }

    /// Blocks of zeros. Their number is in unary; five means up to the end of the line or of its segment of 64 blocks.
    fn read_zeros(
        self,
        bits: &mut Bits<'_>,
        start: usize,
        line_blocks: usize,
        samples: &mut Vec<u32>,
    ) -> Option<()> {
        let before = start / self.block_samples;
        let left = line_blocks.checked_sub(before)?;
        let blocks = match bits.zeros()? as usize + 1 {
            few @ 1..=4 => few,
            5 => left.min(64 - before % 64),
            many => many - 1,
        };
        if blocks > left {
            return None;
        }
        samples.resize(start + blocks * self.block_samples, 0);
        Some(())
    }

    /// Each sample after the first is a mapped difference, small when likely: 0, -1, 1, -2, … within the range that
    /// both signs allow, and then one-sided.
    fn undo_differences(self, samples: &mut [u32]) {
        let greatest = u32::MAX >> (32 - self.sample_nbits);
        let Some((&mut first, rest)) = samples.split_first_mut() else { return };
        let mut before = first;
        for sample in rest {
            let mapped = *sample;
            let room = before.min(greatest.wrapping_sub(before));
            let half = mapped / 2 + mapped % 2;
            before = if half <= room {
                if mapped % 2 == 0 { before.wrapping_add(half) } else { before.wrapping_sub(half) }
            } else if before <= greatest / 2 {
                mapped
            } else {
                greatest.wrapping_sub(mapped)
            };
            *sample = before;
        }
    }

    /// Stores samples until the line is full.
    fn store(self, samples: &[u32], line: &mut [u8]) {
        let skipped = if self.big_endian { 4 - self.sample_nbytes } else { 0 };
        for (sample, out) in samples.iter().zip(line.chunks_exact_mut(self.sample_nbytes)) {
            let bytes = if self.big_endian { sample.to_be_bytes() } else { sample.to_le_bytes() };
            out.iter_mut().zip(bytes.iter().skip(skipped)).for_each(|(out, byte)| *out = *byte);
        }
    }
}

/// Sample splitting: first all high parts in unary, then all low parts of `low_nbits`.
fn read_split(bits: &mut Bits<'_>, low_nbits: u32, end: usize, samples: &mut Vec<u32>) -> Option<()> {
    let first = samples.len();
    for _ in first..end {
        samples.push(bits.zeros()?.checked_shl(low_nbits)?);
    }
    if low_nbits > 0 {
        for sample in samples.get_mut(first..)? {
            *sample |= u32::try_from(bits.take(low_nbits)?).ok()?;
        }
    }
    Some(())
}

/// The second extension: one unary number for each pair, counted along the diagonals of (first, second). The first of a
/// pair is missing if it is the line's plain first sample.
fn read_pairs(bits: &mut Bits<'_>, end: usize, samples: &mut Vec<u32>) -> Option<()> {
    while samples.len() < end {
        let number = bits.zeros()?;
        let (sum, second) = diagonal(number)?;
        if (end - samples.len()).is_multiple_of(2) {
            samples.push(sum - second);
        }
        samples.push(second);
    }
    Some(())
}

/// The sum of a pair, and its second part. Pairs are counted by sum, and within a sum by the second part.
fn diagonal(number: u32) -> Option<(u32, u32)> {
    let mut first_of_sum = 0;
    for sum in 0..13 {
        if number <= first_of_sum + sum {
            return Some((sum, number - first_of_sum));
        }
        first_of_sum += sum + 1;
    }
    None
}

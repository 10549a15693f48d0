//! HDF5's filter 5: stores only the significant bits of each element, one after another.
//!
//! The parameters describe the element as `H5Znbit.c` writes it: how many numbers there are, whether the data are
//! unpacked, the number of elements, and then the element's class with its own parameters.

use super::buffer::Buffer;
use super::reader::Bits;
use super::scratch::{Coded, Step, Tools};
use crate::Error;

const CODEC: &str = "nbit";

/// The deepest nesting of classes. HDF5 writes descriptions of at most 4096 numbers; real ones have a few levels.
const MAX_DEPTH: usize = 32;
/// The most atoms and runs of bytes in one element.
const MAX_PARTS: usize = 65_536;

/// Whether the element has no insignificant bits, so the data were not packed.
fn is_identity(parameters: &[u32]) -> bool {
    parameters.get(1).is_some_and(|&flag| flag != 0)
}

/// Spreads the stored bits over the elements. All other bits are 0.
pub(super) fn decode(coded: &Coded<'_>, out: &mut Buffer, _: &mut Tools) -> Result<Step, Error> {
    let Coded { bytes: input, size, parameters, .. } = *coded;
    if is_identity(parameters) {
        return Ok(Step::Kept(input.len()));
    }
    let invalid = Error::Parameters { codec: CODEC, problem: "they describe no element" };
    let (Some(&count), Some(&element_nbytes)) = (parameters.get(2), parameters.get(4)) else {
        return Err(invalid);
    };
    let nbytes = size.admit_claim(CODEC, u64::from(count) * u64::from(element_nbytes))?;
    let mut description = Description { numbers: parameters.get(3..).unwrap_or_default(), parts: Vec::new() };
    description.part(0, 0).ok_or(invalid)?;
    let nbits = description.parts.iter().fold(0_u64, |sum, part| sum.saturating_add(part.nbits()));
    if nbits.saturating_mul(u64::from(count)) > (input.len() as u64).saturating_mul(8) {
        return Err(Error::Damaged { codec: CODEC, problem: "fewer bits than its elements need" });
    }
    let space = out.space(nbytes)?;
    space.fill(0);
    let mut bits = Bits::new(input);
    for element in space.chunks_exact_mut((element_nbytes as usize).max(1)) {
        for part in &description.parts {
            part.read(&mut bits, element)
                .ok_or(Error::Damaged { codec: CODEC, problem: "fewer bits than its elements need" })?;
        }
    }
    Ok(Step::Made(nbytes))
}

/// A part of an element that is stored together.
#[derive(Clone, Copy, Debug)]
enum Part {
    /// A number of which only `precision` bits are stored, counting from `bit_offset`.
    Atom { offset: usize, nbytes: usize, big_endian: bool, precision: u32, bit_offset: u32 },
    /// Bytes of a type that uses all its bits.
    Bytes { offset: usize, nbytes: usize },
}

impl Part {
    fn nbits(self) -> u64 {
        match self {
            Self::Atom { precision, .. } => u64::from(precision),
            Self::Bytes { nbytes, .. } => (nbytes as u64).saturating_mul(8),
        }
    }

    /// Puts its bits where they belong in the element.
    fn read(self, bits: &mut Bits<'_>, element: &mut [u8]) -> Option<()> {
        match self {
            Self::Bytes { offset, nbytes } => {
                for byte in element.get_mut(offset..offset.checked_add(nbytes)?)? {
                    *byte = low_byte(bits.take(8)?);
                }
                Some(())
            }
            Self::Atom { offset, nbytes, big_endian, precision, bit_offset } => {
                let bytes = element.get_mut(offset..offset.checked_add(nbytes)?)?;
                // The most significant bits come first, split at byte boundaries.
                let mut top = bit_offset.checked_add(precision)?;
                while top > bit_offset {
                    let bottom = bit_offset.max((top - 1) / 8 * 8);
                    let value = low_byte(bits.take(top - bottom)? << (bottom % 8));
                    let significance = (bottom / 8) as usize;
                    let byte_index =
                        if big_endian { nbytes.checked_sub(1 + significance)? } else { significance };
                    *bytes.get_mut(byte_index)? |= value;
                    top = bottom;
                }
                Some(())
            }
        }
    }
}

fn low_byte(bits: u64) -> u8 {
    bits.to_le_bytes()[0]
}

/// The numbers that describe an element, and the parts found so far.
struct Description<'p> {
    numbers: &'p [u32],
    parts: Vec<Part>,
}

impl Description<'_> {
    fn next(&mut self) -> Option<u32> {
        let (&first, rest) = self.numbers.split_first()?;
        self.numbers = rest;
        Some(first)
    }

    fn push(&mut self, part: Part) -> Option<()> {
        self.parts.push(part);
        (self.parts.len() <= MAX_PARTS).then_some(())
    }

    /// The description of the part at this offset: a class, and the class's own parameters.
    fn part(&mut self, offset: usize, depth: usize) -> Option<()> {
        if depth > MAX_DEPTH {
            return None;
        }
        match self.next()? {
            1 => self.atom(offset),
            2 => self.array(offset, depth),
            3 => self.compound(offset, depth),
            4 => {
                let nbytes = self.next()? as usize;
                self.push(Part::Bytes { offset, nbytes })
            }
            _ => None,
        }
    }

    fn atom(&mut self, offset: usize) -> Option<()> {
        let nbytes = self.next()?;
        let big_endian = match self.next()? {
            0 => false,
            1 => true,
            _ => return None,
        };
        let (precision, bit_offset) = (self.next()?, self.next()?);
        let fits = u64::from(precision) + u64::from(bit_offset) <= 8 * u64::from(nbytes);
        if precision == 0 || !fits {
            return None;
        }
        self.push(Part::Atom { offset, nbytes: nbytes as usize, big_endian, precision, bit_offset })
    }

    /// An array of one class: its size, then the description of one item, which applies to all of them.
    fn array(&mut self, offset: usize, depth: usize) -> Option<()> {
        let nbytes = self.next()? as usize;
        if self.numbers.first() == Some(&4) {
            self.numbers = self.numbers.get(2..)?;
            return self.push(Part::Bytes { offset, nbytes });
        }
        let item_nbytes = *self.numbers.get(1)? as usize;
        let item = self.numbers;
        for index in 0..nbytes.checked_div(item_nbytes)? {
            self.numbers = item;
            self.part(offset.checked_add(index.checked_mul(item_nbytes)?)?, depth + 1)?;
        }
        Some(())
    }

    /// A compound: its size, the number of members, and for each its offset and description.
    fn compound(&mut self, offset: usize, depth: usize) -> Option<()> {
        let _nbytes = self.next()?;
        for _ in 0..self.next()? {
            let member = self.next()? as usize;
            self.part(offset.checked_add(member)?, depth + 1)?;
        }
        Some(())
    }
}

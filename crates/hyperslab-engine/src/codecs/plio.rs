//! FITS's `PLIO_1` (FITS Standard 4.0, section 10.4.3): IRAF's line lists, whose instructions paint runs of one value.
//! Decodes to big-endian integers of 4 bytes.

use super::buffer::Buffer;
use super::scratch::{Coded, Tools};
use crate::Error;

const CODEC: &str = "plio";
const ELEMENT_NBYTES: usize = 4;

/// Words in the header of an old list, and the least number in a new one.
const OLD_HEADER_WORDS: usize = 3;
const NEW_HEADER_WORDS: usize = 5;

/// Decodes to as many integers as `size` allows. Elements that the list does not paint are zero.
pub(super) fn decode(coded: &Coded<'_>, out: &mut Buffer, _: &mut Tools) -> Result<usize, Error> {
    let Coded { bytes: input, size, .. } = *coded;
    let nbytes = size.known(CODEC)?;
    let words: Vec<u16> = input
        .chunks_exact(2)
        .map(|word| word.iter().fold(0, |word, &byte| word << 8 | u16::from(byte)))
        .collect();
    let space = out.space(nbytes)?;
    space.fill(0);
    let problem = "not a complete line list";
    let instructions = instructions(&words).ok_or(Error::Damaged { codec: CODEC, problem })?;
    paint(instructions, space).ok_or(Error::Damaged { codec: CODEC, problem })?;
    Ok(nbytes)
}

/// The instructions after the header, which has the length of the list. Old lists have a shorter header.
fn instructions(words: &[u16]) -> Option<&[u16]> {
    let is_positive = |word: u16| (1..0x8000).contains(&word);
    let old = words.get(OLD_HEADER_WORDS - 1).copied().filter(|&word| is_positive(word));
    let (start, stop) = if let Some(length) = old {
        (OLD_HEADER_WORDS, usize::from(length))
    } else {
        let [_, start, _, low, high, ..] = *words else { return None };
        (usize::from(start).max(NEW_HEADER_WORDS), (usize::from(high) << 15) + usize::from(low))
    };
    if stop == 0 { Some(&[]) } else { words.get(start..stop) }
}

/// Follows instructions: 4 bits are the operation, 12 bits its number.
fn paint(instructions: &[u16], out: &mut [u8]) -> Option<()> {
    let (mut next, mut value) = (0_usize, 1_u32);
    let mut words = instructions.iter();
    while let Some(word) = words.next() {
        let number = u32::from(word & 0x0fff);
        match word >> 12 {
            1 => value = (u32::from(*words.next()?) << 12).checked_add(number)?,
            2 | 6 => value = value.wrapping_add(number),
            3 | 7 => value = value.wrapping_sub(number),
            _ => (),
        }
        // How many elements the instruction passes, and how many of the last of them it paints.
        let (passed, painted) = match word >> 12 {
            0 => (number, 0),
            1..=3 => continue,
            4 => (number, number),
            5 => (number, number.min(1)),
            6 | 7 => (1, 1),
            _ => return None,
        };
        let end = next.checked_add(usize::try_from(passed).ok()?)?;
        let start = end.checked_sub(usize::try_from(painted).ok()?)?;
        let byte_offset = |element: usize| element.checked_mul(ELEMENT_NBYTES);
        for element in out.get_mut(byte_offset(start)?..byte_offset(end)?)?.chunks_exact_mut(ELEMENT_NBYTES) {
            element.copy_from_slice(&value.to_be_bytes());
        }
        next = end;
    }
    Some(())
}

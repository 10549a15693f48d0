//! FITS's `RICE_1` (FITS Standard 4.0, section 10.4.1): differences between integers, in blocks of Rice code.
//!
//! The first integer is stored plain. Each block starts with the number of low bits that are stored plain; then each
//! difference follows, its high part in unary and then its low bits. Differences are mapped so that small ones stay
//! small: 0, -1, 1, -2, …

use super::buffer::Buffer;
use super::reader::{Bits, Bytes};
use super::scratch::{Coded, Tools};
use crate::Error;

const CODEC: &str = "rice";

/// How integers of one width are coded.
#[derive(Clone, Copy)]
struct Coding {
    nbytes: usize,
    /// How many bits encode the number of low bits of a block.
    id_nbits: u32,
    /// The code, less one, of a block that stores all bits plain.
    plain_id: u32,
}

impl Coding {
    fn of(element_nbytes: u64) -> Result<Self, Error> {
        match element_nbytes {
            1 => Ok(Self { nbytes: 1, id_nbits: 3, plain_id: 6 }),
            2 => Ok(Self { nbytes: 2, id_nbits: 4, plain_id: 14 }),
            4 => Ok(Self { nbytes: 4, id_nbits: 5, plain_id: 25 }),
            _ => {
                Err(Error::Parameters { codec: CODEC, problem: "integers that do not have 1, 2 or 4 bytes" })
            }
        }
    }

    /// Decodes one block into `out`: undoes the mapped differences, starting from `before`. Arithmetic wraps at the
    /// width.
    fn read_block(self, bits: &mut Bits<'_>, before: &mut u32, out: &mut [u8]) -> Option<()> {
        let id = u32::try_from(bits.take(self.id_nbits)?).ok()?;
        let low_nbits = id.checked_sub(1);
        for out in out.chunks_exact_mut(self.nbytes) {
            let mapped = match low_nbits {
                None => 0,
                Some(all) if all == self.plain_id => bits.take(8 * u32::try_from(self.nbytes).ok()?)?,
                Some(low) => {
                    let high = u64::from(bits.zeros()?);
                    high.checked_shl(low)? | bits.take(low)?
                }
            };
            let mapped = u32::try_from(mapped).ok()?;
            let difference = if mapped & 1 == 0 { mapped >> 1 } else { !(mapped >> 1) };
            *before = before.wrapping_add(difference);
            out.copy_from_slice(before.to_be_bytes().get(4 - self.nbytes..)?);
        }
        Some(())
    }
}

/// Decodes to as many big-endian integers as the size allows. The parameters are the width of an integer in bytes, and
/// how many are in a block.
pub(super) fn decode(coded: &Coded<'_>, out: &mut Buffer, _: &mut Tools) -> Result<usize, Error> {
    let Coded { bytes: input, size, .. } = *coded;
    let [element_nbytes, block_elements] = coded.numbers(CODEC)?.map(u64::from);
    let coding = Coding::of(element_nbytes)?;
    let nbytes = size.known(CODEC)?;
    let block_nbytes = usize::try_from(block_elements.saturating_mul(element_nbytes)).unwrap_or(usize::MAX);
    if block_nbytes == 0 || !nbytes.is_multiple_of(coding.nbytes) {
        return Err(Error::Parameters {
            codec: CODEC,
            problem: "not a whole number of integers, or empty blocks",
        });
    }
    let mut input = Bytes::new(CODEC, input);
    let mut before = input.take(coding.nbytes)?.iter().fold(0, |value, &byte| value << 8 | u32::from(byte));
    let mut bits = Bits::new(input.rest());
    // Sizes are whole integers, so `chunks_mut` ends blocks where integers end.
    for block in out.space(nbytes)?.chunks_mut(block_nbytes) {
        coding
            .read_block(&mut bits, &mut before, block)
            .ok_or(Error::Damaged { codec: CODEC, problem: "not a complete stream of coded blocks" })?;
    }
    Ok(nbytes)
}

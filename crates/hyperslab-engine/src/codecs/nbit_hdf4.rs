//! HDF4's n-bit coding: stores some consecutive bits of each element, the most significant first.

use super::buffer::Buffer;
use super::reader::Bits;
use super::scratch::{Coded, Tools};
use crate::Error;

const CODEC: &str = "nbit";

/// Decodes to as many big-endian elements as the size allows. The parameters are the width of an element in bytes, the
/// highest stored bit, how many are stored, whether bits above repeat the highest one, and whether other bits are 1.
pub(super) fn decode(coded: &Coded<'_>, out: &mut Buffer, _: &mut Tools) -> Result<usize, Error> {
    let Coded { bytes: input, size, .. } = *coded;
    let [element_nbytes, first_bit, nbits, sign_extended, filled_with_ones] = coded.numbers(CODEC)?;
    let element_nbytes = u64::from(element_nbytes);
    let nbytes = size.known(CODEC)?;
    let low_bit = first_bit.checked_add(1).and_then(|end| end.checked_sub(nbits));
    let width = usize::try_from(element_nbytes).unwrap_or(usize::MAX);
    let is_possible = matches!(element_nbytes, 1 | 2 | 4 | 8)
        && nbytes.is_multiple_of(width)
        && nbits > 0
        && u64::from(first_bit) < 8 * element_nbytes;
    let (Some(low_bit), true) = (low_bit, is_possible) else {
        return Err(Error::Parameters { codec: CODEC, problem: "more bits than its elements have" });
    };
    let below = (1_u64 << low_bit) - 1;
    let above = u64::MAX.checked_shl(first_bit + 1).unwrap_or(0);
    let filled = if filled_with_ones != 0 { above | below } else { 0 };
    let mut bits = Bits::new(input);
    for element in out.space(nbytes)?.chunks_exact_mut(width) {
        let stored = bits.take_wide(nbits);
        let stored =
            stored.ok_or(Error::Damaged { codec: CODEC, problem: "fewer bits than its elements need" })?;
        let mut value = filled | stored << low_bit;
        if sign_extended != 0 {
            let is_negative = value >> first_bit & 1 == 1;
            value = if is_negative { value | above } else { value & !above };
        }
        let bytes = value.to_be_bytes();
        element.iter_mut().rev().zip(bytes.iter().rev()).for_each(|(out, byte)| *out = *byte);
    }
    Ok(nbytes)
}

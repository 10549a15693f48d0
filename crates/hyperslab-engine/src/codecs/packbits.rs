//! numcodecs' packbits: truth values as bits. The first byte counts the bits at the end that stand for nothing.

use super::buffer::{Buffer, Size};
use crate::Error;

const CODEC: &str = "packbits";
const BITS: usize = 8;

/// Decodes to one byte for each bit.
pub(super) fn decode(input: &[u8], size: Size, out: &mut Buffer) -> Result<usize, Error> {
    let damaged = |problem| Error::Damaged { codec: CODEC, problem };
    let (&unused, packed) = input.split_first().ok_or_else(|| damaged("it has no bytes"))?;
    let bit_count = packed.len().saturating_mul(BITS);
    let made = bit_count.checked_sub(usize::from(unused)).filter(|_| usize::from(unused) < BITS);
    let made =
        size.admit(CODEC, made.ok_or_else(|| damaged("its first byte counts more bits than there are"))?)?;
    for (values, &byte) in out.space(made)?.chunks_mut(BITS).zip(packed) {
        for (place, value) in values.iter_mut().enumerate() {
            *value = byte >> (BITS - 1 - place) & 1;
        }
    }
    Ok(made)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn bits_become_bytes() {
        let mut out = Buffer::default();
        let made = decode(&[6, 0b1010_0001, 0b1100_0000], Size::Exact(10), &mut out).unwrap();
        assert_eq!(out.filled(made), [1, 0, 1, 0, 0, 0, 0, 1, 1, 1]);
        assert!(decode(&[], Size::Exact(10), &mut out).is_err());
        assert!(decode(&[8, 0, 0], Size::Exact(8), &mut out).is_err());
        assert!(decode(&[1], Size::Exact(0), &mut out).is_err());
        assert!(decode(&[0, 1, 2], Size::Exact(10), &mut out).is_err());
    }
}

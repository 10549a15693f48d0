//! numcodecs' packbits: truth values as bits. The first byte counts the bits at the end that stand for nothing.

use super::buffer::Buffer;
use super::scratch::{Coded, Tools};
use crate::Error;

const CODEC: &str = "packbits";
const BITS: usize = 8;

/// Decodes to one byte for each bit.
pub(super) fn decode(coded: &Coded<'_>, out: &mut Buffer, _: &mut Tools) -> Result<usize, Error> {
    let Coded { bytes: input, size, .. } = *coded;
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
    use super::super::buffer::Size;
    use super::*;

    #[test]
    fn bits_become_bytes() {
        let mut out = Buffer::default();
        let mut decoded = |bytes: &[u8], nbytes| {
            let coded = Coded::of(bytes, Size::Exact(nbytes));
            decode(&coded, &mut out, &mut Tools::default()).map(|made| out.filled(made).to_vec())
        };
        let made = decoded(&[6, 0b1010_0001, 0b1100_0000], 10).unwrap();
        assert_eq!(made, [1, 0, 1, 0, 0, 0, 0, 1, 1, 1]);
        assert!(decoded(&[], 10).is_err());
        assert!(decoded(&[8, 0, 0], 8).is_err());
        assert!(decoded(&[1], 0).is_err());
        assert!(decoded(&[0, 1, 2], 10).is_err());
    }
}

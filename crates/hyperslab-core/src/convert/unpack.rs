//! Unpacks CF's packed numbers as xarray does: mask, scale and offset, each step in the same precision.

use crate::array::element::Element;
use crate::array::packing::Packing;
use crate::convert::numbers::{Kind, Number};

impl Packing {
    /// One number, already rounded to 32 bits if steps are rounded so. Computing a product or a sum of two 32-bit
    /// numbers with 64 bits and rounding it gives the same as computing with 32 bits.
    fn unpacked(&self, stored: f64) -> f64 {
        if self.masked.contains(&stored) {
            return f64::NAN;
        }
        let scaled = self.scale.map_or(stored, |scale| self.rounded(stored * scale));
        self.offset.map_or(scaled, |offset| self.rounded(scaled + offset))
    }

    #[allow(clippy::cast_possible_truncation)] // rounding is intended
    fn rounded(&self, number: f64) -> f64 {
        if self.is_single { f64::from(number as f32) } else { number }
    }

    /// Unpacks numbers of one width, which are in this machine's byte order once `is_big` is undone.
    fn unpack<const N: usize>(
        &self,
        is_big: bool,
        bytes: &[u8],
        to: Number,
        out: &mut [u8],
        number: impl Fn([u8; N]) -> f64,
    ) {
        for (bytes, out) in bytes.chunks_exact(N).zip(out.chunks_exact_mut(to.nbytes)) {
            let Ok(mut bytes) = <[u8; N]>::try_from(bytes) else { continue };
            if is_big {
                bytes.reverse();
            }
            to.put_float(self.unpacked(self.rounded(number(bytes))), out);
        }
    }
}

/// Unpacks whole elements into floats, one to one. Both must be `is_convertible`; otherwise `out` stays unchanged.
#[allow(clippy::cast_precision_loss)] // as NumPy converts
pub fn unpack(packing: &Packing, stored: &Element, decoded: &Element, bytes: &[u8], out: &mut [u8]) {
    let Some((from, to)) = Number::of(stored).zip(Number::of(decoded)) else { return };
    let (p, big) = (packing, from.is_big);
    // A 64-bit integer is rounded once, directly to 32 bits.
    let single = packing.is_single;
    let signed = |number: i64| if single { f64::from(number as f32) } else { number as f64 };
    let unsigned = |number: u64| if single { f64::from(number as f32) } else { number as f64 };
    match (from.kind, from.nbytes) {
        (Kind::Signed, 1) => p.unpack(big, bytes, to, out, |n| f64::from(i8::from_le_bytes(n))),
        (Kind::Signed, 2) => p.unpack(big, bytes, to, out, |n| f64::from(i16::from_le_bytes(n))),
        (Kind::Signed, 4) => p.unpack(big, bytes, to, out, |n| f64::from(i32::from_le_bytes(n))),
        (Kind::Signed, _) => p.unpack(big, bytes, to, out, |n| signed(i64::from_le_bytes(n))),
        (Kind::Unsigned, 1) => p.unpack(big, bytes, to, out, |n| f64::from(u8::from_le_bytes(n))),
        (Kind::Unsigned, 2) => p.unpack(big, bytes, to, out, |n| f64::from(u16::from_le_bytes(n))),
        (Kind::Unsigned, 4) => p.unpack(big, bytes, to, out, |n| f64::from(u32::from_le_bytes(n))),
        (Kind::Unsigned, _) => p.unpack(big, bytes, to, out, |n| unsigned(u64::from_le_bytes(n))),
        (Kind::Float, 4) => p.unpack(big, bytes, to, out, |n| f64::from(f32::from_le_bytes(n))),
        (Kind::Float, _) => p.unpack(big, bytes, to, out, f64::from_le_bytes),
        (Kind::OtherFloat(_), _) => {} // `of` returns no such number: it is converted before it is unpacked
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::array::element::ByteOrder;

    fn unpacked(packing: &Packing, stored: &Element, bytes: &[u8]) -> f64 {
        let (decoded, mut out) = (Element::float(8, ByteOrder::Big).unwrap(), [0; 8]);
        unpack(packing, stored, &decoded, bytes, &mut out);
        f64::from_be_bytes(out)
    }

    #[test]
    fn steps_are_those_of_the_precision_asked_for() {
        let stored = Element::integer(2, true, ByteOrder::Big);
        let double = Packing { masked: vec![-99.0], scale: Some(0.01), offset: Some(20.0), is_single: false };
        let single = Packing { scale: Some(f64::from(0.01_f32)), is_single: true, ..double.clone() };
        let (number, masked) = (1234_i16.to_be_bytes(), (-99_i16).to_be_bytes());
        assert_eq!(unpacked(&double, &stored, &number).to_bits(), (1234.0 * 0.01 + 20.0_f64).to_bits());
        let expected = f64::from(1234.0_f32 * 0.01 + 20.0);
        assert_eq!(unpacked(&single, &stored, &number).to_bits(), expected.to_bits());
        assert!(unpacked(&double, &stored, &masked).is_nan());
    }

    #[test]
    fn wide_integers_are_rounded_once() {
        let stored = Element::integer(8, true, ByteOrder::Little);
        let plain = Packing { masked: Vec::new(), scale: None, offset: None, is_single: true };
        let number = (1_i64 << 60) + (1 << 36) + 1; // to 64 bits first, this would be a tie
        #[allow(clippy::cast_precision_loss)]
        let expected = f64::from(number as f32);
        assert_eq!(unpacked(&plain, &stored, &number.to_le_bytes()).to_bits(), expected.to_bits());
    }
}

//! Floats with a layout other than IEEE 754's: 20-bit floats, bfloat16. An IEEE float that is wide enough holds their
//! exact values.

use crate::array::element::FloatLayout;

/// Of each IEEE float that numbers convert to: bytes, mantissa bits, least exponent, and one past the greatest
/// exponent.
const WIDER: [(u64, u8, i64, i64); 2] = [(4, 23, -126, 128), (8, 52, -1022, 1024)];
/// The same for binary16, which numbers do not convert to.
const HALF: (u64, u8, i64, i64) = (2, 10, -14, 16);

/// Whether numbers can be converted by value: they need an implied leading one and at most eight bytes, and must not be
/// IEEE's.
pub(crate) fn is_other_float(nbytes: u64, layout: &FloatLayout) -> bool {
    FloatLayout::ieee(nbytes).as_ref() != Some(layout)
        && layout.implied_one
        && wider(nbytes, layout).is_some()
}

/// The bytes of the narrowest IEEE float that holds all values, as h5py chooses it; `None` if that is binary16, or
/// wider than binary64.
pub(crate) fn wider(nbytes: u64, layout: &FloatLayout) -> Option<u64> {
    let exponents = 1_i64.checked_shl(u32::from(layout.exponent_nbits)).filter(|&exponents| exponents > 1)?;
    let bias = i64::from(layout.exponent_bias);
    let holds = |&(width, mantissa_nbits, least, behind): &(u64, u8, i64, i64)| {
        let is_wide = width >= nbytes && layout.mantissa_nbits <= mantissa_nbits;
        is_wide && exponents - bias - 1 <= behind && 1 - bias >= least
    };
    let found = WIDER.iter().find(|float| holds(float)).map(|float| float.0);
    found.filter(|_| !holds(&HALF))
}

/// The value of these bits: infinite or NaN if all bits of the exponent are set, subnormal if none is.
pub(crate) fn value(layout: &FloatLayout, bits: u64) -> f64 {
    let part = |start: u8, nbits: u8| {
        let mask = 1_u64.checked_shl(u32::from(nbits)).map_or(u64::MAX, |above| above - 1);
        (bits.checked_shr(u32::from(start)).unwrap_or(0) & mask, mask)
    };
    let (sign, _) = part(layout.sign_bit, 1);
    let (exponent, most) = part(layout.exponent_start, layout.exponent_nbits);
    let (mantissa, _) = part(layout.mantissa_start, layout.mantissa_nbits);
    #[allow(clippy::cast_precision_loss)] // mantissas are at most 52 bits: see `wider`
    let magnitude = if exponent == most {
        if mantissa == 0 { f64::INFINITY } else { f64::NAN }
    } else {
        let implied =
            if exponent == 0 { 0 } else { 1_u64.checked_shl(layout.mantissa_nbits.into()).unwrap_or(0) };
        let exponent = i64::try_from(exponent.max(1)).unwrap_or(i64::MAX);
        let power = exponent - i64::from(layout.exponent_bias) - i64::from(layout.mantissa_nbits);
        scaled((mantissa | implied) as f64, i32::try_from(power).unwrap_or(i32::MIN))
    };
    if sign == 1 { -magnitude } else { magnitude }
}

/// A number times a power of two, in two steps, because the power alone may be too small for a float.
fn scaled(number: f64, power: i32) -> f64 {
    let half = power / 2;
    number * 2_f64.powi(half) * 2_f64.powi(power - half)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn ieee_layouts_have_their_values() {
        let double = FloatLayout::ieee(8).unwrap();
        for number in
            [0.0, -0.0, 1.5, -3.25e-300, f64::MIN_POSITIVE / 8.0, 5e-324, f64::MAX, f64::NEG_INFINITY]
        {
            assert_eq!(value(&double, number.to_bits()).to_bits(), number.to_bits(), "{number}");
        }
        let single = FloatLayout::ieee(4).unwrap();
        for number in [1e-45_f32, f32::MAX, -7.5] {
            assert_eq!(value(&single, u64::from(number.to_bits())).to_bits(), f64::from(number).to_bits());
        }
        assert!(value(&single, 0x7fc0_0000).is_nan());
    }

    #[test]
    fn the_narrowest_float_that_holds_all_is_taken() {
        let half = FloatLayout::ieee(2).unwrap();
        let brain = FloatLayout { exponent_nbits: 8, mantissa_nbits: 7, exponent_bias: 127, ..half };
        assert_eq!(wider(2, &brain), Some(4));
        assert_eq!(wider(5, &brain), Some(8));
        assert_eq!(wider(2, &half), None);
        assert_eq!(wider(16, &brain), None);
        assert_eq!(wider(4, &FloatLayout { exponent_nbits: 64, ..brain }), None);
    }
}

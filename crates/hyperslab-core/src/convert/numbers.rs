//! Converts numbers between kinds, widths and byte orders as HDF5 does: values out of bounds become the nearest
//! integer, and fractions are cut off.

use crate::array::element::{ByteOrder, Element, FloatLayout};
use crate::convert::other_float;

/// How a number is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Number {
    pub(crate) kind: Kind,
    pub(crate) nbytes: usize,
    pub(crate) is_big: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Signed,
    Unsigned,
    Float,
    /// Only a source of conversions.
    OtherFloat(FloatLayout),
}

#[derive(Clone, Copy, Debug)]
enum Value {
    Integer(i128),
    Float(f64),
}

/// Whether numbers of the first kind can be converted to the second.
pub fn is_convertible(stored: &Element, wanted: &Element) -> bool {
    Number::stored(stored).is_some() && Number::of(wanted).is_some()
}

/// Converts whole elements one to one. They must be `is_convertible`; otherwise `out` stays unchanged.
pub fn convert(stored: &Element, wanted: &Element, bytes: &[u8], out: &mut [u8]) {
    let Some((from, to)) = Number::stored(stored).zip(Number::of(wanted)) else { return };
    for (number, out) in bytes.chunks_exact(from.nbytes).zip(out.chunks_exact_mut(to.nbytes)) {
        to.put(from.value(number), out);
    }
}

/// One element, converted.
pub(crate) fn converted(stored: &Element, wanted: &Element, bytes: &[u8]) -> Vec<u8> {
    let mut out = vec![0; usize::try_from(wanted.nbytes()).unwrap_or(0)];
    convert(stored, wanted, bytes, &mut out);
    out
}

impl Number {
    /// From an ordinary integer, or an IEEE float of 4 or 8 bytes.
    pub(crate) fn of(element: &Element) -> Option<Self> {
        let (kind, nbytes, order) = match *element {
            Element::Integer { nbytes, signed, order, bit_offset: 0, precision }
                if matches!(nbytes, 1 | 2 | 4 | 8) && u64::from(precision) == 8 * nbytes =>
            {
                (if signed { Kind::Signed } else { Kind::Unsigned }, nbytes, order)
            }
            Element::Float { nbytes: nbytes @ (4 | 8), order, layout }
                if FloatLayout::ieee(nbytes) == Some(layout) =>
            {
                (Kind::Float, nbytes, order)
            }
            _ => return None,
        };
        Self::ordered(kind, nbytes, order)
    }

    /// The same, also for a float with another layout.
    fn stored(element: &Element) -> Option<Self> {
        match *element {
            Element::Float { nbytes, order, layout } if other_float::is_other_float(nbytes, &layout) => {
                Self::ordered(Kind::OtherFloat(layout), nbytes, order)
            }
            _ => Self::of(element),
        }
    }

    fn ordered(kind: Kind, nbytes: u64, order: ByteOrder) -> Option<Self> {
        let is_big = match order {
            ByteOrder::Little => false,
            ByteOrder::Big => true,
            ByteOrder::Vax => return None,
        };
        Some(Self { kind, nbytes: usize::try_from(nbytes).ok()?, is_big })
    }

    #[allow(clippy::cast_possible_truncation)] // a float of 4 bytes has 32 bits
    fn value(self, bytes: &[u8]) -> Value {
        let mut wide = [0; 8];
        for (target, &byte) in wide.iter_mut().zip(bytes) {
            *target = byte;
        }
        if self.is_big {
            wide[..self.nbytes].reverse();
        }
        let (bits, unused) = (u64::from_le_bytes(wide), 64 - 8 * self.nbytes);
        match self.kind {
            Kind::Unsigned => Value::Integer(i128::from(bits)),
            Kind::Signed => Value::Integer(i128::from((bits << unused).cast_signed() >> unused)),
            Kind::Float if self.nbytes == 4 => Value::Float(f64::from(f32::from_bits(bits as u32))),
            Kind::Float => Value::Float(f64::from_bits(bits)),
            Kind::OtherFloat(layout) => Value::Float(other_float::value(&layout, bits)),
        }
    }

    #[allow(clippy::cast_possible_truncation, clippy::cast_precision_loss, clippy::cast_sign_loss)]
    fn put(self, value: Value, out: &mut [u8]) {
        let nbits = 8 * self.nbytes;
        let bits = match (self.kind, value) {
            (Kind::Float, Value::Integer(value)) if self.nbytes == 4 => u64::from((value as f32).to_bits()),
            (Kind::Float, Value::Integer(value)) => (value as f64).to_bits(),
            (Kind::Float, Value::Float(value)) if self.nbytes == 4 => u64::from((value as f32).to_bits()),
            (Kind::Float, Value::Float(value)) => value.to_bits(),
            (kind, value) => {
                let value = match value {
                    Value::Integer(value) => value,
                    Value::Float(value) => value as i128, // cut off; out of bounds to the nearest
                };
                let (least, most) = match kind {
                    Kind::Signed => (-(1_i128 << (nbits - 1)), (1_i128 << (nbits - 1)) - 1),
                    _ => (0, (1_i128 << nbits) - 1),
                };
                value.clamp(least, most) as u64
            }
        };
        self.put_bits(bits, out);
    }

    /// Stores a float as this kind of number. Meant to be inlined for floats of 4 or 8 bytes.
    #[inline]
    #[allow(clippy::cast_possible_truncation)] // rounding is intended
    pub(crate) fn put_float(self, value: f64, out: &mut [u8]) {
        match (self.kind, self.nbytes) {
            (Kind::Float, 4) => self.put_bits(u64::from((value as f32).to_bits()), out),
            (Kind::Float, _) => self.put_bits(value.to_bits(), out),
            _ => self.put(Value::Float(value), out),
        }
    }

    #[inline]
    fn put_bits(self, bits: u64, out: &mut [u8]) {
        for (target, byte) in out.iter_mut().zip(bits.to_le_bytes()) {
            *target = byte;
        }
        if self.is_big {
            out.reverse();
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_their_value_or_the_nearest_there_is() {
        let int = |nbytes, signed| Element::integer(nbytes, signed, ByteOrder::Little);
        let big = Element::integer(2, true, ByteOrder::Big);
        let single = Element::float(4, ByteOrder::Big).unwrap();
        assert_eq!(converted(&big, &int(1, true), &(-300_i16).to_be_bytes()), (-128_i8).to_le_bytes());
        assert_eq!(converted(&big, &int(8, false), &(-1_i16).to_be_bytes()), 0_u64.to_le_bytes());
        assert_eq!(converted(&int(8, false), &single, &7_u64.to_le_bytes()), 7_f32.to_be_bytes());
        assert_eq!(converted(&single, &big, &(-2.9_f32).to_be_bytes()), (-2_i16).to_be_bytes());
        assert_eq!(converted(&single, &int(8, true), &f32::MAX.to_be_bytes()), i64::MAX.to_le_bytes());
        assert!(!is_convertible(&Element::float(2, ByteOrder::Little).unwrap(), &big));
    }
}

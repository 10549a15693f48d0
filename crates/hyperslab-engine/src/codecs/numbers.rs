//! Numbers in bytes of either order, for codecs that compute.

use hyperslab_core::{ByteOrder, Element, FloatLayout};

use crate::Error;

/// The kind of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Signed,
    Unsigned,
    Float32,
    Float64,
}

/// How a number is stored: 1, 2, 4 or 8 bytes of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Number {
    pub(super) kind: Kind,
    pub(super) nbytes: usize,
    big_endian: bool,
}

impl Number {
    /// From an ordinary integer, or an IEEE float of 4 or 8 bytes. Codecs compute with nothing else.
    pub(super) fn of(codec: &'static str, element: &Element) -> Result<Self, Error> {
        let unsupported = Error::Unsupported { codec, feature: "an element that is not an ordinary number" };
        let (kind, nbytes, order) = match *element {
            Element::Integer { nbytes, signed, order, bit_offset: 0, precision }
                if matches!(nbytes, 1 | 2 | 4 | 8) && u64::from(precision) == 8 * nbytes =>
            {
                (if signed { Kind::Signed } else { Kind::Unsigned }, nbytes, order)
            }
            Element::Float { nbytes: 4, order, layout } if FloatLayout::ieee(4) == Some(layout) => {
                (Kind::Float32, 4, order)
            }
            Element::Float { nbytes: 8, order, layout } if FloatLayout::ieee(8) == Some(layout) => {
                (Kind::Float64, 8, order)
            }
            _ => return Err(unsupported),
        };
        let big_endian = match order {
            ByteOrder::Little => false,
            ByteOrder::Big => true,
            ByteOrder::Vax => return Err(unsupported),
        };
        Ok(Self { kind, nbytes: usize::try_from(nbytes).unwrap_or(0), big_endian })
    }

    /// The number's bits in the low bytes. A signed integer is sign-extended.
    pub(super) fn bits(self, bytes: &[u8]) -> u64 {
        let append = |bits: u64, byte: &u8| (bits << 8) | u64::from(*byte);
        let bits =
            if self.big_endian { bytes.iter().fold(0, append) } else { bytes.iter().rev().fold(0, append) };
        let unused = 64 - 8 * u32::try_from(self.nbytes.clamp(1, 8)).unwrap_or(8);
        if self.kind == Kind::Signed {
            (((bits << unused).cast_signed()) >> unused).cast_unsigned()
        } else {
            bits
        }
    }

    /// Stores the low bytes of these bits.
    pub(super) fn put_bits(self, bits: u64, out: &mut [u8]) {
        let bytes = bits.to_le_bytes();
        if self.big_endian {
            out.iter_mut().rev().zip(bytes).for_each(|(out, byte)| *out = byte);
        } else {
            out.iter_mut().zip(bytes).for_each(|(out, byte)| *out = byte);
        }
    }

    /// The number, as NumPy converts it to float64.
    #[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation)]
    pub(super) fn to_f64(self, bits: u64) -> f64 {
        match self.kind {
            Kind::Signed => bits.cast_signed() as f64,
            Kind::Unsigned => bits as f64,
            Kind::Float32 => f64::from(f32::from_bits(bits as u32)),
            Kind::Float64 => f64::from_bits(bits),
        }
    }

    /// The number, as NumPy converts it to float32.
    #[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation)]
    pub(super) fn to_f32(self, bits: u64) -> f32 {
        match self.kind {
            Kind::Signed => bits.cast_signed() as f32,
            Kind::Unsigned => bits as f32,
            Kind::Float32 => f32::from_bits(bits as u32),
            Kind::Float64 => f64::from_bits(bits) as f32,
        }
    }

    /// The bits of a float as this kind of number: rounded to a float, truncated to an integer.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    pub(super) fn bits_of(self, value: f64) -> u64 {
        match self.kind {
            Kind::Signed => (value as i64).cast_unsigned(),
            // C compilers convert a negative float to an unsigned integer by way of a signed one.
            Kind::Unsigned if value < 0.0 => (value as i64).cast_unsigned(),
            Kind::Unsigned => value as u64,
            Kind::Float32 => u64::from((value as f32).to_bits()),
            Kind::Float64 => value.to_bits(),
        }
    }
}

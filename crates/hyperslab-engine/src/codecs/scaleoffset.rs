//! HDF5's filter 6: offsets from the minimum value, packed into as few bits as they need.
//!
//! Parameters, as `H5Zscaleoffset.c` writes them: scale type (0 for floats by decimal scale, 2 for integers), scale
//! factor, number of elements, class (0 integer, 1 float), width, sign, byte order, whether there is a fill value, and
//! the bytes of that value. The encoded bytes are the number of bits of an offset (4 bytes), the width of the minimum
//! value (1), that value (16, of which 8 are used), and the packed offsets. The largest offset stands for the fill
//! value.

use super::buffer::Buffer;
use super::reader::{Bits, Bytes};
use super::scratch::{Coded, Step, Tools};
use crate::Error;

const CODEC: &str = "scaleoffset";
/// Where the packed offsets start.
const HEADER_NBYTES: usize = 21;

/// Whether the writer kept all bits of the integers, so the data were not packed.
fn is_identity(parameters: &[u32]) -> bool {
    Layout::of(parameters).is_ok_and(|layout| !layout.float && layout.factor == 8 * i64::from(layout.nbytes))
}

/// Unpacks the offsets and adds the minimum value to them.
pub(super) fn decode(coded: &Coded<'_>, out: &mut Buffer, _: &mut Tools) -> Result<Step, Error> {
    let Coded { bytes: input, size, parameters, .. } = *coded;
    if is_identity(parameters) {
        return Ok(Step::Kept(input.len()));
    }
    let layout = Layout::of(parameters)?;
    let nbytes = size.admit_claim(CODEC, u64::from(layout.count) * u64::from(layout.nbytes))?;
    let (offset_nbits, least) = header(input)?;
    let packed = input.get(HEADER_NBYTES..).unwrap_or_default();
    let width = 8 * layout.nbytes;
    if offset_nbits > width {
        return Err(Error::Damaged { codec: CODEC, problem: "offsets wider than its elements" });
    }
    if u64::from(layout.count) * u64::from(offset_nbits) > (packed.len() as u64).saturating_mul(8) {
        return Err(Error::Damaged { codec: CODEC, problem: "fewer bits than its elements need" });
    }
    let elements = out.space(nbytes)?.chunks_exact_mut(layout.nbytes as usize);
    if offset_nbits == width {
        // Plain elements in the writer's order, which is little-endian on all machines we know.
        let stored = packed.chunks_exact(layout.nbytes as usize);
        elements.zip(stored).for_each(|(out, bytes)| layout.put(little_endian(bytes), out));
        return Ok(Step::Made(nbytes));
    }
    let restore = layout.restorer(offset_nbits, least);
    let mut bits = Bits::new(packed);
    for out in elements {
        layout.put(restore(bits.take_wide(offset_nbits).unwrap_or(0)), out);
    }
    Ok(Step::Made(nbytes))
}

/// The number of bits of an offset, and the minimum value.
fn header(input: &[u8]) -> Result<(u32, u64), Error> {
    let mut bytes = Bytes::new(CODEC, input);
    let nbits = bytes.u32_le()?;
    let least_nbytes = usize::from(bytes.byte()?).min(8);
    let least = little_endian(bytes.take(least_nbytes)?);
    Ok((nbits, least))
}

fn little_endian(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |bits, &byte| (bits << 8) | u64::from(byte))
}

/// The contents of the parameters.
#[derive(Clone, Copy, Debug)]
struct Layout {
    float: bool,
    factor: i64,
    count: u32,
    nbytes: u32,
    big_endian: bool,
    fill: Option<u64>,
}

impl Layout {
    fn of(parameters: &[u32]) -> Result<Self, Error> {
        let invalid = |problem| Error::Parameters { codec: CODEC, problem };
        let &[scale_type, factor, count, class, nbytes, _signed, order, has_fill, ref fill @ ..] = parameters
        else {
            return Err(invalid("fewer than eight parameters"));
        };
        let float = class == 1;
        match (class, scale_type) {
            (0, 2) | (1, 0) => {}
            (1, 1) => return Err(Error::Unsupported { codec: CODEC, feature: "a fixed exponent (E-scale)" }),
            _ => return Err(invalid("a scale type that does not fit the class")),
        }
        if !(matches!(nbytes, 4 | 8) || (!float && matches!(nbytes, 1 | 2))) || order > 1 {
            return Err(invalid("an element that the filter does not support"));
        }
        let factor = i64::from(factor.cast_signed());
        if !float && factor > 8 * i64::from(nbytes) {
            return Err(invalid("more bits than an element has"));
        }
        let low = fill.first().copied().map(u64::from);
        let high = fill.get(1).copied().map_or(0, u64::from);
        let fill = low.filter(|_| has_fill != 0).map(|low| (high << 32) | low);
        Ok(Self { float, factor, count, nbytes, big_endian: order == 1, fill })
    }

    /// Stores the low bytes of these bits.
    fn put(self, bits: u64, out: &mut [u8]) {
        let bytes = bits.to_le_bytes();
        if self.big_endian {
            out.iter_mut().rev().zip(bytes).for_each(|(out, byte)| *out = byte);
        } else {
            out.iter_mut().zip(bytes).for_each(|(out, byte)| *out = byte);
        }
    }

    /// Turns an offset into the bits of an element.
    fn restorer(self, offset_nbits: u32, least: u64) -> Box<dyn Fn(u64) -> u64> {
        let greatest = 1_u64.checked_shl(offset_nbits).map_or(u64::MAX, |end| end - 1);
        let fill = self.fill;
        let value = self.value_of(least);
        Box::new(move |offset| match fill {
            Some(fill) if offset == greatest => fill,
            _ => value(offset),
        })
    }

    /// The sum of an offset and the minimum value. Floats are added in their own width, as the library does.
    #[allow(clippy::cast_possible_truncation, clippy::cast_precision_loss)]
    fn value_of(self, least: u64) -> Box<dyn Fn(u64) -> u64> {
        let factor = self.factor;
        match (self.float, self.nbytes) {
            (false, _) => Box::new(move |offset| offset.wrapping_add(least)),
            (true, 4) => {
                let least = f32::from_bits(least as u32);
                let scale = 10_f32.powf(factor as f32);
                Box::new(move |offset| {
                    let value = (offset as u32).cast_signed() as f32 / scale + least;
                    u64::from(value.to_bits())
                })
            }
            (true, _) => {
                let least = f64::from_bits(least);
                let scale = 10_f64.powf(factor as f64);
                Box::new(move |offset| (offset.cast_signed() as f64 / scale + least).to_bits())
            }
        }
    }
}

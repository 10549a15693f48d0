//! Scaled and rounded numbers: numcodecs' fixedscaleoffset. `decoded = stored / scale + offset`.

use hyperslab_core::Element;

use super::buffer::{Buffer, Size};
use super::delta::whole_elements;
use super::numbers::{Kind, Number};
use crate::Error;

const CODEC: &str = "fixedscaleoffset";

/// Computes as NumPy does: in float32 if that is the stored type, otherwise in float64.
#[allow(clippy::cast_possible_truncation)] // NumPy converts a Python float to the float32 of the array
pub(super) fn decode(
    scale: f64,
    offset: f64,
    stored: &Element,
    decoded: &Element,
    input: &[u8],
    size: Size,
    out: &mut Buffer,
) -> Result<usize, Error> {
    let (stored, decoded) = (Number::of(CODEC, stored)?, Number::of(CODEC, decoded)?);
    let count = whole_elements(CODEC, input, stored)?;
    let nbytes = size.admit(CODEC, count.saturating_mul(decoded.nbytes))?;
    let elements = out.space(nbytes)?.chunks_exact_mut(decoded.nbytes);
    for (bytes, out) in input.chunks_exact(stored.nbytes).zip(elements) {
        let bits = stored.bits(bytes);
        let value = if stored.kind == Kind::Float32 {
            f64::from(stored.to_f32(bits) / scale as f32 + offset as f32)
        } else {
            stored.to_f64(bits) / scale + offset
        };
        decoded.put_bits(decoded.bits_of(value), out);
    }
    Ok(nbytes)
}

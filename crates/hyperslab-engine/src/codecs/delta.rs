//! Differences between neighbours: numcodecs' delta. The first element is stored unchanged.

use hyperslab_core::Element;

use super::buffer::{Buffer, Size};
use super::numbers::{Kind, Number};
use crate::Error;

const CODEC: &str = "delta";

/// Adds up the stored differences, in the decoded type's arithmetic, as NumPy's `cumsum(out=)` does.
pub(super) fn decode(
    stored: &Element,
    decoded: &Element,
    input: &[u8],
    size: Size,
    out: &mut Buffer,
) -> Result<usize, Error> {
    let (stored, decoded) = (Number::of(CODEC, stored)?, Number::of(CODEC, decoded)?);
    let count = whole_elements(CODEC, input, stored)?;
    let nbytes = size.admit(CODEC, count.saturating_mul(decoded.nbytes))?;
    let pairs = input
        .chunks_exact(stored.nbytes)
        .map(|bytes| stored.bits(bytes))
        .zip(out.space(nbytes)?.chunks_exact_mut(decoded.nbytes));
    match (decoded.kind, stored.kind) {
        (Kind::Float32, _) => {
            let mut sum = None; // not 0, because 0 + -0 is 0
            for (bits, out) in pairs {
                let value = stored.to_f32(bits);
                let next = sum.map_or(value, |sum: f32| sum + value);
                decoded.put_bits(u64::from(next.to_bits()), out);
                sum = Some(next);
            }
        }
        (Kind::Float64, _) => {
            let mut sum = None;
            for (bits, out) in pairs {
                let value = stored.to_f64(bits);
                let next = sum.map_or(value, |sum: f64| sum + value);
                decoded.put_bits(next.to_bits(), out);
                sum = Some(next);
            }
        }
        (_, Kind::Signed | Kind::Unsigned) => {
            let mut sum = 0_u64;
            for (bits, out) in pairs {
                sum = sum.wrapping_add(bits);
                decoded.put_bits(sum, out);
            }
        }
        _ => return Err(Error::Unsupported { codec: CODEC, feature: "integers stored as floats" }),
    }
    Ok(nbytes)
}

/// The number of elements in the input, if it is whole.
pub(super) fn whole_elements(codec: &'static str, input: &[u8], stored: Number) -> Result<usize, Error> {
    if !input.len().is_multiple_of(stored.nbytes) {
        return Err(Error::Damaged { codec, problem: "its bytes are not a whole number of elements" });
    }
    Ok(input.len() / stored.nbytes)
}

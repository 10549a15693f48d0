//! Converts a source's numbers for a virtual array, or for an array made of several files.

use hyperslab_core::{Element, Packing, convert, is_convertible, unpack};

use super::buffer::{Buffer, Size};
use crate::Error;

const CODEC: &str = "convert";

/// Converts or unpacks every element.
pub(super) fn decode(
    packing: Option<&Packing>,
    stored: &Element,
    decoded: &Element,
    input: &[u8],
    size: Size,
    out: &mut Buffer,
) -> Result<usize, Error> {
    if !is_convertible(stored, decoded) {
        return Err(Error::Unsupported {
            codec: CODEC,
            feature: "an element that is not an ordinary number",
        });
    }
    let nbytes = |element: &Element| usize::try_from(element.nbytes()).unwrap_or(usize::MAX);
    let count = input.len() / nbytes(stored);
    let made = size.admit(CODEC, count.saturating_mul(nbytes(decoded)))?;
    let out = out.space(made)?;
    match packing {
        None => convert(stored, decoded, input, out),
        Some(packing) => unpack(packing, stored, decoded, input, out),
    }
    Ok(made)
}

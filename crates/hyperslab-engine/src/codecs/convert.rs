//! Numbers of a source as a virtual array, or one made of several files, has them.

use hyperslab_core::{Element, Packing, convert, is_convertible, unpack};

use super::buffer::{Buffer, Size};
use crate::Error;

const CODEC: &str = "convert";

/// Converts every element, or unpacks it.
pub(super) fn decode(
    packing: Option<&Packing>,
    stored: &Element,
    decoded: &Element,
    input: &[u8],
    size: Size,
    out: &mut Buffer,
) -> Result<usize, Error> {
    if !is_convertible(stored, decoded) {
        return Err(Error::Unsupported { codec: CODEC, feature: "an element that is no ordinary number" });
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

//! Numbers of a source as a virtual array has them.

use hyperslab_core::{Element, convert, is_convertible};

use super::{Buffer, Size};
use crate::Error;

const CODEC: &str = "convert";

/// Converts every element.
pub(super) fn decode(
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
    convert(stored, decoded, input, out.space(made)?);
    Ok(made)
}

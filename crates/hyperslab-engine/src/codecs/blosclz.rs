//! `BloscLZ`: Blosc's own LZ format, a descendant of `FastLZ`.

use super::buffer::Size;
use super::lzf::Copier;
use super::reader::Bytes;
use crate::Error;

const CODEC: &str = "blosclz";

/// Matches up to this distance encode it in two bytes, farther ones in two more.
const NEAR_DISTANCE: usize = 8191;

/// Decodes one stream. It must fill `out`.
pub(super) fn decode_into(input: &[u8], out: &mut [u8]) -> Result<(), Error> {
    let size = Size::Exact(out.len());
    let mut input = Bytes::new(CODEC, input);
    let mut copier = Copier::new(out);
    // The first instruction's upper bits mark the format.
    let mut control = usize::from(input.byte()?) & 31;
    loop {
        let done = if control < 32 {
            copier.literals(input.take(control + 1)?)
        } else {
            let (distance, length) = read_match(control, &mut input)?;
            copier.copy(distance, length)
        };
        done.ok_or_else(|| copier.error(CODEC, size))?;
        if input.rest().is_empty() {
            size.admit(CODEC, copier.filled())?;
            return Ok(());
        }
        control = usize::from(input.byte()?);
    }
}

/// The distance and the length of a match.
fn read_match(control: usize, input: &mut Bytes<'_>) -> Result<(usize, usize), Error> {
    let mut length = (control >> 5) + 2;
    if control >> 5 == 7 {
        loop {
            let more = usize::from(input.byte()?);
            length = length.saturating_add(more);
            if more != 255 {
                break;
            }
        }
    }
    let high = control & 31;
    let low = usize::from(input.byte()?);
    if high == 31 && low == 255 {
        let far = (usize::from(input.byte()?) << 8) | usize::from(input.byte()?);
        return Ok((far + NEAR_DISTANCE + 1, length));
    }
    Ok(((high << 8) + low + 1, length))
}

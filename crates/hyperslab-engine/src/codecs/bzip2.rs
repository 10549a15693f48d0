//! bzip2: registered filter 307, numcodecs' bz2.

use bzip2::{Decompress, Status};

use super::buffer::{Buffer, Size};
use super::scratch::{Coded, Tools};
use crate::Error;

const CODEC: &str = "bzip2";

/// Decodes one stream or several. Ignores other bytes after a stream, as Python's bz2 does.
pub(super) fn decode(coded: &Coded<'_>, out: &mut Buffer, _: &mut Tools) -> Result<usize, Error> {
    let Coded { bytes: input, size, .. } = *coded;
    let space = out.space(size.limit())?;
    let (mut taken, mut filled) = (0, 0);
    loop {
        let (read, written) =
            decode_stream(tail(input, taken), space.get_mut(filled..).unwrap_or_default(), size)?;
        taken += read;
        filled += written;
        if !tail(input, taken).starts_with(b"BZh") {
            return size.admit(CODEC, filled);
        }
    }
}

fn tail(input: &[u8], taken: usize) -> &[u8] {
    input.get(taken..).unwrap_or_default()
}

/// Decodes one stream. Returns the bytes read and the bytes written.
fn decode_stream(input: &[u8], out: &mut [u8], size: Size) -> Result<(usize, usize), Error> {
    let damaged =
        Error::Damaged { codec: CODEC, problem: "not a complete bzip2 stream with correct checksums" };
    let mut stream = Decompress::new(false);
    loop {
        let before = (stream.total_in(), stream.total_out());
        let read = usize::try_from(before.0).unwrap_or(usize::MAX);
        let written = usize::try_from(before.1).unwrap_or(usize::MAX);
        let space = out.get_mut(written..).unwrap_or_default();
        let full = space.is_empty();
        let status = stream.decompress(tail(input, read), space).map_err(|_| damaged.clone())?;
        let after = (stream.total_in(), stream.total_out());
        if status == Status::StreamEnd {
            let counts = (usize::try_from(after.0), usize::try_from(after.1));
            return if let (Ok(read), Ok(written)) = counts { Ok((read, written)) } else { Err(damaged) };
        }
        if before == after {
            // No progress: either the output is full, or the input ends within the stream.
            return Err(if full { size.exceeded(CODEC) } else { damaged });
        }
    }
}

//! LZF (Marc Lehmann's liblzf) without a header: registered filter 32000, `PyTables`' and h5py's.

use super::reader::Bytes;
use super::{Buffer, Size};
use crate::Error;

const CODEC: &str = "lzf";

/// Decodes one block. Each step is a run of literals, or a copy of what came out before.
pub(super) fn decode(input: &[u8], size: Size, out: &mut Buffer) -> Result<usize, Error> {
    let mut input = Bytes::new(CODEC, input);
    let mut copier = Copier::new(out.space(size.limit())?);
    while !input.rest().is_empty() {
        let control = usize::from(input.byte()?);
        let done = if control < 32 {
            copier.literals(input.take(control + 1)?)
        } else {
            let mut length = control >> 5;
            if length == 7 {
                length += usize::from(input.byte()?);
            }
            let distance = ((control & 31) << 8) + usize::from(input.byte()?) + 1;
            copier.copy(distance, length + 2)
        };
        done.ok_or_else(|| copier.error(CODEC, size))?;
    }
    size.admit(CODEC, copier.filled())
}

/// Output of an LZ decoder: literals, and copies of earlier output.
pub(super) struct Copier<'o> {
    out: &'o mut [u8],
    filled: usize,
    before_start: bool,
}

impl<'o> Copier<'o> {
    /// Nothing yet.
    pub(super) fn new(out: &'o mut [u8]) -> Self {
        Self { out, filled: 0, before_start: false }
    }

    /// Bytes so far.
    pub(super) fn filled(&self) -> usize {
        self.filled
    }

    /// Appends these; `None` if they do not fit.
    pub(super) fn literals(&mut self, bytes: &[u8]) -> Option<()> {
        let end = self.filled.checked_add(bytes.len())?;
        self.out.get_mut(self.filled..end)?.copy_from_slice(bytes);
        self.filled = end;
        Some(())
    }

    /// Appends what stands `distance` before the end; the copy may run into itself.
    pub(super) fn copy(&mut self, distance: usize, length: usize) -> Option<()> {
        let Some(start) = self.filled.checked_sub(distance) else {
            self.before_start = true;
            return None;
        };
        let end = self.filled.checked_add(length).filter(|&end| end <= self.out.len())?;
        // What can be copied at once doubles, for what was just copied can be copied too.
        while self.filled < end {
            let step = (self.filled - start).min(end - self.filled);
            if step == 0 {
                return None;
            }
            self.out.copy_within(start..start + step, self.filled);
            self.filled += step;
        }
        Some(())
    }

    /// What went wrong.
    pub(super) fn error(&self, codec: &'static str, size: Size) -> Error {
        if self.before_start {
            return Error::Damaged { codec, problem: "it copies from before its start" };
        }
        size.exceeded(codec)
    }
}

//! LZF (Marc Lehmann's liblzf) without a header: registered filter 32000, used by `PyTables` and h5py.

use super::buffer::{Buffer, Size};
use super::reader::Bytes;
use super::scratch::{Coded, Tools};
use crate::Error;

const CODEC: &str = "lzf";

/// The largest distance and the largest length of a copy.
const MOST_DISTANCE: usize = 1 << 13;
const MOST_LENGTH: usize = 264;
const MOST_LITERALS: usize = 32;
const TABLE_BITS: u32 = 17;

/// Decodes one block. Each step is a run of literals or a copy of earlier output.
pub(super) fn decode(coded: &Coded<'_>, out: &mut Buffer, _: &mut Tools) -> Result<usize, Error> {
    let Coded { bytes: input, size, .. } = *coded;
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

    /// Appends bytes; `None` if they do not fit.
    pub(super) fn literals(&mut self, bytes: &[u8]) -> Option<()> {
        let end = self.filled.checked_add(bytes.len())?;
        self.out.get_mut(self.filled..end)?.copy_from_slice(bytes);
        self.filled = end;
        Some(())
    }

    /// Appends a copy of the bytes at `distance` before the end. The copy may overlap itself.
    pub(super) fn copy(&mut self, distance: usize, length: usize) -> Option<()> {
        let Some(start) = self.filled.checked_sub(distance) else {
            self.before_start = true;
            return None;
        };
        let end = self.filled.checked_add(length).filter(|&end| end <= self.out.len())?;
        // The bytes just copied can be copied too, so each copy may be twice as long as the last.
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

    /// The error for a failed step.
    pub(super) fn error(&self, codec: &'static str, size: Size) -> Error {
        if self.before_start {
            return Error::Damaged { codec, problem: "it copies from before the start" };
        }
        size.exceeded(codec)
    }
}

/// Encodes as runs of literals and copies of earlier bytes, and looks for these where liblzf does, so that stored sizes are
/// those of h5py's filter. Encoded pieces can be joined and decoded as one.
pub fn encode(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len());
    let mut seen = LastSeen { bytes, places: vec![0; 1 << TABLE_BITS] };
    let (mut at, mut literals) = (0, 0);
    while at + 2 < bytes.len() {
        let before = seen.replace(at);
        let is_near = before > 0 && before < at && at - before <= MOST_DISTANCE && at + 4 < bytes.len();
        if !is_near || bytes[before..before + 3] != bytes[at..at + 3] {
            at += 1;
            continue;
        }
        let most = MOST_LENGTH.min(bytes.len() - at - 2);
        let same = bytes[before..].iter().zip(&bytes[at..at + most]).take_while(|(one, other)| one == other);
        let length = same.count().max(3);
        push_literals(&mut out, &bytes[literals..at]);
        push_copy(&mut out, at - before, length);
        at += length;
        literals = at;
        if at + 2 < bytes.len() {
            seen.replace(at - 1);
        }
    }
    push_literals(&mut out, &bytes[literals..]);
    out
}

/// Where three bytes were seen last; 0 if nowhere.
struct LastSeen<'b> {
    bytes: &'b [u8],
    places: Vec<u32>,
}

impl LastSeen<'_> {
    /// Where the three bytes at this place were seen last. From now on, it is here.
    #[allow(clippy::cast_possible_truncation)] // chunks of HDF5 are smaller than 4 GiB
    fn replace(&mut self, at: usize) -> usize {
        let three = &self.bytes[at..at + 3];
        let number = u32::from(three[0]) << 16 | u32::from(three[1]) << 8 | u32::from(three[2]);
        let place = (number >> (24 - TABLE_BITS)).wrapping_sub(number) & ((1 << TABLE_BITS) - 1);
        std::mem::replace(&mut self.places[place as usize], at as u32) as usize
    }
}

#[allow(clippy::cast_possible_truncation)] // lengths and distances are bounded by the constants above
fn push_literals(out: &mut Vec<u8>, literals: &[u8]) {
    for run in literals.chunks(MOST_LITERALS) {
        out.push((run.len() - 1) as u8);
        out.extend(run);
    }
}

#[allow(clippy::cast_possible_truncation)]
fn push_copy(out: &mut Vec<u8>, distance: usize, length: usize) {
    let (distance, length) = (distance - 1, length - 2);
    if length < 7 {
        out.push((length << 5 | distance >> 8) as u8);
    } else {
        out.push((7 << 5 | distance >> 8) as u8);
        out.push((length - 7) as u8);
    }
    out.push(distance as u8);
}

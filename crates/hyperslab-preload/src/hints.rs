//! Guesses about arrays by their identifiers, which cost almost nothing to look up. A wrong one costs time, and nothing
//! else: libhdf5 may use an identifier again.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::libhdf5::Id;

const COUNT: usize = 1 << 10;
const KNOWN: u64 = 1;
const EXCEEDS: u64 = 2;

/// The upper bits tell which array it is, the lower two what is known of it.
static HINTS: [AtomicU64; COUNT] = [const { AtomicU64::new(0) }; COUNT];

fn mark(library: usize, array: Id) -> (usize, u64) {
    let mixed = (library as u64).rotate_left(20) ^ array.cast_unsigned();
    let spread = mixed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    ((spread >> 54) as usize % COUNT, mixed << 2)
}

/// Whether libhdf5's cache of chunks is too small for a single chunk of the array, so that it decodes a whole chunk for
/// each read; `None` if that is not known.
#[inline]
pub(crate) fn exceeds_cache(library: usize, array: Id) -> Option<bool> {
    let (place, mark) = mark(library, array);
    let hint = HINTS[place].load(Ordering::Relaxed);
    (hint & !3 == mark && hint & KNOWN != 0).then_some(hint & EXCEEDS != 0)
}

/// Keeps what was found out about an array.
pub(crate) fn keep(library: usize, array: Id, exceeds_cache: bool) {
    let (place, mark) = mark(library, array);
    HINTS[place].store(mark | KNOWN | if exceeds_cache { EXCEEDS } else { 0 }, Ordering::Relaxed);
}

//! The least elements of a write that may be ours, by the identifier of the array: to look them up costs almost nothing, so
//! that small writes and those without filters take as long as without us. A wrong one costs time, and nothing else.

use std::sync::atomic::{AtomicU64, Ordering};

use hyperslab_libhdf5::Id;

const COUNT: usize = 1 << 10;
/// No write is ours.
pub(crate) const NEVER: u64 = u64::MAX;

/// Which array it is, and how many elements.
struct Hint {
    mark: AtomicU64,
    least_count: AtomicU64,
}

static HINTS: [Hint; COUNT] =
    [const { Hint { mark: AtomicU64::new(0), least_count: AtomicU64::new(0) } }; COUNT];

fn place(library: usize, array: Id) -> (&'static Hint, u64) {
    let mark = (library as u64).rotate_left(20) ^ array.cast_unsigned();
    (&HINTS[(mark.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 54) as usize % COUNT], mark)
}

/// The least elements; 0 if that is not known.
pub(crate) fn least_count(library: usize, array: Id) -> u64 {
    let (hint, mark) = place(library, array);
    if hint.mark.load(Ordering::Acquire) == mark { hint.least_count.load(Ordering::Relaxed) } else { 0 }
}

/// Keeps the least elements.
pub(crate) fn keep(library: usize, array: Id, least_count: u64) {
    let (hint, mark) = place(library, array);
    hint.mark.store(0, Ordering::Release);
    hint.least_count.store(least_count, Ordering::Release);
    hint.mark.store(mark, Ordering::Release);
}

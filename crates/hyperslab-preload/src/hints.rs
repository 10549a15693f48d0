//! Guesses about arrays by their identifiers, which cost almost nothing to look up. A wrong one costs time, and nothing
//! else: libhdf5 may use an identifier again.

use std::cell::RefCell;
use std::sync::atomic::{AtomicU64, Ordering};

use hyperslab_libhdf5::Id;

const COUNT: usize = 1 << 10;
const KNOWN: u64 = 1;
const SMALL: u64 = 2;
const SPREADS: u64 = 4;
const LACKS: u64 = 8;
const FLAGS: u32 = 4;

/// The upper bits tell which array it is, the lower ones what is known of it.
static HINTS: [AtomicU64; COUNT] = [const { AtomicU64::new(0) }; COUNT];

/// What is known of an array.
#[derive(Clone, Copy)]
pub(crate) struct Hint {
    /// Whether small reads are ours: libhdf5's cache of chunks is too small for a single chunk, so that it decodes a whole
    /// chunk for each read, or it lacks a filter.
    pub serves_small: bool,
    /// Whether libhdf5 can read none of it.
    pub lacks_filter: bool,
    /// Whether the cache is too small for all chunks, so that it depends on the read how many it decodes again.
    pub may_spread: bool,
}

fn mark(library: usize, array: Id) -> (usize, u64) {
    let mixed = (library as u64).rotate_left(20) ^ array.cast_unsigned();
    let spread = mixed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    ((spread >> 54) as usize % COUNT, mixed << FLAGS)
}

/// What was found out about an array; `None` if that is not known.
#[inline]
pub(crate) fn hint(library: usize, array: Id) -> Option<Hint> {
    let (place, mark) = mark(library, array);
    let hint = HINTS[place].load(Ordering::Relaxed);
    let is_known = hint >> FLAGS << FLAGS == mark && hint & KNOWN != 0;
    is_known.then_some(Hint {
        serves_small: hint & SMALL != 0,
        lacks_filter: hint & LACKS != 0,
        may_spread: hint & SPREADS != 0,
    })
}

/// Keeps what was found out about an array.
pub(crate) fn keep(library: usize, array: Id, found: Hint) {
    let (place, mark) = mark(library, array);
    let flags = [(found.serves_small, SMALL), (found.lacks_filter, LACKS), (found.may_spread, SPREADS)];
    let flags = flags.iter().filter(|flag| flag.0).fold(0, |all, flag| all | flag.1);
    HINTS[place].store(mark | KNOWN | flags, Ordering::Relaxed);
}

/// No write is ours.
pub(crate) const NEVER: u64 = u64::MAX;

/// The least elements of a write that may be ours, and which array it is.
struct LeastCount {
    mark: AtomicU64,
    count: AtomicU64,
}

static LEAST_COUNTS: [LeastCount; COUNT] =
    [const { LeastCount { mark: AtomicU64::new(0), count: AtomicU64::new(0) } }; COUNT];

/// The least elements of a write that may be ours; 0 if that is not known. So small writes and those without filters take as
/// long as without us.
pub(crate) fn least_count(library: usize, array: Id) -> u64 {
    let (place, mark) = mark(library, array);
    let least = &LEAST_COUNTS[place];
    if least.mark.load(Ordering::Acquire) == mark { least.count.load(Ordering::Relaxed) } else { 0 }
}

/// Keeps the least elements.
pub(crate) fn keep_least_count(library: usize, array: Id, count: u64) {
    let (place, mark) = mark(library, array);
    let least = &LEAST_COUNTS[place];
    least.mark.store(0, Ordering::Release);
    least.count.store(count, Ordering::Release);
    least.mark.store(mark, Ordering::Release);
}

/// Arrays with more axes are not kept.
const MOST_NDIM: usize = 8;
/// How many arrays each thread keeps.
const GRID_COUNT: usize = 8;

/// The chunk grid of an array, and what libhdf5 caches of it.
#[derive(Clone, Copy, Default)]
pub(crate) struct Grid {
    /// The shape of a chunk.
    chunk: [u64; MOST_NDIM],
    ndim: usize,
    /// Bytes of a decoded chunk, and of libhdf5's cache.
    pub chunk_nbytes: u64,
    pub cache_nbytes: u64,
}

impl Grid {
    /// `None` if there are too many axes.
    pub fn new(chunk: &[u64], chunk_nbytes: u64, cache_nbytes: u64) -> Option<Self> {
        let mut found = Self { ndim: chunk.len(), chunk_nbytes, cache_nbytes, ..Self::default() };
        found.chunk.get_mut(..chunk.len())?.copy_from_slice(chunk);
        Some(found)
    }

    /// How many chunks lie between two corners.
    #[inline]
    pub fn chunk_count(&self, low: &[u64], high: &[u64]) -> u64 {
        let axes = self.chunk[..self.ndim].iter().zip(low.iter().zip(high));
        let counts =
            axes.map(|(&chunk, (&low, &high))| (high / chunk.max(1)).saturating_sub(low / chunk.max(1)) + 1);
        counts.fold(1, u64::saturating_mul)
    }
}

thread_local! {
    /// Not in the thread's own memory: the system takes that from the thread's stack, which may be small.
    static GRIDS: RefCell<Vec<(usize, Id, Grid)>> = const { RefCell::new(Vec::new()) };
}

/// The grid of an array, if this thread has kept it.
#[inline]
pub(crate) fn grid(library: usize, array: Id) -> Option<Grid> {
    GRIDS.with(|grids| {
        let grids = grids.try_borrow().ok()?;
        let (known_library, known_array, grid) = grids.get(mark(library, array).0 % GRID_COUNT)?;
        ((*known_library, *known_array) == (library, array)).then_some(*grid)
    })
}

/// Keeps the grid of an array.
pub(crate) fn keep_grid(library: usize, array: Id, grid: Grid) {
    GRIDS.with(|grids| {
        if let Ok(mut grids) = grids.try_borrow_mut() {
            grids.resize(GRID_COUNT, (0, 0, Grid::default()));
            grids[mark(library, array).0 % GRID_COUNT] = (library, array, grid);
        }
    });
}

//! SHA-256 of chunks of arrays in memory, as versioned-hdf5 computes it, with several threads.

use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use hyperslab_core::{ChunkBox, ChunkGrid};
use hyperslab_engine::{default_thread_count, with_helpers};
use ring::digest::{Context, SHA256};
use thiserror::Error;

use crate::chunk_gathering::{FEW_NBYTES, Runs, chunk_box, chunk_nbytes, outer_count};
use crate::error::CallerError;

/// Bytes of a hash.
pub const DIGEST_NBYTES: usize = 32;

/// SHA-256 of a chunk's valid part and its shape.
pub type Digest = [u8; DIGEST_NBYTES];

/// Why chunks cannot be hashed.
#[derive(Debug, Error)]
pub enum HashError {
    /// There is no such chunk or slot.
    #[error("a slot or chunk number is out of range")]
    Misfit,
    /// The caller did not accept the hashes.
    #[error("{0}")]
    Caller(CallerError),
}

/// The bytes of the chunks to hash.
#[derive(Clone, Copy, Debug)]
pub enum ChunkSource<'a> {
    /// All elements of the array, in C order.
    Array(&'a [u8]),
    /// Whole chunks in memory, and the slot of each chunk to hash.
    Slab(&'a [u8], &'a [i64]),
}

/// Receives hashes in order: the number of the first hash, then the hashes.
pub type TakeHashes<'a> = &'a mut dyn FnMut(usize, &[u8]) -> Result<(), CallerError>;

/// Hashes chunks of a grid, by linear index, and returns the hashes one after another. Elements have `width` bytes. `take`
/// gives a count and a function, which receives the hashes whenever that many more are ready.
pub fn hash_chunks(
    source: ChunkSource<'_>,
    grid: &ChunkGrid,
    numbers: &[i64],
    width: usize,
    take: Option<(usize, TakeHashes<'_>)>,
) -> Result<Vec<u8>, HashError> {
    let chunk_nbytes = chunk_nbytes(grid, width).ok_or(HashError::Misfit)?;
    let origin = vec![0; grid.shape().len()];
    let hashed = |entry: usize| -> Option<Digest> {
        let chunk = chunk_box(grid, u64::try_from(numbers[entry]).ok()?)?;
        match source {
            ChunkSource::Array(bytes) => hash(bytes, grid.shape(), &chunk.start, &chunk, width),
            ChunkSource::Slab(slab, slots) => {
                let start = usize::try_from(*slots.get(entry)?).ok()?.checked_mul(chunk_nbytes)?;
                let bytes = slab.get(start..start.checked_add(chunk_nbytes)?)?;
                hash(bytes, grid.chunk_shape(), &origin, &chunk, width)
            }
        }
    };
    in_order(numbers.len(), chunk_nbytes.saturating_mul(numbers.len()), hashed, take)
}

/// Calls `hash` for each of these entries, which together hold this many bytes.
fn in_order(
    count: usize,
    nbytes: usize,
    hash: impl Fn(usize) -> Option<Digest> + Sync,
    take: Option<(usize, TakeHashes<'_>)>,
) -> Result<Vec<u8>, HashError> {
    let ahead = Ahead::new(count, hash);
    let helpers = if nbytes < FEW_NBYTES { 0 } else { default_thread_count() - 1 };
    let (step, mut take) = take.map_or((count, None), |(step, take)| (step, Some(take)));
    let mut digests = Vec::with_capacity(count * DIGEST_NBYTES);
    let lead = || {
        let taken = (0..count).step_by(step.max(1)).try_for_each(|first| {
            let last = first.saturating_add(step.max(1)).min(count);
            for digest in ahead.ready(first..last) {
                digests.extend_from_slice(&digest.ok_or(HashError::Misfit)?);
            }
            take.as_mut().map_or(Ok(()), |take| {
                take(first, &digests[first * DIGEST_NBYTES..]).map_err(HashError::Caller)
            })
        });
        ahead.stop();
        taken.map(|()| digests)
    };
    with_helpers(helpers.min(count.saturating_sub(1)), |_| ahead.help(), lead)
}

/// The hash of one chunk, whose elements start at `start` in an array of `shape`.
fn hash(bytes: &[u8], shape: &[u64], start: &[u64], chunk: &ChunkBox, width: usize) -> Option<Digest> {
    let mut context = Context::new(&SHA256);
    let outer_count = outer_count(&chunk.valid_shape, shape);
    for run in Runs::new(shape, start, &chunk.valid_shape, outer_count, width) {
        context.update(bytes.get(run).unwrap_or_default());
    }
    context.update(shape_text(&chunk.valid_shape).as_bytes());
    context.finish().as_ref().try_into().ok()
}

/// A shape as Python writes a tuple. versioned-hdf5 hashes that text.
fn shape_text(shape: &[u64]) -> String {
    match shape {
        [length] => format!("({length},)"),
        _ => format!("({})", shape.iter().map(u64::to_string).collect::<Vec<_>>().join(", ")),
    }
}

/// Results for a range of numbers. Threads compute them ahead of the caller, who wants them in order and helps.
struct Ahead<T, F> {
    /// The first number that no thread has taken.
    next: AtomicUsize,
    made: Vec<OnceLock<T>>,
    make: F,
}

impl<T: Copy, F: Fn(usize) -> T> Ahead<T, F> {
    fn new(count: usize, make: F) -> Self {
        Self {
            next: AtomicUsize::new(0),
            made: std::iter::repeat_with(OnceLock::new).take(count).collect(),
            make,
        }
    }

    /// Computes the next result. Returns whether there was one.
    fn step(&self) -> bool {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        match self.made.get(number) {
            Some(position) => position.set((self.make)(number)).is_ok(),
            None => false,
        }
    }

    /// Works until all results exist or the caller stops.
    fn help(&self) {
        while self.step() {}
    }

    /// Stops: the caller does not want the rest.
    fn stop(&self) {
        self.next.store(self.made.len(), Ordering::Relaxed);
    }

    /// Some results, once all of them exist. This thread helps to compute them.
    fn ready(&self, numbers: Range<usize>) -> Vec<T> {
        let made = &self.made[numbers];
        let mut missing = 0;
        while made.get(missing).is_some_and(|one| one.get().is_some() || self.step()) {
            missing += usize::from(made[missing].get().is_some());
        }
        made.iter().map(|one| *one.wait()).collect()
    }
}

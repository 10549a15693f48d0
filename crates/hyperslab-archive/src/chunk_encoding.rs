//! Encodes the chunks of a slab with several threads, and hands them over in order while the next ones are encoded.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use hyperslab_core::ChunkGrid;
use hyperslab_engine::codecs::{self, Filter};
use hyperslab_engine::with_helpers;

use crate::chunk_gathering::{chunk_box, chunk_nbytes, gather_chunk};
use crate::desk::Desk;

/// Encoded bytes of this many chunks' size may wait until they are taken.
const WAITING_NBYTES: usize = 32 << 20;

/// A part of an array in memory that begins with whole chunks.
#[derive(Clone, Copy)]
pub struct Slab<'a> {
    /// Its elements in C order.
    pub bytes: &'a [u8],
    /// Its shape and that of a chunk.
    pub grid: &'a ChunkGrid,
    /// One element, for what a chunk has outside the array.
    pub fill: &'a [u8],
}

/// How to encode a slab.
#[derive(Clone, Copy)]
pub struct Encoding<'a> {
    /// The steps in order.
    pub filters: &'a [Filter],
    /// How many threads work, with the calling one.
    pub threads: usize,
    /// Whether chunks that hold nothing but the fill value are left out.
    pub leaves_out_fill: bool,
    /// Whether the encoded bytes are wanted; otherwise only checksums are computed.
    pub keeps_bytes: bool,
}

/// A chunk that was encoded.
pub struct EncodedChunk {
    /// The stored bytes; `None` if the chunk is left out.
    pub bytes: Option<Vec<u8>>,
    /// A bit for each filter that was skipped.
    pub mask: u32,
    /// CRC-32C of the chunk before encoding.
    pub checksum: u32,
}

/// Why a slab could not be encoded.
pub enum EncodeError<E> {
    /// The bytes are not those of the grid, or a chunk does not fit in memory.
    Misfit,
    /// A compressor refused this chunk.
    Refused(usize),
    /// The function that takes the chunks failed.
    Taking(E),
}

/// Encodes all chunks of a slab. `take` gets each with its number in C order, in order, in the calling thread.
///
/// # Errors
/// If the bytes do not have the grid's shape, a compressor refuses a chunk, or `take` fails.
pub fn encode_slab<E>(
    slab: Slab<'_>,
    encoding: Encoding<'_>,
    mut take: impl FnMut(usize, EncodedChunk) -> Result<(), E>,
) -> Result<(), EncodeError<E>> {
    let nbytes = slab
        .grid
        .shape()
        .iter()
        .try_fold(slab.fill.len() as u64, |nbytes, &length| nbytes.checked_mul(length));
    let count = usize::try_from(slab.grid.chunk_count()).map_err(|_| EncodeError::Misfit)?;
    let chunk_nbytes = chunk_nbytes(slab.grid, slab.fill.len()).ok_or(EncodeError::Misfit)?;
    if nbytes != Some(slab.bytes.len() as u64) {
        return Err(EncodeError::Misfit);
    }
    // A chunk that reaches beyond the slab is filled up in memory of its own, and the system may have less.
    if chunk_nbytes > slab.bytes.len() && Vec::<u8>::new().try_reserve_exact(chunk_nbytes).is_err() {
        return Err(EncodeError::Misfit);
    }
    let threads = encoding.threads.clamp(1, count.max(1));
    let work = Work {
        slab,
        encoding,
        chunk_nbytes,
        count,
        most_ahead: (WAITING_NBYTES / chunk_nbytes.max(1)).clamp(2 * threads, 4096),
        next: AtomicUsize::new(0),
        has_ended: AtomicBool::new(false),
        state: Mutex::default(),
        changed: Condvar::new(),
    };
    let lead = || {
        let _ending = Ending(&work); // even if `take` panics, the helpers must not wait for it
        work.lead(&mut take)
    };
    with_helpers(threads - 1, |_| work.help(), lead)
}

/// Chunks that wait to be taken, and the number of the one to take next.
#[derive(Default)]
struct State {
    ready: BTreeMap<usize, Option<EncodedChunk>>,
    taken: usize,
}

struct Work<'a> {
    slab: Slab<'a>,
    encoding: Encoding<'a>,
    chunk_nbytes: usize,
    count: usize,
    most_ahead: usize,
    next: AtomicUsize,
    has_ended: AtomicBool,
    state: Mutex<State>,
    changed: Condvar,
}

/// Ends all threads when it is dropped, which a panic does too.
struct Ending<'w, 'a>(&'w Work<'a>);

impl Drop for Ending<'_, '_> {
    fn drop(&mut self) {
        let _state = self.0.state(); // nobody is between looking at the flag and waiting
        self.0.has_ended.store(true, Ordering::Relaxed);
        self.0.changed.notify_all();
    }
}

impl Work<'_> {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'s>(&self, state: MutexGuard<'s, State>) -> MutexGuard<'s, State> {
        self.changed.wait(state).unwrap_or_else(PoisonError::into_inner)
    }

    /// Encodes chunks until there are no more, but never far ahead of what was taken.
    fn help(&self) {
        let mut desk = Desk::take();
        let ending = Ending(self);
        loop {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            if number >= self.count {
                break;
            }
            let mut state = self.state();
            while number >= state.taken + self.most_ahead && !self.has_ended.load(Ordering::Relaxed) {
                state = self.wait(state);
            }
            drop(state);
            if self.has_ended.load(Ordering::Relaxed) {
                break;
            }
            let encoded = self.encode(number, &mut desk);
            self.state().ready.insert(number, encoded);
            self.changed.notify_all();
        }
        desk.leave();
        std::mem::forget(ending); // only a panic ends the others
    }

    /// Hands over chunks in order, and encodes too while the next one is not ready.
    fn lead<E>(
        &self,
        take: &mut impl FnMut(usize, EncodedChunk) -> Result<(), E>,
    ) -> Result<(), EncodeError<E>> {
        let mut desk = Desk::take();
        let mut taken = 0;
        while taken < self.count {
            let mut state = self.state();
            if let Some(encoded) = state.ready.remove(&taken) {
                drop(state);
                take(taken, encoded.ok_or(EncodeError::Refused(taken))?).map_err(EncodeError::Taking)?;
                taken += 1;
                self.state().taken = taken;
                self.changed.notify_all();
                continue;
            }
            if self.next.load(Ordering::Relaxed) < self.count.min(taken + self.most_ahead) {
                drop(state);
                let number = self.next.fetch_add(1, Ordering::Relaxed);
                if number < self.count {
                    let encoded = self.encode(number, &mut desk);
                    self.state().ready.insert(number, encoded);
                }
                continue;
            }
            while !state.ready.contains_key(&taken) {
                if self.has_ended.load(Ordering::Relaxed) {
                    return Err(EncodeError::Refused(taken));
                }
                state = self.wait(state);
            }
        }
        desk.leave();
        Ok(())
    }

    /// Encodes one chunk; `None` if a compressor refuses it.
    fn encode(&self, number: usize, desk: &mut Desk) -> Option<EncodedChunk> {
        let Slab { bytes, grid, fill } = self.slab;
        let chunk = chunk_box(grid, number as u64)?;
        let rest = chunk.start.iter().zip(grid.chunk_shape()).zip(grid.shape()).skip(1);
        let spans_rows = rest.into_iter().all(|((start, length), all)| *start == 0 && length == all);
        let plain = if spans_rows && chunk.valid_shape == chunk.stored_shape {
            let start = number * self.chunk_nbytes; // the chunk is a piece of the slab
            bytes.get(start..start + self.chunk_nbytes)?
        } else {
            desk.plain.resize(self.chunk_nbytes, 0);
            gather_chunk(bytes, grid, &chunk, fill, &mut desk.plain);
            &desk.plain[..]
        };
        let checksum = codecs::crc32c(plain);
        if !self.encoding.keeps_bytes || (self.encoding.leaves_out_fill && is_fill(plain, fill)) {
            return Some(EncodedChunk { bytes: None, mask: 0, checksum });
        }
        let (encoded, mask) = desk.encoder.encode(plain, self.encoding.filters)?;
        Some(EncodedChunk { bytes: Some(encoded.into_owned()), mask, checksum })
    }
}

/// Whether all elements are the fill value: the first one is, and each other is like the one before it.
pub(crate) fn is_fill(bytes: &[u8], fill: &[u8]) -> bool {
    match bytes.get(fill.len()..) {
        Some(rest) if !fill.is_empty() => bytes.starts_with(fill) && *rest == bytes[..rest.len()],
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use hyperslab_core::ChunkGrid;
    use hyperslab_engine::codecs::Filter;

    use super::{EncodeError, Encoding, Slab, encode_slab};

    fn encoded(threads: usize, filters: &[Filter], shape: &[u64], chunk: &[u64]) -> Vec<(usize, Vec<u8>)> {
        let nbytes = shape.iter().product::<u64>();
        let bytes: Vec<u8> = (0..nbytes).map(|i| (i % 251).try_into().unwrap_or(0)).collect();
        let Ok(grid) = ChunkGrid::new(shape.to_vec(), chunk.to_vec()) else { return Vec::new() };
        let slab = Slab { bytes: &bytes, grid: &grid, fill: &[9] };
        let encoding = Encoding { filters, threads, leaves_out_fill: false, keeps_bytes: true };
        let mut out = Vec::new();
        let done = encode_slab(slab, encoding, |number, chunk| {
            out.push((number, chunk.bytes.unwrap_or_default()));
            Ok::<(), ()>(())
        });
        assert!(done.is_ok());
        out
    }

    #[test]
    fn chunks_come_in_order_whatever_the_threads() {
        for (shape, chunk) in [(vec![300, 7], vec![1, 7]), (vec![33, 50], vec![4, 8]), (vec![5], vec![10])] {
            let one = encoded(1, &[], &shape, &chunk);
            assert_eq!(
                one.iter().map(|(number, _)| *number).collect::<Vec<_>>(),
                (0..one.len()).collect::<Vec<_>>()
            );
            assert_eq!(one, encoded(4, &[], &shape, &chunk));
        }
        assert_eq!(encoded(2, &[], &[5], &[7]), vec![(0, vec![0, 1, 2, 3, 4, 9, 9])]);
    }

    #[test]
    fn a_chunk_that_no_memory_holds_is_a_misfit() {
        let Ok(grid) = ChunkGrid::new(vec![8], vec![1 << 62]) else { return };
        let slab = Slab { bytes: &[0; 8], grid: &grid, fill: &[0] };
        let encoding = Encoding { filters: &[], threads: 1, leaves_out_fill: false, keeps_bytes: true };
        assert!(matches!(encode_slab(slab, encoding, |_, _| Ok::<(), ()>(())), Err(EncodeError::Misfit)));
    }

    #[test]
    fn fill_is_left_out_and_errors_end_it() {
        let Ok(grid) = ChunkGrid::new(vec![4000], vec![100]) else { return };
        let bytes = vec![7; 4000];
        let slab = Slab { bytes: &bytes, grid: &grid, fill: &[7] };
        let encoding = Encoding { filters: &[], threads: 3, leaves_out_fill: true, keeps_bytes: true };
        let mut left_out = 0;
        let done = encode_slab(slab, encoding, |_, chunk| {
            left_out += usize::from(chunk.bytes.is_none());
            Ok::<(), ()>(())
        });
        assert!(done.is_ok() && left_out == 40);
        let stopped = encode_slab(slab, encoding, |number, _| if number == 3 { Err(number) } else { Ok(()) });
        assert!(matches!(stopped, Err(EncodeError::Taking(3))));
        let deflate: Vec<_> = Filter::of("deflate", &[99]).into_iter().collect();
        assert_eq!(deflate.len(), 1);
        let refused = Encoding { filters: &deflate, leaves_out_fill: false, ..encoding };
        assert!(matches!(encode_slab(slab, refused, |_, _| Ok::<(), ()>(())), Err(EncodeError::Refused(0))));
    }
}

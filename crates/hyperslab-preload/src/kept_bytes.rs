//! The encoded bytes of an array that were read last, as many as libhdf5's cache has room for.
//!
//! If someone changes or truncates a file while a program reads it, libhdf5 goes on answering from its cache. What we
//! served is not in that cache: without these bytes, a read would fail that succeeds without us.

use std::collections::VecDeque;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use hyperslab_engine::lock_briefly;

/// Bytes of one file, by their offsets.
#[derive(Default)]
pub(crate) struct KeptBytes {
    most_nbytes: usize,
    /// Whether nothing else is read any more.
    is_all: AtomicBool,
    /// Whether a read goes on that is so large that what is kept of it would hardly be asked for again.
    is_paused: AtomicBool,
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    /// The one used last is at the end.
    ranges: VecDeque<(u64, Vec<u8>)>,
    nbytes: usize,
}

/// A read of more than so many times as many bytes is not kept.
const MOST_TIMES: u64 = 8;

impl KeptBytes {
    /// Keeps at most so many bytes.
    pub fn new(most_nbytes: usize) -> Self {
        Self { most_nbytes, ..Self::default() }
    }

    /// A read of so many decoded bytes begins.
    pub fn begin(&self, nbytes: u64) {
        let is_large = nbytes > (self.most_nbytes as u64).saturating_mul(MOST_TIMES);
        self.is_paused.store(is_large, Ordering::Relaxed);
    }

    /// From now on, what is kept is all that there is: the file has changed.
    pub fn close(&self) {
        self.is_all.store(true, Ordering::Release);
    }

    /// Whether what is kept is all that there is.
    pub fn is_all(&self) -> bool {
        self.is_all.load(Ordering::Acquire)
    }

    /// Keeps bytes that were read.
    pub fn keep(&self, offset: u64, bytes: &[u8]) {
        if self.most_nbytes == 0 || self.is_paused.load(Ordering::Relaxed) {
            return;
        }
        let skipped = bytes.len().saturating_sub(self.most_nbytes);
        let (offset, bytes) = (offset + skipped as u64, &bytes[skipped..]);
        let Some(mut kept) = lock_briefly(&self.kept) else { return };
        let is_it = |(start, found): &(u64, Vec<u8>)| (*start, found.len()) == (offset, bytes.len());
        if let Some(place) = kept.ranges.iter().position(is_it) {
            let range = kept.ranges.remove(place);
            kept.ranges.extend(range);
            return;
        }
        let mut memory = kept.make_room(self.most_nbytes - bytes.len());
        drop(kept); // other threads need not wait while the bytes are copied
        memory.clear();
        if memory.try_reserve_exact(bytes.len()).is_err() {
            return;
        }
        memory.extend_from_slice(bytes);
        if let Some(mut kept) = lock_briefly(&self.kept) {
            kept.nbytes += memory.len();
            kept.ranges.push_back((offset, memory));
            kept.make_room(self.most_nbytes);
        }
    }

    /// libhdf5 has read so many bytes of the changed file: it would have dropped as many that are older from its cache.
    pub fn make_way(&self, nbytes: u64) {
        let nbytes = usize::try_from(nbytes).unwrap_or(usize::MAX);
        if let Some(mut kept) = lock_briefly(&self.kept) {
            let left = kept.nbytes.saturating_sub(nbytes);
            kept.make_room(left);
        }
    }

    /// Copies bytes that are kept. Returns whether all of them are.
    pub fn copy(&self, mut offset: u64, mut out: &mut [u8]) -> bool {
        let Some(kept) = lock_briefly(&self.kept) else { return false };
        while !out.is_empty() {
            let of_range = |(start, bytes): &(u64, Vec<u8>)| {
                let skipped = usize::try_from(offset.checked_sub(*start)?).ok()?;
                Some((skipped, bytes.len().checked_sub(skipped).filter(|&left| left > 0)?))
            };
            let found = kept.ranges.iter().find_map(|range| Some((&range.1, of_range(range)?)));
            let Some((bytes, (skipped, left))) = found else { return false };
            let count = left.min(out.len());
            let (now, later) = out.split_at_mut(count);
            now.copy_from_slice(&bytes[skipped..][..count]);
            (offset, out) = (offset + count as u64, later);
        }
        true
    }
}

impl Kept {
    /// Drops what was used longest ago, and returns the memory of the last one dropped.
    fn make_room(&mut self, nbytes: usize) -> Vec<u8> {
        let mut memory = Vec::new();
        while self.nbytes > nbytes {
            let Some((_, bytes)) = self.ranges.pop_front() else { break };
            self.nbytes -= bytes.len();
            memory = bytes;
        }
        memory
    }
}
